/* quant/super/q4_k.h: Q4_K: super-blocks of 256 four-bit codes, with 8 sub-blocks of 32 with 6-bit
 * scales and 6-bit minima; 4.5 bits per weight.
 *
 *      byte  0     2      4             16            144
 *            | d   | dmin | scale[12]   | q[128]      |     d, dmin: binary16, little-endian
 *
 *      scale:          scales and minima, drawn in quant/super/k_scales.h
 *      q[32c + l]:     high nibble: code of element 64c + 32 + l, low nibble: of 64c + l, l < 32
 *      x = d * scale * code - dmin * min,   code 0 .. 15 */
#pragma once

#include "quant/super/k_scales.h"

struct q4_k_block {
    uint16_t d, dmin;
    uint8_t scale[12], q[128];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q4_k_block) == 144, "the size in the file");

static const struct super_layout q4_k_layout = {
    .block_bytes = sizeof(struct q4_k_block),
    .panel = {.sub_len = 32, .offset = 0, .max_code = 15, .has_min = true}};

QUANT_INLINE void q4_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q4_k_block *w = (const struct q4_k_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = -quant_f16_to_f32(w->dmin);
    k_scales_expand(w->scale, p);
    for (int c = 0; c < 4; c++) {
        for (int l = 0; l < 32; l++) {
            p->q[64 * c + l] = w->q[32 * c + l] & 15;
            p->q[64 * c + 32 + l] = w->q[32 * c + l] >> 4;
        }
    }
}
