/* quant/act.c: the activation forms, one row each, and the conversion of floats to them: 8-bit
 * blocks of 32 or 256, and bfloat16. quant/quant.h defines the arithmetic; the scalar functions are
 * the specification, and the vector kernels give the same bits. */
#include "quant/act.h"
#include "quant/half.h"

const struct quant_act_form quant_act_f32 = {
    .name = "f32",
    .index = 0,
    .layout = QUANT_LAYOUT_F32,
    .block_len = 1,
    .element_bytes = 4,
    .rounded = 1,
    .element = &quant_type_f32,
};
const struct quant_act_form quant_act_bf16 = {
    .name = "bf16",
    .index = 1,
    .layout = QUANT_LAYOUT_BF16,
    .block_len = 1,
    .element_bytes = 2,
    .rounded = 32,
    .element = &quant_type_bf16,
};
const struct quant_act_form quant_act_q8_32 = {
    .name = "q8_32",
    .index = 2,
    .layout = QUANT_LAYOUT_32,
    .block_len = 32,
    .sum_len = 32,
    .scaled_sums = true,
    .element_bytes = 1,
    .padding = 64,
    .rounded = 1,
};
const struct quant_act_form quant_act_q8_256 = {
    .name = "q8_256",
    .index = 3,
    .layout = QUANT_LAYOUT_256,
    .block_len = 256,
    .sum_len = 16,
    .element_bytes = 1,
    .padding = 64,
    .rounded = 1,
};

const struct quant_act_form *const quant_act_forms[QUANT_ACT_FORMS] = {
    &quant_act_f32,
    &quant_act_bf16,
    &quant_act_q8_32,
    &quant_act_q8_256,
};

struct quant_act_parts quant_act_parts(const struct quant_act_form *form, int64_t k)
{
    const int64_t elements =
        quant_act_round_up(k, form->rounded) * form->element_bytes + form->padding;
    const int64_t scales = form->sum_len ? quant_act_round_up(k / form->block_len * 4, 64) : 0;
    struct quant_act_parts parts = {.d = quant_act_round_up(elements, 64)};
    parts.s = parts.d + scales;
    parts.sum = parts.s + (form->scaled_sums ? scales : 0);
    parts.bytes = parts.sum + (form->sum_len ? quant_act_round_up(k / form->sum_len * 2, 64) : 0);
    return parts;
}

struct quant_act quant_act_at(const struct quant_act_parts *parts, void *column)
{
    char *at = column;
    return (struct quant_act){.q = column,
                              .d = (float *)(void *)(at + parts->d),
                              .s = (float *)(void *)(at + parts->s),
                              .sum = (int16_t *)(void *)(at + parts->sum)};
}

static uint32_t largest_bits(int n, const float *x)
{
    uint32_t largest = 0;
    for (int i = 0; i < n; i++) {
        uint32_t bits = quant_bits_of(x[i]) & 0x7fffffff;
        if (bits > largest) largest = bits;
    }
    return largest;
}

/* Writes the codes of n elements and returns their sum. */
static int quantize(int n, const float *x, float factor, int8_t *q)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        q[i] = quant_act_code(x[i], factor);
        sum += q[i];
    }
    return sum;
}

static void f32_scalar(int64_t k, const float *x, const struct quant_act *to)
{
    memcpy(to->f32, x, (size_t)k * sizeof *x);
}

static void q8_32_scalar(int64_t k, const float *x, const struct quant_act *to)
{
    for (int64_t b = 0; b < k / 32; b++) {
        float factor;
        to->d[b] = quant_act_scale(largest_bits(32, x + 32 * b), &factor);
        to->sum[b] = (int16_t)quantize(32, x + 32 * b, factor, to->q + 32 * b);
        to->s[b] = to->d[b] * (float)to->sum[b];
    }
}

static void q8_256_scalar(int64_t k, const float *x, const struct quant_act *to)
{
    for (int64_t b = 0; b < k / 256; b++) {
        float factor;
        to->d[b] = quant_act_scale(largest_bits(256, x + 256 * b), &factor);
        for (int64_t i = 16 * b; i < 16 * b + 16; i++)
            to->sum[i] = (int16_t)quantize(16, x + 16 * i, factor, to->q + 16 * i);
    }
}

static void bf16_scalar(int64_t k, const float *x, const struct quant_act *to)
{
    const int64_t end = quant_act_round_up(k, quant_act_bf16.rounded);
    for (int64_t i = 0; i < k; i++) to->bf16[i] = quant_float_to_bfloat(x[i]);
    for (int64_t i = k; i < end; i++) to->bf16[i] = 0;
}

const struct quant_act_kernel quant_act_scalar = {
    {f32_scalar, bf16_scalar, q8_32_scalar, q8_256_scalar}};
