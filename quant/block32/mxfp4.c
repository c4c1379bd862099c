/* quant/block32/mxfp4.c: MXFP4: blocks of 32 four-bit floats (E2M1) with a power of two as scale.
 *
 * value = 2^(e - 128) * book[code], the book being E2M1 doubled, so that it is whole. Source: OCP
 * Microscaling Formats (MX) Specification 1.0, with two differences that files in use rely on: code
 * 8 ("minus zero") is plain 0, and e = 255 is not NaN but the number that the formula gives. 4.25
 * bits a weight. "Codes" below, in panels too, are book[code] + 16. Called through the type table
 * only. */
#include "quant/block32/block32_kernels.h"
#include <math.h>

struct block {
    uint8_t e;
    uint8_t qs[16]; /* byte l: element l low, element 16 + l high; bit 3 of a code is the sign */
};
_Static_assert(sizeof(struct block) == 17, "MXFP4 block");

enum { OFFSET = 16, MAX_CODE = 12 + OFFSET, E_MAX = 255 };

/* E2M1 doubled. */
static const int8_t codebook[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* The nearest code of x for a scale; returns the square of the error. */
static float round_to_code(float x, float scale, uint8_t *code)
{
    static const float middle[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};
    float size = fabsf(x) / scale;
    *code = 0;
    for (int i = 0; i < 7; i++) *code += size > middle[i];
    float off = fabsf(x) - scale * (float)codebook[*code];
    if (x < 0.0f && *code > 0) *code |= 8;
    return off * off;
}

/* Codes of a block for one scale; returns the squared error. */
static float try_scale(const float x[32], int e, uint8_t code[32])
{
    float error = 0.0f;
    for (int i = 0; i < 32; i++) error += round_to_code(x[i], quant_e8m0((uint8_t)e), &code[i]);
    return error;
}

/* The scale is the power of two that puts the largest element at 4 to 8 (the largest code is 6), or
 * the next larger or smaller one, whichever gives the smaller error. Elements that are not finite
 * have no code: such a block gets the largest scale, whose values are outside the range of float,
 * so that the error is visible. */
static void mxfp4_write(const float in[32], uint8_t *at)
{
    struct block block;
    uint8_t code[32] = {0}, larger[32];
    float largest = 0.0f;
    bool finite = true;
    for (int i = 0; i < 32; i++) {
        finite = finite && isfinite(in[i]);
        if (fabsf(in[i]) > largest) largest = fabsf(in[i]);
    }
    int exponent, e = 0;
    frexpf(largest, &exponent);
    if (!finite) {
        e = E_MAX;
        memset(code, 7, sizeof code);
    } else if (largest > 0.0f) {
        e = exponent + 124 < 0 ? 0 : exponent + 124;
        if (try_scale(in, e + 1, larger) < try_scale(in, e, code)) {
            e++;
            memcpy(code, larger, sizeof code);
        }
    }
    block.e = (uint8_t)e;
    quant_join_nibbles(code, block.qs);
    memcpy(at, &block, sizeof block);
}

static const struct quant_form32 mxfp4_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .codebook = codebook,
    .e8m0 = true,
    .offset = OFFSET,
    .max_code = MAX_CODE,
    .write = mxfp4_write,
};

QUANT_BLOCK32_KERNELS(mxfp4)

const struct quant_type quant_type_mxfp4 = {
    .name = "MXFP4",
    .id = QUANT_MXFP4,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(mxfp4),
};
