/* quant/super/iq1_s.h: IQ1_S: super-blocks of 256 with a grid of 2048 times 8 of -1, 0 and 1, and 8
 * sub-blocks of 32 with 3-bit scales and a common shift; 1.56 bits per weight.
 *
 *      byte  0     2             34                  50
 *            | d   | q[32]       | high[8] (16-bit)  |     d: binary16
 *
 *      q[4s + j]:      bits 7 .. 0 of the entry of elements 32s + 8j .. 32s + 8j + 7, j < 4
 *      high[s]:        bits 3j + 2 .. 3j: bits 10 .. 8 of that entry
 *                      bits 14 .. 12: scale of sub-block s
 *                      bit 15: its shift: -1 if set, otherwise +1
 *      x = d / 8 * (2 * scale + 1) * (quant_grid_iq1[entry] + shift)
 *
 * Numbers are little-endian. The format's grid has -1, 0 and 1 and a shift of 1/8; the table here
 * has 8 times these. The codes in panels are grid + shift + 16. */
#pragma once

#include "quant/super/super_grid.h"

struct iq1_s_block {
    uint16_t d;
    uint8_t q[32], high[8][2];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq1_s_block) == 50, "the size in the file");

enum { IQ1_S_OFFSET = 16, IQ1_S_MAX_CODE = 25 };

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq1_s_entry(const void *block, int i)
{
    const struct iq1_s_block *w = block;
    return quant_grid_iq1[w->q[i] | (quant_load16(w->high[i / 4]) >> i % 4 * 3 & 7) << 8];
}

static const struct super_layout iq1_s_layout = {
    .block_bytes = sizeof(struct iq1_s_block),
    .panel = {.sub_len = 32, .offset = IQ1_S_OFFSET, .max_code = IQ1_S_MAX_CODE}};

QUANT_INLINE void iq1_s_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq1_s_block *w = (const struct iq1_s_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) {
        const int high = quant_load16(w->high[s]), shift = high & 0x8000 ? -1 : 1;
        p->scale[s] = (int16_t)(2 * (high >> 12 & 7) + 1);
        for (int i = 0; i < 32; i++)
            p->q[32 * s + i] =
                (uint8_t)(IQ1_S_OFFSET + shift +
                          (int8_t)(iq1_s_entry(w, 4 * s + i / 8) >> i % 8 * 8 & 0xff));
    }
}
