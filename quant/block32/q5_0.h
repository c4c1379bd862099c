/* quant/block32/q5_0.h: Q5_0: blocks of 32 five-bit codes with a scale; 5.5 bits per weight.
 *
 *      byte  0     2         6                      22
 *            | d   | qh[4]   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: low four bits of element 16 + i, low nibble: of element i
 *      qh:     as a little-endian 32-bit number, bit i is the fifth bit of element i
 *      x = d * (code - 16),   code 0 .. 31
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#pragma once

#include "quant/block32/block32.h"

struct q5_0_block {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct q5_0_block) == 22, "Q5_0 block");

enum { Q5_0_OFFSET = 16, Q5_0_MAX_CODE = 31 };

static const struct quant_fit_grid q5_0_grid = {
    .low = -Q5_0_OFFSET, .high = Q5_0_OFFSET - 1, .n_trials = 4, .first = -1.0f, .step = 0.6f};

static const struct quant_form32 q5_0_form = {
    .block_bytes = sizeof(struct q5_0_block),
    .codes = offsetof(struct q5_0_block, qs),
    .fifth = offsetof(struct q5_0_block, qh),
    .offset = Q5_0_OFFSET,
    .max_code = Q5_0_MAX_CODE,
    .grid = &q5_0_grid,
};

static const struct quant_panel_form q5_0_panel = {
    .sub_len = 32, .offset = Q5_0_OFFSET, .max_code = Q5_0_MAX_CODE};
