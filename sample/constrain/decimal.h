/* sample/constrain/decimal.h: JSON numbers compared exactly, as decimal digits. Private to sample/.
 */
#ifndef SAMPLE_CONSTRAIN_DECIMAL_H
#define SAMPLE_CONSTRAIN_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SAMPLE_DECIMAL_DIGITS = 400, SAMPLE_DECIMAL_SCALE = 9 };

/* The value sign * digits * 10^exponent; no zeros at either end; no digits: zero. */
struct sample_decimal {
    int64_t exponent;
    uint32_t n_digit;
    bool negative;
    uint8_t digit[SAMPLE_DECIMAL_DIGITS];
};
/* A JSON number's text; false when it has more digits than fit. */
bool sample_decimal_read(struct sample_decimal *d, const char *text, size_t size);
int sample_decimal_compare(const struct sample_decimal *x, const struct sample_decimal *y);
/* Whether x is a whole multiple of m (positive, at most 18 digits). */
bool sample_decimal_is_multiple(const struct sample_decimal *x, const struct sample_decimal *m);
/* The value in units of 10^-SAMPLE_DECIMAL_SCALE; *exact is false when digits were dropped
 * (towards zero). Clamped to about +-10^34. */
__int128 sample_decimal_scaled(const struct sample_decimal *d, bool *exact);
/* A small non-negative whole number (a keyword's value such as 2 or 2.0); false otherwise. */
bool sample_decimal_count(const struct sample_decimal *d, uint64_t *out);

#endif
