/* quant/super/iq3_s.h: IQ3_S: super-blocks of 256 with a grid of 512 times 4 magnitudes, a sign bit
 * per element, and 8 sub-blocks of 32 with 4-bit scales; 3.44 bits per weight.
 *
 *      byte  0     2            66          74           106         110
 *            | d   | q[64]      | high[8]   | sign[32]   | scale[4]  |     d: binary16
 *
 *      q[8s + j]:      bits 7 .. 0 of the entry of elements 32s + 4j .. 32s + 4j + 3, j < 8
 *      high[s]:        bit j: bit 8 of that entry
 *      sign[i / 8]:    bit i % 8: element i is negative
 *      scale[i]:       high nibble: scale of sub-block 2i + 1, low nibble: of 2i
 *      x = d * (2 * scale + 1) * sign * quant_grid_iq3_s[entry]
 *
 * The codes in panels are sign * grid + 16. */
#pragma once

#include "quant/super/super_grid.h"

struct iq3_s_block {
    uint16_t d;
    uint8_t q[64], high[8], sign[32], scale[4];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq3_s_block) == 110, "the size in the file");

enum { IQ3_S_OFFSET = 16, IQ3_S_MAX_CODE = 31 };

/* The two entries of elements 8i .. 8i + 7. */
static inline uint64_t iq3_s_entry(const void *block, int i)
{
    const struct iq3_s_block *w = block;
    const int high = w->high[i / 4] >> i % 4 * 2;
    const uint32_t first = quant_grid_iq3_s[w->q[2 * i] | (high & 1) << 8];
    const uint32_t second = quant_grid_iq3_s[w->q[2 * i + 1] | (high >> 1 & 1) << 8];
    return first | (uint64_t)second << 32;
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq3_s_signs(const void *block, int s)
{
    const struct iq3_s_block *w = block;
    return quant_load32(w->sign + 4 * s);
}

static const struct super_layout iq3_s_layout = {
    .block_bytes = sizeof(struct iq3_s_block),
    .panel = {.sub_len = 32, .offset = IQ3_S_OFFSET, .max_code = IQ3_S_MAX_CODE}};

QUANT_INLINE void iq3_s_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_s_block *w = (const struct iq3_s_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] = (int16_t)(2 * (w->scale[s / 2] >> s % 2 * 4 & 15) + 1);
    super_grid_expand(iq3_s_entry, iq3_s_signs, IQ3_S_OFFSET, w, p->q);
}
