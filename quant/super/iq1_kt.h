/* quant/super/iq1_kt.h: IQ1_KT: super-blocks of 32 groups of 8 generated values, with 8 sub-blocks
 * of 32 with scales from a book; 1.75 bits per weight.
 *
 *      byte  0            8             40          56
 *            | scale[8]   | low[32]     | high[16]  |
 *
 *      low, high:      bits 7 .. 0 and 11 .. 8 (trellis_nibble) of the number of each group
 *      scale[s]:       bit 4 + g: bit 12 of the number of group 4s + g; bits 3 .. 0: scale of
 *                      sub-block s, an index
 *      x = d * quant_codebook_iq4[scale] * value
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/trellis.h"

struct iq1_kt_block {
    uint8_t scale[8], low[32], high[16];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq1_kt_block) == 56, "the size in the file");

static const struct super_layout iq1_kt_layout = {
    .block_bytes = sizeof(struct iq1_kt_block),
    .header_bytes = 4,
    .panel = {.sub_len = 32, .offset = TRELLIS_OFFSET, .max_code = TRELLIS_MAX_CODE}};

/* The start of group i. */
QUANT_INLINE uint32_t iq1_kt_start(const struct iq1_kt_block *w, int i)
{
    return TRELLIS_FIRST + (w->low[i] | trellis_nibble(w->high, 16, i) |
                            (uint32_t)(w->scale[i / 4] >> (4 + i % 4) & 1) << 12);
}

QUANT_INLINE void iq1_kt_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq1_kt_block *w = super_block_at(&iq1_kt_layout, row, b);
    p->d = super_row_d(&iq1_kt_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = quant_codebook_iq4[w->scale[s] & 15];
    for (int i = 0; i < SUPER_LEN / 8; i++) trellis_codes(iq1_kt_start(w, i), 8, p->q + 8 * i);
}
