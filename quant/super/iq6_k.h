/* quant/super/iq6_k.h: IQ6_K: super-blocks of 256 six-bit indices into a book of 64 values, with
 * 16 sub-blocks of 16 with signed 8-bit scales; 6.625 bits per weight.
 *
 *      byte  0     2              4            20            148         212
 *            | d   | bits (16-bit)| scale[16]  | q[128]      | high[64]  |     d: binary16
 *
 *      q, high:        bits 3 .. 0 (book_nibble_32) and 5, 4 (book_pair) of each element's index
 *      bits:           bit s belongs to sub-block s
 *      x = d * scale * (quant_codebook_iq6[index] + bit)
 *
 * The book's values are those that products of ik_llama.cpp multiply. Its conversion to floats uses
 * the polynomial whose values they round; here a weight has one value.
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq6_k_block {
    uint16_t d, bits;
    int8_t scale[16];
    uint8_t q[128], high[64];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq6_k_block) == 212, "the size in the file");

static const struct super_layout iq6_k_layout = {
    .block_bytes = sizeof(struct iq6_k_block),
    .panel = {.sub_len = 16, .offset = 128, .max_code = 250}};

QUANT_INLINE void iq6_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq6_k_block *w = super_block_at(&iq6_k_layout, row, b);
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 16; s++) p->scale[s] = w->scale[s];
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = (uint8_t)(iq6_k_layout.panel.offset +
                            book_value(&super_book_iq6,
                                       book_nibble_32(w->q, i) | book_pair(w->high, i) << 4,
                                       w->bits >> i / 16 & 1));
}
