/* quant/encode/e2m1.h: private to quant/: encoding to four-bit floats (E2M1, doubled to be
 * integers). Plain loops that compilers vectorize. */
#pragma once

#include "quant/encode/fit.h"

/* Code 8 ("minus zero") is 0. */
static const int8_t quant_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Returns the code, without its sign, for size = |x| / d, which is the number of midpoints below
 * it; *value is the code's value. */
QUANT_INLINE float quant_e2m1_count(float size, float *value)
{
    static const float middle[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};
    static const float step[7] = {1, 1, 1, 1, 2, 2, 4};
    float count = 0.0f;
    *value = 0.0f;
    EACH (j, 7) {
        count += size > middle[j] ? 1.0f : 0.0f;
        *value += size > middle[j] ? step[j] : 0.0f;
    }
    return count;
}

/* The weighted squared error of n elements, a multiple of 8, for the scale d. */
QUANT_INLINE float quant_e2m1_error(int n, const float *x, const float *w, float d)
{
    const float inverse = quant_fit_inverse(d);
    float lane[QUANT_FIT_LANES] = {0};
    for (int i = 0; i < n; i += QUANT_FIT_LANES) {
        for (int l = 0; l < QUANT_FIT_LANES; l++) {
            float value;
            quant_e2m1_count(fabsf(x[i + l]) * inverse, &value);
            const float off = fabsf(x[i + l]) - d * value;
            lane[l] += w[i + l] * off * off;
        }
    }
    return quant_fit_sum(lane);
}

/* Writes the codes of n elements for the scale d. */
QUANT_INLINE void quant_e2m1_codes(int n, const float *x, float d, uint8_t *code)
{
    const float inverse = quant_fit_inverse(d);
    float signed_code[32]; /* maximum of n */
    for (int i = 0; i < n; i++) {
        float value;
        const float count = quant_e2m1_count(fabsf(x[i]) * inverse, &value);
        signed_code[i] = x[i] < 0.0f && count > 0.0f ? count + 8.0f : count;
    }
    for (int i = 0; i < n; i++) code[i] = (uint8_t)(int)signed_code[i];
}
