/* quant/gpu/gpu_quantize.c: device code: columns of floats to activation forms. A warp converts a
 * block; its largest element and its sums are those of integers, exact in any order. */
#include "quant/act.h"
#include "quant/gpu/dialect.h"
#include "quant/gpu/gpu_quant.h"
#include "quant/half.h"
#include <math.h>

static inline int64_t warp_of_grid(void)
{
    return (int64_t)gpu_block() * QUANT_GPU_WARPS + gpu_warp();
}

/* Converts block b, whose lanes have `per_lane` consecutive elements each; `sum_lanes` adjacent
 * lanes have one sum. */
QUANT_INLINE void quantize(const struct quant_gpu_quantize *p, int per_lane, int sum_lanes,
                           bool scaled_sums)
{
    const int64_t b = warp_of_grid(), at = (b * GPU_WARP + gpu_lane()) * per_lane;
    const struct quant_act to = quant_gpu_column(&p->to, gpu_block_y());
    const float *x = p->x + gpu_block_y() * p->x_stride + at;
    if (b >= p->k / (GPU_WARP * per_lane)) return;
    uint32_t largest = 0;
    for (int i = 0; i < per_lane; i++) {
        const uint32_t bits = quant_bits_of(x[i]) & 0x7fffffff;
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
        to.q[at + i] = quant_act_code(x[i], factor);
        sum += to.q[at + i];
    }
    for (int mask = 1; mask < sum_lanes; mask *= 2)
        sum += (int)gpu_shuffle_xor((uint32_t)sum, mask);
    if (gpu_lane() % sum_lanes == 0) to.sum[(b * GPU_WARP + gpu_lane()) / sum_lanes] = (int16_t)sum;
    if (gpu_lane() != 0) return;
    to.d[b] = d;
    if (scaled_sums) to.s[b] = d * (float)sum;
}

GPU_KERNEL(quant_gpu_quantize_q8_32, quant_gpu_quantize)
{
    quantize(&p, 1, GPU_WARP, true);
}

GPU_KERNEL(quant_gpu_quantize_q8_256, quant_gpu_quantize)
{
    quantize(&p, 8, 2, false);
}

GPU_KERNEL(quant_gpu_quantize_bf16, quant_gpu_quantize)
{
    const int64_t i = warp_of_grid() * GPU_WARP + gpu_lane();
    const struct quant_act to = quant_gpu_column(&p.to, gpu_block_y());
    if (i < p.k)
        to.bf16[i] = quant_float_to_bfloat(p.x[gpu_block_y() * p.x_stride + i]);
    else if (i < quant_act_round_up(p.k, GPU_WARP))
        to.bf16[i] = 0;
}
