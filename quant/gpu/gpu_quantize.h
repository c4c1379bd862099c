/* quant/gpu/gpu_quantize.h: device code: blocks of floats to activation forms, each by a warp; its
 * largest element and its sums are those of integers, exact in any order. */
#pragma once

#include "quant/act.h"
#include "quant/gpu/dialect.h"

/* Converts block b of x, whose lanes have `per_lane` consecutive elements each; `sum_lanes`
 * adjacent lanes have one sum. */
QUANT_INLINE void gpu_quantize(const float *x, int64_t b, const struct quant_act *to, int per_lane,
                               int sum_lanes, bool scaled_sums)
{
    const int64_t at = (b * GPU_WARP + gpu_lane()) * per_lane;
    uint32_t largest = 0;
    for (int i = 0; i < per_lane; i++) {
        const uint32_t bits = quant_bits_of(x[at + i]) & 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    for (int mask = GPU_WARP / 2; mask; mask /= 2) {
        const uint32_t other = gpu_shuffle_xor(largest, mask);
        largest = other > largest ? other : largest;
    }
    float factor;
    const float d = quant_act_scale(largest, &factor);
    int sum = 0;
    for (int i = 0; i < per_lane; i++) {
        to->q[at + i] = quant_act_code(x[at + i], factor);
        sum += to->q[at + i];
    }
    for (int mask = 1; mask < sum_lanes; mask *= 2)
        sum += (int)gpu_shuffle_xor((uint32_t)sum, mask);
    if (gpu_lane() % sum_lanes == 0)
        to->sum[(b * GPU_WARP + gpu_lane()) / sum_lanes] = (int16_t)sum;
    if (gpu_lane() != 0) return;
    to->d[b] = d;
    if (scaled_sums) to->s[b] = d * (float)sum;
}

QUANT_INLINE void gpu_quantize_q8_32(const float *x, int64_t b, const struct quant_act *to)
{
    gpu_quantize(x, b, to, 1, GPU_WARP, true);
}

QUANT_INLINE void gpu_quantize_q8_256(const float *x, int64_t b, const struct quant_act *to)
{
    gpu_quantize(x, b, to, 8, 2, false);
}
