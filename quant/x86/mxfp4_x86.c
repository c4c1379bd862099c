/* quant/x86/mxfp4_x86.c: the kernels of MXFP4 (quant/block32/mxfp4.h) for x86-64. */
#include "quant/block32/mxfp4.h"
#include "quant/x86/block32_kernels_x86.h"

QUANT_BLOCK32_X86(mxfp4)
QUANT_ENCODE_AT(mxfp4, mxfp4_encode_avx2, CPU_TARGET_AVX2)
QUANT_ENCODE_AT(mxfp4, mxfp4_encode_avx512, CPU_TARGET_AVX512)

const struct quant_kernel quant_x86_mxfp4[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {QUANT_BLOCK32_AVX2(mxfp4), .encode = mxfp4_encode_avx2},
    [CPU_AVX512] = {QUANT_BLOCK32_AVX512(mxfp4, 1), .encode = mxfp4_encode_avx512},
};
