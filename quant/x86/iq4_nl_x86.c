/* quant/x86/iq4_nl_x86.c: the kernels of IQ4_NL (quant/block32/iq4_nl.h) for x86-64. */
#include "quant/block32/iq4_nl.h"
#include "quant/x86/block32_kernels_x86.h"

QUANT_BLOCK32_X86(iq4_nl)

const struct quant_kernel quant_x86_iq4_nl[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {QUANT_BLOCK32_AVX2(iq4_nl)},
    [CPU_AVX512] = {QUANT_BLOCK32_AVX512(iq4_nl, 3)},
};
