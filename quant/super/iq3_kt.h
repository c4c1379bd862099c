/* quant/super/iq3_kt.h: IQ3_KT: super-blocks of 32 groups of 8 generated magnitudes, with a sign
 * bit per element and 8 sub-blocks of 32 with 4-bit scales; 3.13 bits per weight.
 *
 *      byte  0            4                     68          100
 *            | scale[4]   | low[32] (16-bit)    | sign[32]  |
 *
 *      low:            the number of each group
 *      scale[i]:       high nibble: scale 4 + i, low nibble: scale i
 *      sign:           a bit per element (book_bit): it is negative
 *      x = d * scale * sign * |value|
 *
 * Numbers are little-endian. */
#pragma once

#include "quant/super/trellis.h"

struct iq3_kt_block {
    uint8_t scale[4];
    uint16_t low[32];
    uint8_t sign[32];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq3_kt_block) == 100, "the size in the file");

static const struct super_layout iq3_kt_layout = {
    .block_bytes = sizeof(struct iq3_kt_block),
    .header_bytes = 4,
    .panel = {.sub_len = 32, .offset = TRELLIS_OFFSET, .max_code = TRELLIS_MAX_CODE}};

/* The start of group i. */
QUANT_INLINE uint32_t iq3_kt_start(const struct iq3_kt_block *w, int i)
{
    return TRELLIS_FIRST + (uint32_t)w->low[i];
}

QUANT_INLINE void iq3_kt_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_kt_block *w = super_block_at(&iq3_kt_layout, row, b);
    p->d = super_row_d(&iq3_kt_layout, row);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = (int16_t)book_nibble_of_8(w->scale, s);
    for (int i = 0; i < SUPER_LEN / 8; i++) trellis_codes(iq3_kt_start(w, i), 8, p->q + 8 * i);
    for (int i = 0; i < SUPER_LEN; i++) {
        const int value = p->q[i] - TRELLIS_OFFSET, size = value < 0 ? -value : value;
        p->q[i] = (uint8_t)(TRELLIS_OFFSET + (book_bit(w->sign, i) ? -size : size));
    }
}
