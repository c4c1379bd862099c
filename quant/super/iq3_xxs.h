/* quant/super/iq3_xxs.h: IQ3_XXS: super-blocks of 256 with a grid of 256 times 4 magnitudes, seven
 * sign bits per 8 elements, and 8 sub-blocks of 32 with 4-bit scales; 3.06 bits per weight.
 *
 *      byte  0     2            66                  98
 *            | d   | q[64]      | tail[8] (32-bit)  |     d: binary16, little-endian as tail
 *
 *      q[i]:           entry of elements 4i .. 4i + 3
 *      tail[s]:        bits 7j + 6 .. 7j: the signs of elements 32s + 8j .. 32s + 8j + 6; the sign
 *                      of the next element makes the number of negative elements even
 *                      bits 31 .. 28: scale of sub-block s
 *      x = d / 4 * (2 * scale + 1) * sign * quant_grid_iq3_xxs[entry]
 *
 * The codes in panels are sign * grid + 64. */
#pragma once

#include "quant/super/super_grid.h"

struct iq3_xxs_block {
    uint16_t d;
    uint8_t q[64], tail[8][4];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq3_xxs_block) == 98, "the size in the file");

enum { IQ3_XXS_OFFSET = 64, IQ3_XXS_MAX_CODE = 126 };

/* The two entries of elements 8i .. 8i + 7. */
static inline uint64_t iq3_xxs_entry(const void *block, int i)
{
    const struct iq3_xxs_block *w = block;
    return quant_grid_iq3_xxs[w->q[2 * i]] | (uint64_t)quant_grid_iq3_xxs[w->q[2 * i + 1]] << 32;
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq3_xxs_signs(const void *block, int s)
{
    const struct iq3_xxs_block *w = block;
    return super_signs7(quant_load32(w->tail[s]));
}

static const struct super_layout iq3_xxs_layout = {
    .block_bytes = sizeof(struct iq3_xxs_block),
    .panel = {.sub_len = 32, .offset = IQ3_XXS_OFFSET, .max_code = IQ3_XXS_MAX_CODE}};

QUANT_INLINE void iq3_xxs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_xxs_block *w = (const struct iq3_xxs_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.25f;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = (int16_t)(2 * (quant_load32(w->tail[s]) >> 28) + 1);
    super_grid_expand(iq3_xxs_entry, iq3_xxs_signs, IQ3_XXS_OFFSET, w, p->q);
}
