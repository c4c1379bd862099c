/* quant/super/iq4_k.h: IQ4_K: super-blocks of 256 four-bit indices into a book of 16 values, with
 * 16 sub-blocks of 16 with 6-bit scales; 4.5 bits per weight.
 *
 *      byte  0     2              4                8                16            144
 *            | d   | bits (16-bit)| scale_high[4]  | scale_low[8]   | q[128]      |     d: binary16
 *
 *      q:              index of each element (book_nibble_16)
 *      scale_low[i]:   high nibble: bits 3 .. 0 of scale 2i + 1, low nibble: of scale 2i
 *      scale_high[i]:  bits 2j + 1, 2j: bits 5 and 4 of scale 4i + j
 *      bits:           bit s belongs to sub-block s
 *      x = d * (scale - 32) * (quant_codebook_iq4[index] + 4 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq4_k_block {
    uint16_t d, bits;
    uint8_t scale_high[4], scale_low[8], q[128];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq4_k_block) == 144, "the size in the file");

static const struct super_layout iq4_k_layout = {
    .block_bytes = sizeof(struct iq4_k_block),
    .panel = {.sub_len = 16, .offset = 128, .max_code = 245}};

QUANT_INLINE void iq4_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq4_k_block *w = super_block_at(&iq4_k_layout, row, b);
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 16; s++) p->scale[s] = book_scale_6(w->scale_low, w->scale_high, s);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] =
            (uint8_t)(iq4_k_layout.panel.offset +
                      book_value(&super_book_iq4, book_nibble_16(w->q, i), w->bits >> i / 16 & 1));
}
