/* engine/gpu/device/gpu_convert.h: device code: the conversion of results that a product reads next
 * (quant/gpu/gpu_quantize.h), by the kernel that computes them. */
#pragma once

#include "engine/gpu/device/gpu_ops.h"
#include "quant/gpu/gpu_quantize.h"

/* Converts blocks first, first + step .. of row x, of n elements, to column c; by a warp. */
static inline void gpu_convert(const struct engine_gpu_converted *p, const float *x, int c,
                               int64_t first, int64_t step, int64_t n)
{
    const struct quant_act to = quant_gpu_column(&p->columns, c);
    for (int64_t b = first; b < n / p->block; b += step) {
        if (p->block == 32)
            gpu_quantize_q8_32(x, b, &to);
        else
            gpu_quantize_q8_256(x, b, &to);
    }
}
