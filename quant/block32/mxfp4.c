/* quant/block32/mxfp4.c: MXFP4: blocks of 32 four-bit floats (E2M1) with a power of two as scale.
 *
 * value = 2^(e - 128) * book[code], the book being E2M1 doubled, so that it is whole. Source: OCP
 * Microscaling Formats (MX) Specification 1.0, with two differences that files in use rely on: code
 * 8 ("minus zero") is plain 0, and e = 255 is not NaN but the number that the formula gives. 4.25
 * bits a weight. "Codes" below, in panels too, are book[code] + 16. Called through the type table
 * only. */
#include "quant/block32/block32_x86.h"
#include "quant/codebook.h"
#include <math.h>

struct block {
    uint8_t e;
    uint8_t q[16]; /* byte l: element l low, element 16 + l high; bit 3 of a code is the sign */
};
_Static_assert(sizeof(struct block) == 17, "MXFP4 block");

enum { OFFSET = 16, MAX_CODE = OFFSET + 12, E_MAX = 255, Q = offsetof(struct block, q) };

static const struct quant_form32 form = {
    .block_bytes = sizeof(struct block), .offset = OFFSET, .narrow = 1};

static const int8_t book[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

/* 2^(e - 128); for e = 0 and 1 subnormal. */
static inline float scale_of(uint8_t e)
{
    return quant_float_of(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

QUANT_INLINE void read_block(const uint8_t *at, struct quant_block32 *block)
{
    block->d = scale_of(*at);
    quant_split_nibbles(at + Q, block->code);
    for (int i = 0; i < 32; i++) block->code[i] = (uint8_t)book[block->code[i]];
}

/* The nearest code of x for a scale; returns the square of the error. */
static float round_to_code(float x, float scale, uint8_t *code)
{
    static const float middle[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};
    float size = fabsf(x) / scale;
    *code = 0;
    for (int i = 0; i < 7; i++) *code += size > middle[i];
    float off = fabsf(x) - scale * (float)(book[*code] - OFFSET);
    if (x < 0.0f && *code > 0) *code |= 8;
    return off * off;
}

/* Codes of a block for one scale; returns the squared error. */
static float try_scale(const float x[32], int e, uint8_t code[32])
{
    float error = 0.0f;
    for (int i = 0; i < 32; i++) error += round_to_code(x[i], scale_of((uint8_t)e), &code[i]);
    return error;
}

/* The scale is the power of two that puts the largest element at 4 to 8 (the largest code is 6), or
 * its neighbour, whichever errs less. Elements that are not finite have no code: such a block
 * becomes as large as can be, beyond the range of float, so that it shows. */
static void write_block(const float in[32], uint8_t *at)
{
    struct block block;
    uint8_t code[32] = {0}, larger[32];
    float largest = 0.0f;
    bool finite = true;
    for (int i = 0; i < 32; i++) {
        finite = finite && isfinite(in[i]);
        if (fabsf(in[i]) > largest) largest = fabsf(in[i]);
    }
    int exponent, e = 0;
    frexpf(largest, &exponent);
    if (!finite) {
        e = E_MAX;
        memset(code, 7, sizeof code);
    } else if (largest > 0.0f) {
        e = exponent + 124 < 0 ? 0 : exponent + 124;
        if (try_scale(in, e + 1, larger) < try_scale(in, e, code)) {
            e++;
            memcpy(code, larger, sizeof code);
        }
    }
    block.e = (uint8_t)e;
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

CPU_TARGET_AVX2 static void decode_avx2(int64_t k, const void *row, float *out)
{
    quant_decode32(form, read_block, k, row, out);
}

/* The scalar function for eight e. */
SUPER_AVX2 __m256 scales_of_avx2(__m256i e)
{
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    __m256i large = _mm256_cmpgt_epi32(e, _mm256_set1_epi32(1));
    return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, large));
}

/* Of the words that begin the blocks, e is the lowest byte. */
CPU_TARGET_AVX2 QUANT_INLINE void scales_avx2(const uint8_t *const row[8], __m256 *d, __m256 *m)
{
    __m256i words = quant_row_dwords_avx2(row, 0);
    *d = scales_of_avx2(_mm256_and_si256(words, _mm256_set1_epi32(0xff)));
    *m = _mm256_setzero_ps();
}

CPU_TARGET_AVX2 QUANT_INLINE void panel_codes_avx2(const uint8_t *const at[8], __m256i q[8])
{
    __m256i t[4];
    quant_transpose_avx2(at, Q, t);
    quant_nibbles_avx2(t, q);
    for (int i = 0; i < 8; i++) q[i] = _mm256_shuffle_epi8(book_load_avx2(book), q[i]);
}

CPU_TARGET_AVX2 static void unpack_avx2(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                        void *panel)
{
    quant_unpack32_avx2(form, scales_avx2, panel_codes_avx2, n_blocks, row, panel);
}

/* 4 * 24 * 127 fits 16 bits. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i sums_avx2(const uint8_t *even, const uint8_t *odd,
                                               __m256i q_low, __m256i q_high)
{
    __m256i values = book_load_avx2(book), q = quant_pair_avx2(even + Q, odd + Q);
    __m256i low = _mm256_shuffle_epi8(values, super_bits(q, 0, 15));
    __m256i high = _mm256_shuffle_epi8(values, super_bits(q, 4, 15));
    low = _mm256_maddubs_epi16(low, q_low);
    high = _mm256_maddubs_epi16(high, q_high);
    return _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1));
}

CPU_TARGET_AVX2 static void gemv_avx2(int64_t k, const struct quant_rows *rows,
                                      const struct quant_act *a, float *out)
{
    quant_gemv32(form, sums_avx2, scales_avx2, k, rows, a, out);
}

CPU_TARGET_AVX512 QUANT_INLINE __m256i sums_avx512(const uint8_t *even, const uint8_t *odd,
                                                   __m256i q_low, __m256i q_high)
{
    __m256i values = book_load_avx2(book), q = quant_pair_avx2(even + Q, odd + Q);
    __m256i low = _mm256_shuffle_epi8(values, super_bits(q, 0, 15));
    __m256i high = _mm256_shuffle_epi8(values, super_bits(q, 4, 15));
    __m256i sum = _mm256_dpbusd_epi32(_mm256_setzero_si256(), low, q_low);
    return _mm256_dpbusd_epi32(sum, high, q_high);
}

CPU_TARGET_AVX512 static void gemv_avx512(int64_t k, const struct quant_rows *rows,
                                          const struct quant_act *a, float *out)
{
    quant_gemv32(form, sums_avx512, scales_avx2, k, rows, a, out);
}

#endif

const struct quant_type quant_type_mxfp4 = {
    .name = "MXFP4",
    .id = QUANT_MXFP4,
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
