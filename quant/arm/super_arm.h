/* quant/arm/super_arm.h: private to quant/: the kernels of super-blocks for 64-bit ARM.
 *
 * A type has two functions in addition to its scalar expand (quant/arm/super_types_arm.h):
 *
 *     heads(block[4], heads)     scales and minima of four rows
 *     codes(block, s)            32 codes, elements 32s .. 32s + 31: value + offset, at most 127;
 *                                of types `in_place` 1 << super_arm_shift times that
 *
 * from which super_arm_gemv and super_arm_unpack are inlined into small wrappers (types_arm.inc).
 * gemv multiplies four rows at once: lane r of a register is row r, so that the floats of four
 * chains of sums are computed by one instruction. */
#pragma once

#include "quant/arm/dot_arm.h"
#include "quant/row_groups.h"
#include "quant/super/super.h"

/* Of four rows. Sub-block 4i + j of row r in byte 4r + j of scale[i] and min[i], 8 or 16 in use. */
struct super_heads {
    float32x4_t d, m;
    int8x16_t scale[4], min[4];
};

typedef void super_arm_heads(const uint8_t *const block[4], struct super_heads *heads);
typedef int8x16x2_t super_arm_codes(const uint8_t *block, int s);

struct super_arm_type {
    size_t block_bytes;
    int sub_len;
    bool has_min;
    int offset;    /* 0 in types with minima */
    bool in_place; /* codes of two bits, of which only the uppermost are shifted to bit 0 */
    bool is_small; /* codes are at most 64 in magnitude */
    super_arm_heads *heads;
    super_arm_codes *codes;
};

/* is_small from the form of the type's scalar panels, whose codes have another offset. */
#define SUPER_ARM_IS_SMALL(FORM, OFFSET, IN_PLACE)                                                 \
    (((FORM).max_code - (FORM).offset + (OFFSET)) << ((IN_PLACE) ? 4 : 0) <= 64 &&                 \
     (FORM).offset - (OFFSET) <= 64)

/* Codes of two bits in bits 2g and 2g + 1, g = s % 4 < 3, are 1 << 2g times as large. */
QUANT_INLINE int super_arm_shift(const struct super_arm_type *type, int s)
{
    return type->in_place && s % 4 < 3 ? s % 4 * 2 : 0;
}

/* Sums that run on over sub-blocks are multiplied by the scales of sub-block s of four rows, less
 * those of the next one, each times 1 << its shift. There is no next one if its shift is below 0.
 */
#ifdef __ARM_FEATURE_DOTPROD
QUANT_INLINE int32x4_t super_arm_scale_step(const struct super_heads *h, int s, int shift,
                                            int next_shift)
{
    const uint32_t next = next_shift < 0 ? 0 : 256 - (UINT32_C(1) << next_shift);
    const uint32_t both = (UINT32_C(1) << shift | next << 8) << s % 4 * 8;
    const int32x4_t step =
        vdotq_s32(vdupq_n_s32(0), h->scale[s / 4], vreinterpretq_s8_u32(vdupq_n_u32(both)));
    if (s % 4 < 3 || next_shift < 0) return step;
    return vdotq_s32(step, h->scale[s / 4 + 1], vreinterpretq_s8_u32(vdupq_n_u32(next)));
}
#else
QUANT_INLINE int32x4_t super_arm_scale(const struct super_heads *h, int s, int shift)
{
    const int32x4_t word = vreinterpretq_s32_s8(h->scale[s / 4]);
    switch (s % 4) {
    case 0:
        return vshrq_n_s32(vshlq_n_s32(word, 24), 24) << shift;
    case 1:
        return vshrq_n_s32(vshlq_n_s32(word, 16), 24) << shift;
    case 2:
        return vshrq_n_s32(vshlq_n_s32(word, 8), 24) << shift;
    default:
        return vshrq_n_s32(word, 24) << shift;
    }
}

QUANT_INLINE int32x4_t super_arm_scale_step(const struct super_heads *h, int s, int shift,
                                            int next_shift)
{
    const int32x4_t scale = super_arm_scale(h, s, shift);
    return next_shift < 0 ? scale : vsubq_s32(scale, super_arm_scale(h, s + 1, next_shift));
}
#endif

/* ---- One column ---- */

struct super_arm_product {
    const struct super_arm_type *type;
    int64_t n_blocks;
    const struct quant_act *a;
};

/* Splits sums of q, at most 32 * 127 in magnitude, into 128 * high + low: bytes 0 .. 7 and 8 .. 15.
 */
QUANT_INLINE int8x16_t super_arm_split(int16x8_t sum)
{
    const int16x8_t high = vrshrq_n_s16(sum, 7), low = vsubq_s16(sum, vshlq_n_s16(high, 7));
    return vuzp1q_s8(vreinterpretq_s8_s16(high), vreinterpretq_s8_s16(low));
}

/* The sum over sub-blocks of number times sum of q, of four rows: msum (quant/quant.h) of minima;
 * numbers are as in struct super_heads. */
QUANT_INLINE int32x4_t super_arm_msum(int sub_len, const int8x16_t number[4], const int16_t *sum)
{
    const int16x8_t first = vld1q_s16(sum), second = vld1q_s16(sum + 8);
    const int8x16_t parts[2] = {super_arm_split(sub_len == 16 ? first : vpaddq_s16(first, second)),
                                super_arm_split(second)};
    int32x4_t msum = vdupq_n_s32(0);
    EACH (i, 64 / sub_len) msum = arm_dot_word(msum, number[i], parts[i / 2], i % 2);
    msum = vshlq_n_s32(msum, 7);
    EACH (i, 64 / sub_len) msum = arm_dot_word(msum, number[i], parts[i / 2], 2 + i % 2);
    return msum;
}

/* isum of four rows, of codes with their offset. Sums run on over sub-blocks, which is exact modulo
 * 2^32; isum of codes in place is below 2^27, and 1 << 4 times as large before the end. */
QUANT_INLINE int32x4_t super_arm_isum(const struct super_arm_type *type,
                                      const uint8_t *const block[4], const struct super_heads *h,
                                      const int8_t *q)
{
    const int up = type->in_place ? 4 : 0;
    int32x4_t isum = vdupq_n_s32(0), sum[4] = {isum, isum, isum, isum};
    EACH (s, 8) {
        const int8x16_t x[2] = {vld1q_s8(q + 32 * s), vld1q_s8(q + 32 * s + 16)};
        const int shift = up - super_arm_shift(type, s);
        const int next = s < 7 ? up - super_arm_shift(type, s + 1) : -1;
        int8x16x2_t code[4];
        EACH (r, 4) code[r] = type->codes(block[r], s);
        if (type->sub_len == 32) {
            EACH (r, 4) sum[r] = arm_dot_pair(sum[r], code[r], x, type->is_small);
            isum = vmlaq_s32(isum, arm_lane_sums(sum), super_arm_scale_step(h, s, shift, next));
        } else {
            EACH (i, 2) {
                EACH (r, 4) sum[r] = arm_dot(sum[r], code[r].val[i], x[i]);
                isum = vmlaq_s32(isum, arm_lane_sums(sum),
                                 super_arm_scale_step(h, 2 * s + i, shift, i == 0 ? shift : next));
            }
        }
    }
    return up ? vshrq_n_s32(isum, 4) : isum;
}

QUANT_INLINE void super_arm_sums(const void *product, const struct quant_row_group *group,
                                 const uint8_t *row, float *sum)
{
    const struct super_arm_product *p = product;
    const struct super_arm_type *type = p->type;
    float32x4_t acc = vdupq_n_f32(0.0f);
    for (int64_t b = 0; b < p->n_blocks; b++, row += type->block_bytes) {
        const uint8_t *block[4];
        struct super_heads h;
        EACH (r, 4) {
            block[r] = row + (size_t)r * group->row_stride;
            quant_group_prefetch_strided(group, block[r], type->block_bytes);
        }
        quant_group_prefetch_adjacent(group, row, (size_t)b * type->block_bytes, type->block_bytes);
        type->heads(block, &h);
        const float32x4_t da = vdupq_n_f32(p->a->d[b]);
        const float32x4_t scale = vmulq_f32(h.d, da);
        const int16_t *q_sum = p->a->sum + 16 * b;
        int32x4_t total = super_arm_isum(type, block, &h, p->a->q + SUPER_LEN * b);
        if (type->offset)
            total = vmlsq_n_s32(total, super_arm_msum(type->sub_len, h.scale, q_sum), type->offset);
        const float32x4_t isum = vcvtq_f32_s32(total);
        if (type->has_min) {
            const float32x4_t msum = vcvtq_f32_s32(super_arm_msum(type->sub_len, h.min, q_sum));
            acc = vaddq_f32(acc, vfmaq_f32(vmulq_f32(vmulq_f32(h.m, da), msum), scale, isum));
        } else {
            acc = vaddq_f32(acc, vmulq_f32(scale, isum));
        }
    }
    vst1q_f32(sum, acc);
}

QUANT_INLINE void super_arm_gemv(const struct super_arm_type *type, int64_t k,
                                 const struct quant_rows *rows, const struct quant_act *a,
                                 float *out)
{
    const struct super_arm_product product = {type, k / SUPER_LEN, a};
    quant_gemv_by_groups(4, false, super_arm_sums, &product, rows, out);
}

/* ---- Panels ---- */

/* Unpacks block b of rows r .. r + 3. */
QUANT_INLINE void super_arm_unpack_rows(const struct super_arm_type *type,
                                        const uint8_t *const block[4], int r, arm_panel256 *to)
{
    struct super_heads h;
    type->heads(block, &h);
    arm_floats_store(h.d, r, to->d);
    arm_floats_store(type->has_min ? h.m : vdupq_n_f32(0.0f), r, to->m);
    const int n_subs = SUPER_LEN / type->sub_len;
    EACH (s, n_subs)
        arm_numbers_store(super_arm_scale_step(&h, s, 0, s < n_subs - 1 ? 0 : -1), r, to->scale[s]);
    for (int i = 0; type->has_min && i < 64 / type->sub_len; i++) {
        const int32x4_t even = vreinterpretq_s32_s8(h.min[i & ~1]);
        const int32x4_t odd = vreinterpretq_s32_s8(h.min[i | 1]);
        const int32x4_t rows = i % 2 ? vzip2q_s32(even, odd) : vzip1q_s32(even, odd);
        if (ARM_UNIT == 4)
            vst1q_s8(to->min + 64 * i + 4 * r, h.min[i]);
        else
            vst1q_s8(to->min + i / 2 * 128 + 8 * r + i % 2 * 16, vreinterpretq_s8_s32(rows));
    }
    EACH (s, 8) {
        int8x16_t first[4], second[4];
        EACH (i, 4) {
            const int8x16x2_t code = type->codes(block[i], s);
            const int8_t shift = (int8_t)super_arm_shift(type, s);
            first[i] = vsubq_s8(code.val[0] >> shift, vdupq_n_s8((int8_t)type->offset));
            second[i] = vsubq_s8(code.val[1] >> shift, vdupq_n_s8((int8_t)type->offset));
        }
        arm_units_store(first, r, to->q + 512 * s);
        arm_units_store(second, r, to->q + 512 * s + 256);
    }
}

QUANT_INLINE void super_arm_unpack(const struct super_arm_type *type, int64_t first,
                                   int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                   void *panel)
{
    arm_panel256 *to = panel;
    for (int64_t b = first; b < first + n_blocks; b++, to++)
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 4) {
            const uint8_t *block[4];
            EACH (i, 4) block[i] = (const uint8_t *)row[r + i] + (size_t)b * type->block_bytes;
            super_arm_unpack_rows(type, block, r, to);
        }
}
