/* quant/super/iq3_k.h: IQ3_K: super-blocks of 256 three-bit indices into a book of 8 values, with
 * 16 sub-blocks of 16 with 5-bit scales; 3.4375 bits per weight.
 *
 *      byte  0     2              4               6            14             78         110
 *            | d   | bits (16-bit)| sign (16-bit) | scale[8]   | q[64]        | high[32]  |
 *
 *      d:              binary16
 *      q, high:        bits 1, 0 (book_pair) and bit 2 (book_bit) of each element's index
 *      scale[i]:       high nibble: n of scale 2i + 1, low nibble: of 2i; scale = 2n + 1
 *      sign:           bit s: scale s is negative
 *      bits:           bit s belongs to sub-block s
 *      x = d * scale * (quant_codebook_iq3[index] + 4 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq3_k_block {
    uint16_t d, bits, sign;
    uint8_t scale[8], q[64], high[32];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq3_k_block) == 110, "the size in the file");

static const struct super_layout iq3_k_layout = {
    .block_bytes = sizeof(struct iq3_k_block),
    .panel = {.sub_len = 16, .offset = 64, .max_code = 115}};

QUANT_INLINE void iq3_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_k_block *w = super_block_at(&iq3_k_layout, row, b);
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 16; s++) {
        const int scale = 2 * book_nibble(w->scale, s) + 1;
        p->scale[s] = (int16_t)(w->sign >> s & 1 ? -scale : scale);
    }
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] =
            (uint8_t)(iq3_k_layout.panel.offset +
                      book_value(&super_book_iq3, book_pair(w->q, i) | book_bit(w->high, i) << 2,
                                 w->bits >> i / 16 & 1));
}
