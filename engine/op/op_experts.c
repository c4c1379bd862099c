/* engine/op/op_experts.c: ops of mixtures of experts: choosing experts, their weights, the sum of
 * their outputs, and clamped gated units. Their products are mul_mat_id (matmul/).
 *
 * Arithmetic; every operation is rounded once, sum and exp are those of engine/isa/vec.h:
 *
 *     choose_experts  s = prob + bias (no bias: prob). The score of a group of X / n_groups
 *                     experts is the sum of its two largest s; s of all but the n_groups_used best
 *                     groups (of equal scores: the lower ones) becomes -inf. ids: the U largest s,
 *                     descending, equal ones by ascending id, NaN last; chunks: id / chunk
 *     expert_weights  w = probs[id], NaN for an id out of range;  softmax: m = max w, w = exp(w - m),
 *                     w * (1 / sum w);  normalize: w / max(sum w, 2^-14);  scale: w * scale, not for
 *                     scale 1
 *     expert_sum      out = y_0 * w_0;  out = out + y_u * w_u, ascending u
 *     glu_clamp       f(min(gate, limit)) * (clamp(up, -limit, limit) + offset) */
#include "engine/graph_internal.h"
#include "engine/op/op_rows.h"
#include "engine/ops.h"
#include <math.h>
#include <string.h>

static int32_t id_at(const struct engine_tensor *ids, int64_t t, int64_t u)
{
    int32_t id;
    memcpy(&id, ids->data + t * ids->nb[1] + u * ids->nb[0], sizeof id);
    return id;
}

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

enum { BUFFER_PROBS, BUFFER_BIAS, BUFFER_SCORES, CHOOSE_BUFFERS };

static int64_t choose_scratch(const struct engine_tensor *dst, int n_threads)
{
    return engine_scratch_bytes(n_threads, CHOOSE_BUFFERS, dst->src[0]->ne[0]);
}

/* Whether y precedes x, which has the lower index. */
static bool larger(float y, float x)
{
    return isnan(x) ? !isnan(y) : y > x;
}

/* Writes the indexes of the k largest of s[n], descending, equal ones by ascending index; k <= n.
 */
static void largest(const float *s, int64_t n, int32_t *out, int64_t k)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        if (found == k && !larger(s[i], s[out[k - 1]])) continue;
        int64_t at = found < k ? found++ : k - 1;
        for (; at > 0 && larger(s[i], s[out[at - 1]]); at--) out[at] = out[at - 1];
        out[at] = (int32_t)i;
    }
}

/* Sets s of all but the best groups to -inf; scores[n_groups] is a buffer. */
static void mask_groups(float *s, int64_t n, int64_t n_groups, int64_t n_used, float *scores)
{
    const int64_t size = n / n_groups;
    for (int64_t g = 0; g < n_groups; g++) {
        float best = -INFINITY, second = -INFINITY;
        for (int64_t i = g * size; i < (g + 1) * size; i++) {
            const float x = s[i];
            second = x > best ? best : x > second ? x : second;
            best = x > best ? x : best;
        }
        scores[g] = size > 1 ? best + second : best;
    }
    for (int64_t left = n_groups - n_used; left > 0; left--) {
        int64_t worst = -1; /* the last one of equal smallest scores */
        for (int64_t g = 0; g < n_groups; g++)
            if (!isnan(scores[g]) && (worst < 0 || scores[g] <= scores[worst])) worst = g;
        if (worst < 0) return;
        for (int64_t i = worst * size; i < (worst + 1) * size; i++) s[i] = -INFINITY;
        scores[worst] = NAN;
    }
}

static void choose_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *probs = dst->src[0], *bias = dst->src[1];
    const int64_t n = probs->ne[0], groups = dst->params.choose_experts.n_groups;
    float *buffer = engine_scratch_buffer(task, n, BUFFER_PROBS),
          *scores = engine_scratch_buffer(task, n, BUFFER_SCORES);
    int64_t first, last;
    engine_task_rows(task, dst->ne[1], &first, &last);
    for (int64_t t = first; t < last; t++) {
        struct engine_piece at = engine_row_at(probs, t);
        const float *p = engine_piece_load(task->engine, probs, &at, buffer);
        if (bias)
            task->engine->vec.add(n, p,
                                  engine_piece_load(task->engine, bias, &at,
                                                    engine_scratch_buffer(task, n, BUFFER_BIAS)),
                                  buffer);
        else if (p != buffer)
            memcpy(buffer, p, (size_t)n * sizeof *buffer);
        if (groups > 1)
            mask_groups(buffer, n, groups, dst->params.choose_experts.n_groups_used, scores);
        int32_t *ids = (int32_t *)(void *)(dst->data + t * dst->nb[1]);
        largest(buffer, n, ids, dst->ne[0]);
        for (int64_t u = 0; u < dst->ne[0]; u++) ids[u] /= dst->params.choose_experts.divisor;
    }
}

const struct engine_op engine_op_choose_experts =
    ENGINE_ROWS_OP("choose_experts", 1, choose_shape, choose_scratch, choose_run);

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

static void weights_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_vec *vec = &task->engine->vec;
    const struct engine_tensor *probs = dst->src[0], *ids = dst->src[1];
    const int64_t n = probs->ne[0], used = dst->ne[0];
    const float scale = dst->params.expert_weights.scale, min_sum = 0x1p-14f;
    int64_t first, last;
    engine_task_rows(task, dst->ne[1], &first, &last);
    for (int64_t t = first; t < last; t++) {
        struct engine_piece at = engine_row_at(probs, t);
        const float *p =
            engine_piece_load(task->engine, probs, &at, engine_scratch_buffer(task, n, 0));
        float *w = (float *)(void *)(dst->data + t * dst->nb[1]);
        for (int64_t u = 0; u < used; u++) {
            const int32_t id = id_at(ids, t, u);
            w[u] = id >= 0 && id < n ? p[id] : NAN;
        }
        if (dst->params.expert_weights.softmax) {
            const float sum = vec->exp_sum(used, w, vec->max(used, w), w);
            vec->scale_mul(used, w, 1.0f / sum, NULL, w);
        }
        if (dst->params.expert_weights.normalize) {
            const float sum = vec->sum(used, w), divisor = sum < min_sum ? min_sum : sum;
            for (int64_t u = 0; u < used; u++) w[u] /= divisor;
        }
        if (scale != 1.0f) vec->scale_mul(used, w, scale, NULL, w);
    }
}

const struct engine_op engine_op_expert_weights =
    ENGINE_ROWS_OP("expert_weights", 2, weights_shape, engine_scratch_rows, weights_run);

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

static void sum_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_vec *vec = &task->engine->vec;
    const struct engine_tensor *y = dst->src[0], *weights = dst->src[1];
    float *buffer = engine_scratch_buffer(task, ENGINE_PIECE, 0);
    int64_t first, last;
    engine_task_rows(task, engine_pieces(dst), &first, &last);
    for (int64_t p = first; p < last; p++) {
        const struct engine_piece at = engine_piece_at(dst, p);
        float *out = engine_piece_out(dst, &at);
        for (int64_t u = 0; u < y->ne[1]; u++) {
            const struct engine_piece from = {.i1 = u, .i2 = at.i1, .first = at.first, .n = at.n};
            const float *row = engine_piece_load(task->engine, y, &from, buffer);
            float w;
            memcpy(&w, weights->data + at.i1 * weights->nb[1] + u * weights->nb[0], sizeof w);
            vec->scale_mul(at.n, row, w, NULL, u ? buffer : out);
            if (u) vec->add(at.n, out, buffer, out);
        }
    }
}

const struct engine_op engine_op_expert_sum =
    ENGINE_ROWS_OP("expert_sum", 2, sum_shape, engine_scratch_pieces, sum_run);

struct engine_tensor *engine_expert_sum(struct engine_graph *g, struct engine_tensor *y,
                                        struct engine_tensor *weights)
{
    struct engine_tensor *src[] = {y, weights};
    return engine_graph_node(g, &engine_op_expert_sum, src, 2, NULL);
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

static void glu_clamp_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_vec *vec = &task->engine->vec;
    const float limit = dst->params.glu_clamp.limit;
    float *buffer_gate = engine_scratch_buffer(task, ENGINE_PIECE, 0);
    float *buffer_up = engine_scratch_buffer(task, ENGINE_PIECE, 1);
    int64_t first, last;
    engine_task_rows(task, engine_pieces(dst), &first, &last);
    for (int64_t p = first; p < last; p++) {
        const struct engine_piece at = engine_piece_at(dst, p);
        const float *gate = engine_piece_load(task->engine, dst->src[0], &at, buffer_gate);
        const float *up = engine_piece_load(task->engine, dst->src[1], &at, buffer_up);
        vec->clamp(at.n, up, -limit, limit, buffer_up);
        vec->scale(at.n, buffer_up, 1.0f, dst->params.glu_clamp.offset, buffer_up);
        vec->clamp(at.n, gate, -INFINITY, limit, buffer_gate);
        vec->glu[dst->params.glu_clamp.f](at.n, buffer_gate, buffer_up, engine_piece_out(dst, &at));
    }
}

const struct engine_op engine_op_glu_clamp = ENGINE_ROWS_OP(
    "glu_clamp", 2, glu_clamp_shape, engine_scratch_pieces, glu_clamp_run, .in_place = true);

struct engine_tensor *engine_glu_clamp(struct engine_graph *g, struct engine_tensor *gate,
                                       struct engine_tensor *up, enum engine_unary f, float limit,
                                       float offset)
{
    struct engine_tensor *src[] = {gate, up};
    return engine_graph_node(g, &engine_op_glu_clamp, src, 2,
                             &(union engine_params){.glu_clamp = {f, limit, offset}});
}
