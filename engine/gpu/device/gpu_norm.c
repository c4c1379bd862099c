/* engine/gpu/device/gpu_norm.c: device code: norms of rows, each by a warp. Lanes 0 to 15 have the
 * sixteen sums of engine/cpu/isa/vec.h (lanes 16 to 31 the same ones), then all write elements. */
#include "engine/gpu/device/gpu_element.h"

/* The sum of the squares of x - mean over n elements, or of the elements themselves; `x` is the
 * first, and they are `step` bytes apart. */
static float sum_of(const char *x, int64_t step, int64_t n, float mean, bool squares)
{
    float sum = 0.0f;
    for (int64_t i = gpu_lane() % 16; i < n; i += 16) {
        const float y = *(const float *)(const void *)(x + i * step);
        const float z = mean == 0.0f ? y : fmaf(y, 1.0f, -mean);
        sum = squares ? fmaf(z, z, sum) : sum + z;
    }
    return gpu_sum_tree(sum);
}

GPU_KERNEL(engine_gpu_norm, engine_gpu_norm)
{
    const int64_t row = gpu_warp_of_grid(), n = p.out.ne[0];
    if (row >= engine_gpu_rows(&p.out)) return;
    struct engine_gpu_index at = gpu_index(&p.out, row * n);
    const char *x = gpu_at(&p.a, &at);
    const bool is_norm = p.kind == ENGINE_GPU_NORM;
    const float mean = is_norm ? sum_of(x, p.a.nb[0], n, 0.0f, false) / (float)n : 0.0f;
    const float squares = sum_of(x, p.a.nb[0], n, mean, true), length = sqrtf(squares);
    const float r = 1.0f / (p.kind != ENGINE_GPU_L2_NORM ? sqrtf(squares / (float)n + p.eps)
                            : length < p.eps             ? p.eps
                                                         : length);
    for (at.i[0] = gpu_lane(); at.i[0] < n; at.i[0] += GPU_WARP) {
        float y = gpu_float(&p.a, &at);
        if (is_norm) y = fmaf(y, 1.0f, -mean);
        y *= r;
        if (p.weight.data) y *= gpu_float(&p.weight, &at);
        if (p.bias.data) y += gpu_float(&p.bias, &at);
        *(float *)(void *)gpu_at(&p.out, &at) = y;
    }
}

/* ---- Rows of sixteen lanes, two for each warp ---- */

/* The row of this lane's half of the warp; past the last row: no elements of row 0. */
struct half_row {
    struct engine_gpu_index at;
    int64_t n;
    bool is_in;
};

static struct half_row half_row_of(const struct engine_gpu_tensor *t)
{
    const int64_t row = gpu_half_of_grid();
    const bool is_in = row < engine_gpu_rows(t);
    return (struct half_row){gpu_index(t, is_in ? row * t->ne[0] : 0), is_in ? t->ne[0] : 0, is_in};
}

GPU_KERNEL(engine_gpu_sum_rows, engine_gpu_sum_rows)
{
    struct half_row row = half_row_of(&p.a);
    const float sum = sum_of(gpu_at(&p.a, &row.at), p.a.nb[0], row.n, 0.0f, false);
    if (row.is_in && gpu_lane() % 16 == 0) *(float *)(void *)gpu_at(&p.out, &row.at) = sum;
}

GPU_KERNEL(engine_gpu_soft_max, engine_gpu_soft_max)
{
    struct half_row row = half_row_of(&p.out);
    float *out = (float *)(void *)gpu_at(&p.out, &row.at), m = -INFINITY;
    for (row.at.i[0] = gpu_lane() % 16; row.at.i[0] < row.n; row.at.i[0] += 16) {
        const float s = fmaf(gpu_float(&p.a, &row.at), p.scale, 0.0f);
        out[row.at.i[0]] = s;
        m = s > m ? s : m;
    }
    m = gpu_max_tree(m);
    const float factor = 1.0f / gpu_exp_row(out, row.n, m);
    for (int64_t i = gpu_lane() % 16; i < row.n; i += 16)
        out[i] = m == -INFINITY ? 0.0f : out[i] * factor;
}
