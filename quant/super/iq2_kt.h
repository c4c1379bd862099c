/* quant/super/iq2_kt.h: IQ2_KT: super-blocks of 32 groups of 8 generated values, with 8 sub-blocks
 * of 32 with scales from a book; 2.13 bits per weight.
 *
 *      byte  0            4                     68
 *            | scale[4]   | low[32] (16-bit)    |
 *
 *      low:            the number of each group
 *      scale[i]:       high nibble: scale 4 + i, an index, low nibble: scale i
 *      x = d * quant_codebook_iq4[scale] * value
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/trellis.h"

struct iq2_kt_block {
    uint8_t scale[4];
    uint16_t low[32];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_kt_block) == 68, "the size in the file");

static const struct super_layout iq2_kt_layout = {
    .block_bytes = sizeof(struct iq2_kt_block),
    .header_bytes = 4,
    .panel = {.sub_len = 32, .offset = TRELLIS_OFFSET, .max_code = TRELLIS_MAX_CODE}};

/* The start of group i. */
QUANT_INLINE uint32_t iq2_kt_start(const struct iq2_kt_block *w, int i)
{
    return TRELLIS_FIRST + (uint32_t)w->low[i];
}

QUANT_INLINE void iq2_kt_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_kt_block *w = super_block_at(&iq2_kt_layout, row, b);
    p->d = super_row_d(&iq2_kt_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = quant_codebook_iq4[book_nibble_of_8(w->scale, s)];
    for (int i = 0; i < SUPER_LEN / 8; i++) trellis_codes(iq2_kt_start(w, i), 8, p->q + 8 * i);
}
