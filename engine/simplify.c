/* engine/simplify.c: replaces groups of nodes by one node that gives the same bits with fewer
 * passes over memory:
 *     mul(norm(x), w), mul(rms_norm(x), w)    the norm with a weight
 *     add(norm, b)                            the norm with a bias
 *     mul(unary(gate), up)                    glu(gate, up)
 * The fused node takes the place and name of the last of its group; the others are left without
 * users, so the plan drops them. Refuses: anything that would change a rounding. Called by graph.c
 * before the plan. */
#include "engine/graph_internal.h"
#include "engine/ops.h"
#include <string.h>

static int count_users(const struct engine_graph *g, const struct engine_tensor *t)
{
    int users = 0;
    for (int i = engine_graph_index(g, t) + 1; i < g->n_tensors; i++)
        for (int k = 0; k < ENGINE_MAX_SRC; k++) users += g->tensors[i].src[k] == t;
    return users;
}

/* True when `first` can run at the place of its only user `last`: nobody else wants its result, and
 * nothing in between writes into memory that it reads. */
static bool can_join(const struct engine_graph *g, const struct engine_tensor *first,
                     const struct engine_tensor *last)
{
    int from = engine_graph_index(g, first), to = engine_graph_index(g, last);
    if (from < 0 || first->is_output || count_users(g, first) != 1) return false;
    for (int i = from + 1; i < to; i++) {
        const struct engine_tensor *t = &g->tensors[i];
        if (t->view_of && !t->op->is_view) return false;
    }
    return true;
}

/* `last` becomes the op of `first`, with `extra` as source number k. */
static void join(struct engine_tensor *first, struct engine_tensor *last, int k,
                 struct engine_tensor *extra, const struct engine_op *op)
{
    last->op = op;
    memcpy(last->param, first->param, sizeof last->param);
    memcpy(last->src, first->src, sizeof last->src);
    last->src[k] = extra;
    memset(first->src, 0, sizeof first->src);
}

static bool is_norm(const struct engine_tensor *t)
{
    return t->op == &engine_op_norm || t->op == &engine_op_rms_norm;
}

void engine_graph_simplify(struct engine_graph *g)
{
    for (int i = 0; i < g->n_tensors; i++) {
        struct engine_tensor *t = &g->tensors[i], *a = t->src[0], *b = t->src[1];
        bool is_mul = t->op == &engine_op_mul, is_add = t->op == &engine_op_add;
        if ((!is_mul && !is_add) || !can_join(g, a, t)) continue;
        if (is_mul && is_norm(a) && !a->src[1] && !a->src[2]) {
            join(a, t, 1, b, a->op);
        } else if (is_add && is_norm(a) && !a->src[2]) {
            join(a, t, 2, b, a->op);
        } else if (is_mul && a->op == &engine_op_unary && engine_tensor_same_shape(a, b)) {
            join(a, t, 1, b, &engine_op_glu);
        }
    }
}
