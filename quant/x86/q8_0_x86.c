/* quant/x86/q8_0_x86.c: the kernels of Q8_0 (quant/block32/q8_0.h) for x86-64. */
#include "quant/block32/q8_0.h"
#include "quant/x86/block32_kernels_x86.h"

QUANT_BLOCK32_X86(q8_0)
QUANT_ENCODE_AT(q8_0, q8_0_encode_avx2, CPU_TARGET_AVX2)
QUANT_ENCODE_AT(q8_0, q8_0_encode_avx512, CPU_TARGET_AVX512)

const struct quant_kernel quant_x86_q8_0[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {QUANT_BLOCK32_AVX2(q8_0), .encode = q8_0_encode_avx2},
    [CPU_AVX512] = {QUANT_BLOCK32_AVX512(q8_0, 4), .encode = q8_0_encode_avx512},
};
