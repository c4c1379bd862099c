/* engine/cpu/matmul/route_columns.c: products of a matrix that is also stored by columns with one
 * or two columns of x: if most elements of x are zero, only the columns of the others are read.
 *
 * quant/columns.h proves that the bits are those of the rows, except for the sign of results that
 * are zero with F16 weights: those are computed by rows. Measured, the rows are faster from a third
 * of elements that are not zero on (Q4_0; Q8_0 from a fourth, F16 from half). */
#include "engine/cpu/matmul/route_block.h"

enum { MAX_PERCENT = 30, MIN_ROWS = 128, PIECES_PER_WORKER = 2, UNIT = 64 };

static struct quant_act column_of(const struct engine_matmul_run *run, int64_t i)
{
    return engine_matmul_column_act(run, run->p->w[0]->type->act, i);
}

/* The number of elements of a column that are not zero. */
static int64_t count_active(const struct engine_matmul_run *run, const struct quant_act *a)
{
    int64_t n = 0;
    if (run->p->w[0]->type->act->layout == QUANT_LAYOUT_F32)
        for (int64_t i = 0; i < run->p->k; i++) n += a->f32[i] != 0.0f;
    else
        for (int64_t i = 0; i < run->p->k; i++) n += a->q[i] != 0;
    return n;
}

/* Computes the results first .. first + n - 1 that are zero by rows. */
static void repeat_zeros(const struct engine_matmul_run *run, const struct quant_act *a,
                         int64_t first, int64_t n, float *out)
{
    const struct engine_tensor *w = run->p->w[0];
    for (int64_t i = 0; i < n; i++) {
        float *to = out + i;
        if (*to == 0.0f)
            quant_gemv(&run->task->cpu->quant.type[w->type->id], run->task->cpu->quant.prefetch,
                       run->p->k, w->data + (first + i) * w->nb[1], (size_t)w->nb[1], 1, 1, a, &to);
    }
}

bool engine_route_columns_run(const struct engine_matmul_run *run)
{
    const struct engine_matmul *p = run->p;
    const struct engine_worker *worker = run->task->worker;
    const struct quant_kernel *kernel = &run->task->cpu->quant.type[p->w[0]->type->id];
    const struct quant_columns columns = {p->k, p->w[0]->ne[1], p->columns->data};
    int64_t n_active = 0;
    if (p->n_cols > ENGINE_MATMUL_GEMV_COLS) return false;
    for (int64_t i = 0; i < p->n_cols; i++) {
        const struct quant_act a = column_of(run, i);
        n_active += count_active(run, &a);
    }
    if (100 * n_active > MAX_PERCENT * p->k) return false;
    const int64_t rows = engine_round_up(
        engine_max(MIN_ROWS, columns.n_rows / (PIECES_PER_WORKER * worker->nth)), UNIT);
    const int64_t pieces = (columns.n_rows + rows - 1) / rows;
    for (int64_t i; (i = engine_pool_take(worker, pieces)) < pieces;) {
        const int64_t first = i * rows, n = engine_min(rows, columns.n_rows - first);
        for (int64_t c = 0; c < p->n_cols; c++) {
            const struct quant_act a = column_of(run, c);
            float *out = (float *)(run->dst->data + c * run->dst->nb[1]) + first;
            kernel->columns(&columns, first, n, &a, out);
            if (p->w[0]->type->act->layout == QUANT_LAYOUT_F32)
                repeat_zeros(run, &a, first, n, out);
        }
    }
    return true;
}
