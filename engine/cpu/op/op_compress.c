/* engine/cpu/op/op_compress.c: keys of blocks of positions, and doubly stochastic matrices.
 * Contract: engine/graph.h.
 *
 * Arithmetic; sums and exp are those of engine/cpu/isa/vec.h:
 *
 *     compress_keys  for each channel, over its positions in ascending order: s = score + ape;
 *                    m = max s, e = exp(s - m);  dot(e, values) / sum e. NaN for a slot out of range.
 *                    Without scores s = 0
 *     sinkhorn       rows: m = max x, e = exp(x - m), x = e / sum e + eps;
 *                    each further step: x / (sum + eps), where sums are ascending from +0 */
#include "engine/cpu/op/op_rows.h"
#include "engine/op_sources.h"
#include "engine/ops.h"
#include <math.h>

/* ---- compress_keys ---- */

enum { CHANNELS = 64 }; /* of a unit of work */
enum { BUFFER_SCORES, BUFFER_VALUES, COMPRESS_BUFFERS };

static int64_t positions_of(const struct engine_compress_keys *how)
{
    return (int64_t)how->ratio * (how->overlaps ? 2 : 1);
}

static int64_t compress_scratch(const struct engine_tensor *dst, int n_threads)
{
    const int64_t rows = positions_of(&dst->params.compress_keys) * (int64_t)sizeof(float *);
    return engine_scratch_bytes(n_threads, COMPRESS_BUFFERS + 1,
                                engine_round_up(rows, 64) / (int64_t)sizeof(float));
}

/* The positions of a block's key. */
struct key_block {
    const float **row;   /* of each position, the oldest first; NULL: its slot is out of range */
    int64_t n, n_before; /* positions; those before the block */
    int64_t first;       /* the first of them */
};

/* Finds the rows of the positions that make the key of a token's block. */
static struct key_block block_of(const struct engine_tensor *dst, int64_t token, const float **row)
{
    const struct engine_compress_keys *how = &dst->params.compress_keys;
    const struct engine_tensor *rows = dst->src[ENGINE_COMPRESS_ROWS],
                               *range = dst->src[ENGINE_COMPRESS_RANGE],
                               *tables = dst->src[ENGINE_COMPRESS_TABLES];
    const int32_t *v = (const int32_t *)(range->data + token * range->nb[1]);
    struct key_block b = {.row = row, .first = v[1]};
    if (v[1] < 0 || v[2] > tables->ne[0] || v[2] - v[1] != how->ratio || v[0] < 0 ||
        v[0] >= tables->ne[1])
        return b;
    if (how->overlaps && b.first >= how->ratio) {
        b.first -= how->ratio;
        b.n_before = how->ratio;
    }
    b.n = v[2] - b.first;
    const int32_t *slots = (const int32_t *)(tables->data + v[0] * tables->nb[1]) + b.first;
    for (int64_t j = 0; j < b.n; j++)
        row[j] = slots[j] >= 0 && slots[j] < rows->ne[2]
                     ? (const float *)(rows->data + slots[j] * rows->nb[2])
                     : NULL;
    return b;
}

/* Computes channel c of a block's key. */
static float channel_of(const struct engine_task *task, const struct engine_tensor *dst,
                        const struct key_block *b, int64_t c, float *score, float *value)
{
    const struct engine_compress_keys *how = &dst->params.compress_keys;
    const struct engine_tensor *ape = dst->src[ENGINE_COMPRESS_APE];
    for (int64_t j = 0; j < b->n; j++) {
        const int64_t at = how->overlaps && j >= b->n_before ? c + how->size : c;
        if (!b->row[j]) return NAN;
        score[j] = 0.0f;
        if (ape) {
            const char *more = ape->data + (b->first + j) % how->ratio * ape->nb[1];
            score[j] = b->row[j][how->score_at + at] + ((const float *)(const void *)more)[at];
        }
        value[j] = b->row[j][how->value_at + at];
    }
    const float sum = task->cpu->vec.exp_sum(b->n, score, task->cpu->vec.max(b->n, score), score);
    return task->cpu->vec.dot(b->n, score, value) / sum;
}

static void compress_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const int64_t n = positions_of(&dst->params.compress_keys);
    const int64_t floats =
        engine_round_up(n * (int64_t)sizeof(float *), 64) / (int64_t)sizeof(float);
    float *score = engine_scratch_buffer(task, floats, BUFFER_SCORES),
          *value = engine_scratch_buffer(task, floats, BUFFER_VALUES);
    const float **row =
        (const float **)(void *)engine_scratch_buffer(task, floats, COMPRESS_BUFFERS);
    const int64_t parts = (dst->ne[0] + CHANNELS - 1) / CHANNELS;
    for (int64_t u, last = engine_task_rows(task, dst->ne[1] * parts, &u); u < last; u++) {
        const struct key_block b = block_of(dst, u / parts, row);
        const int64_t from = u % parts * CHANNELS, to = engine_min(from + CHANNELS, dst->ne[0]);
        float *out = (float *)(void *)(dst->data + u / parts * dst->nb[1]);
        for (int64_t c = from; c < to; c++)
            out[c] = b.n ? channel_of(task, dst, &b, c, score, value) : 0.0f;
    }
}

ENGINE_CPU_ROWS_OP(compress_keys, compress_scratch, compress_run);

/* ---- sinkhorn: x [N][S][S] ---- */

/* Divides n numbers, `step` apart, by their sum plus eps. */
static void divide(float *x, int64_t n, int64_t step, float eps)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++) sum += x[i * step];
    sum += eps;
    for (int64_t i = 0; i < n; i++) x[i * step] /= sum;
}

static void sinkhorn_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_vec *vec = &task->cpu->vec;
    const struct engine_sinkhorn *how = &dst->params.sinkhorn;
    const int64_t n = dst->ne[0];
    for (int64_t i, last = engine_task_rows(task, dst->ne[2] * dst->ne[3], &i); i < last; i++) {
        const float *x = (const float *)(const void *)dst->src[0]->data + i * n * n;
        float *out = (float *)(void *)dst->data + i * n * n;
        for (int64_t r = 0; r < n; r++) {
            float *row = out + r * n;
            const float sum = vec->exp_sum(n, x + r * n, vec->max(n, x + r * n), row);
            for (int64_t c = 0; c < n; c++) row[c] = row[c] / sum + how->eps;
        }
        for (int64_t c = 0; c < n; c++) divide(out + c, n, n, how->eps);
        for (int k = 1; k < how->iterations; k++) {
            for (int64_t r = 0; r < n; r++) divide(out + r * n, n, 1, how->eps);
            for (int64_t c = 0; c < n; c++) divide(out + c, n, n, how->eps);
        }
    }
}

ENGINE_CPU_ROWS_OP(sinkhorn, NULL, sinkhorn_run);
