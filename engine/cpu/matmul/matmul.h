/* clang-format off */
/* engine/cpu/matmul/matmul.h: private to matmul: shared by matmul_op.c (ops, shapes), matmul_layout.c
 * (sizes of blocks, layout of scratch), route.c (choice of the route) and matmul_run.c (the
 * phases).
 *
 * out[n][m] = sum over k of w[m][k] * x[n][k]: M are rows of weights, N columns, K the summed
 * dimension.
 *
 *   column        a row of x, converted to the activation form of the weight's type
 *   gemm          one weight matrix (of a batch, or an expert) with its columns: a node is a batched
 *                 or, with experts, a grouped GEMM
 *   M-block       consecutive weight rows of one gemm; a worker claims blocks of them
 *   N-block       consecutive column panels of a gemm; a block is an M-block by an N-block
 *   K-block       consecutive quantization blocks of k, at most the tile's k_block elements
 *   row panel     16 weight rows of an M-block, unpacked and interleaved (quant/quant.h)
 *   column panel  columns of one gemm, packed as the tile reads them (engine/cpu/isa/tile.h)
 *   gate-up       the fused GLU epilogue: rows of two weights, the gate's and the up projection's (the
 *                 two *sides*), whose results are in scratch, gate_stride floats apart, before
 *                 act(gate) * up is computed
 *
 * The layout of scratch, offsets from its start. With copy_per_worker each worker has a copy of the
 * shared part:
 *
 *   0        gemms_at columns_at  starts_at   act[].columns  act[].col_panels  shared_bytes
 *   | header | gemms  | columns   | experts   | columns of x | column panels   |   then each worker's:
 *                                             of each activation form
 *   0                             sums_at               gate_at                      worker_bytes
 *   | row panels, or decoded rows | sums of an N-block  | gate and up of a           |
 *   | (before: a gathered row)    | between K-blocks    | [column][side][gate_stride]|
 */
/* clang-format on */
#pragma once

#include "engine/cpu/cpu_op.h"
#include "engine/cpu/isa/tile.h"
#include "engine/cpu/matmul/route.h"
#include "engine/op_sources.h"

enum { ENGINE_MATMUL_WEIGHTS = ENGINE_PRODUCT_WEIGHTS, ENGINE_MATMUL_FORMS = QUANT_ACT_FORMS };

struct engine_matmul_column {
    int64_t x_row; /* row of x */
    char *out;     /* row of dst */
};

struct engine_matmul_gemm {
    int64_t first, n;       /* columns */
    int64_t col_panel;      /* first column panel */
    int64_t batch2, batch3; /* matrix of the weights */
};

/* The columns of one activation form. */
struct engine_matmul_act {
    const struct quant_act_form *form; /* NULL: unused */
    struct quant_act_parts parts;      /* of a column */
    bool in_place;                     /* columns are the rows of x: contiguous floats */
    int64_t columns;                   /* offset in scratch: [rows of x][parts.bytes] */
    int64_t col_panels; /* offset in scratch. Floats: [column panels][col_panel_bytes]; blocks: the
                           K-blocks of k, each [column panels][blocks of the K-block] */
    int64_t col_panel_bytes;
    int64_t block_bytes; /* per quantization block of a column panel */
    int64_t k_block_count;
};

/* One product node. It is the same on every worker, because it depends only on the shapes, the
 * level and the number of threads. */
struct engine_matmul {
    const struct engine_tensor *x, *ids, *w[ENGINE_MATMUL_WEIGHTS];
    const struct engine_tensor
        *up; /* with the gate-up epilogue, whose gate is w[0]; otherwise NULL */
    const struct engine_tensor *active, *columns; /* of struct engine_product; or NULL */
    int n_w;
    int64_t k, n_rows_x, n_cols, max_gemms, max_col_panels;
    int64_t m_block_rows[ENGINE_MATMUL_WEIGHTS], m_block_count[ENGINE_MATMUL_WEIGHTS];
    int64_t m_blocks_per_gemm; /* per gemm and N-block */
    int64_t n_block_count;
    int64_t max_columns; /* maximum of all gemms; with types and n_w, determines the route */
    bool gemv_only;      /* all gemms are on gemv routes: no row or column panels */
    const struct engine_tile *tile; /* of the level, for max_columns */
    bool dual_512;        /* of struct quant_kernels; affects the division into K-blocks */
    bool copy_per_worker; /* each worker converts all of x, which is cheaper than a barrier */
    struct engine_matmul_act act[ENGINE_MATMUL_FORMS];
    int64_t gemms_at, columns_at, starts_at; /* tables: offsets in scratch; the header is at 0 */
    int64_t shared_bytes;                    /* tables, columns and column panels together */
    int64_t worker_bytes;                    /* row panels and sums, or rows, of one worker */
    int64_t sums_at; /* within these: engine_tile_sums of the column panels, for each side */
    int64_t gate_at; /* within these: gate and up of a column panel: [column][side][gate_stride] */
};

struct engine_matmul_header {
    int64_t n_gemms, n_col_panels;
};

/* 2 with the gate-up epilogue, otherwise 1. */
static inline int engine_matmul_sides(const struct engine_matmul *p)
{
    return p->up ? 2 : 1;
}

/* The most rows that route active copies together before it multiplies them. */
enum { ENGINE_MATMUL_ACTIVE_ROWS = 16 };

/* The number of column panels of n columns. */
static inline int64_t engine_matmul_col_panels(const struct engine_matmul *p, int64_t n)
{
    return (n + p->tile->cols - 1) / p->tile->cols;
}

/* Floats per column and side for n_rows rows: whole row panels. */
static inline int64_t engine_matmul_gate_stride(int64_t n_rows)
{
    return engine_round_up(n_rows, ENGINE_TILE_FLOAT_ROWS);
}

/* GEMMs with at most this many columns are computed by gemv, column by column. */
enum { ENGINE_MATMUL_GEMV_COLS = 2 };
/* OpenBLAS, if allowed, computes products of F32 weights with at least this many floats of
 * activations: more than fit the caches, so that it is faster than tiles without K-blocks
 * (docs/performance.md). */
enum { ENGINE_MATMUL_BLAS_FLOATS = 1 << 22 };

/* Whether columns, and rows after packing, are floats. */
static inline bool engine_matmul_by_floats(const struct quant_act_form *form)
{
    return form->layout == QUANT_LAYOUT_F32 || form->layout == QUANT_LAYOUT_BF16;
}

/* Types whose tiles, with dual_512, multiply two row panels at once (engine/cpu/isa/tile.h): all
 * with panels except blocks of 32 with minima. */
static inline bool engine_matmul_by_pairs(const struct quant_type *type)
{
    return type->act->layout == QUANT_LAYOUT_256 || !type->scalar.panel->has_min;
}

/* The number of row panels of a type that a tile of these kernels multiplies at once. */
static inline int engine_matmul_panels(const struct quant_kernels *quant,
                                       const struct quant_type *type)
{
    return quant->dual_512 && engine_matmul_by_pairs(type) ? ENGINE_TILE_PANELS : 1;
}

/* Bytes of one quantization block of a row panel (16 rows) as the tile reads it. */
static inline int64_t engine_matmul_panel_bytes(const struct engine_tile *tile,
                                                const struct quant_type *type)
{
    return type->act->layout == QUANT_LAYOUT_256 ? tile->panel256_bytes : tile->panel32_bytes;
}

/* A K-block: n_blocks quantization blocks from number `first` on. */
struct engine_matmul_k_block {
    int64_t first, n_blocks;
};

/* K-block i of k elements. */
static inline struct engine_matmul_k_block
engine_matmul_k_block(const struct engine_matmul_act *act, int64_t k, int64_t i)
{
    const int64_t n_blocks = k / act->form->block_len, first = n_blocks * i / act->k_block_count;
    return (struct engine_matmul_k_block){first, n_blocks * (i + 1) / act->k_block_count - first};
}

/* Fills *p for dst; false when a size overflows. Scratch depends on the level and `dual_512` of
 * struct quant_kernels. */
bool engine_matmul_layout(struct engine_matmul *p, const struct engine_tensor *dst, int n_threads,
                          enum cpu_level level, bool dual_512);
/* Bytes of scratch for all workers. */
int64_t engine_matmul_scratch(const struct engine_matmul *p, int n_threads);

/* matmul_run.c: called on every worker. */
void engine_matmul_run(const struct engine_task *task, struct engine_tensor *dst);
