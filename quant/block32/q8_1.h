/* quant/block32/q8_1.h: Q8_1: blocks of 32 signed bytes with a scale and a sum; 9 bits per weight.
 *
 *      byte  0     2     4                                  36
 *            | d   | s   | qs[32]                           |     d, s: binary16, little-endian
 *
 *      x = d * qs[i]
 *
 * s is d times the sum of qs; no kernel reads it. The codes in panels are qs[i] + 128. Source of
 * the layout: the GGUF format as its reference implementation writes it. */
#pragma once

#include "quant/block32/block32.h"

struct q8_1_block {
    uint16_t d, s;
    int8_t qs[32];
};
_Static_assert(sizeof(struct q8_1_block) == 36, "Q8_1 block");

enum { Q8_1_OFFSET = 128, Q8_1_MAX_CODE = 255 };

QUANT_INLINE void q8_1_write(const float x[32], const float *importance, uint8_t *at)
{
    (void)importance; /* the scale is that of the largest element */
    struct q8_1_block block;
    int sum = 0;
    block.d = quant_encode_bytes(x, block.qs);
    for (int i = 0; i < 32; i++) sum += block.qs[i];
    block.s = quant_f32_to_f16(quant_f16_to_f32(block.d) * (float)sum);
    memcpy(at, &block, sizeof block);
}

static const struct quant_form32 q8_1_form = {
    .block_bytes = sizeof(struct q8_1_block),
    .codes = offsetof(struct q8_1_block, qs),
    .bytes = true,
    .offset = Q8_1_OFFSET,
    .max_code = Q8_1_MAX_CODE,
};

static const struct quant_panel_form q8_1_panel = {
    .sub_len = 32, .offset = Q8_1_OFFSET, .max_code = Q8_1_MAX_CODE};

QUANT_BLOCK32_ENCODE_EACH(q8_1)
