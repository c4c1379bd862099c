/* quant/super/q5_k.h: Q5_K: super-blocks of 256 five-bit codes, with 8 sub-blocks of 32 with 6-bit
 * scales and 6-bit minima; 5.5 bits per weight.
 *
 *      byte  0     2      4             16           48            176
 *            | d   | dmin | scale[12]   | high[32]   | q[128]      |     d, dmin: binary16
 *
 *      scale:          scales and minima, drawn in quant/super/k_scales.h
 *      high[l]:        bit s: bit 4 of the code of element 32s + l, l < 32
 *      q[32c + l]:     high nibble: bits 3 .. 0 of element 64c + 32 + l, low nibble: of 64c + l
 *      x = d * scale * code - dmin * min,   code 0 .. 31 */
#pragma once

#include "quant/super/k_scales.h"

struct q5_k_block {
    uint16_t d, dmin;
    uint8_t scale[12], high[32], q[128];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q5_k_block) == 176, "the size in the file");

static const struct super_layout q5_k_layout = {
    .block_bytes = sizeof(struct q5_k_block),
    .panel = {.sub_len = 32, .offset = 0, .max_code = 31, .has_min = true}};

QUANT_INLINE void q5_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q5_k_block *w = (const struct q5_k_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = -quant_f16_to_f32(w->dmin);
    k_scales_expand(w->scale, p);
    for (int s = 0; s < 8; s++)
        for (int l = 0; l < 32; l++)
            p->q[32 * s + l] =
                (uint8_t)((w->q[s / 2 * 32 + l] >> s % 2 * 4 & 15) | (w->high[l] >> s & 1) << 4);
}
