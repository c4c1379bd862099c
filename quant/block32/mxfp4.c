/* quant/block32/mxfp4.c: MXFP4: blocks of 32 four-bit floats (E2M1) with a power of two as scale;
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
#include "quant/block32/block32_kernels.h"
#include "quant/encode/e2m1.h"

struct block {
    uint8_t e;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct block) == 17, "MXFP4 block");

enum { OFFSET = 16, MAX_CODE = 12 + OFFSET, E_MAX = 255 };

/* The scale is the power of two that puts the largest element at 4 to 8 (the largest value is 6),
 * or twice that, if this gives a smaller error. Elements that are not finite have no code: such a
 * block gets the largest scale, whose values overflow float, so that the error is visible. */
QUANT_INLINE void mxfp4_write(const float in[32], const float *importance, uint8_t *at)
{
    struct block block = {.e = E_MAX};
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
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .codebook = quant_e2m1,
    .e8m0 = true,
    .offset = OFFSET,
    .max_code = MAX_CODE,
};

QUANT_BLOCK32_ENCODE_EACH(mxfp4)
QUANT_ENCODE_AT(mxfp4, mxfp4_encode, )
QUANT_BLOCK32_KERNELS(mxfp4)

const struct quant_type quant_type_mxfp4 = {
    .name = "MXFP4",
    .id = QUANT_MXFP4,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(mxfp4, 1),
};
