/* engine/graph/graph_norm.c: the ops that normalize or sum rows: norm, rms_norm, l2_norm,
 * sum_rows: rows, shape rules and builders. Their arithmetic on the CPU, which is the
 * specification: engine/cpu/op/op_norm.c. */
#include "engine/graph_internal.h"
#include "engine/ops.h"

static bool row_shape(struct engine_tensor *dst, struct base_error *err)
{
    if (!engine_type_computes(dst->src[0]))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    engine_dst_like(dst, QUANT_F32, dst->src[0]);
    return true;
}

static struct engine_tensor *row_node(struct engine_graph *g, const struct engine_op *op,
                                      struct engine_tensor *a, float eps)
{
    return engine_graph_node(g, op, &a, 1, &(union engine_params){.norm = {.eps = eps}});
}

/* ---- norm, rms_norm, l2_norm ---- */

const struct engine_op engine_op_norm = {"norm", .n_src = 1, .shape = row_shape, .in_place = true};
const struct engine_op engine_op_rms_norm = {"rms_norm", .n_src = 1, .shape = row_shape,
                                             .in_place = true};

struct engine_tensor *engine_norm(struct engine_graph *g, struct engine_tensor *a, float eps)
{
    return row_node(g, &engine_op_norm, a, eps);
}

struct engine_tensor *engine_rms_norm(struct engine_graph *g, struct engine_tensor *a, float eps)
{
    return row_node(g, &engine_op_rms_norm, a, eps);
}

const struct engine_op engine_op_l2_norm = {"l2_norm", .n_src = 1, .shape = row_shape,
                                            .in_place = true};

struct engine_tensor *engine_l2_norm(struct engine_graph *g, struct engine_tensor *a, float eps)
{
    return row_node(g, &engine_op_l2_norm, a, eps);
}

/* ---- sum_rows ---- */

static bool sum_rows_shape(struct engine_tensor *dst, struct base_error *err)
{
    if (!row_shape(dst, err)) return false;
    dst->ne[0] = 1;
    return true;
}

const struct engine_op engine_op_sum_rows = {"sum_rows", .n_src = 1, .shape = sum_rows_shape};

struct engine_tensor *engine_sum_rows(struct engine_graph *g, struct engine_tensor *a)
{
    return engine_graph_node(g, &engine_op_sum_rows, &a, 1, NULL);
}
