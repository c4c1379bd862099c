/* engine/cpu/matmul/route_floats.c: routes packed and rows: float weights (F32, F16, BF16), packed
 * into bundles of rows or in place. The inner loops are in engine/cpu/isa/tile_floats_*.c. */
#include "engine/cpu/matmul/route_block.h"

/* ---- packed ---- */

/* Packs the rows of each side; those of the up projection begin at row `gate_stride`. */
static void pack_rows(const struct engine_matmul_run *run, const struct engine_matmul_block *b,
                      const struct engine_tile_packed *packed, int64_t gate_stride)
{
    const float fill = b->type->act->layout == QUANT_LAYOUT_F32 ? -0.0f : 0.0f;
    const int64_t n = engine_round_up(b->n_rows, packed->rows);
    for (int64_t i = 0; i < n * route_sides(b); i++) {
        const int64_t r = i % n;
        const char *w = route_side(b, (int)(i / n)) + engine_min(r, b->n_rows - 1) * b->row_bytes;
        engine_matmul_pack_row(run, packed, b->type, w, fill, packed->rows, i / n * gate_stride + r,
                               (float *)run->local);
    }
}

/* Packs all rows of the block first, so that a column panel is read once for all of them. The last
 * quarter of the steps prefetches the weights after the block. */
void engine_route_packed_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b)
{
    const struct engine_tile_packed *packed = engine_matmul_packed(run, b->type->act);
    enum { ROWS = ENGINE_TILE_FLOAT_ROWS };
    const int64_t n_steps = engine_matmul_packed_steps(run, packed);
    const int64_t bundle = n_steps * 16; /* floats per row */
    const int64_t gate_stride = engine_round_up(b->n_rows, ROWS), per_side = gate_stride / ROWS;
    const int64_t per_col_panel = per_side * route_sides(b);
    const int64_t steps = per_col_panel * ((b->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS);
    const int64_t quarter = (steps + 3) / 4;
    struct route_prefetch prefetch = route_prefetch(run, b, b->n_rows, b->n_rows, 0, 1, quarter, 0);
    pack_rows(run, b, packed, gate_stride);
    for (int64_t step = 0; step < steps; step++) {
        const int64_t at = step % per_col_panel * ROWS, i = step / per_col_panel * ENGINE_TILE_COLS;
        const int64_t r = step % per_side * ROWS; /* row of its side */
        const int n_cols = (int)engine_min(ENGINE_TILE_COLS, b->n - i);
        float *out[ENGINE_TILE_COLS];
        route_outputs(run, b, i, n_cols, r, gate_stride, at, out);
        if (step >= steps - quarter) route_prefetch_step(&prefetch);
        packed->product(n_steps, (const float *)run->local + at * bundle,
                        (const float *)engine_matmul_floats_at(run, b->type->act, b->col_panel, i),
                        (int)engine_min(ROWS, b->n_rows - r), n_cols, out);
        if (step % per_col_panel == per_col_panel - 1)
            route_glu(run, b, i, n_cols, 0, gate_stride, b->n_rows);
    }
}

/* ---- rows ---- */

/* The address of rows as floats: in place if possible, otherwise decoded into this worker's
 * scratch, `at` rows after its start. */
static const float *float_rows(const struct engine_matmul_run *run,
                               const struct engine_matmul_block *b, const char *w, int64_t at,
                               int64_t *stride)
{
    if (b->type->id == QUANT_F32 && (uintptr_t)w % 4 == 0 && b->row_bytes % 4 == 0) {
        *stride = b->row_bytes / 4;
        return (const float *)w;
    }
    *stride = (run->p->k + 15) / 16 * 16;
    float *to = (float *)run->local + at * *stride;
    for (int64_t r = 0; r < b->n_rows; r++)
        b->kernel->decode(0, run->p->k, w + r * b->row_bytes, to + r * *stride);
    return to;
}

/* Multiplies rows, BF16 in place and others as floats, by the columns in place. */
void engine_route_rows_run(const struct engine_matmul_run *run, const struct engine_matmul_block *b)
{
    const bool floats = b->type->act->layout == QUANT_LAYOUT_F32;
    int64_t stride[2];
    const float *w[2];
    for (int side = 0; floats && side < route_sides(b); side++)
        w[side] = float_rows(run, b, route_side(b, side), side * b->n_rows, &stride[side]);
    for (int64_t i = 0; i < b->n; i += ENGINE_TILE_COLS) {
        const int64_t n_cols = engine_min(ENGINE_TILE_COLS, b->n - i), k = run->p->k;
        const float *f32[ENGINE_TILE_COLS];
        const uint16_t *bf16[ENGINE_TILE_COLS];
        float *out[ENGINE_TILE_COLS];
        for (int64_t j = 0; j < n_cols; j++) {
            struct quant_act a =
                engine_matmul_column_act(run, b->type->act, b->columns[i + j].x_row);
            f32[j] = a.f32;
            bf16[j] = a.bf16;
        }
        for (int side = 0; side < route_sides(b); side++) {
            route_outputs(run, b, i, n_cols, 0, b->n_rows, side * b->n_rows, out);
            if (floats)
                run->tile->f32(k, w[side], stride[side], b->n_rows, f32, n_cols, out);
            else
                run->tile->bf16(k, route_side(b, side), b->row_bytes, b->n_rows, bf16, n_cols, out);
        }
        route_glu(run, b, i, n_cols, 0, b->n_rows, b->n_rows);
    }
}
