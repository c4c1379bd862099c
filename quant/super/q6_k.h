/* quant/super/q6_k.h: Q6_K: super-blocks of 256 six-bit codes, with 16 sub-blocks of 16 with signed
 * 8-bit scales; 6.5625 bits per weight.
 *
 *      byte  0             128          192           208   210
 *            | low[128]    | high[64]   | scale[16]   | d   |     d: binary16, little-endian
 *
 *      low[64h + l]:   high nibble: bits 3 .. 0 of element 128h + 64 + l, low nibble: of 128h + l,
 *                      l < 64
 *      high[32h + l]:  bits 2g + 1, 2g: bits 5 and 4 of element 128h + 32g + l, l < 32, g < 4
 *      x = d * scale * (code - 32),   code 0 .. 63 */
#pragma once

#include "quant/super/super.h"

struct q6_k_block {
    uint8_t low[128], high[64];
    int8_t scale[16];
    uint16_t d;
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q6_k_block) == 210, "the size in the file");

static const struct super_layout q6_k_layout = {
    .block_bytes = sizeof(struct q6_k_block),
    .panel = {.sub_len = 16, .offset = 32, .max_code = 63, .has_min = false}};

QUANT_INLINE void q6_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q6_k_block *w = (const struct q6_k_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 16; s++) p->scale[s] = w->scale[s];
    for (int h = 0; h < 2; h++) {
        for (int g = 0; g < 4; g++) {
            for (int l = 0; l < 32; l++) {
                int low = w->low[64 * h + g % 2 * 32 + l] >> g / 2 * 4 & 15;
                int high = w->high[32 * h + l] >> 2 * g & 3;
                p->q[128 * h + 32 * g + l] = (uint8_t)(low | high << 4);
            }
        }
    }
}
