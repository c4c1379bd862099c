/* quant/block32/q2_0.h: Q2_0: 2-bit codes with one scale for 64 elements; 2.25 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i / 4] bits 2(i % 4), 2(i % 4) + 1: code of element i
 *      x = d * (code - 1),   code 0 .. 3
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#pragma once

#include "quant/block32/long_block.h"

enum { Q2_0_LEN = 64, Q2_0_BYTES = 18, Q2_0_OFFSET = 1, Q2_0_MAX_CODE = 3 };

static const struct quant_long_form q2_0_form = {
    .len = Q2_0_LEN, .bytes = Q2_0_BYTES, .offset = Q2_0_OFFSET};

static inline uint8_t q2_0_code(const uint8_t *block, int i)
{
    return block[2 + i / 4] >> i % 4 * 2 & 3;
}

static const struct quant_panel_form q2_0_panel = {
    .sub_len = 32, .offset = Q2_0_OFFSET, .max_code = Q2_0_MAX_CODE};
