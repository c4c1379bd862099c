/* quant/block32/q4_1.h: Q4_1: blocks of 32 four-bit codes with a scale and a minimum; 5 bits per
 * weight.
 *
 *      byte  0     2     4                      20
 *            | d   | m   | qs[16]               |     d, m: binary16, little-endian
 *
 *      qs[i]:  high nibble: code of element 16 + i, low nibble: code of element i
 *      x = d * code + m,   code 0 .. 15
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#pragma once

#include "quant/block32/block32.h"

struct q4_1_block {
    uint16_t d, m;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct q4_1_block) == 20, "Q4_1 block");

enum { Q4_1_MAX_CODE = 15 };

static const struct quant_fit_min_form q4_1_with_min = {QUANT_FIT_FREE, .max_code = Q4_1_MAX_CODE};

static const struct quant_form32 q4_1_form = {
    .block_bytes = sizeof(struct q4_1_block),
    .codes = offsetof(struct q4_1_block, qs),
    .has_min = true,
    .max_code = Q4_1_MAX_CODE,
    .with_min = &q4_1_with_min,
};

static const struct quant_panel_form q4_1_panel = {
    .sub_len = 32, .max_code = Q4_1_MAX_CODE, .has_min = true};
