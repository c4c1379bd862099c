/* quant/float/f16.c: F16: IEEE binary16, little-endian, one element per block.
 *
 * Elements are widened exactly and multiplied as F32 (sums in 16 lanes, quant/quant.h). */
#include "quant/float/lanes.h"
#include "quant/half.h"
#include <math.h>

static uint16_t element(const void *row, int64_t i)
{
    uint16_t h;
    memcpy(&h, (const char *)row + (size_t)i * sizeof h, sizeof h);
    return h;
}

static void decode_scalar(int64_t first, int64_t n, const void *row, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = quant_half_to_float(element(row, first + i));
}

static void encode(const struct quant_search *search, int64_t k, const float *in,
                   const float *importance, void *row)
{
    (void)search;
    (void)importance;
    for (int64_t i = 0; i < k; i++) {
        uint16_t h = quant_float_to_half(in[i]);
        memcpy((char *)row + (size_t)i * sizeof h, &h, sizeof h);
    }
}

static float dot(int64_t k, const void *row, const struct quant_act *a)
{
    float lane[16] = {0};
    for (int64_t i = 0; i < k; i++)
        lane[i % 16] = fmaf(quant_half_to_float(element(row, i)), a->f32[i], lane[i % 16]);
    return quant_lanes_tree(lane);
}

static void gemv_scalar(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                        float *out)
{
    quant_gemv_by_dot(dot, k, rows, a, out);
}

#if defined(__x86_64__)

enum { ELEMENT_BYTES = 2 };

CPU_TARGET_AVX2 QUANT_INLINE __m256 load_avx2(const uint8_t *w)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)w));
}

CPU_TARGET_AVX2 static void decode_avx2(int64_t first, int64_t n, const void *row, float *out)
{
    const uint8_t *w = (const uint8_t *)row + 2 * first;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, load_avx2(w + 2 * i));
    decode_scalar(i, n - i, w, out + i);
}

CPU_TARGET_AVX2 static void encode_avx2(const struct quant_search *search, int64_t k,
                                        const float *in, const float *importance, void *row)
{
    int64_t i = 0;
    for (; i + 8 <= k; i += 8)
        _mm_storeu_si128((__m128i *)((uint8_t *)row + 2 * i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
    encode(search, k - i, in + i, importance, (uint8_t *)row + 2 * i);
}

CPU_TARGET_AVX512 static void decode_avx512(int64_t first, int64_t n, const void *row, float *out)
{
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 live = n - i >= 16 ? 0xffff : (__mmask16)((1u << (n - i)) - 1);
        __m256i w = _mm256_maskz_loadu_epi16(live, (const uint8_t *)row + 2 * (first + i));
        _mm512_mask_storeu_ps(out + i, live, _mm512_cvtph_ps(w));
    }
}

CPU_TARGET_AVX512 static void encode_avx512(const struct quant_search *search, int64_t k,
                                            const float *in, const float *importance, void *row)
{
    (void)search;
    (void)importance;
    for (int64_t i = 0; i < k; i += 16) {
        __mmask16 live = k - i >= 16 ? 0xffff : (__mmask16)((1u << (k - i)) - 1);
        __m512 x = _mm512_maskz_loadu_ps(live, in + i);
        _mm256_mask_storeu_epi16((uint8_t *)row + 2 * i, live,
                                 _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    }
}

CPU_TARGET_AVX512 QUANT_INLINE __m512 load_avx512(__mmask16 live, const uint8_t *w)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(live, w));
}

QUANT_LANES_GEMV(load_avx2, load_avx512, ELEMENT_BYTES)

#endif

const struct quant_type quant_type_f16 = {
    .name = "F16",
    .id = QUANT_F16,
    .block_len = 1,
    .block_bytes = 2,
    .act = &quant_act_f32,
    .dot = dot,
    .kernel =
        {
            [CPU_SCALAR] = {.decode = decode_scalar, .encode = encode, .gemv = gemv_scalar},
#if defined(__x86_64__)
            [CPU_AVX2] = {.decode = decode_avx2,
                          .encode = encode_avx2,
                          .gemv = gemv_avx2,
                          .rows_per_step = QUANT_LANES_ROWS},
            [CPU_AVX512] = {.decode = decode_avx512,
                            .encode = encode_avx512,
                            .gemv = gemv_avx512,
                            .gemv_few = gemv_few_avx512,
                            .few_columns = QUANT_FEW_COLUMNS,
                            .rows_per_step = QUANT_LANES_ROWS},
#endif
        },
};
