/* quant/float/f32.c: F32: IEEE binary32, little-endian, one element per block.
 *
 * The products are sums in 16 lanes (quant/quant.h), for weights that were not quantized. */
#include "quant/float/lanes.h"
#include <math.h>

static void decode(int64_t first, int64_t n, const void *row, float *out)
{
    memcpy(out, (const char *)row + (size_t)first * sizeof *out, (size_t)n * sizeof *out);
}

static void encode(const struct quant_search *search, int64_t k, const float *in,
                   const float *importance, void *row)
{
    (void)search;
    (void)importance;
    memcpy(row, in, (size_t)k * sizeof *in);
}

static float dot(int64_t k, const void *row, const struct quant_act *a)
{
    float lane[16] = {0};
    for (int64_t i = 0; i < k; i++) {
        float w;
        memcpy(&w, (const char *)row + (size_t)i * sizeof w, sizeof w);
        lane[i % 16] = fmaf(w, a->f32[i], lane[i % 16]);
    }
    return quant_lanes_tree(lane);
}

static void gemv_scalar(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                        float *out)
{
    quant_gemv_by_dot(dot, k, rows, a, out);
}

const struct quant_type quant_type_f32 = {
    .name = "F32",
    .id = QUANT_F32,
    .block_len = 1,
    .block_bytes = 4,
    .act = &quant_act_f32,
    .dot = dot,
    .scalar = {.decode = decode, .encode = encode, .gemv = gemv_scalar},
};
