/* sample/constrain/decimal.h: exact arithmetic on JSON numbers as decimal digits. Private to
 * sample/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONSTRAIN_DECIMAL_DIGITS = 400, CONSTRAIN_DECIMAL_SCALE = 9 };

/* The value sign * digits * 10^exponent, without zeros at either end of the digits; no digits:
 * zero. */
struct constrain_decimal {
    int64_t exponent;
    uint32_t n_digit;
    bool negative;
    uint8_t digit[CONSTRAIN_DECIMAL_DIGITS];
};
/* Reads the text of a JSON number; false if it has more digits than fit. */
bool constrain_decimal_read(struct constrain_decimal *d, const char *text, size_t size);
int constrain_decimal_compare(const struct constrain_decimal *x, const struct constrain_decimal *y);
/* Returns whether x is an integer multiple of m (positive, at most 18 digits). */
bool constrain_decimal_is_multiple(const struct constrain_decimal *x,
                                   const struct constrain_decimal *m);
/* Returns the value in units of 10^-CONSTRAIN_DECIMAL_SCALE, clamped to about +-10^34. *exact is
 * false if digits were dropped, towards zero. */
__int128 constrain_decimal_scaled(const struct constrain_decimal *d, bool *exact);
/* Reads the value of a keyword as a small non-negative integer (such as 2 or 2.0); false if it is
 * none. */
bool constrain_decimal_count(const struct constrain_decimal *d, uint64_t *out);
