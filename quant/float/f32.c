/* quant/float/f32.c: F32: IEEE binary32, little-endian, one element per block.
 *
 * The products are sums in 16 lanes (quant/quant.h), for weights that were not quantized. */
#include "quant/float/lanes.h"
#include <math.h>

static void f32_decode(int64_t first, int64_t n, const void *row, float *out)
{
    memcpy(out, (const char *)row + (size_t)first * sizeof *out, (size_t)n * sizeof *out);
}

static void f32_encode(const struct quant_search *search, int64_t k, const float *in,
                       const float *importance, void *row)
{
    (void)search;
    (void)importance;
    memcpy(row, in, (size_t)k * sizeof *in);
}

static float f32_dot(int64_t k, const void *row, const struct quant_act *a)
{
    float lane[16] = {0};
    for (int64_t i = 0; i < k; i++) {
        float w;
        memcpy(&w, (const char *)row + (size_t)i * sizeof w, sizeof w);
        lane[i % 16] = fmaf(w, a->f32[i], lane[i % 16]);
    }
    return quant_lanes_tree(lane);
}

QUANT_FLOAT_TYPE(f32, F32, 1, 4, f32)
