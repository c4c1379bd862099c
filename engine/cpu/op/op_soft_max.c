/* engine/cpu/op/op_soft_max.c: softmax over rows, with mask, ALiBi slopes and sinks.
 *
 * Arithmetic of row (n, h, t) with K elements:
 *     s = fmaf(a, scale, 0);  with a mask  s = fmaf(mask, slope(h), s)
 *     m = max s (and the head's sink);  if m = -inf the whole row is 0
 *     p = exp(s - m);  l = sum p (lanes) (+ exp(sink - m));  result  p * (1 / l)
 * slope(h) is 1, or with max_bias > 0 that of engine/alibi.h. */
#include "engine/alibi.h"
#include "engine/cpu/op/op_rows.h"
#include "engine/ops.h"
#include <math.h>
#include <string.h>

/* ---- soft_max ---- */

static void soft_max_row(const struct engine_vec *vec, int64_t n, float *s, const float *sink)
{
    float m = vec->max(n, s);
    if (sink && *sink > m) m = *sink;
    if (m == -INFINITY) {
        memset(s, 0, (size_t)n * sizeof *s);
        return;
    }
    float sum = vec->exp_sum(n, s, m, s), last;
    if (sink) sum += vec->exp_sum(1, sink, m, &last);
    vec->scale_mul(n, s, 1.0f / sum, NULL, s);
}

static void soft_max_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_cpu *e = task->cpu;
    const struct engine_tensor *mask = dst->src[1], *sinks = dst->src[2];
    float *buffer = engine_scratch_buffer(task, dst->ne[0], 0),
          *buffer_mask = engine_scratch_buffer(task, dst->ne[0], 1);
    for (int64_t r, last = engine_task_rows(task, engine_tensor_rows(dst), &r); r < last; r++) {
        struct engine_piece at = engine_row_at(dst, r);
        const float *x = engine_piece_load(e, dst->src[0], &at, buffer);
        float *s = engine_piece_out(dst, &at), sink;
        e->vec.scale(at.n, x, dst->params.soft_max.scale, 0.0f, s);
        if (mask) {
            const float max = dst->params.soft_max.max_bias;
            const float slope = max > 0.0f ? engine_alibi_slope(max, at.i2, dst->ne[2]) : 1.0f;
            e->vec.mad(at.n, engine_piece_load(e, mask, &at, buffer_mask), slope, s);
        }
        if (sinks) memcpy(&sink, sinks->data + at.i2 * sinks->nb[0], sizeof sink);
        soft_max_row(&e->vec, at.n, s, sinks ? &sink : NULL);
    }
}

ENGINE_CPU_ROWS_OP(soft_max, engine_scratch_rows, soft_max_run);
