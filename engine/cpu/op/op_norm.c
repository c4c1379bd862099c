/* engine/cpu/op/op_norm.c: ops that normalize or sum rows: norm, rms_norm, l2_norm, sum_rows.
 *
 * Arithmetic of a row x of n elements; sum and sum_sqr are those of engine/cpu/isa/vec.h, every
 * other operation is rounded once:
 *
 *     norm         mean = sum(x) / n;  y = fmaf(x, 1, -mean);
 *                  r = 1 / sqrt(sum_sqr(y) / n + eps);  y * r
 *     rms_norm     r = 1 / sqrt(sum_sqr(x) / n + eps);  x * r
 *     l2_norm      r = 1 / max(sqrt(sum_sqr(x)), eps);  x * r
 *     sum_rows     sum(x)
 *
 * norm and rms_norm may have a weight and a bias, which only the simplifier adds: then (y * r) *
 * weight + bias, with the roundings of the three separate ops. */
#include "engine/cpu/op/op_rows.h"
#include "engine/ops.h"
#include <math.h>

/* ---- norm, rms_norm, l2_norm ---- */

/* Runs f on each row: x is the row of source 0, `out` of dst. */
static void rows_run(const struct engine_task *task, struct engine_tensor *dst,
                     void (*f)(const struct engine_task *task, const struct engine_tensor *dst,
                               const struct engine_piece *at, const float *x, float *out))
{
    float *buffer = engine_scratch_buffer(task, dst->ne[0], 0);
    for (int64_t r, last = engine_task_rows(task, engine_tensor_rows(dst), &r); r < last; r++) {
        struct engine_piece at = engine_row_at(dst, r);
        const float *x = engine_piece_load(task->cpu, dst->src[0], &at, buffer);
        f(task, dst, &at, x, engine_piece_out(dst, &at));
    }
}

/* out = (x * r) * weight + bias, with weight and bias only if the node has them. */
static void row_finish(const struct engine_task *task, const struct engine_tensor *dst,
                       const struct engine_piece *at, const float *x, float r, float *out)
{
    const struct engine_cpu *e = task->cpu;
    const float *weight = NULL;
    if (dst->src[1])
        weight = engine_piece_load(e, dst->src[1], at, engine_scratch_buffer(task, dst->ne[0], 1));
    e->vec.scale_mul(at->n, x, r, weight, out);
    if (dst->src[2]) {
        const float *bias =
            engine_piece_load(e, dst->src[2], at, engine_scratch_buffer(task, dst->ne[0], 1));
        e->vec.add(at->n, out, bias, out);
    }
}

static void norm_row(const struct engine_task *task, const struct engine_tensor *dst,
                     const struct engine_piece *at, const float *x, float *out)
{
    const struct engine_vec *vec = &task->cpu->vec;
    const float n = (float)at->n, mean = vec->sum(at->n, x) / n;
    vec->scale(at->n, x, 1.0f, -mean, out);
    const float variance = vec->sum_sqr(at->n, out) / n;
    row_finish(task, dst, at, out, 1.0f / sqrtf(variance + dst->params.norm.eps), out);
}

static void rms_norm_row(const struct engine_task *task, const struct engine_tensor *dst,
                         const struct engine_piece *at, const float *x, float *out)
{
    const float mean = task->cpu->vec.sum_sqr(at->n, x) / (float)at->n;
    row_finish(task, dst, at, x, 1.0f / sqrtf(mean + dst->params.norm.eps), out);
}

static void l2_norm_row(const struct engine_task *task, const struct engine_tensor *dst,
                        const struct engine_piece *at, const float *x, float *out)
{
    const float length = sqrtf(task->cpu->vec.sum_sqr(at->n, x)), eps = dst->params.norm.eps;
    /* This form of the comparison propagates NaN. */
    row_finish(task, dst, at, x, 1.0f / (length < eps ? eps : length), out);
}

#define NORM_OP(name)                                                                              \
    static void name##_run(const struct engine_task *task, struct engine_tensor *dst)              \
    {                                                                                              \
        rows_run(task, dst, name##_row);                                                           \
    }                                                                                              \
    ENGINE_CPU_ROWS_OP(name, engine_scratch_rows, name##_run);
NORM_OP(norm)
NORM_OP(rms_norm)
NORM_OP(l2_norm)

/* ---- sum_rows ---- */

static void sum_rows_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *a = dst->src[0];
    float *buffer = engine_scratch_buffer(task, a->ne[0], 0);
    for (int64_t r, last = engine_task_rows(task, engine_tensor_rows(dst), &r); r < last; r++) {
        struct engine_piece at = engine_row_at(a, r);
        const float *x = engine_piece_load(task->cpu, a, &at, buffer);
        *engine_piece_out(dst, &at) = task->cpu->vec.sum(at.n, x);
    }
}

ENGINE_CPU_ROWS_OP(sum_rows, engine_scratch_rows, sum_rows_run);
