/* engine/graph_build.c: building a graph: appends nodes, views, inputs and outputs, and names them;
 * the first error sticks.
 *
 * Contains the checks that every builder shares. The builders of single ops and their arithmetic
 * are in op_*.c, matmul/ and attention/, planning and running in graph.c. */
#include "base/size.h"
#include "engine/graph_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Errors ---- */

struct engine_tensor *engine_graph_fail(struct engine_graph *g, const char *format, ...)
{
    char text[sizeof g->err.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return base_null(base_fail(&g->err, BASE_MODEL, "%s", text));
}

bool engine_shape_fail(const struct engine_tensor *dst, struct base_error *err, const char *what)
{
    char list[256] = "", shape[ENGINE_SHAPE_SIZE];
    size_t used = 0;
    for (int i = 0; i < ENGINE_MAX_SRC && used < sizeof list; i++) {
        const struct engine_tensor *s = dst->src[i];
        if (!s) continue;
        int n = snprintf(list + used, sizeof list - used, "%s%s %s %s", used ? ", " : "", s->name,
                         s->type->name, engine_tensor_shape(s, shape));
        if (n > 0) used += (size_t)n;
    }
    return base_fail(err, BASE_MODEL, "%s: %s (%s)", dst->op->name, what, list);
}

/* ---- Appending ---- */

/* The next free tensor, zeroed; tensor_commit adds it to the graph. */
static struct engine_tensor *tensor_begin(struct engine_graph *g)
{
    if (g->err.code) return NULL;
    if (g->planned) return engine_graph_fail(g, "graph: nodes added after the plan");
    if (g->n_tensors == g->max_tensors)
        return engine_graph_fail(g, "graph: more than %d tensors", g->max_tensors);
    struct engine_tensor *t = &g->tensors[g->n_tensors];
    *t = (struct engine_tensor){0};
    return t;
}

static struct engine_tensor *tensor_commit(struct engine_graph *g, struct engine_tensor *t)
{
    g->n_tensors++;
    return t;
}

/* A source must be a leaf or a node of this graph: data of another graph's nodes is not
 * persistent. */
static bool source_ok(struct engine_graph *g, const struct engine_op *op,
                      const struct engine_tensor *s)
{
    if (!s->op || engine_graph_index(g, s) >= 0) return true;
    engine_graph_fail(g, "%s: source %s is a node of another graph", op->name, s->name);
    return false;
}

struct engine_tensor *engine_graph_node(struct engine_graph *g, const struct engine_op *op,
                                        struct engine_tensor *const *src, int n_src,
                                        const union engine_params *params)
{
    struct engine_tensor *dst = tensor_begin(g);
    if (!dst) return NULL;
    if (n_src > ENGINE_MAX_SRC)
        return engine_graph_fail(g, "%s: %d sources are too many", op->name, n_src);
    dst->op = op;
    snprintf(dst->name, sizeof dst->name, "%s-%d", op->name, g->n_tensors);
    for (int i = 0; i < n_src; i++) {
        if (!src[i] && i < op->n_src)
            return engine_graph_fail(g, "%s: source %d is missing", op->name, i);
        if (src[i] && !source_ok(g, op, src[i])) return NULL;
        dst->src[i] = src[i];
    }
    if (params) dst->params = *params;
    if (!op->shape(dst, &g->err)) {
        engine_graph_fail(g, "%s: shapes do not fit", op->name); /* if the rule gave no message */
        return NULL;
    }
    dst->place = dst->view_of ? engine_tensor_root(dst->view_of)->place : g->place;
    if (dst->view_of) {
        dst->view_offset = dst->view_of->view_offset;
        dst->view_of = engine_tensor_root(dst->view_of);
    } else if (!engine_tensor_layout(dst)) {
        engine_shape_fail(dst, &g->err, "the result is impossible or too large");
        return NULL;
    }
    return tensor_commit(g, dst);
}

/* Adds (count - 1) * stride to *reach; false when it wraps or an argument is out of range. */
static bool reach_add(uint64_t *reach, int64_t count, int64_t stride)
{
    uint64_t bytes;
    return count > 0 && stride >= 0 && base_mul((uint64_t)count - 1, (uint64_t)stride, &bytes) &&
           base_add(*reach, bytes, reach);
}

/* Whether all elements of t are inside the memory of its root. */
static bool view_fits(const struct engine_tensor *t)
{
    const struct quant_type *type = t->type;
    if (t->view_offset < 0 || t->ne[0] <= 0 || t->ne[0] % type->block_len != 0) return false;
    if (type->block_len > 1 && t->nb[0] != (int64_t)type->block_bytes) return false;
    /* A row's header precedes its blocks, so a view must consist of whole rows. */
    if (type->header_bytes && t->ne[0] != t->view_of->ne[0]) return false;
    uint64_t reach = (uint64_t)t->view_offset;
    if (!base_add(reach, type->header_bytes + (uint64_t)type->block_bytes, &reach)) return false;
    if (!reach_add(&reach, t->ne[0] / type->block_len, t->nb[0])) return false;
    for (int d = 1; d < ENGINE_DIMS; d++)
        if (!reach_add(&reach, t->ne[d], t->nb[d])) return false;
    return reach <= (uint64_t)engine_tensor_bytes(t->view_of);
}

struct engine_tensor *engine_graph_view(struct engine_graph *g, const struct engine_op *op,
                                        struct engine_tensor *a, int n_dims, const int64_t *ne,
                                        const int64_t *nb, int64_t offset)
{
    struct engine_tensor *dst = tensor_begin(g);
    if (!dst) return NULL;
    if (!a) return engine_graph_fail(g, "%s: source 0 is missing", op->name);
    if (!source_ok(g, op, a)) return NULL;
    if (n_dims < 1 || n_dims > ENGINE_DIMS)
        return engine_graph_fail(g, "%s: %d dimensions", op->name, n_dims);
    dst->op = op;
    snprintf(dst->name, sizeof dst->name, "%s-%d", op->name, g->n_tensors);
    dst->src[0] = a;
    dst->type = a->type;
    dst->view_of = engine_tensor_root(a);
    dst->place = dst->view_of->place;
    for (int d = 0; d < ENGINE_DIMS; d++) dst->ne[d] = d < n_dims ? ne[d] : 1;
    bool fits = engine_tensor_layout(dst);
    /* Dimensions beyond n_dims have one element, so any stride is valid; they keep the contiguous
     * one. */
    if (nb)
        for (int d = 0; d < n_dims; d++) dst->nb[d] = nb[d];
    if (!fits || __builtin_add_overflow(a->view_offset, offset, &dst->view_offset) || offset < 0 ||
        !view_fits(dst)) {
        char shape[ENGINE_SHAPE_SIZE], whole[ENGINE_SHAPE_SIZE];
        return engine_graph_fail(g, "%s: %s at byte %lld is not inside %s %s", op->name,
                                 engine_tensor_shape(dst, shape), (long long)offset, a->name,
                                 engine_tensor_shape(a, whole));
    }
    return tensor_commit(g, dst);
}

/* ---- Shapes of results ---- */

void engine_dst_shape(struct engine_tensor *dst, enum quant_id type, int64_t ne0, int64_t ne1,
                      int64_t ne2, int64_t ne3)
{
    dst->type = quant_type_by_id(type);
    dst->ne[0] = ne0;
    dst->ne[1] = ne1;
    dst->ne[2] = ne2;
    dst->ne[3] = ne3;
}

void engine_dst_like(struct engine_tensor *dst, enum quant_id type,
                     const struct engine_tensor *like)
{
    engine_dst_shape(dst, type, like->ne[0], like->ne[1], like->ne[2], like->ne[3]);
}

void engine_dst_over(struct engine_tensor *dst, struct engine_tensor *target)
{
    engine_dst_like(dst, target->type->id, target);
    memcpy(dst->nb, target->nb, sizeof dst->nb);
    dst->view_of = target;
}

/* ---- Inputs, outputs, names ---- */

struct engine_tensor *engine_input(struct engine_graph *g, enum quant_id type, int n_dims,
                                   const int64_t *ne, const char *name)
{
    struct engine_tensor *t = tensor_begin(g);
    if (!t) return NULL;
    if (!engine_tensor_init(t, quant_type_by_id(type), n_dims, ne, NULL, name, &g->err))
        return NULL;
    return tensor_commit(g, t);
}

void engine_output(struct engine_graph *g, struct engine_tensor *t)
{
    if (!t) {
        engine_graph_fail(g, "graph: an output is missing");
    } else if (engine_graph_index(g, t) < 0) {
        engine_graph_fail(g, "graph: output %s is not of this graph", t->name);
    } else {
        t->is_output = true;
    }
}

struct engine_tensor *engine_name(struct engine_tensor *t, const char *format, ...)
{
    if (!t) return NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(t->name, sizeof t->name, format, args);
    va_end(args);
    return t;
}

bool engine_type_computes(const struct engine_tensor *t)
{
    return t->type->act != NULL;
}

bool engine_type_stores(const struct engine_tensor *t)
{
    return engine_type_computes(t) && t->type->scalar.encode != NULL;
}
