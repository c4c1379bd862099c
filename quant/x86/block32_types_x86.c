/* quant/x86/block32_types_x86.c: the kernels of the types with blocks of 32 elements
 * (quant/block32/block32_types.c) for x86-64. */
#include "quant/block32/iq4_nl.h"
#include "quant/block32/q4_0.h"
#include "quant/block32/q4_1.h"
#include "quant/block32/q5_0.h"
#include "quant/block32/q5_1.h"
#include "quant/block32/q6_0.h"
#include "quant/block32/q8_0.h"
#include "quant/block32/q8_1.h"
#include "quant/x86/block32_kernels_x86.h"

/* FEW: few_columns of AVX-512; ENCODE: of each level, NULL: the one of the level below. */
#define BLOCK32_TYPE(NAME, FEW, ENCODE_AVX2, ENCODE_AVX512)                                        \
    QUANT_BLOCK32_X86(NAME)                                                                        \
    const struct quant_kernel quant_x86_##NAME[CPU_LEVEL_COUNT] = {                                \
        [CPU_AVX2] = {QUANT_BLOCK32_AVX2(NAME), .encode = (ENCODE_AVX2)},                          \
        [CPU_AVX512] = {QUANT_BLOCK32_AVX512(NAME, FEW), .encode = (ENCODE_AVX512)},               \
    };

BLOCK32_TYPE(q4_0, 3, NULL, NULL)
BLOCK32_TYPE(q4_1, 2, NULL, NULL)
BLOCK32_TYPE(q5_0, 3, NULL, NULL)
BLOCK32_TYPE(q5_1, 2, NULL, NULL)
BLOCK32_TYPE(q6_0, 3, NULL, NULL)
BLOCK32_TYPE(iq4_nl, 3, NULL, NULL)
QUANT_ENCODE_AT(q8_0, q8_0_encode_avx2, CPU_TARGET_AVX2)
QUANT_ENCODE_AT(q8_0, q8_0_encode_avx512, CPU_TARGET_AVX512)
BLOCK32_TYPE(q8_0, 4, q8_0_encode_avx2, q8_0_encode_avx512)
QUANT_ENCODE_AT(q8_1, q8_1_encode_avx2, CPU_TARGET_AVX2)
QUANT_ENCODE_AT(q8_1, q8_1_encode_avx512, CPU_TARGET_AVX512)
BLOCK32_TYPE(q8_1, 4, q8_1_encode_avx2, q8_1_encode_avx512)
