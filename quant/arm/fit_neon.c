/* quant/arm/fit_neon.c: the searches of quant/encode/fit.h with NEON; the same bits as fit.c. */
#define FIT_TARGET
#define FIT_BYTES 16
#include "quant/encode/fit_lanes.inc"
#include <arm_neon.h>

FIT_INLINE float32x4_t larger(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

FIT_INLINE void add_sums(const struct quant_fit_grid *grid, const struct group *g, bool weighted,
                         const int8_t *codebook, const lanes *inverse, const struct origin *from,
                         struct sums *out)
{
    const float32x4_t low = vdupq_n_f32((float)grid->low), high = vdupq_n_f32((float)grid->high);
    const float32x4_t shift = vdupq_n_f32(QUANT_FIT_SHIFT);
    for (int h = 0; h < 4; h++) {
        const float32x4_t times = ((const float32x4_t *)inverse)[h];
        const float32x4_t more = from ? ((const float32x4_t *)&from->add)[h] : vdupq_n_f32(0.0f);
        const float32x4_t back = from ? ((const float32x4_t *)&from->shift)[h] : shift;
        float32x4_t v = vdupq_n_f32(0.0f), vv = v, vx = v;
        for (int i = 0; i < g->depth; i++) {
            const float32x4_t x = ((const float32x4_t *)&g->x[i])[h];
            const float32x4_t at = vmulq_f32(from ? vaddq_f32(x, more) : x, times);
            float32x4_t value = low;
            if (!codebook) {
                value = larger(at, low);
                value = vbslq_f32(vcltq_f32(value, high), value, high);
                value = vsubq_f32(vaddq_f32(value, shift), back);
            }
            for (int j = 1; codebook && j < grid->n_values; j++) {
                const uint32x4_t past = vcgtq_f32(at, vdupq_n_f32(middle_of(grid, j)));
                value = vbslq_f32(past, vdupq_n_f32(codebook[j]), value);
            }
            float32x4_t wv = value;
            if (weighted) wv = vmulq_f32(((const float32x4_t *)&g->w[i])[h], value);
            if (from) v = vaddq_f32(v, wv);
            vv = vaddq_f32(vv, vmulq_f32(wv, value));
            vx = vaddq_f32(vx, vmulq_f32(wv, x));
        }
        ((float32x4_t *)&out->v)[h] = v;
        ((float32x4_t *)&out->vv)[h] = vv;
        ((float32x4_t *)&out->vx)[h] = vx;
    }
}

const struct quant_fit quant_fit_neon = FIT_TABLE;
