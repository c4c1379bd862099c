/* quant/x86/f16_x86.c: the kernels of F16 (quant/float/f16.c) for x86-64. */
#include "quant/x86/lanes_x86.h"
#include "quant/x86/types_x86.h"

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
    quant_type_f16.scalar.decode(i, n - i, w, out + i);
}

CPU_TARGET_AVX2 static void encode_avx2(const struct quant_search *search, int64_t k,
                                        const float *in, const float *importance, void *row)
{
    int64_t i = 0;
    for (; i + 8 <= k; i += 8)
        _mm_storeu_si128((__m128i *)((uint8_t *)row + 2 * i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
    quant_type_f16.scalar.encode(search, k - i, in + i, importance, (uint8_t *)row + 2 * i);
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

const struct quant_kernel quant_x86_f16[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {.decode = decode_avx2,
                  .encode = encode_avx2,
                  .gemv = gemv_avx2,
                  .reads_lists = true,
                  .rows_per_step = QUANT_LANES_ROWS},
    [CPU_AVX512] = {.decode = decode_avx512,
                    .encode = encode_avx512,
                    .gemv = gemv_avx512,
                    .reads_lists = true,
                    .gemv_few = gemv_few_avx512,
                    .few_columns = QUANT_FEW_COLUMNS,
                    .rows_per_step = QUANT_LANES_ROWS},
};
