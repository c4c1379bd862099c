/* quant/super/iq2_k.h: IQ2_K: super-blocks of 256 two-bit indices into a book of 4 values, with
 * 16 sub-blocks of 16 with 4-bit scales; 2.375 bits per weight.
 *
 *      byte  0     2              4            12             76
 *            | d   | bits (16-bit)| scale[8]   | q[64]        |     d: binary16
 *
 *      q:              index of each element (book_pair)
 *      scale[i]:       high nibble: scale 2i + 1, low nibble: scale 2i
 *      bits:           bit s belongs to sub-block s
 *      x = d * (scale - 8) * (quant_codebook_iq2[index] + 5 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq2_k_block {
    uint16_t d, bits;
    uint8_t scale[8], q[64];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_k_block) == 76, "the size in the file");

static const struct super_layout iq2_k_layout = {
    .block_bytes = sizeof(struct iq2_k_block),
    .panel = {.sub_len = 16, .offset = 32, .max_code = 54}};

QUANT_INLINE void iq2_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_k_block *w = super_block_at(&iq2_k_layout, row, b);
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 16; s++) p->scale[s] = (int16_t)(book_nibble(w->scale, s) - 8);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = (uint8_t)(iq2_k_layout.panel.offset +
                            book_value(&super_book_iq2, book_pair(w->q, i), w->bits >> i / 16 & 1));
}
