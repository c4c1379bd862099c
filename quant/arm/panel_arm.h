/* quant/arm/panel_arm.h: the panels and column panels of the levels for 64-bit ARM.
 *
 * SDOT and SMMLA multiply signed bytes, so codes are signed: value = d * scale * code (+ m * min),
 * without an offset. A register has 16 codes, in units of consecutive elements of a row (column):
 *
 *     unit 4, SDOT     q[k / 4][row][4]     4 rows (columns) of a register, all of a group of 4 elements
 *     unit 8, SMMLA    q[k / 8][row][8]     2 rows (columns)
 *
 * Minima and sums of q are bytes of such units, too, one for each sub-block instead of element: a
 * sum of q is 128 * high + low. With unit 8 the lanes of a result are two columns by two rows,
 *
 *     c r    c r+1    c+1 r    c+1 r+1
 *
 * so that scales of rows are stored as pairs r, r+1, r, r+1, and those of columns as c, c, c+1,
 * c+1. */
#pragma once

#include "quant/quant.h"

enum { QUANT_ARM_COLS = 8 };

/* COPIES of each number: 1 with unit 4, 2 with unit 8. */
#define QUANT_ARM_PANELS(UNIT, COPIES)                                                             \
    struct quant_arm_panel32_##UNIT { /* a block of 32 of 16 rows */                               \
        float d[COPIES * 16], m[COPIES * 16];                                                      \
        int8_t q[32 * 16];                                                                         \
    };                                                                                             \
    struct quant_arm_panel256_##UNIT { /* a super-block; scale and min: 8 or 16 in use */          \
        float d[COPIES * 16], m[COPIES * 16];                                                      \
        int32_t scale[16][COPIES * 16]; /* of each sub-block, less that of the next one */         \
        int8_t min[16 * 16], q[256 * 16];                                                          \
    };
QUANT_ARM_PANELS(4, 1)
QUANT_ARM_PANELS(8, 2)

struct quant_arm_cols32 { /* a block of 32 of 8 columns */
    int8_t q[32 * QUANT_ARM_COLS];
    float d[2 * QUANT_ARM_COLS], s[2 * QUANT_ARM_COLS]; /* with unit 4 the first halves */
};

struct quant_arm_cols256 { /* a super-block of 8 columns */
    int8_t q[256 * QUANT_ARM_COLS];
    int8_t high16[16 * QUANT_ARM_COLS], low16[16 * QUANT_ARM_COLS]; /* sums over 16 */
    int8_t high32[8 * QUANT_ARM_COLS], low32[8 * QUANT_ARM_COLS];   /* over 32 */
    float d[2 * QUANT_ARM_COLS];                                    /* with unit 4 the first half */
};
