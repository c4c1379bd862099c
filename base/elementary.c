/* base/elementary.c: elementary functions by polynomials. See elementary.h. */
#include "base/elementary.h"
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* ln(2) as a sum of two numbers; the product of the first and a whole number below 2^20 is
 * exact. */
static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;

static const double inverse_factorial[19] = {1.0,
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
                                             1.0 / 6227020800,
                                             1.0 / 87178291200,
                                             1.0 / 1307674368000,
                                             1.0 / 20922789888000,
                                             1.0 / 355687428096000,
                                             1.0 / 6402373705728000};

static int64_t nearest(double x)
{
    return (int64_t)(x + (x < 0 ? -0.5 : 0.5));
}

/* A number as high + low, with twice the bits of a double. */
struct double_double {
    double high, low;
};

/* high + low, |high| >= |low|. */
static struct double_double sum_of(double high, double low)
{
    const double sum = high + low;
    return (struct double_double){sum, (high - sum) + low};
}

/* a * b: each factor is divided into 26 and 27 bits, whose products are exact. |a|, |b| < 2^990. */
static struct double_double product_of(double a, double b)
{
    const double big = 134217729.0, high_a = big * a - (big * a - a), low_a = a - high_a;
    const double high_b = big * b - (big * b - b), low_b = b - high_b, product = a * b;
    return (struct double_double){
        product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b};
}

/* exp(f), |f| <= ln(2)/2, is 1 + f + f^2 tail: the Taylor polynomial of degree 13 (truncation below
 * 2^-58 of the result). */
static double exp_tail(double f)
{
    double sum = inverse_factorial[13];
    for (int i = 12; i >= 2; i--) sum = sum * f + inverse_factorial[i];
    return sum;
}

static double power_of_two(int64_t n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* exp(x) = 2^n exp(f). */
double base_exp(double x)
{
    if (!(x > -708.0)) return 0.0; /* too small to change any sum */
    if (x > 709.0) return INFINITY;
    const int64_t n = nearest(x * 0x1.71547652b82fep+0);
    const double f = (x - (double)n * ln2_high) - (double)n * ln2_low;
    return ((exp_tail(f) * f + 1.0) * f + 1.0) * power_of_two(n);
}

/* x > 0 is 2^e m, m in [sqrt(1/2), sqrt(2)). */
static double mantissa_of(double x, int *e)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffff) | 0x3ff0000000000000;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m < 0x1.6a09e667f3bcdp+0) return m;
    *e += 1;
    return 0.5 * m;
}

/* log(m) = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172, is 2 s (1 + tail): the series s^2/3 +
 * ... + s^20/21 (relative truncation error below 2^-60). */
static double log_tail(double s)
{
    const double square = s * s;
    double sum = 0.0;
    for (int i = 21; i >= 3; i -= 2) sum = (sum + 1.0 / i) * square;
    return sum;
}

double base_log(double x)
{
    if (!(x >= DBL_MIN)) return -INFINITY;
    if (x > DBL_MAX) return INFINITY;
    int e;
    const double m = mantissa_of(x, &e), s = (m - 1.0) / (m + 1.0);
    return (double)e * ln2_high + (2.0 * s + (2.0 * s * log_tail(s) + (double)e * ln2_low));
}

/* log(x) with some bits more than a double: the remainder of the division is divided as well. */
static struct double_double log_pair(double x)
{
    int e;
    const double m = mantissa_of(x, &e), up = m - 1.0;
    const struct double_double down = sum_of(m, 1.0);
    const double s = up / down.high;
    const struct double_double back = product_of(s, down.high);
    const double rest = (((up - back.high) - back.low) - s * down.low) / down.high;
    const double low = 2.0 * rest + (2.0 * s * log_tail(s) + (double)e * ln2_low);
    const double high = (double)e * ln2_high;
    const struct double_double sum = e != 0 ? sum_of(high, 2.0 * s) : sum_of(2.0 * s, 0.0);
    return sum_of(sum.high, sum.low + low);
}

double base_pow(double base, double exponent)
{
    if (exponent == 0.0) return 1.0;
    const double about = exponent * base_log(base);
    if (!(about > -708.0)) return 0.0;
    if (about > 709.0) return INFINITY;
    const struct double_double log = log_pair(base);
    struct double_double x = product_of(exponent, log.high);
    x.low += exponent * log.low;
    const int64_t n = nearest(x.high * 0x1.71547652b82fep+0);
    const struct double_double f =
        sum_of(x.high - (double)n * ln2_high, x.low - (double)n * ln2_low);
    const struct double_double sum = sum_of(1.0, f.high);
    const double low = sum.low + (f.high * f.high * exp_tail(f.high) + f.low);
    return (sum.high + low) * power_of_two(n);
}

/* ---- Sine and cosine ---- */

/* x - n pi/2 with the nearest n, whose lower bits are the quadrant. The first two parts of pi/2
 * have 24 bits: their products are exact. */
static struct double_double reduced(double x, int64_t *n)
{
    if (!(fabs(x) < 0x1p29)) x = fmod(x, 0x1.921fb54442d18p+2);
    *n = isfinite(x) ? nearest(x * 0x1.45f306dc9c883p-1) : 0;
    const double times = (double)*n, a = x - times * 0x1.921fb4p+0, b = times * 0x1.4442dp-24;
    const double c = a - b;
    return sum_of(c, ((a - c) - b) - times * 0x1.8469898cc5170p-48);
}

/* Taylor polynomials for |x| <= pi/4, to x^17 and x^18 (truncation below 2^-63). */
static double sine_near_zero(struct double_double x)
{
    const double square = x.high * x.high;
    double sum = inverse_factorial[17];
    for (int i = 15; i >= 3; i -= 2) sum = inverse_factorial[i] - sum * square;
    return x.high + (x.low - sum * square * x.high);
}

static double cosine_near_zero(struct double_double x)
{
    const double square = x.high * x.high;
    double sum = inverse_factorial[18];
    for (int i = 16; i >= 4; i -= 2) sum = inverse_factorial[i] - sum * square;
    const struct double_double first = sum_of(1.0, -0.5 * square);
    return first.high + (first.low + (sum * square * square - x.high * x.low));
}

/* The sine of x + quarter * pi/2. */
static double sine_of(double x, int quarter)
{
    int64_t n;
    const struct double_double y = reduced(x, &n);
    n += quarter;
    const double sine = n % 2 ? cosine_near_zero(y) : sine_near_zero(y);
    return n & 2 ? -sine : sine;
}

double base_sin(double x)
{
    return sine_of(x, 0);
}

double base_cos(double x)
{
    return sine_of(x, 1);
}
