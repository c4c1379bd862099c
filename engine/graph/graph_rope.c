/* engine/graph/graph_rope.c: rotary position embedding: the table of cosines and sines by position,
 * computed once per graph run for all layers and heads, and the rotation: rows, shape rules and
 * builders. Their arithmetic on the CPU, which is the specification: engine/cpu/op/op_rope.c. */
#include "engine/graph_internal.h"
#include "engine/ops.h"
#include <string.h>

/* ---- The table: [T][n_rot], each row n cosines, then n sines ---- */

static bool table_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *positions = dst->src[0], *factors = dst->src[1];
    int n_rot = dst->params.rope.n_rot;
    const int64_t rows = positions->ne[1];
    if (n_rot < 2 || n_rot % 2 != 0) return engine_shape_fail(dst, err, "n_rot must be even");
    if (!(dst->params.rope.freq_base > 0.0f) || !(dst->params.rope.freq_scale > 0.0f))
        return engine_shape_fail(dst, err, "frequency base and scale must be positive");
    if (!engine_tensor_is(positions, QUANT_I32) || engine_tensor_rows(positions) != rows ||
        (rows != 1 && (rows != 4 || !engine_rope_has_sections(&dst->params.rope))))
        return engine_shape_fail(dst, err, "positions must be I32, one row (sections: or four)");
    if (factors && (!engine_tensor_is(factors, QUANT_F32) || factors->ne[0] < n_rot / 2))
        return engine_shape_fail(dst, err, "factors must be F32, one for each pair");
    engine_dst_shape(dst, QUANT_F32, n_rot, positions->ne[0], 1, 1);
    return true;
}

const struct engine_op engine_op_rope_table = {"rope_table", .n_src = 1, .shape = table_shape};

/* Returns a table with these sources and parameters: one that is in the graph, or a new one. It is
 * in place 0 for all devices: the bits of pow, sin and cos depend on the library. */
static struct engine_tensor *rope_table(struct engine_graph *g, struct engine_tensor *positions,
                                        struct engine_tensor *factors,
                                        const struct engine_rope *rope)
{
    struct engine_tensor *src[] = {positions, factors};
    for (int i = 0; i < g->n_tensors; i++) {
        struct engine_tensor *t = &g->tensors[i];
        if (t->op == &engine_op_rope_table && t->src[0] == positions && t->src[1] == factors &&
            memcmp(&t->params.rope, rope, sizeof *rope) == 0)
            return t;
    }
    const struct engine_place *place = g->place;
    g->place = &g->engine->place[0];
    struct engine_tensor *t =
        engine_graph_node(g, &engine_op_rope_table, src, 2, &(union engine_params){.rope = *rope});
    g->place = place;
    return t;
}

/* ---- The rotation: x[N][T][H][D] with a table [T][n_rot] ---- */

static bool rope_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *x = dst->src[0], *table = dst->src[1];
    if (!engine_type_computes(x)) return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (table->ne[0] > x->ne[0])
        return engine_shape_fail(dst, err, "more elements to rotate than a head has");
    if (table->ne[1] != x->ne[2])
        return engine_shape_fail(dst, err, "there must be one position for each token");
    engine_dst_like(dst, QUANT_F32, x);
    return true;
}

const struct engine_op engine_op_rope = {"rope", .n_src = 2, .shape = rope_shape};

struct engine_tensor *engine_rope(struct engine_graph *g, struct engine_tensor *x,
                                  struct engine_tensor *positions, struct engine_tensor *factors,
                                  const struct engine_rope *rope)
{
    struct engine_tensor *src[] = {x, rope_table(g, positions, factors, rope)};
    return engine_graph_node(g, &engine_op_rope, src, 2, &(union engine_params){.rope = *rope});
}
