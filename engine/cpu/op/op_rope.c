/* engine/cpu/op/op_rope.c: rotary position embedding, as two ops: the table of cosines and sines by
 * position, computed once per graph run for all layers and heads, and the rotation.
 *
 * Arithmetic, in double unless stated; pair i of n = n_rot / 2, position p (MULTI: from the
 * position row whose section contains s = i mod (sum of the sections); INTERLEAVED: from row s mod
 * 3 if s < 3 times its section, otherwise row 3; a single row of positions is used as rows 0 to 2,
 * and row 3 is 0):
 *     extra = p * freq_base^(-2 i / n_rot) / factor[i]        (no factors: / 1)
 *     theta = freq_scale * extra
 *     YaRN (ext_factor != 0, "YaRN", Peng et al. 2023):
 *         mix   = ext_factor * (1 - clamp((i - low) / max(0.001, high - low), 0, 1))
 *         theta = theta * (1 - mix) + extra * mix
 *         low, high: the pairs that rotate beta_fast and beta_slow times in n_ctx_orig positions
 *     magnitude = attn_factor, with YaRN times 1 + 0.1 ln(1 / freq_scale)
 *     cos, sin  = (float)(base_cos(theta) * magnitude), (float)(sin(theta) * magnitude), inverse: of
 *                 -theta
 * Rotation: engine_vec.rotate, in float. */
#include "base/elementary.h"
#include "engine/cpu/op/op_rows.h"
#include "engine/ops.h"
#include <math.h>
#include <string.h>

/* ---- The table: [T][n_rot], each row n cosines, then n sines ---- */

/* The pair, as a real number, that rotates `turns` times over the original context. */
static double yarn_pair(const struct engine_rope *p, double turns)
{
    return p->n_rot * base_log(p->n_ctx_orig / (turns * 2.0 * M_PI)) /
           (2.0 * base_log((double)p->freq_base));
}

/* The share of the unscaled angle in pair i. */
static double yarn_mix(const struct engine_rope *p, int pair)
{
    double low = fmax(0.0, floor(yarn_pair(p, p->beta_fast)));
    double high = fmin(p->n_rot - 1.0, ceil(yarn_pair(p, p->beta_slow)));
    double ramp = (pair - low) / fmax(0.001, high - low);
    return p->ext_factor * (1.0 - fmin(1.0, fmax(0.0, ramp)));
}

/* The row of positions that pair i uses. */
static int position_row(const struct engine_rope *p, int pair)
{
    int64_t total = 0;
    for (int s = 0; s < 4; s++) total += p->section[s];
    if (!engine_rope_has_sections(p) || total <= 0) return 0;
    int64_t left = pair % total;
    int row = 0;
    if (p->kind == ENGINE_ROPE_INTERLEAVED)
        return left < 3 * (int64_t)p->section[left % 3] ? (int)(left % 3) : 3;
    while (row < 3 && left >= p->section[row]) left -= p->section[row++];
    return row;
}

static void table_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *positions = dst->src[0], *factors = dst->src[1];
    const struct engine_rope *p = &dst->params.rope;
    int n = p->n_rot / 2;
    double scale = p->freq_scale, magnitude = p->attn_factor;
    bool yarn = p->ext_factor != 0.0f;
    if (yarn) magnitude *= 1.0 + 0.1 * base_log(1.0 / scale);
    int64_t first;
    const int64_t last = engine_task_rows(task, dst->ne[1], &first);
    for (int i = 0; i < n; i++) {
        double frequency = base_pow((double)p->freq_base, -2.0 * i / p->n_rot);
        double mix = yarn ? yarn_mix(p, i) : 0.0;
        float factor = 1.0f;
        if (factors) memcpy(&factor, factors->data + i * factors->nb[0], sizeof factor);
        const int row = position_row(p, i);
        const bool has_row = row < positions->ne[1];
        const char *from = positions->data + (has_row ? row : 0) * positions->nb[1];
        for (int64_t t = first; t < last; t++) {
            int32_t position = 0;
            if (has_row || row < 3) memcpy(&position, from + t * positions->nb[0], sizeof position);
            double extra = position * frequency / factor;
            double theta = scale * extra * (1.0 - mix) + extra * mix;
            float *out = (float *)(void *)(dst->data + t * dst->nb[1]);
            out[i] = (float)(base_cos(theta) * magnitude);
            out[n + i] = (float)(base_sin(p->inverse ? -theta : theta) * magnitude);
        }
    }
}

ENGINE_CPU_ROWS_OP(rope_table, NULL, table_run);

/* ---- The rotation: x[N][T][H][D] with a table [T][n_rot] ---- */

static void rope_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *table = dst->src[1];
    float *buffer = engine_scratch_buffer(task, dst->ne[0], 0);
    int64_t n_rot = table->ne[0], n = n_rot / 2;
    bool normal = dst->params.rope.kind == ENGINE_ROPE_NORMAL;
    for (int64_t r, last = engine_task_rows(task, engine_tensor_rows(dst), &r); r < last; r++) {
        struct engine_piece at = engine_row_at(dst, r);
        const float *x = engine_piece_load(task->cpu, dst->src[0], &at, buffer);
        const float *angle = (const float *)(const void *)(table->data + at.i2 * table->nb[1]);
        float *out = engine_piece_out(dst, &at);
        task->cpu->vec.rotate(n, normal ? 2 : 1, normal ? 1 : n, angle, angle + n, x, out);
        memcpy(out + n_rot, x + n_rot, (size_t)(at.n - n_rot) * sizeof *out);
    }
}

ENGINE_CPU_ROWS_OP(rope, engine_scratch_rows, rope_run);
