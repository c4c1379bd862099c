/* test/support_floats.c: see the header. */
#include "test/support_floats.h"

#include "test/support_random.h"
#include <math.h>
#include <string.h>

float support_floats_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float one_float(uint64_t *rng, enum support_floats kind, int64_t i)
{
    float sign = i % 2 ? -1.0f : 1.0f;
    switch (kind) {
    case SUPPORT_GAUSS:
        return support_random_gauss(rng);
    case SUPPORT_ZERO:
        return sign * 0.0f;
    case SUPPORT_ALTERNATING:
        return sign;
    case SUPPORT_SPIKE:
        return support_random_below(rng, 64) == 0 ? 1000.0f : 0.001f * support_random_gauss(rng);
    case SUPPORT_NEGATIVE:
        return -fabsf(support_random_gauss(rng));
    case SUPPORT_SMALL:
        return ldexpf(sign * (1.0f + (float)support_random_below(rng, 128) / 128.0f),
                      -60 - (int)support_random_below(rng, 8));
    case SUPPORT_SUBNORMAL:
        return support_floats_of_bits(support_random_below(rng, 1 << 24) |
                                      support_random_below(rng, 2) << 31);
    case SUPPORT_LARGE:
        return 60000.0f * support_random_gauss(rng);
    case SUPPORT_CANCEL:
        return sign * (float)(1 << (i / 2 % 24)) * (1.0f + 0x1p-20f * support_random_gauss(rng));
    case SUPPORT_MIXED:
        return ldexpf(support_random_gauss(rng), (int)support_random_below(rng, 60) - 30);
    case SUPPORT_FLOATS_COUNT:
        break;
    }
    return 0.0f;
}

void support_floats_fill(uint64_t *rng, enum support_floats kind, int64_t k, float *x)
{
    for (int64_t i = 0; i < k; i++) x[i] = one_float(rng, kind, i);
}
