/* quant/x86/types_x86.h: private to quant/x86/: the kernels of types and activation forms for
 * x86-64, by level. Each array is in the file of its type, q4_k_x86.c, or family,
 * grid_types_x86.c; a row without kernels is that of a level that has its parent's. */
#pragma once

#include "quant/types.h"

/* clang-format off */
/* The types with kernels: T(part of the id, part of the names). */
#define QUANT_X86_TYPES(T) \
    T(F32, f32) T(F16, f16) T(BF16, bf16) T(NVFP4, nvfp4) T(Q4_0, q4_0) T(Q4_1, q4_1) \
    T(Q5_0, q5_0) T(Q5_1, q5_1) T(Q6_0, q6_0) T(Q8_0, q8_0) T(Q8_1, q8_1) T(IQ4_NL, iq4_nl) \
    T(MXFP4, mxfp4) T(Q1_0, q1_0) T(Q2_0, q2_0) T(Q2_K, q2_k) T(Q3_K, q3_k) T(Q4_K, q4_k) T(Q5_K, q5_k) \
    T(Q6_K, q6_k) T(Q8_K, q8_k) T(IQ1_M, iq1_m) T(IQ1_S, iq1_s) T(IQ2_S, iq2_s) T(IQ2_XS, iq2_xs) \
    T(IQ2_XXS, iq2_xxs) T(IQ3_S, iq3_s) T(IQ3_XXS, iq3_xxs) T(IQ4_XS, iq4_xs) T(TQ1_0, tq1_0) \
    T(TQ2_0, tq2_0) T(IQ2_K, iq2_k) T(IQ3_K, iq3_k) T(IQ4_K, iq4_k) T(IQ5_K, iq5_k) \
    T(IQ6_K, iq6_k) T(IQ2_KS, iq2_ks) T(IQ3_KS, iq3_ks) T(IQ4_KS, iq4_ks) T(IQ5_KS, iq5_ks) \
    T(IQ4_KSS, iq4_kss) T(IQ2_KL, iq2_kl) T(IQ1_KT, iq1_kt) T(IQ2_KT, iq2_kt) T(IQ3_KT, iq3_kt) \
    T(IQ4_KT, iq4_kt)
/* clang-format on */

#define QUANT_X86_DECLARE(ID, NAME)                                                                \
    extern const struct quant_kernel quant_x86_##NAME[CPU_LEVEL_COUNT];
QUANT_X86_TYPES(QUANT_X86_DECLARE)

extern const struct quant_act_kernel quant_x86_act[CPU_LEVEL_COUNT];
void quant_x86_columns_fill(struct quant_kernels *kernels);  /* of AVX2 */
void quant_x86_add_rows_fill(struct quant_kernels *kernels); /* of AVX-512 */
extern const struct quant_search quant_search_avx2, quant_search_avx512;
