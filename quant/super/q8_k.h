/* quant/super/q8_k.h: Q8_K: super-blocks of 256 signed bytes with a float scale and sums of 16;
 * 9.125 bits per weight.
 *
 *      byte  0     4                      260                 292
 *            | d   | q[256]               | sum[16] (int16)   |     d: binary32
 *
 *      sum[i]:         the sum of q[16i] .. q[16i + 15]; no kernel reads it
 *      x = d * q[i]
 *
 * An intermediate form of other programs, rare in files, so there are only scalar kernels. The
 * codes in panels are q[i] + 128. */
#pragma once

#include "quant/super/super.h"

struct q8_k_block {
    float d;
    int8_t q[256];
    int16_t sum[16];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q8_k_block) == 292, "the size in the file");

static const struct super_layout q8_k_layout = {
    .block_bytes = sizeof(struct q8_k_block),
    .panel = {.sub_len = 32, .offset = 128, .max_code = 255}};

QUANT_INLINE void q8_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q8_k_block *w = (const struct q8_k_block *)row + b;
    p->d = w->d;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = 1;
    for (int i = 0; i < SUPER_LEN; i++) p->q[i] = (uint8_t)(w->q[i] + 128);
}
