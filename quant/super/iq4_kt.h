/* quant/super/iq4_kt.h: IQ4_KT: super-blocks of 64 groups of 4 generated values, with 8 sub-blocks
 * of 32 with 7-bit scales; 4 bits per weight.
 *
 *      byte  0                     32            96          128
 *            | head[8] (32-bit)    | low[64]     | high[32]  |
 *
 *      low, high:      bits 7 .. 0 and 11 .. 8 (trellis_nibble) of the number of each group
 *      head[s]:        bits 10 + 3g .. 8 + 3g: bits 14 .. 12 of the number of group 8s + g; bits
 *                      7 .. 1: scale of sub-block s; bit 0: 2^15 is added to its numbers
 *      x = d * (scale - 64) * value
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/trellis.h"

struct iq4_kt_block {
    uint32_t head[8];
    uint8_t low[64], high[32];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq4_kt_block) == 128, "the size in the file");

static const struct super_layout iq4_kt_layout = {
    .block_bytes = sizeof(struct iq4_kt_block),
    .header_bytes = 4,
    .panel = {.sub_len = 32, .offset = TRELLIS_OFFSET, .max_code = TRELLIS_MAX_CODE}};

/* The start of group i. */
QUANT_INLINE uint32_t iq4_kt_start(const struct iq4_kt_block *w, int i)
{
    const uint32_t head = w->head[i / 8];
    return TRELLIS_FIRST +
           (w->low[i] | trellis_nibble(w->high, 32, i) | (head >> (8 + i % 8 * 3) & 7) << 12) +
           ((head & 1) << 15);
}

QUANT_INLINE void iq4_kt_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq4_kt_block *w = super_block_at(&iq4_kt_layout, row, b);
    p->d = super_row_d(&iq4_kt_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = (int16_t)((int)(w->head[s] >> 1 & 127) - 64);
    for (int i = 0; i < SUPER_LEN / 4; i++) trellis_codes(iq4_kt_start(w, i), 4, p->q + 4 * i);
}
