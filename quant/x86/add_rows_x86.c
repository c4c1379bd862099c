/* quant/x86/add_rows_x86.c: sums of weighted rows (quant_kernel.add_rows) for AVX-512: several rows
 * are added to 32 sums in registers. */
#include "quant/stream.h"
#include "quant/x86/types_x86.h"
#include <immintrin.h>

enum { BLOCK = 32, ROWS = 4 };

CPU_TARGET_AVX512 QUANT_INLINE __m512 scale_avx512(const uint8_t *w)
{
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)quant_load16(w)));
}

/* A permutation reads the lowest four bits of an index: a code. */
CPU_TARGET_AVX512 QUANT_INLINE void q4_0_block(const uint8_t *w, __m512 v[2])
{
    const __m512 codes = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m512 table = _mm512_mul_ps(codes, scale_avx512(w));
    const __m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(w + 2)));
    v[0] = _mm512_permutexvar_ps(q, table);
    v[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(q, 4), table);
}

CPU_TARGET_AVX512 QUANT_INLINE __m512 integers_avx512(const uint8_t *q)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)q)));
}

CPU_TARGET_AVX512 QUANT_INLINE void q8_0_block(const uint8_t *w, __m512 v[2])
{
    const __m512 d = scale_avx512(w);
    v[0] = _mm512_mul_ps(integers_avx512(w + 2), d);
    v[1] = _mm512_mul_ps(integers_avx512(w + 18), d);
}

CPU_TARGET_AVX512 QUANT_INLINE void f16_block(const uint8_t *w, __m512 v[2])
{
    v[0] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)w));
    v[1] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(w + 32)));
}

/* NAME_add_rows: blocks of `bytes` bytes, which NAME_block decodes. Prefetches are distributed over
 * the arithmetic, because the processor drops most of many at once. */
#define ADD_ROWS(NAME, bytes)                                                                      \
    CPU_TARGET_AVX512 QUANT_INLINE void NAME##_some(int64_t n, const void *const *row,             \
                                                    const void *const *next, int n_rows,           \
                                                    const float *x, float *sum)                    \
    {                                                                                              \
        for (int64_t i = 0, at = 0; i < n; i += BLOCK, at += (bytes)) {                            \
            __m512 s0 = _mm512_loadu_ps(sum + i), s1 = _mm512_loadu_ps(sum + i + 16), v[2];        \
            for (int j = 0; j < n_rows; j++) {                                                     \
                quant_prefetch((const char *)next[j] + at, bytes);                                 \
                NAME##_block((const uint8_t *)row[j] + at, v);                                     \
                s0 = _mm512_fmadd_ps(v[0], _mm512_set1_ps(x[j]), s0);                              \
                s1 = _mm512_fmadd_ps(v[1], _mm512_set1_ps(x[j]), s1);                              \
            }                                                                                      \
            _mm512_storeu_ps(sum + i, s0);                                                         \
            _mm512_storeu_ps(sum + i + 16, s1);                                                    \
        }                                                                                          \
    }                                                                                              \
    CPU_TARGET_AVX512 static void NAME##_add_rows(int64_t n, const void *const *row,               \
                                                  const void *const *next, int n_rows,             \
                                                  const float *x, float *sum)                      \
    {                                                                                              \
        int j = 0;                                                                                 \
        for (; j + ROWS <= n_rows; j += ROWS) NAME##_some(n, row + j, next + j, ROWS, x + j, sum); \
        for (; j < n_rows; j++) NAME##_some(n, row + j, next + j, 1, x + j, sum);                  \
    }
ADD_ROWS(q4_0, 18)
ADD_ROWS(q8_0, 34)
ADD_ROWS(f16, 64)

void quant_x86_add_rows_fill(struct quant_kernels *kernels)
{
    kernels->type[QUANT_Q4_0].add_rows = q4_0_add_rows;
    kernels->type[QUANT_Q8_0].add_rows = q8_0_add_rows;
    kernels->type[QUANT_F16].add_rows = f16_add_rows;
}
