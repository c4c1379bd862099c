/* quant/super/iq2_kl.h: IQ2_KL: super-blocks of 128 five-bit indices into a book of 32 pairs of
 * values, with 8 sub-blocks of 32 elements with 6-bit scales; 2.69 bits per weight.
 *
 *      byte  0                    2                6             70         86
 *            | scale_high (16-bit)| scale_low[4]   | q[64]       | high[16]  |
 *
 *      before a row's blocks: d, binary16
 *      q[16b + l]:     bits 3 .. 0 of the index of elements 64b + 2l and 64b + 2l + 1 (low nibble),
 *                      of elements 32 later (high nibble), l < 16
 *      high[l]:        bit s: bit 4 of the index of elements 32s + 2l and 32s + 2l + 1
 *      scale_low[i]:   high nibble: bits 3 .. 0 of scale 4 + i, low nibble: of scale i
 *      scale_high:     bits 2s + 1, 2s: bits 5 and 4 of scale s
 *      x = d * (scale - 32) * quant_codebook_kl[element % 2][index]
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/book.h"

struct iq2_kl_block {
    uint16_t scale_high;
    uint8_t scale_low[4], q[64], high[16];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_kl_block) == 86, "the size in the file");

static const struct super_layout iq2_kl_layout = {
    .block_bytes = sizeof(struct iq2_kl_block),
    .header_bytes = 2,
    .panel = {.sub_len = 32, .offset = 64, .max_code = 111}};

QUANT_INLINE void iq2_kl_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_kl_block *w = super_block_at(&iq2_kl_layout, row, b);
    p->d = super_row_d(&iq2_kl_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] =
            (int16_t)((book_nibble_of_8(w->scale_low, s) | (w->scale_high >> 2 * s & 3) << 4) - 32);
    for (int i = 0; i < SUPER_LEN; i++) {
        const int s = i / 32, l = i % 32 / 2;
        const int index = (w->q[s / 2 * 16 + l] >> s % 2 * 4 & 15) | (w->high[l] >> s & 1) << 4;
        p->q[i] = (uint8_t)(quant_codebook_kl[i % 2][index] + iq2_kl_layout.panel.offset);
    }
}
