/* engine/matmul/matmul.h: private to the product driver: what matmul.c (ops, layout of scratch) and
 * matmul_run.c (the phases) share.
 *
 * Words: a *column* is one row of x, quantized; a *job* is one weight matrix (of a batch, or an
 * expert) with the columns that meet it; a *chunk* is a run of weight rows of one job that one
 * worker takes, with a *stripe* of the job's columns; a *group* is ENGINE_TILE_COLS interleaved
 * columns of one job. A product with a gate has two *sides*: rows of the gate's weight and the same
 * rows of the other, whose results wait for each other. */
#ifndef ENGINE_MATMUL_MATMUL_H
#define ENGINE_MATMUL_MATMUL_H

#include "engine/isa/tile.h"
#include "engine/op.h"

enum { ENGINE_PRODUCT_WEIGHTS = 4, ENGINE_PRODUCT_KINDS = QUANT_ACT_Q8_256 + 1 };

struct engine_product_column {
    int64_t x_row; /* which row of x */
    char *out;     /* its row of dst */
};

struct engine_product_job {
    int64_t first, n;       /* columns */
    int64_t group;          /* the first of its groups */
    int64_t batch2, batch3; /* which matrix of the weights */
};

/* Where the parts of one converted column lie: offsets in bytes from its start. */
struct engine_product_act {
    int64_t q, d, s, sum; /* Q8 kinds; F32 and BF16 columns start at 0 */
    int64_t bytes;        /* per column; 0 for kinds that no weight asks for */
    bool in_place;        /* columns are the rows of x where they lie: floats side by side */
    int64_t columns;      /* offset in scratch: [rows of x][bytes] */
    int64_t groups;       /* offset in scratch: floats as [groups][group_bytes], and of Q8 kinds the
                           * slices of k, each as [groups][its blocks] */
    int64_t group_bytes;
    int64_t block_len, block_bytes; /* of a group's blocks, of Q8 kinds */
    int64_t n_slices;
};

/* One product node as every worker sees it: the same numbers everywhere, computed from the shapes
 * and the number of threads alone. */
struct engine_product {
    const struct engine_tensor *x, *ids, *w[ENGINE_PRODUCT_WEIGHTS];
    const struct engine_tensor *up; /* with a gate, whose weight is w[0]; else NULL */
    int n_w;
    int64_t k, n_rows_x, n_cols, max_jobs, max_groups;
    int64_t chunk_rows[ENGINE_PRODUCT_WEIGHTS], n_chunks[ENGINE_PRODUCT_WEIGHTS];
    int64_t chunks_per_job; /* and stripe */
    int64_t n_stripes;      /* parts of a job's columns */
    bool by_gemv;           /* no job can have more columns than gemv is good for */
    bool by_parts;          /* chunks are rows of each of gemv's streams, not a run of rows */
    bool slices;            /* super-blocks go by slices: with dual_512, whose sums wait in memory
                             * in any case, and for one group of columns, because weights are then
                             * asked for while they are multiplied, too */
    bool own_copy;          /* each worker converts x for itself: cheaper than a barrier */
    struct engine_product_act act[ENGINE_PRODUCT_KINDS];
    int64_t jobs_at, columns_at, starts_at; /* tables: offsets in scratch; the header is at 0 */
    int64_t shared_bytes;                   /* tables, columns and groups together */
    int64_t worker_bytes;                   /* panels and sums, or rows, of one worker */
    int64_t sums_at;   /* in those: engine_tile_sums of a stripe's groups, of each side */
    int64_t halves_at; /* and what waits for its gate: [columns of a group][sides][rows] */
};

struct engine_product_header {
    int64_t n_jobs, n_groups;
};

/* The weight and, with a gate, the one beside it. */
static inline int engine_product_sides(const struct engine_product *p)
{
    return p->up ? 2 : 1;
}

/* Floats of a column of one side, for n_rows rows: panels of 16 rows, or bundles, fill it. */
static inline int64_t engine_product_half(int64_t n_rows)
{
    return engine_round_up(n_rows, 2 * ENGINE_TILE_FLOAT_ROWS);
}

extern const struct engine_op engine_op_mul_mat;
extern const struct engine_op engine_op_mul_mat_id;
extern const struct engine_op engine_op_mul_mat_glu, engine_op_mul_mat_id_glu;

/* Jobs with at most this many columns go through gemv, column by column. */
enum { ENGINE_PRODUCT_GEMV_COLS = 2 };
/* With --blas, products of F32 weights with so many floats of activations go there: more than
 * caches hold, where OpenBLAS is faster than tiles without blocks of k (docs/performance.md). */
enum { ENGINE_PRODUCT_BLAS_FLOATS = 1 << 22 };

/* Kinds whose columns, and panels, are floats. */
static inline bool engine_product_by_floats(enum quant_act_kind kind)
{
    return kind == QUANT_ACT_F32 || kind == QUANT_ACT_BF16;
}

/* Whether panels and columns of a kind meet in slices of k, where a product has some: super-blocks.
 * A slice has so many elements, at most, that its panels, and the columns that stream past them,
 * fit the L1 cache. */
enum { ENGINE_PRODUCT_SLICE = 512 };
static inline bool engine_product_by_slices(bool slices, enum quant_act_kind kind)
{
    return slices && kind == QUANT_ACT_Q8_256;
}

/* Types of which, with dual_512, tiles multiply two panels at once (engine/isa/tile.h): all with
 * panels but blocks of 32 with minima. */
static inline bool engine_product_by_pairs(const struct quant_type *type)
{
    return type->panel.block == 2 || !type->panel.has_min;
}

/* How many panels of a type a tile takes at once, with these kernels. */
static inline int engine_product_panels(const struct quant_kernels *quant,
                                        const struct quant_type *type)
{
    return quant->dual_512 && engine_product_by_pairs(type) ? ENGINE_TILE_PANELS : 1;
}

/* Bytes of a block of 16 rows. */
static inline int64_t engine_product_panel_bytes(const struct quant_type *type)
{
    return type->panel.block == 2 ? sizeof(struct quant_panel256) : sizeof(struct quant_panel32);
}

/* Slice i of k: so many blocks from the first one on. */
struct engine_product_slice {
    int64_t first, n_blocks;
};

static inline struct engine_product_slice engine_product_slice(const struct engine_product_act *act,
                                                               int64_t k, int64_t i)
{
    const int64_t n_blocks = k / act->block_len, first = n_blocks * i / act->n_slices;
    return (struct engine_product_slice){first, n_blocks * (i + 1) / act->n_slices - first};
}

/* Fills *p for dst; false when a size wraps. `adjacent_rows`: gemv reads them (struct
 * cpu_prefetch), and nothing goes by parts; scratch does not depend on it, but on `dual_512`
 * (struct quant_kernels). */
bool engine_product_layout(struct engine_product *p, const struct engine_tensor *dst, int n_threads,
                           bool adjacent_rows, bool dual_512);
int64_t engine_product_scratch(const struct engine_product *p, int n_threads);

/* matmul_run.c: called on every worker. */
void engine_product_run(const struct engine_task *task, struct engine_tensor *dst);

#endif
