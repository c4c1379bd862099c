/* quant/block32/mxfp4.h: MXFP4: blocks of 32 four-bit floats (E2M1) with a power of two as scale;
 * 4.25 bits per weight.
 *
 *      byte  0    1                      17
 *            | e  | qs[16]               |
 *
 *      qs[i]:  high nibble: element 16 + i, low nibble: element i; bit 3 of a nibble is the sign
 *      x = 2^(e - 128) * quant_e2m1[nibble]
 *
 * quant_e2m1 is E2M1 doubled, so that it is integer. Source: OCP Microscaling Formats (MX)
 * Specification 1.0, with two differences that files in use rely on: nibble 8 ("minus zero") is 0,
 * and e = 255 is not NaN but the number that the formula gives. The codes below and in panels are
 * quant_e2m1[nibble] + 16. */
#pragma once

#include "quant/block32/block32.h"
#include "quant/encode/e2m1.h"

struct mxfp4_block {
    uint8_t e;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct mxfp4_block) == 17, "MXFP4 block");

enum { MXFP4_OFFSET = 16, MXFP4_MAX_CODE = 12 + MXFP4_OFFSET, MXFP4_E_MAX = 255 };

/* The scale is the power of two that puts the largest element at 4 to 8 (the largest value is 6),
 * or twice that, if this gives a smaller error. Elements that are not finite have no code: such a
 * block gets the largest scale, whose values overflow float, so that the error is visible. */
QUANT_INLINE void mxfp4_write(const float in[32], const float *importance, uint8_t *at)
{
    struct mxfp4_block block = {.e = MXFP4_E_MAX};
    uint8_t code[32];
    uint32_t largest = 0; /* as an integer */
    float w[32];
    for (int i = 0; i < 32; i++) {
        const uint32_t size = quant_bits_of(in[i]) & 0x7fffffff;
        largest = size > largest ? size : largest;
    }
    memset(code, 7, sizeof code);
    if (largest < 0x7f800000) {
        /* largest < 2^exponent; subnormals get the smallest scale. */
        const int exponent = (int)(largest >> 23) - 126,
                  e = exponent + 124 < 0 ? 0 : exponent + 124;
        quant_fit_weights(32, importance, w);
        const float d = quant_e8m0((uint8_t)e), twice = quant_e8m0((uint8_t)(e + 1));
        const bool larger = quant_e2m1_error(32, in, w, twice) < quant_e2m1_error(32, in, w, d);
        block.e = (uint8_t)(e + larger);
        quant_e2m1_codes(32, in, larger ? twice : d, code);
    }
    quant_join_nibbles(code, block.qs);
    memcpy(at, &block, sizeof block);
}

static const struct quant_form32 mxfp4_form = {
    .block_bytes = sizeof(struct mxfp4_block),
    .codes = offsetof(struct mxfp4_block, qs),
    .codebook = quant_e2m1,
    .e8m0 = true,
    .offset = MXFP4_OFFSET,
    .max_code = MXFP4_MAX_CODE,
};

static const struct quant_panel_form mxfp4_panel = {
    .sub_len = 32, .offset = MXFP4_OFFSET, .max_code = MXFP4_MAX_CODE};

QUANT_BLOCK32_ENCODE_EACH(mxfp4)
