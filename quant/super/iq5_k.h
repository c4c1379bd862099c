/* quant/super/iq5_k.h: IQ5_K: super-blocks of 256 five-bit indices into a book of 32 values, with
 * 16 sub-blocks of 16 with 6-bit scales; 5.5 bits per weight.
 *
 *      byte  0     2              4                8                16            144         176
 *            | d   | bits (16-bit)| scale_high[4]  | scale_low[8]   | q[128]      | high[32]   |
 *
 *      d:              binary16
 *      q, high:        bits 3 .. 0 (book_nibble_32) and bit 4 (book_bit) of each element's index
 *      scale_low, scale_high, bits: as in IQ4_K
 *      x = d * (scale - 32) * (quant_codebook_iq5[index] + 2 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq5_k_block {
    uint16_t d, bits;
    uint8_t scale_high[4], scale_low[8], q[128], high[32];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq5_k_block) == 176, "the size in the file");

static const struct super_layout iq5_k_layout = {
    .block_bytes = sizeof(struct iq5_k_block),
    .panel = {.sub_len = 16, .offset = 128, .max_code = 251}};

QUANT_INLINE void iq5_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq5_k_block *w = super_block_at(&iq5_k_layout, row, b);
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 16; s++) p->scale[s] = book_scale_6(w->scale_low, w->scale_high, s);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = (uint8_t)(iq5_k_layout.panel.offset +
                            book_value(&super_book_iq5,
                                       book_nibble_32(w->q, i) | book_bit(w->high, i) << 4,
                                       w->bits >> i / 16 & 1));
}
