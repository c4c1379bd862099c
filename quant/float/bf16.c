/* quant/float/bf16.c: BF16: bfloat16 (the upper half of a float), little-endian, one element per
 * block.
 *
 * The products are those of the instruction VDPBF16PS; without it, they are computed by fma with
 * the same treatment of subnormals: subnormal inputs and results become zero of the same sign. On
 * x86, two bits of MXCSR make ordinary instructions do this; the scalar specification does it
 * explicitly and depends on no control register. */
#include "quant/float/bf16.h"
#include "quant/float/lanes.h"
#include "quant/half.h"

static void bf16_decode(int64_t first, int64_t n, const void *row, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = quant_bfloat_to_float(quant_element16(row, first + i));
}

static void bf16_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    (void)search;
    (void)importance;
    for (int64_t i = 0; i < k; i++) {
        uint16_t b = quant_float_to_bfloat(in[i]);
        memcpy((char *)row + (size_t)i * sizeof b, &b, sizeof b);
    }
}

static float bf16_dot(int64_t k, const void *row, const struct quant_act *a)
{
    float lane[16] = {0};
    for (int64_t first = 0; first < k; first += 32) {
        for (int l = 0; l < 16; l++) {
            /* The odd element of a pair comes first; elements past k are zero. */
            for (int64_t i = first + 2 * l + 1; i >= first + 2 * l; i--) {
                float w = i < k ? quant_bfloat_to_float(quant_element16(row, i)) : 0.0f;
                float x = i < k ? quant_bfloat_to_float(a->bf16[i]) : 0.0f;
                lane[l] = bf16_step(w, x, lane[l]);
            }
        }
    }
    return quant_lanes_tree(lane);
}

QUANT_FLOAT_TYPE(bf16, BF16, 1, 2, bf16)
