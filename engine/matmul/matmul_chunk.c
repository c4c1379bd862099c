/* engine/matmul/matmul_chunk.c: a chunk of a product: some weight rows by the columns that meet
 * them (phase 3 of matmul_run.c).
 *
 * Owns: what of a chunk is in which cache at once, and when weights are prefetched. All routes give
 * the same bits (quant/quant.h), so their choice is a matter of speed alone. Refuses: which worker
 * has which chunk (matmul_run.c), inner loops (tile_*.c, quant/). */
#include "engine/matmul/matmul_run.h"
#include "quant/stream.h"

static float *chunk_out(const struct engine_product_chunk *c, int64_t column, int64_t row)
{
    return (float *)(c->columns[column].out + c->out_offset) + row;
}

/* ---- Gates ---- */

static const char *side_at(const struct engine_product_chunk *c, int side)
{
    return side == 0 ? c->w : c->up;
}

static int sides_of(const struct engine_product_chunk *c)
{
    return c->up ? 2 : 1;
}

/* Where column i of a group waits until both sides are there: [sides][half]. */
static float *halves_at(const struct engine_product_run *run, int64_t half, int64_t i)
{
    return (float *)(run->own + run->p->halves_at) + 2 * half * i;
}

/* Where a kernel puts what rows give with columns i .. i + n_cols - 1 of the chunk: result `row`,
 * or, with a gate, place `at` of those that wait. */
static void results_at(const struct engine_product_run *run, const struct engine_product_chunk *c,
                       int64_t i, int64_t n_cols, int64_t row, int64_t half, int64_t at,
                       float **out)
{
    for (int64_t j = 0; j < n_cols; j++)
        out[j] = c->up ? halves_at(run, half, j) + at : chunk_out(c, i + j, row);
}

/* With a gate: makes n_rows results, from `row` on, of those that wait. */
static void open_gate(const struct engine_product_run *run, const struct engine_product_chunk *c,
                      int64_t i, int64_t n_cols, int64_t row, int64_t half, int64_t n_rows)
{
    for (int64_t j = 0; c->up && j < n_cols; j++) {
        const float *gate = halves_at(run, half, j);
        run->task->engine->vec.glu[run->dst->param[0].i](n_rows, gate, gate + half,
                                                         chunk_out(c, i + j, row));
    }
}

/* ---- Rows as they lie in the file ---- */

static void chunk_by_gemv(const struct engine_product_run *run,
                          const struct engine_product_chunk *c)
{
    const struct cpu_prefetch prefetch = run->task->engine->quant.prefetch;
    for (int64_t i = 0; i < c->n; i++) {
        struct quant_act a = engine_product_column_act(run, c->type->act, c->columns[i].x_row);
        for (int side = 0; side < sides_of(c); side++) {
            float *out;
            results_at(run, c, i, 1, 0, c->n_rows, side * c->n_rows, &out);
            quant_gemv(c->kernel, prefetch, run->p->k, side_at(c, side), (size_t)c->row_bytes,
                       c->n_rows, &a, out);
        }
        open_gate(run, c, i, 1, 0, c->n_rows, c->n_rows);
    }
}

/* Rows of each of gemv's streams, and the rest of the weight. */
static void chunk_by_parts(const struct engine_product_run *run,
                           const struct engine_product_chunk *c)
{
    const struct cpu_prefetch prefetch = run->task->engine->quant.prefetch;
    const struct quant_rows rows = {c->w, (size_t)c->row_bytes, c->n_rows, c->apart, prefetch};
    for (int64_t i = 0; i < c->n; i++) {
        struct quant_act a = engine_product_column_act(run, c->type->act, c->columns[i].x_row);
        float *out = chunk_out(c, i, 0);
        if (c->n_rows > 0) c->kernel->gemv(run->p->k, &rows, &a, out);
        quant_gemv(c->kernel, prefetch, run->p->k, c->w + c->rest_at * c->row_bytes, rows.row_bytes,
                   c->rest, &a, out + c->rest_at);
    }
}

/* Asks for weights that come later, a share of them at each of some steps, in address order. */
struct prefetcher {
    const char *at[2];   /* of each side */
    int64_t left, share; /* in bytes, of a side */
    bool to_l1;          /* as the processor wants single streams */
};

/* For bytes `from` .. `to` - 1, counted from the chunk's row r on. */
static struct prefetcher prefetcher_for(const struct engine_product_run *run,
                                        const struct engine_product_chunk *c, int64_t r,
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

/* A slice of some of the chunk's rows, whose panels are in cache together: with a gate those of one
 * side, `half` rows of whole panels, then those of the other. */
struct part {
    const struct engine_product_chunk *chunk;
    int64_t row, n_rows, half;
    int64_t n_places, tile; /* rows of all panels; those that a tile takes at once */
    struct engine_product_slice slice;
    bool last;                    /* of the slices */
    const char *columns;          /* that slice of the chunk's first group, */
    int64_t group_bytes;          /* which the next group's is behind */
    struct prefetcher prefetcher; /* for what is behind those rows */
};

/* Unpacking goes by so many elements of 16 rows. */
enum { UNPACK_ELEMENTS = 256 };

static int64_t unpack_steps(const struct part *p)
{
    const int64_t once = UNPACK_ELEMENTS / p->chunk->type->block_len;
    const int64_t n_panels = p->half / QUANT_PANEL_ROWS * sides_of(p->chunk);
    return n_panels * ((p->slice.n_blocks + once - 1) / once);
}

/* 16 rows, of which n are there; the last one stands for those that are missing. */
static char *unpack_panel(struct part *p, const char *w, int64_t n, char *to)
{
    const struct quant_type *type = p->chunk->type;
    const int64_t once = UNPACK_ELEMENTS / type->block_len;
    const char *row[QUANT_PANEL_ROWS];
    w += p->slice.first * type->block_bytes;
    for (int64_t i = 0; i < QUANT_PANEL_ROWS; i++)
        row[i] = w + engine_min(i, n - 1) * p->chunk->row_bytes;
    for (int64_t b = 0; b < p->slice.n_blocks; b += once) {
        const int64_t some = engine_min(once, p->slice.n_blocks - b);
        prefetch_next(&p->prefetcher);
        p->chunk->kernel->unpack(some, (const void *const *)row, to);
        to += some * engine_product_panel_bytes(type);
        for (int64_t i = 0; i < QUANT_PANEL_ROWS; i++) row[i] += some * type->block_bytes;
    }
    return to;
}

/* One panel behind the other. */
static void unpack_part(struct part *p, char *to)
{
    const struct engine_product_chunk *c = p->chunk;
    for (int side = 0; side < sides_of(c); side++)
        for (int64_t r = 0; r < p->n_rows; r += QUANT_PANEL_ROWS)
            to = unpack_panel(p, side_at(c, side) + (p->row + r) * c->row_bytes, p->n_rows - r, to);
}

/* The part's rows from place `at` on, as many as a tile takes at once, by a group of columns. */
static void multiply_tile(const struct engine_product_run *run, const struct part *p, int64_t at,
                          int64_t group)
{
    const struct engine_product_chunk *c = p->chunk;
    const int64_t i = group * ENGINE_TILE_COLS, sides = sides_of(c), panel = at / QUANT_PANEL_ROWS;
    const int64_t panel_bytes = p->slice.n_blocks * engine_product_panel_bytes(c->type);
    const void *w = run->own + panel * panel_bytes, *x = p->columns + group * p->group_bytes;
    struct engine_tile_sums *sums = (struct engine_tile_sums *)(run->own + run->p->sums_at);
    /* Stores would wait for pages; with few columns memory is busy with weights. */
    const bool far_apart = run->dst->nb[1] >= QUANT_PAGE && c->n > ENGINE_TILE_COLS;
    float *out[ENGINE_TILE_COLS];
    const struct engine_tile_to to = {
        .sums = sums + group * sides + panel % sides,
        .first = p->slice.first == 0,
        .last = p->last,
        .n_rows = (int)engine_min(p->tile, p->n_places - at),
        .n_cols = (int)engine_min(ENGINE_TILE_COLS, c->n - i),
        .out = out,
    };
    if (to.last) results_at(run, c, i, to.n_cols, p->row + at, p->half, at, out);
    for (int j = 0; to.last && far_apart && j < to.n_cols; j++)
        quant_prefetch_written(chunk_out(c, i + j, p->row + at / sides),
                               (size_t)(to.n_rows / sides) * sizeof(float));
    if (c->type->act == QUANT_ACT_Q8_32)
        run->tile->panel32(c->kernel->panel, p->slice.n_blocks, w, x, &to);
    else
        run->tile->panel256(c->kernel->panel, p->slice.n_blocks, w, x, &to);
}

/* All of the part by that group. */
static void multiply_group(const struct engine_product_run *run, const struct part *p,
                           int64_t group)
{
    const struct engine_product_chunk *c = p->chunk;
    const int64_t i = group * ENGINE_TILE_COLS;
    for (int64_t at = 0; at < p->n_places; at += p->tile) multiply_tile(run, p, at, group);
    if (p->last)
        open_gate(run, c, i, engine_min(ENGINE_TILE_COLS, c->n - i), p->row, p->half, p->n_rows);
}

/* Part by part: its panels stay in cache while they meet all columns, group by group. By slices of
 * k, it is the rows of one tile, which the L1 cache holds; sums wait in memory from one slice to
 * the next. Else sums stay in registers over all of k: a part is as many rows as the L2 cache
 * holds, and a group of columns stays in the L1 cache; with few columns, the rows of one tile. The
 * weights behind a part, most likely this worker's next, are prefetched meanwhile: 16 rows side by
 * side are too many streams for the processor to see by itself, and unpacking would wait for
 * memory, where multiplying does not. */
static void chunk_by_panels(const struct engine_product_run *run,
                            const struct engine_product_chunk *c)
{
    enum { FEW_COLS = 32 };
    const struct engine_product_act *act = &run->p->act[c->type->act];
    const int n_panels = engine_product_panels(&run->task->engine->quant, c->type);
    const bool long_rows =
        !engine_product_by_slices(run->p->slices, c->type->act) && c->n > FEW_COLS;
    const int64_t few = (n_panels + sides_of(c) - 1) / sides_of(c) * QUANT_PANEL_ROWS;
    const int64_t rows = long_rows ? c->n_rows : few, bytes = rows * c->row_bytes;
    const int64_t n_groups = (c->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS;
    for (int64_t r = 0; r < c->n_rows; r += rows) {
        const int64_t n_rows = engine_min(rows, c->n_rows - r);
        const int64_t half = engine_round_up(n_rows, QUANT_PANEL_ROWS);
        struct part p = {.chunk = c,
                         .row = r,
                         .n_rows = n_rows,
                         .half = half,
                         .n_places = c->up ? 2 * half : n_rows,
                         .tile = n_panels * QUANT_PANEL_ROWS};
        for (int64_t s = 0; s < act->n_slices; s++) {
            p.slice = engine_product_slice(act, run->p->k, s);
            p.last = s == act->n_slices - 1;
            p.columns = engine_product_slice_at(run, c->type->act, c->group, p.slice);
            p.group_bytes = p.slice.n_blocks * act->block_bytes;
            p.prefetcher =
                prefetcher_for(run, c, r + rows, bytes * s / act->n_slices,
                               bytes * (s + 1) / act->n_slices, unpack_steps(&p) + n_groups);
            unpack_part(&p, run->own);
            for (int64_t group = 0; group < n_groups; group++) {
                prefetch_next(&p.prefetcher);
                multiply_group(run, &p, group);
            }
        }
    }
}

/* ---- Floats ---- */

/* Rows of each side; those of the other begin at row `half`. */
static void pack_rows(const struct engine_product_run *run, const struct engine_product_chunk *c,
                      const struct engine_tile_packed *packed, int64_t half)
{
    const float fill = c->type->act == QUANT_ACT_F32 ? -0.0f : 0.0f;
    const int64_t n = engine_round_up(c->n_rows, packed->rows);
    for (int64_t i = 0; i < n * sides_of(c); i++) {
        const int64_t r = i % n;
        const char *w = side_at(c, (int)(i / n)) + engine_min(r, c->n_rows - 1) * c->row_bytes;
        engine_product_pack_row(run, packed, c->type->id, w, fill, packed->rows, i / n * half + r,
                                (float *)run->own);
    }
}

/* All rows of the chunk, so that a group of columns is read once for all of them. The last quarter
 * of the steps prefetches the weights behind the chunk. */
static void chunk_by_packed(const struct engine_product_run *run,
                            const struct engine_product_chunk *c,
                            const struct engine_tile_packed *packed)
{
    enum { ROWS = ENGINE_TILE_FLOAT_ROWS };
    const int64_t bundle = engine_product_packed_steps(run) * 16; /* floats of a row */
    const int64_t half = engine_round_up(c->n_rows, ROWS), per_side = half / ROWS;
    const int64_t per_group = per_side * sides_of(c);
    const int64_t steps = per_group * ((c->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS);
    const int64_t quarter = (steps + 3) / 4;
    struct prefetcher prefetcher =
        prefetcher_for(run, c, c->n_rows, 0, c->n_rows * c->row_bytes, quarter);
    pack_rows(run, c, packed, half);
    for (int64_t step = 0; step < steps; step++) {
        const int64_t at = step % per_group * ROWS, i = step / per_group * ENGINE_TILE_COLS;
        const int64_t r = step % per_side * ROWS; /* of its side */
        const int n_cols = (int)engine_min(ENGINE_TILE_COLS, c->n - i);
        float *out[ENGINE_TILE_COLS];
        results_at(run, c, i, n_cols, r, half, at, out);
        if (step >= steps - quarter) prefetch_next(&prefetcher);
        packed->product(engine_product_packed_steps(run), (const float *)run->own + at * bundle,
                        (const float *)engine_product_floats_at(run, c->type->act,
                                                                c->group + i / ENGINE_TILE_COLS),
                        (int)engine_min(ROWS, c->n_rows - r), n_cols, out);
        if (step % per_group == per_group - 1) open_gate(run, c, i, n_cols, 0, half, c->n_rows);
    }
}

/* Rows as floats: in place where they are, else decoded into this worker's scratch, `at` rows from
 * its start. */
static const float *float_rows(const struct engine_product_run *run,
                               const struct engine_product_chunk *c, const char *w, int64_t at,
                               int64_t *stride)
{
    if (c->type->id == QUANT_F32 && (uintptr_t)w % 4 == 0 && c->row_bytes % 4 == 0) {
        *stride = c->row_bytes / 4;
        return (const float *)w;
    }
    *stride = (run->p->k + 15) / 16 * 16;
    float *to = (float *)run->own + at * *stride;
    for (int64_t r = 0; r < c->n_rows; r++)
        c->kernel->decode(run->p->k, w + r * c->row_bytes, to + r * *stride);
    return to;
}

/* Rows as they lie, of BF16, or as floats, by the columns as they lie. */
static void chunk_by_rows(const struct engine_product_run *run,
                          const struct engine_product_chunk *c)
{
    const bool floats = c->type->act == QUANT_ACT_F32;
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
                engine_product_column_act(run, c->type->act, c->columns[i + j].x_row);
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
        open_gate(run, c, i, n_cols, 0, c->n_rows, c->n_rows);
    }
}

void engine_product_chunk_run(const struct engine_product_run *run,
                              const struct engine_product_chunk *c)
{
    enum quant_act_kind kind = c->type->act;
    const struct engine_tile_packed *packed = engine_product_packed(run, kind, c->n);
    if (run->p->by_parts)
        chunk_by_parts(run, c);
    else if (c->n <= ENGINE_PRODUCT_GEMV_COLS)
        chunk_by_gemv(run, c);
    else if (packed)
        chunk_by_packed(run, c, packed);
    else if (!engine_product_by_floats(kind))
        chunk_by_panels(run, c);
    else if (kind == QUANT_ACT_F32 || run->tile->bf16)
        chunk_by_rows(run, c);
    else
        chunk_by_gemv(run, c);
}
