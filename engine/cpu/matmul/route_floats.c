/* engine/cpu/matmul/route_floats.c: routes packed and rows: float weights (F32, F16, BF16), packed
 * into bundles of rows or in place. The inner loops are in engine/cpu/isa/tile_floats_*.c. */
#include "engine/cpu/matmul/route_block.h"

/* ---- packed ---- */

enum { ROWS = ENGINE_TILE_FLOAT_ROWS };
/* Bytes of packed rows that all columns of a group of column panels read from the L2 cache. */
enum { LEAVES_BUDGET = 384 * 1024, GROUP_PANELS = 8 };

/* ROWS rows of a block from `row` on, or half as many of each side. */
struct row_set {
    const struct engine_matmul_block *block;
    const struct engine_tile_packed *packed;
    int64_t row, n_rows, per_side;
};

static void pack_set(const struct engine_matmul_run *run, const struct row_set *s, int64_t n_steps)
{
    const struct engine_matmul_block *b = s->block;
    const float fill = b->type->act->layout == QUANT_LAYOUT_F32 ? -0.0f : 0.0f;
    const int n = s->packed->rows;
    for (int64_t i = 0; i < ROWS; i += 8) {
        const char *row[8];
        for (int j = 0; j < 8; j++)
            row[j] = route_side(b, (int)(i / s->per_side)) +
                     (s->row + engine_min(i % s->per_side + j, s->n_rows - 1)) * b->row_bytes;
        engine_matmul_pack_rows(run, b->type, row, fill, n,
                                (float *)run->local + i / n * n * n_steps * 16 + i % n);
    }
}

/* Multiplies the set by a column panel. */
static void multiply_set(const struct engine_matmul_run *run, const struct row_set *s,
                         const struct engine_tile_leaves *leaves, int64_t i)
{
    const struct engine_matmul_block *b = s->block;
    const int64_t n_cols = engine_min(ENGINE_TILE_COLS, b->n - i);
    float *out[ENGINE_TILE_COLS];
    route_outputs(run, b, i, n_cols, s->row, s->per_side, 0, out);
    s->packed->product(leaves, (const float *)run->local,
                       (const float *)engine_matmul_floats_at(run, b->type->act, b->col_panel, i),
                       b->up ? ROWS : (int)s->n_rows, (int)n_cols, out);
    if (leaves->end == 16) route_glu(run, b, i, n_cols, s->row, s->per_side, s->n_rows);
}

/* Packs a set of rows, then multiplies it by all columns: as many leaves at a time as fit the L2
 * cache, which a group of column panels reads. The last quarter of the steps prefetches the weights
 * after the set. */
void engine_route_packed_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b)
{
    struct engine_tile_tree tree[GROUP_PANELS];
    struct row_set s = {.block = b,
                        .packed = engine_matmul_packed(run, b->type->act),
                        .per_side = ROWS / route_sides(b)};
    const int64_t n_steps = engine_matmul_packed_steps(run, s.packed);
    const int64_t leaf_bytes = ROWS * n_steps * (int64_t)sizeof(float);
    const int at_once = (int)engine_max(1, engine_min(16, LEAVES_BUDGET / leaf_bytes));
    const int64_t n_panels = (b->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS;
    const int64_t steps = n_panels * ((16 + at_once - 1) / at_once), quarter = (steps + 3) / 4;
    for (; s.row < b->n_rows; s.row += s.per_side) {
        struct route_prefetch prefetch =
            route_prefetch(run, b, s.row + s.per_side, s.per_side, 0, 1, quarter, 0);
        s.n_rows = engine_min(s.per_side, b->n_rows - s.row);
        pack_set(run, &s, n_steps);
        for (int64_t first = 0, step = 0; first < n_panels; first += GROUP_PANELS)
            for (int leaf = 0; leaf < 16; leaf += at_once)
                for (int64_t i = first; i < engine_min(first + GROUP_PANELS, n_panels); i++) {
                    if (step++ >= steps - quarter) route_prefetch_step(&prefetch);
                    const struct engine_tile_leaves leaves = {
                        .first = leaf,
                        .end = (int)engine_min(16, leaf + at_once),
                        .n_steps = n_steps,
                        .tree = &tree[i - first]};
                    multiply_set(run, &s, &leaves, i * ENGINE_TILE_COLS);
                }
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
