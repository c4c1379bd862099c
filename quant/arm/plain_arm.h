/* quant/arm/plain_arm.h: private to quant/: panels of types without functions for 64-bit ARM: the
 * scalar panel, whose codes and scales are moved to the level's form. None of them has minima. */
#pragma once

#include "quant/arm/dot_arm.h"

/* Moves n codes of 16 rows, less the offset, to units. */
static inline void plain_arm_codes(int n, int offset, const uint8_t (*q)[QUANT_PANEL_ROWS][4],
                                   int8_t *to)
{
    for (int i = 0; i < n; i++)
        for (int r = 0; r < QUANT_PANEL_ROWS; r++)
            to[(i / ARM_UNIT * QUANT_PANEL_ROWS + r) * ARM_UNIT + i % ARM_UNIT] =
                (int8_t)(q[i / 4][r][i % 4] - offset);
}

static inline void plain_arm_d(const float d[QUANT_PANEL_ROWS], float *to, float *m)
{
    for (int r = 0; r < QUANT_PANEL_ROWS; r += 4) arm_floats_store(vld1q_f32(d + r), r, to);
    memset(m, 0, ARM_COPIES * QUANT_PANEL_ROWS * sizeof *m);
}

static inline void plain_arm_unpack32(const struct quant_type *type, int64_t first,
                                      int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                      void *panel)
{
    arm_panel32 *to = panel;
    for (int64_t b = 0; b < n_blocks; b++, to++) {
        _Alignas(64) struct quant_panel32 p;
        type->scalar.unpack(first + b, 1, row, &p);
        plain_arm_d(p.d, to->d, to->m);
        plain_arm_codes(32, type->scalar.panel->offset, p.q, to->q);
    }
}

static inline void plain_arm_unpack256(const struct quant_type *type, int64_t first,
                                       int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                       void *panel)
{
    const int n_subs = 256 / type->scalar.panel->sub_len;
    arm_panel256 *to = panel;
    for (int64_t b = 0; b < n_blocks; b++, to++) {
        _Alignas(64) struct quant_panel256 p;
        type->scalar.unpack(first + b, 1, row, &p);
        plain_arm_d(p.d, to->d, to->m);
        plain_arm_codes(256, type->scalar.panel->offset, p.q, to->q);
        for (int s = 0; s < n_subs; s++)
            for (int r = 0; r < QUANT_PANEL_ROWS; r += 4) {
                int32_t less_next[4];
                for (int i = 0; i < 4; i++)
                    less_next[i] = p.scale[s / 2][r + i][s % 2] -
                                   (s + 1 < n_subs ? p.scale[(s + 1) / 2][r + i][(s + 1) % 2] : 0);
                arm_numbers_store(vld1q_s32(less_next), r, to->scale[s]);
            }
    }
}
