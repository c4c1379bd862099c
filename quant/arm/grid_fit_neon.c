/* quant/arm/grid_fit_neon.c: the search of quant/encode/grid_fit.h with NEON; the same bits as
 * grid_fit.c. */
#define FIT_TARGET
#define FIT_BYTES 16
#include "quant/arm/types_arm.h"
#include "quant/encode/grid_lanes.inc"
#include "quant/encode/vector_fit.h"
#include <arm_neon.h>

static inline float32x4_t errors_of(const struct quant_grid_sums *t, int half, int i,
                                    float32x4_t ratio)
{
    return vsubq_f32(vld1q_f32(t->vv[half] + i), vmulq_f32(ratio, vld1q_f32(t->xv[half] + i)));
}

/* One comparison with the best entry so far selects the lists to read, of four. A list that a later
 * best entry would exclude has no better entry, so the result is the same. */
static float search(const struct quant_grid *grid, const struct quant_grid_sums *t, float scale,
                    float limit, uint16_t *entry)
{
    static const uint32_t bit[4] = {1, 2, 4, 8};
    const struct units u = units_of(scale, limit);
    const float32x4_t ratio = vdupq_n_f32(u.ratio);
    float first[4], second[QUANT_GRID_HALVES], lane[4];
    float32x4_t min = vdupq_n_f32(INFINITY);
    for (int i = 0; i < grid->n_halves; i += 4) {
        const float32x4_t e = errors_of(t, 1, i, ratio);
        vst1q_f32(second + i, e);
        min = vbslq_f32(vcltq_f32(e, min), e, min);
    }
    vst1q_f32(lane, min);
    for (int l = 1; l < 4; l++) lane[0] = lane[l] < lane[0] ? lane[l] : lane[0];
    min = vdupq_n_f32(lane[0]);
    float best = first_best(grid, t, u, *entry);
    for (int i = 0; i < grid->n_halves; i += 4) {
        const float32x4_t e = errors_of(t, 0, i, ratio);
        const uint32x4_t below = vcltq_f32(vaddq_f32(e, min), vdupq_n_f32(best));
        unsigned lists = vaddvq_u32(vandq_u32(below, vld1q_u32(bit)));
        if (!lists) continue;
        vst1q_f32(first, e);
        for (; lists; lists &= lists - 1) {
            const int l = __builtin_ctz(lists);
            search_list(grid, i + l, first[l], second, &best, entry);
        }
    }
    return error_in(u, best);
}

static const struct quant_grid_level grid_level = GRID_LEVEL;

const struct quant_search quant_search_neon = {&quant_fit_neon, &grid_level,
                                               quant_vector_search_neon};
