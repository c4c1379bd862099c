/* engine/cpu/isa/tile.h: the inner kernels of products and attention, one table per instruction-set
 * level.
 *
 * A tile multiplies weight rows by activation columns, both in a form that kernels read in order,
 * with the canonical arithmetic of quant/quant.h; the result is the same at every level.
 * tile_scalar.c is the specification. Private to engine/: called by matmul and attention, which
 * allocate the memory, divide k into blocks and divide the work among threads.
 *
 * Columns of quantized activations are packed in column panels of `cols` columns, so that a tile
 * reads consecutive memory. A panel with fewer columns is padded with zeros. Panels of
 * ENGINE_TILE_COLS are interleaved, 4 elements (the unit of u8 x s8 dot instructions) of each
 * column at a time. x[c][i] is element i of column c:
 *
 *     byte   0             4             8                 28            32
 *            x[0][0..3]    x[1][0..3]    x[2][0..3]   ..   x[7][0..3]    x[0][4..7]   .. */
#pragma once

#include "base/unroll.h"
#include "quant/quant.h"
#include <string.h>

enum { ENGINE_TILE_COLS = 8, ENGINE_TILE_MAX_COLS = 16 };
/* Maximum row panels of a tile. */
enum { ENGINE_TILE_PANELS = 2 };
/* Maximum float rows of a tile, and words of a row that are packed at once. */
enum { ENGINE_TILE_FLOAT_ROWS = 48, ENGINE_TILE_PACK_WORDS = 256 };

struct engine_cols32 { /* one block of 32 of 8 columns */
    int8_t q[8][ENGINE_TILE_COLS][4];
    float d[ENGINE_TILE_COLS];
    float s[ENGINE_TILE_COLS];           /* d * (float)(sum of q) */
    int32_t minus_sum[ENGINE_TILE_COLS]; /* -(sum of q) */
};

struct engine_cols256 { /* one super-block of 256 of 8 columns */
    int8_t q[64][ENGINE_TILE_COLS][4];
    float d[ENGINE_TILE_COLS];
    int16_t sum16[8][ENGINE_TILE_COLS][2]; /* sums of q over 16, in pairs */
    int16_t sum32[4][ENGINE_TILE_COLS][2]; /* the same over 32 */
    int32_t mass16, peak32;                /* bounds set by `measure` with AVX-512 */
    int32_t peak4, peak8;                  /* bounds set with AVX2 and AVX-VNNI */
};

/* Products of packed floats. Each of the 16 sums of quant/quant.h is a product by itself, of every
 * sixteenth word of rows and columns, so rows are lanes of registers, and columns are broadcast. A
 * word is a float or, of BF16, a pair of elements; a step is 16 words of a row. A bundle of n rows
 * (or columns) is [16 sums][steps][n]. The sums are in the order of the leaves of their tree, left
 * to right; w[r][i] is word i of row r, with 8 rows:
 *
 *     leaf 0     w[0][0]    w[1][0]    ..   w[7][0]    w[0][16]   w[1][16]   ..
 *     leaf 1     w[0][8]    w[1][8]    ..   w[7][8]    w[0][24]   w[1][24]   ..
 *     leaf 2     w[0][4]    w[1][4]    ..   w[7][4]    w[0][20]   w[1][20]   ..
 *
 * (If k is not a multiple of 32, f32 rows are padded with -0.0f and columns with 0.0f, whose
 * product changes no sum, and bf16 rows and columns with zeros.) */
static inline int engine_tile_leaf_sum(int leaf) /* its own inverse */
{
    return (leaf & 1) << 3 | (leaf & 2) << 1 | (leaf & 4) >> 1 | (leaf & 8) >> 3;
}

/* Sums of left branches whose right ones are not complete, in the order of the leaves. Leaf i is
 * added to the last of engine_tile_tree_depth(i) ones once for each 1 at the end of i in binary. */
struct engine_tile_tree {
    _Alignas(64) float of[4][ENGINE_TILE_COLS][ENGINE_TILE_FLOAT_ROWS];
};
static inline int engine_tile_tree_depth(int leaf)
{
    return (leaf & 1) + (leaf >> 1 & 1) + (leaf >> 2 & 1) + (leaf >> 3);
}

/* Leaves first .. end - 1. */
struct engine_tile_leaves {
    int first, end;
    int64_t n_steps;               /* of each */
    struct engine_tile_tree *tree; /* if first > 0: of the leaves before */
};

/* Stores the results after the last leaf: out[c][r] for c < n_cols and r < n_rows. */
static inline void engine_tile_results_store(const struct engine_tile_leaves *l, int n_rows,
                                             int n_cols, float *const *out)
{
    for (int c = 0; l->end == 16 && c < n_cols; c++)
        memcpy(out[c], l->tree->of[0][c], (size_t)n_rows * sizeof(float));
}

struct engine_tile_packed {
    int rows;     /* of a bundle of weights, which divide ENGINE_TILE_FLOAT_ROWS */
    int step_len; /* elements of a step */
    /* Packs 16 n words of 8 rows (or columns). `to` is the place of the first word of the first row
     * in leaf 0; `leaf` and `step` are distances in floats. If bf16 has steps of 16 elements the
     * odd ones of 16 words are a step, then the even ones. */
    void (*pack)(int64_t n, const float (*row)[ENGINE_TILE_PACK_WORDS], int64_t leaf, int64_t step,
                 float *to);
    /* Bundles of ENGINE_TILE_FLOAT_ROWS rows by a bundle of ENGINE_TILE_COLS columns. If these are
     * the last leaves, stores out[c][r] for c < n_cols and r < n_rows. */
    void (*product)(const struct engine_tile_leaves *leaves, const float *w, const float *x,
                    int n_rows, int n_cols, float *const *out);
};

/* Float sums of rows times a column panel, stored between K-blocks; a panel of 2 ENGINE_TILE_COLS
 * has two of them. */
struct engine_tile_sums {
    _Alignas(64) float of[ENGINE_TILE_PANELS][ENGINE_TILE_COLS][QUANT_PANEL_ROWS];
};

/* Weights that are read after a call, in four streams of rows at these offsets from `at`:
 *
 *     stream    0    1       2      3
 *     offset    0    near    far    near + far
 *
 * The AVX-512 and AMX kernels prefetch from each stream
 * ENGINE_TILE_AHEAD_32 bytes per block of 32 and ENGINE_TILE_AHEAD_256 per super-block, so that
 * memory is also read while they multiply. If `at` is NULL nothing is prefetched. */
struct engine_tile_ahead {
    const char *at;
    int64_t near, far;
};
enum { ENGINE_TILE_AHEAD_32 = 64, ENGINE_TILE_AHEAD_256 = 512 };

/* The sums to which a K-block is added, and the destination of the results. */
struct engine_tile_to {
    struct engine_tile_sums *sums;
    bool first; /* first K-block: *sums is undefined */
    bool last;  /* last K-block: results to out[c][r], c < n_cols, r < n_rows */
    int n_rows, n_cols;
    float *const *out;
    struct engine_tile_ahead ahead;
};

struct engine_tile {
    int cols;    /* of a column panel */
    int k_block; /* elements of the row panels of a tile, and of a column panel, that fit the
                    first-level cache together */
    int64_t cols32_bytes, cols256_bytes;   /* bytes of a block of a column panel */
    int64_t panel32_bytes, panel256_bytes; /* bytes of a block of a row panel */
    /* Pack blocks first .. first + n_blocks - 1 of n <= cols columns as the blocks of a column
     * panel at `to`, which is zeroed if n < cols. */
    void (*columns32)(const struct engine_tile *tile, int64_t first, int64_t n_blocks,
                      const struct quant_act *a, int n, void *to);
    void (*columns256)(const struct engine_tile *tile, int64_t first, int64_t n_blocks,
                       const struct quant_act *a, int n, void *to);
    /* Multiply n_blocks blocks of n_cols <= cols columns and n_rows <= QUANT_PANEL_ROWS rows, in
     * the panel forms that the unpack kernels of the level write: scale-folded forms with minima
     * occur with AVX2 and levels that contain it, others with AVX-512. With AVX-512, n_rows may be
     * twice as large in panel256, and in panel32 without minima; the second half is then in the
     * next panel. `x` is a column panel of this table. */
    void (*panel32)(const struct quant_panel_form *form, int64_t n_blocks, const void *w,
                    const void *x, const struct engine_tile_to *to);
    void (*panel256)(const struct quant_panel_form *form, int64_t n_blocks, const void *w,
                     const void *x, const struct engine_tile_to *to);
    /* Converts an unpacked super-block of 16 rows to the form that panel256 reads. NULL if that
     * form is struct quant_panel256. */
    void (*fold256)(const struct quant_panel_form *form, const struct quant_panel256 *from,
                    void *to);
    /* Interleaves the q of a column panel of ENGINE_TILE_COLS: to[i][c] = elements 4i .. 4i + 3 of
     * q[c], i < n; n is a multiple of 8. */
    void (*interleave)(int64_t n, const int8_t *const q[ENGINE_TILE_COLS],
                       int8_t (*to)[ENGINE_TILE_COLS][4]);
    /* clang-format off */
    /* Computes the bounds of a column panel whose other members are set. panel256 accumulates in 16
     * bits if a bound proves that no sum of codes times q overflows:
     *
     *     bound     the largest sum of                          at most INT16_MAX where used
     *     mass16    |q| over 16 elements                        offset * (sub_len / 16) * mass16
     *     peak32    q of one sign over 32 elements              max_code * peak32
     *     peak4     q of one sign in the same half of each of   max_code * peak4
     *     peak8     4 (8) consecutive groups of 4 elements      max_code * peak8
     *
     * (Used in sums_fit_int16, sums_depth and dots_depth.) NULL if panel256 needs no bounds. */
    /* clang-format on */
    void (*measure)(int64_t n_blocks, struct engine_cols256 *x);
    /* QUANT_LAYOUT_F32 products of float rows: out[c][r] = w[r] . x[c], r < n_rows, c < n_cols. */
    void (*f32)(int64_t k, const float *w, int64_t w_stride, int64_t n_rows, const float *const *x,
                int64_t n_cols, float *const *out);
    /* QUANT_LAYOUT_BF16 products of rows in the file's layout, row_bytes apart; the columns are
     * padded with zeros to a multiple of 32. NULL if the type's gemv is faster. */
    void (*bf16)(int64_t k, const char *w, int64_t row_bytes, int64_t n_rows,
                 const uint16_t *const *x, int64_t n_cols, float *const *out);
    bool prefetches; /* panel32 and panel256 prefetch to->ahead */
    /* Called by each worker before and after the kernels of a product; NULL if not needed. */
    void (*begin)(void), (*end)(void);
    /* The products of f32 and bf16 with packed rows and columns. NULL if this is not faster. */
    const struct engine_tile_packed *packed_f32, *packed_bf16;
    /* o[i][d] = fmaf(v[j][d], p[i][j], o[i][d]) for j = 0 .. n - 1 ascending; i < n_rows, d <
     * dim. */
    void (*weighted_sum)(int64_t n, int64_t dim, const float *v, int64_t v_stride,
                         const float *const *p, int64_t n_rows, float *const *o);
};

/* The fastest table at the level, and the fastest for quantized products with at most max_columns
 * columns. */
const struct engine_tile *engine_tile_table(enum cpu_level level);
const struct engine_tile *engine_tile_product_table(enum cpu_level level, int64_t max_columns);

/* columns32 and columns256 of tables whose panels are interleaved. */
void engine_tile_columns32(const struct engine_tile *tile, int64_t first, int64_t n_blocks,
                           const struct quant_act *a, int n, void *to);
void engine_tile_columns256(const struct engine_tile *tile, int64_t first, int64_t n_blocks,
                            const struct quant_act *a, int n, void *to);
#define ENGINE_TILE_INTERLEAVED                                                                    \
    .cols = ENGINE_TILE_COLS, .k_block = 512, .cols32_bytes = sizeof(struct engine_cols32),        \
    .cols256_bytes = sizeof(struct engine_cols256), .panel32_bytes = sizeof(struct quant_panel32), \
    .panel256_bytes = sizeof(struct quant_panel256), .columns32 = engine_tile_columns32,           \
    .columns256 = engine_tile_columns256

/* Prefetches line l of stream s. */
static inline void engine_tile_prefetch(struct engine_tile_ahead ahead, int s, int l)
{
    __builtin_prefetch(ahead.at + s % 2 * ahead.near + s / 2 * ahead.far + 64 * l, 0, 3);
}

extern const struct engine_tile engine_tile_scalar;
