/* quant/x86/q5_1_x86.c: the kernels of Q5_1 (quant/block32/q5_1.h) for x86-64. */
#include "quant/block32/q5_1.h"
#include "quant/x86/block32_kernels_x86.h"

QUANT_BLOCK32_X86(q5_1)

const struct quant_kernel quant_x86_q5_1[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {QUANT_BLOCK32_AVX2(q5_1)},
    [CPU_AVX512] = {QUANT_BLOCK32_AVX512(q5_1, 2)},
};
