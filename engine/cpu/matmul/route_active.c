/* engine/cpu/matmul/route_active.c: route active: products some of whose results are known to be
 * zero: those of the up projection where the activated gate is zero.
 *
 * The definition is that of the op (engine/graph.h): such a result is +0. The gate multiplies it by
 * zero, so the product of the two is +0, as with the full product if that is finite, except for the
 * sign. The sign of a zero is lost when activations are quantized; in F16, BF16 and F32 products it
 * can reach nothing but the sign of a sum that is zero. All routes clear these results, so that the
 * bits do not depend on the number of columns, and skipped rows may contain any weights.
 *
 * Most types multiply the rows of a list where they are in the file (reads_lists), those whose
 * kernels have one row per step one by one; kernels of other steps read evenly spaced rows, so that
 * rows are copied together for them. The next rows are prefetched meanwhile. A copied row costs 2.4
 * times as much as in the product of all rows (measured, Q4_0 and Q8_0), so a block of which more
 * than a third is active is computed whole. */
#include "engine/cpu/active_rows.h"
#include "engine/cpu/matmul/route_block.h"
#include <string.h>

/* `active` of result `row` of the block, at the result's place. */
static const float *active_at(const struct engine_matmul_run *run,
                              const struct engine_matmul_block *b, int64_t column, int64_t row)
{
    const char *out = (const char *)route_out(b, column, row);
    return (const float *)(run->p->active->data + (out - run->dst->data));
}

void engine_route_active_clear(const struct engine_matmul_run *run,
                               const struct engine_matmul_block *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        const float *active = active_at(run, b, i, 0);
        float *out = route_out(b, i, 0);
        for (int64_t r = 0; r < b->n_rows; r++) out[r] = active[r] == 0.0f ? 0.0f : out[r];
    }
}

/* Rows of a list, and how many rows later the prefetched one of rows that are multiplied one by one
 * is. */
enum { LIST = 128, ROWS_AHEAD = 4 };

/* Multiplies n rows, copied together. The next rows are prefetched one for each copy: of many
 * prefetches at once the processor drops most. */
static void multiply_copies(const struct engine_matmul_run *run,
                            const struct engine_matmul_block *b, const struct quant_act *a,
                            const void *const *list, int n, int n_next, float *const *out)
{
    const size_t row_bytes = (size_t)quant_row_size(b->type, run->p->k);
    for (int j = 0; j < n; j++) {
        if (j < n_next) quant_prefetch(list[n + j], row_bytes);
        memcpy(run->local + (size_t)j * row_bytes, list[j], row_bytes);
    }
    quant_gemv(b->kernel, run->task->cpu->quant.prefetch, run->p->k, run->local, row_bytes, n,
               (int)b->n, a, out);
}

/* Multiplies n rows of a list, whose length is that of whole steps, for out[column][row]. */
static void multiply_list(const struct engine_matmul_run *run, const struct engine_matmul_block *b,
                          const struct quant_act *a, const void *const *list, int n,
                          float out[][LIST])
{
    const int step = b->kernel->rows_per_step, most = ENGINE_MATMUL_ACTIVE_ROWS / step * step;
    const bool one_by_one = step == 1;
    const size_t row_bytes = (size_t)quant_row_size(b->type, run->p->k);
    if (b->kernel->reads_lists) {
        float *const to[ENGINE_MATMUL_GEMV_COLS] = {out[0], out[1]};
        const struct quant_rows rows = {.list = list,
                                        .row_bytes = row_bytes,
                                        .n = engine_round_up(n, step),
                                        .order = QUANT_ROWS_LISTED};
        quant_gemv_steps(b->kernel, run->p->k, &rows, (int)b->n, a, to);
        return;
    }
    for (int j = 0, some; j < n; j += some) {
        float *to[ENGINE_MATMUL_GEMV_COLS];
        for (int64_t i = 0; i < b->n; i++) to[i] = out[i] + j;
        some = one_by_one ? 1 : (int)engine_min(most, n - j);
        if (!one_by_one) {
            multiply_copies(run, b, a, list + j, some, (int)engine_min(most, n - j - some), to);
            continue;
        }
        if (j + ROWS_AHEAD < n) quant_prefetch(list[j + ROWS_AHEAD], row_bytes);
        quant_gemv(b->kernel, run->task->cpu->quant.prefetch, run->p->k, list[j], row_bytes, 1,
                   (int)b->n, a, to);
    }
}

void engine_route_active_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b)
{
    int64_t at[LIST], row = 0, n_active = 0;
    /* Of the block's columns; with one column twice the same. */
    const float *const gate[2] = {active_at(run, b, 0, 0), active_at(run, b, b->n - 1, 0)};
    for (int64_t r = 0; r < b->n_rows; r++) n_active += engine_row_is_active(gate, 2, r);
    if (3 * n_active > b->n_rows) {
        engine_route_gemv_run(run, b);
        return;
    }
    struct quant_act a[ENGINE_MATMUL_GEMV_COLS];
    for (int64_t i = 0; i < b->n; i++)
        a[i] = engine_matmul_column_act(run, b->type->act, b->columns[i].x_row);
    for (int n; (n = engine_active_rows_next(gate, 2, b->n_rows, LIST, &row, at)) > 0;) {
        const void *list[LIST];
        float products[ENGINE_MATMUL_GEMV_COLS][LIST];
        for (int j = 0; j < LIST; j++) list[j] = b->w + at[engine_min(j, n - 1)] * b->row_bytes;
        multiply_list(run, b, a, list, n, products);
        for (int64_t i = 0; i < b->n; i++)
            for (int j = 0; j < n; j++) *route_out(b, i, at[j]) = products[i][j];
    }
}
