/* sample/exp.c: exp, log and pow by polynomials. See exp.h. */
#include "sample/exp.h"
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* ln(2) as a sum of two numbers; the product of the first and a whole number below 2^20 is
 * exact. */
static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;

/* exp(x) = 2^n exp(f), |f| <= ln(2)/2, with the Taylor polynomial of degree 13 (truncation below
 * 2^-58 of the result). */
double sample_exp(double x)
{
    static const double inverse_factorial[14] = {1.0,
                                                 1.0,
                                                 1.0 / 2,
                                                 1.0 / 6,
                                                 1.0 / 24,
                                                 1.0 / 120,
                                                 1.0 / 720,
                                                 1.0 / 5040,
                                                 1.0 / 40320,
                                                 1.0 / 362880,
                                                 1.0 / 3628800,
                                                 1.0 / 39916800,
                                                 1.0 / 479001600,
                                                 1.0 / 6227020800};
    if (!(x > -708.0)) return 0.0; /* too small to change any sum */
    if (x > 709.0) return INFINITY;
    int64_t n = (int64_t)(x * 0x1.71547652b82fep+0 + (x < 0 ? -0.5 : 0.5)); /* nearest */
    double f = (x - (double)n * ln2_high) - (double)n * ln2_low;
    double sum = inverse_factorial[13];
    for (int i = 12; i >= 0; i--) sum = sum * f + inverse_factorial[i];
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/* log(2^e m) = e ln(2) + 2 artanh(s), s = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt(2)): the series
 * s + s^3/3 + ... + s^21/21, |s| < 0.172 (relative truncation error below 2^-60). */
double sample_log(double x)
{
    if (!(x >= DBL_MIN)) return -INFINITY;
    if (x > DBL_MAX) return INFINITY;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffff) | 0x3ff0000000000000;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m >= 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0), square = s * s, sum = 0.0;
    for (int i = 21; i >= 3; i -= 2) sum = (sum + 1.0 / i) * square;
    return (double)e * ln2_high + (2.0 * s + (2.0 * s * sum + (double)e * ln2_low));
}

double sample_pow(double base, double exponent)
{
    if (exponent == 0.0) return 1.0;
    return sample_exp(exponent * sample_log(base));
}
