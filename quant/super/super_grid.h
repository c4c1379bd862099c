/* quant/super/super_grid.h: private to quant/: codes of super-block types whose magnitudes are
 * entries of a grid. */
#pragma once

#include "quant/super/grid_tables.h"
#include "quant/super/super.h"

/* In a type with magnitudes from a grid: those of elements 8i .. 8i + 7, a byte each. */
typedef uint64_t super_grid_entry(const void *block, int i);

/* Bit j: element 32s + j is negative. */
typedef uint32_t super_grid_signs(const void *block, int s);

/* All codes of a super-block with signs, plus `offset`. */
QUANT_INLINE void super_grid_expand(super_grid_entry *entry, super_grid_signs *signs, int offset,
                                    const void *block, uint8_t q[SUPER_LEN])
{
    for (int i = 0; i < SUPER_LEN; i++) {
        const int magnitude = (int)(entry(block, i / 8) >> i % 8 * 8 & 0xff);
        const bool negative = signs(block, i / 32) >> i % 32 & 1;
        q[i] = (uint8_t)(offset + (negative ? -magnitude : magnitude));
    }
}

/* Expands four times seven sign bits to four bytes. */
static inline uint32_t super_signs7(uint32_t bits)
{
    return quant_signs7[bits & 127] | (uint32_t)quant_signs7[bits >> 7 & 127] << 8 |
           (uint32_t)quant_signs7[bits >> 14 & 127] << 16 |
           (uint32_t)quant_signs7[bits >> 21 & 127] << 24;
}
