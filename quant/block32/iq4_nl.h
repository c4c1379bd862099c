/* quant/block32/iq4_nl.h: IQ4_NL: blocks of 32 four-bit indices into a codebook of 16 values, with
 * a scale; 4.5 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: index of element 16 + i, low nibble: index of element i
 *      x = d * quant_codebook_iq4[index]
 *
 * The codes below and in panels are quant_codebook_iq4[index] + 128. Source of the layout: the GGUF
 * format as its reference implementation writes it. */
#pragma once

#include "quant/block32/block32.h"

struct iq4_nl_block {
    uint16_t d;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct iq4_nl_block) == 18, "IQ4_NL block");

enum { IQ4_NL_OFFSET = 128, IQ4_NL_MAX_CODE = 113 + IQ4_NL_OFFSET };

static const struct quant_form32 iq4_nl_form = {
    .block_bytes = sizeof(struct iq4_nl_block),
    .codes = offsetof(struct iq4_nl_block, qs),
    .codebook = quant_codebook_iq4,
    .offset = IQ4_NL_OFFSET,
    .max_code = IQ4_NL_MAX_CODE,
    .grid = &quant_fit_iq4,
};

static const struct quant_panel_form iq4_nl_panel = {
    .sub_len = 32, .offset = IQ4_NL_OFFSET, .max_code = IQ4_NL_MAX_CODE};
