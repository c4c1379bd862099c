/* quant/gpu/gpu_quantize.c: device code: columns of floats to activation forms. */
#include "quant/gpu/gpu_quantize.h"
#include "quant/gpu/gpu_quant.h"
#include "quant/half.h"
#include <math.h>

static inline int64_t warp_of_grid(void)
{
    return (int64_t)gpu_block() * QUANT_GPU_WARPS + gpu_warp();
}

#define QUANTIZE(form, block)                                                                      \
    GPU_KERNEL(quant_gpu_quantize_##form, quant_gpu_quantize)                                      \
    {                                                                                              \
        const struct quant_act to = quant_gpu_column(&p.to, gpu_block_y());                        \
        if (warp_of_grid() < p.k / (block))                                                        \
            gpu_quantize_##form(p.x + gpu_block_y() * p.x_stride, warp_of_grid(), &to);            \
    }

QUANTIZE(q8_32, 32)
QUANTIZE(q8_256, 256)

GPU_KERNEL(quant_gpu_quantize_bf16, quant_gpu_quantize)
{
    const int64_t i = warp_of_grid() * GPU_WARP + gpu_lane();
    const struct quant_act to = quant_gpu_column(&p.to, gpu_block_y());
    if (i < p.k)
        to.bf16[i] = quant_float_to_bfloat(p.x[gpu_block_y() * p.x_stride + i]);
    else if (i < quant_act_round_up(p.k, GPU_WARP))
        to.bf16[i] = 0;
}
