/* quant/x86/q5_0_x86.c: the kernels of Q5_0 (quant/block32/q5_0.h) for x86-64. */
#include "quant/block32/q5_0.h"
#include "quant/x86/block32_kernels_x86.h"

QUANT_BLOCK32_X86(q5_0)

const struct quant_kernel quant_x86_q5_0[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {QUANT_BLOCK32_AVX2(q5_0)},
    [CPU_AVX512] = {QUANT_BLOCK32_AVX512(q5_0, 3)},
};
