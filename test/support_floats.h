/* test/support_floats.h: random floats of kinds for which kernels may fail. */
#pragma once

#include <stdint.h>

enum support_floats {
    SUPPORT_GAUSS,
    SUPPORT_ZERO,
    SUPPORT_ALTERNATING,
    SUPPORT_SPIKE,
    SUPPORT_NEGATIVE,
    SUPPORT_SMALL, /* the product of two of these is near the smallest normal float */
    SUPPORT_SUBNORMAL,
    SUPPORT_LARGE,
    SUPPORT_CANCEL,
    SUPPORT_MIXED,
    SUPPORT_FLOATS_COUNT
};

void support_floats_fill(uint64_t *rng, enum support_floats kind, int64_t k, float *x);
float support_floats_of_bits(uint32_t bits);
