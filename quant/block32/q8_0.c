/* quant/block32/q8_0.c: Q8_0: blocks of 32 signed bytes with a scale; 8.5 bits per weight.
 *
 *      byte  0     2                                  34
 *            | d   | qs[32]                           |     d: binary16, little-endian
 *
 *      x = d * qs[i]
 *
 * Panels hold the bytes plus 128, because the multiply instructions want one side unsigned.
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "base/unroll.h"
#include "quant/block32/block32_along.h"
#include <math.h>

struct block {
    uint16_t d;
    int8_t qs[32];
};
_Static_assert(sizeof(struct block) == 34, "Q8_0 block");

enum { OFFSET = 128, QS = offsetof(struct block, qs) };

static const struct quant_form32 form = {
    .block_bytes = sizeof(struct block), .offset = OFFSET, .bytes = true};

QUANT_INLINE void read_block(const uint8_t *at, struct quant_block32 *block)
{
    block->d = quant_scale32(at);
    for (int i = 0; i < 32; i++) block->code[i] = at[QS + i] ^ OFFSET;
}

/* One block: the largest element goes to 127. A block with an element that is not finite gets
 * d = NaN, so that it shows; scales beyond the range of binary16 are cut to its largest. */
static struct block encode_block(const float x[32])
{
    struct block block = {0};
    uint32_t largest = 0;

    for (int i = 0; i < 32; i++) {
        uint32_t bits = quant_bits_of(x[i]) & 0x7fffffff;
        if (bits > largest) largest = bits;
    }
    if (largest >= 0x7f800000) {
        block.d = 0x7e00;
        return block;
    }
    float d = quant_float_of(largest) / 127.0f;
    block.d = quant_f32_to_f16(d < 65504.0f ? d : 65504.0f);
    /* The nearest codes under the scale that the file will hold. */
    d = quant_f16_to_f32(block.d);
    for (int i = 0; i < 32 && d != 0.0f; i++) {
        float q = x[i] / d;
        q = q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q;
        block.qs[i] = (int8_t)lrintf(q);
    }
    return block;
}

static void write_block(const float x[32], uint8_t *at)
{
    const struct block block = encode_block(x);
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

CPU_TARGET_AVX2 QUANT_INLINE __m256i codes_avx2(const uint8_t *at)
{
    return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(at + QS)), _mm256_set1_epi8(-128));
}

CPU_TARGET_AVX2 static void decode_avx2(int64_t k, const void *row, float *out)
{
    quant_decode32_avx2(form, codes_avx2, k, row, out);
}

CPU_TARGET_AVX2 QUANT_INLINE __m256i sums_avx2(const uint8_t *even, const uint8_t *odd,
                                               __m256i q_low, __m256i q_high)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i low = quant_pair_avx2(even + QS, odd + QS);
    __m256i high = quant_pair_avx2(even + QS + 16, odd + QS + 16);
    /* |w| * (q with the sign of w), in pairs: at most 2 * 128 * 127, just within sixteen bits. */
    low = _mm256_maddubs_epi16(_mm256_abs_epi8(low), _mm256_sign_epi8(q_low, low));
    high = _mm256_maddubs_epi16(_mm256_abs_epi8(high), _mm256_sign_epi8(q_high, high));
    return _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones));
}

CPU_TARGET_AVX2 static void gemv_avx2(int64_t k, const struct quant_rows *rows,
                                      const struct quant_act *a, float *out)
{
    quant_gemv32(signed_form, sums_avx2, quant_scales_avx2, k, rows, a, out);
}

CPU_TARGET_AVX2 QUANT_INLINE void panel_codes_avx2(const uint8_t *const at[8], __m256i q[8])
{
    quant_transpose_avx2(at, QS, q);
    quant_transpose_avx2(at, QS + 16, q + 4);
    for (int i = 0; i < 8; i++) q[i] = _mm256_xor_si256(q[i], _mm256_set1_epi8(-128));
}

CPU_TARGET_AVX2 static void unpack_avx2(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                        void *panel)
{
    quant_unpack32_avx2(form, quant_scales_avx2, panel_codes_avx2, n_blocks, row, panel);
}

_Static_assert(QUANT_ALONG * sizeof(struct block) / 64 == 8, "a line behind each load");

/* Both blocks' codes of a row fill a register. */
CPU_TARGET_AVX512 QUANT_INLINE __m512i row_sums(const struct quant_step_rows *rows, int j,
                                                __m512i q)
{
    const uint8_t *at = rows->at + (size_t)j * rows->stride;
    const __m256i *first = (const __m256i *)(at + QS);
    const __m256i *second = (const __m256i *)(at + (rows->two ? sizeof(struct block) : 0) + QS);
    __m512i codes = quant_join_avx512(_mm256_loadu_si256(first), _mm256_loadu_si256(second));
    quant_step_prefetch(rows, j, &codes);
    codes = _mm512_xor_si512(codes, _mm512_set1_epi8(-128));
    return _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes, q);
}

/* The words at the starts of blocks of four rows. */
CPU_TARGET_AVX512 QUANT_INLINE __m128i four_heads(const uint8_t *at, size_t stride)
{
    __m128i heads = _mm_cvtsi32_si128(quant_load32(at));
    heads = _mm_insert_epi32(heads, quant_load32(at + stride), 1);
    heads = _mm_insert_epi32(heads, quant_load32(at + 2 * stride), 2);
    return _mm_insert_epi32(heads, quant_load32(at + 3 * stride), 3);
}

CPU_TARGET_AVX512 QUANT_INLINE __m512i sums_avx512(const struct quant_step_rows *rows,
                                                   const struct quant_step_column *column,
                                                   __m512i *heads)
{
    __m512i four[2];
    __m256i head[2];
    EACH (i, 2) {
        const uint8_t *at = rows->at + 4 * (size_t)i * rows->stride;
        __m512i sum[4];
        EACH (j, 4) sum[j] = row_sums(rows, 4 * i + j, quant_step_q(column, (size_t)(4 * i + j)));
        four[i] = quant_fold_avx512(form.narrow, sum);
        head[i] =
            _mm256_set_m128i(four_heads(at + (rows->two ? sizeof(struct block) : 0), rows->stride),
                             four_heads(at, rows->stride));
    }
    *heads = quant_join_avx512(head[0], head[1]);
    return _mm512_add_epi32(_mm512_shuffle_i64x2(four[0], four[1], 0x88),
                            _mm512_shuffle_i64x2(four[0], four[1], 0xdd));
}

CPU_TARGET_AVX512 static void gemv_avx512(int64_t k, const struct quant_rows *rows,
                                          const struct quant_act *a, float *out)
{
    quant_gemv32_avx512(form, sums_avx512, k, rows, a, out);
}

CPU_TARGET_AVX512 QUANT_INLINE void panel_codes_avx512(const uint8_t *const at[16], __m512i q[8])
{
    quant_transpose_avx512(at, QS, q);
    quant_transpose_avx512(at, QS + 16, q + 4);
    for (int i = 0; i < 8; i++) q[i] = _mm512_xor_si512(q[i], _mm512_set1_epi8(-128));
}

CPU_TARGET_AVX512 static void unpack_avx512(int64_t n_blocks,
                                            const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    quant_unpack32_avx512(form, panel_codes_avx512, n_blocks, row, panel);
}

#endif

const struct quant_type quant_type_q8_0 = {
    .name = "Q8_0",
    .id = QUANT_Q8_0,
    .block_len = 32,
    .block_bytes = sizeof(struct block),
    .act = QUANT_ACT_Q8_32,
    .panel = {.block = 1, .sub_len = 32, .offset = OFFSET, .max_code = 255},
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
