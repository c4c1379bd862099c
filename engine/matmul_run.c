/* engine/matmul_run.c: how a product runs, on every worker.
 *
 * Phase 1: x's rows are converted to what the weights want, once per kind (floats stay where they
 * lie), and a table says which columns each weight matrix meets. Phase 2: jobs with many columns
 * get them interleaved, or packed, in groups. Where every column is in one group, a worker does
 * both at once.
 * Phase 3: chunks of weight rows, each with a stripe of the columns, are taken from the pool. Where
 * columns are many each worker has a stripe of its own: most of what it reads and writes, here and
 * in the ops that share out rows, then stays in its own caches. One or few columns: the type's gemv
 * reads the file's layout. Many: rows are unpacked into panels, 16 at a time, or packed, in this
 * worker's scratch, as much at once as a cache holds, and multiplied with all groups. When x is
 * small every worker converts it for itself and there is no barrier at all.
 *
 * All routes give the same bits (quant/quant.h), so their choice is a matter of speed alone.
 * Refuses shapes (matmul.c) and inner loops (tile_*.c, quant/). */
#include "engine/blas.h"
#include "engine/matmul.h"
#include "quant/stream.h"
#include <math.h>
#include <string.h>

/* What the functions below pass around: the product, and this worker's memory. */
struct run {
    const struct engine_task *task;
    const struct engine_product *p;
    const struct engine_tile *tile;
    struct engine_tensor *dst;
    char *shared; /* tables, columns, groups: the common copy, or this worker's own */
    char *own;    /* panels, rows */
    struct engine_product_header *header;
    struct engine_product_job *jobs;
    struct engine_product_column *columns;
};

/* ---- Phase 1: the table ---- */

/* Every matrix of the batch with the rows of x that meet it. */
static void table_by_batch(struct run *run)
{
    const struct engine_tensor *x = run->p->x, *w = run->p->w[0], *dst = run->dst;
    int64_t per2 = x->ne[2] / w->ne[2], per3 = x->ne[3] / w->ne[3], column = 0;
    for (int64_t b3 = 0; b3 < w->ne[3]; b3++) {
        for (int64_t b2 = 0; b2 < w->ne[2]; b2++) {
            run->jobs[run->header->n_jobs++] = (struct engine_product_job){
                .first = column, .n = per2 * per3 * x->ne[1], .batch2 = b2, .batch3 = b3};
            for (int64_t i = 0; i < per2 * per3 * x->ne[1]; i++) {
                int64_t i1 = i % x->ne[1], i2 = b2 * per2 + i / x->ne[1] % per2,
                        i3 = b3 * per3 + i / x->ne[1] / per2;
                run->columns[column++] = (struct engine_product_column){
                    .x_row = (i3 * x->ne[2] + i2) * x->ne[1] + i1,
                    .out = dst->data + i1 * dst->nb[1] + i2 * dst->nb[2] + i3 * dst->nb[3]};
            }
        }
    }
}

static void fill_nan(float *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) row[i] = NAN;
}

/* Every expert that is asked for with its columns: a counting sort of the ids. */
static void table_by_id(struct run *run)
{
    const struct engine_tensor *ids = run->p->ids, *w = run->p->w[0], *dst = run->dst;
    int64_t n_experts = w->ne[2], *start = (int64_t *)(run->shared + run->p->starts_at);
    memset(start, 0, (size_t)(n_experts + 1) * sizeof(*start));
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t t = 0; t < ids->ne[1]; t++) {
            const int32_t *id = (const int32_t *)(ids->data + t * ids->nb[1]);
            for (int64_t u = 0; u < ids->ne[0]; u++) {
                char *out = dst->data + u * dst->nb[1] + t * dst->nb[2];
                bool valid = id[u] >= 0 && id[u] < n_experts;
                if (valid && pass == 0) start[id[u] + 1]++;
                if (valid && pass == 1)
                    run->columns[start[id[u]]++] = (struct engine_product_column){
                        .x_row = t * run->p->x->ne[1] + u % run->p->x->ne[1], .out = out};
                if (!valid && pass == 1 && run->task->worker->ith == 0)
                    fill_nan((float *)out, dst->ne[0]);
            }
        }
        for (int64_t e = 0; pass == 0 && e < n_experts; e++) {
            if (start[e + 1] > 0)
                run->jobs[run->header->n_jobs++] =
                    (struct engine_product_job){.first = start[e], .n = start[e + 1], .batch2 = e};
            start[e + 1] += start[e];
        }
    }
}

static void build_table(struct run *run)
{
    *run->header = (struct engine_product_header){0};
    if (run->p->ids)
        table_by_id(run);
    else
        table_by_batch(run);
    for (int64_t j = 0; j < run->header->n_jobs; j++) {
        struct engine_product_job *job = &run->jobs[j];
        job->group = run->header->n_groups;
        if (job->n > ENGINE_PRODUCT_GEMV_COLS)
            run->header->n_groups += (job->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS;
    }
}

/* ---- Phase 1: columns ---- */

/* Where a row of x begins; its elements are nb[0] apart. */
static char *x_row_at(const struct run *run, int64_t x_row)
{
    const struct engine_tensor *x = run->p->x;
    const int64_t i1 = x_row % x->ne[1], i2 = x_row / x->ne[1] % x->ne[2];
    const int64_t i3 = x_row / x->ne[1] / x->ne[2];
    return x->data + i1 * x->nb[1] + i2 * x->nb[2] + i3 * x->nb[3];
}

static char *column_at(const struct run *run, enum quant_act_kind kind, int64_t x_row)
{
    const struct engine_product_act *act = &run->p->act[kind];
    if (act->in_place) return x_row_at(run, x_row);
    return run->shared + act->columns + x_row * act->bytes;
}

static struct quant_act column_act(const struct run *run, enum quant_act_kind kind, int64_t x_row)
{
    const struct engine_product_act *act = &run->p->act[kind];
    char *at = column_at(run, kind, x_row);
    switch (kind) {
    case QUANT_ACT_F32:
        return (struct quant_act){.f32 = (const float *)at};
    case QUANT_ACT_BF16:
        return (struct quant_act){.bf16 = (const uint16_t *)at};
    default:
        return (struct quant_act){.q = (const int8_t *)at,
                                  .d = (const float *)(at + act->d),
                                  .s = (const float *)(at + act->s),
                                  .sum = (const int16_t *)(at + act->sum)};
    }
}

static void convert_row(const struct run *run, int64_t x_row)
{
    const struct engine_product *p = run->p;
    const struct engine_tensor *x = p->x;
    const struct quant_kernels *quant = &run->task->engine->quant;
    const char *from = x_row_at(run, x_row);
    const float *row = (const float *)from;
    if (x->nb[0] != (int64_t)sizeof(float)) {
        float *gathered = (float *)run->own;
        for (int64_t i = 0; i < p->k; i++) gathered[i] = *(const float *)(from + i * x->nb[0]);
        row = gathered;
    }
    for (int kind = 0; kind < ENGINE_PRODUCT_KINDS; kind++) {
        const struct engine_product_act *act = &p->act[kind];
        if (!act->bytes || act->in_place) continue;
        char *at = column_at(run, kind, x_row);
        if (kind == QUANT_ACT_F32) {
            memcpy(at, row, (size_t)p->k * sizeof(float));
        } else if (kind == QUANT_ACT_BF16) {
            memset(at + act->bytes - 64, 0, 64);
            quant->act_bf16(p->k, row, (uint16_t *)at);
        } else if (kind == QUANT_ACT_Q8_32) {
            quant->act_q8_32(p->k, row, (int8_t *)at, (float *)(at + act->d),
                             (float *)(at + act->s), (int16_t *)(at + act->sum));
        } else {
            quant->act_q8_256(p->k, row, (int8_t *)at, (float *)(at + act->d),
                              (int16_t *)(at + act->sum));
        }
    }
}

/* ---- Phase 2: groups ---- */

enum { PACK_ELEMENTS = 256 }; /* decoded at once, a multiple of 32 */

/* Where a group's columns have their q of elements from `at` on; of a missing one, zeros. */
static void columns_q(const struct quant_act *a, int n, int64_t at,
                      const int8_t *q[ENGINE_TILE_COLS])
{
    static const int8_t zeros[256];
    for (int c = 0; c < ENGINE_TILE_COLS; c++) q[c] = c < n ? a[c].q + at : zeros;
}

static void interleave32(const struct engine_tile *tile, struct engine_product_slice slice,
                         const struct quant_act *a, int n, struct engine_cols32 *to)
{
    const int8_t *q[ENGINE_TILE_COLS];
    for (int64_t b = slice.first; b < slice.first + slice.n_blocks; b++, to++) {
        columns_q(a, n, 32 * b, q);
        tile->interleave(8, q, to->q);
        for (int c = 0; c < n; c++) {
            to->d[c] = a[c].d[b];
            to->s[c] = a[c].s[b];
            to->minus_sum[c] = -a[c].sum[b];
        }
    }
}

static void interleave256(const struct engine_tile *tile, struct engine_product_slice slice,
                          const struct quant_act *a, int n, struct engine_cols256 *to)
{
    const int8_t *q[ENGINE_TILE_COLS];
    for (int64_t b = 0; b < slice.n_blocks; b++) {
        columns_q(a, n, 256 * (slice.first + b), q);
        tile->interleave(64, q, to[b].q);
        for (int c = 0; c < n; c++) {
            const int16_t *sum = a[c].sum + 16 * (slice.first + b);
            to[b].d[c] = a[c].d[slice.first + b];
            for (int i = 0; i < 16; i++) to[b].sum16[i / 2][c][i % 2] = sum[i];
            for (int i = 0; i < 8; i++)
                to[b].sum32[i / 2][c][i % 2] = (int16_t)(sum[2 * i] + sum[2 * i + 1]);
        }
    }
    if (tile->measure) tile->measure(slice.n_blocks, to);
}

/* Where a group of floats begins. */
static char *floats_at(const struct run *run, enum quant_act_kind kind, int64_t group)
{
    const struct engine_product_act *act = &run->p->act[kind];
    return run->shared + act->groups + group * act->group_bytes;
}

/* Where the slice of a group of quantized columns begins; the same slice of the next is behind. */
static void *slice_at(const struct run *run, enum quant_act_kind kind, int64_t group,
                      struct engine_product_slice slice)
{
    const struct engine_product_act *act = &run->p->act[kind];
    const int64_t at = slice.first * run->p->max_groups + group * slice.n_blocks;
    return run->shared + act->groups + at * act->block_bytes;
}

/* Products of packed floats; NULL where kind and level have none, or where the columns are so few
 * that rows of floats are better read where they lie. */
static const struct engine_tile_packed *packed_of(const struct run *run, enum quant_act_kind kind,
                                                  int64_t n_cols)
{
    enum { IN_PLACE_COLS = 2 * ENGINE_TILE_COLS };
    if (kind == QUANT_ACT_BF16) return run->tile->packed_bf16;
    return kind == QUANT_ACT_F32 && n_cols > IN_PLACE_COLS ? run->tile->packed_f32 : NULL;
}

static int64_t packed_steps(const struct run *run)
{
    return (run->p->k + 31) / 32 * 2;
}

/* Row or column i of those that lie in bundles of n. */
static void pack_row(const struct run *run, const struct engine_tile_packed *packed,
                     enum quant_id type, const char *row, float fill, int n, int64_t i, float *to)
{
    const struct quant_kernel *kernel = &run->task->engine->quant.type[type];
    const int64_t k = run->p->k, element = quant_type_by_id(type)->block_bytes;
    const int64_t step = n * packed->lanes, half = packed_steps(run) * step;
    to += i / n * packed_steps(run) * 16 * n + i % n * packed->lanes;
    if (type == QUANT_F32 && (uintptr_t)row % sizeof(float) == 0) {
        packed->pack(k, (const float *)row, fill, half, step, to);
        return;
    }
    for (int64_t at = 0; at < k; at += PACK_ELEMENTS) {
        float part[PACK_ELEMENTS];
        const int64_t some = engine_min(PACK_ELEMENTS, k - at);
        kernel->decode(some, row + at * element, part);
        packed->pack(some, part, fill, half, step, to + at / 16 * step);
    }
}

/* A group's columns; of its second bundle only what is needed. */
static void pack_columns(const struct run *run, const struct engine_tile_packed *packed,
                         enum quant_act_kind kind, char *group,
                         const struct engine_product_column *column, int64_t n)
{
    const enum quant_id type = kind == QUANT_ACT_F32 ? QUANT_F32 : QUANT_BF16;
    for (int64_t c = 0; c < engine_round_up(n, ENGINE_TILE_PACKED_COLS); c++)
        pack_row(run, packed, type, column_at(run, kind, column[c < n ? c : n - 1].x_row), 0.0f,
                 ENGINE_TILE_PACKED_COLS, c, (float *)group);
}

/* The job that owns a group: the last one that begins at or before it and has groups. */
static const struct engine_product_job *job_of_group(const struct run *run, int64_t group)
{
    int64_t lo = 0, hi = run->header->n_jobs;
    while (hi - lo > 1) {
        int64_t mid = (lo + hi) / 2;
        if (run->jobs[mid].group <= group)
            lo = mid;
        else
            hi = mid;
    }
    return &run->jobs[lo];
}

/* `convert`: its rows of x, too, first. */
static void build_group(const struct run *run, int64_t group, bool convert)
{
    const struct engine_product_job *job = job_of_group(run, group);
    int64_t first = (group - job->group) * ENGINE_TILE_COLS;
    int64_t n = engine_min(ENGINE_TILE_COLS, job->n - first);
    const struct engine_product_column *column = run->columns + job->first + first;
    for (int c = 0; convert && c < n; c++) convert_row(run, column[c].x_row);
    for (int kind = 0; kind < ENGINE_PRODUCT_KINDS; kind++) {
        const struct engine_product_act *act = &run->p->act[kind];
        if (!act->bytes) continue;
        if (engine_product_by_floats(kind)) {
            const struct engine_tile_packed *packed = packed_of(run, kind, job->n);
            if (packed) pack_columns(run, packed, kind, floats_at(run, kind, group), column, n);
            continue;
        }
        struct quant_act a[ENGINE_TILE_COLS];
        for (int c = 0; c < n; c++) a[c] = column_act(run, kind, column[c].x_row);
        for (int64_t i = 0; i < act->n_slices; i++) {
            const struct engine_product_slice slice = engine_product_slice(act, run->p->k, i);
            void *to = slice_at(run, kind, group, slice);
            if (n < ENGINE_TILE_COLS) memset(to, 0, (size_t)(slice.n_blocks * act->block_bytes));
            if (kind == QUANT_ACT_Q8_32)
                interleave32(run->tile, slice, a, n, to);
            else
                interleave256(run->tile, slice, a, n, to);
        }
    }
}

/* ---- Phase 3: chunks ---- */

/* Weight rows with the columns of a stripe that meet them: n_rows one behind the other; in a
 * product by parts, so many of each of gemv's streams, and then `rest` rows from row rest_at on. */
struct chunk {
    const struct quant_type *type;
    const struct quant_kernel *kernel;
    const char *w; /* the first row */
    int64_t row_bytes, n_rows;
    int64_t apart, rest, rest_at; /* in rows; rest_at from the first one */
    int64_t out_offset; /* bytes from the start of a row of dst to this chunk's first result */
    int64_t n, group;   /* columns; the first one's group */
    const struct engine_product_column *columns;
};

static float *chunk_out(const struct chunk *c, int64_t column, int64_t row)
{
    return (float *)(c->columns[column].out + c->out_offset) + row;
}

static void chunk_by_gemv(const struct run *run, const struct chunk *c)
{
    const int64_t k = run->p->k;
    const size_t row_bytes = (size_t)c->row_bytes;
    const struct quant_asking asking = run->task->engine->quant.asking;
    const struct quant_rows rows = {c->w, row_bytes, c->n_rows, c->apart, asking};
    for (int64_t i = 0; i < c->n; i++) {
        struct quant_act a = column_act(run, c->type->act, c->columns[i].x_row);
        float *out = chunk_out(c, i, 0);
        if (!run->p->by_parts) {
            quant_gemv(c->kernel, asking, k, c->w, row_bytes, c->n_rows, &a, out);
            continue;
        }
        if (c->n_rows > 0) c->kernel->gemv(k, &rows, &a, out);
        quant_gemv(c->kernel, asking, k, c->w + c->rest_at * c->row_bytes, row_bytes, c->rest, &a,
                   out + c->rest_at);
    }
}

/* Asks for weights that come later, a share of them at each of some steps, in address order. */
struct asker {
    const char *at;
    int64_t left, share; /* in bytes */
};

static struct asker asker_for(const char *at, int64_t bytes, int64_t n_steps)
{
    return (struct asker){at, bytes, engine_round_up((bytes + n_steps - 1) / n_steps, 64)};
}

static void ask(struct asker *a)
{
    const int64_t bytes = engine_min(a->left, a->share);
    quant_prefetch_pages(a->at, (size_t)bytes);
    a->at += bytes;
    a->left -= bytes;
}

/* ---- Phase 3: panels ---- */

/* A slice of some of the chunk's rows, whose panels are in cache together. */
struct part {
    const struct chunk *chunk;
    int64_t row, n_rows;
    struct engine_product_slice slice;
    struct asker asker; /* for what is behind those rows */
};

/* Unpacking goes by so many elements of 16 rows. */
enum { UNPACK_ELEMENTS = 256 };

static int64_t unpack_steps(const struct part *p)
{
    const int64_t once = UNPACK_ELEMENTS / p->chunk->type->block_len;
    const int64_t n_panels = (p->n_rows + QUANT_PANEL_ROWS - 1) / QUANT_PANEL_ROWS;
    return n_panels * ((p->slice.n_blocks + once - 1) / once);
}

/* One panel behind the other; the last row stands for those that are missing. */
static void unpack_part(struct part *p, char *to)
{
    const struct chunk *c = p->chunk;
    const int64_t once = UNPACK_ELEMENTS / c->type->block_len;
    for (int64_t r = 0; r < p->n_rows; r += QUANT_PANEL_ROWS) {
        for (int64_t b = 0; b < p->slice.n_blocks; b += once) {
            const void *row[QUANT_PANEL_ROWS];
            const int64_t n = engine_min(once, p->slice.n_blocks - b);
            for (int64_t i = 0; i < QUANT_PANEL_ROWS; i++) {
                const int64_t in_part = engine_min(r + i, p->n_rows - 1);
                row[i] = c->w + (p->row + in_part) * c->row_bytes +
                         (p->slice.first + b) * c->type->block_bytes;
            }
            ask(&p->asker);
            c->kernel->unpack(n, row, to);
            to += n * engine_product_panel_bytes(c->type);
        }
    }
}

/* The part's rows from r on, as many as a tile takes at once, by the group of columns from i on. */
static void multiply_tile(const struct run *run, const struct part *p, int64_t r, int64_t n_rows,
                          int64_t i)
{
    const struct chunk *c = p->chunk;
    const enum quant_act_kind kind = c->type->act;
    const int64_t panel_bytes = p->slice.n_blocks * engine_product_panel_bytes(c->type);
    const void *w = run->own + r / QUANT_PANEL_ROWS * panel_bytes;
    const void *x = slice_at(run, kind, c->group + i / ENGINE_TILE_COLS, p->slice);
    struct engine_tile_sums *sums = (struct engine_tile_sums *)(run->own + run->p->sums_at);
    /* Stores would wait for pages; with few columns memory is busy with weights. */
    const bool far_apart = run->dst->nb[1] >= QUANT_PAGE && c->n > ENGINE_TILE_COLS;
    float *out[ENGINE_TILE_COLS];
    const struct engine_tile_to to = {
        .sums = sums + i / ENGINE_TILE_COLS,
        .first = p->slice.first == 0,
        .last = (p->slice.first + p->slice.n_blocks) * c->type->block_len == run->p->k,
        .n_rows = (int)n_rows,
        .n_cols = (int)engine_min(ENGINE_TILE_COLS, c->n - i),
        .out = out,
    };
    for (int j = 0; j < to.n_cols; j++) {
        out[j] = chunk_out(c, i + j, p->row + r);
        if (to.last && far_apart) quant_prefetch_written(out[j], (size_t)n_rows * sizeof(float));
    }
    if (kind == QUANT_ACT_Q8_32)
        run->tile->panel32(c->kernel->panel, p->slice.n_blocks, w, x, &to);
    else
        run->tile->panel256(c->kernel->panel, p->slice.n_blocks, w, x, &to);
}

/* Part by part: its panels stay in cache while they meet all columns, group by group. Super-blocks
 * take the rows of one tile and slices of k, which the L1 cache holds; sums wait in memory from one
 * slice to the next. Blocks of 32 keep sums in registers over all of k: they take as many rows as
 * the L2 cache holds, and a group of columns stays in the L1 cache; with few columns, the rows of
 * one tile. The weights behind a part, most likely this worker's next, are asked for meanwhile: 16
 * rows side by side are too many streams for the processor to see by itself, and unpacking would
 * wait for memory, where multiplying does not. */
static void chunk_by_panels(const struct run *run, const struct chunk *c)
{
    enum { FEW_COLS = 32 };
    const struct engine_product_act *act = &run->p->act[c->type->act];
    const int64_t tile =
        engine_product_panels(&run->task->engine->quant, c->type) * QUANT_PANEL_ROWS;
    const bool long_rows = !engine_product_by_slices(c->type->act) && c->n > FEW_COLS;
    const int64_t rows = long_rows ? c->n_rows : tile, bytes = rows * c->row_bytes;
    const int64_t n_groups = (c->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS;
    for (int64_t r = 0; r < c->n_rows; r += rows) {
        struct part p = {.chunk = c, .row = r, .n_rows = engine_min(rows, c->n_rows - r)};
        for (int64_t s = 0; s < act->n_slices; s++) {
            const int64_t from = bytes * s / act->n_slices, to = bytes * (s + 1) / act->n_slices;
            p.slice = engine_product_slice(act, run->p->k, s);
            p.asker = asker_for(c->w + (r + rows) * c->row_bytes + from, to - from,
                                unpack_steps(&p) + n_groups);
            unpack_part(&p, run->own);
            for (int64_t i = 0; i < c->n; i += ENGINE_TILE_COLS) {
                ask(&p.asker);
                for (int64_t j = 0; j < p.n_rows; j += tile)
                    multiply_tile(run, &p, j, engine_min(tile, p.n_rows - j), i);
            }
        }
    }
}

/* ---- Phase 3: floats ---- */

static void pack_rows(const struct run *run, const struct chunk *c,
                      const struct engine_tile_packed *packed)
{
    const float fill = c->type->act == QUANT_ACT_F32 ? -0.0f : 0.0f;
    for (int64_t r = 0; r < engine_round_up(c->n_rows, packed->rows); r++)
        pack_row(run, packed, c->type->id, c->w + engine_min(r, c->n_rows - 1) * c->row_bytes, fill,
                 packed->rows, r, (float *)run->own);
}

/* All rows of the chunk, so that a group of columns is read once for all of them. The last quarter
 * of the steps asks for the weights behind the chunk. */
static void chunk_by_packed(const struct run *run, const struct chunk *c,
                            const struct engine_tile_packed *packed)
{
    enum { ROWS = ENGINE_TILE_FLOAT_ROWS };
    const int64_t bundle = packed_steps(run) * 16; /* floats of a row */
    const int64_t per_group = (c->n_rows + ROWS - 1) / ROWS;
    const int64_t steps = per_group * ((c->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS);
    const int64_t bytes = c->n_rows * c->row_bytes, quarter = (steps + 3) / 4;
    struct asker asker = asker_for(c->w + bytes, bytes, quarter);
    pack_rows(run, c, packed);
    for (int64_t step = 0; step < steps; step++) {
        const int64_t r = step % per_group * ROWS, i = step / per_group * ENGINE_TILE_COLS;
        const int n_cols = (int)engine_min(ENGINE_TILE_COLS, c->n - i);
        float *out[ENGINE_TILE_COLS];
        for (int j = 0; j < n_cols; j++) out[j] = chunk_out(c, i + j, r);
        if (step >= steps - quarter) ask(&asker);
        packed->product(
            packed_steps(run), (const float *)run->own + r * bundle,
            (const float *)floats_at(run, c->type->act, c->group + i / ENGINE_TILE_COLS),
            (int)engine_min(ROWS, c->n_rows - r), n_cols, out);
    }
}

/* The chunk's rows as floats: in place where they are, else decoded into this worker's scratch. */
static const float *float_rows(const struct run *run, const struct chunk *c, int64_t *stride)
{
    if (c->type->id == QUANT_F32 && (uintptr_t)c->w % 4 == 0 && c->row_bytes % 4 == 0) {
        *stride = c->row_bytes / 4;
        return (const float *)c->w;
    }
    *stride = (run->p->k + 15) / 16 * 16;
    for (int64_t r = 0; r < c->n_rows; r++)
        c->kernel->decode(run->p->k, c->w + r * c->row_bytes, (float *)run->own + r * *stride);
    return (const float *)run->own;
}

static void chunk_by_floats(const struct run *run, const struct chunk *c)
{
    int64_t stride;
    const float *w = float_rows(run, c, &stride);
    for (int64_t i = 0; i < c->n; i += ENGINE_TILE_COLS) {
        const int64_t n_cols = engine_min(ENGINE_TILE_COLS, c->n - i);
        const float *x[ENGINE_TILE_COLS];
        float *out[ENGINE_TILE_COLS];
        for (int64_t j = 0; j < n_cols; j++) {
            x[j] = column_act(run, QUANT_ACT_F32, c->columns[i + j].x_row).f32;
            out[j] = chunk_out(c, i + j, 0);
        }
        run->tile->f32(run->p->k, w, stride, c->n_rows, x, n_cols, out);
    }
}

static void chunk_by_bf16(const struct run *run, const struct chunk *c)
{
    for (int64_t i = 0; i < c->n; i += ENGINE_TILE_COLS) {
        const int64_t n_cols = engine_min(ENGINE_TILE_COLS, c->n - i);
        const uint16_t *x[ENGINE_TILE_COLS];
        float *out[ENGINE_TILE_COLS];
        for (int64_t j = 0; j < n_cols; j++) {
            x[j] = column_act(run, QUANT_ACT_BF16, c->columns[i + j].x_row).bf16;
            out[j] = chunk_out(c, i + j, 0);
        }
        run->tile->bf16(run->p->k, c->w, c->row_bytes, c->n_rows, x, n_cols, out);
    }
}

static void run_chunk(const struct run *run, const struct chunk *c)
{
    enum quant_act_kind kind = c->type->act;
    const struct engine_tile_packed *packed = packed_of(run, kind, c->n);
    if (c->n <= ENGINE_PRODUCT_GEMV_COLS)
        chunk_by_gemv(run, c);
    else if (packed)
        chunk_by_packed(run, c, packed);
    else if (!engine_product_by_floats(kind))
        chunk_by_panels(run, c);
    else if (kind == QUANT_ACT_F32)
        chunk_by_floats(run, c);
    else if (run->tile->bf16)
        chunk_by_bf16(run, c);
    else
        chunk_by_gemv(run, c);
}

/* Chunk i of weight `which`: its rows, and where it begins. Streams are parts of the whole weight,
 * far apart and long, and each of them has whole units of a watch. */
static struct chunk chunk_rows_at(const struct run *run, int which, int64_t i, int64_t *first)
{
    const struct engine_product *p = run->p;
    const struct engine_tensor *w = p->w[which];
    const struct quant_kernel *kernel = &run->task->engine->quant.type[w->type->id];
    struct chunk c = {.type = w->type, .kernel = kernel, .row_bytes = w->nb[1]};
    if (p->by_parts) {
        const int64_t unit = p->watched ? ENGINE_WATCH_UNIT : 1, n = p->n_chunks[which];
        const int64_t units = w->ne[1] / (kernel->streams * unit);
        *first = units * i / n * unit;
        c.n_rows = units * (i + 1) / n * unit - *first;
        c.apart = units * unit;
        c.rest_at = c.apart * kernel->streams - *first;
        c.rest = i == n - 1 ? w->ne[1] - c.apart * kernel->streams : 0;
    } else {
        *first = i * p->chunk_rows[which];
        c.n_rows = w->ne[1] - *first;
        if (c.n_rows > p->chunk_rows[which]) c.n_rows = p->chunk_rows[which];
    }
    return c;
}

/* Shows a watch what the chunk has made. */
static void show(const struct run *run, const struct chunk *c, const struct engine_watch *watch)
{
    const int64_t first = c->out_offset / (int64_t)sizeof(float);
    const int streams = run->p->by_parts ? c->kernel->streams : 1;
    for (int64_t i = 0; i < streams && c->n_rows > 0; i++)
        watch->made(watch->context, first + i * c->apart, c->n_rows);
    if (c->rest > 0) watch->made(watch->context, first + c->rest_at, c->rest);
}

/* Chunks are numbered stripe by stripe, within a stripe job by job, within a job weight by weight,
 * within a weight row by row. A stripe is whole groups, and never empty. */
static struct chunk chunk_at(const struct run *run, int64_t index)
{
    const struct engine_product *p = run->p;
    const int64_t per_stripe = run->header->n_jobs * p->chunks_per_job, stripe = index / per_stripe;
    const struct engine_product_job *job = &run->jobs[index % per_stripe / p->chunks_per_job];
    const int64_t n_groups = (job->n + ENGINE_TILE_COLS - 1) / ENGINE_TILE_COLS;
    const int64_t from = stripe * n_groups / p->n_stripes,
                  to = (stripe + 1) * n_groups / p->n_stripes;
    const int64_t end = engine_min(to * ENGINE_TILE_COLS, job->n);
    int64_t i = index % p->chunks_per_job, column = 0, first;
    int which = 0;
    while (i >= p->n_chunks[which]) {
        i -= p->n_chunks[which];
        column += p->w[which++]->ne[1];
    }
    const struct engine_tensor *w = p->w[which];
    struct chunk c = chunk_rows_at(run, which, i, &first);
    c.w = w->data + job->batch2 * w->nb[2] + job->batch3 * w->nb[3] + first * w->nb[1];
    c.out_offset = (column + first) * (int64_t)sizeof(float);
    c.n = end - from * ENGINE_TILE_COLS;
    c.group = job->group + from;
    c.columns = run->columns + job->first + from * ENGINE_TILE_COLS;
    return c;
}

/* ---- The whole ---- */

enum { GROUPS_PER_WORKER = 4 };

static void prepare_alone(struct run *run)
{
    build_table(run);
    for (int64_t i = 0; i < run->p->n_rows_x; i++) convert_row(run, i);
    for (int64_t i = 0; i < run->header->n_groups; i++) build_group(run, i, false);
}

/* Where there are groups enough for all, a worker converts the rows of a group and interleaves them
 * at once: else the other half of the rows would come from another core's cache. With experts a row
 * may be in several groups. */
static void prepare_groups(struct run *run)
{
    const struct engine_worker *worker = run->task->worker;
    engine_pool_barrier(worker); /* the table is there */
    const int64_t n_groups = run->header->n_groups;
    for (int64_t i; (i = engine_pool_take(worker, n_groups)) < n_groups;) build_group(run, i, true);
    engine_pool_barrier(worker);
}

static void prepare_together(struct run *run)
{
    const struct engine_worker *worker = run->task->worker;
    if (worker->ith == 0) build_table(run);
    const int64_t n_jobs = run->p->w[0]->ne[2] * run->p->w[0]->ne[3];
    const int64_t n_cols = run->p->n_rows_x / n_jobs; /* of a job, without experts */
    if (!run->p->ids && n_cols > ENGINE_PRODUCT_GEMV_COLS &&
        n_cols * n_jobs >= GROUPS_PER_WORKER * ENGINE_TILE_COLS * worker->nth) {
        prepare_groups(run);
        return;
    }
    for (int64_t i; (i = engine_pool_claim(worker, 1)) < run->p->n_rows_x;) convert_row(run, i);
    engine_pool_barrier(worker);
    if (run->header->n_groups == 0) return; /* nobody has claimed anything since the barrier */
    for (int64_t i; (i = engine_pool_claim(worker, 1)) < run->header->n_groups;)
        build_group(run, i, false);
    engine_pool_barrier(worker);
}

/* Whether OpenBLAS may have this product: large, of plain matrices of floats. */
static bool suits_blas(const struct engine_task *task, const struct engine_product *p)
{
    const struct engine_tensor *x = p->x;
    if (!task->engine->blas || p->watched || p->ids ||
        p->n_rows_x * p->k < ENGINE_PRODUCT_BLAS_FLOATS || x->ne[2] * x->ne[3] != 1 ||
        x->nb[0] != (int64_t)sizeof(float) || x->nb[1] % 4)
        return false;
    for (int i = 0; i < p->n_w; i++)
        if (p->w[i]->type->id != QUANT_F32 || (uintptr_t)p->w[i]->data % 4 || p->w[i]->nb[1] % 4)
            return false;
    return true;
}

/* One call for each worker's share of the rows: OpenBLAS cuts it into blocks itself, and copies
 * what it reads, which is lost on small pieces. */
static void run_blas(const struct engine_task *task, const struct engine_product *p,
                     const struct engine_tensor *dst)
{
    int64_t column = 0;
    for (int i = 0; i < p->n_w; column += p->w[i++]->ne[1]) {
        const struct engine_tensor *w = p->w[i];
        const int64_t first = w->ne[1] * task->worker->ith / task->worker->nth;
        const int64_t end = w->ne[1] * (task->worker->ith + 1) / task->worker->nth;
        engine_blas_product(task->engine->blas, p->x->ne[1], end - first, p->k,
                            (const float *)p->x->data, p->x->nb[1] / 4,
                            (const float *)(w->data + first * w->nb[1]), w->nb[1] / 4,
                            (float *)dst->data + column + first, dst->nb[1] / 4);
    }
}

void engine_product_run(const struct engine_task *task, struct engine_tensor *dst)
{
    struct engine_product product;
    const struct engine_worker *worker = task->worker;
    const bool together = task->engine->quant.asking.together;
    if (!engine_product_layout(&product, dst, worker->nth, together)) return; /* refused before */
    if (suits_blas(task, &product)) {
        run_blas(task, &product, dst);
        return;
    }
    int64_t copies = product.own_copy ? worker->nth : 1;
    struct run run = {
        .task = task,
        .p = &product,
        .tile = engine_tile_table(task->engine->quant.level),
        .dst = dst,
        .shared = task->scratch + (product.own_copy ? worker->ith * product.shared_bytes : 0),
        .own = task->scratch + copies * product.shared_bytes + worker->ith * product.worker_bytes,
    };
    run.header = (struct engine_product_header *)run.shared;
    run.jobs = (struct engine_product_job *)(run.shared + product.jobs_at);
    run.columns = (struct engine_product_column *)(run.shared + product.columns_at);
    if (product.own_copy)
        prepare_alone(&run);
    else
        prepare_together(&run);
    int64_t total = run.header->n_jobs * product.chunks_per_job * product.n_stripes;
    for (int64_t i; (i = engine_pool_take(worker, total)) < total;) {
        struct chunk chunk = chunk_at(&run, i);
        run_chunk(&run, &chunk);
        if (dst->watch && dst->watch->made) show(&run, &chunk, dst->watch);
    }
}
