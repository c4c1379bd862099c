/* sample/exp.h: exponentials and logarithms whose bits do not depend on the C library. Private to
 * sample/.
 *
 * The functions use only +, -, *, / of IEEE doubles in a fixed order, so the result is the same on
 * every machine. Errors are below 4 units in the last place. */
#ifndef SAMPLE_EXP_H
#define SAMPLE_EXP_H

double sample_exp(double x); /* 0 below the normal numbers (x <= -708), infinity above 709 */
double sample_log(double x); /* -infinity for 0 and subnormal numbers */
/* Returns base^exponent for base >= 0; 0^0 is 1. */
double sample_pow(double base, double exponent);

#endif
