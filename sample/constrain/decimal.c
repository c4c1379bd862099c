/* sample/constrain/decimal.c: exact decimal numbers. See sample/constrain/decimal.h. */
#include "sample/constrain/decimal.h"

/* Larger exponents are clamped to this: no number has enough digits for a difference. */
enum { EXPONENT_LIMIT = 1000000000 };

bool constrain_decimal_read(struct constrain_decimal *d, const char *text, size_t size)
{
    size_t i = 0;
    int64_t fraction = 0, exponent = 0;
    bool point = false, minus = false;
    *d = (struct constrain_decimal){0};
    if (i < size && text[i] == '-') d->negative = true, i++;
    for (; i < size && (text[i] == '.' || (text[i] >= '0' && text[i] <= '9')); i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        if (point) fraction++;
        if (d->n_digit == 0 && text[i] == '0') continue;
        if (d->n_digit == CONSTRAIN_DECIMAL_DIGITS) return false;
        d->digit[d->n_digit++] = (uint8_t)(text[i] - '0');
    }
    if (i < size && (text[i] | 32) == 'e') {
        i++;
        if (i < size && (text[i] == '-' || text[i] == '+')) minus = text[i++] == '-';
        for (; i < size && text[i] >= '0' && text[i] <= '9'; i++)
            if (exponent < EXPONENT_LIMIT) exponent = exponent * 10 + (text[i] - '0');
    }
    d->exponent = (minus ? -exponent : exponent) - fraction;
    while (d->n_digit && d->digit[d->n_digit - 1] == 0) d->n_digit--, d->exponent++;
    if (d->n_digit == 0) d->exponent = 0, d->negative = false;
    return true;
}

static int compare_size(const struct constrain_decimal *x, const struct constrain_decimal *y)
{
    int64_t tx = x->exponent + x->n_digit, ty = y->exponent + y->n_digit;
    if (!x->n_digit || !y->n_digit) return (x->n_digit > 0) - (y->n_digit > 0);
    if (tx != ty) return tx < ty ? -1 : 1;
    for (uint32_t i = 0; i < x->n_digit || i < y->n_digit; i++) {
        int a = i < x->n_digit ? x->digit[i] : 0, b = i < y->n_digit ? y->digit[i] : 0;
        if (a != b) return a < b ? -1 : 1;
    }
    return 0;
}

int constrain_decimal_compare(const struct constrain_decimal *x, const struct constrain_decimal *y)
{
    if (x->negative != y->negative) return x->negative ? -1 : 1;
    return x->negative ? compare_size(y, x) : compare_size(x, y);
}

bool constrain_decimal_is_multiple(const struct constrain_decimal *x,
                                   const struct constrain_decimal *m)
{
    uint64_t step = 0, rest = 0;
    if (x->n_digit == 0) return true;
    if (x->exponent < m->exponent) return false; /* x's last digit is below m's unit */
    for (uint32_t i = 0; i < m->n_digit; i++) step = step * 10 + m->digit[i];
    if (step == 0) return false;
    for (uint32_t i = 0; i < x->n_digit; i++)
        rest = (uint64_t)(((unsigned __int128)rest * 10 + x->digit[i]) % step);
    unsigned __int128 power = 10 % step, factor = 1 % step;
    for (uint64_t e = (uint64_t)(x->exponent - m->exponent); e; e >>= 1) {
        if (e & 1) factor = factor * power % step;
        power = power * power % step;
    }
    return (uint64_t)(factor * rest % step) == 0;
}

__int128 constrain_decimal_scaled(const struct constrain_decimal *d, bool *exact)
{
    const __int128 limit = (__int128)1000000000000000000 * 10000000000000000;
    __int128 value = 0;
    int64_t places = d->exponent + CONSTRAIN_DECIMAL_SCALE + d->n_digit; /* digits to use */
    *exact = places >= (int64_t)d->n_digit;
    for (int64_t i = 0; i < places && value < limit; i++)
        value = value * 10 + (i < (int64_t)d->n_digit ? d->digit[i] : 0);
    if (d->n_digit == 0) *exact = true, value = 0;
    return d->negative ? -value : value;
}

bool constrain_decimal_count(const struct constrain_decimal *d, uint64_t *out)
{
    if (d->negative || d->exponent < 0 || d->exponent + d->n_digit > 18) return false;
    *out = 0;
    for (uint32_t i = 0; i < d->n_digit; i++) *out = *out * 10 + d->digit[i];
    for (int64_t i = 0; i < d->exponent; i++) *out *= 10;
    return true;
}
