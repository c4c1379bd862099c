/* engine/op/op_recurrent.c: ops that carry a state from token to token: ssm_conv, ssm_scan, wkv6,
 * wkv7, gated_delta. engine/graph_recurrent.h says what they compute, this file in which order.
 *
 * A node's memory holds the outputs of all tokens, then the new states, which are updated in place.
 * A unit of work is some rows of the state of one head of one sequence with all its tokens in
 * order, so the split between workers changes no bit. Rows go through the primitives of
 * engine/isa/vec.h (dot: lanes); other operations are single roundings; fmaf(a, b, c) = a b + c:
 *
 *     ssm_conv     from +0, ascending k: acc = fmaf(x[t + k], w[k], acc)
 *
 *     ssm_scan     d = softplus(dt)
 *                  state = state * exp(d * a); for one a per head fmaf(state, exp(d * a), 0)
 *                  state = fmaf(b, x * d, state)
 *                  out = dot(state, c)
 *
 *     wkv6         from +0, ascending i: out = fmaf(state_i, r_i, out)
 *                                        state_i = fmaf(state_i, decay_i, 0)
 *                                        state_i = fmaf(v, k_i, state_i)
 *                  at last out = fmaf(v, dot(bonus * k, r), out)
 *
 *     wkv7         sum = dot(a, state_i)
 *                  state_i = state_i * decay
 *                  state_i = fmaf(k, v_i, state_i)
 *                  state_i = fmaf(b, sum, state_i)
 *                  out_i = dot(state_i, r)
 *
 *     gated_delta  state_i = state_i * exp(gate); for one gate fmaf(state_i, exp(gate), 0)
 *                  delta = (v_i - dot(state_i, k)) * beta
 *                  state_i = fmaf(k, delta, state_i)
 *                  out_i = dot(state_i, q) * (1 / sqrt(DK)) */
#include "base/size.h"
#include "engine/graph_internal.h"
#include "engine/graph_recurrent.h"
#include "engine/op/op_rows.h"
#include "engine/ops.h"
#include <math.h>
#include <string.h>

/* ---- What the ops share ---- */

static bool has_shape(const struct engine_tensor *t, int64_t ne0, int64_t ne1, int64_t ne2,
                      int64_t ne3)
{
    return engine_type_computes(t) && t->type->block_len == 1 && t->ne[0] == ne0 &&
           t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == ne3;
}

static bool same_shape(const struct engine_tensor *t, const struct engine_tensor *like)
{
    return has_shape(t, like->ne[0], like->ne[1], like->ne[2], like->ne[3]);
}

/* Whether `ids` name a state for each sequence. */
static bool ids_fit(const struct engine_tensor *ids, int64_t n_seqs)
{
    return engine_tensor_is(ids, QUANT_I32) && ids->ne[0] == n_seqs && engine_tensor_rows(ids) == 1;
}

/* dst: as many floats as `out` has elements, then those of S states. */
static bool shape_with_state(struct engine_tensor *dst, const struct engine_tensor *out,
                             int64_t n_state, int64_t n_seqs, struct base_error *err)
{
    uint64_t states, all;
    if (!base_mul((uint64_t)n_state, (uint64_t)n_seqs, &states) ||
        !base_add(states, (uint64_t)engine_tensor_elements(out), &all) || all > INT64_MAX / 4)
        return engine_shape_fail(dst, err, "the states are too large");
    engine_dst_shape(dst, QUANT_F32, (int64_t)all, 1, 1, 1);
    return true;
}

/* Appends a node and returns the two views of it: `out` is shaped as source `like`, the states as
 * source `state`, one for each sequence of `like`. */
static struct engine_recurrent recurrent_node(struct engine_graph *g, const struct engine_op *op,
                                              struct engine_tensor *const *src, int like, int state)
{
    struct engine_tensor *node = engine_graph_node(g, op, src, op->n_src, NULL, 0);
    if (!node) return (struct engine_recurrent){NULL, NULL};
    const int64_t *out = src[like]->ne, *old = src[state]->ne;
    const int64_t ne[] = {old[0], old[1], old[2], out[3]};
    const int64_t offset = engine_tensor_elements(src[like]) * (int64_t)sizeof(float);
    return (struct engine_recurrent){
        .out = engine_graph_view(g, &engine_op_view, node, ENGINE_DIMS, out, NULL, 0),
        .state = engine_graph_view(g, &engine_op_view, node, ENGINE_DIMS, ne, NULL, offset)};
}

/* A unit of work, rows of the state of one head of one sequence, at one token. */
struct unit {
    const struct engine_task *task;
    const struct engine_vec *vec;
    struct engine_tensor *dst;
    int64_t buffer;      /* floats of a buffer */
    int64_t h, s, t;     /* head, sequence, token */
    int64_t row, n_rows; /* which rows of the head's state */
    float *state;        /* these rows, updated in place */
    float *out;          /* their outputs at this token */
    float *spare;        /* a buffer of the op's own */
};

/* Rows of a unit, for states with an output per row: few enough to stay in the L1 cache from token
 * to token. */
enum { UNIT_ROWS = 32 };

enum { BUFFER_SPARE = 7, BUFFERS = 8 }; /* one for each source, of which there are at most 7 */

/* The length of a buffer: the longest row among the sources. */
static int64_t buffer_floats(const struct engine_tensor *dst)
{
    int64_t n = 0;
    for (int k = 0; k < ENGINE_MAX_SRC; k++)
        if (dst->src[k]) n = engine_max(n, dst->src[k]->ne[0]);
    return n;
}

static int64_t buffers_scratch(const struct engine_tensor *dst, int n_threads)
{
    return engine_scratch_bytes(n_threads, BUFFERS, buffer_floats(dst));
}

static struct unit unit_new(const struct engine_task *task, struct engine_tensor *dst)
{
    const int64_t buffer = buffer_floats(dst);
    return (struct unit){.task = task,
                         .vec = &task->engine->vec,
                         .dst = dst,
                         .buffer = buffer,
                         .spare = engine_scratch_buffer(task, buffer, BUFFER_SPARE)};
}

/* Row (i1, i2, i3) of source k, through the source's buffer. */
static const float *row_of(const struct unit *u, int k, int64_t i1, int64_t i2, int64_t i3)
{
    const struct engine_tensor *t = u->dst->src[k];
    const struct engine_piece at = {.i1 = i1, .i2 = i2, .i3 = i3, .n = t->ne[0]};
    return engine_piece_load(u->task->engine, t, &at, engine_scratch_buffer(u->task, u->buffer, k));
}

/* The unit's row of a source that has one for each head, token and sequence. */
static const float *head_row(const struct unit *u, int k)
{
    return row_of(u, k, u->h, u->t, u->s);
}

/* Copies the unit's rows of the state, source k at `from`, to the new state; NaN if the slot does
 * not exist. */
static void state_start(struct unit *u, int k, int64_t out_elements, int64_t from)
{
    const struct engine_tensor *t = u->dst->src[k];
    const int64_t n = t->ne[0], row = (u->s * t->ne[2] + u->h) * t->ne[1] + u->row;
    u->state = (float *)(void *)u->dst->data + out_elements + row * n;
    const bool exists = from >= 0 && from < t->ne[3];
    for (int64_t i = 0; exists && i < u->n_rows; i++)
        memcpy(u->state + i * n, row_of(u, k, u->row + i, u->h, from), (size_t)n * sizeof(float));
    for (int64_t i = 0; !exists && i < n * u->n_rows; i++) u->state[i] = NAN;
}

/* Runs `step` on each token of each unit; `like`: the source whose shape `out` has; `ids`: the
 * source with each sequence's slot, or -1: sequence s takes slot s. */
static void run_units(const struct engine_task *task, struct engine_tensor *dst, int like,
                      int state, int ids, int64_t unit_rows, void (*step)(const struct unit *u))
{
    struct unit u = unit_new(task, dst);
    const struct engine_tensor *x = dst->src[like];
    const int64_t dim = x->ne[0], heads = x->ne[1], tokens = x->ne[2];
    const int64_t rows = dst->src[state]->ne[1], per_head = (rows + unit_rows - 1) / unit_rows;
    int64_t first, last;
    engine_task_rows(task, per_head * heads * x->ne[3], &first, &last);
    for (int64_t unit = first; unit < last; unit++) {
        u.row = unit % per_head * unit_rows;
        u.n_rows = engine_min(unit_rows, rows - u.row);
        u.h = unit / per_head % heads;
        u.s = unit / per_head / heads;
        int32_t from = (int32_t)u.s;
        if (ids >= 0) memcpy(&from, dst->src[ids]->data + u.s * dst->src[ids]->nb[0], sizeof from);
        state_start(&u, state, engine_tensor_elements(x), from);
        for (u.t = 0; u.t < tokens; u.t++) {
            const int64_t out = ((u.s * tokens + u.t) * heads + u.h) * dim + u.row;
            u.out = (float *)(void *)dst->data + out;
            step(&u);
        }
    }
}

/* ---- ssm_conv: x [S][K - 1 + T][C], weight [K][C] to [S][T][C] ---- */

static bool ssm_conv_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *x = dst->src[0], *w = dst->src[1];
    if (!has_shape(w, x->ne[0], w->ne[1], 1, 1) || !same_shape(x, x) || x->ne[3] != 1 ||
        x->ne[1] < w->ne[1])
        return engine_shape_fail(dst, err, "shapes do not fit");
    engine_dst_shape(dst, QUANT_F32, x->ne[0], x->ne[1] - w->ne[1] + 1, x->ne[2], 1);
    return true;
}

static void ssm_conv_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *x = dst->src[0], *w = dst->src[1];
    float *buffer_x = engine_scratch_buffer(task, ENGINE_PIECE, 0),
          *buffer_w = engine_scratch_buffer(task, ENGINE_PIECE, 1);
    int64_t first, last;
    engine_task_rows(task, engine_pieces(dst), &first, &last);
    for (int64_t p = first; p < last; p++) {
        const struct engine_piece at = engine_piece_at(dst, p);
        float *out = engine_piece_out(dst, &at);
        memset(out, 0, (size_t)at.n * sizeof *out);
        for (int64_t k = 0; k < w->ne[1]; k++) {
            struct engine_piece from = at, tap = {.i1 = k, .first = at.first, .n = at.n};
            from.i1 += k;
            task->engine->vec.mul_add(at.n, engine_piece_load(task->engine, x, &from, buffer_x),
                                      engine_piece_load(task->engine, w, &tap, buffer_w), out);
        }
    }
}

const struct engine_op engine_op_ssm_conv =
    ENGINE_ROWS_OP("ssm_conv", 2, ssm_conv_shape, engine_scratch_pieces, ssm_conv_run);

/* The op works on rows of channels, which are contiguous if x and weight are transposed views. */
struct engine_tensor *engine_ssm_conv(struct engine_graph *g, struct engine_tensor *x,
                                      struct engine_tensor *weight)
{
    struct engine_tensor *src[] = {engine_transpose(g, x), engine_transpose(g, weight)};
    return engine_graph_node(g, &engine_op_ssm_conv, src, 2, NULL, 0);
}

/* ---- ssm_scan ---- */

enum { SCAN_STATE, SCAN_X, SCAN_DT, SCAN_A, SCAN_B, SCAN_C, SCAN_IDS };

static bool ssm_scan_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *const *src = dst->src;
    const struct engine_tensor *x = src[SCAN_X], *state = src[SCAN_STATE], *b = src[SCAN_B];
    const int64_t n = state->ne[0], heads = x->ne[1], tokens = x->ne[2], seqs = x->ne[3];
    const struct engine_tensor *a = src[SCAN_A], *ids = src[SCAN_IDS];
    if (!same_shape(x, x) || !has_shape(state, n, x->ne[0], heads, state->ne[3]) ||
        !has_shape(src[SCAN_DT], heads, tokens, seqs, 1) ||
        !has_shape(a, a->ne[0] == 1 ? 1 : n, heads, 1, 1) ||
        !has_shape(b, n, b->ne[1], tokens, seqs) || !same_shape(src[SCAN_C], b) ||
        heads % b->ne[1] != 0 || !ids_fit(ids, seqs))
        return engine_shape_fail(dst, err, "shapes do not fit");
    return shape_with_state(dst, x, n * x->ne[0] * heads, seqs, err);
}

static void ssm_scan_step(const struct unit *u)
{
    const struct engine_tensor *state = u->dst->src[SCAN_STATE];
    const int64_t n_a = u->dst->src[SCAN_A]->ne[0];
    const int64_t group = u->h / (state->ne[2] / u->dst->src[SCAN_B]->ne[1]);
    float d = row_of(u, SCAN_DT, u->t, u->s, 0)[u->h];
    u->vec->unary[ENGINE_SOFTPLUS](1, &d, &d);
    u->vec->scale(n_a, row_of(u, SCAN_A, u->h, 0, 0), d, 0.0f, u->spare);
    u->vec->unary[ENGINE_EXP](n_a, u->spare, u->spare);
    const struct engine_vec_scan scan = {.n_rows = u->n_rows,
                                         .n = state->ne[0],
                                         .n_decay = n_a,
                                         .decay = u->spare,
                                         .b = row_of(u, SCAN_B, group, u->t, u->s),
                                         .c = row_of(u, SCAN_C, group, u->t, u->s),
                                         .x = head_row(u, SCAN_X) + u->row,
                                         .d = d,
                                         .s = u->state,
                                         .out = u->out};
    u->vec->scan(&scan);
}

static void ssm_scan_run(const struct engine_task *task, struct engine_tensor *dst)
{
    run_units(task, dst, SCAN_X, SCAN_STATE, SCAN_IDS, UNIT_ROWS, ssm_scan_step);
}

const struct engine_op engine_op_ssm_scan =
    ENGINE_ROWS_OP("ssm_scan", 7, ssm_scan_shape, buffers_scratch, ssm_scan_run);

struct engine_recurrent engine_ssm_scan(struct engine_graph *g, struct engine_tensor *state,
                                        struct engine_tensor *x, struct engine_tensor *dt,
                                        struct engine_tensor *a, struct engine_tensor *b,
                                        struct engine_tensor *c, struct engine_tensor *ids)
{
    struct engine_tensor *src[] = {state, x, dt, a, b, c, ids};
    return recurrent_node(g, &engine_op_ssm_scan, src, SCAN_X, SCAN_STATE);
}

/* ---- wkv6 ---- */

enum { WKV6_K, WKV6_V, WKV6_R, WKV6_BONUS, WKV6_DECAY, WKV6_STATE };

static bool wkv6_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *const *src = dst->src;
    const struct engine_tensor *k = src[WKV6_K];
    const int64_t dim = k->ne[0], heads = k->ne[1];
    if (!same_shape(k, k) || !same_shape(src[WKV6_V], k) || !same_shape(src[WKV6_R], k) ||
        !same_shape(src[WKV6_DECAY], k) || !has_shape(src[WKV6_BONUS], dim, heads, 1, 1) ||
        !has_shape(src[WKV6_STATE], dim, dim, heads, k->ne[3]))
        return engine_shape_fail(dst, err, "shapes do not fit");
    return shape_with_state(dst, k, dim * dim * heads, k->ne[3], err);
}

static void wkv6_step(const struct unit *u)
{
    const struct engine_vec *vec = u->vec;
    const int64_t dim = u->dst->src[WKV6_K]->ne[0];
    const float *k = head_row(u, WKV6_K), *v = head_row(u, WKV6_V), *r = head_row(u, WKV6_R);
    const float *decay = head_row(u, WKV6_DECAY), *bonus = row_of(u, WKV6_BONUS, u->h, 0, 0);
    memset(u->out, 0, (size_t)dim * sizeof(float));
    for (int64_t i = 0; i < dim; i++) {
        float *row = u->state + i * dim;
        vec->mad(dim, row, r[i], u->out);
        vec->scale(dim, row, decay[i], 0.0f, row);
        vec->mad(dim, v, k[i], row);
    }
    vec->mul(dim, bonus, k, u->spare);
    vec->mad(dim, v, vec->dot(dim, u->spare, r), u->out);
}

static void wkv6_run(const struct engine_task *task, struct engine_tensor *dst)
{
    /* Each output is a sum over all rows. */
    run_units(task, dst, WKV6_K, WKV6_STATE, -1, dst->src[WKV6_STATE]->ne[1], wkv6_step);
}

const struct engine_op engine_op_wkv6 =
    ENGINE_ROWS_OP("wkv6", 6, wkv6_shape, buffers_scratch, wkv6_run);

struct engine_recurrent engine_wkv6(struct engine_graph *g, struct engine_tensor *k,
                                    struct engine_tensor *v, struct engine_tensor *r,
                                    struct engine_tensor *bonus, struct engine_tensor *decay,
                                    struct engine_tensor *state)
{
    struct engine_tensor *src[] = {k, v, r, bonus, decay, state};
    return recurrent_node(g, &engine_op_wkv6, src, WKV6_K, WKV6_STATE);
}

/* ---- wkv7 ---- */

enum { WKV7_R, WKV7_DECAY, WKV7_K, WKV7_V, WKV7_A, WKV7_B, WKV7_STATE };

static bool wkv7_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *const *src = dst->src;
    const struct engine_tensor *r = src[WKV7_R];
    const int64_t dim = r->ne[0];
    bool fits = has_shape(src[WKV7_STATE], dim, dim, r->ne[1], r->ne[3]);
    for (int i = WKV7_R; i <= WKV7_B; i++) fits = fits && same_shape(src[i], r);
    if (!fits) return engine_shape_fail(dst, err, "shapes do not fit");
    return shape_with_state(dst, r, dim * dim * r->ne[1], r->ne[3], err);
}

static void wkv7_step(const struct unit *u)
{
    const struct engine_vec *vec = u->vec;
    const int64_t dim = u->dst->src[WKV7_R]->ne[0];
    const float *in[WKV7_STATE];
    for (int i = WKV7_R; i <= WKV7_B; i++) in[i] = head_row(u, i);
    for (int64_t i = 0; i < u->n_rows; i++) {
        float *row = u->state + i * dim;
        const float sum = vec->dot(dim, in[WKV7_A], row);
        vec->mul(dim, row, in[WKV7_DECAY], row);
        vec->mad(dim, in[WKV7_K], in[WKV7_V][u->row + i], row);
        vec->mad(dim, in[WKV7_B], sum, row);
        u->out[i] = vec->dot(dim, row, in[WKV7_R]);
    }
}

static void wkv7_run(const struct engine_task *task, struct engine_tensor *dst)
{
    run_units(task, dst, WKV7_R, WKV7_STATE, -1, UNIT_ROWS, wkv7_step);
}

const struct engine_op engine_op_wkv7 =
    ENGINE_ROWS_OP("wkv7", 7, wkv7_shape, buffers_scratch, wkv7_run);

struct engine_recurrent engine_wkv7(struct engine_graph *g, struct engine_tensor *r,
                                    struct engine_tensor *decay, struct engine_tensor *k,
                                    struct engine_tensor *v, struct engine_tensor *a,
                                    struct engine_tensor *b, struct engine_tensor *state)
{
    struct engine_tensor *src[] = {r, decay, k, v, a, b, state};
    return recurrent_node(g, &engine_op_wkv7, src, WKV7_R, WKV7_STATE);
}

/* ---- gated_delta ---- */

enum { DELTA_Q, DELTA_K, DELTA_V, DELTA_GATE, DELTA_BETA, DELTA_STATE, DELTA_IDS };

static bool gated_delta_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *const *src = dst->src;
    const struct engine_tensor *q = src[DELTA_Q], *v = src[DELTA_V], *gate = src[DELTA_GATE];
    const int64_t dim = v->ne[0], heads = v->ne[1], tokens = v->ne[2], seqs = v->ne[3];
    const struct engine_tensor *state = src[DELTA_STATE];
    const int64_t dim_k = q->ne[0];
    if (!same_shape(v, v) || !has_shape(q, dim_k, q->ne[1], tokens, seqs) ||
        !same_shape(src[DELTA_K], q) || heads % q->ne[1] != 0 ||
        !has_shape(gate, gate->ne[0] == 1 ? 1 : dim_k, heads, tokens, seqs) ||
        !has_shape(src[DELTA_BETA], 1, heads, tokens, seqs) ||
        !has_shape(state, dim_k, dim, heads, state->ne[3]) || !ids_fit(src[DELTA_IDS], seqs))
        return engine_shape_fail(dst, err, "shapes do not fit");
    return shape_with_state(dst, v, dim * dim_k * heads, seqs, err);
}

static void gated_delta_step(const struct unit *u)
{
    const struct engine_tensor *q = u->dst->src[DELTA_Q];
    const int64_t n_gate = u->dst->src[DELTA_GATE]->ne[0], head_k = u->h % q->ne[1];
    u->vec->unary[ENGINE_EXP](n_gate, head_row(u, DELTA_GATE), u->spare);
    const struct engine_vec_delta delta = {.n_rows = u->n_rows,
                                           .n = q->ne[0],
                                           .n_decay = n_gate,
                                           .decay = u->spare,
                                           .k = row_of(u, DELTA_K, head_k, u->t, u->s),
                                           .q = row_of(u, DELTA_Q, head_k, u->t, u->s),
                                           .v = head_row(u, DELTA_V) + u->row,
                                           .beta = head_row(u, DELTA_BETA)[0],
                                           .scale = 1.0f / sqrtf((float)q->ne[0]),
                                           .s = u->state,
                                           .out = u->out};
    u->vec->delta(&delta);
}

static void gated_delta_run(const struct engine_task *task, struct engine_tensor *dst)
{
    run_units(task, dst, DELTA_V, DELTA_STATE, DELTA_IDS, UNIT_ROWS, gated_delta_step);
}

const struct engine_op engine_op_gated_delta =
    ENGINE_ROWS_OP("gated_delta", 7, gated_delta_shape, buffers_scratch, gated_delta_run);

struct engine_recurrent engine_gated_delta(struct engine_graph *g, struct engine_tensor *q,
                                           struct engine_tensor *k, struct engine_tensor *v,
                                           struct engine_tensor *gate, struct engine_tensor *beta,
                                           struct engine_tensor *state, struct engine_tensor *ids)
{
    struct engine_tensor *src[] = {q, k, v, gate, beta, state, ids};
    return recurrent_node(g, &engine_op_gated_delta, src, DELTA_V, DELTA_STATE);
}
