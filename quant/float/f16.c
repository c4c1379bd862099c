/* quant/float/f16.c: F16: IEEE binary16, little-endian, one element per block.
 *
 * Elements are widened exactly and multiplied as F32 (sums in 16 lanes, quant/quant.h). */
#include "quant/float/lanes.h"
#include "quant/half.h"
#include <math.h>

static uint16_t element(const void *row, int64_t i)
{
    uint16_t h;
    memcpy(&h, (const char *)row + (size_t)i * sizeof h, sizeof h);
    return h;
}

static void decode_scalar(int64_t first, int64_t n, const void *row, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = quant_half_to_float(element(row, first + i));
}

static void encode(const struct quant_search *search, int64_t k, const float *in,
                   const float *importance, void *row)
{
    (void)search;
    (void)importance;
    for (int64_t i = 0; i < k; i++) {
        uint16_t h = quant_float_to_half(in[i]);
        memcpy((char *)row + (size_t)i * sizeof h, &h, sizeof h);
    }
}

static float dot(int64_t k, const void *row, const struct quant_act *a)
{
    float lane[16] = {0};
    for (int64_t i = 0; i < k; i++)
        lane[i % 16] = fmaf(quant_half_to_float(element(row, i)), a->f32[i], lane[i % 16]);
    return quant_lanes_tree(lane);
}

static void gemv_scalar(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                        float *out)
{
    quant_gemv_by_dot(dot, k, rows, a, out);
}

const struct quant_type quant_type_f16 = {
    .name = "F16",
    .id = QUANT_F16,
    .block_len = 1,
    .block_bytes = 2,
    .act = &quant_act_f32,
    .dot = dot,
    .scalar = {.decode = decode_scalar, .encode = encode, .gemv = gemv_scalar},
};
