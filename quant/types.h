/* quant/types.h: private to quant/: the rows that the type files export, the activation kernels,
 * and the functions that every type file needs. */
#pragma once

#include "base/unroll.h"
#include "quant/quant.h"
#include <string.h>

/* The searches of a level for scales (quant/encode/fit.h), entries of grids
 * (quant/encode/grid_fit.h) and of books of vectors (quant/encode/vector_fit.h). */
struct quant_vectors;
struct quant_search {
    const struct quant_fit *fit;
    const struct quant_grid_level *grid;
    float (*vector)(const struct quant_vectors *book, const float *x, const float *w, float limit,
                    uint16_t *entry); /* quant_vector_search of quant/encode/vector_fit.h */
};
extern const struct quant_search quant_search_scalar;

/* Defines the encoder FUNCTION for the function attribute TARGET, which may be empty, of a type
 * that searches its scales itself, in an inline NAME_encode_at(k, in, importance, row). */
#define QUANT_ENCODE_AT(NAME, FUNCTION, TARGET)                                                    \
    TARGET static void FUNCTION(const struct quant_search *search, int64_t k, const float *in,     \
                                const float *importance, void *row)                                \
    {                                                                                              \
        (void)search;                                                                              \
        NAME##_encode_at(k, in, importance, row);                                                  \
    }

/* Define a kernel FUNCTION for the attribute TARGET, which may be empty; its body is a call with
 * the kernel's parameters: k, rows, a, out; or first, n, row, out; or first, n_blocks, row, panel.
 */
#define QUANT_GEMV_AT(FUNCTION, TARGET, ...)                                                       \
    TARGET static void FUNCTION(int64_t k, const struct quant_rows *rows,                          \
                                const struct quant_act *a, float *out)                             \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
#define QUANT_DECODE_AT(FUNCTION, TARGET, ...)                                                     \
    TARGET static void FUNCTION(int64_t first, int64_t n, const void *row, float *out)             \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
#define QUANT_UNPACK_AT(FUNCTION, TARGET, ...)                                                     \
    TARGET static void FUNCTION(int64_t first, int64_t n_blocks,                                   \
                                const void *const row[QUANT_PANEL_ROWS], void *panel)              \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

/* Rows of types; quant/types.c puts them into the table. */
extern const struct quant_type quant_type_f32;
extern const struct quant_type quant_type_f16;
extern const struct quant_type quant_type_q4_0;
extern const struct quant_type quant_type_q4_1;
extern const struct quant_type quant_type_q5_0;
extern const struct quant_type quant_type_q5_1;
extern const struct quant_type quant_type_q6_0;
extern const struct quant_type quant_type_q8_0;
extern const struct quant_type quant_type_q2_k;
extern const struct quant_type quant_type_q3_k;
extern const struct quant_type quant_type_q4_k;
extern const struct quant_type quant_type_q5_k;
extern const struct quant_type quant_type_q6_k;
extern const struct quant_type quant_type_iq4_nl;
extern const struct quant_type quant_type_iq4_xs;
extern const struct quant_type quant_type_bf16;
extern const struct quant_type quant_type_mxfp4;
extern const struct quant_type quant_type_q1_0;
extern const struct quant_type quant_type_q2_0;
extern const struct quant_type quant_type_q8_1;
extern const struct quant_type quant_type_q8_k;
extern const struct quant_type quant_type_nvfp4;
extern const struct quant_type quant_type_iq3_s;
extern const struct quant_type quant_type_iq3_xxs;
extern const struct quant_type quant_type_iq2_s;
extern const struct quant_type quant_type_iq2_xs;
extern const struct quant_type quant_type_iq2_xxs;
extern const struct quant_type quant_type_iq1_s;
extern const struct quant_type quant_type_iq1_m;
extern const struct quant_type quant_type_tq1_0;
extern const struct quant_type quant_type_tq2_0;
extern const struct quant_type quant_type_iq2_k;
extern const struct quant_type quant_type_iq3_k;
extern const struct quant_type quant_type_iq4_k;
extern const struct quant_type quant_type_iq5_k;
extern const struct quant_type quant_type_iq6_k;
extern const struct quant_type quant_type_iq2_ks;
extern const struct quant_type quant_type_iq3_ks;
extern const struct quant_type quant_type_iq4_ks;
extern const struct quant_type quant_type_iq5_ks;
extern const struct quant_type quant_type_iq4_kss;
extern const struct quant_type quant_type_iq2_kl;
extern const struct quant_type quant_type_iq1_kt;
extern const struct quant_type quant_type_iq2_kt;
extern const struct quant_type quant_type_iq3_kt;
extern const struct quant_type quant_type_iq4_kt;

/* The conversions of activations at one level; NULL inherits from the parent. */
struct quant_act_kernel {
    void (*quantize[QUANT_ACT_FORMS])(int64_t k, const float *x, const struct quant_act *to);
};
extern const struct quant_act_kernel quant_act_scalar; /* quant/act.c */

/* Replace the entries of *to for which a level has a kernel. */
void quant_overlay_type(const struct quant_kernel *from, struct quant_kernel *to);
void quant_overlay_act(const struct quant_act_kernel *from, struct quant_kernels *to);
/* Each folder of an instruction set fills the table in one function, which is called for the levels
 * above scalar on the path to the table's (quant/x86/quant_x86.c, quant/arm/quant_arm.c). */
void quant_x86_overlay(struct quant_kernels *kernels, enum cpu_level level);
void quant_arm_overlay(struct quant_kernels *kernels, enum cpu_level level);

#define QUANT_INLINE static inline __attribute__((always_inline))

/* The scalar gemv of every type: its dot, row by row. */
static inline void quant_gemv_by_dot(float (*dot)(int64_t, const void *, const struct quant_act *),
                                     int64_t k, const struct quant_rows *rows,
                                     const struct quant_act *a, float *out)
{
    for (int64_t r = 0; r < rows->n; r++)
        out[r] = dot(k, (const char *)rows->w + (size_t)r * rows->row_bytes, a);
}

/* Defines NAME##_gemv, for scalar.gemv, from NAME##_dot. */
#define QUANT_GEMV_BY_DOT(NAME)                                                                    \
    QUANT_GEMV_AT(NAME##_gemv, , quant_gemv_by_dot(NAME##_dot, k, rows, a, out))

/* Loads a little-endian word of a block, at any address. */
static inline uint16_t quant_load16(const void *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline uint32_t quant_load32(const void *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline uint32_t quant_bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float quant_float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
