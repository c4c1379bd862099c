/* quant/x86/block32_kernels_x86.h: private to quant/: generates the x86 kernels of a type with
 * blocks of 32 from its struct quant_form32.
 *
 * QUANT_BLOCK32_X86(q4_0) defines these functions from q4_0_form:
 *
 *     AVX2       q4_0_decode_avx2    q4_0_gemv_avx2       q4_0_unpack_avx2
 *     AVX-512                        q4_0_gemv_avx512     q4_0_unpack_avx512
 *                                    q4_0_gemv_few_avx512
 */
#pragma once

#include "quant/x86/block32_single_row.h"
#include "quant/x86/types_x86.h"

#define QUANT_BLOCK32_X86(NAME)                                                                    \
    QUANT_DECODE_AT(NAME##_decode_avx2, CPU_TARGET_AVX2,                                           \
                    quant_decode32_avx2(NAME##_form, first, n, row, out))                          \
    QUANT_GEMV_AT(NAME##_gemv_listed_avx2, CPU_TARGET_AVX2 __attribute__((noinline)),              \
                  quant_gemv32_avx2(NAME##_form, true, k, rows, a, out))                           \
    CPU_TARGET_AVX2 static void NAME##_gemv_avx2(int64_t k, const struct quant_rows *rows,         \
                                                 const struct quant_act *a, float *out)            \
    {                                                                                              \
        if (rows->order == QUANT_ROWS_LISTED)                                                      \
            NAME##_gemv_listed_avx2(k, rows, a, out);                                              \
        else                                                                                       \
            quant_gemv32_avx2(NAME##_form, false, k, rows, a, out);                                \
    }                                                                                              \
    QUANT_UNPACK_AT(NAME##_unpack_avx2, CPU_TARGET_AVX2,                                           \
                    quant_unpack32_avx2(NAME##_form, first, n_blocks, row, panel))                 \
    QUANT_GEMV_AT(NAME##_gemv_listed_avx512, CPU_TARGET_AVX512 __attribute__((noinline)),          \
                  quant_gemv32_avx512(NAME##_form, true, k, rows, a, out))                         \
    CPU_TARGET_AVX512 static void NAME##_gemv_avx512(int64_t k, const struct quant_rows *rows,     \
                                                     const struct quant_act *a, float *out)        \
    {                                                                                              \
        if (rows->order == QUANT_ROWS_LISTED)                                                      \
            NAME##_gemv_listed_avx512(k, rows, a, out);                                            \
        else                                                                                       \
            quant_gemv32_avx512(NAME##_form, false, k, rows, a, out);                              \
    }                                                                                              \
    CPU_TARGET_AVX512 static void NAME##_gemv_few_avx512(int64_t k, const struct quant_rows *rows, \
                                                         int n_columns, const struct quant_act *a, \
                                                         float *const *out)                        \
    {                                                                                              \
        quant_gemv32_few_avx512(NAME##_form, NAME##_gemv_avx512, k, rows, n_columns, a, out);      \
    }                                                                                              \
    QUANT_UNPACK_AT(NAME##_unpack_avx512, CPU_TARGET_AVX512,                                       \
                    quant_unpack32_avx512(NAME##_form, first, n_blocks, row, panel))

/* Members of the rows of levels; FEW: few_columns. */
#define QUANT_BLOCK32_AVX2(NAME)                                                                   \
    .decode = NAME##_decode_avx2, .unpack = NAME##_unpack_avx2, .panel = &NAME##_panel,            \
    .gemv = NAME##_gemv_avx2, .reads_lists = true, .rows_per_step = QUANT_GEMV_ROWS
#define QUANT_BLOCK32_AVX512(NAME, FEW)                                                            \
    .unpack = NAME##_unpack_avx512, .panel = &NAME##_panel, .gemv = NAME##_gemv_avx512,            \
    .gemv_few = NAME##_gemv_few_avx512, .few_columns = (FEW), .reads_lists = true,                 \
    .rows_per_step = QUANT_GEMV_ROWS
