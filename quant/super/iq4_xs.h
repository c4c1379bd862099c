/* quant/super/iq4_xs.h: IQ4_XS: super-blocks of 256 four-bit indices into a codebook of 16 values,
 * with 8 sub-blocks of 32 with 6-bit scales; 4.25 bits per weight.
 *
 *      byte  0     2                     4               8               136
 *            | d   | scale_high (16-bit) | scale_low[4]  | q[128]        |     d: binary16
 *
 *      q[16s + l]:     high nibble: index of element 32s + 16 + l, low nibble: of 32s + l, l < 16
 *      scale_low[i]:   high nibble: bits 3 .. 0 of scale 2i + 1, low nibble: of scale 2i
 *      scale_high:     bits 2s + 1, 2s: bits 5 and 4 of scale s
 *      x = d * (scale - 32) * quant_codebook_iq4[index]
 *
 * Numbers are little-endian. The codes in panels are quant_codebook_iq4[index] + 128. */
#pragma once

#include "quant/codebook.h"
#include "quant/super/super.h"

struct iq4_xs_block {
    uint16_t d, scale_high;
    uint8_t scale_low[4], q[128];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq4_xs_block) == 136, "the size in the file");

static const struct super_layout iq4_xs_layout = {
    .block_bytes = sizeof(struct iq4_xs_block),
    .panel = {.sub_len = 32, .offset = 128, .max_code = 241, .has_min = false}};

QUANT_INLINE void iq4_xs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq4_xs_block *w = (const struct iq4_xs_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) {
        int low = w->scale_low[s / 2] >> s % 2 * 4 & 15, high = w->scale_high >> 2 * s & 3;
        p->scale[s] = (int16_t)((low | high << 4) - 32);
        for (int l = 0; l < 16; l++) {
            p->q[32 * s + l] = (uint8_t)(quant_codebook_iq4[w->q[16 * s + l] & 15] + 128);
            p->q[32 * s + 16 + l] = (uint8_t)(quant_codebook_iq4[w->q[16 * s + l] >> 4] + 128);
        }
    }
}
