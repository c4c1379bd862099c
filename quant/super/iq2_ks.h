/* quant/super/iq2_ks.h: IQ2_KS: super-blocks of 256 two-bit indices into a book of 4 values, with
 * 8 sub-blocks of 32 with 5-bit scales; 2.19 bits per weight.
 *
 *      byte  0              2            6              70
 *            | bits (16-bit)| scale[4]   | q[64]        |     before a row's blocks: d, binary16
 *
 *      q:              index of each element (book_pair)
 *      scale[i]:       high nibble: bits 3 .. 0 of scale 2i + 1, low nibble: of scale 2i
 *      bits:           bit s belongs to sub-block s, bit 8 + s is bit 4 of its scale
 *      x = d * (scale - 16) * (quant_codebook_iq2[index] + 5 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq2_ks_block {
    uint16_t bits;
    uint8_t scale[4], q[64];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_ks_block) == 70, "the size in the file");

static const struct super_layout iq2_ks_layout = {
    .block_bytes = sizeof(struct iq2_ks_block),
    .header_bytes = 2,
    .panel = {.sub_len = 32, .offset = 32, .max_code = 54}};

QUANT_INLINE void iq2_ks_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_ks_block *w = super_block_at(&iq2_ks_layout, row, b);
    p->d = super_row_d(&iq2_ks_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] = (int16_t)((book_nibble(w->scale, s) | (w->bits >> (8 + s) & 1) << 4) - 16);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = (uint8_t)(iq2_ks_layout.panel.offset +
                            book_value(&super_book_iq2, book_pair(w->q, i), w->bits >> i / 32 & 1));
}
