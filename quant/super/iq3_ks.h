/* quant/super/iq3_ks.h: IQ3_KS: super-blocks of 256 three-bit indices into a book of 8 values, with
 * 8 sub-blocks of 32 with 5-bit scales; 3.19 bits per weight.
 *
 *      byte  0              2            6              70         102
 *            | bits (16-bit)| scale[4]   | q[64]        | high[32]  |     before a row's blocks: d
 *
 *      d:              binary16
 *      q, high:        bits 1, 0 (book_pair) and bit 2 (book_bit) of each element's index
 *      scale[i]:       high nibble: bits 3 .. 0 of scale 4 + i, low nibble: of scale i
 *      bits:           bit 8 + s belongs to sub-block s, bit s is bit 4 of its scale
 *      x = d * (scale - 16) * (quant_codebook_iq3[index] + 4 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq3_ks_block {
    uint16_t bits;
    uint8_t scale[4], q[64], high[32];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq3_ks_block) == 102, "the size in the file");

static const struct super_layout iq3_ks_layout = {
    .block_bytes = sizeof(struct iq3_ks_block),
    .header_bytes = 2,
    .panel = {.sub_len = 32, .offset = 64, .max_code = 115}};

QUANT_INLINE void iq3_ks_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_ks_block *w = super_block_at(&iq3_ks_layout, row, b);
    p->d = super_row_d(&iq3_ks_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] = (int16_t)((book_nibble_of_8(w->scale, s) | (w->bits >> s & 1) << 4) - 16);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] =
            (uint8_t)(iq3_ks_layout.panel.offset +
                      book_value(&super_book_iq3, book_pair(w->q, i) | book_bit(w->high, i) << 2,
                                 w->bits >> (8 + i / 32) & 1));
}
