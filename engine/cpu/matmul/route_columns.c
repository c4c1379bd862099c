/* engine/cpu/matmul/route_columns.c: products of a matrix, or of experts, that are also stored by
 * columns with one or two columns of x each: if most elements of x are zero, only the columns of
 * the others are read.
 *
 * quant/columns.h proves that the bits are those of the rows, except for the sign of results that
 * are zero with F16 weights: those are computed by rows. Measured, the rows are faster from a third
 * of elements that are not zero on (Q4_0; Q8_0 from a fourth, F16 from half). */
#include "engine/cpu/matmul/route_block.h"

enum { MAX_PERCENT = 30, MIN_ROWS = 128, PIECES_PER_WORKER = 2, UNIT = 64 };

static struct quant_act column_of(const struct engine_matmul_run *run, int64_t x_row)
{
    return engine_matmul_column_act(run, run->p->w[0]->type->act, x_row);
}

/* The number of elements of row x_row of x that are not zero. */
static int64_t count_active(const struct engine_matmul_run *run, int64_t x_row)
{
    const struct quant_act a = column_of(run, x_row);
    int64_t n = 0;
    if (run->p->w[0]->type->act->layout == QUANT_LAYOUT_F32)
        for (int64_t i = 0; i < run->p->k; i++) n += a.f32[i] != 0.0f;
    else
        for (int64_t i = 0; i < run->p->k; i++) n += a.q[i] != 0;
    return n;
}

/* Whether no gemm has many columns, and most elements are zero. */
static bool suits(const struct engine_matmul_run *run)
{
    int64_t n_active = 0;
    for (int64_t g = 0; g < run->header->n_gemms; g++) {
        const struct engine_matmul_gemm *gemm = &run->gemms[g];
        if (gemm->n > ENGINE_MATMUL_GEMV_COLS) return false;
        for (int64_t c = 0; c < gemm->n; c++)
            n_active += count_active(run, run->columns[gemm->first + c].x_row);
    }
    return 100 * n_active <= MAX_PERCENT * run->p->k * run->header->n_gemms;
}

/* Computes the results first .. first + n - 1 that are zero by the rows of matrix w. */
static void repeat_zeros(const struct engine_matmul_run *run, const char *w,
                         const struct quant_act *a, int64_t first, int64_t n, float *out)
{
    const struct engine_tensor *of = run->p->w[0];
    for (int64_t i = 0; i < n; i++) {
        float *to = out + i;
        if (*to == 0.0f)
            quant_gemv(&run->task->cpu->quant.type[of->type->id], run->task->cpu->quant.prefetch,
                       run->p->k, w + (first + i) * of->nb[1], (size_t)of->nb[1], 1, 1, a, &to);
    }
}

/* Rows first .. first + n - 1 of a gemm. */
static void multiply(const struct engine_matmul_run *run, const struct engine_matmul_gemm *gemm,
                     int64_t first, int64_t n)
{
    const struct engine_tensor *w = run->p->w[0], *copy = run->p->columns;
    const struct quant_columns columns = {run->p->k, w->ne[1],
                                          copy->data + gemm->batch2 * copy->nb[1],
                                          run->task->cpu->quant.prefetch.to_l1};
    for (int64_t c = 0; c < gemm->n; c++) {
        const struct engine_matmul_column *column = &run->columns[gemm->first + c];
        const struct quant_act a = column_of(run, column->x_row);
        float *out = (float *)column->out + first;
        run->task->cpu->quant.type[w->type->id].columns(&columns, first, n, &a, out);
        if (w->type->act->layout == QUANT_LAYOUT_F32)
            repeat_zeros(run, w->data + gemm->batch2 * w->nb[2], &a, first, n, out);
    }
}

bool engine_route_columns_run(const struct engine_matmul_run *run)
{
    const struct engine_worker *worker = run->task->worker;
    const int64_t n_rows = run->p->w[0]->ne[1], n_gemms = run->header->n_gemms;
    if (!suits(run)) return false;
    const int64_t share = n_rows * n_gemms / (PIECES_PER_WORKER * worker->nth);
    const int64_t rows = engine_round_up(engine_max(MIN_ROWS, engine_min(share, n_rows)), UNIT);
    const int64_t pieces = (n_rows + rows - 1) / rows;
    for (int64_t i; (i = engine_pool_take(worker, pieces * n_gemms)) < pieces * n_gemms;) {
        const int64_t first = i % pieces * rows;
        multiply(run, &run->gemms[i / pieces], first, engine_min(rows, n_rows - first));
    }
    return true;
}
