/* quant/float/nvfp4.h: NVFP4: four-bit floats (E2M1) with an 8-bit float scale (UE4M3) for each 16
 * elements; 4.5 bits per weight.
 *
 *      byte  0                4                                       36
 *            | scale[4]       | qs[4][8]                              |
 *
 *      qs[s][i]: high nibble: element 16s + 8 + i, low nibble: element 16s + i; bit 3 is the sign
 *      x = scale[s] / 2 * quant_e2m1[nibble]
 *
 * quant_e2m1 is E2M1 doubled; nibble 8 ("minus zero") is 0. UE4M3: bits 3 to 6 are the exponent,
 * with bias 7; a number with exponent 0 is its mantissa times 2^-9. 0x7f is 0; bit 7 is ignored
 * otherwise, so 0xff is a number. The scales have too wide a range for integer sums, so columns are
 * floats (quant_act_f32), and products decode some elements of a row at a time. Source of the
 * layout: the GGUF format as its reference implementation writes it. */
#pragma once

#include "quant/encode/e2m1.h"
#include <math.h>

enum { NVFP4_LEN = 64, NVFP4_SUB_LEN = 16, NVFP4_BYTES = 36, NVFP4_AT_ONCE = 4 * NVFP4_LEN };

/* Half of a scale. The bits of a normal number are moved to the exponent and mantissa of a float;
 * 119 is the difference of the biases minus 1, for the half. */
static inline float nvfp4_half_scale(uint8_t e)
{
    const uint32_t bits = e & 0x7f;
    if (e == 0x7f) return 0.0f;
    if (bits < 8) return (float)bits * 0x1p-10f;
    return quant_float_of((bits << 20) + (119u << 23));
}

/* Computes the errors for the scale that puts the largest element at the largest code and for
 * adjacent scales, and uses the one with the smallest error. Elements that are not finite have no
 * code: they become the largest value, like elements beyond the largest scale. */
QUANT_INLINE void nvfp4_encode_sub(const float *in, const float *importance, uint8_t *scale,
                                   uint8_t q[8])
{
    float x[NVFP4_SUB_LEN], w[NVFP4_SUB_LEN], largest = 0.0f, best = INFINITY;
    uint8_t code[NVFP4_SUB_LEN];
    quant_fit_weights(NVFP4_SUB_LEN, importance, w);
    for (int i = 0; i < NVFP4_SUB_LEN; i++) {
        x[i] = fabsf(in[i]) <= 0x1p30f ? in[i] : copysignf(0x1p30f, in[i]);
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    }
    /* The largest scale below the one that is needed, from the bits of the float if it is normal.
     */
    const int64_t below = ((int64_t)quant_bits_of(largest / 12.0f) - (119 << 23)) >> 20;
    int middle = below > 0x7e ? 0x7e : below > 8 ? (int)below : 1;
    while (middle < 0x7e && 12.0f * nvfp4_half_scale((uint8_t)middle) < largest) middle++;
    *scale = 0;
    for (int e = middle - 2; e <= middle + 4; e++) {
        if (e < 1 || e > 0x7e) continue;
        const float error = quant_e2m1_error(NVFP4_SUB_LEN, x, w, nvfp4_half_scale((uint8_t)e));
        if (!(error < best)) continue;
        best = error;
        *scale = (uint8_t)e;
    }
    quant_e2m1_codes(NVFP4_SUB_LEN, x, nvfp4_half_scale(*scale), code);
    for (int i = 0; i < 8; i++) q[i] = (uint8_t)(code[i] | code[8 + i] << 4);
}

QUANT_INLINE void nvfp4_encode_at(int64_t k, const float *in, const float *importance, void *row)
{
    uint8_t *block = row;
    for (int64_t b = 0; b < k / NVFP4_LEN; b++, block += NVFP4_BYTES)
        for (int s = 0; s < NVFP4_LEN / NVFP4_SUB_LEN; s++) {
            const int64_t at = b * NVFP4_LEN + s * NVFP4_SUB_LEN;
            nvfp4_encode_sub(in + at, importance ? importance + at : NULL, &block[s],
                             block + 4 + 8 * s);
        }
}
