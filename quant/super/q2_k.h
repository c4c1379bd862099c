/* quant/super/q2_k.h: Q2_K: super-blocks of 256 two-bit codes, with 16 sub-blocks of 16 with 4-bit
 * scales and 4-bit minima; 2.625 bits per weight.
 *
 *      byte  0             16           80    82     84
 *            | scale[16]   | q[64]      | d   | dmin |     d, dmin: binary16, little-endian
 *
 *      scale[s]:       high nibble: minimum of sub-block s, low nibble: its scale
 *      q[32h + l]:     bits 2g + 1, 2g: code of element 128h + 32g + l, l < 32, g < 4
 *      x = d * scale * code - dmin * min,   code 0 .. 3 */
#pragma once

#include "quant/super/super.h"

struct q2_k_block {
    uint8_t scale[16], q[64];
    uint16_t d, dmin;
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q2_k_block) == 84, "the size in the file");

static const struct super_layout q2_k_layout = {
    .block_bytes = sizeof(struct q2_k_block),
    .panel = {.sub_len = 16, .offset = 0, .max_code = 3, .has_min = true}};

QUANT_INLINE void q2_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q2_k_block *w = (const struct q2_k_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = -quant_f16_to_f32(w->dmin);
    for (int s = 0; s < 16; s++) {
        p->scale[s] = w->scale[s] & 15;
        p->min[s] = w->scale[s] >> 4;
    }
    for (int h = 0; h < 2; h++)
        for (int g = 0; g < 4; g++)
            for (int l = 0; l < 32; l++) p->q[128 * h + 32 * g + l] = w->q[32 * h + l] >> 2 * g & 3;
}
