/* quant/float/bf16.h: private to quant/: the multiply-add of the products of BF16, of which
 * quant/float/bf16.c has the reasons. */
#pragma once

#include <float.h>
#include <math.h>
#include <stdbool.h>

static inline float bf16_flush(float f)
{
    return fabsf(f) < FLT_MIN ? copysignf(0.0f, f) : f;
}

/* Given that w * x + acc rounds to +-FLT_MIN as a float: whether it would be smaller than FLT_MIN
 * if the exponent had no bound, that is, whether its exact magnitude is below FLT_MIN * (1 -
 * 2^-25). The product is exact in double; the exact sum is sum + error (Knuth's TwoSum). */
static inline bool bf16_tiny_after_rounding(float w, float x, float acc)
{
    const double limit = (double)FLT_MIN * (1.0 - 0x1p-25);
    double product = (double)w * (double)x;
    double sum = product + (double)acc;
    double part = sum - product;
    double error = (product - (sum - part)) + ((double)acc - part);
    if (sum < 0.0) {
        sum = -sum;
        error = -error;
    }
    return sum < limit || (sum == limit && error < 0.0);
}

/* One of the two multiply-adds of the instruction; acc is not subnormal. */
static inline float bf16_step(float w, float x, float acc)
{
    w = bf16_flush(w);
    x = bf16_flush(x);
    float sum = fmaf(w, x, acc);
    if (fabsf(sum) == FLT_MIN && bf16_tiny_after_rounding(w, x, acc)) return copysignf(0.0f, sum);
    return bf16_flush(sum);
}
