/* quant/super/tq1_0.h: TQ1_0: super-blocks of 256 ternary weights, five per byte, with one
 * scale; 1.69 bits per weight.
 *
 *      byte  0             48          52    54
 *            | q[48]       | high[4]   | d   |     d: binary16, little-endian
 *
 *      element i       0 .. 159           160 .. 239           240 .. 255
 *      byte            q[i % 32]          q[32 + i % 16]       high[i % 4]
 *      digit           i / 32             (i - 160) / 16       (i - 240) / 4
 *
 *      x = d * (digit - 1)
 *
 * A byte is a fraction of 256 with five digits of base 3: digit n is (byte * 3^n modulo 256) * 3 /
 * 256, rounded down. */
#pragma once

#include "quant/super/super.h"

struct tq1_0_block {
    uint8_t q[48], high[4];
    uint16_t d;
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct tq1_0_block) == 54, "the size in the file");

enum { TQ1_0_OFFSET = 1, TQ1_0_MAX_CODE = 2 };

static const uint8_t tq1_0_powers[5] = {1, 3, 9, 27, 81};

static inline uint8_t tq1_0_digit(uint8_t byte, int n)
{
    return (uint8_t)((uint8_t)(byte * tq1_0_powers[n]) * 3 >> 8);
}

static const struct super_layout tq1_0_layout = {
    .block_bytes = sizeof(struct tq1_0_block),
    .panel = {.sub_len = 32, .offset = TQ1_0_OFFSET, .max_code = TQ1_0_MAX_CODE}};

QUANT_INLINE void tq1_0_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct tq1_0_block *w = (const struct tq1_0_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = 1;
    for (int i = 0; i < 160; i++) p->q[i] = tq1_0_digit(w->q[i % 32], i / 32);
    for (int i = 0; i < 80; i++) p->q[160 + i] = tq1_0_digit(w->q[32 + i % 16], i / 16);
    for (int i = 0; i < 16; i++) p->q[240 + i] = tq1_0_digit(w->high[i % 4], i / 4);
}
