/* quant/x86/q4_0_x86.c: the kernels of Q4_0 (quant/block32/q4_0.h) for x86-64. */
#include "quant/block32/q4_0.h"
#include "quant/x86/block32_kernels_x86.h"

QUANT_BLOCK32_X86(q4_0)

const struct quant_kernel quant_x86_q4_0[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {QUANT_BLOCK32_AVX2(q4_0)},
    [CPU_AVX512] = {QUANT_BLOCK32_AVX512(q4_0, 3)},
};
