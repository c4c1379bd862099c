/* quant/super/k_scales.h: private to quant/: the 6-bit scales and minima of Q4_K and Q5_K.
 *
 * Eight scales S0..S7 and eight minima M0..M7 in twelve bytes, bits from 7 down to 0:
 *
 *     byte j     (j < 4)    | S[j+4] bits 5,4 |      S[j], 6 bits       |
 *     byte 4 + j            | M[j+4] bits 5,4 |      M[j], 6 bits       |
 *     byte 8 + j            | M[j+4] bits 3..0 (4) | S[j+4] bits 3..0 (4) |
 *
 * In both types d and dmin (binary16) are the four bytes before these. */
#pragma once

#include "quant/super/super.h"

/* Unpacks the twelve bytes to p->scale and p->min. */
QUANT_INLINE void k_scales_expand(const uint8_t packed[12], struct super_parts *p)
{
    for (int j = 0; j < 4; j++) {
        uint8_t a = packed[j], b = packed[4 + j], c = packed[8 + j];
        p->scale[j] = a & 63;
        p->min[j] = b & 63;
        p->scale[j + 4] = (int16_t)((c & 15) | (a >> 6) << 4);
        p->min[j + 4] = (int16_t)(c >> 4 | (b >> 6) << 4);
    }
}

/* The inverse of k_scales_expand. */
static inline void k_scales_pack(const int16_t scale[8], const uint8_t min[8], uint8_t packed[12])
{
    for (int j = 0; j < 4; j++) {
        packed[j] = (uint8_t)(scale[j] | (scale[j + 4] >> 4) << 6);
        packed[4 + j] = (uint8_t)(min[j] | (min[j + 4] >> 4) << 6);
        packed[8 + j] = (uint8_t)((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
    }
}
