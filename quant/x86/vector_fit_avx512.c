/* quant/x86/vector_fit_avx512.c: the search of quant/encode/vector_fit.h with AVX-512; the same
 * bits as vector_fit.c. */
#define FIT_TARGET CPU_TARGET_AVX512
#define FIT_BYTES  64
#include "quant/encode/vector_lanes.inc"
#include <immintrin.h>

FIT_INLINE void widen(const int8_t *value, lanes *out)
{
    *(__m512 *)out =
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)value)));
}

VECTOR_SEARCH(quant_vector_search_avx512)
