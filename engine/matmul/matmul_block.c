/* engine/matmul/matmul_block.c: a block of a product: some weight rows by the columns that meet
 * them (phase 3 of matmul_run.c).
 *
 * Owns: what of a block is in which cache at once, and when weights are prefetched. All routes give
 * the same bits (quant/quant.h), so their choice is a matter of speed alone. Refuses: which worker
 * has which block (matmul_run.c), inner loops (tile_*.c, quant/). */
#include "engine/matmul/matmul_run.h"
#include "quant/stream.h"

static float *block_out(const struct engine_matmul_block *c, int64_t column, int64_t row)
{
    return (float *)(c->columns[column].out + c->out_offset) + row;
}

/* ---- Gates ---- */

static const char *side_at(const struct engine_matmul_block *c, int side)
{
    return side == 0 ? c->w : c->up;
}

static int sides_of(const struct engine_matmul_block *c)
{
    return c->up ? 2 : 1;
}

/* Where column i of a group waits until both sides are there: [sides][gate_stride]. */
static float *gate_at(const struct engine_matmul_run *run, int64_t gate_stride, int64_t i)
{
    return (float *)(run->own + run->p->gate_at) + 2 * gate_stride * i;
}

/* Where a kernel puts what rows give with columns i .. i + n_cols - 1 of the block: result `row`,
 * or, with a gate, place `at` of those that wait. */
static void results_at(const struct engine_matmul_run *run, const struct engine_matmul_block *c,
                       int64_t i, int64_t n_cols, int64_t row, int64_t gate_stride, int64_t at,
                       float **out)
{
    for (int64_t j = 0; j < n_cols; j++)
        out[j] = c->up ? gate_at(run, gate_stride, j) + at : block_out(c, i + j, row);
}

/* With a gate: makes n_rows results, from `row` on, of those that wait. */
static void glu_epilogue(const struct engine_matmul_run *run, const struct engine_matmul_block *c,
                         int64_t i, int64_t n_cols, int64_t row, int64_t gate_stride,
                         int64_t n_rows)
{
    for (int64_t j = 0; c->up && j < n_cols; j++) {
        const float *gate = gate_at(run, gate_stride, j);
        run->task->engine->vec.glu[run->dst->param[0].i](n_rows, gate, gate + gate_stride,
                                                         block_out(c, i + j, row));
    }
}

/* ---- Rows as they lie in the file ---- */

static void block_by_gemv(const struct engine_matmul_run *run, const struct engine_matmul_block *c)
{
    const struct cpu_prefetch prefetch = run->task->engine->quant.prefetch;
    for (int64_t i = 0; i < c->n; i++) {
        struct quant_act a = engine_matmul_column_act(run, c->type->act, c->columns[i].x_row);
        for (int side = 0; side < sides_of(c); side++) {
            float *out;
            results_at(run, c, i, 1, 0, c->n_rows, side * c->n_rows, &out);
            quant_gemv(c->kernel, prefetch, run->p->k, side_at(c, side), (size_t)c->row_bytes,
                       c->n_rows, &a, out);
        }
        glu_epilogue(run, c, i, 1, 0, c->n_rows, c->n_rows);
    }
}

/* Rows of each of gemv's streams, and the rest of the weight. */
static void block_by_parts(const struct engine_matmul_run *run, const struct engine_matmul_block *c)
{
    const struct cpu_prefetch prefetch = run->task->engine->quant.prefetch;
    const struct quant_rows rows = {
        c->w, (size_t)c->row_bytes, c->n_rows, QUANT_ROWS_STRIDED, c->apart, prefetch};
    for (int64_t i = 0; i < c->n; i++) {
        struct quant_act a = engine_matmul_column_act(run, c->type->act, c->columns[i].x_row);
        float *out = block_out(c, i, 0);
        if (c->n_rows > 0) c->kernel->gemv(run->p->k, &rows, &a, out);
        quant_gemv(c->kernel, prefetch, run->p->k, c->w + c->rest_at * c->row_bytes, rows.row_bytes,
                   c->rest, &a, out + c->rest_at);
    }
}

/* Prefetches weights that come later, a share of them at each of some steps, in address order. */
struct prefetcher {
    const char *at[2];   /* of each side */
    int64_t left, share; /* in bytes, of a side */
    bool to_l1;          /* cpu_prefetch.to_l1 */
};

/* For bytes `from` .. `to` - 1, counted from the block's row r on. */
static struct prefetcher prefetcher_for(const struct engine_matmul_run *run,
                                        const struct engine_matmul_block *c, int64_t r,
                                        int64_t from, int64_t to, int64_t n_steps)
{
    struct prefetcher a = {.left = to - from,
                           .share = engine_round_up((to - from + n_steps - 1) / n_steps, 64),
                           .to_l1 = run->task->engine->quant.prefetch.to_l1};
    for (int i = 0; i < sides_of(c); i++) a.at[i] = side_at(c, i) + r * c->row_bytes + from;
    return a;
}

static void prefetch_next(struct prefetcher *a)
{
    const int64_t bytes = engine_min(a->left, a->share);
    for (int i = 0; i < 2 && a->at[i]; i++) {
        quant_prefetch_single(a->at[i], (size_t)bytes, a->to_l1);
        a->at[i] += bytes;
    }
    a->left -= bytes;
}

/* ---- Panels ---- */

/* A K-block of some of the block's rows, whose panels are in cache together: with a gate those of
 * one side, `gate_stride` rows of whole panels, then those of the other. */
struct part {
    const struct engine_matmul_block *block;
    int64_t row, n_rows, gate_stride;
    int64_t n_places, tile; /* rows of all panels; those that a tile takes at once */
    struct engine_matmul_k_block k_block;
    bool last;                    /* of the K-blocks */
    const char *columns;          /* that K-block of the block's first group, */
    int64_t group_bytes;          /* which the next group's is behind */
    struct prefetcher prefetcher; /* for what is behind those rows */
};

/* Unpacking goes by so many elements of 16 rows. */
enum { UNPACK_ELEMENTS = 256 };

static int64_t unpack_steps(const struct part *p)
{
    const int64_t once = UNPACK_ELEMENTS / p->block->type->act->block_len;
    const int64_t n_panels = p->gate_stride / QUANT_PANEL_ROWS * sides_of(p->block);
    return n_panels * ((p->k_block.n_blocks + once - 1) / once);
}

/* 16 rows, of which n are there; the last one stands for those that are missing. */
static char *unpack_panel(struct part *p, const char *w, int64_t n, char *to)
{
    const struct quant_type *type = p->block->type;
    const int64_t once = UNPACK_ELEMENTS / type->act->block_len;
    const char *row[QUANT_PANEL_ROWS];
    for (int64_t i = 0; i < QUANT_PANEL_ROWS; i++)
        row[i] = w + engine_min(i, n - 1) * p->block->row_bytes;
    for (int64_t b = 0; b < p->k_block.n_blocks; b += once) {
        const int64_t some = engine_min(once, p->k_block.n_blocks - b);
        prefetch_next(&p->prefetcher);
        p->block->kernel->unpack(p->k_block.first + b, some, (const void *const *)row, to);
        to += some * engine_matmul_panel_bytes(type);
    }
    return to;
}

/* One panel behind the other. */
static void unpack_part(struct part *p, char *to)
{
    const struct engine_matmul_block *c = p->block;
    for (int side = 0; side < sides_of(c); side++)
        for (int64_t r = 0; r < p->n_rows; r += QUANT_PANEL_ROWS)
            to = unpack_panel(p, side_at(c, side) + (p->row + r) * c->row_bytes, p->n_rows - r, to);
}

/* The part's rows from place `at` on, as many as a tile takes at once, by a group of columns. */
static void multiply_tile(const struct engine_matmul_run *run, const struct part *p, int64_t at,
                          int64_t group)
{
    const struct engine_matmul_block *c = p->block;
    const int64_t i = group * ENGINE_TILE_COLS, sides = sides_of(c), panel = at / QUANT_PANEL_ROWS;
    const int64_t panel_bytes = p->k_block.n_blocks * engine_matmul_panel_bytes(c->type);
    const void *w = run->own + panel * panel_bytes, *x = p->columns + group * p->group_bytes;
    struct engine_tile_sums *sums = (struct engine_tile_sums *)(run->own + run->p->sums_at);
    /* Stores would wait for pages; with few columns memory is busy with weights. */
    const bool far_apart = run->dst->nb[1] >= QUANT_PAGE && c->n > ENGINE_TILE_COLS;
    float *out[ENGINE_TILE_COLS];
    const struct engine_tile_to to = {
        .sums = sums + group * sides + panel % sides,
        .first = p->k_block.first == 0,
        .last = p->last,
        .n_rows = (int)engine_min(p->tile, p->n_places - at),
        .n_cols = (int)engine_min(ENGINE_TILE_COLS, c->n - i),
        .out = out,
    };
    if (to.last) results_at(run, c, i, to.n_cols, p->row + at, p->gate_stride, at, out);
    for (int j = 0; to.last && far_apart && j < to.n_cols; j++)
        quant_prefetch_written(block_out(c, i + j, p->row + at / sides),
                               (size_t)(to.n_rows / sides) * sizeof(float));
    if (c->type->act->layout == QUANT_LAYOUT_256)
        run->tile->panel256(c->kernel->panel, p->k_block.n_blocks, w, x, &to);
    else
        run->tile->panel32(c->kernel->panel, p->k_block.n_blocks, w, x, &to);
}

/* All of the part by that group. */
static void multiply_group(const struct engine_matmul_run *run, const struct part *p, int64_t group)
{
    const struct engine_matmul_block *c = p->block;
    const int64_t i = group * ENGINE_TILE_COLS;
    for (int64_t at = 0; at < p->n_places; at += p->tile) multiply_tile(run, p, at, group);
    if (p->last)
        glu_epilogue(run, c, i, engine_min(ENGINE_TILE_COLS, c->n - i), p->row, p->gate_stride,
                     p->n_rows);
}

/* Part by part: its panels stay in cache while they meet all columns, group by group. By K-blocks
 * it is the rows of one tile, which the L1 cache holds; sums wait in memory from one K-block to
 * the next. Else sums stay in registers over all of k: a part is as many rows as the L2 cache
 * holds, and a group of columns stays in the L1 cache; with few columns, the rows of one tile. The
 * weights behind a part, most likely this worker's next, are prefetched meanwhile: 16 rows side by
 * side are too many streams for the processor to see by itself, and unpacking would wait for
 * memory, where multiplying does not. */
static void block_by_panels(const struct engine_matmul_run *run,
                            const struct engine_matmul_block *c)
{
    enum { FEW_COLS = 32 };
    const struct engine_matmul_act *act = &run->p->act[c->type->act->index];
    const int n_panels = engine_matmul_panels(&run->task->engine->quant, c->type);
    const bool long_rows = c->route == ENGINE_ROUTE_PANELS && c->n > FEW_COLS;
    const int64_t few = (n_panels + sides_of(c) - 1) / sides_of(c) * QUANT_PANEL_ROWS;
    const int64_t rows = long_rows ? c->n_rows : few, bytes = rows * c->row_bytes;
    const int64_t n_groups = (c->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS;
    for (int64_t r = 0; r < c->n_rows; r += rows) {
        const int64_t n_rows = engine_min(rows, c->n_rows - r);
        const int64_t gate_stride = engine_round_up(n_rows, QUANT_PANEL_ROWS);
        struct part p = {.block = c,
                         .row = r,
                         .n_rows = n_rows,
                         .gate_stride = gate_stride,
                         .n_places = c->up ? 2 * gate_stride : n_rows,
                         .tile = n_panels * QUANT_PANEL_ROWS};
        for (int64_t s = 0; s < act->n_k_blocks; s++) {
            p.k_block = engine_matmul_k_block(act, run->p->k, s);
            p.last = s == act->n_k_blocks - 1;
            p.columns = engine_matmul_k_block_at(run, c->type->act, c->group, p.k_block);
            p.group_bytes = p.k_block.n_blocks * act->block_bytes;
            p.prefetcher =
                prefetcher_for(run, c, r + rows, bytes * s / act->n_k_blocks,
                               bytes * (s + 1) / act->n_k_blocks, unpack_steps(&p) + n_groups);
            unpack_part(&p, run->own);
            for (int64_t group = 0; group < n_groups; group++) {
                prefetch_next(&p.prefetcher);
                multiply_group(run, &p, group);
            }
        }
    }
}

/* ---- Floats ---- */

/* Rows of each side; those of the other begin at row `gate_stride`. */
static void pack_rows(const struct engine_matmul_run *run, const struct engine_matmul_block *c,
                      const struct engine_tile_packed *packed, int64_t gate_stride)
{
    const float fill = c->type->act->layout == QUANT_LAYOUT_F32 ? -0.0f : 0.0f;
    const int64_t n = engine_round_up(c->n_rows, packed->rows);
    for (int64_t i = 0; i < n * sides_of(c); i++) {
        const int64_t r = i % n;
        const char *w = side_at(c, (int)(i / n)) + engine_min(r, c->n_rows - 1) * c->row_bytes;
        engine_matmul_pack_row(run, packed, c->type, w, fill, packed->rows, i / n * gate_stride + r,
                               (float *)run->own);
    }
}

/* All rows of the block, so that a group of columns is read once for all of them. The last quarter
 * of the steps prefetches the weights behind the block. */
static void block_by_packed(const struct engine_matmul_run *run,
                            const struct engine_matmul_block *c)
{
    const struct engine_tile_packed *packed = engine_matmul_packed(run, c->type->act);
    enum { ROWS = ENGINE_TILE_FLOAT_ROWS };
    const int64_t bundle = engine_matmul_packed_steps(run) * 16; /* floats of a row */
    const int64_t gate_stride = engine_round_up(c->n_rows, ROWS), per_side = gate_stride / ROWS;
    const int64_t per_group = per_side * sides_of(c);
    const int64_t steps = per_group * ((c->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS);
    const int64_t quarter = (steps + 3) / 4;
    struct prefetcher prefetcher =
        prefetcher_for(run, c, c->n_rows, 0, c->n_rows * c->row_bytes, quarter);
    pack_rows(run, c, packed, gate_stride);
    for (int64_t step = 0; step < steps; step++) {
        const int64_t at = step % per_group * ROWS, i = step / per_group * ENGINE_TILE_COLS;
        const int64_t r = step % per_side * ROWS; /* of its side */
        const int n_cols = (int)engine_min(ENGINE_TILE_COLS, c->n - i);
        float *out[ENGINE_TILE_COLS];
        results_at(run, c, i, n_cols, r, gate_stride, at, out);
        if (step >= steps - quarter) prefetch_next(&prefetcher);
        packed->product(engine_matmul_packed_steps(run), (const float *)run->own + at * bundle,
                        (const float *)engine_matmul_floats_at(run, c->type->act,
                                                               c->group + i / ENGINE_TILE_COLS),
                        (int)engine_min(ROWS, c->n_rows - r), n_cols, out);
        if (step % per_group == per_group - 1)
            glu_epilogue(run, c, i, n_cols, 0, gate_stride, c->n_rows);
    }
}

/* Rows as floats: in place where they are, else decoded into this worker's scratch, `at` rows from
 * its start. */
static const float *float_rows(const struct engine_matmul_run *run,
                               const struct engine_matmul_block *c, const char *w, int64_t at,
                               int64_t *stride)
{
    if (c->type->id == QUANT_F32 && (uintptr_t)w % 4 == 0 && c->row_bytes % 4 == 0) {
        *stride = c->row_bytes / 4;
        return (const float *)w;
    }
    *stride = (run->p->k + 15) / 16 * 16;
    float *to = (float *)run->own + at * *stride;
    for (int64_t r = 0; r < c->n_rows; r++)
        c->kernel->decode(0, run->p->k, w + r * c->row_bytes, to + r * *stride);
    return to;
}

/* Rows as they lie, of BF16, or as floats, by the columns as they lie. */
static void block_by_rows(const struct engine_matmul_run *run, const struct engine_matmul_block *c)
{
    const bool floats = c->type->act->layout == QUANT_LAYOUT_F32;
    int64_t stride[2];
    const float *w[2];
    for (int side = 0; floats && side < sides_of(c); side++)
        w[side] = float_rows(run, c, side_at(c, side), side * c->n_rows, &stride[side]);
    for (int64_t i = 0; i < c->n; i += ENGINE_TILE_COLS) {
        const int64_t n_cols = engine_min(ENGINE_TILE_COLS, c->n - i), k = run->p->k;
        const float *f32[ENGINE_TILE_COLS];
        const uint16_t *bf16[ENGINE_TILE_COLS];
        float *out[ENGINE_TILE_COLS];
        for (int64_t j = 0; j < n_cols; j++) {
            struct quant_act a =
                engine_matmul_column_act(run, c->type->act, c->columns[i + j].x_row);
            f32[j] = a.f32;
            bf16[j] = a.bf16;
        }
        for (int side = 0; side < sides_of(c); side++) {
            results_at(run, c, i, n_cols, 0, c->n_rows, side * c->n_rows, out);
            if (floats)
                run->tile->f32(k, w[side], stride[side], c->n_rows, f32, n_cols, out);
            else
                run->tile->bf16(k, side_at(c, side), c->row_bytes, c->n_rows, bf16, n_cols, out);
        }
        glu_epilogue(run, c, i, n_cols, 0, c->n_rows, c->n_rows);
    }
}

void engine_matmul_block_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *c)
{
    static void (*const by_route[ENGINE_ROUTE_COUNT])(const struct engine_matmul_run *run,
                                                      const struct engine_matmul_block *c) = {
        [ENGINE_ROUTE_GEMV_STRIDED] = block_by_parts, [ENGINE_ROUTE_GEMV] = block_by_gemv,
        [ENGINE_ROUTE_PACKED] = block_by_packed,      [ENGINE_ROUTE_ROWS] = block_by_rows,
        [ENGINE_ROUTE_PANELS_K] = block_by_panels,    [ENGINE_ROUTE_PANELS] = block_by_panels,
    };
    by_route[c->route](run, c);
}
