/* quant/x86/vector_fit_avx2.c: the search of quant/encode/vector_fit.h with AVX2; the same bits as
 * vector_fit.c. */
#define FIT_TARGET CPU_TARGET_AVX2
#define FIT_BYTES  32
#include "quant/encode/vector_lanes.inc"
#include <immintrin.h>

FIT_INLINE void widen(const int8_t *value, lanes *out)
{
    for (int h = 0; h < 2; h++)
        ((__m256 *)out)[h] = _mm256_cvtepi32_ps(
            _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(value + 8 * h))));
}

VECTOR_SEARCH(quant_vector_search_avx2)
