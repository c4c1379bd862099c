/* quant/super/iq1_m.h: IQ1_M: super-blocks of 256 with the grid of IQ1_S, a shift for each 8
 * elements, and 16 sub-blocks of 16 with 3-bit scales; 1.75 bits per weight.
 *
 *      byte  0             32              48                  56
 *            | q[32]       | high[16]      | scale[4] (16-bit) |
 *
 *      q[i]:           bits 7 .. 0 of entry i, elements 8i .. 8i + 7
 *      high[i / 2]:    high nibble for odd i, low nibble for even i
 *                      bits 2 .. 0: bits 10 .. 8 of entry i
 *                      bit 3: its shift: -1 if set, otherwise +1
 *      scale[i]:       bits 3j + 2 .. 3j: scale of sub-block 4i + j, j < 4
 *                      bits 15 .. 12: bits 4i + 3 .. 4i of d (binary16)
 *      x = d / 8 * (2 * scale + 1) * (quant_grid_iq1[entry] + shift)
 *
 * Numbers are little-endian. The codes in panels are grid + shift + 16. */
#pragma once

#include "quant/super/super_grid.h"

struct iq1_m_block {
    uint8_t q[32], high[16], scale[4][2];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq1_m_block) == 56, "the size in the file");

enum { IQ1_M_OFFSET = 16, IQ1_M_MAX_CODE = 25 };

/* Nibble i of `high`. */
static inline int iq1_m_high(const struct iq1_m_block *w, int i)
{
    return w->high[i / 2] >> i % 2 * 4 & 15;
}

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq1_m_entry(const void *block, int i)
{
    const struct iq1_m_block *w = block;
    return quant_grid_iq1[w->q[i] | (iq1_m_high(w, i) & 7) << 8];
}

/* The bits of d. */
static inline uint16_t iq1_m_head(const void *block)
{
    const struct iq1_m_block *w = block;
    int d = 0;
    for (int i = 0; i < 4; i++) d |= quant_load16(w->scale[i]) >> 12 << 4 * i;
    return (uint16_t)d;
}

static const struct super_layout iq1_m_layout = {
    .block_bytes = sizeof(struct iq1_m_block),
    .panel = {.sub_len = 16, .offset = IQ1_M_OFFSET, .max_code = IQ1_M_MAX_CODE}};

QUANT_INLINE void iq1_m_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq1_m_block *w = (const struct iq1_m_block *)row + b;
    p->d = quant_f16_to_f32(iq1_m_head(w)) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 16; s++)
        p->scale[s] = (int16_t)(2 * (quant_load16(w->scale[s / 4]) >> s % 4 * 3 & 7) + 1);
    for (int i = 0; i < SUPER_LEN; i++) {
        const int shift = iq1_m_high(w, i / 8) & 8 ? -1 : 1;
        p->q[i] =
            (uint8_t)(IQ1_M_OFFSET + shift + (int8_t)(iq1_m_entry(w, i / 8) >> i % 8 * 8 & 0xff));
    }
}
