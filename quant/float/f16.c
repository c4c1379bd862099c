/* quant/float/f16.c: F16: IEEE binary16, little-endian, one element per block.
 *
 * Elements are widened exactly and multiplied as F32 (sums in 16 lanes, quant/quant.h). */
#include "quant/float/lanes.h"
#include "quant/half.h"
#include <math.h>

static void f16_decode(int64_t first, int64_t n, const void *row, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = quant_half_to_float(quant_element16(row, first + i));
}

static void f16_encode(const struct quant_search *search, int64_t k, const float *in,
                       const float *importance, void *row)
{
    (void)search;
    (void)importance;
    for (int64_t i = 0; i < k; i++) {
        uint16_t h = quant_float_to_half(in[i]);
        memcpy((char *)row + (size_t)i * sizeof h, &h, sizeof h);
    }
}

static float f16_dot(int64_t k, const void *row, const struct quant_act *a)
{
    float lane[16] = {0};
    for (int64_t i = 0; i < k; i++)
        lane[i % 16] = fmaf(quant_half_to_float(quant_element16(row, i)), a->f32[i], lane[i % 16]);
    return quant_lanes_tree(lane);
}

QUANT_FLOAT_TYPE(f16, F16, 1, 2, f32)
