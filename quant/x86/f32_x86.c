/* quant/x86/f32_x86.c: the kernels of F32 (quant/float/f32.c) for x86-64. */
#include "quant/x86/lanes_x86.h"
#include "quant/x86/types_x86.h"

enum { ELEMENT_BYTES = 4 };

CPU_TARGET_AVX2 QUANT_INLINE __m256 load_avx2(const uint8_t *w)
{
    return _mm256_loadu_ps((const float *)(const void *)w);
}

CPU_TARGET_AVX512 QUANT_INLINE __m512 load_avx512(__mmask16 live, const uint8_t *w)
{
    return _mm512_maskz_loadu_ps(live, w);
}

QUANT_LANES_GEMV(load_avx2, load_avx512, ELEMENT_BYTES)

const struct quant_kernel quant_x86_f32[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {.gemv = gemv_avx2, .reads_lists = true, .rows_per_step = QUANT_LANES_ROWS},
    [CPU_AVX512] = {.gemv = gemv_avx512,
                    .reads_lists = true,
                    .gemv_few = gemv_few_avx512,
                    .few_columns = QUANT_FEW_COLUMNS,
                    .rows_per_step = QUANT_LANES_ROWS},
};
