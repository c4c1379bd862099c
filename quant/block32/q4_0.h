/* quant/block32/q4_0.h: Q4_0: blocks of 32 four-bit codes with a scale; 4.5 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: code of element 16 + i, low nibble: code of element i
 *      x = d * (code - 8),   code 0 .. 15
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#pragma once

#include "quant/block32/block32.h"

struct q4_0_block {
    uint16_t d;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct q4_0_block) == 18, "Q4_0 block");

enum { Q4_0_OFFSET = 8, Q4_0_MAX_CODE = 15 };

static const struct quant_fit_grid q4_0_grid = {
    .low = -Q4_0_OFFSET, .high = Q4_0_OFFSET - 1, .n_trials = 4, .first = -1.0f, .step = 0.6f};

static const struct quant_form32 q4_0_form = {
    .block_bytes = sizeof(struct q4_0_block),
    .codes = offsetof(struct q4_0_block, qs),
    .offset = Q4_0_OFFSET,
    .max_code = Q4_0_MAX_CODE,
    .grid = &q4_0_grid,
};

static const struct quant_panel_form q4_0_panel = {
    .sub_len = 32, .offset = Q4_0_OFFSET, .max_code = Q4_0_MAX_CODE};
