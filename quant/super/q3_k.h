/* quant/super/q3_k.h: Q3_K: super-blocks of 256 three-bit codes, with 16 sub-blocks of 16 with
 * 6-bit scales; 3.4375 bits per weight.
 *
 *      byte  0            32           96            108   110
 *            | high[32]   | q[64]      | scale[12]   | d   |     d: binary16, little-endian
 *
 *      high[l]:        bit 4h + g: bit 2 of the code of element 128h + 32g + l, l < 32, g < 4
 *      q[32h + l]:     bits 2g + 1, 2g: bits 1 and 0 of that code
 *      scale[j]:       bits 3 .. 0 of scales j + 8 (high nibble) and j (low nibble), j < 8
 *      scale[8 + j]:   from bit 7 down: bits 5 and 4 of scales j + 12, j + 8, j + 4 and j, j < 4
 *      x = d * (scale - 32) * (code - 4),   code 0 .. 7 */
#pragma once

#include "quant/super/super.h"

struct q3_k_block {
    uint8_t high[32], q[64], scale[12];
    uint16_t d;
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q3_k_block) == 110, "the size in the file");

static const struct super_layout q3_k_layout = {
    .block_bytes = sizeof(struct q3_k_block),
    .panel = {.sub_len = 16, .offset = 4, .max_code = 7, .has_min = false}};

QUANT_INLINE void q3_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q3_k_block *w = (const struct q3_k_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 16; s++) {
        int low = w->scale[s % 8] >> s / 8 * 4 & 15, high = w->scale[8 + s % 4] >> s / 4 * 2 & 3;
        p->scale[s] = (int16_t)((low | high << 4) - 32);
    }
    for (int h = 0; h < 2; h++) {
        for (int g = 0; g < 4; g++) {
            for (int l = 0; l < 32; l++) {
                int low = w->q[32 * h + l] >> 2 * g & 3, high = w->high[l] >> (4 * h + g) & 1;
                p->q[128 * h + 32 * g + l] = (uint8_t)(low | high << 2);
            }
        }
    }
}
