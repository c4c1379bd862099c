/* engine/matmul/matmul.c: products of weights with activations: ops, builders, shapes, scratch.
 *
 * mul_mat and mul_mat_cat: src[0] is x, src[1] .. src[4] are the weights. mul_mat_id: src[0] is x,
 * src[1] the experts, src[2] the ids. mul_mat_glu and mul_mat_id_glu: the same with the gate's
 * weight as src[1], and that of what it lets through as the last source. Weights are used as they
 * lie (mapped files, views, permuted intermediates): only the elements of one row must be
 * contiguous. How a product runs stands in matmul_run.c; here is what can be known from shapes. */
#include "engine/matmul/matmul.h"
#include "base/size.h"
#include "engine/graph_internal.h"
#include "engine/profile.h"

/* Memory that the panels (or packed, or decoded rows) of one worker may take where they are not cut
 * into slices: half of a usual L2 cache. */
enum { PANEL_BUDGET = 384 * 1024 };
/* Weight bytes per chunk when memory bandwidth decides, and chunks per worker to even things out:
 * with many columns a chunk takes long, and at the end of a product all wait for the last one. */
enum { STREAM_BUDGET = 96 * 1024, CHUNKS_PER_WORKER = 6, LONG_CHUNKS_PER_WORKER = 24 };
/* Fewer columns than that are not worth unpacking the weights once more. */
enum { STRIPE_COLS = 128 };
/* Up to so many elements of x are converted by every worker for itself. */
enum { OWN_COPY_ELEMENTS = 16 * 1024 };

/* ---- Layout of scratch ---- */

/* Bytes of 16 rows of w as the many-column product holds them. */
static int64_t panel_bytes(const struct engine_tensor *w)
{
    if (engine_product_by_floats(w->type->act))
        return QUANT_PANEL_ROWS * engine_round_up(w->ne[0], 32) * (int64_t)sizeof(float);
    return w->ne[0] / w->type->block_len * engine_product_panel_bytes(w->type);
}

static void act_layout(struct engine_product_act *act, enum quant_act_kind kind, int64_t k,
                       bool slices)
{
    int64_t block = kind == QUANT_ACT_Q8_256 ? 256 : 32;
    switch (kind) {
    case QUANT_ACT_F32:
        act->bytes = engine_round_up(k * 4, 64);
        act->group_bytes = ENGINE_TILE_COLS * engine_round_up(k, 32) * 4;
        break;
    case QUANT_ACT_BF16: /* zeros up to a multiple of 32 */
        act->bytes = engine_round_up(k, 32) * 2;
        act->group_bytes = ENGINE_TILE_COLS * engine_round_up(k, 32) * 4;
        break;
    default:
        act->q = 0;
        act->d = engine_round_up(k, 64) + 64; /* kernels may read 64 bytes beyond q */
        act->s = act->d + engine_round_up(k / block * 4, 64);
        act->sum = act->s + (kind == QUANT_ACT_Q8_32 ? engine_round_up(k / block * 4, 64) : 0);
        act->bytes = act->sum + engine_round_up(k / (kind == QUANT_ACT_Q8_32 ? 32 : 16) * 2, 64);
        act->block_len = block;
        act->block_bytes =
            kind == QUANT_ACT_Q8_32 ? sizeof(struct engine_cols32) : sizeof(struct engine_cols256);
        act->group_bytes = k / block * act->block_bytes;
        act->n_slices = 1;
        if (engine_product_by_slices(slices, kind))
            act->n_slices = (k + ENGINE_PRODUCT_SLICE - 1) / ENGINE_PRODUCT_SLICE;
    }
}

/* Rows per chunk: as many as the cache holds, but enough chunks for all workers. The longest of the
 * weights side by side, with `n_rows` rows, decides for all: workers share out chunks by number, so
 * they must be about alike. With a gate, so many of either side. */
static int64_t chunk_rows(const struct engine_product *p, const struct engine_tensor *w,
                          int64_t n_rows, int n_threads)
{
    int64_t row = engine_max(1, (int64_t)w->type->block_bytes * (w->ne[0] / w->type->block_len));
    int64_t per_worker = p->by_gemv ? CHUNKS_PER_WORKER : LONG_CHUNKS_PER_WORKER;
    int64_t most = n_rows * p->max_jobs * p->n_stripes / (n_threads * per_worker);
    const int sides = engine_product_sides(p);
    int64_t unit = QUANT_PANEL_ROWS;
    if (p->by_gemv)
        most = engine_min(most, STREAM_BUDGET / row);
    else if (!engine_product_by_slices(p->slices, w->type->act))
        most = engine_min(most, QUANT_PANEL_ROWS * (PANEL_BUDGET / panel_bytes(w)) / sides);
    if (!p->by_gemv && engine_product_by_floats(w->type->act))
        unit = ENGINE_TILE_FLOAT_ROWS;
    else if (!p->by_gemv && engine_product_by_pairs(w->type))
        unit = ENGINE_TILE_PANELS / sides * QUANT_PANEL_ROWS;
    return unit * engine_max(1, most / unit);
}

static void sources(struct engine_product *p, const struct engine_tensor *dst)
{
    p->x = dst->src[0];
    const bool id_glu = dst->op == &engine_op_mul_mat_id_glu;
    const bool gated = id_glu || dst->op == &engine_op_mul_mat_glu;
    const bool by_id = id_glu || dst->op == &engine_op_mul_mat_id;
    p->ids = by_id ? dst->src[2] : NULL;
    p->up = id_glu ? dst->src[3] : gated ? dst->src[2] : NULL;
    for (int i = 0; i < (by_id || gated ? 1 : ENGINE_PRODUCT_WEIGHTS) && dst->src[i + 1]; i++)
        p->w[p->n_w++] = dst->src[i + 1];
}

static bool act_place(struct engine_product *p, struct engine_product_act *act, int64_t *at)
{
    uint64_t columns, groups;
    if (!base_mul((uint64_t)p->n_rows_x, (uint64_t)(act->in_place ? 0 : act->bytes), &columns) ||
        !base_mul((uint64_t)p->max_groups, (uint64_t)act->group_bytes, &groups) ||
        columns > INT64_MAX / 16 || groups > INT64_MAX / 16)
        return false;
    act->columns = *at;
    act->groups = act->columns + (int64_t)columns;
    *at = act->groups + (p->by_gemv ? 0 : engine_round_up((int64_t)groups, 64));
    return true;
}

/* Bytes of what a worker makes of a chunk's rows, of either side, at once. */
static int64_t part_bytes(const struct engine_product *p, const struct engine_tensor *w,
                          int64_t rows)
{
    if (engine_product_by_slices(p->slices, w->type->act))
        return ENGINE_TILE_PANELS * (ENGINE_PRODUCT_SLICE / w->type->block_len) *
               engine_product_panel_bytes(w->type);
    const int64_t unit =
        engine_product_by_floats(w->type->act) ? 2 * ENGINE_TILE_FLOAT_ROWS : QUANT_PANEL_ROWS;
    return engine_product_sides(p) * engine_round_up(rows, unit) / QUANT_PANEL_ROWS *
           panel_bytes(w);
}

bool engine_product_layout(struct engine_product *p, const struct engine_tensor *dst, int n_threads,
                           bool adjacent_rows, bool dual_512)
{
    *p = (struct engine_product){0};
    sources(p, dst);
    p->k = p->x->ne[0];
    p->n_rows_x = engine_tensor_rows(p->x);
    p->n_cols = engine_tensor_rows(dst);
    int64_t n_matrices = p->w[0]->ne[2] * p->w[0]->ne[3];
    p->max_jobs = engine_min(n_matrices, p->n_cols);
    p->max_groups = p->n_cols / ENGINE_TILE_COLS + p->max_jobs;
    int64_t most_cols = p->ids ? p->n_cols : p->n_cols / n_matrices;
    p->by_gemv = most_cols <= ENGINE_PRODUCT_GEMV_COLS;
    p->slices = dual_512 || most_cols <= ENGINE_TILE_COLS;
    p->own_copy = p->n_rows_x * p->k <= OWN_COPY_ELEMENTS;
    p->n_stripes = p->ids ? 1 : engine_max(1, engine_min(n_threads, most_cols / STRIPE_COLS));
    const int sides = engine_product_sides(p);
    int64_t longest = 0, halves = 0;
    for (int i = 0; i < p->n_w; i++) longest = engine_max(longest, p->w[i]->ne[1]);
    p->by_parts = p->by_gemv && !adjacent_rows && !p->up;
    for (int i = 0; i < p->n_w; i++) {
        const struct engine_tensor *w = p->w[i];
        p->chunk_rows[i] = chunk_rows(p, w, longest, n_threads);
        p->n_chunks[i] = (w->ne[1] + p->chunk_rows[i] - 1) / p->chunk_rows[i];
        p->chunks_per_job += p->n_chunks[i];
        if (!p->by_gemv) p->sums_at = engine_max(p->sums_at, part_bytes(p, w, p->chunk_rows[i]));
        if (p->up) halves = sides * engine_product_half(p->chunk_rows[i]);
        struct engine_product_act *act = &p->act[w->type->act];
        if (!act->bytes) act_layout(act, w->type->act, p->k, p->slices);
        act->in_place = w->type->act == QUANT_ACT_F32 && p->x->nb[0] == (int64_t)sizeof(float);
    }
    /* A row of x that is not contiguous is gathered where the panels will be, before. */
    p->sums_at = engine_round_up(engine_max(p->sums_at, p->k * (int64_t)sizeof(float)), 64);
    const int64_t groups = p->by_gemv ? 0 : (most_cols / ENGINE_TILE_COLS + 1) / p->n_stripes + 1;
    p->halves_at = p->sums_at + sides * groups * (int64_t)sizeof(struct engine_tile_sums);
    p->worker_bytes = p->halves_at + ENGINE_TILE_COLS * halves * (int64_t)sizeof(float);

    p->jobs_at = 64;
    p->columns_at =
        p->jobs_at + engine_round_up(p->max_jobs * (int64_t)sizeof(struct engine_product_job), 64);
    p->starts_at = p->columns_at +
                   engine_round_up(p->n_cols * (int64_t)sizeof(struct engine_product_column), 64);
    int64_t at = p->starts_at + (p->ids ? engine_round_up((n_matrices + 1) * 8, 64) : 0);
    for (int kind = 0; kind < ENGINE_PRODUCT_KINDS; kind++)
        if (!act_place(p, &p->act[kind], &at)) return false;
    p->shared_bytes = at;
    return true;
}

int64_t engine_product_scratch(const struct engine_product *p, int n_threads)
{
    return p->shared_bytes * (p->own_copy ? n_threads : 1) + p->worker_bytes * n_threads;
}

/* Enough for any core. */
static int64_t product_scratch(const struct engine_tensor *dst, int n_threads)
{
    struct engine_product p, dual;
    if (!engine_product_layout(&p, dst, n_threads, false, false) ||
        !engine_product_layout(&dual, dst, n_threads, true, true))
        return INT64_MAX; /* refused by the planner */
    return engine_max(engine_product_scratch(&p, n_threads),
                      engine_product_scratch(&dual, n_threads));
}

/* Every weight is read once, whatever the number of columns; of experts, one matrix per row of dst
 * at most. */
static struct engine_work product_work(const struct engine_tensor *dst)
{
    struct engine_product p = {0};
    sources(&p, dst);
    const double sides = engine_product_sides(&p);
    struct engine_work work = {
        .bytes = (double)engine_tensor_bytes(p.x) + (double)engine_tensor_bytes(dst),
        .macs = sides * (double)engine_tensor_elements(dst) * (double)p.x->ne[0]};
    for (int i = 0; i < p.n_w; i++) {
        double bytes = (double)engine_tensor_bytes(p.w[i]);
        double used = (double)engine_tensor_rows(dst) / (double)p.w[i]->ne[2];
        work.bytes += sides * (p.ids && used < 1.0 ? bytes * used : bytes);
    }
    return work;
}

/* ---- Shapes ---- */

static const char *weight_problem(const struct engine_tensor *w, const struct engine_tensor *x)
{
    if (w->type->act == QUANT_ACT_NONE) return "the weight's type has no arithmetic";
    if (w->ne[0] != x->ne[0]) return "rows of different length";
    if (!engine_tensor_row_contiguous(w)) return "the weight's rows are not contiguous";
    return NULL;
}

static bool mul_mat_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *x = dst->src[0];
    int64_t n = 0;
    if (!engine_tensor_is(x, QUANT_F32)) return engine_shape_fail(dst, err, "x must be F32");
    for (int i = 1; i <= ENGINE_PRODUCT_WEIGHTS && dst->src[i]; i++) {
        const struct engine_tensor *w = dst->src[i], *first = dst->src[1];
        const char *problem = weight_problem(w, x);
        if (problem) return engine_shape_fail(dst, err, problem);
        if (x->ne[2] % w->ne[2] || x->ne[3] % w->ne[3])
            return engine_shape_fail(dst, err, "the weight's batches do not divide those of x");
        if (w->ne[2] != first->ne[2] || w->ne[3] != first->ne[3])
            return engine_shape_fail(dst, err, "weights with different batches");
        if (__builtin_add_overflow(n, w->ne[1], &n))
            return engine_shape_fail(dst, err, "the result is too wide");
    }
    engine_dst_shape(dst, QUANT_F32, n, x->ne[1], x->ne[2], x->ne[3]);
    return true;
}

static bool mul_mat_id_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *x = dst->src[0], *w = dst->src[1], *ids = dst->src[2];
    const char *problem = weight_problem(w, x);
    if (problem) return engine_shape_fail(dst, err, problem);
    if (!engine_tensor_is(x, QUANT_F32)) return engine_shape_fail(dst, err, "x must be F32");
    if (!engine_tensor_is(ids, QUANT_I32) || ids->nb[0] != (int64_t)sizeof(int32_t))
        return engine_shape_fail(dst, err, "ids must be contiguous rows of I32");
    if (x->ne[3] != 1 || w->ne[3] != 1 || ids->ne[2] != 1 || ids->ne[3] != 1)
        return engine_shape_fail(dst, err, "too many dimensions");
    if (x->ne[2] != ids->ne[1] || (x->ne[1] != 1 && x->ne[1] != ids->ne[0]))
        return engine_shape_fail(dst, err, "x and ids do not fit");
    engine_dst_shape(dst, QUANT_F32, w->ne[1], ids->ne[0], ids->ne[1], 1);
    return true;
}

/* One kernel for both sides, row by row. */
static bool sides_match(struct engine_tensor *dst, const struct engine_tensor *up,
                        struct base_error *err)
{
    const struct engine_tensor *gate = dst->src[1];
    if (gate->type != up->type || !engine_tensor_same_shape(gate, up) || gate->nb[1] != up->nb[1])
        return engine_shape_fail(dst, err, "the sides differ");
    dst->ne[0] = gate->ne[1];
    return true;
}

static bool mul_mat_glu_shape(struct engine_tensor *dst, struct base_error *err)
{
    return mul_mat_shape(dst, err) && sides_match(dst, dst->src[2], err);
}

static bool mul_mat_id_glu_shape(struct engine_tensor *dst, struct base_error *err)
{
    return mul_mat_id_shape(dst, err) && sides_match(dst, dst->src[3], err);
}

/* ---- Ops and builders ---- */

const struct engine_op engine_op_mul_mat = {
    .name = "mul_mat",
    .split = ENGINE_SPLIT_OWN,
    .n_src = 2,
    .shape = mul_mat_shape,
    .scratch = product_scratch,
    .run = engine_product_run,
    .work = product_work,
};

const struct engine_op engine_op_mul_mat_id = {
    .name = "mul_mat_id",
    .split = ENGINE_SPLIT_OWN,
    .n_src = 3,
    .shape = mul_mat_id_shape,
    .scratch = product_scratch,
    .run = engine_product_run,
    .work = product_work,
};

/* param: the function. Made by the simplifier. */
const struct engine_op engine_op_mul_mat_glu = {
    .name = "mul_mat_glu",
    .split = ENGINE_SPLIT_OWN,
    .n_src = 3,
    .shape = mul_mat_glu_shape,
    .scratch = product_scratch,
    .run = engine_product_run,
    .work = product_work,
};

/* The same. */
const struct engine_op engine_op_mul_mat_id_glu = {
    .name = "mul_mat_id_glu",
    .split = ENGINE_SPLIT_OWN,
    .n_src = 4,
    .shape = mul_mat_id_glu_shape,
    .scratch = product_scratch,
    .run = engine_product_run,
    .work = product_work,
};

struct engine_tensor *engine_mul_mat_cat(struct engine_graph *g, struct engine_tensor *const *w,
                                         int n_w, struct engine_tensor *x)
{
    if (n_w < 1 || n_w > ENGINE_PRODUCT_WEIGHTS)
        return engine_graph_fail(g, "mul_mat: %d weights side by side", n_w);
    struct engine_tensor *src[1 + ENGINE_PRODUCT_WEIGHTS] = {x};
    for (int i = 0; i < n_w; i++) {
        if (!w[i]) return engine_graph_fail(g, "mul_mat: weight %d is missing", i);
        src[1 + i] = w[i];
    }
    return engine_graph_node(g, &engine_op_mul_mat, src, 1 + n_w, NULL, 0);
}

struct engine_tensor *engine_mul_mat(struct engine_graph *g, struct engine_tensor *w,
                                     struct engine_tensor *x)
{
    return engine_mul_mat_cat(g, &w, 1, x);
}

struct engine_tensor *engine_mul_mat_id(struct engine_graph *g, struct engine_tensor *w,
                                        struct engine_tensor *x, struct engine_tensor *ids)
{
    struct engine_tensor *src[] = {x, w, ids};
    return engine_graph_node(g, &engine_op_mul_mat_id, src, 3, NULL, 0);
}
