/* engine/graph/graph_experts.c: the ops of experts: choose_experts, expert_weights, expert_sum,
 * glu_clamp: rows, shape rules and builders. Their arithmetic on the CPU, which is the
 * specification: engine/cpu/op/op_experts.c. */
#include "engine/graph_internal.h"
#include "engine/ops.h"

/* ---- choose_experts: probs [T][X], bias [X] or NULL to ids [T][U] ---- */

static bool choose_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *probs = dst->src[0], *bias = dst->src[1];
    const int64_t n = probs->ne[0], used = dst->params.choose_experts.n_used;
    const int64_t groups = dst->params.choose_experts.n_groups;
    const int64_t groups_used = dst->params.choose_experts.n_groups_used;
    if (!engine_type_computes(probs) || (bias && !engine_type_computes(bias)))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (n > INT32_MAX || probs->ne[2] != 1 || probs->ne[3] != 1)
        return engine_shape_fail(dst, err, "probabilities must be one row for each token");
    if (bias && (bias->ne[0] != n || engine_tensor_rows(bias) != 1))
        return engine_shape_fail(dst, err, "there must be one bias for each expert");
    if (groups < 1 || n % groups || groups_used < 1 || groups_used > groups)
        return engine_shape_fail(dst, err, "impossible groups of experts");
    if (used < 1 || used > n || dst->params.choose_experts.divisor < 1)
        return engine_shape_fail(dst, err, "impossible number of experts to use");
    engine_dst_shape(dst, QUANT_I32, used, probs->ne[1], 1, 1);
    return true;
}

const struct engine_op engine_op_choose_experts = {"choose_experts", .n_src = 1,
                                                   .shape = choose_shape};

struct engine_tensor *engine_choose_experts(struct engine_graph *g, struct engine_tensor *probs,
                                            struct engine_tensor *bias, int n_used, int n_groups,
                                            int n_groups_used)
{
    struct engine_tensor *src[] = {probs, bias};
    return engine_graph_node(
        g, &engine_op_choose_experts, src, 2,
        &(union engine_params){.choose_experts = {n_used, n_groups, n_groups_used, .divisor = 1}});
}

struct engine_tensor *engine_choose_expert_chunks(struct engine_graph *g,
                                                  struct engine_tensor *probs, int n_used,
                                                  int chunk)
{
    struct engine_tensor *src[] = {probs, NULL};
    return engine_graph_node(
        g, &engine_op_choose_experts, src, 2,
        &(union engine_params){.choose_experts = {n_used, 1, 1, .divisor = chunk}});
}

/* ---- expert_weights: probs [T][X], ids [T][U] to [T][U] ---- */

static bool weights_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *probs = dst->src[0], *ids = dst->src[1];
    if (!engine_type_computes(probs))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (!engine_tensor_is(ids, QUANT_I32)) return engine_shape_fail(dst, err, "ids must be I32");
    if (ids->ne[1] != probs->ne[1] || ids->ne[2] != 1 || ids->ne[3] != 1 || probs->ne[2] != 1 ||
        probs->ne[3] != 1)
        return engine_shape_fail(dst, err, "there must be one row of ids for each token");
    engine_dst_shape(dst, QUANT_F32, ids->ne[0], ids->ne[1], 1, 1);
    return true;
}

const struct engine_op engine_op_expert_weights = {"expert_weights", .n_src = 2,
                                                   .shape = weights_shape};

struct engine_tensor *engine_expert_weights(struct engine_graph *g, struct engine_tensor *probs,
                                            struct engine_tensor *ids, bool softmax, bool normalize,
                                            float scale)
{
    struct engine_tensor *src[] = {probs, ids};
    return engine_graph_node(g, &engine_op_expert_weights, src, 2,
                             &(union engine_params){.expert_weights = {softmax, normalize, scale}});
}

/* ---- expert_sum: y [T][U][E], weights [T][U] to [T][E] ---- */

static bool sum_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *y = dst->src[0], *w = dst->src[1];
    if (!engine_type_computes(y)) return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (!engine_tensor_is(w, QUANT_F32) || w->ne[0] != y->ne[1] || w->ne[1] != y->ne[2] ||
        w->ne[2] != 1 || w->ne[3] != 1 || y->ne[3] != 1)
        return engine_shape_fail(dst, err, "there must be one weight for each expert's row");
    engine_dst_shape(dst, QUANT_F32, y->ne[0], y->ne[2], 1, 1);
    return true;
}

const struct engine_op engine_op_expert_sum = {"expert_sum", .n_src = 2, .shape = sum_shape};

struct engine_tensor *engine_expert_sum(struct engine_graph *g, struct engine_tensor *y,
                                        struct engine_tensor *weights)
{
    return ENGINE_NODE(g, &engine_op_expert_sum, y, weights);
}

/* ---- glu_clamp ---- */

static bool glu_clamp_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *gate = dst->src[0], *up = dst->src[1];
    if (!engine_type_computes(gate) || !engine_type_computes(up))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (!engine_tensor_same_shape(gate, up))
        return engine_shape_fail(dst, err, "gate and up differ in shape");
    engine_dst_like(dst, QUANT_F32, gate);
    return true;
}

const struct engine_op engine_op_glu_clamp = {"glu_clamp", .n_src = 2, .shape = glu_clamp_shape,
                                              .in_place = true};

struct engine_tensor *engine_glu_clamp(struct engine_graph *g, struct engine_tensor *gate,
                                       struct engine_tensor *up, enum engine_unary f, float limit,
                                       float offset)
{
    struct engine_tensor *src[] = {gate, up};
    return engine_graph_node(g, &engine_op_glu_clamp, src, 2,
                             &(union engine_params){.glu_clamp = {f, limit, offset}});
}
