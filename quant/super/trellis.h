/* quant/super/trellis.h: private to quant/: super-block types of ik_llama.cpp whose values are
 * generated: IQ1_KT to IQ4_KT.
 *
 * A group of 8 (IQ4_KT: 4) values has a start, a number of 13 to 16 bits from the file plus
 * TRELLIS_FIRST, from which a linear congruential generator goes on:
 *
 *     y[-1] = start,  y[i] = y[i - 1] * TRELLIS_FACTOR mod 2^32
 *     value[i] = the sum of the four bytes of (y[i] & 0x3f3f3f3f), minus 126
 *
 * The codes in panels are these values plus 128. A row has one d, binary32, before its blocks. */
#pragma once

#include "quant/super/book.h"

#define TRELLIS_FACTOR 0xcbac1fedu
enum { TRELLIS_FIRST = 4096, TRELLIS_OFFSET = 128, TRELLIS_MAX_CODE = 254 };

/* The codes of a group of n. */
QUANT_INLINE void trellis_codes(uint32_t start, int n, uint8_t *code)
{
    for (int i = 0; i < n; i++) {
        start *= TRELLIS_FACTOR;
        const uint32_t six = start & 0x3f3f3f3f;
        code[i] = (uint8_t)((six & 255) + (six >> 8 & 255) + (six >> 16 & 255) + (six >> 24) - 126 +
                            TRELLIS_OFFSET);
    }
}

/* Bits 11 .. 8 of the number of group i of 2n: the low nibbles of n bytes, then the high ones. */
QUANT_INLINE uint32_t trellis_nibble(const uint8_t *high, int n, int i)
{
    return (uint32_t)(high[i % n] >> i / n * 4 & 15) << 8;
}
