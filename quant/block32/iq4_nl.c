/* quant/block32/iq4_nl.c: IQ4_NL: blocks of 32 four-bit codes into a book of 16 values, with a
 * scale.
 *
 * value = d * book[code]. 4.5 bits a weight. "Codes" below, in panels too, are book[code] + 128.
 * Called through the type table only. */
#include "quant/block32/block32_along.h"
#include "quant/codebook.h"

struct block {
    uint16_t d;    /* half precision */
    uint8_t q[16]; /* byte l: element l low, element 16 + l high */
};
_Static_assert(sizeof(struct block) == 18, "IQ4_NL block");

enum { OFFSET = 128, MAX_CODE = 113 + OFFSET, QS = offsetof(struct block, q) };

static const struct quant_form32 form = {.block_bytes = sizeof(struct block), .offset = OFFSET};

QUANT_INLINE void read_block(const uint8_t *at, struct quant_block32 *block)
{
    block->d = quant_scale32(at);
    quant_split_nibbles(at + QS, block->code);
    for (int i = 0; i < 32; i++) block->code[i] = (uint8_t)(book_iq4[block->code[i]] + OFFSET);
}

static void write_block(const float in[32], uint8_t *at)
{
    struct block block = {.d = FIT_NAN};
    float x[32], weight[32];
    uint8_t code[32] = {0};
    if (quant_fit_prepare(32, in, x, weight)) {
        block.d = quant_fit_half(quant_fit_scale(&book_iq4_grid, 32, x, weight));
        quant_fit_codes(&book_iq4_grid, 32, x, quant_fit_inverse(quant_f16_to_f32(block.d)), code);
    }
    quant_join_nibbles(code, block.q);
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

/* AVX2 takes the sign of the weight over to the activation, so its codes have no offset. */
static const struct quant_form32 signed_form = {.block_bytes = sizeof(struct block)};

CPU_TARGET_AVX2 QUANT_INLINE __m256i book_avx2(void)
{
    return _mm256_add_epi8(book_load_avx2(book_iq4), _mm256_set1_epi8((char)OFFSET));
}

CPU_TARGET_AVX2 QUANT_INLINE __m256i codes_avx2(const uint8_t *at)
{
    return _mm256_shuffle_epi8(book_avx2(), quant_codes_avx2(at + QS));
}

CPU_TARGET_AVX2 static void decode_avx2(int64_t k, const void *row, float *out)
{
    quant_decode32_avx2(form, codes_avx2, k, row, out);
}

CPU_TARGET_AVX2 QUANT_INLINE void panel_codes_avx2(const uint8_t *const at[8], __m256i q[8])
{
    __m256i t[4];
    quant_transpose_avx2(at, QS, t);
    quant_nibbles_avx2(t, q);
    for (int i = 0; i < 8; i++) q[i] = _mm256_shuffle_epi8(book_avx2(), q[i]);
}

CPU_TARGET_AVX2 static void unpack_avx2(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                        void *panel)
{
    quant_unpack32_avx2(form, quant_scales_avx2, panel_codes_avx2, n_blocks, row, panel);
}

/* The products of a pair fill their 16 bits, so each half is widened alone. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i sums_avx2(const uint8_t *even, const uint8_t *odd,
                                               __m256i q_low, __m256i q_high)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i book = book_load_avx2(book_iq4), sizes = _mm256_abs_epi8(book);
    __m256i q = quant_pair_avx2(even + QS, odd + QS);
    __m256i low = book_products_avx2(book, sizes, super_bits(q, 0, 15), q_low);
    __m256i high = book_products_avx2(book, sizes, super_bits(q, 4, 15), q_high);
    return _mm256_add_epi32(_mm256_madd_epi16(low, one), _mm256_madd_epi16(high, one));
}

CPU_TARGET_AVX2 static void gemv_avx2(int64_t k, const struct quant_rows *rows,
                                      const struct quant_act *a, float *out)
{
    quant_gemv32(signed_form, sums_avx2, quant_scales_avx2, k, rows, a, out);
}

/* Codes unsigned as in panels: here there is a multiply-add of unsigned bytes to 32 bits, and the
 * shell subtracts the offset's share. */
CPU_TARGET_AVX512 QUANT_INLINE void step_codes(struct quant_step_pair pair, __m512i heads,
                                               __m512i *low, __m512i *high)
{
    const __m512i book = _mm512_broadcast_i64x4(book_avx2());
    (void)heads;
    quant_step_nibbles(pair, sizeof(struct block), QS, low, high);
    *low = _mm512_shuffle_epi8(book, *low);
    *high = _mm512_shuffle_epi8(book, *high);
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

#endif

const struct quant_type quant_type_iq4_nl = {
    .name = "IQ4_NL",
    .id = QUANT_IQ4_NL,
    .block_len = 32,
    .block_bytes = sizeof(struct block),
    .act = QUANT_ACT_Q8_32,
    .panel = {.block = 1, .sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
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
            [CPU_AVX512] = {.gemv = gemv_avx512, .streams = QUANT_GEMV_ROWS},
#endif
        },
};
