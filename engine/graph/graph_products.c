/* engine/graph/graph_products.c: products of weights with activations: rows, shape rules, builders,
 * work. On the CPU: engine/matmul/. The simplifier makes the rows with a gate. */
#include "engine/graph_internal.h"
#include "engine/op_sources.h"
#include "engine/ops.h"
#include "quant/columns.h"

/* If src[2] is I32, it has the ids, because no weight has that type. With a gate, the rows of dst
 * have as many elements as the gate's weight has rows; without one, as many as all weights
 * together. */
struct engine_product engine_product_of(const struct engine_tensor *dst)
{
    struct engine_product p = {0};
    struct engine_tensor *const *src = dst->src;
    if (dst->op == &engine_op_mul_mat_active || dst->op == &engine_op_mul_mat_id_active) {
        const bool with_ids = dst->op == &engine_op_mul_mat_id_active;
        return (struct engine_product){.x = src[0],
                                       .ids = with_ids ? src[2] : NULL,
                                       .w = {src[1]},
                                       .active = src[with_ids ? 3 : 2],
                                       .n_w = 1};
    }
    if (dst->op == &engine_op_mul_mat_columns)
        return (struct engine_product){.x = src[0], .columns = src[2], .w = {src[1]}, .n_w = 1};
    if (dst->op == &engine_op_mul_mat_id_columns)
        return (struct engine_product){
            .x = src[0], .ids = src[2], .columns = src[3], .w = {src[1]}, .n_w = 1};
    const bool by_id = src[2] && engine_tensor_is(src[2], QUANT_I32);
    const int second = by_id ? 3 : 2;
    const bool gated = src[second] && dst->ne[0] == src[1]->ne[1];
    p.x = src[0];
    p.ids = by_id ? src[2] : NULL;
    p.up = gated ? src[second] : NULL;
    for (int i = 0; i < (by_id || gated ? 1 : ENGINE_PRODUCT_WEIGHTS) && src[i + 1]; i++)
        p.w[p.n_w++] = src[i + 1];
    return p;
}

/* The work of reading every weight once for any number of columns; with experts, at most one matrix
 * per row of dst. Rows of results that are known to be zero, and columns of zeros, are not read: as
 * all may be zero, the weights of such nodes do not count. */
static struct engine_work product_work(const struct engine_tensor *dst)
{
    const struct engine_product p = engine_product_of(dst);
    const double sides = p.up ? 2 : 1;
    struct engine_work work = {
        .bytes = (double)engine_tensor_bytes(p.x) + (double)engine_tensor_bytes(dst),
        .macs = sides * (double)engine_tensor_elements(dst) * (double)p.x->ne[0]};
    if (p.active || p.columns) {
        work.macs = 0.0;
        work.bytes += p.active ? (double)engine_tensor_bytes(p.active) : 0.0;
        return work;
    }
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

/* A number for each result, at the same place. */
static bool active_matches(struct engine_tensor *dst, const struct engine_tensor *active,
                           struct base_error *err)
{
    if (!engine_tensor_is(active, QUANT_F32) || !engine_tensor_same_shape(active, dst) ||
        !engine_tensor_contiguous(active))
        return engine_shape_fail(dst, err, "`active` must be contiguous F32 of the result's shape");
    return true;
}

/* One matrix by columns of one batch. */
static bool matrix_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *x = dst->src[0], *w = dst->src[1];
    const char *problem = weight_problem(w, x);
    if (problem) return engine_shape_fail(dst, err, problem);
    if (!engine_tensor_is(x, QUANT_F32)) return engine_shape_fail(dst, err, "x must be F32");
    if (x->ne[2] != 1 || x->ne[3] != 1 || w->ne[2] != 1 || w->ne[3] != 1)
        return engine_shape_fail(dst, err, "too many dimensions");
    engine_dst_shape(dst, QUANT_F32, w->ne[1], x->ne[1], 1, 1);
    return true;
}

/* A copy of each matrix of w. */
static bool columns_match(struct engine_tensor *dst, const struct engine_tensor *columns,
                          struct base_error *err)
{
    const struct engine_tensor *w = dst->src[1];
    uint64_t bytes;
    if (!quant_columns_size(w->type, w->ne[0], w->ne[1], &bytes) ||
        !engine_tensor_is(columns, QUANT_I8) || !engine_tensor_contiguous(columns) ||
        columns->ne[0] != (int64_t)bytes || engine_tensor_rows(columns) != w->ne[2])
        return engine_shape_fail(dst, err, "the columns do not fit the weight");
    return true;
}

static bool mul_mat_transposed_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *x = dst->src[0], *w = dst->src[1];
    if (!w->type->act) return engine_shape_fail(dst, err, "the weight's type has no arithmetic");
    if (!engine_tensor_is(x, QUANT_F32) || !engine_tensor_row_contiguous(x))
        return engine_shape_fail(dst, err, "x must be contiguous rows of F32");
    if (w->ne[1] != x->ne[0] || !engine_tensor_row_contiguous(w))
        return engine_shape_fail(dst, err, "the weight does not fit");
    if (x->ne[2] != 1 || x->ne[3] != 1 || w->ne[2] != 1 || w->ne[3] != 1)
        return engine_shape_fail(dst, err, "too many dimensions");
    engine_dst_shape(dst, QUANT_F32, w->ne[0], x->ne[1], 1, 1);
    return true;
}

/* As all of x may be zero, the weight does not count. */
static struct engine_work transposed_work(const struct engine_tensor *dst)
{
    return (struct engine_work){.bytes = (double)engine_tensor_bytes(dst->src[0]) +
                                         (double)engine_tensor_bytes(dst)};
}

static bool add_low_rank_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *y = dst->src[ENGINE_LOW_RANK_Y], *z = dst->src[ENGINE_LOW_RANK_Z];
    const struct engine_tensor *b = dst->src[ENGINE_LOW_RANK_B];
    const struct engine_tensor *scale = dst->src[ENGINE_LOW_RANK_SCALE];
    const struct engine_tensor *ids = dst->src[ENGINE_LOW_RANK_IDS];
    const int64_t panel = ENGINE_LOW_RANK_PANEL;
    if (!engine_tensor_is(y, QUANT_F32) || !engine_tensor_is(z, QUANT_F32) ||
        !engine_tensor_row_contiguous(y) || !engine_tensor_row_contiguous(z))
        return engine_shape_fail(dst, err, "y and z must be contiguous rows of F32");
    if (!b->type->act || !engine_tensor_contiguous(b))
        return engine_shape_fail(dst, err, "b must be contiguous, of a type with arithmetic");
    if (z->ne[1] != y->ne[1] || z->ne[2] != y->ne[2] || y->ne[3] != 1 || z->ne[3] != 1)
        return engine_shape_fail(dst, err, "y and z do not fit");
    if (b->ne[0] != panel || b->ne[1] != z->ne[0] || b->ne[2] != (y->ne[0] + panel - 1) / panel ||
        (!ids && b->ne[3] != 1))
        return engine_shape_fail(dst, err, "b does not fit");
    if (!engine_tensor_is(scale, QUANT_F32) || !engine_tensor_contiguous(scale) ||
        engine_tensor_elements(scale) != (ids ? y->ne[2] : engine_tensor_rows(y)))
        return engine_shape_fail(dst, err, "there must be one scale for each token");
    if (ids &&
        (!engine_tensor_is(ids, QUANT_I32) || ids->nb[0] != (int64_t)sizeof(int32_t) ||
         ids->ne[0] != y->ne[1] || ids->ne[1] != y->ne[2] || ids->ne[2] != 1 || ids->ne[3] != 1))
        return engine_shape_fail(dst, err, "ids do not fit");
    engine_dst_like(dst, QUANT_F32, y);
    return true;
}

static struct engine_work low_rank_work(const struct engine_tensor *dst)
{
    const struct engine_tensor *b = dst->src[ENGINE_LOW_RANK_B];
    const double macs =
        (double)engine_tensor_elements(dst) * (double)dst->src[ENGINE_LOW_RANK_Z]->ne[0];
    const double used = (double)engine_tensor_rows(dst) / (double)b->ne[3];
    return (struct engine_work){.bytes = 2.0 * (double)engine_tensor_bytes(dst) +
                                         (double)engine_tensor_bytes(b) * (used < 1.0 ? used : 1.0),
                                .macs = macs};
}

/* ---- Rows and builders ---- */

const struct engine_op engine_op_add_low_rank = {.name = "add_low_rank",
                                                 .in_place = true,
                                                 .n_src = 4,
                                                 .shape = add_low_rank_shape,
                                                 .work = low_rank_work};

struct engine_tensor *engine_add_low_rank(struct engine_graph *g, struct engine_tensor *y,
                                          struct engine_tensor *z, struct engine_tensor *b,
                                          struct engine_tensor *scale, float factor,
                                          struct engine_tensor *ids)
{
    struct engine_tensor *src[] = {y, z, b, scale, ids};
    return engine_graph_node(g, &engine_op_add_low_rank, src, 5,
                             &(union engine_params){.low_rank = factor});
}

const struct engine_op engine_op_mul_mat_transposed = {.name = "mul_mat_transposed",
                                                       .n_src = 2,
                                                       .shape = mul_mat_transposed_shape,
                                                       .work = transposed_work};

struct engine_tensor *engine_mul_mat_transposed(struct engine_graph *g, struct engine_tensor *w,
                                                struct engine_tensor *x)
{
    return ENGINE_NODE(g, &engine_op_mul_mat_transposed, x, w);
}

/* Defines the row of a product; SHAPE: an expression of dst and err, whether its sources fit. */
#define PRODUCT_OP(NAME, N_SRC, SHAPE)                                                             \
    static bool NAME##_op_shape(struct engine_tensor *dst, struct base_error *err)                 \
    {                                                                                              \
        return SHAPE;                                                                              \
    }                                                                                              \
    const struct engine_op engine_op_##NAME = {                                                    \
        .name = #NAME, .n_src = (N_SRC), .shape = NAME##_op_shape, .work = product_work};
PRODUCT_OP(mul_mat, 2, mul_mat_shape(dst, err))
PRODUCT_OP(mul_mat_id, 3, mul_mat_id_shape(dst, err))
PRODUCT_OP(mul_mat_glu, 3, mul_mat_shape(dst, err) && sides_match(dst, dst->src[2], err))
PRODUCT_OP(mul_mat_id_glu, 4, mul_mat_id_shape(dst, err) && sides_match(dst, dst->src[3], err))
PRODUCT_OP(mul_mat_active, 3, matrix_shape(dst, err) && active_matches(dst, dst->src[2], err))
PRODUCT_OP(mul_mat_id_active, 4,
           mul_mat_id_shape(dst, err) && active_matches(dst, dst->src[3], err))
PRODUCT_OP(mul_mat_columns, 3, matrix_shape(dst, err) && columns_match(dst, dst->src[2], err))
PRODUCT_OP(mul_mat_id_columns, 4,
           mul_mat_id_shape(dst, err) && columns_match(dst, dst->src[3], err))

struct engine_tensor *engine_mul_mat_cat(struct engine_graph *g, struct engine_tensor *const *w,
                                         int n_w, struct engine_tensor *x)
{
    if (n_w < 1 || n_w > ENGINE_PRODUCT_WEIGHTS)
        return engine_graph_fail(g, "mul_mat: %d weights, not 1 to %d", n_w,
                                 ENGINE_PRODUCT_WEIGHTS);
    struct engine_tensor *src[1 + ENGINE_PRODUCT_WEIGHTS] = {x};
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
    return ENGINE_NODE(g, &engine_op_mul_mat_id, x, w, ids);
}

struct engine_tensor *engine_mul_mat_active(struct engine_graph *g, struct engine_tensor *w,
                                            struct engine_tensor *x, struct engine_tensor *active)
{
    return ENGINE_NODE(g, &engine_op_mul_mat_active, x, w, active);
}

struct engine_tensor *engine_mul_mat_id_active(struct engine_graph *g, struct engine_tensor *w,
                                               struct engine_tensor *x, struct engine_tensor *ids,
                                               struct engine_tensor *active)
{
    return ENGINE_NODE(g, &engine_op_mul_mat_id_active, x, w, ids, active);
}

struct engine_tensor *engine_mul_mat_columns(struct engine_graph *g, struct engine_tensor *w,
                                             struct engine_tensor *columns, struct engine_tensor *x)
{
    return ENGINE_NODE(g, &engine_op_mul_mat_columns, x, w, columns);
}

struct engine_tensor *engine_mul_mat_id_columns(struct engine_graph *g, struct engine_tensor *w,
                                                struct engine_tensor *columns,
                                                struct engine_tensor *x, struct engine_tensor *ids)
{
    return ENGINE_NODE(g, &engine_op_mul_mat_id_columns, x, w, ids, columns);
}
