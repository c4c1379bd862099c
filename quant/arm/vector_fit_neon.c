/* quant/arm/vector_fit_neon.c: the search of quant/encode/vector_fit.h with NEON; the same bits as
 * vector_fit.c. */
#define FIT_TARGET
#define FIT_BYTES 16
#include "quant/encode/vector_lanes.inc"
#include <arm_neon.h>

FIT_INLINE void widen(const int8_t *value, lanes *out)
{
    const int8x16_t v = vld1q_s8(value);
    const int16x8_t half[2] = {vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v)};
    for (int h = 0; h < 2; h++) {
        ((float32x4_t *)out)[2 * h] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(half[h])));
        ((float32x4_t *)out)[2 * h + 1] = vcvtq_f32_s32(vmovl_high_s16(half[h]));
    }
}

VECTOR_SEARCH(quant_vector_search_neon)
