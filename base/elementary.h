/* base/elementary.h: functions of doubles whose bits do not depend on the C library.
 *
 * They use only +, -, *, / of IEEE doubles and fmod, which is exact, in a fixed order, so that the
 * result is the same on every system. Errors are below one unit in the last place, of base_pow
 * below 2 if |exponent| <= 4, and of base_exp and base_log below 4. */
#pragma once

double base_exp(double x); /* 0 below the normal numbers (x <= -708), infinity above 709 */
double base_log(double x); /* -infinity for 0 and subnormal numbers */
/* Returns base^exponent for base >= 0; 0^0 is 1. Limits are those of base_exp. */
double base_pow(double base, double exponent);
/* NaN if x is not finite. From 2^29 on, x is first reduced by the double that is nearest to 2 pi.
 */
double base_sin(double x);
double base_cos(double x);
