/* text/jinja/jinja_operator.c: arithmetic, comparison, attributes, subscripts and slices, with
 * Python's rules. See text/jinja/jinja_run.h. */
#include "base/size.h"
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <math.h>
#include <string.h>

/* ---- Arithmetic ---- */

static const char *op_text(enum jinja_op op)
{
    static const char *const names[] = {
        "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
    return names[op];
}

static bool int_power(struct jinja_run *r, int64_t a, int64_t b, struct jinja_value *out)
{
    int64_t result = 1;
    bool over = false;
    if (b < 0) {
        if (a == 0) return jinja_fail(r, "zero to a negative power");
        *out = jinja_float(pow((double)a, (double)b));
        return true;
    }
    if (a == 0 || a == 1) b = b != 0; /* these never overflow, so the loop would be long */
    if (a == -1) b = b % 2 ? 1 : 2;
    for (; b > 0 && !over; b--) over = __builtin_mul_overflow(result, a, &result);
    if (over) return jinja_fail(r, "the result of '**' has more than 64 bits");
    *out = jinja_int(result);
    return true;
}

static bool int_arithmetic(struct jinja_run *r, enum jinja_op op, int64_t a, int64_t b,
                           struct jinja_value *out)
{
    int64_t result = 0;
    bool over = false;
    switch (op) {
    case JINJA_ADD:
        over = __builtin_add_overflow(a, b, &result);
        break;
    case JINJA_SUB:
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case JINJA_MUL:
        over = __builtin_mul_overflow(a, b, &result);
        break;
    case JINJA_POW:
        return int_power(r, a, b, out);
    default:
        if (b == 0) return jinja_fail(r, "'%s' by zero", op_text(op));
        if (op == JINJA_DIV) {
            *out = jinja_float((double)a / (double)b);
            return true;
        }
        if (b == -1) { /* INT64_MIN / -1 overflows */
            over = op == JINJA_FLOORDIV && __builtin_sub_overflow((int64_t)0, a, &result);
            break;
        }
        result = op == JINJA_MOD ? a % b : a / b;
        if (a % b != 0 && (a < 0) != (b < 0)) result += op == JINJA_MOD ? b : -1;
    }
    if (over) return jinja_fail(r, "the result of '%s' has more than 64 bits", op_text(op));
    *out = jinja_int(result);
    return true;
}

/* The results of // and % have the sign of b. */
static double float_division(enum jinja_op op, double a, double b)
{
    double rest = fmod(a, b), whole = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        whole -= 1;
    }
    if (op == JINJA_MOD) return rest != 0 ? rest : copysign(0.0, b);
    return whole != 0 ? floor(whole + 0.5) : copysign(0.0, a / b);
}

static bool float_arithmetic(struct jinja_run *r, enum jinja_op op, double a, double b,
                             struct jinja_value *out)
{
    if (b == 0 && (op == JINJA_DIV || op == JINJA_FLOORDIV || op == JINJA_MOD))
        return jinja_fail(r, "'%s' by zero", op_text(op));
    if (op == JINJA_POW && ((a < 0 && b != floor(b)) || (a == 0 && b < 0)))
        return jinja_fail(r, "'**' has no real result");
    *out = jinja_float(op == JINJA_ADD   ? a + b
                       : op == JINJA_SUB ? a - b
                       : op == JINJA_MUL ? a * b
                       : op == JINJA_DIV ? a / b
                       : op == JINJA_POW ? pow(a, b)
                                         : float_division(op, a, b));
    return true;
}

static bool repeat(struct jinja_run *r, const struct jinja_value *v, int64_t count,
                   struct jinja_value *out)
{
    struct jinja_text text = {0};
    const uint64_t times = count > 0 ? (uint64_t)count : 0;
    uint64_t whole;
    if (v->kind == JINJA_STR) {
        if (!base_mul(times, v->s.n, &whole) || whole > r->limit.max_memory)
            return jinja_fail(r, "the result of '*' is a string larger than the memory limit");
        for (uint64_t i = 0; i < times && v->s.n; i++)
            if (!jinja_add(r, &text, v->s.s, v->s.n) || !jinja_step(r, 1)) return false;
        *out = jinja_text_value(&text);
        return true;
    }
    if (!base_mul(times, v->seq->n, &whole) || whole > r->limit.max_memory)
        return jinja_fail(r, "the result of '*' is a list larger than the memory limit");
    *out = jinja_of_seq(v->kind, jinja_seq(r, whole));
    if (!out->seq || !jinja_step(r, whole)) return false;
    for (uint64_t i = 0; i < whole; i++) out->seq->item[i] = v->seq->item[i % v->seq->n];
    out->seq->n = whole;
    return true;
}

static bool add_strings(struct jinja_run *r, const struct jinja_value *a,
                        const struct jinja_value *b, struct jinja_value *out)
{
    struct jinja_text text = {0};
    if (!jinja_add(r, &text, a->s.s, a->s.n) || !jinja_add(r, &text, b->s.s, b->s.n)) return false;
    *out = jinja_text_value(&text);
    return jinja_step(r, text.n / JINJA_MOVED);
}

static bool add_lists(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                      struct jinja_value *out)
{
    const size_t n = a->seq->n, m = b->seq->n;
    *out = jinja_of_seq(a->kind, jinja_seq(r, n + m));
    if (!out->seq || !jinja_step(r, n + m)) return false;
    memcpy(out->seq->item, a->seq->item, n * sizeof *a->seq->item);
    memcpy(out->seq->item + n, b->seq->item, m * sizeof *b->seq->item);
    out->seq->n = n + m;
    return true;
}

static bool is_list(const struct jinja_value *v)
{
    return v->kind == JINJA_LIST || v->kind == JINJA_TUPLE;
}

bool jinja_binary(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                  const struct jinja_value *b, struct jinja_value *out)
{
    int64_t i, j;
    double x, y;
    if (jinja_as_int(a, &i) && jinja_as_int(b, &j)) return int_arithmetic(r, op, i, j, out);
    if (jinja_as_number(a, &x) && jinja_as_number(b, &y)) return float_arithmetic(r, op, x, y, out);
    if (a->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, a);
    if (b->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, b);
    if (op == JINJA_ADD && a->kind == JINJA_STR && b->kind == JINJA_STR)
        return add_strings(r, a, b, out);
    if (op == JINJA_ADD && is_list(a) && a->kind == b->kind) return add_lists(r, a, b, out);
    if (op == JINJA_MUL && (is_list(a) || a->kind == JINJA_STR) && jinja_as_int(b, &j))
        return repeat(r, a, j, out);
    if (op == JINJA_MUL && (is_list(b) || b->kind == JINJA_STR) && jinja_as_int(a, &i))
        return repeat(r, b, i, out);
    return jinja_fail(r, "'%s' of '%s' and '%s'", op_text(op), jinja_type(a), jinja_type(b));
}

bool jinja_compare(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                   const struct jinja_value *b, bool *out)
{
    int order;
    bool ok = true, is_nan = (a->kind == JINJA_FLOAT && isnan(a->f)) ||
                             (b->kind == JINJA_FLOAT && isnan(b->f));
    switch (op) {
    case JINJA_EQ:
    case JINJA_NE:
        ok = jinja_equal(r, a, b, out);
        break;
    case JINJA_IN:
    case JINJA_NOT_IN:
        ok = jinja_contains(r, b, a, out);
        break;
    default:
        if (!jinja_order(r, a, b, &order)) return false;
        *out = !is_nan && (op == JINJA_LT   ? order < 0
                           : op == JINJA_LE ? order <= 0
                           : op == JINJA_GT ? order > 0
                                            : order >= 0);
        return true;
    }
    if (op == JINJA_NE || op == JINJA_NOT_IN) *out = !*out;
    return ok;
}

/* ---- Attributes ---- */

static bool is_any(struct jinja_str name, const char *words)
{
    for (const char *at = words; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        const char *end = at + strcspn(at, " ");
        if ((size_t)(end - at) == name.n && memcmp(at, name.s, name.n) == 0) return true;
    }
    return false;
}

/* Returns whether a method would change the object: the sandbox hides such methods. */
static bool is_mutator(enum jinja_kind kind, struct jinja_str name)
{
    if (kind == JINJA_DICT) return is_any(name, "clear pop popitem setdefault update");
    return kind == JINJA_LIST && is_any(name, "append clear pop reverse insert sort extend remove");
}

/* Returns whether Python has an attribute that this interpreter does not have: reading it is an
 * error, because it must not count as absent. */
static bool is_missing_here(enum jinja_kind kind, struct jinja_str name)
{
    switch (kind) {
    case JINJA_STR:
        return is_any(name, "casefold center count encode expandtabs find format_map index isalnum "
                            "isalpha isascii isdecimal isdigit isidentifier islower isnumeric "
                            "isprintable isspace istitle isupper join ljust maketrans partition "
                            "removeprefix removesuffix rfind rindex rjust rpartition rsplit "
                            "splitlines swapcase translate zfill");
    case JINJA_DICT:
        return is_any(name, "copy fromkeys");
    case JINJA_LIST:
        return is_any(name, "copy count index");
    case JINJA_TUPLE:
        return is_any(name, "count index");
    case JINJA_LOOP:
        return is_any(name, "changed cycle depth depth0 revindex revindex0");
    case JINJA_MACRO:
        return is_any(name, "arguments caller catch_kwargs catch_varargs name");
    case JINJA_BOOL:
    case JINJA_INT:
        return is_any(name, "as_integer_ratio bit_count bit_length conjugate denominator "
                            "from_bytes imag numerator real to_bytes");
    case JINJA_FLOAT:
        return is_any(name, "as_integer_ratio conjugate fromhex hex imag is_integer real");
    case JINJA_VIEW:
        return is_any(name, "isdisjoint mapping");
    case JINJA_RANGE:
        return is_any(name, "count index start stop step");
    case JINJA_ITER:
        return is_any(name, "close send throw gi_code gi_frame gi_running gi_yieldfrom");
    default:
        return false;
    }
}

static bool loop_attr(struct jinja_run *r, const struct jinja_value *v, struct jinja_str name,
                      struct jinja_value *out)
{
    struct jinja_loop *loop = v->loop;
    const int64_t at = (int64_t)loop->index;
    const bool ahead = jinja_str_is(name, "last") || jinja_str_is(name, "nextitem");
    if (jinja_str_is(name, "length") && !loop->fill(r, loop, SIZE_MAX)) return false;
    if (ahead && !loop->fill(r, loop, loop->index + 2)) return false;
    const int64_t n = (int64_t)loop->items->n;
    if (jinja_str_is(name, "index")) *out = jinja_int(at + 1);
    if (jinja_str_is(name, "index0")) *out = jinja_int(at);
    if (jinja_str_is(name, "length")) *out = jinja_int(n);
    if (jinja_str_is(name, "first")) *out = jinja_bool(at == 0);
    if (jinja_str_is(name, "last")) *out = jinja_bool(at + 1 == n);
    if (jinja_str_is(name, "previtem"))
        *out =
            at ? loop->items->item[at - 1]
               : jinja_undefined(JINJA_EMPTY, (struct jinja_str){"there is no previous item", 25});
    if (jinja_str_is(name, "nextitem"))
        *out = at + 1 < n
                   ? loop->items->item[at + 1]
                   : jinja_undefined(JINJA_EMPTY, (struct jinja_str){"there is no next item", 21});
    return true;
}

static bool bind_method(struct jinja_run *r, const struct jinja_value *v,
                        const struct jinja_func *method, struct jinja_value *out)
{
    struct jinja_bound *bound = jinja_alloc(&r->pool, sizeof *bound, r->err);
    if (!bound) return false;
    bound->self = *v;
    bound->method = method;
    *out = (struct jinja_value){.kind = JINJA_METHOD, .bound = bound};
    return true;
}

/* Reads an attribute that is not an item; `out` is missing if there is none. */
static bool own_attr(struct jinja_run *r, const struct jinja_value *v, struct jinja_str name,
                     struct jinja_value *out)
{
    *out = (struct jinja_value){.kind = JINJA_MISSING};
    if (v->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, v);
    if (v->kind == JINJA_NAMESPACE) {
        const struct jinja_value *found = jinja_dict_word(v->dict, name);
        if (found) *out = *found;
        return true;
    }
    if (is_mutator(v->kind, name)) {
        *out = jinja_undefined(JINJA_UNSAFE, name);
        out->of = v->kind;
        return true;
    }
    if (is_missing_here(v->kind, name))
        return jinja_fail(r, "the attribute '%.*s' of '%s' is not supported", (int)name.n, name.s,
                          jinja_type(v));
    if (v->kind == JINJA_LOOP && !loop_attr(r, v, name, out)) return false;
    const struct jinja_func *method = jinja_find_method(v->kind, name);
    return out->kind != JINJA_MISSING || !method || bind_method(r, v, method, out);
}

static bool no_attr(const struct jinja_value *v, struct jinja_str name, struct jinja_value *out)
{
    *out = jinja_undefined(JINJA_ATTRIBUTE, name);
    out->of = v->kind;
    return true;
}

/* Returns whether a name is one of Python's internal ones, which are never looked up. */
static bool is_internal(struct jinja_str name)
{
    return name.n > 4 && memcmp(name.s, "__", 2) == 0 && memcmp(name.s + name.n - 2, "__", 2) == 0;
}

bool jinja_attr(struct jinja_run *r, const struct jinja_value *v, struct jinja_str name,
                struct jinja_value *out)
{
    if (v->kind != JINJA_UNDEFINED && is_internal(name)) return no_attr(v, name, out);
    if (!own_attr(r, v, name, out)) return false;
    if (out->kind != JINJA_MISSING) return true;
    const struct jinja_value *found = v->kind == JINJA_DICT ? jinja_dict_word(v->dict, name) : NULL;
    if (!found) return no_attr(v, name, out);
    *out = *found;
    return true;
}

/* ---- Subscripts ---- */

bool jinja_item(struct jinja_run *r, const struct jinja_value *v, const struct jinja_value *key,
                struct jinja_value *out)
{
    int64_t i;
    size_t n;
    if (v->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, v);
    if (v->kind == JINJA_DICT) {
        struct jinja_value *found = NULL;
        if (jinja_is_key(key) && !jinja_dict_find(r, v->dict, key, &found)) return false;
        if (found) {
            *out = *found;
            return true;
        }
    } else if ((v->kind == JINJA_STR || v->kind == JINJA_LIST || v->kind == JINJA_TUPLE ||
                v->kind == JINJA_RANGE) &&
               jinja_as_int(key, &i)) {
        if (!jinja_length(r, v, &n)) return false;
        if (i < 0) i += (int64_t)n;
        if (i < 0 || i >= (int64_t)n) return no_attr(v, (struct jinja_str){"index", 5}, out);
        if (v->kind != JINJA_STR) {
            *out = v->seq->item[i];
            return true;
        }
        const size_t at = jinja_bytes(v->s, (size_t)i);
        const struct jinja_str rest = {v->s.s + at, v->s.n - at};
        *out = jinja_string(rest.s, jinja_bytes(rest, 1));
        return jinja_step(r, at / JINJA_MOVED);
    }
    if (key->kind != JINJA_STR) return no_attr(v, (struct jinja_str){"item", 4}, out);
    if (is_internal(key->s)) return no_attr(v, key->s, out);
    if (!own_attr(r, v, key->s, out)) return false;
    return out->kind != JINJA_MISSING || no_attr(v, key->s, out);
}

/* Computes the slice's first index and count by Python's rules; the bounds are integers or none. */
static bool slice_range(struct jinja_run *r, const struct jinja_value bound[3], int64_t n,
                        int64_t limit[2], int64_t *step, int64_t *count)
{
    *step = 1;
    jinja_as_int(&bound[2], step);
    if (*step == 0) return jinja_fail(r, "a slice step of zero");
    if (*step < -INT64_MAX) *step = -INT64_MAX;
    const int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? n - 1 : n;
    for (int i = 0; i < 2; i++) {
        limit[i] = (i == 0) == (*step > 0) ? low : high;
        if (!jinja_as_int(&bound[i], &limit[i])) continue;
        if (limit[i] < 0) limit[i] += n;
        if (limit[i] < low) limit[i] = low;
        if (limit[i] > high) limit[i] = high;
    }
    const int64_t length = *step > 0 ? limit[1] - limit[0] : limit[0] - limit[1];
    const int64_t stride = *step > 0 ? *step : -*step;
    *count = length > 0 ? (length - 1) / stride + 1 : 0;
    return true;
}

static bool slice_string(struct jinja_run *r, struct jinja_str s, int64_t first, int64_t step,
                         int64_t count, struct jinja_value *out)
{
    struct jinja_text text = {0};
    if (step == 1 || count <= 1) {
        const size_t at = jinja_bytes(s, (size_t)(count ? first : 0));
        const struct jinja_str rest = {s.s + at, s.n - at};
        *out = jinja_string(rest.s, jinja_bytes(rest, (size_t)count));
        return true;
    }
    /* For other steps a table contains the offset of each code point. */
    const size_t n = jinja_count(s);
    size_t *place = jinja_alloc(&r->pool, (n + 1) * sizeof *place, r->err);
    if (!place) return false;
    for (size_t i = 0, k = 0; i < s.n; i++)
        if (((unsigned char)s.s[i] & 0xc0) != 0x80) place[k++] = i;
    place[n] = s.n;
    for (int64_t k = 0; k < count; k++) {
        const int64_t i = first + k * step;
        if (!jinja_add(r, &text, s.s + place[i], place[i + 1] - place[i])) return false;
    }
    *out = jinja_text_value(&text);
    return true;
}

/* Cuts a slice from a range, which is a range again: its numbers, then its start, stop and step. */
static bool cut_range(struct jinja_run *r, const struct jinja_seq *all, const int64_t limit[2],
                      int64_t step, int64_t count, struct jinja_value *out)
{
    const int64_t start = all->item[all->n].i, stride = all->item[all->n + 2].i;
    int64_t bound[3];
    *out = jinja_of_seq(JINJA_RANGE, jinja_seq(r, (size_t)count + 3));
    if (!out->seq) return false;
    for (int i = 0; i < 3; i++) {
        if (__builtin_mul_overflow(i == 2 ? step : limit[i], stride, &bound[i]) ||
            (i < 2 && __builtin_add_overflow(bound[i], start, &bound[i])))
            return jinja_fail(r, "a slice of a range has more than 64 bits");
        out->seq->item[count + i] = jinja_int(bound[i]);
    }
    for (int64_t k = 0; k < count; k++) out->seq->item[k] = all->item[limit[0] + k * step];
    out->seq->n = (size_t)count;
    return true;
}

bool jinja_slice(struct jinja_run *r, const struct jinja_value *v,
                 const struct jinja_value bound[3], struct jinja_value *out)
{
    int64_t limit[2] = {0}, step = 1, count = 0;
    size_t n;
    if (v->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, v);
    if (v->kind != JINJA_STR && v->kind != JINJA_LIST && v->kind != JINJA_TUPLE &&
        v->kind != JINJA_RANGE)
        return jinja_fail(r, "a slice of '%s'", jinja_type(v));
    if (!jinja_length(r, v, &n)) return false;
    for (int i = 0; i < 3; i++) {
        int64_t ignored;
        if (bound[i].kind != JINJA_NONE && !jinja_as_int(&bound[i], &ignored))
            return jinja_fail(r, "a slice bound that is '%s'", jinja_type(&bound[i]));
    }
    if (!slice_range(r, bound, (int64_t)n, limit, &step, &count)) return false;
    const int64_t first = limit[0];
    if (!jinja_step(r, (uint64_t)count / 8)) return false;
    if (v->kind == JINJA_STR) return slice_string(r, v->s, first, step, count, out);
    if (v->kind == JINJA_RANGE) return cut_range(r, v->seq, limit, step, count, out);
    *out = jinja_of_seq(v->kind, jinja_seq(r, (size_t)count));
    if (!out->seq) return false;
    for (int64_t k = 0; k < count; k++) out->seq->item[k] = v->seq->item[first + k * step];
    out->seq->n = (size_t)count;
    return true;
}

bool jinja_follow(struct jinja_run *r, struct jinja_str path, const struct jinja_value *fallback,
                  struct jinja_value *v)
{
    for (size_t at = 0; at <= path.n;) {
        size_t end = at;
        int64_t i;
        bool too_large, number = true;
        while (end < path.n && path.s[end] != '.') {
            number &= path.s[end] >= '0' && path.s[end] <= '9';
            end++;
        }
        const struct jinja_str part = {path.s + at, end - at};
        const struct jinja_value object = *v;
        struct jinja_value key = jinja_string(part.s, part.n);
        if (number && jinja_parse_int(part, &i, &too_large) && !too_large) key = jinja_int(i);
        if (!jinja_item(r, &object, &key, v)) return false;
        if (v->kind == JINJA_UNDEFINED && fallback && fallback->kind != JINJA_NONE) *v = *fallback;
        at = end + 1;
    }
    return true;
}
