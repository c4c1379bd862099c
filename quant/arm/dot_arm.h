/* quant/arm/dot_arm.h: private to the kernels for 64-bit ARM: what the levels do differently, and
 * small functions on vectors. Files of a level (*_neon.c, *_dotprod.c, *_i8mm.c) are compiled for
 * its instructions (Makefile). */
#pragma once

#include "quant/arm/panel_arm.h"
#include "quant/types.h"
#include <arm_neon.h>

#ifdef __ARM_FEATURE_MATMUL_INT8
enum { ARM_UNIT = 8, ARM_COPIES = 2 };
typedef struct quant_arm_panel32_8 arm_panel32;
typedef struct quant_arm_panel256_8 arm_panel256;
#else
enum { ARM_UNIT = 4, ARM_COPIES = 1 };
typedef struct quant_arm_panel32_4 arm_panel32;
typedef struct quant_arm_panel256_4 arm_panel256;
#endif

/* acc + products of all elements; with SDOT lane i has those of elements 4i .. 4i + 3. Without it
 * two products are added in 16 bits: codes are at least -128 and q at least -127, so that they
 * fit. */
QUANT_INLINE int32x4_t arm_dot(int32x4_t acc, int8x16_t code, int8x16_t q)
{
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(acc, code, q);
#else
    const int16x8_t low = vmull_s8(vget_low_s8(code), vget_low_s8(q));
    return vpadalq_s16(acc, vmlal_high_s8(low, code, q));
#endif
}

/* acc + products of 32 elements. `is_small`: codes are at most 64 in magnitude, so that four
 * products are added in 16 bits. */
QUANT_INLINE int32x4_t arm_dot_pair(int32x4_t acc, int8x16x2_t code, const int8x16_t q[2],
                                    bool is_small)
{
#ifndef __ARM_FEATURE_DOTPROD
    if (is_small) {
        int16x8_t four = vmull_s8(vget_low_s8(code.val[0]), vget_low_s8(q[0]));
        four = vmlal_high_s8(four, code.val[0], q[0]);
        four = vmlal_s8(four, vget_low_s8(code.val[1]), vget_low_s8(q[1]));
        return vpadalq_s16(acc, vmlal_high_s8(four, code.val[1], q[1]));
    }
#endif
    (void)is_small;
    return arm_dot(arm_dot(acc, code.val[0], q[0]), code.val[1], q[1]);
}

/* Bytes 4i .. 4i + 3 of v in each word. */
QUANT_INLINE int8x16_t arm_word(int8x16_t v, int i)
{
    const int32x4_t words = vreinterpretq_s32_s8(v);
    switch (i) {
    case 0:
        return vreinterpretq_s8_s32(vdupq_laneq_s32(words, 0));
    case 1:
        return vreinterpretq_s8_s32(vdupq_laneq_s32(words, 1));
    case 2:
        return vreinterpretq_s8_s32(vdupq_laneq_s32(words, 2));
    default:
        return vreinterpretq_s8_s32(vdupq_laneq_s32(words, 3));
    }
}

/* Lane l: acc + the products of elements 4l .. 4l + 3 of v with 4i .. 4i + 3 of x. */
QUANT_INLINE int32x4_t arm_dot_word(int32x4_t acc, int8x16_t v, int8x16_t x, int i)
{
#ifdef __ARM_FEATURE_DOTPROD
    switch (i) {
    case 0:
        return vdotq_laneq_s32(acc, v, x, 0);
    case 1:
        return vdotq_laneq_s32(acc, v, x, 1);
    case 2:
        return vdotq_laneq_s32(acc, v, x, 2);
    default:
        return vdotq_laneq_s32(acc, v, x, 3);
    }
#else
    const int8x16_t word = arm_word(x, i);
    const int16x8_t low = vmull_s8(vget_low_s8(v), vget_low_s8(word));
    return vpadalq_s16(acc, vpaddq_s16(low, vmull_high_s8(v, word)));
#endif
}

/* Lane i: the sum of the lanes of v[i]. */
QUANT_INLINE int32x4_t arm_lane_sums(const int32x4_t v[4])
{
    return vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3]));
}

/* The lane sums of four sums that run on. With SDOT the compiler would compute later products
 * earlier, and copy the sums for them. */
QUANT_INLINE int32x4_t arm_running_sums(int32x4_t v[4])
{
    int32x4_t sums = arm_lane_sums(v);
#ifdef __ARM_FEATURE_DOTPROD
    int32x4_t a = v[0], b = v[1], c = v[2], d = v[3]; /* operands in an array would be memory */
    __asm__("" : "+w"(a), "+w"(b), "+w"(c), "+w"(d), "+w"(sums));
    v[0] = a, v[1] = b, v[2] = c, v[3] = d;
#endif
    return sums;
}

/* Word i of v[r] becomes word r of to[i]. */
QUANT_INLINE void arm_transpose(const int8x16_t v[4], int8x16_t to[4])
{
    const int32x4_t a = vreinterpretq_s32_s8(v[0]), b = vreinterpretq_s32_s8(v[1]);
    const int32x4_t c = vreinterpretq_s32_s8(v[2]), d = vreinterpretq_s32_s8(v[3]);
    const int64x2_t ab[2] = {vreinterpretq_s64_s32(vtrn1q_s32(a, b)),
                             vreinterpretq_s64_s32(vtrn2q_s32(a, b))};
    const int64x2_t cd[2] = {vreinterpretq_s64_s32(vtrn1q_s32(c, d)),
                             vreinterpretq_s64_s32(vtrn2q_s32(c, d))};
    EACH (i, 2) {
        to[i] = vreinterpretq_s8_s64(vtrn1q_s64(ab[i], cd[i]));
        to[i + 2] = vreinterpretq_s8_s64(vtrn2q_s64(ab[i], cd[i]));
    }
}

/* Stores 16 codes of each of rows r .. r + 3, from a multiple of 16 on, as units; `to` is the place
 * of the first group of 16 rows. */
QUANT_INLINE void arm_units_store(const int8x16_t row[4], int r, int8_t *to)
{
    if (ARM_UNIT == 4) {
        int8x16_t t[4];
        arm_transpose(row, t);
        EACH (i, 4) vst1q_s8(to + 64 * i + 4 * r, t[i]);
    } else {
        EACH (i, 2) {
            const int64x2_t a = vreinterpretq_s64_s8(row[2 * i]);
            const int64x2_t b = vreinterpretq_s64_s8(row[2 * i + 1]);
            vst1q_s8(to + 8 * r + 16 * i, vreinterpretq_s8_s64(vzip1q_s64(a, b)));
            vst1q_s8(to + 128 + 8 * r + 16 * i, vreinterpretq_s8_s64(vzip2q_s64(a, b)));
        }
    }
}

/* Stores the numbers of rows r .. r + 3. */
QUANT_INLINE void arm_numbers_store(int32x4_t v, int r, int32_t *to)
{
    const int64x2_t pairs = vreinterpretq_s64_s32(v);
    to += ARM_COPIES * r;
    if (ARM_COPIES == 1) {
        vst1q_s32(to, v);
    } else {
        vst1q_s32(to, vreinterpretq_s32_s64(vzip1q_s64(pairs, pairs)));
        vst1q_s32(to + 4, vreinterpretq_s32_s64(vzip2q_s64(pairs, pairs)));
    }
}

QUANT_INLINE void arm_floats_store(float32x4_t v, int r, float *to)
{
    arm_numbers_store(vreinterpretq_s32_f32(v), r, (int32_t *)(void *)to);
}

/* The binary16 numbers at byte `at` of four blocks. */
QUANT_INLINE float32x4_t arm_halves(const uint8_t *const block[4], size_t at)
{
    float16_t h[4];
    EACH (r, 4) memcpy(h + r, block[r] + at, sizeof *h);
    return vcvt_f32_f16((float16x4_t){h[0], h[1], h[2], h[3]});
}

/* The low and the high nibbles of 16 bytes. */
QUANT_INLINE int8x16_t arm_low_nibbles(uint8x16_t v)
{
    return vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15)));
}

QUANT_INLINE int8x16_t arm_high_nibbles(uint8x16_t v)
{
    return vreinterpretq_s8_u8(vshrq_n_u8(v, 4));
}

/* All bits set in byte i if bit i of `bits` is set, i < 16. */
QUANT_INLINE uint8x16_t arm_mask_of_bits(uint32_t bits)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const uint8x16_t v = vcombine_u8(vdup_n_u8((uint8_t)bits), vdup_n_u8((uint8_t)(bits >> 8)));
    return vtstq_u8(v, bit);
}
