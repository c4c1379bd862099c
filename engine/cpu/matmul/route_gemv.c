/* engine/cpu/matmul/route_gemv.c: routes gemv and gemv-strided: the type's gemv reads rows in the
 * file's layout and multiplies them by one column, or by a few at once. */
#include "engine/cpu/matmul/route_block.h"

void engine_route_gemv_run(const struct engine_matmul_run *run, const struct engine_matmul_block *b)
{
    for (int64_t i = 0; i < b->n; i += QUANT_FEW_COLUMNS) {
        const int64_t n = engine_min(QUANT_FEW_COLUMNS, b->n - i);
        struct quant_act a[QUANT_FEW_COLUMNS];
        for (int64_t j = 0; j < n; j++)
            a[j] = engine_matmul_column_act(run, b->type->act, b->columns[i + j].x_row);
        for (int side = 0; side < route_sides(b); side++) {
            float *out[QUANT_FEW_COLUMNS];
            route_outputs(run, b, i, n, 0, b->n_rows, side * b->n_rows, out);
            quant_gemv(b->kernel, run->task->cpu->quant.prefetch, run->p->k, route_side(b, side),
                       (size_t)b->row_bytes, b->n_rows, (int)n, a, out);
        }
        route_glu(run, b, i, n, 0, b->n_rows, b->n_rows);
    }
}

/* Multiplies rows r + i * row_stride, i < rows_per_step, r < n_rows, and then the rest of the
 * weight. With one row per step these are consecutive rows. */
void engine_route_gemv_strided_run(const struct engine_matmul_run *run,
                                   const struct engine_matmul_block *b)
{
    if (b->kernel->rows_per_step == 1) {
        engine_route_gemv_run(run, b);
        return;
    }
    const struct cpu_prefetch prefetch = run->task->cpu->quant.prefetch;
    const struct quant_rows rows = {.w = b->w,
                                    .row_bytes = (size_t)b->row_bytes,
                                    .n = b->n_rows,
                                    .order = QUANT_ROWS_STRIDED,
                                    .stride = b->row_stride,
                                    .prefetch = prefetch};
    struct quant_act a[ENGINE_MATMUL_GEMV_COLS];
    float *out[ENGINE_MATMUL_GEMV_COLS], *rest[ENGINE_MATMUL_GEMV_COLS];
    for (int64_t i = 0; i < b->n; i++) {
        a[i] = engine_matmul_column_act(run, b->type->act, b->columns[i].x_row);
        out[i] = route_out(b, i, 0);
        rest[i] = out[i] + b->rest_at;
    }
    quant_gemv_steps(b->kernel, run->p->k, &rows, (int)b->n, a, out);
    quant_gemv(b->kernel, prefetch, run->p->k, b->w + b->rest_at * b->row_bytes, rows.row_bytes,
               b->rest, (int)b->n, a, rest);
}
