/* engine/matmul/matmul_op.c: products of weights with activations as ops: rows, builders, shapes.
 *
 *   op              src[0]  src[1]          src[2]          src[3] src[4]
 *   mul_mat         x       weight          more weights: adjacent results
 *   mul_mat_id      x       experts         ids
 *   mul_mat_glu     x       gate's weight   up's weight
 *   mul_mat_id_glu  x       gate's experts  ids             up's experts
 *
 * The simplifier creates the last two. Weights are used in place (mapped files, views, permuted
 * intermediates): only the elements of one row must be contiguous. */
#include "base/size.h"
#include "engine/graph_internal.h"
#include "engine/matmul/matmul.h"
#include "engine/ops.h"
#include "engine/profile.h"

/* The maximum of the levels that this machine runs and of both values of dual_512. Levels differ
 * only where the best one has wider column panels. */
static int64_t product_scratch(const struct engine_tensor *dst, int n_threads)
{
    const enum cpu_level level[] = {cpu_level_best(), CPU_SCALAR};
    int64_t max_bytes = 0;
    int n_levels = 1;
    for (int i = 0; i < n_levels; i++)
        for (int dual = 0; dual < 2; dual++) {
            struct engine_matmul p;
            if (!engine_matmul_layout(&p, dst, n_threads, level[i], dual))
                return INT64_MAX; /* the planner rejects this size */
            max_bytes = engine_max(max_bytes, engine_matmul_scratch(&p, n_threads));
            if (p.tile->cols > ENGINE_TILE_COLS) n_levels = 2;
        }
    return max_bytes;
}

/* The work of reading every weight once for any number of columns; with experts, at most one matrix
 * per row of dst. */
static struct engine_work product_work(const struct engine_tensor *dst)
{
    struct engine_matmul p = {0};
    engine_matmul_sources(&p, dst);
    const double sides = engine_matmul_sides(&p);
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

/* The name of the route of the first weight for the average number of columns of a gemm. */
static const char *product_route(const struct engine *e, const struct engine_tensor *dst)
{
    struct engine_matmul p;
    if (!engine_matmul_layout(&p, dst, e->options.n_threads, e->quant.level, e->quant.dual_512))
        return NULL;
    const struct engine_route_facts facts = engine_route_facts(e, &p);
    const int64_t columns = (p.n_cols + p.max_gemms - 1) / p.max_gemms;
    const struct quant_type *type = p.w[0]->type;
    return engine_route_name(
        engine_route_of(&facts, type->act, e->quant.type[type->id].few_columns, columns));
}

/* ---- Shapes ---- */

static const char *weight_problem(const struct engine_tensor *w, const struct engine_tensor *x)
{
    if (!w->type->act) return "the weight's type has no arithmetic";
    if (w->ne[0] != x->ne[0]) return "rows of different length";
    if (!engine_tensor_row_contiguous(w)) return "the weight's rows are not contiguous";
    return NULL;
}

static bool mul_mat_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *x = dst->src[0];
    int64_t n = 0;
    if (!engine_tensor_is(x, QUANT_F32)) return engine_shape_fail(dst, err, "x must be F32");
    for (int i = 1; i <= ENGINE_MATMUL_WEIGHTS && dst->src[i]; i++) {
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

/* One kernel computes both sides, so their types and shapes must match. */
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

#define PRODUCT_OP(name_, sources, shape_)                                                         \
    {                                                                                              \
        .name = (name_), .split = ENGINE_SPLIT_OWN, .n_src = (sources), .shape = (shape_),         \
        .scratch = product_scratch, .run = engine_matmul_run, .work = product_work,                \
        .route = product_route                                                                     \
    }
const struct engine_op engine_op_mul_mat = PRODUCT_OP("mul_mat", 2, mul_mat_shape);
const struct engine_op engine_op_mul_mat_id = PRODUCT_OP("mul_mat_id", 3, mul_mat_id_shape);
const struct engine_op engine_op_mul_mat_glu = PRODUCT_OP("mul_mat_glu", 3, mul_mat_glu_shape);
const struct engine_op engine_op_mul_mat_id_glu =
    PRODUCT_OP("mul_mat_id_glu", 4, mul_mat_id_glu_shape);

struct engine_tensor *engine_mul_mat_cat(struct engine_graph *g, struct engine_tensor *const *w,
                                         int n_w, struct engine_tensor *x)
{
    if (n_w < 1 || n_w > ENGINE_MATMUL_WEIGHTS)
        return engine_graph_fail(g, "mul_mat: %d weights, not 1 to %d", n_w, ENGINE_MATMUL_WEIGHTS);
    struct engine_tensor *src[1 + ENGINE_MATMUL_WEIGHTS] = {x};
    for (int i = 0; i < n_w; i++) {
        if (!w[i]) return engine_graph_fail(g, "mul_mat: weight %d is missing", i);
        src[1 + i] = w[i];
    }
    return engine_graph_node(g, &engine_op_mul_mat, src, 1 + n_w, NULL);
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
    return engine_graph_node(g, &engine_op_mul_mat_id, src, 3, NULL);
}
