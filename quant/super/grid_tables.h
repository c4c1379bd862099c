/* quant/super/grid_tables.h: private to quant/: the grids (codebooks) of the I-quants. */
#pragma once

#include <stdint.h>

extern const uint8_t quant_signs7[128]; /* bit i: element i of 8 is negative */

/* The entries of the grids. Byte i is element i: a magnitude; in IQ1 -8, 0 or 8 (int8). */
extern const uint64_t quant_grid_iq2_xxs[256], quant_grid_iq2_xs[512], quant_grid_iq2_s[1024];
extern const uint32_t quant_grid_iq3_xxs[256], quant_grid_iq3_s[512];
extern const uint64_t quant_grid_iq1[2048];

/* The entries as indices of magnitudes, the first element lowest: eight of 2 bits or four of 3 bits.
 * Aligned to 64 bytes. */
extern const uint16_t quant_numbers_iq2_xxs[256], quant_numbers_iq2_xs[512],
    quant_numbers_iq2_s[1024], quant_numbers_iq3_xxs[256], quant_numbers_iq3_s[512];
