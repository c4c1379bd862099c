/* quant/super/iq2_xxs.h: IQ2_XXS: super-blocks of 256 with a grid of 256 times 8 magnitudes, seven
 * sign bits per 8 elements, and 8 sub-blocks of 32 with 4-bit scales; 2.06 bits per weight.
 *
 *      byte  0     2                              66
 *            | d   | sub[8]: q[4], tail (32-bit)  |     d: binary16, little-endian as tail
 *
 *      sub[s].q[j]:    entry of elements 32s + 8j .. 32s + 8j + 7, j < 4
 *      sub[s].tail:    bits 7j + 6 .. 7j: the signs of the first seven of these elements; the
 *                      eighth makes the number of negative elements even
 *                      bits 31 .. 28: scale of sub-block s
 *      x = d / 8 * (2 * scale + 1) * sign * quant_grid_iq2_xxs[entry]
 *
 * The codes in panels are sign * grid + 64. */
#pragma once

#include "quant/super/super_grid.h"

struct iq2_xxs_block {
    uint16_t d;
    struct {
        uint8_t q[4], tail[4];
    } sub[8];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_xxs_block) == 66, "the size in the file");

enum { IQ2_XXS_OFFSET = 64, IQ2_XXS_MAX_CODE = 107 };

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq2_xxs_entry(const void *block, int i)
{
    const struct iq2_xxs_block *w = block;
    return quant_grid_iq2_xxs[w->sub[i / 4].q[i % 4]];
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq2_xxs_signs(const void *block, int s)
{
    const struct iq2_xxs_block *w = block;
    return super_signs7(quant_load32(w->sub[s].tail));
}

static const struct super_layout iq2_xxs_layout = {
    .block_bytes = sizeof(struct iq2_xxs_block),
    .panel = {.sub_len = 32, .offset = IQ2_XXS_OFFSET, .max_code = IQ2_XXS_MAX_CODE}};

QUANT_INLINE void iq2_xxs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_xxs_block *w = (const struct iq2_xxs_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] = (int16_t)(2 * (quant_load32(w->sub[s].tail) >> 28) + 1);
    super_grid_expand(iq2_xxs_entry, iq2_xxs_signs, IQ2_XXS_OFFSET, w, p->q);
}
