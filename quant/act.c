/* quant/act.c: activations into the forms that weight types want: 8-bit blocks of 32 or 256, and
 * bfloat16. quant/quant.h fixes the arithmetic; scalar here is the specification, and the vector
 * kernels beside it give the same bits. */
#include "quant/types.h"
#include <math.h>

enum { BITS_INFINITY = 0x7f800000, BITS_TINY = 27 << 23 /* 2^-100 */ };

/* The block's scale, and the factor that takes x to its code (0: all codes are 0). */
static float block_scale(uint32_t largest_bits, float *factor)
{
    *factor = 0.0f;
    if (largest_bits >= BITS_INFINITY) return quant_float_of(0x7fc00000);
    if (largest_bits < BITS_TINY) return 0.0f;
    float d = quant_float_of(largest_bits) / 127.0f;
    *factor = 1.0f / d;
    return d;
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

/* Codes of n elements; returns their sum. */
static int quantize(int n, const float *x, float factor, int8_t *q)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        /* A factor of 0 must not meet an infinite x. */
        q[i] = factor == 0.0f ? 0 : (int8_t)lrintf(x[i] * factor);
        sum += q[i];
    }
    return sum;
}

static void q8_32_scalar(int64_t k, const float *x, int8_t *q, float *d, float *s, int16_t *sum)
{
    for (int64_t b = 0; b < k / 32; b++) {
        float factor;
        d[b] = block_scale(largest_bits(32, x + 32 * b), &factor);
        sum[b] = (int16_t)quantize(32, x + 32 * b, factor, q + 32 * b);
        s[b] = d[b] * (float)sum[b];
    }
}

static void q8_256_scalar(int64_t k, const float *x, int8_t *q, float *d, int16_t *sum)
{
    for (int64_t b = 0; b < k / 256; b++) {
        float factor;
        d[b] = block_scale(largest_bits(256, x + 256 * b), &factor);
        for (int64_t i = 16 * b; i < 16 * b + 16; i++)
            sum[i] = (int16_t)quantize(16, x + 16 * i, factor, q + 16 * i);
    }
}

static void bf16_scalar(int64_t k, const float *x, uint16_t *out)
{
    for (int64_t i = 0; i < k; i++) out[i] = quant_f32_to_bf16(x[i]);
}

const struct quant_act_kernel quant_act_kernel[QUANT_LEVEL_COUNT] = {
    [QUANT_SCALAR] = {.q8_32 = q8_32_scalar, .q8_256 = q8_256_scalar, .bf16 = bf16_scalar},
};
