/* quant/block32/q5_0.c: Q5_0: blocks of 32 five-bit codes with a scale; 5.5 bits per weight.
 *
 *      byte  0     2         6                      22
 *            | d   | qh[4]   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: low four bits of element 16 + i, low nibble: of element i
 *      qh:     as a little-endian 32-bit number, bit i is the fifth bit of element i
 *      x = d * (code - 16),   code 0 .. 31
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/block32_along.h"

struct block {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct block) == 22, "Q5_0 block");

enum { OFFSET = 16, QS = offsetof(struct block, qs), QH = offsetof(struct block, qh) };

static const struct quant_form32 form = {
    .block_bytes = sizeof(struct block), .offset = OFFSET, .narrow = 1};

QUANT_INLINE void read_block(const uint8_t *at, struct quant_block32 *block)
{
    block->d = quant_scale32(at);
    quant_split_nibbles(at + QS, block->code);
    quant_add_fifth_bits(at + QH, block->code);
}

static void write_block(const float x[32], uint8_t *at)
{
    uint8_t code[32];
    struct block block = {.d = quant_encode_symmetric(x, OFFSET, code).d};
    quant_join_nibbles(code, block.qs);
    quant_put_fifth_bits(code, block.qh);
    memcpy(at, &block, sizeof block);
}

static void decode_scalar(int64_t k, const void *row, float *out)
{
    quant_decode32(form, read_block, k, row, out);
}

static void encode(int64_t k, const float *in, void *row)
{
    quant_encode32(form, write_block, k, in, row);
}

static float dot(int64_t k, const void *row, const struct quant_act *a)
{
    return quant_dot32(form, read_block, k, row, a);
}

static void gemv_scalar(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                        float *out)
{
    quant_gemv_by_dot(dot, k, rows, a, out);
}

static void unpack_scalar(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    quant_unpack32(form, read_block, n_blocks, row, panel);
}

#if defined(__x86_64__)

CPU_TARGET_AVX2 QUANT_INLINE __m256i codes_avx2(const uint8_t *at)
{
    return _mm256_or_si256(quant_codes_avx2(at + QS),
                           quant_fifth_of_32_avx2(quant_load32(at + QH)));
}

CPU_TARGET_AVX2 static void decode_avx2(int64_t k, const void *row, float *out)
{
    quant_decode32_avx2(form, codes_avx2, k, row, out);
}

CPU_TARGET_AVX2 QUANT_INLINE __m256i sums_avx2(const uint8_t *even, const uint8_t *odd,
                                               __m256i q_low, __m256i q_high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i qs = quant_pair_avx2(even + QS, odd + QS);
    __m256i qh = quant_pair_avx2(even + QH, odd + QH); /* and codes, which are left alone */
    __m256i low = _mm256_and_si256(qs, nibble);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(qs, 4), nibble);
    low = _mm256_or_si256(low, quant_bits_to_16_avx2(qh, 0));
    high = _mm256_or_si256(high, quant_bits_to_16_avx2(qh, 2));
    low = _mm256_maddubs_epi16(low, q_low);
    high = _mm256_maddubs_epi16(high, q_high);
    /* At most 4 * 31 * 127: sixteen bits hold it. */
    return _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1));
}

CPU_TARGET_AVX2 static void gemv_avx2(int64_t k, const struct quant_rows *rows,
                                      const struct quant_act *a, float *out)
{
    quant_gemv32(form, sums_avx2, quant_scales_avx2, k, rows, a, out);
}

CPU_TARGET_AVX2 QUANT_INLINE void panel_codes_avx2(const uint8_t *const at[8], __m256i q[8])
{
    __m256i t[4];
    quant_transpose_avx2(at, QS, t);
    quant_nibbles_avx2(t, q);
    quant_fifth_bits_avx2(quant_row_dwords_avx2(at, QH), q);
}

CPU_TARGET_AVX2 static void unpack_avx2(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                        void *panel)
{
    quant_unpack32_avx2(form, quant_scales_avx2, panel_codes_avx2, n_blocks, row, panel);
}

CPU_TARGET_AVX512 QUANT_INLINE void step_codes(struct quant_step_pair pair, __m512i heads,
                                               __m512i *low, __m512i *high)
{
    quant_step_nibbles(pair, sizeof(struct block), QS, low, high);
    quant_step_fifth_bits(heads, low, high);
}

CPU_TARGET_AVX512 QUANT_INLINE __m512i sums_avx512(const struct quant_step_rows *rows,
                                                   const struct quant_step_column *column,
                                                   __m512i *heads)
{
    return quant_step_sums32(form, step_codes, rows, column, heads);
}

CPU_TARGET_AVX512 static void gemv_avx512(int64_t k, const struct quant_rows *rows,
                                          const struct quant_act *a, float *out)
{
    quant_gemv32_avx512(form, sums_avx512, k, rows, a, out);
}

CPU_TARGET_AVX512 QUANT_INLINE void panel_codes_avx512(const uint8_t *const at[16], __m512i q[8])
{
    __m512i t[4];
    quant_transpose_avx512(at, QS, t);
    quant_nibbles_avx512(t, q);
    quant_fifth_bits_avx512(
        quant_join_avx512(quant_row_dwords_avx2(at, QH), quant_row_dwords_avx2(at + 8, QH)), q);
}

CPU_TARGET_AVX512 static void unpack_avx512(int64_t n_blocks,
                                            const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    quant_unpack32_avx512(form, panel_codes_avx512, n_blocks, row, panel);
}

#endif

const struct quant_type quant_type_q5_0 = {
    .name = "Q5_0",
    .id = QUANT_Q5_0,
    .block_len = 32,
    .block_bytes = sizeof(struct block),
    .act = QUANT_ACT_Q8_32,
    .panel = {.block = 1, .sub_len = 32, .offset = OFFSET, .max_code = 31},
    .encode = encode,
    .dot = dot,
    .kernel =
        {
            [CPU_SCALAR] = {.decode = decode_scalar, .unpack = unpack_scalar, .gemv = gemv_scalar},
#if defined(__x86_64__)
            [CPU_AVX2] = {.decode = decode_avx2,
                          .unpack = unpack_avx2,
                          .gemv = gemv_avx2,
                          .streams = QUANT_GEMV_ROWS},
            [CPU_AVX512] = {.unpack = unpack_avx512,
                            .gemv = gemv_avx512,
                            .streams = QUANT_GEMV_ROWS},
#endif
        },
};
