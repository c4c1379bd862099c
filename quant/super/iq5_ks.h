/* quant/super/iq5_ks.h: IQ5_KS: super-blocks of 256 five-bit indices into a book of 32 values, with
 * 8 sub-blocks of 32 with 7-bit scales; 5.25 bits per weight.
 *
 *      byte  0            8             136         168
 *            | scale[8]   | q[128]      | high[32]  |     before a row's blocks: d, binary32
 *
 *      q, high:        bits 3 .. 0 (book_nibble_32) and bit 4 (book_bit) of each element's index
 *      scale[s]:       scale of sub-block s (book_scale_7) and its bit
 *      x = d * scale * (quant_codebook_iq5[index] + 2 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq5_ks_block {
    uint8_t scale[8], q[128], high[32];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq5_ks_block) == 168, "the size in the file");

static const struct super_layout iq5_ks_layout = {
    .block_bytes = sizeof(struct iq5_ks_block),
    .header_bytes = 4,
    .panel = {.sub_len = 32, .offset = 128, .max_code = 251}};

QUANT_INLINE void iq5_ks_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq5_ks_block *w = super_block_at(&iq5_ks_layout, row, b);
    p->d = super_row_d(&iq5_ks_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = book_scale_7(w->scale[s]);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = (uint8_t)(iq5_ks_layout.panel.offset +
                            book_value(&super_book_iq5,
                                       book_nibble_32(w->q, i) | book_bit(w->high, i) << 4,
                                       w->scale[i / 32] & 1));
}
