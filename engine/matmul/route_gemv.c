/* engine/matmul/route_gemv.c: routes gemv and gemv-strided: the type's gemv reads rows in the
 * file's layout, column by column. */
#include "engine/matmul/route_block.h"

void engine_route_gemv_run(const struct engine_matmul_run *run, const struct engine_matmul_block *b)
{
    const struct cpu_prefetch prefetch = run->task->engine->quant.prefetch;
    for (int64_t i = 0; i < b->n; i++) {
        struct quant_act a = engine_matmul_column_act(run, b->type->act, b->columns[i].x_row);
        for (int side = 0; side < route_sides(b); side++) {
            float *out;
            route_outputs(run, b, i, 1, 0, b->n_rows, side * b->n_rows, &out);
            quant_gemv(b->kernel, prefetch, run->p->k, route_side(b, side), (size_t)b->row_bytes,
                       b->n_rows, &a, out);
        }
        route_glu(run, b, i, 1, 0, b->n_rows, b->n_rows);
    }
}

/* Rows r + i * row_stride, i < rows_per_step, r < n_rows; then the rest of the weight. */
void engine_route_gemv_strided_run(const struct engine_matmul_run *run,
                                   const struct engine_matmul_block *b)
{
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
