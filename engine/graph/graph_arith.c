/* engine/graph/graph_arith.c: the elementwise ops: add, sub, mul, div, scale, clamp, softcap,
 * unary, glu: rows, shape rules and builders. Their arithmetic on the CPU, which is the
 * specification: engine/cpu/op/op_arith.c. */
#include "engine/graph_internal.h"
#include "engine/ops.h"

/* ---- Two operands ---- */

static bool binary_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    if (!engine_type_computes(a) || !engine_type_computes(b))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (!engine_tensor_can_repeat(b, a))
        return engine_shape_fail(dst, err, "the second does not repeat over the first");
    engine_dst_like(dst, QUANT_F32, a);
    return true;
}

#define BINARY_OP(name_)                                                                           \
    const struct engine_op engine_op_##name_ = {#name_, .n_src = 2, .shape = binary_shape,         \
                                                .in_place = true};                                 \
    struct engine_tensor *engine_##name_(struct engine_graph *g, struct engine_tensor *a,          \
                                         struct engine_tensor *b)                                  \
    {                                                                                              \
        return ENGINE_NODE(g, &engine_op_##name_, a, b);                                           \
    }
BINARY_OP(add)
BINARY_OP(sub)
BINARY_OP(mul)
BINARY_OP(div)

/* ---- One operand ---- */

static bool map_shape(struct engine_tensor *dst, struct base_error *err)
{
    if (!engine_type_computes(dst->src[0]))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    engine_dst_like(dst, QUANT_F32, dst->src[0]);
    return true;
}

const struct engine_op engine_op_scale = {"scale", .n_src = 1, .shape = map_shape,
                                          .in_place = true};
const struct engine_op engine_op_clamp = {"clamp", .n_src = 1, .shape = map_shape,
                                          .in_place = true};
const struct engine_op engine_op_softcap = {"softcap", .n_src = 1, .shape = map_shape,
                                            .in_place = true};
const struct engine_op engine_op_unary = {"unary", .n_src = 1, .shape = map_shape,
                                          .in_place = true};

struct engine_tensor *engine_scale(struct engine_graph *g, struct engine_tensor *a, float scale,
                                   float bias)
{
    return engine_graph_node(g, &engine_op_scale, &a, 1,
                             &(union engine_params){.scale = {scale, bias}});
}

struct engine_tensor *engine_clamp(struct engine_graph *g, struct engine_tensor *a, float lo,
                                   float hi)
{
    return engine_graph_node(g, &engine_op_clamp, &a, 1, &(union engine_params){.clamp = {lo, hi}});
}

struct engine_tensor *engine_softcap(struct engine_graph *g, struct engine_tensor *a, float cap)
{
    return engine_graph_node(g, &engine_op_softcap, &a, 1, &(union engine_params){.softcap = cap});
}

struct engine_tensor *engine_unary(struct engine_graph *g, struct engine_tensor *a,
                                   enum engine_unary f)
{
    return engine_graph_node(g, &engine_op_unary, &a, 1, &(union engine_params){.unary = f});
}

/* ---- Gated units ---- */

static bool glu_shape(struct engine_tensor *dst, struct base_error *err)
{
    if (!engine_tensor_same_shape(dst->src[0], dst->src[1]))
        return engine_shape_fail(dst, err, "gate and up differ in shape");
    return binary_shape(dst, err);
}

const struct engine_op engine_op_glu = {"glu", .n_src = 2, .shape = glu_shape, .in_place = true};

struct engine_tensor *engine_glu(struct engine_graph *g, struct engine_tensor *gate,
                                 struct engine_tensor *up, enum engine_unary f)
{
    struct engine_tensor *src[] = {gate, up};
    return engine_graph_node(g, &engine_op_glu, src, 2, &(union engine_params){.unary = f});
}
