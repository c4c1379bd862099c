/* engine/alibi.h: the slopes of ALiBi ("Train Short, Test Long", Press et al. 2022), in double,
 * rounded once. Only place 0 computes slopes. */
#pragma once

#include "base/elementary.h"
#include <stdint.h>

/* The slope of a head; with n the largest power of two <= n_heads: 2^(-max (head + 1) / n) for head
 * < n, otherwise 2^(-max (2 (head - n) + 1) / (2 n)). */
static inline float engine_alibi_slope(float max, int64_t head, int64_t n_heads)
{
    int64_t n = 1;
    while (n * 2 <= n_heads) n *= 2;
    const double steps = head < n ? (double)(head + 1) : (double)(2 * (head - n) + 1) / 2;
    return (float)base_pow(2.0, -(double)max * steps / (double)n);
}
