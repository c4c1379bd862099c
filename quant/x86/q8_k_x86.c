/* quant/x86/q8_k_x86.c: the kernels of Q8_K (quant/super/q8_k.h) for x86-64. */
#include "quant/super/q8_k.h"
#include "quant/x86/super_x86.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(q8_k)

const struct quant_kernel quant_x86_q8_k[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {.decode = q8_k_decode_avx2}};
