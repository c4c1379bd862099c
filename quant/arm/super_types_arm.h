/* quant/arm/super_types_arm.h: private to quant/: heads and codes of the types with super-blocks
 * for 64-bit ARM (quant/arm/super_arm.h). The layouts are in quant/super/. */
#pragma once

#include "quant/arm/super_arm.h"
#include "quant/arm/types_arm.h"
#include "quant/super/iq1_m.h"
#include "quant/super/iq1_s.h"
#include "quant/super/iq2_s.h"
#include "quant/super/iq2_xs.h"
#include "quant/super/iq2_xxs.h"
#include "quant/super/iq3_s.h"
#include "quant/super/iq3_xxs.h"
#include "quant/super/iq4_xs.h"
#include "quant/super/q2_k.h"
#include "quant/super/q3_k.h"
#include "quant/super/q4_k.h"
#include "quant/super/q5_k.h"
#include "quant/super/q6_k.h"
#include "quant/super/q8_k.h"
#include "quant/super/tq1_0.h"
#include "quant/super/tq2_0.h"

/* ---- Parts of heads ---- */

/* Sub-scales of one row, a byte each. */
typedef int8x16_t super_arm_scales(const uint8_t *block);

/* Fills to[4] with the scales of four rows. */
QUANT_INLINE void super_arm_by_row(super_arm_scales *scales, const uint8_t *const block[4],
                                   int8x16_t to[4])
{
    int8x16_t row[4];
    EACH (r, 4) row[r] = scales(block[r]);
    arm_transpose(row, to);
}

QUANT_INLINE int8x16_t super_arm_ones(void)
{
    return vdupq_n_s8(1);
}

/* The scales 2n + 1 for eight bytes of four-bit numbers n, low nibbles first. */
QUANT_INLINE int8x16_t super_arm_odd(uint8x8_t nibbles)
{
    const uint8x8_t low = vand_u8(nibbles, vdup_n_u8(15)), high = vshr_n_u8(nibbles, 4);
    const uint8x16_t n = vcombine_u8(vzip1_u8(low, high), vzip2_u8(low, high));
    return vreinterpretq_s8_u8(vaddq_u8(vaddq_u8(n, n), vdupq_n_u8(1)));
}

/* The scales 2n + 1 for the upper four bits n of eight words. */
QUANT_INLINE int8x16_t super_arm_tails(uint32x4_t first, uint32x4_t second)
{
    const uint16x8_t n = vcombine_u16(vshrn_n_u32(first, 16), vshrn_n_u32(second, 16));
    const uint8x8_t four = vshr_n_u8(vshrn_n_u16(n, 8), 4);
    return vcombine_s8(vreinterpret_s8_u8(vadd_u8(vadd_u8(four, four), vdup_n_u8(1))),
                       vdup_n_s8(0));
}

/* Defines NAME_heads_arm of a type without minima: the numbers at byte D, times FACTOR, a power of
 * two, and NAME_scales_arm of each row. */
#define SUPER_ARM_HEADS(NAME, D, FACTOR)                                                           \
    QUANT_INLINE void NAME##_heads_arm(const uint8_t *const block[4], struct super_heads *h)       \
    {                                                                                              \
        h->d = vmulq_n_f32(arm_halves(block, D), FACTOR);                                          \
        super_arm_by_row(NAME##_scales_arm, block, h->scale);                                      \
    }

/* ---- Parts of codes ---- */

/* 32 bytes at `at`. */
QUANT_INLINE uint8x16x2_t super_arm_load(const void *at)
{
    return (uint8x16x2_t){{vld1q_u8(at), vld1q_u8((const uint8_t *)at + 16)}};
}

/* 32 bytes at `at`, loaded again at each call: the compiler does not see that the address is that
 * of an earlier one, and keeps none in registers, which are too few. */
QUANT_INLINE uint8x16x2_t super_arm_load_again(const void *at)
{
    __asm__ volatile("" : "+r"(at));
    return super_arm_load(at);
}

/* Bits 2g and 2g + 1 of each byte, in place but for those of g = 3, which become bits 0 and 1. */
QUANT_INLINE uint8x16_t super_arm_two_bits(uint8x16_t v, int g)
{
    return g == 3 ? vshrq_n_u8(v, 6) : vandq_u8(v, vdupq_n_u8((uint8_t)(3 << 2 * g)));
}

/* n bits of each byte of `high`, from bit `from` on, in the place of the bits of `low` from bit
 * `to` on. */
QUANT_INLINE uint8x16_t super_arm_insert(uint8x16_t low, uint8x16_t high, int n, int from, int to)
{
    const uint8x16_t mask = vdupq_n_u8((uint8_t)(((1 << n) - 1) << to));
    return vbslq_u8(mask, from > to ? high >> (uint8_t)(from - to) : high << (uint8_t)(to - from),
                    low);
}

/* a + b, as signed numbers. */
QUANT_INLINE int8x16_t super_arm_sum(uint8x16_t a, int b)
{
    return vaddq_s8(vreinterpretq_s8_u8(a), vdupq_n_s8((int8_t)b));
}

/* Entries 4s .. 4s + 3. */
QUANT_INLINE int8x16x2_t super_arm_entries(super_grid_entry *entry, const void *block, int s)
{
    int8x16x2_t code;
    EACH (i, 2)
        code.val[i] =
            vreinterpretq_s8_u64(vcombine_u64(vcreate_u64(entry(block, 4 * s + 2 * i)),
                                              vcreate_u64(entry(block, 4 * s + 2 * i + 1))));
    return code;
}

/* These, with signs. */
QUANT_INLINE int8x16x2_t super_arm_signed(super_grid_entry *entry, super_grid_signs *signs,
                                          const void *block, int s)
{
    const uint32_t bits = signs(block, s);
    int8x16x2_t code = super_arm_entries(entry, block, s);
    EACH (i, 2) {
        const int8x16_t mask = vreinterpretq_s8_u8(arm_mask_of_bits(bits >> 16 * i));
        code.val[i] = vsubq_s8(veorq_s8(code.val[i], mask), mask);
    }
    return code;
}

/* Numbers i and j of a table. */
QUANT_INLINE int8x16_t super_arm_two(const uint64_t *table, size_t i, size_t j)
{
    return vreinterpretq_s8_u64(vcombine_u64(vld1_u64(table + i), vld1_u64(table + j)));
}

/* code, times the signs that four times seven bits say (super_signs7). */
QUANT_INLINE int8x16x2_t super_arm_times_signs(int8x16x2_t code, uint32_t bits)
{
    EACH (i, 2)
        code.val[i] = vmulq_s8(code.val[i], super_arm_two(quant_arm_signs7, bits >> 14 * i & 127,
                                                          bits >> (14 * i + 7) & 127));
    return code;
}

#define SUPER_ARM_GRID(NAME)                                                                       \
    QUANT_INLINE int8x16x2_t NAME##_codes_arm(const uint8_t *block, int s)                         \
    {                                                                                              \
        return super_arm_signed(NAME##_entry, NAME##_signs, block, s);                             \
    }

/* ---- Q4_K, Q5_K ---- */

/* k_scales.h of four rows: the words of bytes j, 4 + j, 8 + j are transposed. */
QUANT_INLINE void k_heads_arm(const uint8_t *const block[4], struct super_heads *h)
{
    const uint8x16_t low6 = vdupq_n_u8(63), low4 = vdupq_n_u8(15);
    int8x16_t row[4], word[4];
    EACH (r, 4) row[r] = vld1q_s8((const int8_t *)block[r]);
    arm_transpose(row, word);
    const uint8x16_t a = vreinterpretq_u8_s8(word[1]), b = vreinterpretq_u8_s8(word[2]);
    const uint8x16_t c = vreinterpretq_u8_s8(word[3]);
    const uint16x8_t halves = vreinterpretq_u16_s8(word[0]);
    const uint16x8_t d = vuzp1q_u16(halves, halves), dmin = vuzp2q_u16(halves, halves);
    h->d = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(d)));
    h->m = vnegq_f32(vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(dmin))));
    h->scale[0] = vreinterpretq_s8_u8(vandq_u8(a, low6));
    h->min[0] = vreinterpretq_s8_u8(vandq_u8(b, low6));
    h->scale[1] = vreinterpretq_s8_u8(super_arm_insert(vandq_u8(c, low4), a, 2, 6, 4));
    h->min[1] = vreinterpretq_s8_u8(super_arm_insert(vshrq_n_u8(c, 4), b, 2, 6, 4));
}

#define q4_k_heads_arm k_heads_arm
#define q5_k_heads_arm k_heads_arm

QUANT_INLINE int8x16x2_t q4_k_codes_arm(const uint8_t *block, int s)
{
    const struct q4_k_block *w = (const void *)block;
    const uint8x16x2_t v = super_arm_load(w->q + s / 2 * 32);
    int8x16x2_t code;
    EACH (i, 2) code.val[i] = s % 2 ? arm_high_nibbles(v.val[i]) : arm_low_nibbles(v.val[i]);
    return code;
}

QUANT_INLINE int8x16x2_t q5_k_codes_arm(const uint8_t *block, int s)
{
    const struct q5_k_block *w = (const void *)block;
    const uint8x16x2_t v = super_arm_load(w->q + s / 2 * 32), high = super_arm_load_again(w->high);
    int8x16x2_t code;
    EACH (i, 2) {
        const int8x16_t low = s % 2 ? arm_high_nibbles(v.val[i]) : arm_low_nibbles(v.val[i]);
        code.val[i] =
            vreinterpretq_s8_u8(super_arm_insert(vreinterpretq_u8_s8(low), high.val[i], 1, s, 4));
    }
    return code;
}

/* ---- Q6_K, Q2_K, Q3_K, TQ2_0: elements 128h + 32g + l, s = 4h + g ---- */

QUANT_INLINE int8x16_t q6_k_scales_arm(const uint8_t *block)
{
    return vld1q_s8(((const struct q6_k_block *)(const void *)block)->scale);
}
SUPER_ARM_HEADS(q6_k, offsetof(struct q6_k_block, d), 1.0f)

QUANT_INLINE int8x16x2_t q6_k_codes_arm(const uint8_t *block, int s)
{
    const struct q6_k_block *w = (const void *)block;
    const uint8x16x2_t v = super_arm_load(w->low + s / 4 * 64 + s % 2 * 32);
    const uint8x16x2_t high = super_arm_load_again(w->high + s / 4 * 32);
    int8x16x2_t code;
    EACH (i, 2) {
        const int8x16_t low = s % 4 < 2 ? arm_low_nibbles(v.val[i]) : arm_high_nibbles(v.val[i]);
        code.val[i] = vreinterpretq_s8_u8(
            super_arm_insert(vreinterpretq_u8_s8(low), high.val[i], 2, s % 4 * 2, 4));
    }
    return code;
}

QUANT_INLINE int8x16_t q2_k_scales_arm(const uint8_t *block)
{
    return arm_low_nibbles(vld1q_u8(block));
}

QUANT_INLINE int8x16_t q2_k_minima_arm(const uint8_t *block)
{
    return arm_high_nibbles(vld1q_u8(block));
}

QUANT_INLINE void q2_k_heads_arm(const uint8_t *const block[4], struct super_heads *h)
{
    h->d = arm_halves(block, offsetof(struct q2_k_block, d));
    h->m = vnegq_f32(arm_halves(block, offsetof(struct q2_k_block, dmin)));
    super_arm_by_row(q2_k_scales_arm, block, h->scale);
    super_arm_by_row(q2_k_minima_arm, block, h->min);
}

QUANT_INLINE int8x16x2_t q2_k_codes_arm(const uint8_t *block, int s)
{
    const struct q2_k_block *w = (const void *)block;
    const uint8x16x2_t v = super_arm_load(w->q + s / 4 * 32);
    int8x16x2_t code;
    EACH (i, 2) code.val[i] = vreinterpretq_s8_u8(super_arm_two_bits(v.val[i], s % 4));
    return code;
}

QUANT_INLINE void q3_k_heads_arm(const uint8_t *const block[4], struct super_heads *h)
{
    int8x16_t row[4], word[4];
    EACH (r, 4) { /* the last 14 bytes */
        const int8x16_t end = vld1q_s8((const int8_t *)block[r] + sizeof(struct q3_k_block) - 16);
        row[r] = vextq_s8(end, end, 2);
    }
    arm_transpose(row, word);
    const uint16x8_t d = vreinterpretq_u16_s8(word[3]);
    h->d = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(vuzp1q_u16(d, d))));
    EACH (i, 4) {
        const uint8x16_t low = vreinterpretq_u8_s8(word[i % 2]);
        const int8x16_t four = i < 2 ? arm_low_nibbles(low) : arm_high_nibbles(low);
        h->scale[i] = super_arm_sum(
            super_arm_insert(vreinterpretq_u8_s8(four), vreinterpretq_u8_s8(word[2]), 2, 2 * i, 4),
            -32);
    }
}

QUANT_INLINE int8x16x2_t q3_k_codes_arm(const uint8_t *block, int s)
{
    const struct q3_k_block *w = (const void *)block;
    const uint8x16x2_t v = super_arm_load(w->q + s / 4 * 32), high = super_arm_load_again(w->high);
    const int third = s % 4 < 3 ? s % 4 * 2 + 2 : 2;
    int8x16x2_t code;
    EACH (i, 2)
        code.val[i] = vreinterpretq_s8_u8(
            super_arm_insert(super_arm_two_bits(v.val[i], s % 4), high.val[i], 1, s, third));
    return code;
}

QUANT_INLINE void tq2_0_heads_arm(const uint8_t *const block[4], struct super_heads *h)
{
    h->d = arm_halves(block, offsetof(struct tq2_0_block, d));
    h->scale[0] = h->scale[1] = super_arm_ones();
}

QUANT_INLINE int8x16x2_t tq2_0_codes_arm(const uint8_t *block, int s)
{
    const struct tq2_0_block *w = (const void *)block;
    const uint8x16x2_t v = super_arm_load(w->q + s / 4 * 32);
    int8x16x2_t code;
    EACH (i, 2) code.val[i] = vreinterpretq_s8_u8(super_arm_two_bits(v.val[i], s % 4));
    return code;
}

/* ---- TQ1_0 ---- */

QUANT_INLINE void tq1_0_heads_arm(const uint8_t *const block[4], struct super_heads *h)
{
    h->d = arm_halves(block, offsetof(struct tq1_0_block, d));
    h->scale[0] = h->scale[1] = super_arm_ones();
}

/* The digits of fractions of 256 that were multiplied by 3^n, less 1: the digit is 0 below 86, 2
 * from 171 on. */
QUANT_INLINE int8x16_t tq1_0_digits_arm(uint8x16_t v, uint8x16_t power)
{
    const uint8x16_t part = vmulq_u8(v, power);
    const uint8x16_t least = vsubq_u8(vdupq_n_u8(255), vcgeq_u8(part, vdupq_n_u8(86)));
    return vreinterpretq_s8_u8(vsubq_u8(least, vcgeq_u8(part, vdupq_n_u8(171))));
}

QUANT_INLINE int8x16x2_t tq1_0_codes_arm(const uint8_t *block, int s)
{
    const struct tq1_0_block *w = (const void *)block;
    int8x16x2_t code;
    EACH (i, 2) {
        const int n = s < 5 ? s : 2 * (s - 5) + i; /* 5: in `high` */
        uint8x16_t v = vld1q_u8(w->q + (s < 5 ? 16 * i : 32));
        uint8x16_t power = vdupq_n_u8(n < 5 ? tq1_0_powers[n] : 0);
        if (n == 5) {
            v = vreinterpretq_u8_u32(vdupq_n_u32(quant_load32(w->high)));
            power = vcombine_u8(vcreate_u8(0x0303030301010101), vcreate_u8(0x1b1b1b1b09090909));
        }
        code.val[i] = tq1_0_digits_arm(v, power);
    }
    return code;
}

/* ---- Q8_K ---- */

QUANT_INLINE void q8_k_heads_arm(const uint8_t *const block[4], struct super_heads *h)
{
    float d[4];
    EACH (r, 4) memcpy(d + r, block[r], sizeof d[r]);
    h->d = vld1q_f32(d);
    h->scale[0] = h->scale[1] = super_arm_ones();
}

QUANT_INLINE int8x16x2_t q8_k_codes_arm(const uint8_t *block, int s)
{
    const int8_t *q = ((const struct q8_k_block *)(const void *)block)->q + 32 * s;
    return (int8x16x2_t){{vld1q_s8(q), vld1q_s8(q + 16)}};
}

/* ---- IQ4_XS ---- */

QUANT_INLINE void iq4_xs_heads_arm(const uint8_t *const block[4], struct super_heads *h)
{
    const uint8x16_t bytes = {2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14, 14, 14, 14};
    const int8x16_t up = {4, 2, 0, -2, 4, 2, 0, -2, 4, 2, 0, -2, 4, 2, 0, -2};
    uint32x4_t pair[2];
    EACH (i, 2)
        pair[i] =
            vreinterpretq_u32_u8(vcombine_u8(vld1_u8(block[2 * i]), vld1_u8(block[2 * i + 1])));
    const uint8x16_t first = vreinterpretq_u8_u32(vuzp1q_u32(pair[0], pair[1]));
    const uint8x16_t low = vreinterpretq_u8_u32(vuzp2q_u32(pair[0], pair[1]));
    const uint16x8_t d = vreinterpretq_u16_u8(first);
    const uint8x16_t even = vandq_u8(low, vdupq_n_u8(15)), odd = vshrq_n_u8(low, 4);
    const uint32x4_t rows01 = vreinterpretq_u32_u8(vzip1q_u8(even, odd));
    const uint32x4_t rows23 = vreinterpretq_u32_u8(vzip2q_u8(even, odd));
    const uint32x4_t four[2] = {vuzp1q_u32(rows01, rows23), vuzp2q_u32(rows01, rows23)};
    h->d = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(vuzp1q_u16(d, d))));
    EACH (i, 2) {
        const uint8x16_t high = vqtbl1q_u8(first, vaddq_u8(bytes, vdupq_n_u8((uint8_t)i)));
        h->scale[i] = super_arm_sum(
            vbslq_u8(vdupq_n_u8(0x30), vshlq_u8(high, up), vreinterpretq_u8_u32(four[i])), -32);
    }
}

QUANT_INLINE int8x16x2_t iq4_xs_codes_arm(const uint8_t *block, int s)
{
    const struct iq4_xs_block *w = (const void *)block;
    const int8x16_t book = vld1q_s8(quant_codebook_iq4);
    const uint8x16_t v = vld1q_u8(w->q + 16 * s);
    return (int8x16x2_t){
        {vqtbl1q_s8(book, vandq_u8(v, vdupq_n_u8(15))), vqtbl1q_s8(book, vshrq_n_u8(v, 4))}};
}

/* ---- Types with grids ---- */

QUANT_INLINE int8x16_t iq2_xxs_scales_arm(const uint8_t *block)
{
    const struct iq2_xxs_block *w = (const void *)block;
    const uint32x4_t v[4] = {
        vreinterpretq_u32_u8(vld1q_u8(w->sub[0].q)), vreinterpretq_u32_u8(vld1q_u8(w->sub[2].q)),
        vreinterpretq_u32_u8(vld1q_u8(w->sub[4].q)), vreinterpretq_u32_u8(vld1q_u8(w->sub[6].q))};
    return super_arm_tails(vuzp2q_u32(v[0], v[1]), vuzp2q_u32(v[2], v[3]));
}
SUPER_ARM_HEADS(iq2_xxs, 0, 0.125f)

QUANT_INLINE int8x16x2_t iq2_xxs_codes_arm(const uint8_t *block, int s)
{
    const struct iq2_xxs_block *w = (const void *)block;
    const uint32_t q = quant_load32(w->sub[s].q);
    int8x16x2_t code;
    EACH (i, 2)
        code.val[i] = super_arm_two(quant_grid_iq2_xxs, q >> 16 * i & 255, q >> (16 * i + 8) & 255);
    return super_arm_times_signs(code, quant_load32(w->sub[s].tail));
}

QUANT_INLINE int8x16_t iq2_xs_scales_arm(const uint8_t *block)
{
    return super_arm_odd(vld1_u8(((const struct iq2_xs_block *)(const void *)block)->scale));
}
SUPER_ARM_HEADS(iq2_xs, 0, 0.125f)
SUPER_ARM_GRID(iq2_xs)

QUANT_INLINE int8x16_t iq2_s_scales_arm(const uint8_t *block)
{
    return super_arm_odd(vld1_u8(((const struct iq2_s_block *)(const void *)block)->scale));
}
SUPER_ARM_HEADS(iq2_s, 0, 0.125f)
SUPER_ARM_GRID(iq2_s)

QUANT_INLINE int8x16_t iq3_xxs_scales_arm(const uint8_t *block)
{
    const struct iq3_xxs_block *w = (const void *)block;
    return super_arm_tails(vreinterpretq_u32_u8(vld1q_u8(w->tail[0])),
                           vreinterpretq_u32_u8(vld1q_u8(w->tail[4])));
}
SUPER_ARM_HEADS(iq3_xxs, 0, 0.25f)

QUANT_INLINE int8x16x2_t iq3_xxs_codes_arm(const uint8_t *block, int s)
{
    const struct iq3_xxs_block *w = (const void *)block;
    return super_arm_times_signs(super_arm_entries(iq3_xxs_entry, block, s),
                                 quant_load32(w->tail[s]));
}

QUANT_INLINE int8x16_t iq3_s_scales_arm(const uint8_t *block)
{
    return super_arm_odd(
        vcreate_u8(quant_load32(((const struct iq3_s_block *)(const void *)block)->scale)));
}
SUPER_ARM_HEADS(iq3_s, 0, 1.0f)
SUPER_ARM_GRID(iq3_s)

QUANT_INLINE int8x16_t iq1_s_scales_arm(const uint8_t *block)
{
    const struct iq1_s_block *w = (const void *)block;
    const uint16x8_t high = vreinterpretq_u16_u8(vld1q_u8(w->high[0]));
    const uint8x8_t n = vand_u8(vshrn_n_u16(vshrq_n_u16(high, 4), 8), vdup_n_u8(7));
    return super_arm_sum(vcombine_u8(vadd_u8(n, n), vdup_n_u8(0)), 1);
}
SUPER_ARM_HEADS(iq1_s, 0, 0.125f)

QUANT_INLINE int8x16x2_t iq1_s_codes_arm(const uint8_t *block, int s)
{
    const struct iq1_s_block *w = (const void *)block;
    const int8x16_t shift = vdupq_n_s8(quant_load16(w->high[s]) & 0x8000 ? -1 : 1);
    int8x16x2_t code = super_arm_entries(iq1_s_entry, block, s);
    EACH (i, 2) code.val[i] = vaddq_s8(code.val[i], shift);
    return code;
}

QUANT_INLINE int8x16_t iq1_m_scales_arm(const uint8_t *block)
{
    const struct iq1_m_block *w = (const void *)block;
    const int16x8_t down = {0, -3, -6, -9, 0, -3, -6, -9};
    const uint16x8_t seven = vdupq_n_u16(7);
    const uint16x4_t v = vreinterpret_u16_u8(vld1_u8(w->scale[0]));
    const uint16x8_t first = vcombine_u16(vdup_lane_u16(v, 0), vdup_lane_u16(v, 1));
    const uint16x8_t second = vcombine_u16(vdup_lane_u16(v, 2), vdup_lane_u16(v, 3));
    const uint8x16_t n = vcombine_u8(vmovn_u16(vandq_u16(vshlq_u16(first, down), seven)),
                                     vmovn_u16(vandq_u16(vshlq_u16(second, down), seven)));
    return super_arm_sum(vaddq_u8(n, n), 1);
}

QUANT_INLINE void iq1_m_heads_arm(const uint8_t *const block[4], struct super_heads *h)
{
    uint16_t d[4];
    EACH (r, 4) d[r] = iq1_m_head(block[r]);
    h->d = vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(d))), 0.125f);
    super_arm_by_row(iq1_m_scales_arm, block, h->scale);
}

QUANT_INLINE int8x16x2_t iq1_m_codes_arm(const uint8_t *block, int s)
{
    const struct iq1_m_block *w = (const void *)block;
    int8x16x2_t code = super_arm_entries(iq1_m_entry, block, s);
    EACH (i, 2) {
        const int8_t a = iq1_m_high(w, 4 * s + 2 * i) & 8 ? -1 : 1;
        const int8_t b = iq1_m_high(w, 4 * s + 2 * i + 1) & 8 ? -1 : 1;
        code.val[i] = vaddq_s8(code.val[i], vcombine_s8(vdup_n_s8(a), vdup_n_s8(b)));
    }
    return code;
}
