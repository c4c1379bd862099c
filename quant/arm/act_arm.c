/* quant/arm/act_arm.c: activations to 8-bit blocks, for all levels of 64-bit ARM. See quant/act.c.
 *
 * FCVTNS rounds to nearest even and gives 0 for NaN; the products that it converts are at most 127
 * in magnitude, except where the factor is 0. */
#include "quant/act.h"
#include "quant/arm/types_arm.h"
#include <arm_neon.h>

/* The largest |x| of n elements as an integer. */
QUANT_INLINE uint32_t largest_bits(int n, const float *x)
{
    uint32x4_t largest[4] = {vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0)};
    for (int i = 0; i < n; i += 16)
        EACH (j, 4) {
            const uint32x4_t bits = vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + i + 4 * j)));
            largest[j] = vmaxq_u32(largest[j], bits);
        }
    return vmaxvq_u32(
        vmaxq_u32(vmaxq_u32(largest[0], largest[1]), vmaxq_u32(largest[2], largest[3])));
}

/* Writes the codes of 16 elements and returns their sum. */
QUANT_INLINE int quantize16(const float *x, float factor, int8_t *q)
{
    int16x4_t code[4];
    EACH (j, 4) code[j] = vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * j), factor)));
    const int8x16_t codes = vcombine_s8(vmovn_s16(vcombine_s16(code[0], code[1])),
                                        vmovn_s16(vcombine_s16(code[2], code[3])));
    vst1q_s8(q, codes);
    return vaddlvq_s8(codes);
}

/* The same; a factor of 0 may have an infinite x, whose code is 0, too. */
QUANT_INLINE int codes16(const float *x, float factor, int8_t *q)
{
    if (factor != 0.0f) return quantize16(x, factor, q);
    memset(q, 0, 16);
    return 0;
}

static void q8_32(int64_t k, const float *x, const struct quant_act *to)
{
    for (int64_t b = 0; b < k / 32; b++, x += 32) {
        float factor;
        to->d[b] = quant_act_scale(largest_bits(32, x), &factor);
        const int sum = codes16(x, factor, to->q + 32 * b);
        to->sum[b] = (int16_t)(sum + codes16(x + 16, factor, to->q + 32 * b + 16));
        to->s[b] = to->d[b] * (float)to->sum[b];
    }
}

static void q8_256(int64_t k, const float *x, const struct quant_act *to)
{
    for (int64_t b = 0; b < k / 256; b++) {
        float factor;
        to->d[b] = quant_act_scale(largest_bits(256, x + 256 * b), &factor);
        for (int64_t i = 16 * b; i < 16 * b + 16; i++)
            to->sum[i] = (int16_t)codes16(x + 16 * i, factor, to->q + 16 * i);
    }
}

const struct quant_act_kernel quant_arm_act = {
    {[2] = q8_32, [3] = q8_256}}; /* by the form's index */
