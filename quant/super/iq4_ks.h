/* quant/super/iq4_ks.h: IQ4_KS: super-blocks of 256 four-bit indices into a book of 16 values, with
 * 8 sub-blocks of 32 with 7-bit scales; 4.25 bits per weight.
 *
 *      byte  0            8             136
 *            | scale[8]   | q[128]      |     before a row's blocks: d, binary32
 *
 *      q:              index of each element (book_nibble_16)
 *      scale[s]:       scale of sub-block s (book_scale_7) and its bit
 *      x = d * scale * (quant_codebook_iq4[index] + 4 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq4_ks_block {
    uint8_t scale[8], q[128];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq4_ks_block) == 136, "the size in the file");

static const struct super_layout iq4_ks_layout = {
    .block_bytes = sizeof(struct iq4_ks_block),
    .header_bytes = 4,
    .panel = {.sub_len = 32, .offset = 128, .max_code = 245}};

QUANT_INLINE void iq4_ks_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq4_ks_block *w = super_block_at(&iq4_ks_layout, row, b);
    p->d = super_row_d(&iq4_ks_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = book_scale_7(w->scale[s]);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] =
            (uint8_t)(iq4_ks_layout.panel.offset +
                      book_value(&super_book_iq4, book_nibble_16(w->q, i), w->scale[i / 32] & 1));
}
