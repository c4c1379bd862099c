/* engine/gpu/device/gpu_norm.c: device code: norms of rows, each by a warp, or a block if they are
 * long. Lanes 0 to 15 have the sixteen sums of engine/cpu/isa/vec.h (lanes 16 to 31 the same ones),
 * then all write elements. */
#include "engine/gpu/device/gpu_convert.h"
#include "engine/gpu/device/gpu_element.h"
#include "engine/gpu/device/gpu_row.h"

/* As gpu_sum_of, for all threads of a block: they copy the row to shared memory, part by part, and
 * warp 0 adds. */
static float sum_of_block(const char *x, int64_t step, int64_t n, float mean, bool squares)
{
    enum { PART = sizeof((struct engine_gpu_norm_memory *)NULL)->part / sizeof(float), AHEAD = 8 };
    struct engine_gpu_norm_memory *s = gpu_shared();
    float sum = 0.0f;
    for (int64_t first = 0; first < n; first += PART) {
        const int n_part = n - first < PART ? (int)(n - first) : PART;
        gpu_sync(); /* the part before is read */
        for (int i = gpu_thread(); i < n_part; i += ENGINE_GPU_LONG_THREADS)
            s->part[i] = *(const float *)(const void *)(x + (first + i) * step);
        gpu_sync(); /* the part is written */
        if (gpu_warp() != 0) continue;
        int i = gpu_lane() % 16;
        for (; i + 16 * (AHEAD - 1) < n_part; i += 16 * AHEAD) {
            float y[AHEAD]; /* loaded at once: a sum waits for the addition before it only */
            GPU_EACH (j, AHEAD) y[j] = s->part[i + 16 * j];
            GPU_EACH (j, AHEAD) sum = gpu_add_to(sum, y[j], mean, squares);
        }
        for (; i < n_part; i += 16) sum = gpu_add_to(sum, s->part[i], mean, squares);
    }
    if (gpu_warp() == 0) {
        sum = gpu_sum_tree(sum);
        if (gpu_lane() == 0) s->sum = sum;
    }
    gpu_sync(); /* the sum is written */
    return s->sum;
}

static float factor_of(const struct engine_gpu_norm *p, float squares)
{
    return gpu_norm_factor(p->kind, p->eps, p->out.ne[0], squares);
}

/* Writes elements i, i + step, .. of the row at `at`. */
static void write_row(const struct engine_gpu_norm *p, struct engine_gpu_index at, int first,
                      int step, float mean, float factor)
{
    const char *a = gpu_at(&p->a, &at), *weight = p->weight.data ? gpu_at(&p->weight, &at) : NULL,
               *bias = p->bias.data ? gpu_at(&p->bias, &at) : NULL;
    char *out = gpu_at(&p->out, &at);
    for (int64_t i = first; i < p->out.ne[0]; i += step) {
        float y = gpu_normed(p->kind, gpu_row_float(&p->a, a, i), mean, factor);
        if (weight) y *= gpu_row_float(&p->weight, weight, i);
        if (bias) y += gpu_row_float(&p->bias, bias, i);
        *(float *)(void *)(out + i * p->out.nb[0]) = y;
    }
}

/* Writes the sums of this thread's elements of the row at `at` to a. */
static void write_sums(const struct engine_gpu_norm *p, const struct engine_gpu_index *at)
{
    const char *first = gpu_at(&p->add[0], at), *second = gpu_at(&p->add[1], at);
    char *sum = gpu_at(&p->a, at);
    for (int64_t i = gpu_thread(); i < p->out.ne[0]; i += ENGINE_GPU_LONG_THREADS)
        *(float *)(void *)(sum + i * p->a.nb[0]) =
            gpu_row_float(&p->add[0], first, i) + gpu_row_float(&p->add[1], second, i);
}

GPU_KERNEL(engine_gpu_norm, engine_gpu_norm)
{
    const int64_t row = gpu_warp_of_grid(), n = p.out.ne[0];
    if (row >= engine_gpu_rows(&p.out)) return;
    struct engine_gpu_index at = gpu_index(&p.out, row * n);
    const char *x = gpu_at(&p.a, &at);
    const bool is_norm = p.kind == ENGINE_GPU_NORM;
    const float mean = is_norm ? gpu_sum_of(x, p.a.nb[0], n, 0.0f, false) / (float)n : 0.0f;
    const float factor = factor_of(&p, gpu_sum_of(x, p.a.nb[0], n, mean, true));
    write_row(&p, at, gpu_lane(), GPU_WARP, mean, factor);
}

GPU_KERNEL(engine_gpu_norm_long, engine_gpu_norm)
{
    if (gpu_loads_ahead(&p.ahead, ENGINE_GPU_LONG_THREADS)) return;
    const int64_t n = p.out.ne[0];
    const struct engine_gpu_index at = gpu_index(&p.out, gpu_block() * n);
    const char *x = gpu_at(&p.a, &at);
    const bool is_norm = p.kind == ENGINE_GPU_NORM;
    if (p.add[0].data) write_sums(&p, &at); /* a thread reads the elements that it writes */
    const float mean = is_norm ? sum_of_block(x, p.a.nb[0], n, 0.0f, false) / (float)n : 0.0f;
    if (is_norm) gpu_sync(); /* the sum is read */
    const float factor = factor_of(&p, sum_of_block(x, p.a.nb[0], n, mean, true));
    write_row(&p, at, gpu_thread(), ENGINE_GPU_LONG_THREADS, mean, factor);
    if (!p.to.block) return;
    gpu_sync(); /* the row is written */
    gpu_convert(&p.to, (const float *)(const void *)gpu_at(&p.out, &at), gpu_block(), gpu_warp(),
                ENGINE_GPU_LONG_THREADS / GPU_WARP, n);
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
    const float sum = gpu_sum_of(gpu_at(&p.a, &row.at), p.a.nb[0], row.n, 0.0f, false);
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
