/* engine/matmul/route_gemv.c: routes gemv and gemv-strided: the type's gemv reads rows in the
 * file's layout, column by column, or two columns at once if the type has gemv_pair. */
#include "engine/matmul/route_block.h"

/* Multiplies the block's rows of a side by n columns. */
static void multiply_columns(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b, int side, int64_t n,
                             const struct quant_act *a, float *const *out)
{
    const struct cpu_prefetch prefetch = run->task->engine->quant.prefetch;
    const char *w = route_side(b, side);
    if (n == 2 && b->kernel->gemv_pair) {
        const struct quant_rows rows = {
            w, (size_t)b->row_bytes, b->n_rows, QUANT_ROWS_STRIDED, b->n_rows, prefetch};
        b->kernel->gemv_pair(run->p->k, &rows, a, out);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        quant_gemv(b->kernel, prefetch, run->p->k, w, (size_t)b->row_bytes, b->n_rows, a + j,
                   out[j]);
}

void engine_route_gemv_run(const struct engine_matmul_run *run, const struct engine_matmul_block *b)
{
    for (int64_t i = 0; i < b->n; i += ENGINE_MATMUL_GEMV_COLS) {
        const int64_t n = engine_min(ENGINE_MATMUL_GEMV_COLS, b->n - i);
        struct quant_act a[ENGINE_MATMUL_GEMV_COLS];
        for (int64_t j = 0; j < n; j++)
            a[j] = engine_matmul_column_act(run, b->type->act, b->columns[i + j].x_row);
        for (int side = 0; side < route_sides(b); side++) {
            float *out[ENGINE_MATMUL_GEMV_COLS];
            route_outputs(run, b, i, n, 0, b->n_rows, side * b->n_rows, out);
            multiply_columns(run, b, side, n, a, out);
        }
        route_glu(run, b, i, n, 0, b->n_rows, b->n_rows);
    }
}

/* Rows r + i * row_stride, i < rows_per_step, r < n_rows; then the rest of the weight. With one row
 * per step these are consecutive rows. */
void engine_route_gemv_strided_run(const struct engine_matmul_run *run,
                                   const struct engine_matmul_block *b)
{
    if (b->kernel->rows_per_step == 1) {
        engine_route_gemv_run(run, b);
        return;
    }
    const struct cpu_prefetch prefetch = run->task->engine->quant.prefetch;
    const struct quant_rows rows = {
        b->w, (size_t)b->row_bytes, b->n_rows, QUANT_ROWS_STRIDED, b->row_stride, prefetch};
    for (int64_t i = 0; i < b->n; i++) {
        struct quant_act a = engine_matmul_column_act(run, b->type->act, b->columns[i].x_row);
        float *out = route_out(b, i, 0);
        if (b->n_rows > 0) b->kernel->gemv(run->p->k, &rows, &a, out);
        quant_gemv(b->kernel, prefetch, run->p->k, b->w + b->rest_at * b->row_bytes, rows.row_bytes,
                   b->rest, &a, out + b->rest_at);
    }
}
