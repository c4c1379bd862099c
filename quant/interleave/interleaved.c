/* quant/interleave/interleaved.c: types of ik_llama.cpp that no kernel reads, most of them because
 * rows are stored in groups of 4, 8 or 16 ("repacked"): a row of a group becomes a row of the type
 * that is not interleaved, with the same fields in other places (quant_row_separate). Others, some
 * of them with groups of one row, become rows of a type that has all of their values: the ternary
 * IQ1_BN becomes Q2_0, IQ2_BN and Q8_KV, with one binary32 scale for a row, become Q8_K. Rows
 * become F32 if no type has their values: all of IQ1_M_R4, and those whose length the super-blocks
 * do not divide.
 *
 * The blocks of a group's rows are interleaved, each group of blocks as long as they are together;
 * before them are the headers of the rows, if the type has them; a plain type without headers has
 * these bytes at the beginning of each block. Fields, for row r of R; column c of each 32 elements:
 *
 *     d               of row r at 2r
 *     four (64 bytes) index of column c: in byte 16(c / 16) + 32(c % 8 / 4) + 4r + c % 4, the low
 *                     nibble if c % 16 < 8
 *     two (32 bytes)  byte 16(c / 16) + 4r + c % 4, bits 2m + 1 and 2m with m = c % 16 / 4
 *     scales          number n = 8k + 4h + r, of half h of 32-block k (or 8k + r of a whole one): low
 *                     bits in nibbles (quant_nibble), high ones in pairs of bits */
#include "quant/block32/iq4_nl.h"
#include "quant/block32/mxfp4.h"
#include "quant/block32/q2_0.h"
#include "quant/block32/q4_0.h"
#include "quant/block32/q5_0.h"
#include "quant/block32/q6_0.h"
#include "quant/block32/q8_0.h"
#include "quant/super/iq1_s.h"
#include "quant/super/iq2_k.h"
#include "quant/super/iq2_s.h"
#include "quant/super/iq2_xs.h"
#include "quant/super/iq2_xxs.h"
#include "quant/super/iq3_k.h"
#include "quant/super/iq3_s.h"
#include "quant/super/iq3_xxs.h"
#include "quant/super/iq4_k.h"
#include "quant/super/iq4_ks.h"
#include "quant/super/iq4_xs.h"
#include "quant/super/iq5_k.h"
#include "quant/super/iq5_ks.h"
#include "quant/super/q2_k.h"
#include "quant/super/q3_k.h"
#include "quant/super/q4_k.h"
#include "quant/super/q5_k.h"
#include "quant/super/q6_k.h"
#include "quant/super/q8_k.h"

/* ---- Fields of groups ---- */

/* The byte of column c of row r in a field with 16 bytes for each half. */
static int byte_of(int r, int c)
{
    return c / 16 * 16 + 4 * r + c % 4;
}

static int four(const uint8_t *q, int r, int c)
{
    return q[byte_of(r, c) + c % 8 / 4 * 32] >> c % 16 / 8 * 4 & 15;
}

static int two(const uint8_t *q, int r, int c)
{
    return q[byte_of(r, c)] >> c % 16 / 4 * 2 & 3;
}

/* Bit 2l + high of byte 4r + c % 4, with the l of `four`'s byte. */
static int fifth(const uint8_t *high, int r, int c)
{
    return high[4 * r + c % 4] >> (c % 8 / 4 * 4 + c / 16 * 2 + c % 16 / 8) & 1;
}

/* Nibble n of m bytes, first the low ones; bits 5 and 4 of n from m bytes, first the lowest. */
static int nibble_of(const uint8_t *at, int m, int n)
{
    return at[n % m] >> n / m * 4 & 15;
}

static int high_of(const uint8_t *at, int m, int n)
{
    return (at[n % m] >> n / m * 2 & 3) << 4;
}

/* ---- Fields of rows ---- */

/* A group's fields before the codes of the types with 16 scales. */
struct head {
    uint16_t d[4];
    uint8_t bits[8]; /* [4h + r]: bit k belongs to half h of 32-block k */
};

static uint16_t bits_of(const uint8_t bits[8], int r)
{
    unsigned all = 0;
    for (int s = 0; s < 16; s++) all |= (bits[s % 2 * 4 + r] >> s / 2 & 1u) << s;
    return (uint16_t)all;
}

/* The scale of 16 elements s of row r. */
static int number(int s, int r)
{
    return s / 2 * 8 + s % 2 * 4 + r;
}

static void put_nibble(uint8_t *pairs, int i, int value)
{
    pairs[i / 2] |= (uint8_t)(value << i % 2 * 4);
}

static void put_nibbles_16(const uint8_t *q, int r, uint8_t to[128])
{
    for (int i = 0; i < SUPER_LEN; i++)
        to[i / 32 * 16 + i % 16] |= (uint8_t)(four(q + i / 32 * 64, r, i % 32) << i / 16 % 2 * 4);
}

static void put_nibbles_32(const uint8_t *q, int r, uint8_t to[128])
{
    for (int i = 0; i < SUPER_LEN; i++)
        to[i / 64 * 32 + i % 32] |= (uint8_t)(four(q + i / 32 * 64, r, i % 32) << i / 32 % 2 * 4);
}

static void put_pairs(const uint8_t *q, int r, uint8_t to[64])
{
    for (int i = 0; i < SUPER_LEN; i++)
        to[i / 128 * 32 + i % 32] |= (uint8_t)(two(q + i / 32 * 32, r, i % 32) << i / 32 % 4 * 2);
}

static void put_fifths(const uint8_t *high, int r, uint8_t to[32])
{
    for (int i = 0; i < SUPER_LEN; i++)
        to[i % 32] |= (uint8_t)(fifth(high + i / 32 * 16, r, i % 32) << i / 32);
}

/* The third bits of IQ3_K and Q3_K. */
static void put_thirds(const uint8_t *high, int r, uint8_t to[32])
{
    for (int i = 0; i < SUPER_LEN; i++) {
        const int c = i % 32, bits = high[i / 32 * 16 + 4 * r + c % 4];
        to[c] |= (uint8_t)((bits >> c / 4 & 1) << i / 32);
    }
}

/* The 6-bit scales of IQ4_K and IQ5_K. */
static void put_scales(const uint8_t *high, const uint8_t *low, int r, uint8_t to_high[4],
                       uint8_t to_low[8])
{
    for (int s = 0; s < 16; s++) {
        put_nibble(to_low, s, nibble_of(low, 32, number(s, r)));
        to_high[s / 4] |= (uint8_t)(high_of(high, 16, number(s, r)) >> 4 << s % 4 * 2);
    }
}

/* ---- Types ---- */

/* The head of NAME_separate, which copies row r of a group to a block; its body follows. `from`:
 * the group, with these fields. */
#define SEPARATE(NAME, ...)                                                                        \
    struct NAME##_group {                                                                          \
        __VA_ARGS__                                                                                \
    };                                                                                             \
    static void NAME##_fields(const struct NAME##_group *from, int r, struct NAME##_block *to);    \
    static void NAME##_separate(const uint8_t *group, int r, void *block)                          \
    {                                                                                              \
        NAME##_fields((const void *)group, r, block);                                              \
    }                                                                                              \
    static void NAME##_fields(const struct NAME##_group *from, int r, struct NAME##_block *to)

SEPARATE(iq2_k, struct head head; uint8_t scale[32], q[256];)
{
    to->d = from->head.d[r];
    to->bits = bits_of(from->head.bits, r);
    for (int s = 0; s < 16; s++) put_nibble(to->scale, s, nibble_of(from->scale, 32, number(s, r)));
    put_pairs(from->q, r, to->q);
}

SEPARATE(iq3_k, struct head head; uint8_t sign[8], scale[32], q[256], high[128];)
{
    to->d = from->head.d[r];
    to->bits = bits_of(from->head.bits, r);
    for (int s = 0; s < 16; s++) {
        const int n = number(s, r);
        put_nibble(to->scale, s, nibble_of(from->scale, 32, n));
        to->sign |= (uint16_t)((from->sign[n % 8] >> n / 8 & 1) << s);
    }
    put_pairs(from->q, r, to->q);
    put_thirds(from->high, r, to->high);
}

SEPARATE(iq4_k, struct head head; uint8_t scale_high[16], scale_low[32], q[512];)
{
    to->d = from->head.d[r];
    to->bits = bits_of(from->head.bits, r);
    put_scales(from->scale_high, from->scale_low, r, to->scale_high, to->scale_low);
    put_nibbles_16(from->q, r, to->q);
}

SEPARATE(iq5_k, struct head head; uint8_t scale_high[16], scale_low[32], q[512], high[128];)
{
    to->d = from->head.d[r];
    to->bits = bits_of(from->head.bits, r);
    put_scales(from->scale_high, from->scale_low, r, to->scale_high, to->scale_low);
    put_nibbles_32(from->q, r, to->q);
    put_fifths(from->high, r, to->high);
}

static void iq4_ks_separate(const uint8_t *group, int r, void *block)
{
    struct iq4_ks_block *to = block;
    for (int s = 0; s < 8; s++) to->scale[s] = group[4 * s + r];
    put_nibbles_16(group + 32, r, to->q);
}

static void iq5_ks_separate(const uint8_t *group, int r, void *block)
{
    struct iq5_ks_block *to = block;
    for (int s = 0; s < 8; s++) to->scale[s] = group[4 * s + r];
    put_nibbles_32(group + 32, r, to->q);
    put_fifths(group + 32 + 512, r, to->high);
}

/* Low nibbles of 8 columns at a time, of which 4 are in the high nibbles. */
SEPARATE(iq4_xs, uint16_t d[8]; uint8_t scale_high[16], scale_low[32], q[1024];)
{
    to->d = from->d[r];
    for (int s = 0; s < 8; s++) {
        const int n = 8 * s + r;
        put_nibble(to->scale_low, s, nibble_of(from->scale_low, 32, n));
        to->scale_high |= (uint16_t)(high_of(from->scale_high, 16, n) >> 4 << 2 * s);
    }
    for (int i = 0; i < SUPER_LEN; i++) {
        const int c = i % 32, q = from->q[i / 32 * 128 + c / 8 * 32 + 4 * r + c % 4];
        to->q[i / 32 * 16 + i % 16] |= (uint8_t)((q >> c % 8 / 4 * 4 & 15) << c / 16 * 4);
    }
}

/* The codes of 32 columns in `four`, as nibbles of a block. */
static void put_block(const uint8_t *q, int r, uint8_t to[16])
{
    uint8_t code[32];
    for (int c = 0; c < 32; c++) code[c] = (uint8_t)four(q, r, c);
    quant_join_nibbles(code, to);
}

static void iq4_nl_separate(const uint8_t *group, int r, void *block)
{
    struct iq4_nl_block *to = block;
    to->d = quant_load16(group + 2 * r);
    put_block(group + 8, r, to->qs);
}

static void q5_0_separate(const uint8_t *group, int r, void *block)
{
    struct q5_0_block *to = block;
    uint8_t code[32];
    to->d = quant_load16(group + 2 * r);
    put_block(group + 24, r, to->qs);
    for (int c = 0; c < 32; c++) /* bit l, or 4 + l of high nibbles, with the l of `four`'s byte */
        code[c] = (uint8_t)(group[8 + 4 * r + c % 4] >>
                                (c % 16 / 8 * 4 + c % 8 / 4 * 2 + c / 16) % 8 << 4 &
                            16);
    quant_put_fifth_bits(code, to->qh);
}

static void q6_0_separate(const uint8_t *group, int r, void *block)
{
    struct q6_0_block *to = block;
    uint8_t code[32];
    to->d = quant_load16(group + 2 * r);
    put_block(group + 40, r, to->qs);
    for (int c = 0; c < 32; c++)
        code[c] =
            (uint8_t)((group[8 + byte_of(r, c)] >> (c % 8 / 4 * 2 + c % 16 / 8 * 4) & 3) << 4);
    quant_put_top_bits(code, to->qh);
}

static void q4_0_separate(const uint8_t *group, int r, void *block)
{
    struct q4_0_block *to = block;
    to->d = quant_load16(group + 2 * r);
    for (int l = 0; l < 16; l += 4) memcpy(to->qs + l, group + 16 + 8 * l + 4 * r, 4);
}

static void q8_0_separate(const uint8_t *group, int r, void *block)
{
    struct q8_0_block *to = block;
    to->d = quant_load16(group + 2 * r);
    for (int c = 0; c < 32; c += 4) memcpy(to->qs + c, group + 16 + 8 * c + 4 * r, 4);
}

/* Two columns at a time. */
static void bf16_separate(const uint8_t *group, int r, void *block)
{
    memcpy(block, group + 4 * r, 4);
}

static void mxfp4_separate(const uint8_t *group, int r, void *block)
{
    struct mxfp4_block *to = block;
    to->e = group[r];
    for (int l = 0; l < 16; l += 4) memcpy(to->qs + l, group + 8 + 8 * l + 4 * r, 4);
}

/* ---- K types ---- */

SEPARATE(q2_k, uint16_t d[4], dmin[4]; uint8_t scale[64], q[256];)
{
    to->d = from->d[r];
    to->dmin = from->dmin[r];
    for (int s = 0; s < 16; s++) to->scale[s] = from->scale[number(s, r)];
    put_pairs(from->q, r, to->q);
}

SEPARATE(q3_k, uint16_t d[4]; uint8_t scale_high[16], scale_low[32], high[128], q[256];)
{
    to->d = from->d[r];
    for (int s = 0; s < 16; s++) {
        const int n = number(s, r);
        to->scale[s % 8] |= (uint8_t)(nibble_of(from->scale_low, 32, n) << s / 8 * 4);
        to->scale[8 + s % 4] |= (uint8_t)(high_of(from->scale_high, 16, n) >> 4 << s / 4 * 2);
    }
    put_pairs(from->q, r, to->q);
    put_thirds(from->high, r, to->high);
}

/* The first fields of a group of Q4_K or Q5_K. Scale n = 4k + r of 32-block k has the low nibble of
 * byte n of `low`, its minimum the high one; both have two bits of a nibble of `high`. */
struct k_head {
    uint16_t d[4], dmin[4];
    uint8_t high[16], low[32];
};

static void put_k_scales(const struct k_head *from, int r, uint8_t to[12])
{
    int16_t scale[8];
    uint8_t min[8];
    for (int k = 0; k < 8; k++) {
        const int n = 4 * k + r, high = nibble_of(from->high, 16, n);
        scale[k] = (int16_t)((from->low[n] & 15) | (high & 3) << 4);
        min[k] = (uint8_t)(from->low[n] >> 4 | high >> 2 << 4);
    }
    k_scales_pack(scale, min, to);
}

SEPARATE(q4_k, struct k_head head; uint8_t q[512];)
{
    to->d = from->head.d[r];
    to->dmin = from->head.dmin[r];
    put_k_scales(&from->head, r, to->scale);
    put_nibbles_32(from->q, r, to->q);
}

SEPARATE(q5_k, struct k_head head; uint8_t high[128], q[512];)
{
    to->d = from->head.d[r];
    to->dmin = from->head.dmin[r];
    put_k_scales(&from->head, r, to->scale);
    put_nibbles_32(from->q, r, to->q);
    for (int i = 0; i < SUPER_LEN; i++) { /* bit c / 16, c % 8 / 4, c % 16 / 8 as a number */
        const int c = i % 32, bits = from->high[i / 32 * 16 + 4 * r + c % 4];
        const int bit = c / 16 * 4 + c % 8 / 4 * 2 + c % 16 / 8;
        to->high[c] |= (uint8_t)((bits >> bit & 1) << i / 32);
    }
}

SEPARATE(q6_k, uint16_t d[4]; int8_t scale[64]; uint8_t high[256], low[512];)
{
    to->d = from->d[r];
    for (int s = 0; s < 16; s++) to->scale[s] = from->scale[number(s, r)];
    for (int i = 0; i < SUPER_LEN; i++) {
        const int c = i % 32, shift = c % 8 / 4 * 4 + c % 16 / 8 * 2;
        const int high = from->high[i / 32 * 32 + byte_of(r, c)] >> shift & 3;
        to->low[i / 128 * 64 + i % 64] |=
            (uint8_t)(four(from->low + i / 32 * 64, r, c) << i / 64 % 2 * 4);
        to->high[i / 128 * 32 + i % 32] |= (uint8_t)(high << i / 32 % 4 * 2);
    }
}

/* ---- Types with grids ---- */

/* The seven sign bits that a file has, of the eight s ^ s << 1: an even number of which is set. */
static uint32_t signs_of(uint32_t s)
{
    return (s ^ s << 1) & 127;
}

/* Four bytes, each seven bits of signs and, lowest, a bit of the scale. */
static void put_tail(const uint8_t *at, uint8_t to[4])
{
    uint32_t tail = 0;
    for (int j = 0; j < 4; j++)
        tail |= signs_of(at[j] >> 1) << 7 * j | (uint32_t)(at[j] & 1) << (28 + j);
    memcpy(to, &tail, sizeof tail);
}

SEPARATE(iq2_xxs, uint16_t d[4]; uint8_t tail[8][4][4], q[8][4][4];)
{
    to->d = from->d[r];
    for (int k = 0; k < 8; k++) {
        memcpy(to->sub[k].q, from->q[k][r], 4);
        put_tail(from->tail[k][r], to->sub[k].tail);
    }
}

SEPARATE(iq2_xs, uint16_t d[4], q[8][4][4]; uint8_t scale[8][4];)
{
    to->d = from->d[r];
    for (int i = 0; i < 32; i++) {
        const uint16_t q = from->q[i / 4][r][i % 4];
        const uint16_t entry = (uint16_t)((q & 511) | signs_of(q >> 9) << 9);
        memcpy(to->q[i], &entry, sizeof entry);
    }
    for (int k = 0; k < 8; k++) to->scale[k] = from->scale[k][r];
}

SEPARATE(iq2_s, uint16_t d[4]; uint8_t q[8][4][4], high[8][4], sign[8][4][4], scale[8][4];)
{
    to->d = from->d[r];
    for (int k = 0; k < 8; k++) {
        memcpy(to->q + 4 * k, from->q[k][r], 4);
        memcpy(to->sign + 4 * k, from->sign[k][r], 4);
        to->high[k] = from->high[k][r];
        to->scale[k] = from->scale[k][r];
    }
}

SEPARATE(iq3_xxs, uint16_t d[4]; uint8_t tail[8][4][4], q[8][4][8];)
{
    to->d = from->d[r];
    for (int k = 0; k < 8; k++) {
        memcpy(to->q + 8 * k, from->q[k][r], 8);
        put_tail(from->tail[k][r], to->tail[k]);
    }
}

SEPARATE(iq3_s, uint16_t d[4]; uint8_t q[8][8][4], high[8][4], sign[8][4][4], scale[16];)
{
    to->d = from->d[r];
    for (int k = 0; k < 8; k++) {
        to->high[k] = from->high[k][r];
        put_nibble(to->scale, k, nibble_of(from->scale, 16, 4 * k + r));
        for (int i = 0; i < 8; i++) to->q[8 * k + i] = from->q[k][i % 4 * 2 + i / 4][r];
        for (int c = 0; c < 32; c++) /* bit c / 4 of byte c % 4 */
            to->sign[4 * k + c / 8] |= (uint8_t)((from->sign[k][r][c % 4] >> c / 4 & 1) << c % 8);
    }
}

/* Blocks of 32; d, which all blocks of a row share, is in its header. */
SEPARATE(iq1_s, uint8_t q[4][4], high[4][2];)
{
    for (int k = 0; k < 8; k++) {
        for (int i = 0; i < 4; i++) to->q[4 * k + i] = from[k].q[i][r];
        memcpy(to->high[k], from[k].high[r], 2);
    }
}

/* ---- Ternary types, and bytes with one scale for a row or for 256 elements ---- */

/* A byte has five digits of base 3, as the fraction byte / 256: digit n is the integer part after
 * n + 1 multiplications by 3. The sixteenth digit of part i of a block is digit i of byte 12. */
static int digit_of(uint8_t byte, int n)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    return (uint8_t)(byte * power[n]) * 3 >> 8;
}

static void iq1_bn_separate(const uint8_t *group, int r, void *block)
{
    uint8_t *to = (uint8_t *)block + 2; /* of Q2_0, after d */
    (void)r;
    for (int i = 0; i < Q2_0_LEN; i++) {
        const int n = i % 16, part = i / 16;
        const int code =
            n < 15 ? digit_of(group[3 * part + n / 5], 4 - n % 5) : digit_of(group[12], 4 - part);
        to[i / 4] |= (uint8_t)(code << i % 4 * 2);
    }
}

static void put_sums(struct q8_k_block *to)
{
    for (int i = 0; i < SUPER_LEN; i++) to->sum[i / 16] = (int16_t)(to->sum[i / 16] + to->q[i]);
}

static void iq2_bn_separate(const uint8_t *group, int r, void *block)
{
    struct q8_k_block *to = block;
    (void)r;
    for (int i = 0; i < SUPER_LEN; i++)
        to->q[i] = (int8_t)((group[i / 64 * 16 + i % 16] >> i % 64 / 16 * 2 & 3) - 1);
    put_sums(to);
}

static void iq2_bn_r4_separate(const uint8_t *group, int r, void *block)
{
    struct q8_k_block *to = block;
    for (int i = 0; i < SUPER_LEN; i++)
        to->q[i] = (int8_t)((group[i / 16 * 16 + 4 * r + i % 4] >> i % 16 / 4 * 2 & 3) - 1);
    put_sums(to);
}

static void q8_kv_separate(const uint8_t *group, int r, void *block)
{
    struct q8_k_block *to = block;
    (void)r;
    memcpy(to->q, group, sizeof to->q);
    put_sums(to);
}

/* Four columns of each of n rows at a time. */
static void put_fours(const uint8_t *q, int n, int r, int len, int8_t *to)
{
    for (int c = 0; c < len; c += 4) memcpy(to + c, q + n * c + 4 * r, 4);
}

static void q8_kv_r8_separate(const uint8_t *group, int r, void *block)
{
    struct q8_k_block *to = block;
    put_fours(group, 8, r, SUPER_LEN, to->q);
    put_sums(to);
}

/* d is that of 256 elements, the block one of Q8_0; the bytes are moved by `offset`. */
static void q8_k_separate(const uint8_t *group, int n, int r, uint8_t offset, void *block)
{
    struct q8_0_block *to = block;
    for (int b = 0; b < SUPER_LEN / 32; b++) {
        to[b].d = quant_load16(group + 2 * r);
        put_fours(group + 2 * n + 32 * n * b, n, r, 32, to[b].qs);
        for (int i = 0; i < 32; i++) to[b].qs[i] = (int8_t)(to[b].qs[i] ^ offset);
    }
}

static void q8_k_r8_separate(const uint8_t *group, int r, void *block)
{
    q8_k_separate(group, 8, r, 0, block);
}

static void q8_k_r16_separate(const uint8_t *group, int r, void *block)
{
    q8_k_separate(group, 16, r, 128, block);
}

/* ---- Floats: the values without the scale in the header of the row, which are exact ---- */

static void iq1_entry_floats(int entry, bool negative, int scale, float to[8])
{
    const uint64_t values = quant_grid_iq1[entry]; /* and a shift, as numbers of 1/8 */
    for (int i = 0; i < 8; i++)
        to[i] = (float)(((int8_t)(values >> 8 * i & 0xff) + (negative ? -1 : 1)) * scale) * 0.125f;
}

static void iq1_s_floats(const uint8_t *group, int r, void *row)
{
    const unsigned high = quant_load16(group + 16 + 2 * r);
    for (int i = 0; i < 4; i++)
        iq1_entry_floats(group[4 * i + r] | (int)(high >> 3 * i & 7) << 8, high >> 15,
                         (int)(2 * (high >> 12 & 7) + 1), (float *)row + 8 * i);
}

/* q[16], four nibbles of high[2][4] for each row (three bits of an entry and its sign), scale[4]:
 * the low nibble is that of the first 16 elements. */
static void iq1_m_floats(const uint8_t *group, int r, void *row)
{
    for (int i = 0; i < 4; i++) {
        const int high = group[16 + i / 2 * 4 + r] >> i % 2 * 4;
        iq1_entry_floats(group[4 * i + r] | (high & 7) << 8, high & 8,
                         group[24 + r] >> i / 2 * 4 & 15, (float *)row + 8 * i);
    }
}

static void iq2_bn_floats(const uint8_t *group, int r, void *row)
{
    float *to = row;
    (void)r;
    for (int i = 0; i < 64; i++) to[i] = (float)((group[i % 16] >> i / 16 * 2 & 3) - 1);
}

static void iq2_bn_r4_floats(const uint8_t *group, int r, void *row)
{
    float *to = row;
    for (int i = 0; i < 64; i++)
        to[i] = (float)((group[i / 16 * 16 + 4 * r + i % 4] >> i % 16 / 4 * 2 & 3) - 1);
}

static void q8_kv_floats(const uint8_t *group, int r, void *row)
{
    float *to = row;
    (void)r;
    for (int i = 0; i < 32; i++) to[i] = (float)(int8_t)group[i];
}

static void q8_kv_r8_floats(const uint8_t *group, int r, void *row)
{
    float *to = row;
    for (int i = 0; i < 32; i++) to[i] = (float)(int8_t)group[i / 4 * 32 + 4 * r + i % 4];
}

/* Of several rows with one type the first one whose block divides the elements of a row is used. */
static const struct {
    enum quant_id id, plain;
    int64_t len; /* elements of a block of `separate` */
    void (*separate)(const uint8_t *group, int r, void *block);
} types[] = {
    {QUANT_IQ2_K_R4, QUANT_IQ2_K, 256, iq2_k_separate},
    {QUANT_IQ3_K_R4, QUANT_IQ3_K, 256, iq3_k_separate},
    {QUANT_IQ4_K_R4, QUANT_IQ4_K, 256, iq4_k_separate},
    {QUANT_IQ5_K_R4, QUANT_IQ5_K, 256, iq5_k_separate},
    {QUANT_IQ4_KS_R4, QUANT_IQ4_KS, 256, iq4_ks_separate},
    {QUANT_IQ5_KS_R4, QUANT_IQ5_KS, 256, iq5_ks_separate},
    {QUANT_IQ4_XS_R8, QUANT_IQ4_XS, 256, iq4_xs_separate},
    {QUANT_IQ4_NL_R4, QUANT_IQ4_NL, 32, iq4_nl_separate},
    {QUANT_Q4_0_R8, QUANT_Q4_0, 32, q4_0_separate},
    {QUANT_Q5_0_R4, QUANT_Q5_0, 32, q5_0_separate},
    {QUANT_Q6_0_R4, QUANT_Q6_0, 32, q6_0_separate},
    {QUANT_Q8_0_R8, QUANT_Q8_0, 32, q8_0_separate},
    {QUANT_BF16_R16, QUANT_BF16, 2, bf16_separate},
    {QUANT_MXFP4_R8, QUANT_MXFP4, 32, mxfp4_separate},
    {QUANT_Q2_K_R4, QUANT_Q2_K, 256, q2_k_separate},
    {QUANT_Q3_K_R4, QUANT_Q3_K, 256, q3_k_separate},
    {QUANT_Q4_K_R4, QUANT_Q4_K, 256, q4_k_separate},
    {QUANT_Q5_K_R4, QUANT_Q5_K, 256, q5_k_separate},
    {QUANT_Q6_K_R4, QUANT_Q6_K, 256, q6_k_separate},
    {QUANT_IQ2_XXS_R4, QUANT_IQ2_XXS, 256, iq2_xxs_separate},
    {QUANT_IQ2_XS_R4, QUANT_IQ2_XS, 256, iq2_xs_separate},
    {QUANT_IQ2_S_R4, QUANT_IQ2_S, 256, iq2_s_separate},
    {QUANT_IQ3_XXS_R4, QUANT_IQ3_XXS, 256, iq3_xxs_separate},
    {QUANT_IQ3_S_R4, QUANT_IQ3_S, 256, iq3_s_separate},
    {QUANT_IQ1_S_R4, QUANT_IQ1_S, 256, iq1_s_separate},
    {QUANT_IQ1_BN, QUANT_Q2_0, 64, iq1_bn_separate},
    {QUANT_IQ2_BN, QUANT_Q8_K, 256, iq2_bn_separate},
    {QUANT_IQ2_BN_R4, QUANT_Q8_K, 256, iq2_bn_r4_separate},
    {QUANT_Q8_KV, QUANT_Q8_K, 256, q8_kv_separate},
    {QUANT_Q8_KV_R8, QUANT_Q8_K, 256, q8_kv_r8_separate},
    {QUANT_Q8_K_R8, QUANT_Q8_0, 256, q8_k_r8_separate},
    {QUANT_Q8_K_R16, QUANT_Q8_0, 256, q8_k_r16_separate},
    {QUANT_IQ1_S_R4, QUANT_F32, 32, iq1_s_floats},
    {QUANT_IQ1_M_R4, QUANT_F32, 32, iq1_m_floats},
    {QUANT_IQ2_BN, QUANT_F32, 64, iq2_bn_floats},
    {QUANT_IQ2_BN_R4, QUANT_F32, 64, iq2_bn_r4_floats},
    {QUANT_Q8_KV, QUANT_F32, 32, q8_kv_floats},
    {QUANT_Q8_KV_R8, QUANT_F32, 32, q8_kv_r8_floats},
};
enum { N_TYPES = sizeof types / sizeof *types };

const struct quant_type *quant_type_plain(const struct quant_type *type, uint64_t k)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].id == type->id && k % quant_type_by_id(types[i].plain)->block_len == 0)
            return quant_type_by_id(types[i].plain);
    return NULL;
}

static float header_scale(const struct quant_type *type, const uint8_t *head)
{
    return type->header_bytes == 2 ? quant_f16_to_f32(quant_load16(head))
                                   : quant_float_of(quant_load32(head));
}

void quant_row_separate(const struct quant_type *type, const struct quant_type *plain,
                        int64_t first, int64_t n, const void *group, int r, void *row)
{
    int i = 0;
    while (types[i].id != type->id || types[i].plain != plain->id) i++;
    const size_t header = type->header_bytes, rows = type->interleave;
    const size_t bytes = (size_t)types[i].len / type->block_len * type->block_bytes;
    const size_t plain_bytes = (size_t)types[i].len / plain->block_len * plain->block_bytes;
    const uint8_t *head = (const uint8_t *)group + (size_t)r * header;
    const uint8_t *from = (const uint8_t *)group + rows * header;
    uint8_t *to = (uint8_t *)row + plain->header_bytes;
    const bool floats = plain->id == QUANT_F32;
    memset(row, 0, (size_t)quant_row_size(plain, n));
    memcpy(row, head, plain->header_bytes);
    for (int64_t b = first / types[i].len; b < (first + n) / types[i].len; b++, to += plain_bytes) {
        types[i].separate(from + (size_t)b * rows * bytes, r, to);
        /* A block begins with it. (That of Q8_KV ends with a sum.) */
        if (!plain->header_bytes && !floats) memcpy(to, head, header < 4 ? header : 4);
    }
    const float d = floats ? header_scale(type, head) : 1.0f;
    for (int64_t k = 0; floats && k < n; k++) ((float *)row)[k] *= d;
}
