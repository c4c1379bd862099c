/* engine/gpu/device/gpu_map.c: device code: ops that compute each element by itself. */
#include "engine/gpu/device/gpu_convert.h"
#include "engine/gpu/device/gpu_element.h"
#include "engine/gpu/device/gpu_row.h"

/* fmaf(tanh(fmaf(a, 1 / x, 0)), x, 0) */
static float softcap(float a, float x)
{
    return fmaf(v_tanh(fmaf(a, 1.0f / x, 0.0f)), x, 0.0f);
}

/* The number of the row that ids have for a row. */
static int32_t id_of(const struct engine_gpu_tensor *ids, const struct engine_gpu_index *at)
{
    const struct engine_gpu_index of = {{at->i[1], at->i[2], at->i[3], 0}};
    return *(const int32_t *)(const void *)gpu_at(ids, &of);
}

static uint32_t row_element(const struct engine_gpu_map *p, struct engine_gpu_index at)
{
    const int32_t row = id_of(&p->b, &at);
    if (row < 0 || row >= p->a.ne[1]) return p->f == ENGINE_GPU_GET_ROWS ? 0x7fc00000 : ~0u;
    at.i[1] = row;
    return *(const uint32_t *)(const void *)gpu_at(&p->a, &at);
}

/* An element of a, which b may follow along a dimension. */
static uint32_t joined(const struct engine_gpu_map *p, struct engine_gpu_index at)
{
    bool second = false;
    GPU_EACH (d, 4) /* arguments that are indexed by numbers only are not copied to memory */
        if (p->f == ENGINE_GPU_CONCAT && d == p->dim && at.i[d] >= p->a.ne[d]) {
            second = true;
            at.i[d] -= p->a.ne[d];
        }
    if (second) return *(const uint32_t *)(const void *)gpu_at(&p->b, &at);
    return *(const uint32_t *)(const void *)gpu_at(&p->a, &at);
}

QUANT_INLINE float element(const struct engine_gpu_map *p, float a, float b)
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
    case ENGINE_GPU_GET_NUMBERS:
        break;
    }
    return 0.0f;
}

/* Converts the elements of this block, from `first` on, which are of one row. */
QUANT_INLINE void convert(const struct engine_gpu_map *p, int64_t first)
{
    const int64_t row = first / p->out.ne[0], e = first % p->out.ne[0];
    const float *x = (const float *)(const void *)p->out.data + row * p->out.ne[0];
    gpu_sync(); /* the elements are written */
    gpu_convert(&p->to, x, (int)row, e / p->to.block + gpu_warp(), ENGINE_GPU_WARPS,
                e + ENGINE_GPU_THREADS);
}

GPU_KERNEL(engine_gpu_map, engine_gpu_map)
{
    if (gpu_loads_ahead(&p.ahead, ENGINE_GPU_THREADS)) return;
    const int64_t n = gpu_thread_of_grid();
    if (n >= p.out.ne[0] * engine_gpu_rows(&p.out)) return;
    struct engine_gpu_index at = {{n, 0, 0, 0}};
    if (!p.plain) at = gpu_index(&p.out, n);
    float *out = (float *)(void *)(p.plain ? p.out.data + n * 4 : gpu_at(&p.out, &at));
    if (p.f >= ENGINE_GPU_GET_ROWS) {
        *(uint32_t *)(void *)out = row_element(&p, at);
        return;
    }
    if (p.f >= ENGINE_GPU_COPY) {
        *(uint32_t *)(void *)out = joined(&p, at);
        return;
    }
    float x, y = 0.0f;
    if (p.plain) {
        x = ((const float *)(const void *)p.a.data)[n];
        if (p.b.data) y = ((const float *)(const void *)p.b.data)[n];
    } else {
        x = gpu_float(&p.a, &at);
        if (p.b.data) y = gpu_float(&p.b, &at);
    }
    *out = element(&p, x, y);
    if (p.to.block) convert(&p, n - gpu_thread());
}

/* Whether a later row of the same plane has the id; all lanes of the warp call it. */
static bool is_later(const struct engine_gpu_set_rows *p, struct engine_gpu_index at, int32_t id)
{
    uint32_t found = 0;
    for (at.i[1] += 1 + gpu_lane(); at.i[1] < p->a.ne[1]; at.i[1] += GPU_WARP)
        found |= id_of(&p->ids, &at) == id;
    for (int mask = GPU_WARP / 2; mask; mask /= 2) found |= gpu_shuffle_xor(found, mask);
    return found;
}

GPU_KERNEL(engine_gpu_set_rows, engine_gpu_set_rows)
{
    const int64_t row = gpu_warp_of_grid(), n = p.a.ne[0];
    if (row >= engine_gpu_rows(&p.a)) return;
    struct engine_gpu_index at = gpu_index(&p.a, row * n);
    const int32_t id = id_of(&p.ids, &at);
    if (id < 0 || id >= p.table.ne[1] || is_later(&p, at, id)) return;
    struct engine_gpu_index to = at;
    to.i[1] = id;
    for (int64_t i = gpu_lane(); i < n; i += GPU_WARP) {
        at.i[0] = to.i[0] = i;
        *(float *)(void *)gpu_at(&p.table, &to) = gpu_float(&p.a, &at);
    }
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
    return gpu_rotated(a, b, cosine, sine, is_first);
}

GPU_KERNEL(engine_gpu_rope, engine_gpu_rope)
{
    const int64_t n = gpu_thread_of_grid();
    if (n >= p.out.ne[0] * engine_gpu_rows(&p.out)) return;
    const struct engine_gpu_index at = gpu_index(&p.out, n);
    *(float *)(void *)gpu_at(&p.out, &at) =
        at.i[0] < p.table.ne[0] ? rotated(&p, at) : gpu_float(&p.a, &at);
}
