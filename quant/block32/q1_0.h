/* quant/block32/q1_0.h: Q1_0: signs with one scale for 128 elements; 1.125 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | bit[16]              |     d: binary16, little-endian
 *
 *      bit[i / 8] bit i % 8: element i is d, otherwise -d
 *
 * A code is twice the bit. Source of the layout: the GGUF format as its reference implementation
 * writes it. */
#pragma once

#include "quant/block32/long_block.h"
#include <math.h>

enum { Q1_0_LEN = 128, Q1_0_BYTES = 18, Q1_0_OFFSET = 1, Q1_0_MAX_CODE = 2 };

static const struct quant_long_form q1_0_form = {
    .len = Q1_0_LEN, .bytes = Q1_0_BYTES, .offset = Q1_0_OFFSET};

static inline uint8_t q1_0_code(const uint8_t *block, int i)
{
    return (uint8_t)((block[2 + i / 8] >> i % 8 & 1) * 2);
}

static const struct quant_panel_form q1_0_panel = {
    .sub_len = 32, .offset = Q1_0_OFFSET, .max_code = Q1_0_MAX_CODE};

QUANT_INLINE void q1_0_encode_at(int64_t k, const float *in, const float *importance, void *row)
{
    uint8_t *out = row;
    for (int64_t b = 0; b < k / Q1_0_LEN; b++, out += Q1_0_BYTES) {
        const float *x = in + b * Q1_0_LEN;
        float w[Q1_0_LEN], wx[QUANT_FIT_LANES] = {0}, ww[QUANT_FIT_LANES] = {0};
        bool finite = true;
        quant_fit_weights(Q1_0_LEN, importance ? importance + b * Q1_0_LEN : NULL, w);
        for (int i = 0; i < Q1_0_LEN; i += 8) {
            uint8_t bits = 0;
            for (int l = 0; l < 8; l++) {
                wx[l] += w[i + l] * fabsf(x[i + l]);
                ww[l] += w[i + l];
                finite &= fabsf(x[i + l]) < INFINITY;
            }
            for (int l = 0; l < 8; l++) bits |= (uint8_t)((x[i + l] >= 0.0f) << l);
            out[2 + i / 8] = bits;
        }
        const float mean = quant_fit_sum(wx) / quant_fit_sum(ww);
        const uint16_t d = finite ? quant_fit_half(mean) : FIT_NAN;
        memcpy(out, &d, sizeof d);
    }
}
