/* quant/mxfp4.c: MXFP4: blocks of 32 four-bit floats (E2M1) with a power of two as scale.
 *
 * value = 2^(e - 128) * book[code], the book being E2M1 doubled, so that it is whole. Source: OCP
 * Microscaling Formats (MX) Specification 1.0, with two differences that files in use rely on: code
 * 8 ("minus zero") is plain 0, and e = 255 is not NaN but the number that the formula gives. 4.25
 * bits a weight. "Codes" below, in panels too, are book[code] + 16. Called through the type table
 * only. */
#include "quant/block32.h"
#include "quant/book.h"
#include <math.h>

struct mxfp4_block {
    uint8_t e;
    uint8_t q[16]; /* byte l: element l low, element 16 + l high; bit 3 of a code is the sign */
};
_Static_assert(sizeof(struct mxfp4_block) == 17, "the size in the file");

enum { OFFSET = 16, MAX_CODE = OFFSET + 12, E_MAX = 255 };

static const int8_t mxfp4_codes[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                       16, 15, 14, 13, 12, 10, 8,  4};

/* 2^(e - 128); for e = 0 and 1 subnormal. */
static inline float mxfp4_scale(uint8_t e)
{
    return quant_float_of(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

SUPER_INLINE void mxfp4_expand(const struct mxfp4_block *w, uint8_t code[32])
{
    for (int l = 0; l < 16; l++) {
        code[l] = (uint8_t)mxfp4_codes[w->q[l] & 15];
        code[16 + l] = (uint8_t)mxfp4_codes[w->q[l] >> 4];
    }
}

SUPER_INLINE void mxfp4_decode_any(int64_t k, const void *row, float *out)
{
    const struct mxfp4_block *w = row;
    for (int64_t b = 0; b < k / 32; b++) {
        float d = mxfp4_scale(w[b].e);
        uint8_t code[32];
        mxfp4_expand(&w[b], code);
        for (int i = 0; i < 32; i++) out[32 * b + i] = d * (float)(code[i] - OFFSET);
    }
}

static void mxfp4_decode(int64_t k, const void *row, float *out)
{
    mxfp4_decode_any(k, row, out);
}

/* The nearest code of x for a scale; returns the square of the error. */
static float mxfp4_round(float x, float scale, uint8_t *code)
{
    static const float middle[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};
    float size = fabsf(x) / scale;
    *code = 0;
    for (int i = 0; i < 7; i++) *code += size > middle[i];
    float off = fabsf(x) - scale * (float)(mxfp4_codes[*code] - OFFSET);
    if (x < 0.0f && *code > 0) *code |= 8;
    return off * off;
}

/* Codes of a block for one scale; returns the squared error. */
static float mxfp4_try(const float x[32], int e, uint8_t code[32])
{
    float error = 0.0f;
    for (int i = 0; i < 32; i++) error += mxfp4_round(x[i], mxfp4_scale((uint8_t)e), &code[i]);
    return error;
}

/* The scale is the power of two that puts the largest element at 4 to 8 (the largest code is 6), or
 * its neighbour, whichever errs less. Elements that are not finite have no code: such a block
 * becomes as large as can be, beyond the range of float, so that it shows. */
static void mxfp4_encode(int64_t k, const float *in, void *row)
{
    struct mxfp4_block *out = row;
    for (int64_t b = 0; b < k / 32; b++, in += 32, out++) {
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
            if (mxfp4_try(in, e + 1, larger) < mxfp4_try(in, e, code)) {
                e++;
                memcpy(code, larger, sizeof code);
            }
        }
        out->e = (uint8_t)e;
        for (int l = 0; l < 16; l++) out->q[l] = (uint8_t)(code[l] | code[16 + l] << 4);
    }
}

static float mxfp4_dot(int64_t k, const void *row, const struct quant_act *a)
{
    const struct mxfp4_block *w = row;
    float acc = 0.0f;
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t code[32];
        mxfp4_expand(&w[b], code);
        float isum = (float)quant_sum32(code, OFFSET, a->q + 32 * b);
        acc += mxfp4_scale(w[b].e) * a->d[b] * isum;
    }
    return acc;
}

static void mxfp4_gemv(int64_t k, const void *w, size_t row_bytes, int64_t n_rows,
                       const struct quant_act *a, float *out)
{
    quant_gemv_by_dot(mxfp4_dot, k, w, row_bytes, n_rows, a, out);
}

static void mxfp4_unpack(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            const struct mxfp4_block *w = (const struct mxfp4_block *)row[r] + b;
            uint8_t code[32];
            mxfp4_expand(w, code);
            out[b].d[r] = mxfp4_scale(w->e);
            out[b].m[r] = 0.0f;
            quant_panel32_put(&out[b], r, code);
        }
    }
}

#if defined(__x86_64__)
QUANT_TARGET_AVX2 static void mxfp4_decode_avx2(int64_t k, const void *row, float *out)
{
    mxfp4_decode_any(k, row, out);
}

/* The scalar function for eight e. */
SUPER_AVX2 __m256 mxfp4_scales_of_avx2(__m256i e)
{
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    __m256i large = _mm256_cmpgt_epi32(e, _mm256_set1_epi32(1));
    return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, large));
}

/* The scale of the block at each of eight places. */
SUPER_AVX2 __m256 mxfp4_eight_scales_avx2(const uint8_t *const at[8])
{
    return mxfp4_scales_of_avx2(
        _mm256_setr_epi32(*at[0], *at[1], *at[2], *at[3], *at[4], *at[5], *at[6], *at[7]));
}

QUANT_TARGET_AVX2 static void
mxfp4_unpack_avx2(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *out = panel;
    __m256i book = book_load_avx2(mxfp4_codes);
    const uint8_t *at[QUANT_PANEL_ROWS];
    memcpy(at, row, sizeof at);
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
            __m256i t[4], code[8];
            _mm256_store_ps(out->d + r, mxfp4_eight_scales_avx2(at + r));
            _mm256_store_ps(out->m + r, _mm256_setzero_ps());
            quant_transpose_avx2(at + r, offsetof(struct mxfp4_block, q), t);
            quant_nibbles_avx2(t, code);
            for (int i = 0; i < 8; i++) code[i] = _mm256_shuffle_epi8(book, code[i]);
            quant_put_avx2(out, r, code);
        }
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += sizeof(struct mxfp4_block);
    }
}

/* 4 * 24 * 127 fits 16 bits. */
QUANT_TARGET_AVX2 QUANT_INLINE __m256i mxfp4_sums_avx2(const uint8_t *even, const uint8_t *odd,
                                                       __m256i q_low, __m256i q_high)
{
    __m256i book = book_load_avx2(mxfp4_codes), q = quant_pair_avx2(even + 1, odd + 1);
    __m256i low = _mm256_shuffle_epi8(book, super_bits(q, 0, 15));
    __m256i high = _mm256_shuffle_epi8(book, super_bits(q, 4, 15));
    low = _mm256_maddubs_epi16(low, q_low);
    high = _mm256_maddubs_epi16(high, q_high);
    return _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1));
}

/* Of the words that begin the blocks, e is the lowest byte. */
QUANT_TARGET_AVX2 QUANT_INLINE void mxfp4_scales_avx2(const uint8_t *block, size_t row_bytes,
                                                      __m256 *d, __m256 *m)
{
    const uint8_t *at[8];
    for (int i = 0; i < 8; i++) at[i] = block + (size_t)i * row_bytes;
    __m256i words = quant_row_dwords_avx2(at, 0);
    *d = mxfp4_scales_of_avx2(_mm256_and_si256(words, _mm256_set1_epi32(0xff)));
    *m = _mm256_setzero_ps();
}

QUANT_TARGET_AVX2 static void mxfp4_gemv_avx2(int64_t k, const void *w, size_t row_bytes,
                                              int64_t n_rows, const struct quant_act *a, float *out)
{
    const struct quant_gemv_form form = {
        .block_bytes = sizeof(struct mxfp4_block), .offset = OFFSET, .narrow = 1};
    quant_gemv(form, mxfp4_sums_avx2, mxfp4_scales_avx2, k, w, row_bytes, n_rows, a, out);
}

QUANT_TARGET_AVX512 QUANT_INLINE __m256i mxfp4_sums_avx512(const uint8_t *even, const uint8_t *odd,
                                                           __m256i q_low, __m256i q_high)
{
    __m256i book = book_load_avx2(mxfp4_codes), q = quant_pair_avx2(even + 1, odd + 1);
    __m256i low = _mm256_shuffle_epi8(book, super_bits(q, 0, 15));
    __m256i high = _mm256_shuffle_epi8(book, super_bits(q, 4, 15));
    __m256i sum = _mm256_dpbusd_epi32(_mm256_setzero_si256(), low, q_low);
    return _mm256_dpbusd_epi32(sum, high, q_high);
}

QUANT_TARGET_AVX512 static void mxfp4_gemv_avx512(int64_t k, const void *w, size_t row_bytes,
                                                  int64_t n_rows, const struct quant_act *a,
                                                  float *out)
{
    const struct quant_gemv_form form = {
        .block_bytes = sizeof(struct mxfp4_block), .offset = OFFSET, .narrow = 1};
    quant_gemv(form, mxfp4_sums_avx512, mxfp4_scales_avx2, k, w, row_bytes, n_rows, a, out);
}
#endif

const struct quant_type quant_type_mxfp4 = {
    .name = "MXFP4",
    .id = QUANT_MXFP4,
    .block_len = 32,
    .block_bytes = sizeof(struct mxfp4_block),
    .act = QUANT_ACT_Q8_32,
    .panel = {.block = 1, .sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    .encode = mxfp4_encode,
    .dot = mxfp4_dot,
    .kernel =
        {
            [QUANT_SCALAR] = {.decode = mxfp4_decode, .unpack = mxfp4_unpack, .gemv = mxfp4_gemv},
#if defined(__x86_64__)
            [QUANT_AVX2] = {.decode = mxfp4_decode_avx2,
                            .unpack = mxfp4_unpack_avx2,
                            .gemv = mxfp4_gemv_avx2},
            [QUANT_AVX512] = {.gemv = mxfp4_gemv_avx512},
#endif
        },
};
