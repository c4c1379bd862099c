/* sample/schema_number.c: JSON numbers. A number under a condition keeps its text as a chain of
 * frames, one per byte, and is compared exactly at its end; when generating, each byte must leave a
 * number within reach that satisfies the condition. See sample/schema_run.h. */
#include "sample/schema_run.h"

enum { BEGIN, MINUS, ZERO, INT, DOT, FRAC, EXP, EXP_SIGN, EXP_INT, DEAD };
enum { MAX_TEXT = 1200, GENERATE_TEXT = 32, INT_DIGITS = 16 };

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
    default:
        return digit ? EXP_INT : DEAD;
    }
}

/* The number's bytes, and the stack below it. */
static uint32_t collect(const struct sample_state *s, const struct sample_frame *f,
                        char text[MAX_TEXT], uint32_t *below)
{
    uint32_t size = f->c & 0xffff;
    for (uint32_t i = size; i-- > 0; f = &s->frame[f->next]) text[i] = (char)(f->c >> 16);
    *below = f->next;
    return size;
}

static bool satisfies(const struct sample_schema *schema, const struct sample_number *c,
                      const struct sample_decimal *d)
{
    if (c->has_min) {
        int order = sample_decimal_compare(d, &c->min);
        if (order < 0 || (order == 0 && c->open_min)) return false;
    }
    if (c->has_max) {
        int order = sample_decimal_compare(d, &c->max);
        if (order > 0 || (order == 0 && c->open_max)) return false;
    }
    for (uint32_t i = 0; i < c->n_multiple; i++)
        if (!sample_decimal_is_multiple(d, &schema->step[c->multiple + i])) return false;
    for (uint32_t i = 0; i < c->n_not_multiple; i++)
        if (sample_decimal_is_multiple(d, &schema->step[c->not_multiple + i])) return false;
    return true;
}

bool sample_number_enter(struct sample_state *s, uint32_t stack)
{
    const struct sample_schema *schema = s->constraint->schema;
    const struct sample_frame *f = &s->frame[stack];
    const struct sample_number *c = &schema->number[f->a];
    char text[MAX_TEXT];
    struct sample_decimal d;
    uint32_t below = f->next;
    bool ends = f->b == ZERO || f->b == INT || f->b == FRAC || f->b == EXP_INT;
    if (!ends) return true;
    if (c->bounded) {
        uint32_t size = collect(s, &s->frame[stack], text, &below);
        if (!sample_decimal_read(&d, text, size)) {
            sample_state_fail(s, BASE_FAILED, "a number has too many digits to be compared");
            return false;
        }
        if (!satisfies(schema, c, &d)) return true;
    }
    sample_state_emit(s, below);
    return true;
}

/* -- when generating: can the number still be completed? -- */

static bool has_point(const struct sample_number *c, __int128 lo, __int128 hi)
{
    if (lo < c->lo) lo = c->lo;
    if (hi > c->hi) hi = c->hi;
    if (lo > hi) return false;
    if (c->grid == 0) return true;
    __int128 rest = hi % c->grid;
    if (rest < 0) rest += c->grid;
    return hi - rest >= lo;
}

static bool within_reach(const struct sample_number *c, const char *text, uint32_t size,
                         uint32_t phase)
{
    const __int128 unit = 1000000000;
    bool negative = size && text[0] == '-';
    uint32_t ints = 0, fractions = 0;
    __int128 value = 0, span = unit;
    for (uint32_t i = negative, point = 0; i < size; i++) {
        if (text[i] == '.') {
            point = 1;
            continue;
        }
        value = value * 10 + (text[i] - '0');
        if (point)
            fractions++;
        else
            ints++;
    }
    if (ints > INT_DIGITS || fractions > SAMPLE_DECIMAL_SCALE) return false;
    for (uint32_t i = 0; i < fractions; i++) span /= 10;
    value *= span;
    if (phase == MINUS) return has_point(c, -(unit * 10000000000000000), 0);
    uint32_t more = phase == INT ? INT_DIGITS - ints : 0;
    for (uint32_t k = 0; k <= more; k++, value *= 10, span *= 10) {
        __int128 end = value + span - 1;
        if (negative ? has_point(c, -end, -value) : has_point(c, value, end)) return true;
    }
    return false;
}

void sample_number_step(struct sample_state *s, uint32_t stack, uint8_t byte)
{
    const struct sample_schema *schema = s->constraint->schema;
    struct sample_frame f = s->frame[stack];
    const struct sample_number *c = &schema->number[f.a];
    uint32_t size = f.c & 0xffff, below, phase = next_phase(f.b, byte);
    char text[MAX_TEXT];
    if (phase == DEAD) return;
    if (c->bounded || schema->generate) size++;
    if (size >= (schema->generate ? GENERATE_TEXT : MAX_TEXT)) {
        if (!schema->generate)
            sample_state_fail(s, BASE_FAILED, "a number is too long to be compared");
        return;
    }
    f.b = phase;
    f.c = c->bounded ? size | (uint32_t)byte << 16 : size;
    if (c->bounded) f.next = stack;
    if (c->bounded && schema->generate) {
        if (phase == EXP || (phase == DOT && c->grid && c->grid % 1000000000 == 0)) return;
        size = collect(s, &s->frame[stack], text, &below);
        text[size++] = (char)byte;
        if (!within_reach(c, text, size, phase)) return;
    }
    uint32_t moved = sample_frame_intern(s, &f);
    if (moved) sample_state_emit(s, moved);
}

/* -- the shortest end of a number -- */

/* Whether the condition has a number among those of one sign that begin with `value` (in units of
 * 1/10^9) followed by what adds less than `span`, in steps of `step`. */
static bool reaches(const struct sample_number *c, __int128 value, __int128 span, __int128 step,
                    bool negative)
{
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
    return hi - over >= lo;
}

/* Integer digits so far make `value`; up to `most` may follow, then a fraction. */
static uint32_t least_digits(const struct sample_number *c, __int128 value, uint32_t most,
                             bool negative)
{
    const __int128 unit = 1000000000;
    uint32_t least = UINT32_MAX;
    __int128 span = unit;
    for (uint32_t k = 0; k <= most; k++, value *= 10, span *= 10) {
        __int128 step = unit;
        for (uint32_t f = 0; f <= SAMPLE_DECIMAL_SCALE; f++, step /= 10) {
            uint32_t more = k + (f ? f + 1 : 0);
            if (more < least && reaches(c, value, span, step, negative)) least = more;
        }
    }
    return least;
}

static uint32_t least_from_begin(const struct sample_number *c, bool negative)
{
    const __int128 unit = 1000000000;
    uint32_t least = least_digits(c, 0, 0, negative);
    for (uint32_t digit = 1; digit < 10; digit++) {
        uint32_t more = least_digits(c, digit * unit, INT_DIGITS - 1, negative);
        if (more < least) least = more;
    }
    return least == UINT32_MAX ? least : least + 1;
}

uint32_t sample_number_least(const struct sample_state *s, const struct sample_schema *schema,
                             const struct sample_frame *f, uint32_t *below)
{
    const struct sample_number *c = &schema->number[f->a];
    const __int128 unit = 1000000000;
    char text[MAX_TEXT];
    uint32_t size, ints = 0, fractions = 0, least = UINT32_MAX;
    __int128 value = 0, step = unit;
    bool ends = f->b == ZERO || f->b == INT || f->b == FRAC || f->b == EXP_INT;
    *below = f->next;
    if (!c->bounded) return ends ? 0 : 1;
    if (f->b == BEGIN) {
        uint32_t negative = least_from_begin(c, true);
        least = least_from_begin(c, false);
        return negative != UINT32_MAX && negative + 1 < least ? negative + 1 : least;
    }
    size = collect(s, f, text, below);
    bool negative = text[0] == '-', point = false;
    for (uint32_t i = negative; i < size; i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        value = value * 10 + (text[i] - '0');
        *(point ? &fractions : &ints) += 1;
    }
    if (ints > INT_DIGITS || fractions > SAMPLE_DECIMAL_SCALE) return least;
    if (ints == 0) return least_from_begin(c, true);
    if (!point)
        return least_digits(c, value * unit, text[negative] == '0' ? 0 : INT_DIGITS - ints,
                            negative);
    for (uint32_t i = 0; i < fractions; i++) step /= 10;
    value *= step;
    const __int128 span = step;
    for (uint32_t k = 0; k + fractions <= SAMPLE_DECIMAL_SCALE; k++, step /= 10)
        if ((k || fractions) && reaches(c, value, span, step, negative)) return k;
    return least;
}
