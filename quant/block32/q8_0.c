/* quant/block32/q8_0.c: Q8_0: blocks of 32 signed bytes with a scale; 8.5 bits per weight.
 *
 *      byte  0     2                                  34
 *            | d   | qs[32]                           |     d: binary16, little-endian
 *
 *      x = d * qs[i]
 *
 * Panels hold the bytes plus 128, because the multiply instructions take one side unsigned.
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/block32_kernels.h"
#include <math.h>

struct block {
    uint16_t d;
    int8_t qs[32];
};
_Static_assert(sizeof(struct block) == 34, "Q8_0 block");

enum { OFFSET = 128, MAX_CODE = 255 };

/* One block: the largest element goes to 127. A block with an element that is not finite gets
 * d = NaN, so that it shows; scales above the range of binary16 are cut to its largest. */
static struct block encode_block(const float x[32])
{
    struct block block = {0};
    uint32_t largest = 0;

    for (int i = 0; i < 32; i++) {
        uint32_t bits = quant_bits_of(x[i]) & 0x7fffffff;
        if (bits > largest) largest = bits;
    }
    if (largest >= 0x7f800000) {
        block.d = 0x7e00;
        return block;
    }
    float d = quant_float_of(largest) / 127.0f;
    block.d = quant_f32_to_f16(d < 65504.0f ? d : 65504.0f);
    /* The nearest codes under the scale that the file will hold. */
    d = quant_f16_to_f32(block.d);
    for (int i = 0; i < 32 && d != 0.0f; i++) {
        float q = x[i] / d;
        q = q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q;
        block.qs[i] = (int8_t)lrintf(q);
    }
    return block;
}

static void q8_0_write(const float x[32], uint8_t *at)
{
    const struct block block = encode_block(x);
    memcpy(at, &block, sizeof block);
}

static const struct quant_form32 q8_0_form = {
    .block_bytes = sizeof(struct block),
    .codes = offsetof(struct block, qs),
    .bytes = true,
    .offset = OFFSET,
    .max_code = MAX_CODE,
    .write = q8_0_write,
};

QUANT_BLOCK32_KERNELS(q8_0)

const struct quant_type quant_type_q8_0 = {
    .name = "Q8_0",
    .id = QUANT_Q8_0,
    .block_bytes = sizeof(struct block),
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_BLOCK32_MEMBERS(q8_0),
};
