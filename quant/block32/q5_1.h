/* quant/block32/q5_1.h: Q5_1: blocks of 32 five-bit codes with a scale and a minimum; 6 bits per
 * weight.
 *
 *      byte  0     2     4         8                      24
 *            | d   | m   | qh[4]   | qs[16]               |     d, m: binary16, little-endian
 *
 *      qs[i]:  high nibble: low four bits of element 16 + i, low nibble: of element i
 *      qh:     as a little-endian 32-bit number, bit i is the fifth bit of element i
 *      x = d * code + m,   code 0 .. 31
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#pragma once

#include "quant/block32/block32.h"

struct q5_1_block {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct q5_1_block) == 24, "Q5_1 block");

enum { Q5_1_MAX_CODE = 31 };

static const struct quant_fit_min_form q5_1_with_min = {QUANT_FIT_FREE, .max_code = Q5_1_MAX_CODE};

static const struct quant_form32 q5_1_form = {
    .block_bytes = sizeof(struct q5_1_block),
    .codes = offsetof(struct q5_1_block, qs),
    .fifth = offsetof(struct q5_1_block, qh),
    .has_min = true,
    .max_code = Q5_1_MAX_CODE,
    .with_min = &q5_1_with_min,
};

static const struct quant_panel_form q5_1_panel = {
    .sub_len = 32, .max_code = Q5_1_MAX_CODE, .has_min = true};
