/* engine/graph_internal.h: private to engine/: how a builder appends a node (graph_build.c), and
 * the graph struct for plan.c and simplify.c.
 *
 * A builder is one line, and two more where the op has parameters:
 *
 *     return ENGINE_NODE(g, &engine_op_expert_sum, y, weights);
 *
 *     struct engine_tensor *src[] = {a};
 *     union engine_params params = {.scale = {scale, bias}};
 *     return engine_graph_node(g, &engine_op_scale, src, 1, &params);
 */
#pragma once

#include "base/arena.h"
#include "engine/graph.h"
#include "engine/op.h"
#include "engine/plan.h"

/* ---- For builders and shape rules ---- */

/* Appends the node op(src...) with params (NULL: none). The first op->n_src sources are required,
 * later ones may be NULL. Calls the op's shape rule, then gives dst contiguous strides, unless the
 * rule has set dst->view_of (the result is in a source's memory: see engine_dst_over). NULL when
 * the graph has an error or this call records one: a missing source, a shape that does not fit, too
 * many tensors.
 */
struct engine_tensor *engine_graph_node(struct engine_graph *g, const struct engine_op *op,
                                        struct engine_tensor *const *src, int n_src,
                                        const union engine_params *params);
/* Appends the node op(sources...) of an op without parameters. */
#define ENGINE_NODE(g, op, ...)                                                                    \
    engine_graph_node(g, op, (struct engine_tensor *[]){__VA_ARGS__},                              \
                      (int)(sizeof((struct engine_tensor *[]){__VA_ARGS__}) / sizeof(void *)),     \
                      NULL)

/* Appends a view of `a`: ne and nb (NULL: contiguous) of n_dims dimensions, `offset` bytes after
 * the start of a. Fails if the view exceeds the memory of `a`. */
struct engine_tensor *engine_graph_view(struct engine_graph *g, const struct engine_op *op,
                                        struct engine_tensor *a, int n_dims, const int64_t *ne,
                                        const int64_t *nb, int64_t offset);

/* Records an error that a builder has found, unless there is an earlier error. Returns NULL, so
 * that `return engine_graph_fail(...)` ends a builder. */
struct engine_tensor *engine_graph_fail(struct engine_graph *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For shape rules: records BASE_MODEL "op: what (types and shapes of all sources)"; returns
 * false. */
bool engine_shape_fail(const struct engine_tensor *dst, struct base_error *err, const char *what);

/* For shape rules: set the type of dst, and the given shape or the shape of `like`. */
void engine_dst_shape(struct engine_tensor *dst, enum quant_id type, int64_t ne0, int64_t ne1,
                      int64_t ne2, int64_t ne3);
void engine_dst_like(struct engine_tensor *dst, enum quant_id type,
                     const struct engine_tensor *like);

/* For shape rules of ops that write into a source: dst is all of `target`, in its memory. */
void engine_dst_over(struct engine_tensor *dst, struct engine_tensor *target);

/* True if t's type can be decoded to floats. */
bool engine_type_computes(const struct engine_tensor *t);
/* True if floats can also be encoded to t's type. */
bool engine_type_stores(const struct engine_tensor *t);

/* ---- Tensors ---- */

enum { ENGINE_SHAPE_SIZE = 96 };
/* "[ne3][ne2][ne1][ne0]" without leading ones. Returns out. */
const char *engine_tensor_shape(const struct engine_tensor *t, char out[ENGINE_SHAPE_SIZE]);

/* Contiguous strides for t's type and ne; false when the shape is impossible or too large. */
bool engine_tensor_layout(struct engine_tensor *t);

static inline bool engine_tensor_is(const struct engine_tensor *t, enum quant_id type)
{
    return t->type->id == type;
}

/* The tensor whose memory t uses (t itself if it is not a view). */
static inline struct engine_tensor *engine_tensor_root(struct engine_tensor *t)
{
    return t->view_of ? t->view_of : t;
}

/* The tensor that a run of t writes in addition to its result, or NULL. */
static inline struct engine_tensor *engine_updated(const struct engine_tensor *t)
{
    return t->op && t->op->updates ? t->src[t->op->updates - 1] : NULL;
}

/* The number of KV slots of a cache of either kind (engine/graph.h). */
static inline int64_t engine_kv_slots(const struct engine_tensor *cache)
{
    return engine_tensor_is(cache, QUANT_I8) ? cache->ne[2] * ENGINE_KV_Q16_GROUP : cache->ne[2];
}

/* ---- The graph itself: graph.c, graph_build.c, plan.c, simplify.c ---- */

struct engine_graph {
    struct engine *engine;
    const struct engine_place *place; /* of the nodes that builders append */
    struct base_arena *arena;         /* the memory of tensors and of the plan */
    struct base_error err;            /* the first error of the builders */
    struct engine_tensor *tensors;
    int n_tensors, max_tensors;
    bool planned;
    struct engine_plan plan;
};

/* The index of a tensor of this graph, or -1 for a leaf outside of it (a weight). */
static inline int engine_graph_index(const struct engine_graph *g, const struct engine_tensor *t)
{
    const uintptr_t first = (uintptr_t)g->tensors, at = (uintptr_t)t;
    if (at < first || at >= first + (size_t)g->n_tensors * sizeof *t) return -1;
    return (int)((at - first) / sizeof *t);
}

/* engine/simplify.c: replaces groups of nodes by fused ones that give the same bits, in time linear
 * in the size of the graph. BASE_NO_MEMORY when the arena is full. */
bool engine_graph_simplify(struct engine_graph *g, struct base_error *err);
