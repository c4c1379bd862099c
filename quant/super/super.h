/* quant/super/super.h: private to quant/: scalar code that the types with super-blocks of 256
 * share.
 *
 * The header of a type (q2_k.h) has its block, a struct super_layout and one function, `expand`,
 * which unpacks a super-block; decode, dot and the unpacking of panels call it and are the
 * specification that the kernels of instruction sets must equal. Everything here is inlined into
 * small wrappers, with the type's layout and its `expand` as constants: SUPER_KERNELS(q2_k) defines
 * q2_k_decode, q2_k_dot, q2_k_gemv and q2_k_unpack from q2_k_layout and q2_k_expand. */
#pragma once

#include "quant/types.h"
#include <math.h>

enum { SUPER_LEN = 256 };

struct super_layout {
    size_t block_bytes;
    size_t header_bytes; /* of a row: 0, or those of its only d: 2 (binary16), 4 (binary32) */
    struct quant_panel_form panel;
};

/* Super-block b of a row. */
QUANT_INLINE const void *super_block_at(const struct super_layout *layout, const void *row,
                                        int64_t b)
{
    return (const char *)row + layout->header_bytes + (size_t)b * layout->block_bytes;
}

/* d of a row that has one. */
QUANT_INLINE float super_row_d(const struct super_layout *layout, const void *row)
{
    return layout->header_bytes == 2 ? quant_f16_to_f32(quant_load16(row))
                                     : quant_float_of(quant_load32(row));
}

/* An unpacked super-block: value[i] = d * scale[i / sub_len] * (q[i] - offset) + m * min[...], with
 * sub_len and offset from the type's panel form. */
struct super_parts {
    float d;
    float m;           /* minus the file's dmin; 0 in types without minima */
    int16_t scale[16]; /* per sub-block: 8 or 16 in use */
    int16_t min[16];   /* per sub-block, in types with minima */
    uint8_t q[SUPER_LEN];
};

/* Unpacks super-block b of a row. */
typedef void super_expand(const void *row, int64_t b, struct super_parts *parts);

/* d * scale is exact in float (11 + 8 bits) unless d is the binary32 number of a row. A value with
 * a minimum is rounded once, as the sum of two exact products. */
QUANT_INLINE void super_decode(const struct super_layout *layout, super_expand *expand,
                               int64_t first, int64_t n, const void *row, float *out)
{
    const struct quant_panel_form *form = &layout->panel;
    for (int64_t b = 0; b < n / SUPER_LEN; b++) {
        struct super_parts p;
        expand(row, first / SUPER_LEN + b, &p);
        for (int s = 0; s < SUPER_LEN / form->sub_len; s++) {
            float scale = p.d * (float)p.scale[s];
            float min = form->has_min ? p.m * (float)p.min[s] : 0.0f;
            for (int i = s * form->sub_len; i < (s + 1) * form->sub_len; i++) {
                float value = scale * (float)(p.q[i] - form->offset);
                out[SUPER_LEN * b + i] = form->has_min ? value + min : value;
            }
        }
    }
}

/* v (quant/quant.h) of super-block b of a row and a column. */
QUANT_INLINE float super_term(const struct super_layout *layout, super_expand *expand,
                              const void *row, int64_t b, const struct quant_act *a)
{
    const struct quant_panel_form *form = &layout->panel;
    struct super_parts p;
    expand(row, b, &p);
    int32_t isum = 0, msum = 0;
    for (int s = 0; s < SUPER_LEN / form->sub_len; s++) {
        int32_t products = 0, sum = 0;
        for (int i = s * form->sub_len; i < (s + 1) * form->sub_len; i++) {
            products += (p.q[i] - form->offset) * a->q[SUPER_LEN * b + i];
            sum += a->q[SUPER_LEN * b + i];
        }
        isum += p.scale[s] * products;
        if (form->has_min) msum += p.min[s] * sum;
    }
    const float scale = p.d * a->d[b];
    return form->has_min ? fmaf(scale, (float)isum, p.m * a->d[b] * (float)msum)
                         : scale * (float)isum;
}

/* The canonical product (quant/quant.h) of a row with a column. */
QUANT_INLINE float super_dot(const struct super_layout *layout, super_expand *expand, int64_t k,
                             const void *row, const struct quant_act *a)
{
    float acc = 0.0f;
    for (int64_t b = 0; b < k / SUPER_LEN; b++) acc += super_term(layout, expand, row, b, a);
    return acc;
}

QUANT_INLINE void super_unpack(const struct super_layout *layout, super_expand *expand,
                               int64_t first, int64_t n_blocks,
                               const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    const struct quant_panel_form *form = &layout->panel;
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            struct super_parts p;
            expand(row[r], first + b, &p);
            out->d[r] = p.d;
            out->m[r] = p.m;
            for (int s = 0; s < SUPER_LEN / form->sub_len; s++) {
                out->scale[s / 2][r][s % 2] = p.scale[s];
                if (form->has_min) out->min[s / 2][r][s % 2] = p.min[s];
            }
            for (int i = 0; i < SUPER_LEN; i++) out->q[i / 4][r][i % 4] = p.q[i];
        }
    }
}

/* The importance of super-block b, or NULL. */
QUANT_INLINE const float *super_importance(const float *importance, int64_t b)
{
    return importance ? importance + SUPER_LEN * b : NULL;
}

/* Defines the encoder of a type with a grid from NAME_form and NAME_pack, which packs the result of
 * the search into a block. */
#define SUPER_GRID_ENCODE(NAME)                                                                    \
    static void NAME##_encode(const struct quant_search *search, int64_t k, const float *in,       \
                              const float *importance, void *row)                                  \
    {                                                                                              \
        struct quant_grid grid;                                                                    \
        quant_grid_prepare(&grid, &NAME##_form, search->grid);                                     \
        struct NAME##_block *out = row;                                                            \
        for (int64_t b = 0; b < k / SUPER_LEN; b++, out++) {                                       \
            struct quant_grid_fit fit;                                                             \
            quant_grid_fit(&grid, in + SUPER_LEN * b, super_importance(importance, b), &fit);      \
            NAME##_pack(&fit, out);                                                                \
        }                                                                                          \
    }

/* Defines the encoder of a type with the search of quant/encode/fit.h from NAME_pack; further
 * arguments: members of struct quant_fit_form. */
#define SUPER_FIT_ENCODE(NAME, ...)                                                                \
    static void NAME##_encode(const struct quant_search *search, int64_t k, const float *in,       \
                              const float *importance, void *row)                                  \
    {                                                                                              \
        const struct quant_fit_form form = {.sub_len = NAME##_layout.panel.sub_len,                \
                                            .block_bytes = NAME##_layout.block_bytes,              \
                                            .header_bytes = NAME##_layout.header_bytes,            \
                                            .pack = NAME##_pack,                                   \
                                            __VA_ARGS__};                                          \
        quant_fit_supers(search->fit, &form, k, in, importance, row);                              \
    }

#define SUPER_KERNELS(NAME)                                                                        \
    QUANT_DECODE_AT(NAME##_decode, ,                                                               \
                    super_decode(&NAME##_layout, NAME##_expand, first, n, row, out))               \
    static float NAME##_dot(int64_t k, const void *row, const struct quant_act *a)                 \
    {                                                                                              \
        return super_dot(&NAME##_layout, NAME##_expand, k, row, a);                                \
    }                                                                                              \
    QUANT_GEMV_BY_DOT(NAME)                                                                        \
    QUANT_UNPACK_AT(NAME##_unpack, ,                                                               \
                    super_unpack(&NAME##_layout, NAME##_expand, first, n_blocks, row, panel))

/* Members of struct quant_type. */
#define SUPER_MEMBERS(NAME)                                                                        \
    .block_len = SUPER_LEN, .block_bytes = sizeof(struct NAME##_block), .act = &quant_act_q8_256,  \
    .dot = NAME##_dot,                                                                             \
    .scalar = {.decode = NAME##_decode,                                                            \
               .encode = NAME##_encode,                                                            \
               .unpack = NAME##_unpack,                                                            \
               .panel = &NAME##_layout.panel,                                                      \
               .gemv = NAME##_gemv}

/* Defines the scalar kernels and the row of a type. */
#define QUANT_SUPER_TYPE(NAME, ID)                                                                 \
    SUPER_KERNELS(NAME)                                                                            \
    const struct quant_type quant_type_##NAME = {                                                  \
        .name = #ID, .id = QUANT_##ID, SUPER_MEMBERS(NAME)};
