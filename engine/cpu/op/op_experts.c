/* engine/cpu/op/op_experts.c: ops of mixtures of experts: choosing experts, their weights, the sum
 * of their outputs, and clamped gated units. Their products are mul_mat_id (matmul/).
 *
 * Arithmetic; every operation is rounded once, sum and exp are those of engine/cpu/isa/vec.h:
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
#include "engine/cpu/op/op_rows.h"
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
    for (int64_t t, last = engine_task_rows(task, dst->ne[1], &t); t < last; t++) {
        struct engine_piece at = engine_row_at(probs, t);
        const float *p = engine_piece_load(task->cpu, probs, &at, buffer);
        if (bias)
            task->cpu->vec.add(n, p,
                               engine_piece_load(task->cpu, bias, &at,
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

ENGINE_CPU_ROWS_OP(choose_experts, choose_scratch, choose_run);

/* ---- expert_weights: probs [T][X], ids [T][U] to [T][U] ---- */

static void weights_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_vec *vec = &task->cpu->vec;
    const struct engine_tensor *probs = dst->src[0], *ids = dst->src[1];
    const int64_t n = probs->ne[0], used = dst->ne[0];
    const float scale = dst->params.expert_weights.scale, min_sum = 0x1p-14f;
    for (int64_t t, last = engine_task_rows(task, dst->ne[1], &t); t < last; t++) {
        struct engine_piece at = engine_row_at(probs, t);
        const float *p =
            engine_piece_load(task->cpu, probs, &at, engine_scratch_buffer(task, n, 0));
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

ENGINE_CPU_ROWS_OP(expert_weights, engine_scratch_rows, weights_run);

/* ---- expert_sum: y [T][U][E], weights [T][U] to [T][E] ---- */

static void sum_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_vec *vec = &task->cpu->vec;
    const struct engine_tensor *y = dst->src[0], *weights = dst->src[1];
    float *buffer = engine_scratch_buffer(task, ENGINE_PIECE, 0);
    for (int64_t p, last = engine_task_rows(task, engine_pieces(dst), &p); p < last; p++) {
        const struct engine_piece at = engine_piece_at(dst, p);
        float *out = engine_piece_out(dst, &at);
        for (int64_t u = 0; u < y->ne[1]; u++) {
            const struct engine_piece from = {.i1 = u, .i2 = at.i1, .first = at.first, .n = at.n};
            const float *row = engine_piece_load(task->cpu, y, &from, buffer);
            float w;
            memcpy(&w, weights->data + at.i1 * weights->nb[1] + u * weights->nb[0], sizeof w);
            vec->scale_mul(at.n, row, w, NULL, u ? buffer : out);
            if (u) vec->add(at.n, out, buffer, out);
        }
    }
}

ENGINE_CPU_ROWS_OP(expert_sum, engine_scratch_pieces, sum_run);

/* ---- glu_clamp ---- */

static void glu_clamp_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_vec *vec = &task->cpu->vec;
    const float limit = dst->params.glu_clamp.limit;
    float *buffer_gate = engine_scratch_buffer(task, ENGINE_PIECE, 0);
    float *buffer_up = engine_scratch_buffer(task, ENGINE_PIECE, 1);
    for (int64_t p, last = engine_task_rows(task, engine_pieces(dst), &p); p < last; p++) {
        const struct engine_piece at = engine_piece_at(dst, p);
        const float *gate = engine_piece_load(task->cpu, dst->src[0], &at, buffer_gate);
        const float *up = engine_piece_load(task->cpu, dst->src[1], &at, buffer_up);
        vec->clamp(at.n, up, -limit, limit, buffer_up);
        vec->scale(at.n, buffer_up, 1.0f, dst->params.glu_clamp.offset, buffer_up);
        vec->clamp(at.n, gate, -INFINITY, limit, buffer_gate);
        vec->glu[dst->params.glu_clamp.f](at.n, buffer_gate, buffer_up, engine_piece_out(dst, &at));
    }
}

ENGINE_CPU_ROWS_OP(glu_clamp, engine_scratch_pieces, glu_clamp_run);
