/* quant/super/book.h: private to quant/: super-block types of ik_llama.cpp whose codes are indices
 * into a book (quant/codebook.h), iq4_k.h and others.
 *
 * A sub-block has a scale and a bit; if the bit is set, its values are those of the book plus the
 * book's `shift`:
 *
 *     x = d * scale * (value[index] + shift * bit)
 *
 * The codes in panels are these values plus `offset`. Indices are stored in planes, four bits of
 * each element or two, and for the bits above them a plane of one or two more:
 *
 *     book_nibble_16   byte 16b + l:   high nibble: element 32b + 16 + l, low: 32b + l,      l < 16
 *     book_nibble_32   byte 32b + l:   high nibble: element 64b + 32 + l, low: 64b + l,      l < 32
 *     book_pair        byte 32b + l:   bits 2g + 1, 2g: element 128b + 32g + l,       l < 32, g < 4
 *     book_bit         byte l:         bit g: element 32g + l,                        l < 32, g < 8 */
#pragma once

#include "quant/codebook.h"
#include "quant/super/super.h"

struct super_book {
    const int8_t *value;
    int shift;
};

static const struct super_book super_book_iq2 = {quant_codebook_iq2, 5};
static const struct super_book super_book_iq3 = {quant_codebook_iq3, 4};
static const struct super_book super_book_iq4 = {quant_codebook_iq4, 4};
static const struct super_book super_book_iq5 = {quant_codebook_iq5, 2};
static const struct super_book super_book_iq6 = {quant_codebook_iq6, 1};

QUANT_INLINE int book_value(const struct super_book *book, int index, int bit)
{
    return book->value[index] + book->shift * bit;
}

static inline int book_nibble_16(const uint8_t *q, int i)
{
    return q[i / 32 * 16 + i % 16] >> i / 16 % 2 * 4 & 15;
}

static inline int book_nibble_32(const uint8_t *q, int i)
{
    return q[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
}

static inline int book_pair(const uint8_t *q, int i)
{
    return q[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
}

static inline int book_bit(const uint8_t *high, int i)
{
    return high[i % 32] >> i / 32 & 1;
}

/* Nibble i of packed pairs: the low one of a byte first. */
static inline int book_nibble(const uint8_t *pairs, int i)
{
    return pairs[i / 2] >> i % 2 * 4 & 15;
}

/* Nibble i of eight in four bytes: the low ones first. */
static inline int book_nibble_of_8(const uint8_t four[4], int i)
{
    return four[i % 4] >> i / 4 * 4 & 15;
}

/* 6-bit scale s, minus 32, of IQ4_K and IQ5_K. */
static inline int16_t book_scale_6(const uint8_t low[8], const uint8_t high[4], int s)
{
    return (int16_t)((book_nibble(low, s) | (high[s / 4] >> s % 4 * 2 & 3) << 4) - 32);
}

/* Bits 7 .. 1 of a byte as a scale, minus 127, of IQ4_KS, IQ4_KSS and IQ5_KS; bit 0 is the bit. */
static inline int16_t book_scale_7(uint8_t byte)
{
    return (int16_t)((byte & 254) - 127);
}
