/* quant/super/iq2_xs.h: IQ2_XS: super-blocks of 256 with a grid of 512 times 8 magnitudes, seven
 * sign bits per 8 elements, and 16 sub-blocks of 16 with 4-bit scales; 2.31 bits per weight.
 *
 *      byte  0     2                   66           74
 *            | d   | q[32] (16-bit)    | scale[8]   |     d: binary16, little-endian as q
 *
 *      q[i]:           bits 8 .. 0: entry of elements 8i .. 8i + 7
 *                      bits 15 .. 9: the signs of the first seven of these elements; the eighth
 *                      makes the number of negative elements even
 *      scale[i]:       high nibble: scale of sub-block 2i + 1, low nibble: of 2i
 *      x = d / 8 * (2 * scale + 1) * sign * quant_grid_iq2_xs[entry]
 *
 * The codes in panels are sign * grid + 64. */
#pragma once

#include "quant/super/super_grid.h"

struct iq2_xs_block {
    uint16_t d;
    uint8_t q[32][2], scale[8];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_xs_block) == 74, "the size in the file");

enum { IQ2_XS_OFFSET = 64, IQ2_XS_MAX_CODE = 107 };

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq2_xs_entry(const void *block, int i)
{
    const struct iq2_xs_block *w = block;
    return quant_grid_iq2_xs[quant_load16(w->q[i]) & 511];
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq2_xs_signs(const void *block, int s)
{
    const struct iq2_xs_block *w = block;
    uint32_t signs = 0;
    for (int j = 0; j < 4; j++)
        signs |= (uint32_t)quant_signs7[quant_load16(w->q[4 * s + j]) >> 9] << 8 * j;
    return signs;
}

static const struct super_layout iq2_xs_layout = {
    .block_bytes = sizeof(struct iq2_xs_block),
    .panel = {.sub_len = 16, .offset = IQ2_XS_OFFSET, .max_code = IQ2_XS_MAX_CODE}};

QUANT_INLINE void iq2_xs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_xs_block *w = (const struct iq2_xs_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 16; s++)
        p->scale[s] = (int16_t)(2 * (w->scale[s / 2] >> s % 2 * 4 & 15) + 1);
    super_grid_expand(iq2_xs_entry, iq2_xs_signs, IQ2_XS_OFFSET, w, p->q);
}
