/* sample/constrain/schema_number.c: JSON numbers. A number under a condition keeps its text as a
 * chain of frames, one per byte, and is compared exactly at its end. During generation each byte
 * must leave some number within reach that satisfies the condition. See schema_run.h. */
#include "sample/constrain/schema_run.h"

enum { BEGIN, MINUS, ZERO, INT, DOT, FRAC, EXP, EXP_SIGN, EXP_INT, EXP_INTS, DEAD };
/* Limits for generation: bytes, digits before the point, digits of a number with a point (as many
 * as every reader represents exactly). */
enum { MAX_TEXT = 1200, GENERATE_TEXT = 32, INT_DIGITS = 16, DIGITS = 15 };

static uint32_t next_phase(uint32_t phase, uint8_t byte)
{
    bool digit = byte >= '0' && byte <= '9';
    switch (phase) {
    case BEGIN:
    case MINUS:
        if (byte == '-' && phase == BEGIN) return MINUS;
        return byte == '0' ? ZERO : digit ? INT : DEAD;
    case ZERO:
    case INT:
    case FRAC:
        if (digit) return phase == ZERO ? DEAD : phase;
        if (byte == '.') return phase == FRAC ? DEAD : DOT;
        return (byte | 32) == 'e' ? EXP : DEAD;
    case DOT:
        return digit ? FRAC : DEAD;
    case EXP:
        if (byte == '+' || byte == '-') return EXP_SIGN;
        return digit ? EXP_INT : DEAD;
    case EXP_SIGN:
        return digit ? EXP_INT : DEAD;
    default:
        return digit ? EXP_INTS : DEAD;
    }
}

/* Returns whether the number may end here. */
static bool is_whole(uint32_t phase)
{
    return phase == ZERO || phase == INT || phase == FRAC || phase == EXP_INT || phase == EXP_INTS;
}

/* Copies the number's bytes to text[] and returns their number; *below becomes the stack under
 * it. */
static uint32_t collect(const struct constrain_state *s, const struct constrain_frame *f,
                        char text[MAX_TEXT], uint32_t *below)
{
    uint32_t size = f->number.size;
    for (uint32_t i = size; i-- > 0; f = &s->frame[f->next]) text[i] = (char)f->number.last;
    *below = f->next;
    return size;
}

bool constrain_number_accepts(const struct constrain_schema *schema,
                              const struct constrain_number *c, const struct constrain_decimal *d)
{
    if (c->has_min) {
        int order = constrain_decimal_compare(d, &c->min);
        if (order < 0 || (order == 0 && c->open_min)) return false;
    }
    if (c->has_max) {
        int order = constrain_decimal_compare(d, &c->max);
        if (order > 0 || (order == 0 && c->open_max)) return false;
    }
    for (uint32_t i = 0; i < c->n_multiple; i++)
        if (!constrain_decimal_is_multiple(d, &schema->step[c->multiple + i])) return false;
    for (uint32_t i = 0; i < c->n_not_multiple; i++)
        if (constrain_decimal_is_multiple(d, &schema->step[c->not_multiple + i])) return false;
    return true;
}

bool constrain_number_enter(struct constrain_state *s, uint32_t stack)
{
    const struct constrain_schema *schema = s->constraint->schema;
    const struct constrain_frame *f = &s->frame[stack];
    const struct constrain_number *c = &schema->number[f->index];
    char text[MAX_TEXT];
    struct constrain_decimal d;
    uint32_t below = f->next;
    if (!is_whole(f->number.phase)) return true;
    if (c->bounded) {
        uint32_t size = collect(s, &s->frame[stack], text, &below);
        if (!constrain_decimal_read(&d, text, size)) {
            constrain_state_fail(s, BASE_FAILED, "a number has too many digits to be compared");
            return false;
        }
        if (!constrain_number_accepts(schema, c, &d)) return true;
    }
    constrain_state_emit(s, below);
    return true;
}

/* -- when generating: whether the number can still be completed -- */

/* The digits so far, as one integer, and how many of them are before and after the point. */
struct digits {
    __int128 value;
    uint32_t ints, fractions;
    bool negative, point;
};

static struct digits read_digits(const char *text, uint32_t size)
{
    struct digits d = {.negative = size && text[0] == '-'};
    for (uint32_t i = d.negative; i < size; i++) {
        if (text[i] == '.') {
            d.point = true;
            continue;
        }
        d.value = d.value * 10 + (text[i] - '0');
        *(d.point ? &d.fractions : &d.ints) += 1;
        if (d.ints > INT_DIGITS || d.fractions > CONSTRAIN_DECIMAL_SCALE) break;
    }
    return d;
}

/* Returns the unit of the last digit after the point, in 1/10^9, if `ints` digits are before it. */
static __int128 last_digit(uint32_t ints)
{
    __int128 step = CONSTRAIN_NUMBER_UNIT;
    for (uint32_t i = ints; i < DIGITS && step > 1; i++) step /= 10;
    return step;
}

static bool is_avoided(const struct constrain_number *c, __int128 x)
{
    for (uint32_t i = 0; i < c->n_avoid; i++)
        if (x % c->avoid[i] == 0) return true;
    return false;
}

/* Returns whether a number that begins with `value`, continues by less than `span` in steps of
 * `step` and has this sign can satisfy the condition; all in 1/10^9. */
static bool reaches(const struct constrain_number *c, __int128 value, __int128 span, __int128 step,
                    bool negative)
{
    enum { POINTS = 40 }; /* among so many adjacent values one need not be avoided, or all must */
    __int128 lo = negative ? -(value + span - step) : value;
    __int128 hi = negative ? -value : value + span - step;
    if (lo < c->lo) lo = c->lo;
    if (hi > c->hi) hi = c->hi;
    if (c->grid) {
        __int128 a = step, b = c->grid;
        while (b) {
            __int128 rest = a % b;
            a = b;
            b = rest;
        }
        step *= c->grid / a;
    }
    __int128 over = hi % step;
    if (over < 0) over += step;
    hi -= over;
    for (int i = 0; i < POINTS && hi >= lo; i++, hi -= step)
        if (!is_avoided(c, hi)) return true;
    return false;
}

static bool within_reach(const struct constrain_number *c, const char *text, uint32_t size,
                         uint32_t phase)
{
    struct digits d = read_digits(text, size);
    if (d.ints > INT_DIGITS || d.fractions > CONSTRAIN_DECIMAL_SCALE) return false;
    if (d.point && d.ints + d.fractions + (phase == DOT) > DIGITS) return false;
    __int128 span = CONSTRAIN_NUMBER_UNIT;
    for (uint32_t i = 0; i < d.fractions; i++) span /= 10;
    d.value *= span;
    if (phase == MINUS)
        d.ints = 1, span = 10 * CONSTRAIN_NUMBER_UNIT; /* one digit, or more below */
    uint32_t more = phase == INT || phase == MINUS ? INT_DIGITS - d.ints : 0;
    for (uint32_t k = 0; k <= more; k++, d.value *= 10, span *= 10)
        if (reaches(c, d.value, span, last_digit(d.ints + k), d.negative)) return true;
    return false;
}

void constrain_number_step(struct constrain_state *s, uint32_t stack, uint8_t byte)
{
    const struct constrain_schema *schema = s->constraint->schema;
    struct constrain_frame f = s->frame[stack];
    const struct constrain_number *c = &schema->number[f.index];
    uint32_t size = f.number.size, below, phase = next_phase(f.number.phase, byte);
    char text[MAX_TEXT];
    if (phase == DEAD) return;
    if (c->bounded || schema->generate) size++;
    if (!schema->generate && size >= MAX_TEXT) {
        constrain_state_fail(s, BASE_FAILED, "a number is too long to be compared");
        return;
    }
    /* Leaves room for the digit that must follow, and limits exponents to two digits. */
    if (schema->generate &&
        (size + !is_whole(phase) >= GENERATE_TEXT || f.number.phase == EXP_INTS))
        return;
    f.number.phase = (uint8_t)phase;
    f.number.size = (uint16_t)size;
    if (c->bounded) f.number.last = byte, f.next = stack;
    if (c->bounded && schema->generate) {
        if (phase == EXP || (phase == DOT && c->grid && c->grid % CONSTRAIN_NUMBER_UNIT == 0))
            return;
        size = collect(s, &s->frame[stack], text, &below);
        text[size++] = (char)byte;
        if (!within_reach(c, text, size, phase)) return;
    }
    uint32_t moved = constrain_frame_intern(s, &f);
    if (moved) constrain_state_emit(s, moved);
}

/* -- the shortest end of a number -- */

/* Returns the fewest further digits if `ints` digits before the point have the value `value`; up to
 * `max` more may follow, then a fraction. */
static uint32_t min_digits(const struct constrain_number *c, __int128 value, uint32_t ints,
                           uint32_t max, bool negative)
{
    uint32_t min = UINT32_MAX;
    __int128 span = CONSTRAIN_NUMBER_UNIT;
    for (uint32_t k = 0; k <= max && k < min; k++, value *= 10, span *= 10) {
        __int128 step = CONSTRAIN_NUMBER_UNIT, last = last_digit(ints + k);
        for (uint32_t f = 0; step >= last && step > 0; f++, step /= 10) {
            uint32_t more = k + (f ? f + 1 : 0);
            if (more >= min) break;
            if (reaches(c, value, span, step, negative)) min = more;
        }
    }
    return min;
}

static uint32_t min_from_begin(const struct constrain_number *c, bool negative)
{
    uint32_t min = min_digits(c, 0, 1, 0, negative);
    for (uint32_t digit = 1; digit < 10; digit++) {
        uint32_t more = min_digits(c, digit * CONSTRAIN_NUMBER_UNIT, 1, INT_DIGITS - 1, negative);
        if (more < min) min = more;
    }
    return min == UINT32_MAX ? min : min + 1;
}

bool constrain_number_is_writable(const struct constrain_number *c)
{
    return min_from_begin(c, false) != UINT32_MAX || min_from_begin(c, true) != UINT32_MAX;
}

bool constrain_number_may_exist(const struct constrain_number *c)
{
    const __int128 min = c->lo < -c->hi ? c->lo : -c->hi; /* the larger size, negated */
    const __int128 span = 1 - min;
    if (c->n_multiple && c->grid && is_avoided(c, c->grid)) return false;
    return c->rounded || reaches(c, 0, span, 1, false) || reaches(c, 0, span, 1, true);
}

uint32_t constrain_number_min_bytes(const struct constrain_state *s,
                                    const struct constrain_schema *schema,
                                    const struct constrain_frame *f, uint32_t *below)
{
    const struct constrain_number *c = &schema->number[f->index];
    char text[MAX_TEXT];
    *below = f->next;
    if (!c->bounded) return !is_whole(f->number.phase);
    if (f->number.phase == BEGIN) {
        uint32_t negative = min_from_begin(c, true), positive = min_from_begin(c, false);
        return negative != UINT32_MAX && negative + 1 < positive ? negative + 1 : positive;
    }
    uint32_t size = collect(s, f, text, below);
    struct digits d = read_digits(text, size);
    if (d.ints > INT_DIGITS || d.fractions > CONSTRAIN_DECIMAL_SCALE) return UINT32_MAX;
    if (d.ints == 0) return min_from_begin(c, true);
    if (!d.point)
        return min_digits(c, d.value * CONSTRAIN_NUMBER_UNIT, d.ints,
                          text[d.negative] == '0' ? 0 : INT_DIGITS - d.ints, d.negative);
    __int128 step = CONSTRAIN_NUMBER_UNIT, last = last_digit(d.ints);
    for (uint32_t i = 0; i < d.fractions; i++) step /= 10;
    d.value *= step;
    const __int128 span = step;
    for (uint32_t k = 0; step >= last && step > 0; k++, step /= 10)
        if ((k || d.fractions) && reaches(c, d.value, span, step, d.negative)) return k;
    return UINT32_MAX;
}
