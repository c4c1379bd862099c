/* quant/arm/block32_arm.h: private to quant/: the kernels of blocks of 32 for 64-bit ARM. Four rows
 * are multiplied at once, as in quant/arm/super_arm.h.
 *
 * The signed codes of a block are read by its struct quant_form32, or, in types with longer blocks,
 * by NAME_codes_arm(block, s), elements 32s .. 32s + 31. */
#pragma once

#include "quant/arm/dot_arm.h"
#include "quant/block32/iq4_nl.h"
#include "quant/block32/mxfp4.h"
#include "quant/block32/q1_0.h"
#include "quant/block32/q2_0.h"
#include "quant/block32/q4_0.h"
#include "quant/block32/q4_1.h"
#include "quant/block32/q5_0.h"
#include "quant/block32/q5_1.h"
#include "quant/block32/q8_0.h"
#include "quant/block32/q8_1.h"
#include "quant/row_groups.h"

typedef int8x16x2_t block32_arm_codes(const uint8_t *block, int s);

struct block32_arm_type {
    struct quant_form32 form; /* of long blocks only block_bytes */
    int n;                    /* blocks of 32 in a block */
    block32_arm_codes *codes; /* NULL: by the form */
};

/* Signed codes by the form. */
QUANT_INLINE int8x16x2_t block32_arm_form_codes(struct quant_form32 form, const uint8_t *at)
{
    int8x16x2_t code;
    if (form.bytes) {
        EACH (i, 2) code.val[i] = vld1q_s8((const int8_t *)at + form.codes + 16 * i);
        return code;
    }
    const uint8x16_t v = vld1q_u8(at + form.codes);
    code.val[0] = arm_low_nibbles(v);
    code.val[1] = arm_high_nibbles(v);
    EACH (i, 2) {
        if (form.fifth) {
            const uint8x16_t mask = arm_mask_of_bits(quant_load32(at + form.fifth) >> 16 * i);
            code.val[i] =
                vorrq_s8(code.val[i], vreinterpretq_s8_u8(vandq_u8(mask, vdupq_n_u8(16))));
        }
        if (form.codebook)
            code.val[i] = vqtbl1q_s8(vld1q_s8(form.codebook), vreinterpretq_u8_s8(code.val[i]));
        else if (form.offset)
            code.val[i] = vsubq_s8(code.val[i], vdupq_n_s8((int8_t)form.offset));
    }
    return code;
}

QUANT_INLINE int8x16x2_t block32_arm_codes_at(const struct block32_arm_type *type,
                                              const uint8_t *at, int s)
{
    return type->codes ? type->codes(at, s) : block32_arm_form_codes(type->form, at);
}

QUANT_INLINE float32x4_t block32_arm_d(const struct block32_arm_type *type,
                                       const uint8_t *const block[4])
{
    if (!type->form.e8m0) return arm_halves(block, 0);
    float d[4];
    EACH (r, 4) d[r] = quant_e8m0(*block[r]);
    return vld1q_f32(d);
}

/* ---- One column ---- */

struct block32_arm_product {
    const struct block32_arm_type *type;
    int64_t n_blocks;
    const struct quant_act *a;
};

/* The bits of 1.5 * 2^23: with an integer below 2^22 in magnitude added, as isum is, they are that
 * number plus the integer as a float. Subtracting the number is as exact as a conversion, and
 * faster. */
enum { BLOCK32_ARM_START = 0x4b400000 };

/* The sums of four rows run on over blocks, exact modulo 2^32: no register is set for a block. */
struct block32_arm_run {
    int32x4_t sum[4], before; /* sums of lanes before the last block */
};

/* isum of four rows, s of their block, b of the column. The offset of nibbles is subtracted from
 * the sums. */
QUANT_INLINE float32x4_t block32_arm_isum(const struct block32_arm_type *type,
                                          const uint8_t *const block[4], int s,
                                          const struct quant_act *a, int64_t b,
                                          struct block32_arm_run *run)
{
    const bool subtract = !type->codes && !type->form.bytes && !type->form.codebook;
    const int8x16_t x[2] = {vld1q_s8(a->q + 32 * b), vld1q_s8(a->q + 32 * b + 16)};
    struct block32_arm_type raw = *type;
    int32_t start = BLOCK32_ARM_START;
    if (subtract) raw.form.offset = 0;
    if (subtract && type->form.offset) start -= type->form.offset * a->sum[b];
    EACH (r, 4) {
        const int8x16x2_t code = block32_arm_codes_at(&raw, block[r], s);
        run->sum[r] = arm_dot_pair(run->sum[r], code, x, subtract);
    }
    const int32x4_t now = arm_running_sums(run->sum);
    const int32x4_t bits = vaddq_s32(vsubq_s32(now, run->before), vdupq_n_s32(start));
    run->before = now;
    return vsubq_f32(vreinterpretq_f32_s32(bits),
                     vreinterpretq_f32_s32(vdupq_n_s32(BLOCK32_ARM_START)));
}

QUANT_INLINE void block32_arm_sums(const void *product, const struct quant_row_group *group,
                                   const uint8_t *row, float *sum)
{
    const struct block32_arm_product *p = product;
    const struct block32_arm_type *type = p->type;
    const size_t bytes = type->form.block_bytes;
    float32x4_t acc = vdupq_n_f32(0.0f);
    struct block32_arm_run run = {0};
    for (int64_t b = 0; b < p->n_blocks; b += type->n, row += bytes) {
        const uint8_t *block[4];
        EACH (r, 4) {
            block[r] = row + (size_t)r * group->row_stride;
            quant_group_prefetch_strided(group, block[r], bytes);
        }
        quant_group_prefetch_adjacent(group, row, (size_t)(b / type->n) * bytes, bytes);
        const float32x4_t d = block32_arm_d(type, block);
        EACH (s, type->n) {
            const float32x4_t isum = block32_arm_isum(type, block, s, p->a, b + s, &run);
            const float32x4_t scale = vmulq_n_f32(d, p->a->d[b + s]);
            if (type->form.has_min) {
                const float32x4_t t = vmulq_n_f32(arm_halves(block, 2), p->a->s[b + s]);
                acc = vaddq_f32(acc, vfmaq_f32(t, scale, isum));
            } else {
                acc = vaddq_f32(acc, vmulq_f32(scale, isum));
            }
        }
    }
    vst1q_f32(sum, acc);
}

QUANT_INLINE void block32_arm_gemv(const struct block32_arm_type *type, int64_t k,
                                   const struct quant_rows *rows, const struct quant_act *a,
                                   float *out)
{
    const struct block32_arm_product product = {type, k / 32, a};
    quant_gemv_by_groups(4, false, block32_arm_sums, &product, rows, out);
}

/* ---- Panels ---- */

QUANT_INLINE void block32_arm_unpack(const struct block32_arm_type *type, int64_t first,
                                     int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                     void *panel)
{
    arm_panel32 *to = panel;
    for (int64_t b = first; b < first + n_blocks; b++, to++)
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 4) {
            const uint8_t *block[4];
            int8x16_t low[4], high[4];
            EACH (i, 4) {
                block[i] =
                    (const uint8_t *)row[r + i] + (size_t)(b / type->n) * type->form.block_bytes;
                const int8x16x2_t code = block32_arm_codes_at(type, block[i], (int)(b % type->n));
                low[i] = code.val[0];
                high[i] = code.val[1];
            }
            arm_floats_store(block32_arm_d(type, block), r, to->d);
            arm_floats_store(type->form.has_min ? arm_halves(block, 2) : vdupq_n_f32(0.0f), r,
                             to->m);
            arm_units_store(low, r, to->q);
            arm_units_store(high, r, to->q + 256);
        }
}

/* ---- Types with long blocks ---- */

QUANT_INLINE int8x16x2_t q1_0_codes_arm(const uint8_t *block, int s)
{
    const uint32_t bits = quant_load32(block + 2 + 4 * s);
    int8x16x2_t code;
    EACH (i, 2) /* -1, or 1 where the bit is set */
        code.val[i] = vreinterpretq_s8_u8(
            vbslq_u8(arm_mask_of_bits(bits >> 16 * i), vdupq_n_u8(1), vdupq_n_u8(255)));
    return code;
}

/* Each byte has four codes, so it is repeated four times. */
QUANT_INLINE int8x16x2_t q2_0_codes_arm(const uint8_t *block, int s)
{
    const int8x16_t down = vreinterpretq_s8_u32(vdupq_n_u32(0xfafcfe00));
    const uint8x8_t v = vld1_u8(block + 2 + 8 * s), twice[2] = {vzip1_u8(v, v), vzip2_u8(v, v)};
    int8x16x2_t code;
    EACH (i, 2) {
        const uint8x16_t bytes =
            vcombine_u8(vzip1_u8(twice[i], twice[i]), vzip2_u8(twice[i], twice[i]));
        const uint8x16_t c = vandq_u8(vshlq_u8(bytes, down), vdupq_n_u8(3));
        code.val[i] = vsubq_s8(vreinterpretq_s8_u8(c), vdupq_n_s8(Q2_0_OFFSET));
    }
    return code;
}
