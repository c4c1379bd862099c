/* quant/block32/block32_kernels.h: private to quant/: generates the kernels of a type with blocks
 * of 32 from its struct quant_form32.
 *
 * QUANT_BLOCK32_KERNELS(q4_0) defines these functions from q4_0_form, and
 * QUANT_BLOCK32_MEMBERS(q4_0, 3) puts them into the type's row (the same for q4_1, q5_0, q5_1,
 * q8_0, q8_1, iq4_nl and mxfp4):
 *
 *     scalar     q4_0_decode         q4_0_encode   q4_0_dot   q4_0_gemv   q4_0_unpack
 *     AVX2       q4_0_decode_avx2                             q4_0_gemv_avx2     q4_0_unpack_avx2
 *     AVX-512                                                 q4_0_gemv_avx512   q4_0_unpack_avx512
 *                                                             q4_0_gemv_few_avx512
 */
#ifndef QUANT_BLOCK32_BLOCK32_KERNELS_H
#define QUANT_BLOCK32_BLOCK32_KERNELS_H

#include "quant/block32/block32_single_row.h"

#define QUANT_BLOCK32_SCALAR(NAME)                                                                 \
    static void NAME##_decode(int64_t first, int64_t n, const void *row, float *out)               \
    {                                                                                              \
        quant_decode32(NAME##_form, first, n, row, out);                                           \
    }                                                                                              \
    static float NAME##_dot(int64_t k, const void *row, const struct quant_act *a)                 \
    {                                                                                              \
        return quant_dot32(NAME##_form, k, row, a);                                                \
    }                                                                                              \
    QUANT_GEMV_BY_DOT(NAME)                                                                        \
    static void NAME##_unpack(int64_t first, int64_t n_blocks,                                     \
                              const void *const row[QUANT_PANEL_ROWS], void *panel)                \
    {                                                                                              \
        quant_unpack32(NAME##_form, first, n_blocks, row, panel);                                  \
    }

/* Defines NAME_encode by the search of the form. */
#define QUANT_BLOCK32_ENCODE(NAME)                                                                 \
    static void NAME##_encode(const struct quant_search *search, int64_t k, const float *in,       \
                              const float *importance, void *row)                                  \
    {                                                                                              \
        quant_encode32(search->fit, NAME##_form, k, in, importance, row);                          \
    }
/* Defines NAME_encode_at from NAME_write(in, importance, block). */
#define QUANT_BLOCK32_ENCODE_EACH(NAME)                                                            \
    QUANT_INLINE void NAME##_encode_at(int64_t k, const float *in, const float *importance,        \
                                       void *row)                                                  \
    {                                                                                              \
        uint8_t *at = row;                                                                         \
        for (int64_t b = 0; b < k / 32; b++, at += NAME##_form.block_bytes)                        \
            NAME##_write(in + 32 * b, importance ? importance + 32 * b : NULL, at);                \
    }

#if defined(__x86_64__)

#define QUANT_BLOCK32_KERNELS(NAME)                                                                \
    QUANT_BLOCK32_SCALAR(NAME)                                                                     \
    CPU_TARGET_AVX2 static void NAME##_decode_avx2(int64_t first, int64_t n, const void *row,      \
                                                   float *out)                                     \
    {                                                                                              \
        quant_decode32_avx2(NAME##_form, first, n, row, out);                                      \
    }                                                                                              \
    CPU_TARGET_AVX2 static void NAME##_gemv_avx2(int64_t k, const struct quant_rows *rows,         \
                                                 const struct quant_act *a, float *out)            \
    {                                                                                              \
        quant_gemv32_avx2(NAME##_form, k, rows, a, out);                                           \
    }                                                                                              \
    CPU_TARGET_AVX2 static void NAME##_unpack_avx2(                                                \
        int64_t first, int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)     \
    {                                                                                              \
        quant_unpack32_avx2(NAME##_form, first, n_blocks, row, panel);                             \
    }                                                                                              \
    CPU_TARGET_AVX512 static void NAME##_gemv_avx512(int64_t k, const struct quant_rows *rows,     \
                                                     const struct quant_act *a, float *out)        \
    {                                                                                              \
        quant_gemv32_avx512(NAME##_form, k, rows, a, out);                                         \
    }                                                                                              \
    CPU_TARGET_AVX512 static void NAME##_gemv_few_avx512(int64_t k, const struct quant_rows *rows, \
                                                         int n_columns, const struct quant_act *a, \
                                                         float *const *out)                        \
    {                                                                                              \
        quant_gemv32_few_avx512(NAME##_form, NAME##_gemv_avx512, k, rows, n_columns, a, out);      \
    }                                                                                              \
    CPU_TARGET_AVX512 static void NAME##_unpack_avx512(                                            \
        int64_t first, int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)     \
    {                                                                                              \
        quant_unpack32_avx512(NAME##_form, first, n_blocks, row, panel);                           \
    }

#define QUANT_BLOCK32_VECTORS(NAME, FEW)                                                           \
    [CPU_AVX2] = {.decode = NAME##_decode_avx2,                                                    \
                  .unpack = NAME##_unpack_avx2,                                                    \
                  .gemv = NAME##_gemv_avx2,                                                        \
                  .rows_per_step = QUANT_GEMV_ROWS},                                               \
    [CPU_AVX512] = {.unpack = NAME##_unpack_avx512,                                                \
                    .gemv = NAME##_gemv_avx512,                                                    \
                    .gemv_few = NAME##_gemv_few_avx512,                                            \
                    .few_columns = (FEW),                                                          \
                    .rows_per_step = QUANT_GEMV_ROWS},

#else
#define QUANT_BLOCK32_KERNELS(NAME) QUANT_BLOCK32_SCALAR(NAME)
#define QUANT_BLOCK32_VECTORS(NAME, FEW)
#endif

/* Members of struct quant_type. FEW: few_columns with AVX-512. */
#define QUANT_BLOCK32_MEMBERS(NAME, FEW)                                                           \
    .block_len = 32, .act = &quant_act_q8_32, .dot = NAME##_dot,                                   \
    .kernel = {[CPU_SCALAR] = {.decode = NAME##_decode,                                            \
                               .encode = NAME##_encode,                                            \
                               .unpack = NAME##_unpack,                                            \
                               .gemv = NAME##_gemv},                                               \
               QUANT_BLOCK32_VECTORS(NAME, FEW)}

#endif
