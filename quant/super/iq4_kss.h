/* quant/super/iq4_kss.h: IQ4_KSS: super-blocks of 256 four-bit indices into a book of 16 values,
 * with 8 sub-blocks of 32 with 7-bit scales; 4 bits per weight.
 *
 *      byte  0                  128
 *            | word[64] (16-bit)|     before a row's blocks: d, binary32
 *
 *      word[8s + j]:   bit 0: bit j of the byte with the scale of sub-block s (book_scale_7) and its
 *                      bit; u ^ u >> 1, with u the word without bit 0: two bytes of q
 *      q:              index of each element (book_nibble_16)
 *      x = d * scale * (quant_codebook_iq4[index] + 4 * bit)
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq4_kss_block {
    uint16_t word[64];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq4_kss_block) == 128, "the size in the file");

static const struct super_layout iq4_kss_layout = {
    .block_bytes = sizeof(struct iq4_kss_block),
    .header_bytes = 4,
    .panel = {.sub_len = 32, .offset = 128, .max_code = 245}};

QUANT_INLINE void iq4_kss_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq4_kss_block *w = super_block_at(&iq4_kss_layout, row, b);
    p->d = super_row_d(&iq4_kss_layout, row);
    p->m = 0.0f;
    uint8_t q[128], scale[8] = {0};
    for (int j = 0; j < 64; j++) {
        const unsigned u = w->word[j] & 0xfffe, two = u ^ u >> 1;
        scale[j / 8] |= (uint8_t)((w->word[j] & 1) << j % 8);
        q[2 * j] = (uint8_t)two;
        q[2 * j + 1] = (uint8_t)(two >> 8);
    }
    for (int s = 0; s < 8; s++) p->scale[s] = book_scale_7(scale[s]);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = (uint8_t)(iq4_kss_layout.panel.offset +
                            book_value(&super_book_iq4, book_nibble_16(q, i), scale[i / 32] & 1));
}
