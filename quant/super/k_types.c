/* quant/super/k_types.c: the encoders, scalar kernels and rows of the super-block types that have a
 * code for each element, or five ternary codes in a byte. Layouts: q4_k.h and the other headers. */
#include "quant/encode/fit.h"
#include "quant/super/iq4_xs.h"
#include "quant/super/q2_k.h"
#include "quant/super/q3_k.h"
#include "quant/super/q4_k.h"
#include "quant/super/q5_k.h"
#include "quant/super/q6_k.h"
#include "quant/super/q8_k.h"
#include "quant/super/tq1_0.h"
#include "quant/super/tq2_0.h"

static const struct quant_fit_min_form q2_k_fit = {QUANT_FIT_BOUNDED, .max_code = 3,
                                                   .max_scale = 15};

static void q2_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q2_k_block *out = block;
    out->d = fit->d;
    out->dmin = fit->dmin;
    for (int s = 0; s < 16; s++) out->scale[s] = (uint8_t)(fit->scale[s] | fit->min[s] << 4);
    for (int i = 0; i < SUPER_LEN; i++)
        out->q[i / 128 * 32 + i % 32] |= (uint8_t)(fit->q[i] << i / 32 % 4 * 2);
}

SUPER_FIT_ENCODE(q2_k, .minima = &q2_k_fit)
QUANT_SUPER_TYPE(q2_k, Q2_K)

static void q3_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q3_k_block *out = block;
    out->d = fit->d;
    for (int s = 0; s < 16; s++) {
        int scale = fit->scale[s] + 32;
        out->scale[s % 8] |= (uint8_t)((scale & 15) << s / 8 * 4);
        out->scale[8 + s % 4] |= (uint8_t)(scale >> 4 << s / 4 * 2);
    }
    for (int i = 0; i < SUPER_LEN; i++) {
        out->q[i / 128 * 32 + i % 32] |= (uint8_t)((fit->q[i] & 3) << i / 32 % 4 * 2);
        out->high[i % 32] |= (uint8_t)(fit->q[i] >> 2 << i / 32);
    }
}

static const struct quant_fit_grid q3_k_grid = {
    .low = -4, .high = 3, .n_trials = 7, .first = -0.9f, .step = 0.3f};
SUPER_FIT_ENCODE(q3_k, .grid = &q3_k_grid, .min_scale = -32)
QUANT_SUPER_TYPE(q3_k, Q3_K)

static const struct quant_fit_min_form q4_k_fit = {QUANT_FIT_BOUNDED, .max_code = 15,
                                                   .max_scale = 63};

static void q4_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q4_k_block *out = block;
    out->d = fit->d;
    out->dmin = fit->dmin;
    k_scales_pack(fit->scale, fit->min, out->scale);
    for (int i = 0; i < 128; i++) {
        const uint8_t *q = fit->q + i / 32 * 64 + i % 32;
        out->q[i] = (uint8_t)(q[0] | q[32] << 4);
    }
}

SUPER_FIT_ENCODE(q4_k, .minima = &q4_k_fit)
QUANT_SUPER_TYPE(q4_k, Q4_K)

static const struct quant_fit_min_form q5_k_fit = {QUANT_FIT_BOUNDED, .max_code = 31,
                                                   .max_scale = 63};

static void q5_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q5_k_block *out = block;
    out->d = fit->d;
    out->dmin = fit->dmin;
    k_scales_pack(fit->scale, fit->min, out->scale);
    for (int i = 0; i < SUPER_LEN; i++) {
        int s = i / 32, l = i % 32;
        out->q[s / 2 * 32 + l] |= (uint8_t)((fit->q[i] & 15) << s % 2 * 4);
        out->high[l] |= (uint8_t)(fit->q[i] >> 4 << s);
    }
}

SUPER_FIT_ENCODE(q5_k, .minima = &q5_k_fit)
QUANT_SUPER_TYPE(q5_k, Q5_K)

static void q6_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q6_k_block *out = block;
    out->d = fit->d;
    for (int s = 0; s < 16; s++) out->scale[s] = (int8_t)fit->scale[s];
    for (int i = 0; i < SUPER_LEN; i++) {
        int h = i / 128, g = i / 32 % 4, l = i % 32;
        out->low[64 * h + g % 2 * 32 + l] |= (uint8_t)((fit->q[i] & 15) << g / 2 * 4);
        out->high[32 * h + l] |= (uint8_t)(fit->q[i] >> 4 << 2 * g);
    }
}

static const struct quant_fit_grid q6_k_grid = {
    .low = -32, .high = 31, .n_trials = 7, .first = -0.9f, .step = 0.3f};
SUPER_FIT_ENCODE(q6_k, .grid = &q6_k_grid, .min_scale = -128)
QUANT_SUPER_TYPE(q6_k, Q6_K)

static void q8_k_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    (void)search;
    (void)importance;
    struct q8_k_block *out = row;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, in += SUPER_LEN, out++) {
        uint32_t largest = 0;
        for (int i = 0; i < SUPER_LEN; i++) {
            const uint32_t bits = quant_bits_of(in[i]) & 0x7fffffff;
            largest = bits > largest ? bits : largest;
        }
        memset(out, 0, sizeof *out);
        out->d = largest < 0x7f800000 ? quant_float_of(largest) / 127.0f : NAN;
        for (int i = 0; i < SUPER_LEN && out->d > 0.0f; i++) {
            out->q[i] = (int8_t)quant_fit_integer(in[i] / out->d, -127.0f, 127.0f);
            out->sum[i / 16] = (int16_t)(out->sum[i / 16] + out->q[i]);
        }
    }
}

QUANT_SUPER_TYPE(q8_k, Q8_K)

static void iq4_xs_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq4_xs_block *out = block;
    out->d = fit->d;
    for (int s = 0; s < 8; s++) {
        int scale = fit->scale[s] + 32;
        out->scale_low[s / 2] |= (uint8_t)((scale & 15) << s % 2 * 4);
        out->scale_high |= (uint16_t)(scale >> 4 << 2 * s);
    }
    for (int i = 0; i < 128; i++) {
        const uint8_t *q = fit->q + i / 16 * 32 + i % 16;
        out->q[i] = (uint8_t)(q[0] | q[16] << 4);
    }
}

SUPER_FIT_ENCODE(iq4_xs, .grid = &quant_fit_iq4, .min_scale = -32)
QUANT_SUPER_TYPE(iq4_xs, IQ4_XS)

/* The smallest byte with the given n digits, which are codes `stride` elements apart. */
QUANT_INLINE uint8_t byte_of(const uint8_t *code, int n, int stride)
{
    int number = 0;
    for (int i = 0; i < 5; i++) number = 3 * number + (i < n ? code[i * stride] : 0);
    return (uint8_t)((number * 256 + 242) / 243);
}

QUANT_INLINE void tq1_0_pack(const uint8_t *code, uint16_t d, uint8_t *block)
{
    struct tq1_0_block *out = (struct tq1_0_block *)(void *)block;
    for (int i = 0; i < 32; i++) out->q[i] = byte_of(code + i, 5, 32);
    for (int i = 0; i < 16; i++) out->q[32 + i] = byte_of(code + 160 + i, 5, 16);
    for (int i = 0; i < 4; i++) out->high[i] = byte_of(code + 240 + i, 4, 4);
    out->d = d;
}

static void tq1_0_encode(const struct quant_search *search, int64_t k, const float *in,
                         const float *importance, void *row)
{
    quant_fit_encode(search->fit, &quant_fit_ternary, SUPER_LEN, sizeof(struct tq1_0_block),
                     tq1_0_pack, k, in, importance, row);
}

QUANT_SUPER_TYPE(tq1_0, TQ1_0)

QUANT_INLINE void tq2_0_pack(const uint8_t *code, uint16_t d, uint8_t *block)
{
    struct tq2_0_block *out = (struct tq2_0_block *)(void *)block;
    for (int i = 0; i < 64; i++, code += i == 32 ? 96 : 0)
        out->q[i] = (uint8_t)(code[i] | code[i + 32] << 2 | code[i + 64] << 4 | code[i + 96] << 6);
    out->d = d;
}

static void tq2_0_encode(const struct quant_search *search, int64_t k, const float *in,
                         const float *importance, void *row)
{
    quant_fit_encode(search->fit, &quant_fit_ternary, SUPER_LEN, sizeof(struct tq2_0_block),
                     tq2_0_pack, k, in, importance, row);
}

QUANT_SUPER_TYPE(tq2_0, TQ2_0)
