/* engine/gpu/device/gpu_map.c: device code: ops that compute each element by itself. */
#include "engine/gpu/device/gpu_element.h"

/* fmaf(tanh(fmaf(a, 1 / x, 0)), x, 0) */
static float softcap(float a, float x)
{
    return fmaf(v_tanh(fmaf(a, 1.0f / x, 0.0f)), x, 0.0f);
}

static float row_element(const struct engine_gpu_map *p, struct engine_gpu_index at)
{
    const struct engine_gpu_index of = {{at.i[1], at.i[2], at.i[3], 0}};
    const int32_t row = *(const int32_t *)(const void *)gpu_at(&p->b, &of);
    if (row < 0 || row >= p->a.ne[1]) return v_of_bits(0x7fc00000);
    at.i[1] = row;
    return gpu_float(&p->a, &at);
}

/* An element of a, which b may follow along a dimension. */
static uint32_t joined(const struct engine_gpu_map *p, struct engine_gpu_index at)
{
    const bool second = p->f == ENGINE_GPU_CONCAT && at.i[p->dim] >= p->a.ne[p->dim];
    if (second) at.i[p->dim] -= p->a.ne[p->dim];
    return *(const uint32_t *)(const void *)gpu_at(second ? &p->b : &p->a, &at);
}

static float element(const struct engine_gpu_map *p, float a, float b)
{
    switch (p->f) {
    case ENGINE_GPU_ADD:
        return a + b;
    case ENGINE_GPU_SUB:
        return a - b;
    case ENGINE_GPU_MUL:
        return a * b;
    case ENGINE_GPU_DIV:
        return a / b;
    case ENGINE_GPU_GLU:
        return v_glu(p->unary, a, b);
    case ENGINE_GPU_UNARY:
        return v_unary(p->unary, a);
    case ENGINE_GPU_SCALE:
        return fmaf(a, p->x, p->y);
    case ENGINE_GPU_CLAMP:
        return v_clamp(a, p->x, p->y);
    case ENGINE_GPU_SOFTCAP:
        return softcap(a, p->x);
    case ENGINE_GPU_GLU_CLAMP:
        return v_glu(p->unary, v_clamp(a, -INFINITY, p->x),
                     fmaf(v_clamp(b, -p->x, p->x), 1.0f, p->y));
    case ENGINE_GPU_CLEAR:
        return b == 0.0f ? 0.0f : a;
    case ENGINE_GPU_COPY:
    case ENGINE_GPU_CONCAT:
    case ENGINE_GPU_GET_ROWS:
        break;
    }
    return 0.0f;
}

GPU_KERNEL(engine_gpu_map, engine_gpu_map)
{
    const int64_t n = gpu_thread_of_grid();
    if (n >= p.out.ne[0] * engine_gpu_rows(&p.out)) return;
    if (p.plain) {
        const float *a = (const float *)(const void *)p.a.data,
                    *b = (const float *)(const void *)p.b.data;
        ((float *)(void *)p.out.data)[n] = element(&p, a[n], b ? b[n] : 0.0f);
        return;
    }
    const struct engine_gpu_index at = gpu_index(&p.out, n);
    float *out = (float *)(void *)gpu_at(&p.out, &at);
    if (p.f == ENGINE_GPU_GET_ROWS) {
        *out = row_element(&p, at);
        return;
    }
    if (p.f == ENGINE_GPU_CONCAT || p.f == ENGINE_GPU_COPY) {
        *(uint32_t *)(void *)out = joined(&p, at);
        return;
    }
    *out = element(&p, gpu_float(&p.a, &at), p.b.data ? gpu_float(&p.b, &at) : 0.0f);
}

/* Rotates the pair of an element, and returns the element. */
static float rotated(const struct engine_gpu_rope *p, struct engine_gpu_index at)
{
    const int64_t n = p->table.ne[0] / 2, e = at.i[0];
    const int64_t pair = p->normal ? e / 2 : e < n ? e : e - n;
    const bool is_first = p->normal ? e % 2 == 0 : e < n;
    const float *angle = (const float *)(const void *)(p->table.data + at.i[2] * p->table.nb[1]);
    const float cosine = angle[pair], sine = angle[n + pair];
    at.i[0] = p->normal ? 2 * pair : pair;
    const float a = gpu_float(&p->a, &at);
    at.i[0] += p->normal ? 1 : n;
    const float b = gpu_float(&p->a, &at);
    return is_first ? fmaf(a, cosine, -(b * sine)) : fmaf(b, cosine, a * sine);
}

GPU_KERNEL(engine_gpu_rope, engine_gpu_rope)
{
    const int64_t n = gpu_thread_of_grid();
    if (n >= p.out.ne[0] * engine_gpu_rows(&p.out)) return;
    const struct engine_gpu_index at = gpu_index(&p.out, n);
    *(float *)(void *)gpu_at(&p.out, &at) =
        at.i[0] < p.table.ne[0] ? rotated(&p, at) : gpu_float(&p.a, &at);
}
