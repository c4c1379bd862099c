/* quant/super/tq2_0.h: TQ2_0: super-blocks of 256 ternary weights, 2-bit codes with one scale; 2.06
 * bits per weight.
 *
 *      byte  0                64    66
 *            | q[64]          | d   |     d: binary16, little-endian
 *
 *      q[32h + l]:     bits 2g + 1, 2g: code of element 128h + 32g + l, l < 32, g < 4
 *      x = d * (code - 1),   code 0 .. 3 (encoders write 0 .. 2) */
#pragma once

#include "quant/super/super.h"

struct tq2_0_block {
    uint8_t q[64];
    uint16_t d;
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct tq2_0_block) == 66, "the size in the file");

enum { TQ2_0_OFFSET = 1, TQ2_0_MAX_CODE = 3 };

static const struct super_layout tq2_0_layout = {
    .block_bytes = sizeof(struct tq2_0_block),
    .panel = {.sub_len = 32, .offset = TQ2_0_OFFSET, .max_code = TQ2_0_MAX_CODE}};

QUANT_INLINE void tq2_0_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct tq2_0_block *w = (const struct tq2_0_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = 1;
    for (int i = 0; i < SUPER_LEN; i++) p->q[i] = w->q[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
}
