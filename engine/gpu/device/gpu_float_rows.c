/* engine/gpu/device/gpu_float_rows.c: device code: sums of rows of float weights, an element for
 * each thread: mul_mat_transposed and add_low_rank (engine/graph.h has their order of operations).
 */
#include "engine/gpu/device/gpu_element.h"
#include "quant/half.h"

static float weight(enum engine_gpu_float type, const char *row, int64_t i)
{
    switch (type) {
    case ENGINE_GPU_F16:
        return quant_half_to_float(((const uint16_t *)(const void *)row)[i]);
    case ENGINE_GPU_BF16:
        return quant_bfloat_to_float(((const uint16_t *)(const void *)row)[i]);
    case ENGINE_GPU_F32:
        break;
    }
    return ((const float *)(const void *)row)[i];
}

GPU_KERNEL(engine_gpu_mul_mat_transposed, engine_gpu_float_rows)
{
    const int64_t n = gpu_thread_of_grid();
    if (n >= p.out.ne[0] * engine_gpu_rows(&p.out)) return;
    struct engine_gpu_index at = gpu_index(&p.out, n);
    float *out = (float *)(void *)gpu_at(&p.out, &at), sum = 0.0f;
    const int64_t element = at.i[0];
    for (at.i[0] = 0; at.i[0] < p.w.ne[1]; at.i[0]++) {
        const float x = gpu_float(&p.x, &at);
        if (x != 0.0f) sum = fmaf(weight(p.type, p.w.data + at.i[0] * p.w.nb[1], element), x, sum);
    }
    *out = sum;
}

GPU_KERNEL(engine_gpu_add_low_rank, engine_gpu_float_rows)
{
    enum { PANEL = 64 };
    const int64_t n = gpu_thread_of_grid();
    if (n >= p.out.ne[0] * engine_gpu_rows(&p.out)) return;
    struct engine_gpu_index at = gpu_index(&p.out, n);
    const struct engine_gpu_index id_at = {{at.i[1], at.i[2], 0, 0}};
    const int64_t token = p.ids.data ? at.i[2] : n / p.out.ne[0];
    const float scale = ((const float *)(const void *)p.scale.data)[token];
    float *out = (float *)(void *)gpu_at(&p.out, &at), sum = gpu_float(&p.y, &at);
    const int32_t id = p.ids.data ? *(const int32_t *)(const void *)gpu_at(&p.ids, &id_at) : 0;
    if (id < 0 || id >= p.w.ne[3]) {
        *out = v_of_bits(0x7fc00000);
        return;
    }
    const char *row = p.w.data + id * p.w.nb[3] + at.i[0] / PANEL * p.w.nb[2];
    const int64_t element = at.i[0] % PANEL;
    for (at.i[0] = 0; scale != 0.0f && at.i[0] < p.w.ne[1]; at.i[0]++, row += p.w.nb[1])
        sum = fmaf(weight(p.type, row, element), fmaf(gpu_float(&p.x, &at), scale * p.factor, 0.0f),
                   sum);
    *out = sum;
}
