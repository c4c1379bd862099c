/* quant/block32/q8_0.h: Q8_0: blocks of 32 signed bytes with a scale; 8.5 bits per weight.
 *
 *      byte  0     2                                  34
 *            | d   | qs[32]                           |     d: binary16, little-endian
 *
 *      x = d * qs[i]
 *
 * The codes in panels are qs[i] + 128, because the multiply instructions take one unsigned operand.
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#pragma once

#include "quant/block32/block32.h"

struct q8_0_block {
    uint16_t d;
    int8_t qs[32];
};
_Static_assert(sizeof(struct q8_0_block) == 34, "Q8_0 block");

enum { Q8_0_OFFSET = 128, Q8_0_MAX_CODE = 255 };

QUANT_INLINE void q8_0_write(const float x[32], const float *importance, uint8_t *at)
{
    (void)importance; /* the scale is that of the largest element */
    struct q8_0_block block;
    block.d = quant_encode_bytes(x, block.qs);
    memcpy(at, &block, sizeof block);
}

static const struct quant_form32 q8_0_form = {
    .block_bytes = sizeof(struct q8_0_block),
    .codes = offsetof(struct q8_0_block, qs),
    .bytes = true,
    .offset = Q8_0_OFFSET,
    .max_code = Q8_0_MAX_CODE,
};

static const struct quant_panel_form q8_0_panel = {
    .sub_len = 32, .offset = Q8_0_OFFSET, .max_code = Q8_0_MAX_CODE};

QUANT_BLOCK32_ENCODE_EACH(q8_0)
