/* clang-format off */
/* engine/matmul/matmul.h: private to matmul: what matmul_op.c (ops, shapes), matmul_layout.c (sizes of
 * blocks, layout of scratch), route.c (how a product is done) and matmul_run.c (the phases) share.
 *
 * out[n][m] = sum over k of w[m][k] * x[n][k]: M are rows of weights, N columns, K what is summed.
 *
 *   column    a row of x, converted to the activation form of the weight's type
 *   job       one weight matrix (of a batch, or an expert) with its columns: one GEMM of a batched or
 *             grouped one
 *   M-block   consecutive weight rows of one job that a worker takes at once
 *   N-block   consecutive column groups of a job; a block is an M-block by an N-block
 *   K-block   consecutive quantization blocks of k, at most ENGINE_MATMUL_K_BLOCK elements
 *   panel     16 weight rows of an M-block, unpacked and interleaved (quant/quant.h)
 *   group     ENGINE_TILE_COLS interleaved columns of one job: the panel of the other side
 *   gate-up   the fused GLU epilogue: rows of two weights, the gate's and the up projection's (the
 *             two *sides*), whose results wait in scratch, gate_stride floats apart, for act(gate) * up
 *
 * Scratch, offsets from its start. With own_copy each worker has the shared part for itself:
 *
 *   0        jobs_at  columns_at  starts_at   act[].columns  act[].groups  shared_bytes
 *   | header | jobs   | columns   | experts   | columns of x | groups      |   then, for each worker:
 *                                             of each activation form
 *   0                            sums_at               gate_at                        worker_bytes
 *   | panels, or decoded rows    | sums of an N-block  | gate and up of a group       |
 *   | (first: a gathered row)    | between K-blocks    | [column][side][gate_stride]  |
 */
/* clang-format on */
#ifndef ENGINE_MATMUL_MATMUL_H
#define ENGINE_MATMUL_MATMUL_H

#include "engine/isa/tile.h"
#include "engine/matmul/route.h"
#include "engine/op.h"

enum { ENGINE_MATMUL_WEIGHTS = 4, ENGINE_MATMUL_FORMS = QUANT_ACT_FORMS };

struct engine_matmul_column {
    int64_t x_row; /* which row of x */
    char *out;     /* its row of dst */
};

struct engine_matmul_job {
    int64_t first, n;       /* columns */
    int64_t group;          /* the first of its groups */
    int64_t batch2, batch3; /* which matrix of the weights */
};

/* The columns of one activation form. */
struct engine_matmul_act {
    const struct quant_act_form *form; /* NULL: no weight has it */
    struct quant_act_parts parts;      /* of a column */
    bool in_place;   /* columns are the rows of x where they lie: contiguous floats */
    int64_t columns; /* offset in scratch: [rows of x][parts.bytes] */
    int64_t groups;  /* offset in scratch: floats as [groups][group_bytes], of panels the
                      * K-blocks of k, each as [groups][its blocks] */
    int64_t group_bytes;
    int64_t block_bytes; /* of a group's blocks, of panels */
    int64_t n_k_blocks;
};

/* One product node as every worker sees it: the same numbers everywhere, computed from the shapes
 * and the number of threads alone. */
struct engine_matmul {
    const struct engine_tensor *x, *ids, *w[ENGINE_MATMUL_WEIGHTS];
    const struct engine_tensor *up; /* with a gate, whose weight is w[0]; else NULL */
    int n_w;
    int64_t k, n_rows_x, n_cols, max_jobs, max_groups;
    int64_t m_block_rows[ENGINE_MATMUL_WEIGHTS], n_m_blocks[ENGINE_MATMUL_WEIGHTS];
    int64_t m_blocks_per_job; /* and N-block */
    int64_t n_n_blocks;       /* parts of a job's columns */
    int64_t most_columns;     /* that a job can have: with n_w and types it decides the route */
    bool gemv_only;           /* no job leaves gemv: no column groups, no panels */
    bool k_blocks;            /* panels of super-blocks go by K-blocks (route.c) */
    bool own_copy;            /* each worker converts x for itself: cheaper than a barrier */
    struct engine_matmul_act act[ENGINE_MATMUL_FORMS];
    int64_t jobs_at, columns_at, starts_at; /* tables: offsets in scratch; the header is at 0 */
    int64_t shared_bytes;                   /* tables, columns and groups together */
    int64_t worker_bytes;                   /* panels and sums, or rows, of one worker */
    int64_t sums_at; /* in those: engine_tile_sums of an N-block's groups, of each side */
    int64_t gate_at; /* and what waits for its gate: [columns of a group][sides][rows] */
};

struct engine_matmul_header {
    int64_t n_jobs, n_groups;
};

/* The weight and, with a gate, the one beside it. */
static inline int engine_matmul_sides(const struct engine_matmul *p)
{
    return p->up ? 2 : 1;
}

/* Floats of a column of one side, for n_rows rows: panels of 16 rows, or bundles, fill it. */
static inline int64_t engine_matmul_gate_stride(int64_t n_rows)
{
    return engine_round_up(n_rows, 2 * ENGINE_TILE_FLOAT_ROWS);
}

/* Jobs with at most this many columns go through gemv, column by column. */
enum { ENGINE_MATMUL_GEMV_COLS = 2 };
/* With --blas, products of F32 weights with so many floats of activations go there: more than
 * caches hold, where OpenBLAS is faster than tiles without blocks of k (docs/performance.md). */
enum { ENGINE_MATMUL_BLAS_FLOATS = 1 << 22 };

/* Whether columns, and what is made of rows, are floats. */
static inline bool engine_matmul_by_floats(const struct quant_act_form *form)
{
    return form->layout == QUANT_LAYOUT_F32 || form->layout == QUANT_LAYOUT_BF16;
}

/* Whether panels and columns of a form go by K-blocks where a product has some: super-blocks.
 * A K-block has so many elements, at most, that its panels, and the columns that stream past them,
 * fit the L1 cache. */
enum { ENGINE_MATMUL_K_BLOCK = 512 };
static inline bool engine_matmul_by_k_blocks(bool k_blocks, const struct quant_act_form *form)
{
    return k_blocks && form->layout == QUANT_LAYOUT_256;
}

/* Types of which, with dual_512, tiles multiply two panels at once (engine/isa/tile.h): all with
 * panels but blocks of 32 with minima. */
static inline bool engine_matmul_by_pairs(const struct quant_type *type)
{
    return type->act->layout == QUANT_LAYOUT_256 || !type->panel.has_min;
}

/* How many panels of a type a tile takes at once, with these kernels. */
static inline int engine_matmul_panels(const struct quant_kernels *quant,
                                       const struct quant_type *type)
{
    return quant->dual_512 && engine_matmul_by_pairs(type) ? ENGINE_TILE_PANELS : 1;
}

/* Bytes of a block of 16 rows. */
static inline int64_t engine_matmul_panel_bytes(const struct quant_type *type)
{
    return type->act->layout == QUANT_LAYOUT_256 ? sizeof(struct quant_panel256)
                                                 : sizeof(struct quant_panel32);
}

/* K-block i of k: so many blocks from the first one on. */
struct engine_matmul_k_block {
    int64_t first, n_blocks;
};

static inline struct engine_matmul_k_block
engine_matmul_k_block(const struct engine_matmul_act *act, int64_t k, int64_t i)
{
    const int64_t n_blocks = k / act->form->block_len, first = n_blocks * i / act->n_k_blocks;
    return (struct engine_matmul_k_block){first, n_blocks * (i + 1) / act->n_k_blocks - first};
}

/* Fills only x, ids, w, n_w and up of *p, which is zero: which source of dst is what. */
void engine_matmul_sources(struct engine_matmul *p, const struct engine_tensor *dst);
/* Fills *p for dst; false when a size wraps. Scratch depends on `dual_512` (struct quant_kernels).
 */
bool engine_matmul_layout(struct engine_matmul *p, const struct engine_tensor *dst, int n_threads,
                          bool dual_512);
int64_t engine_matmul_scratch(const struct engine_matmul *p, int n_threads);

/* matmul_run.c: called on every worker. */
void engine_matmul_run(const struct engine_task *task, struct engine_tensor *dst);

#endif
