/* engine/cpu/op/op_transposed.c: the op mul_mat_transposed: sums of the rows of a matrix, weighted
 * by x, most of whose elements are zero. Its arithmetic is in engine/graph.h.
 *
 * A unit of work is a piece of all rows by some rows of x. A row that no row of x needs is not
 * read; the others are decoded once for the unit, while the next ones are prefetched. */
#include "engine/cpu/active_rows.h"
#include "engine/cpu/op/op_rows.h"
#include "engine/graph_internal.h"
#include "engine/ops.h"
#include "quant/stream.h"
#include <string.h>

enum {
    UNIT_ROWS = 32, /* of x */
    FEW_ROWS = 2,   /* of x, at most: a worker has one piece, so that it reads long runs of bytes */
    PIECE = 512,    /* elements of rows of w, with more rows of x */
    STEP = 256,     /* a multiple of every type's block */
    ROWS_AHEAD = 8,
    LIST = 256
};

struct transpose_division {
    int64_t piece, pieces, units;
};

static struct transpose_division divide(const struct engine_tensor *dst, int n_threads)
{
    struct transpose_division d = {.piece = (dst->ne[0] + n_threads - 1) / n_threads};
    if (dst->ne[1] > FEW_ROWS) d.piece = engine_min(d.piece, PIECE);
    d.piece = engine_round_up(d.piece, STEP);
    d.pieces = (dst->ne[0] + d.piece - 1) / d.piece;
    d.units = d.pieces * ((dst->ne[1] + UNIT_ROWS - 1) / UNIT_ROWS);
    return d;
}

static int64_t transposed_scratch(const struct engine_tensor *dst, int n_threads)
{
    return engine_scratch_bytes(n_threads, 1, divide(dst, n_threads).piece);
}

/* The rows first .. first + n - 1 of x and their results. */
struct few_rows {
    const struct engine_tensor *w;
    const float *x[UNIT_ROWS];
    float *out[UNIT_ROWS];
    int64_t n;
};

/* Adds n elements of the listed rows of w, which begin `offset` bytes after their starts, to the
 * results of one row of x. */
static void add_list(const struct engine_cpu *e, const struct few_rows *u, int64_t offset,
                     int64_t n, const int64_t *at, int n_rows)
{
    const void *row[LIST + ROWS_AHEAD];
    float x[LIST];
    for (int j = 0; j < n_rows + ROWS_AHEAD; j++)
        row[j] = u->w->data + at[engine_min(j, n_rows - 1)] * u->w->nb[1] + offset;
    for (int j = 0; j < n_rows; j++) x[j] = u->x[0][at[j]];
    e->quant.type[u->w->type->id].add_rows(n, row, row + ROWS_AHEAD, n_rows, x, u->out[0]);
}

/* Adds elements first .. first + n - 1 of the rows of w. */
static void add_rows(const struct engine_cpu *e, const struct few_rows *u, int64_t first, int64_t n,
                     float *buffer)
{
    const struct quant_type *type = u->w->type;
    const int64_t offset = first / type->block_len * (int64_t)type->block_bytes;
    const size_t bytes = (size_t)(n / type->block_len) * type->block_bytes;
    int64_t at[LIST], row = 0;
    for (int n_rows;
         (n_rows = engine_active_rows_next(u->x, u->n, u->w->ne[1], LIST, &row, at)) > 0;) {
        if (u->n == 1 && n % 32 == 0 && e->quant.type[type->id].add_rows) {
            add_list(e, u, offset, n, at, n_rows);
            continue;
        }
        for (int j = 0; j < n_rows; j++) {
            if (j + ROWS_AHEAD < n_rows)
                quant_prefetch(u->w->data + at[j + ROWS_AHEAD] * u->w->nb[1] + offset, bytes);
            e->quant.type[type->id].decode(first, n, u->w->data + at[j] * u->w->nb[1], buffer);
            for (int64_t t = 0; t < u->n; t++)
                if (u->x[t][at[j]] != 0.0f) e->vec.mad(n, buffer, u->x[t][at[j]], u->out[t]);
        }
    }
}

static void transposed_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_worker *worker = task->worker;
    const struct transpose_division d = divide(dst, worker->nth);
    const struct engine_tensor *x = dst->src[0];
    struct few_rows u = {.w = dst->src[1]};
    if (task->observer)
        task->observer->product(
            task->observer->user, worker,
            &(struct engine_product_inputs){.w = u.w, .x = x, .transposed = true});
    for (int64_t i; (i = engine_pool_take(worker, d.units)) < d.units;) {
        const int64_t first = i % d.pieces * d.piece, t = i / d.pieces * UNIT_ROWS;
        const int64_t n = engine_min(d.piece, dst->ne[0] - first);
        u.n = engine_min(UNIT_ROWS, dst->ne[1] - t);
        for (int64_t j = 0; j < u.n; j++) {
            u.x[j] = (const float *)(const void *)(x->data + (t + j) * x->nb[1]);
            u.out[j] = (float *)(void *)(dst->data + (t + j) * dst->nb[1]) + first;
            memset(u.out[j], 0, (size_t)n * sizeof(float));
        }
        add_rows(task->cpu, &u, first, n, engine_scratch_buffer(task, d.piece, 0));
    }
}

const struct engine_cpu_op engine_cpu_op_mul_mat_transposed = {.op = &engine_op_mul_mat_transposed,
                                                               .split = ENGINE_SPLIT_OWN,
                                                               .scratch = transposed_scratch,
                                                               .run = transposed_run};
