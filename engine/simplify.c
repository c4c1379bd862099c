/* engine/simplify.c: replaces groups of nodes by one fused node that computes the same bits with
 * fewer passes over memory:
 *     mul(norm(x), w), mul(rms_norm(x), w)    the norm with a weight
 *     add(norm, b)                            the norm with a bias
 *     mul(unary(gate), up)                    glu(gate, up), without activations that give zeros
 *     glu(cols(product), cols(product))       the product with a gate
 *     glu(product by id, the same by id)      the product by id with a gate
 *     glu(product, the same where the activation of the first is not zero)
 *                                             the product with a gate, also by id
 * The fused node replaces the last node of its group and has its name; the others then have no
 * users, so the plan removes them. No rounding changes. Called by graph.c before the plan. */
#include "engine/graph_internal.h"
#include "engine/ops.h"
#include <string.h>

struct simplifier {
    struct engine_graph *g;
    int *users; /* [n_tensors] number of sources that refer to the tensor */
};

/* Adds n to the users of each source of t that is in the graph. */
static void count_sources(struct simplifier *s, const struct engine_tensor *t, int n)
{
    for (int k = 0; k < ENGINE_MAX_SRC; k++) {
        const int i = t->src[k] ? engine_graph_index(s->g, t->src[k]) : -1;
        if (i >= 0) s->users[i] += n;
    }
}

/* Replaces the sources of t by src[ENGINE_MAX_SRC], or by none if src is NULL. */
static void set_sources(struct simplifier *s, struct engine_tensor *t,
                        struct engine_tensor *const *src)
{
    count_sources(s, t, -1);
    memset(t->src, 0, sizeof t->src);
    if (src) memcpy(t->src, src, sizeof t->src);
    count_sources(s, t, 1);
}

/* True if `first` can run at the place of `last`: only `users` nodes, which are fused too, read its
 * result, and no node in between writes into memory that it reads. */
static bool can_join(const struct simplifier *s, const struct engine_tensor *first, int users,
                     const struct engine_tensor *last)
{
    int from = engine_graph_index(s->g, first), to = engine_graph_index(s->g, last);
    if (from < 0 || first->is_output || s->users[from] != users || first->place != last->place)
        return false;
    for (int i = from + 1; i < to; i++) {
        const struct engine_tensor *t = &s->g->tensors[i];
        if (t->view_of && !t->op->is_view) return false;
    }
    return true;
}

/* Sets the op of `last` to `op`, and its sources to those of `first` with `extra` as source k. */
static void join(struct simplifier *s, struct engine_tensor *first, struct engine_tensor *last,
                 int k, struct engine_tensor *extra, const struct engine_op *op)
{
    struct engine_tensor *src[ENGINE_MAX_SRC];
    last->op = op;
    last->params = first->params;
    memcpy(src, first->src, sizeof src);
    src[k] = extra;
    set_sources(s, last, src);
    set_sources(s, first, NULL);
}

static bool is_norm(const struct engine_tensor *t)
{
    return t->op == &engine_op_norm || t->op == &engine_op_rms_norm;
}

/* Whether t is n columns of p's rows, from `first` on. */
static bool is_columns(const struct engine_tensor *t, const struct engine_tensor *p, int64_t first,
                       int64_t n)
{
    return t->op == &engine_op_view && t->src[0] == p && t->ne[0] == n && t->ne[1] == p->ne[1] &&
           t->ne[2] == p->ne[2] && t->ne[3] == p->ne[3] &&
           memcmp(t->nb, p->nb, sizeof t->nb) == 0 && t->view_offset == first * p->nb[0];
}

/* Replaces t = glu(gate, up) by `op` of `src`, if the device of t has one kernel for both sides.
 * `replaced`: the nodes that t makes unnecessary. */
static void join_gate(struct simplifier *s, struct engine_tensor *t, const struct engine_op *op,
                      struct engine_tensor *const src[4], struct engine_tensor *const replaced[3])
{
    struct engine_tensor joined = *t;
    struct base_error unused = BASE_ERROR_INIT; /* the shape rule's message if the sides differ */
    joined.op = op;
    memset(joined.src, 0, sizeof joined.src);
    for (int i = 0; i < 4; i++) joined.src[i] = src[i];
    const struct engine *engine = s->g->engine;
    const struct engine_backend *backend = engine->place[engine_tensor_place(t)].backend;
    if (!backend->fuses_gate || !backend->fuses_gate(engine, &joined) ||
        !op->shape(&joined, &unused) || !engine_tensor_same_shape(&joined, t))
        return;
    count_sources(s, t, -1);
    *t = joined;
    count_sources(s, t, 1);
    for (int i = 0; i < 3 && replaced[i]; i++) set_sources(s, replaced[i], NULL);
}

/* Fuses gate and up if they are the columns of the two weights of a product p. */
static void join_columns(struct simplifier *s, struct engine_tensor *t)
{
    struct engine_tensor *gate = t->src[0], *up = t->src[1], *p = gate->src[0];
    const int64_t n = t->ne[0];
    if (!p || p->op != &engine_op_mul_mat || !p->src[2] || p->src[3] ||
        !is_columns(gate, p, 0, n) || !is_columns(up, p, n, n) || !can_join(s, p, 2, t) ||
        !can_join(s, gate, 1, t) || !can_join(s, up, 1, t))
        return;
    join_gate(s, t, &engine_op_mul_mat_glu,
              (struct engine_tensor *[]){p->src[0], p->src[1], p->src[2], NULL},
              (struct engine_tensor *[]){p, gate, up});
}

/* Fuses gate and up if they are products of the same experts with the same rows. */
static void join_experts(struct simplifier *s, struct engine_tensor *t)
{
    struct engine_tensor *gate = t->src[0], *up = t->src[1];
    if (up->op != &engine_op_mul_mat_id || gate->src[0] != up->src[0] ||
        gate->src[2] != up->src[2] || !can_join(s, gate, 1, t) || !can_join(s, up, 1, t))
        return;
    join_gate(s, t, &engine_op_mul_mat_id_glu,
              (struct engine_tensor *[]){gate->src[0], gate->src[1], gate->src[2], up->src[1]},
              (struct engine_tensor *[]){gate, up, NULL});
}

/* Fuses gate and up if up is a product that skips rows where the activated gate is zero, with the
 * input, and experts, of the gate's product: glu of such an activation does not use these rows. */
static void join_active(struct simplifier *s, struct engine_tensor *t)
{
    struct engine_tensor *gate = t->src[0], *up = t->src[1];
    const bool by_id = up->op == &engine_op_mul_mat_id_active;
    struct engine_tensor *on = up->src[by_id ? 3 : 2];
    if (gate->op != (by_id ? &engine_op_mul_mat_id : &engine_op_mul_mat) ||
        gate->src[0] != up->src[0] || gate->src[2] != (by_id ? up->src[2] : NULL) ||
        on->op != &engine_op_unary || on->src[0] != gate || on->params.unary != t->params.unary ||
        !engine_unary_has_zeros(t->params.unary) || !can_join(s, gate, 2, t) ||
        !can_join(s, on, 1, t) || !can_join(s, up, 1, t))
        return;
    join_gate(s, t, by_id ? &engine_op_mul_mat_id_glu : &engine_op_mul_mat_glu,
              (struct engine_tensor *[]){gate->src[0], gate->src[1],
                                         by_id ? gate->src[2] : up->src[1],
                                         by_id ? up->src[1] : NULL},
              (struct engine_tensor *[]){up, on, gate});
}

static void join_glu(struct simplifier *s, struct engine_tensor *t)
{
    const struct engine_op *up = t->src[1]->op;
    if (up == &engine_op_mul_mat_active || up == &engine_op_mul_mat_id_active)
        join_active(s, t);
    else if (t->src[0]->op == &engine_op_mul_mat_id)
        join_experts(s, t);
    else
        join_columns(s, t);
}

bool engine_graph_simplify(struct engine_graph *g, struct base_error *err)
{
    struct simplifier simplifier = {g, NULL}, *s = &simplifier;
    s->users =
        base_arena_take(g->arena, (uint64_t)g->n_tensors * sizeof *s->users, sizeof *s->users, err);
    if (!s->users) return false;
    for (int i = 0; i < g->n_tensors; i++) count_sources(s, &g->tensors[i], 1);
    for (int i = 0; i < g->n_tensors; i++) {
        struct engine_tensor *t = &g->tensors[i], *a = t->src[0], *b = t->src[1];
        bool is_mul = t->op == &engine_op_mul, is_add = t->op == &engine_op_add;
        if (t->op == &engine_op_glu) join_glu(s, t);
        if ((!is_mul && !is_add) || !can_join(s, a, 1, t)) continue;
        if (is_mul && is_norm(a) && !a->src[1] && !a->src[2]) {
            join(s, a, t, 1, b, a->op);
        } else if (is_add && is_norm(a) && !a->src[2]) {
            join(s, a, t, 2, b, a->op);
        } else if (is_mul && a->op == &engine_op_unary && engine_tensor_same_shape(a, b) &&
                   !engine_unary_has_zeros(a->params.unary)) {
            join(s, a, t, 1, b, &engine_op_glu);
            join_glu(s, t);
        }
    }
    return true;
}
