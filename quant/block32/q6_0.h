/* quant/block32/q6_0.h: Q6_0: blocks of 32 six-bit codes with a scale; 6.5 bits per weight.
 *
 *      byte  0     2         10                     26
 *            | d   | qh[8]   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: low four bits of element 16 + i, low nibble: of element i
 *      qh[l]:  from bit 7 down: bits 5 and 4 of elements 24 + l, 8 + l, 16 + l and l
 *      x = d * (code - 32),   code 0 .. 63
 *
 * Source of the layout: ik_llama.cpp. */
#pragma once

#include "quant/block32/block32.h"

struct q6_0_block {
    uint16_t d;
    uint8_t qh[8];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct q6_0_block) == 26, "Q6_0 block");

enum { Q6_0_OFFSET = 32, Q6_0_MAX_CODE = 63 };

static const struct quant_fit_grid q6_0_grid = {
    .low = -Q6_0_OFFSET, .high = Q6_0_OFFSET - 1, .n_trials = 4, .first = -1.0f, .step = 0.6f};

static const struct quant_form32 q6_0_form = {
    .block_bytes = sizeof(struct q6_0_block),
    .codes = offsetof(struct q6_0_block, qs),
    .top = offsetof(struct q6_0_block, qh),
    .offset = Q6_0_OFFSET,
    .max_code = Q6_0_MAX_CODE,
    .grid = &q6_0_grid,
};

static const struct quant_panel_form q6_0_panel = {
    .sub_len = 32, .offset = Q6_0_OFFSET, .max_code = Q6_0_MAX_CODE};
