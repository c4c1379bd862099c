/* quant/super/iq2_s.h: IQ2_S: super-blocks of 256 with a grid of 1024 times 8 magnitudes, a sign
 * bit per element, and 16 sub-blocks of 16 with 4-bit scales; 2.56 bits per weight.
 *
 *      byte  0     2            34           66          74           82
 *            | d   | q[32]      | sign[32]   | high[8]   | scale[8]   |     d: binary16
 *
 *      q[i]:           bits 7 .. 0 of entry i, elements 8i .. 8i + 7
 *      high[i / 4]:    bits 2(i % 4) + 1, 2(i % 4): bits 9 and 8 of entry i
 *      sign[i / 8]:    bit i % 8: element i is negative
 *      scale[i]:       high nibble: scale of sub-block 2i + 1, low nibble: of 2i
 *      x = d / 8 * (2 * scale + 1) * sign * quant_grid_iq2_s[entry]
 *
 * The codes in panels are sign * grid + 64. */
#pragma once

#include "quant/super/super_grid.h"

struct iq2_s_block {
    uint16_t d;
    uint8_t q[32], sign[32], high[8], scale[8];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_s_block) == 82, "the size in the file");

enum { IQ2_S_OFFSET = 64, IQ2_S_MAX_CODE = 107 };

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq2_s_entry(const void *block, int i)
{
    const struct iq2_s_block *w = block;
    return quant_grid_iq2_s[w->q[i] | (w->high[i / 4] >> i % 4 * 2 & 3) << 8];
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq2_s_signs(const void *block, int s)
{
    const struct iq2_s_block *w = block;
    return quant_load32(w->sign + 4 * s);
}

static const struct super_layout iq2_s_layout = {
    .block_bytes = sizeof(struct iq2_s_block),
    .panel = {.sub_len = 16, .offset = IQ2_S_OFFSET, .max_code = IQ2_S_MAX_CODE}};

QUANT_INLINE void iq2_s_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_s_block *w = (const struct iq2_s_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 16; s++)
        p->scale[s] = (int16_t)(2 * (w->scale[s / 2] >> s % 2 * 4 & 15) + 1);
    super_grid_expand(iq2_s_entry, iq2_s_signs, IQ2_S_OFFSET, w, p->q);
}
