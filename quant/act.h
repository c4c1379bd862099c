/* quant/act.h: private to quant/: what the conversions of activations share at all levels. */
#pragma once

#include "quant/types.h"
#include <math.h>

static inline int64_t quant_act_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

enum { QUANT_ACT_INFINITY = 0x7f800000, QUANT_ACT_TINY = 27 << 23 /* 2^-100 */ };

/* The scale of a block, and the factor with which x is multiplied to get its code (0: all codes are
 * 0). largest_bits: the largest |x| as an integer. */
static inline float quant_act_scale(uint32_t largest_bits, float *factor)
{
    *factor = 0.0f;
    if (largest_bits >= QUANT_ACT_INFINITY) return quant_float_of(0x7fc00000);
    if (largest_bits < QUANT_ACT_TINY) return 0.0f;
    float d = quant_float_of(largest_bits) / 127.0f;
    *factor = 1.0f / d;
    return d;
}

/* The code of an element; factor: that of its block. */
static inline int8_t quant_act_code(float x, float factor)
{
    /* 0 times an infinite x would be NaN. */
    return factor == 0.0f ? 0 : (int8_t)lrintf(x * factor);
}
