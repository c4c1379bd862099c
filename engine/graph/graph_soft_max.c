/* engine/graph/graph_soft_max.c: soft_max: row, shape rule and builder. Its
 * arithmetic on the CPU, which is the specification: engine/cpu/op/op_soft_max.c. */
#include "engine/graph_internal.h"
#include "engine/ops.h"

/* ---- soft_max ---- */

static bool soft_max_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *a = dst->src[0], *mask = dst->src[1], *sinks = dst->src[2];
    if (!engine_type_computes(a) || (mask && !engine_type_computes(mask)))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (mask &&
        (mask->ne[0] != a->ne[0] || mask->ne[1] != a->ne[1] || !engine_tensor_can_repeat(mask, a)))
        return engine_shape_fail(dst, err, "the mask does not fit");
    if (sinks && (!engine_tensor_is(sinks, QUANT_F32) || sinks->ne[0] != a->ne[2] ||
                  engine_tensor_rows(sinks) != 1))
        return engine_shape_fail(dst, err, "sinks must be one F32 for each head");
    engine_dst_like(dst, QUANT_F32, a);
    return true;
}

const struct engine_op engine_op_soft_max = {"soft_max", .n_src = 1, .shape = soft_max_shape,
                                             .in_place = true};

struct engine_tensor *engine_soft_max(struct engine_graph *g, struct engine_tensor *a,
                                      struct engine_tensor *mask, struct engine_tensor *sinks,
                                      float scale, float max_bias)
{
    struct engine_tensor *src[] = {a, mask, sinks};
    return engine_graph_node(g, &engine_op_soft_max, src, 3,
                             &(union engine_params){.soft_max = {scale, max_bias}});
}
