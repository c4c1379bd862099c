/* text/jinja/jinja_operator.c: arithmetic, comparison, attributes, subscripts and slices, with
 * Python's rules. See text/jinja/jinja_run.h. */
#include "base/size.h"
#include "base/utf8.h"
#include "text/jinja/jinja_run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Arithmetic ---- */

static const char *op_text(enum tpl_op op)
{
    static const char *const names[] = {
        "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
    return names[op];
}

static bool int_power(struct tpl_run *r, int64_t a, int64_t b, struct tpl_value *out)
{
    int64_t result = 1;
    bool over = false;
    if (b < 0) {
        if (a == 0) return text_tpl_fail(r, "zero to a negative power");
        *out = tpl_float(pow((double)a, (double)b));
        return true;
    }
    if (a == 0 || a == 1) b = b != 0; /* these never overflow, so the loop would not end soon */
    if (a == -1) b = b % 2 ? 1 : 2;
    for (; b > 0 && !over; b--) over = __builtin_mul_overflow(result, a, &result);
    if (over) return text_tpl_fail(r, "'**' gives more than 64 bits");
    *out = tpl_int(result);
    return true;
}

static bool int_arithmetic(struct tpl_run *r, enum tpl_op op, int64_t a, int64_t b,
                           struct tpl_value *out)
{
    int64_t result = 0;
    bool over = false;
    switch (op) {
    case TPL_ADD:
        over = __builtin_add_overflow(a, b, &result);
        break;
    case TPL_SUB:
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case TPL_MUL:
        over = __builtin_mul_overflow(a, b, &result);
        break;
    case TPL_POW:
        return int_power(r, a, b, out);
    default:
        if (b == 0) return text_tpl_fail(r, "'%s' by zero", op_text(op));
        if (op == TPL_DIV) {
            *out = tpl_float((double)a / (double)b);
            return true;
        }
        if (b == -1) { /* INT64_MIN / -1 overflows */
            over = op == TPL_FLOORDIV && __builtin_sub_overflow((int64_t)0, a, &result);
            break;
        }
        result = op == TPL_MOD ? a % b : a / b;
        if (a % b != 0 && (a < 0) != (b < 0)) result += op == TPL_MOD ? b : -1;
    }
    if (over) return text_tpl_fail(r, "'%s' gives more than 64 bits", op_text(op));
    *out = tpl_int(result);
    return true;
}

static bool float_arithmetic(struct tpl_run *r, enum tpl_op op, double a, double b,
                             struct tpl_value *out)
{
    double rest;
    if (b == 0 && (op == TPL_DIV || op == TPL_FLOORDIV || op == TPL_MOD))
        return text_tpl_fail(r, "'%s' by zero", op_text(op));
    switch (op) {
    case TPL_ADD:
        *out = tpl_float(a + b);
        return true;
    case TPL_SUB:
        *out = tpl_float(a - b);
        return true;
    case TPL_MUL:
        *out = tpl_float(a * b);
        return true;
    case TPL_DIV:
        *out = tpl_float(a / b);
        return true;
    case TPL_POW:
        if ((a < 0 && b != floor(b)) || (a == 0 && b < 0))
            return text_tpl_fail(r, "'**' has no real result");
        *out = tpl_float(pow(a, b));
        return true;
    default:
        break;
    }
    rest = fmod(a, b);
    double whole = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        whole -= 1;
    }
    if (op == TPL_MOD)
        *out = tpl_float(rest != 0 ? rest : copysign(0.0, b));
    else
        *out = tpl_float(whole != 0 ? floor(whole + 0.5) : copysign(0.0, a / b));
    return true;
}

static bool repeat(struct tpl_run *r, const struct tpl_value *v, int64_t count,
                   struct tpl_value *out)
{
    struct tpl_text text = {0};
    const uint64_t times = count > 0 ? (uint64_t)count : 0;
    uint64_t whole;
    if (v->kind == TPL_STR) {
        if (!base_mul(times, v->s.n, &whole) || whole > r->limit.max_memory)
            return text_tpl_fail(r, "'*' gives a string larger than the memory limit");
        for (uint64_t i = 0; i < times && v->s.n; i++)
            if (!text_tpl_add(r, &text, v->s.s, v->s.n) || !text_tpl_step(r, 1)) return false;
        *out = text_tpl_text_value(&text);
        out->safe = v->safe;
        return true;
    }
    if (!base_mul(times, v->seq->n, &whole) || whole > r->limit.max_memory)
        return text_tpl_fail(r, "'*' gives a list larger than the memory limit");
    *out = tpl_of_seq(v->kind, text_tpl_seq(r, whole));
    if (!out->seq || !text_tpl_step(r, whole)) return false;
    for (uint64_t i = 0; i < whole; i++) out->seq->item[i] = v->seq->item[i % v->seq->n];
    out->seq->n = whole;
    return true;
}

static bool add_strings(struct tpl_run *r, const struct tpl_value *a, const struct tpl_value *b,
                        struct tpl_value *out)
{
    struct tpl_text text = {0};
    struct tpl_value left = *a, right = *b;
    const bool safe = a->safe || b->safe;
    if (safe && (!text_tpl_escape(r, a, &left) || !text_tpl_escape(r, b, &right))) return false;
    if (!text_tpl_add(r, &text, left.s.s, left.s.n) ||
        !text_tpl_add(r, &text, right.s.s, right.s.n))
        return false;
    *out = text_tpl_text_value(&text);
    out->safe = safe;
    return text_tpl_step(r, text.n / 64);
}

static bool add_lists(struct tpl_run *r, const struct tpl_value *a, const struct tpl_value *b,
                      struct tpl_value *out)
{
    const size_t n = a->seq->n, m = b->seq->n;
    *out = tpl_of_seq(a->kind, text_tpl_seq(r, n + m));
    if (!out->seq || !text_tpl_step(r, n + m)) return false;
    memcpy(out->seq->item, a->seq->item, n * sizeof *a->seq->item);
    memcpy(out->seq->item + n, b->seq->item, m * sizeof *b->seq->item);
    out->seq->n = n + m;
    return true;
}

static bool is_list(const struct tpl_value *v)
{
    return v->kind == TPL_LIST || v->kind == TPL_TUPLE;
}

/* What markup takes in is escaped. */
static bool format_string(struct tpl_run *r, const struct tpl_value *a, const struct tpl_value *b,
                          struct tpl_value *out)
{
    struct tpl_value args = *b;
    if (!a->safe) return text_tpl_format_percent(r, a->s, b, out);
    if (args.kind == TPL_STR && !text_tpl_escape(r, b, &args)) return false;
    if (args.kind == TPL_TUPLE) {
        args.seq = text_tpl_seq(r, b->seq->n);
        for (size_t i = 0; args.seq && i < b->seq->n; i++) {
            struct tpl_value item = b->seq->item[i];
            if (item.kind == TPL_STR && !text_tpl_escape(r, &b->seq->item[i], &item)) return false;
            if (!text_tpl_push(r, args.seq, item)) return false;
        }
        if (!args.seq) return false;
    } else if (args.kind == TPL_DICT || args.kind == TPL_LIST) {
        return text_tpl_fail(r, "'%%' of markup and '%s'", text_tpl_type(b));
    }
    if (!text_tpl_format_percent(r, a->s, &args, out)) return false;
    out->safe = true;
    return true;
}

bool text_tpl_binary(struct tpl_run *r, enum tpl_op op, const struct tpl_value *a,
                     const struct tpl_value *b, struct tpl_value *out)
{
    int64_t i, j;
    double x, y;
    if (tpl_as_int(a, &i) && tpl_as_int(b, &j)) return int_arithmetic(r, op, i, j, out);
    if (tpl_as_number(a, &x) && tpl_as_number(b, &y)) return float_arithmetic(r, op, x, y, out);
    if (op == TPL_MOD && a->kind == TPL_STR) return format_string(r, a, b, out);
    if (a->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, a);
    if (b->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, b);
    if (op == TPL_ADD && a->kind == TPL_STR && b->kind == TPL_STR) return add_strings(r, a, b, out);
    if (op == TPL_ADD && is_list(a) && a->kind == b->kind) return add_lists(r, a, b, out);
    if (op == TPL_MUL && (is_list(a) || a->kind == TPL_STR) && tpl_as_int(b, &j))
        return repeat(r, a, j, out);
    if (op == TPL_MUL && (is_list(b) || b->kind == TPL_STR) && tpl_as_int(a, &i))
        return repeat(r, b, i, out);
    return text_tpl_fail(r, "'%s' of '%s' and '%s'", op_text(op), text_tpl_type(a),
                         text_tpl_type(b));
}

bool text_tpl_compare(struct tpl_run *r, enum tpl_op op, const struct tpl_value *a,
                      const struct tpl_value *b, bool *out)
{
    int order;
    bool ok = true,
         is_nan = (a->kind == TPL_FLOAT && isnan(a->f)) || (b->kind == TPL_FLOAT && isnan(b->f));
    switch (op) {
    case TPL_EQ:
    case TPL_NE:
        ok = text_tpl_equal(r, a, b, out);
        break;
    case TPL_IN:
    case TPL_NOT_IN:
        ok = text_tpl_contains(r, b, a, out);
        break;
    default:
        if (!text_tpl_order(r, a, b, &order)) return false;
        *out = !is_nan && (op == TPL_LT   ? order < 0
                           : op == TPL_LE ? order <= 0
                           : op == TPL_GT ? order > 0
                                          : order >= 0);
        return true;
    }
    if (op == TPL_NE || op == TPL_NOT_IN) *out = !*out;
    return ok;
}

/* ---- Attributes ---- */

static bool is_any(struct tpl_str name, const char *words)
{
    for (const char *at = words; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        const char *end = strchrnul(at, ' ');
        if ((size_t)(end - at) == name.n && memcmp(at, name.s, name.n) == 0) return true;
    }
    return false;
}

/* Methods that would change the object: the sandbox hides them. */
static bool is_mutator(enum tpl_kind kind, struct tpl_str name)
{
    if (kind == TPL_DICT) return is_any(name, "clear pop popitem setdefault update");
    return kind == TPL_LIST && is_any(name, "append clear pop reverse insert sort extend remove");
}

/* Attributes that Python has and this interpreter has not: named rather than taken for absent. */
static bool is_missing_here(enum tpl_kind kind, struct tpl_str name)
{
    switch (kind) {
    case TPL_STR:
        return is_any(name, "encode maketrans translate");
    case TPL_DICT:
        return is_any(name, "fromkeys");
    case TPL_BOOL:
    case TPL_INT:
        return is_any(name, "as_integer_ratio bit_count bit_length conjugate denominator "
                            "from_bytes imag numerator real to_bytes");
    case TPL_FLOAT:
        return is_any(name, "as_integer_ratio conjugate fromhex hex imag is_integer real");
    case TPL_VIEW:
        return is_any(name, "isdisjoint mapping");
    case TPL_RANGE:
        return is_any(name, "start stop step");
    case TPL_ITER:
        return is_any(name, "close send throw gi_code gi_frame gi_running gi_yieldfrom");
    default:
        return false;
    }
}

static bool macro_attr(struct tpl_run *r, const struct tpl_value *v, struct tpl_str name,
                       struct tpl_value *out)
{
    const struct tpl_node *node = v->macro->node;
    if (tpl_is_word(name, "name")) {
        *out = node->kind == TPL_N_MACRO ? tpl_string(node->text.s, node->text.n) : tpl_none();
    } else if (tpl_is_word(name, "arguments")) {
        *out = tpl_of_seq(TPL_TUPLE, text_tpl_seq(r, node->list.n));
        for (size_t i = 0; out->seq && i < node->list.n; i++) {
            const struct tpl_str arg = node->list.node[i]->text;
            out->seq->item[out->seq->n++] = tpl_string(arg.s, arg.n);
        }
        return out->seq != NULL;
    } else if (tpl_is_word(name, "catch_kwargs")) {
        *out = tpl_bool(node->uses & TPL_USES_KWARGS);
    } else if (tpl_is_word(name, "catch_varargs")) {
        *out = tpl_bool(node->uses & TPL_USES_VARARGS);
    } else if (tpl_is_word(name, "caller")) {
        *out = tpl_bool(node->uses & TPL_USES_CALLER);
    }
    return true;
}

static bool loop_attr(struct tpl_run *r, const struct tpl_value *v, struct tpl_str name,
                      struct tpl_value *out)
{
    struct tpl_loop *loop = v->loop;
    const int64_t at = (int64_t)loop->index;
    const bool ahead = tpl_is_word(name, "last") || tpl_is_word(name, "nextitem");
    const bool all = is_any(name, "length revindex revindex0");
    if (all && !text_tpl_loop_fill(r, loop, SIZE_MAX)) return false;
    if (ahead && !text_tpl_loop_fill(r, loop, loop->index + 2)) return false;
    const int64_t n = (int64_t)loop->items->n;
    if (tpl_is_word(name, "index")) *out = tpl_int(at + 1);
    if (tpl_is_word(name, "index0")) *out = tpl_int(at);
    if (tpl_is_word(name, "revindex")) *out = tpl_int(n - at);
    if (tpl_is_word(name, "revindex0")) *out = tpl_int(n - at - 1);
    if (tpl_is_word(name, "length")) *out = tpl_int(n);
    if (tpl_is_word(name, "first")) *out = tpl_bool(at == 0);
    if (tpl_is_word(name, "last")) *out = tpl_bool(at + 1 == n);
    if (tpl_is_word(name, "depth")) *out = tpl_int((int64_t)loop->depth + 1);
    if (tpl_is_word(name, "depth0")) *out = tpl_int((int64_t)loop->depth);
    if (tpl_is_word(name, "previtem"))
        *out = at ? loop->items->item[at - 1]
                  : tpl_undefined(TPL_EMPTY, (struct tpl_str){"there is no previous item", 25});
    if (tpl_is_word(name, "nextitem"))
        *out = at + 1 < n ? loop->items->item[at + 1]
                          : tpl_undefined(TPL_EMPTY, (struct tpl_str){"there is no next item", 21});
    return true;
}

static bool bind_method(struct tpl_run *r, const struct tpl_value *v, const struct tpl_func *method,
                        struct tpl_value *out)
{
    struct tpl_bound *bound = text_tpl_take(&r->pool, sizeof *bound, r->err);
    if (!bound) return false;
    bound->self = *v;
    bound->method = method;
    *out = (struct tpl_value){.kind = TPL_METHOD, .bound = bound};
    return true;
}

/* An attribute proper, not an item; `out` stays missing when there is none. */
static bool own_attr(struct tpl_run *r, const struct tpl_value *v, struct tpl_str name,
                     struct tpl_value *out)
{
    *out = (struct tpl_value){.kind = TPL_MISSING};
    if (v->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, v);
    if (v->kind == TPL_NAMESPACE) {
        const struct tpl_value *hit = text_tpl_dict_word(v->dict, name);
        if (hit) *out = *hit;
        return true;
    }
    if (is_mutator(v->kind, name)) {
        *out = tpl_undefined(TPL_UNSAFE, name);
        out->of = v->kind;
        return true;
    }
    if (is_missing_here(v->kind, name))
        return text_tpl_fail(r, "the attribute '%.*s' of '%s' is not supported", (int)name.n,
                             name.s, text_tpl_type(v));
    if (v->kind == TPL_LOOP && !loop_attr(r, v, name, out)) return false;
    if (v->kind == TPL_MACRO && !macro_attr(r, v, name, out)) return false;
    if (v->kind == TPL_TUPLE && v->group && is_any(name, "grouper list")) {
        *out = v->seq->item[tpl_is_word(name, "list")];
        return true;
    }
    if (v->kind == TPL_CYCLER && tpl_is_word(name, "current"))
        *out = v->cycler->seq->item[v->cycler->at];
    const struct tpl_func *method = text_tpl_find_method(v->kind, name);
    return out->kind != TPL_MISSING || !method || bind_method(r, v, method, out);
}

static bool no_attr(const struct tpl_value *v, struct tpl_str name, struct tpl_value *out)
{
    *out = tpl_undefined(TPL_ATTRIBUTE, name);
    out->of = v->kind;
    return true;
}

/* Names of the host language's internals: never looked up. */
static bool is_internal(struct tpl_str name)
{
    return name.n > 4 && memcmp(name.s, "__", 2) == 0 && memcmp(name.s + name.n - 2, "__", 2) == 0;
}

bool text_tpl_attr(struct tpl_run *r, const struct tpl_value *v, struct tpl_str name,
                   struct tpl_value *out)
{
    if (v->kind != TPL_UNDEFINED && is_internal(name)) return no_attr(v, name, out);
    if (!own_attr(r, v, name, out)) return false;
    if (out->kind != TPL_MISSING) return true;
    const struct tpl_value *hit = v->kind == TPL_DICT ? text_tpl_dict_word(v->dict, name) : NULL;
    if (!hit) return no_attr(v, name, out);
    *out = *hit;
    return true;
}

/* ---- Subscripts ---- */

bool text_tpl_item(struct tpl_run *r, const struct tpl_value *v, const struct tpl_value *key,
                   struct tpl_value *out)
{
    int64_t i;
    size_t n;
    bool ok;
    if (v->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, v);
    if (v->kind == TPL_DICT) {
        if (key->kind == TPL_STR && !text_tpl_step(r, key->s.n / 64)) return false;
        const struct tpl_value *hit = text_tpl_dict_find(v->dict, key, &ok);
        if (hit) {
            *out = *hit;
            return true;
        }
    } else if ((v->kind == TPL_STR || v->kind == TPL_LIST || v->kind == TPL_TUPLE ||
                v->kind == TPL_RANGE) &&
               tpl_as_int(key, &i)) {
        if (!text_tpl_length(r, v, &n)) return false;
        if (i < 0) i += (int64_t)n;
        if (i < 0 || i >= (int64_t)n) return no_attr(v, (struct tpl_str){"index", 5}, out);
        if (v->kind != TPL_STR) {
            *out = v->seq->item[i];
            return true;
        }
        const size_t at = text_tpl_bytes(v->s, (size_t)i);
        const struct tpl_str rest = {v->s.s + at, v->s.n - at};
        *out = tpl_string(rest.s, text_tpl_bytes(rest, 1));
        out->safe = v->safe;
        return text_tpl_step(r, at / 64);
    }
    if (key->kind != TPL_STR) return no_attr(v, (struct tpl_str){"item", 4}, out);
    if (is_internal(key->s)) return no_attr(v, key->s, out);
    if (!own_attr(r, v, key->s, out)) return false;
    return out->kind != TPL_MISSING || no_attr(v, key->s, out);
}

/* The slice's first index and count, by Python's rules; the bounds are integers or none. */
static bool slice_range(struct tpl_run *r, const struct tpl_value bound[3], int64_t n,
                        int64_t limit[2], int64_t *step, int64_t *count)
{
    *step = 1;
    tpl_as_int(&bound[2], step);
    if (*step == 0) return text_tpl_fail(r, "a slice step of zero");
    if (*step < -INT64_MAX) *step = -INT64_MAX;
    const int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? n - 1 : n;
    for (int i = 0; i < 2; i++) {
        limit[i] = (i == 0) == (*step > 0) ? low : high;
        if (!tpl_as_int(&bound[i], &limit[i])) continue;
        if (limit[i] < 0) limit[i] += n;
        if (limit[i] < low) limit[i] = low;
        if (limit[i] > high) limit[i] = high;
    }
    const int64_t length = *step > 0 ? limit[1] - limit[0] : limit[0] - limit[1];
    const int64_t stride = *step > 0 ? *step : -*step;
    *count = length > 0 ? (length - 1) / stride + 1 : 0;
    return true;
}

static bool slice_string(struct tpl_run *r, struct tpl_str s, int64_t first, int64_t step,
                         int64_t count, struct tpl_value *out)
{
    struct tpl_text text = {0};
    if (step == 1 || count <= 1) {
        const size_t at = text_tpl_bytes(s, (size_t)(count ? first : 0));
        const struct tpl_str rest = {s.s + at, s.n - at};
        *out = tpl_string(rest.s, text_tpl_bytes(rest, (size_t)count));
        return true;
    }
    /* With other steps code points are found by a table of their places. */
    const size_t n = text_tpl_count(s);
    size_t *place = text_tpl_take(&r->pool, (n + 1) * sizeof *place, r->err);
    if (!place) return false;
    for (size_t i = 0, k = 0; i < s.n; i++)
        if (((unsigned char)s.s[i] & 0xc0) != 0x80) place[k++] = i;
    place[n] = s.n;
    for (int64_t k = 0; k < count; k++) {
        const int64_t i = first + k * step;
        if (!text_tpl_add(r, &text, s.s + place[i], place[i + 1] - place[i])) return false;
    }
    *out = text_tpl_text_value(&text);
    return true;
}

/* A slice of a range is a range: the numbers, then its start, stop and step. */
static bool cut_range(struct tpl_run *r, const struct tpl_seq *all, const int64_t limit[2],
                      int64_t step, int64_t count, struct tpl_value *out)
{
    const int64_t start = all->item[all->n].i, stride = all->item[all->n + 2].i;
    int64_t bound[3];
    *out = tpl_of_seq(TPL_RANGE, text_tpl_seq(r, (size_t)count + 3));
    if (!out->seq) return false;
    for (int i = 0; i < 3; i++) {
        if (__builtin_mul_overflow(i == 2 ? step : limit[i], stride, &bound[i]) ||
            (i < 2 && __builtin_add_overflow(bound[i], start, &bound[i])))
            return text_tpl_fail(r, "a slice of a range gives more than 64 bits");
        out->seq->item[count + i] = tpl_int(bound[i]);
    }
    for (int64_t k = 0; k < count; k++) out->seq->item[k] = all->item[limit[0] + k * step];
    out->seq->n = (size_t)count;
    return true;
}

bool text_tpl_slice(struct tpl_run *r, const struct tpl_value *v, const struct tpl_value bound[3],
                    struct tpl_value *out)
{
    int64_t limit[2] = {0}, step = 1, count = 0;
    size_t n;
    if (v->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, v);
    if (v->kind != TPL_STR && v->kind != TPL_LIST && v->kind != TPL_TUPLE && v->kind != TPL_RANGE)
        return text_tpl_fail(r, "a slice of '%s'", text_tpl_type(v));
    if (!text_tpl_length(r, v, &n)) return false;
    for (int i = 0; i < 3; i++) {
        int64_t ignored;
        if (bound[i].kind != TPL_NONE && !tpl_as_int(&bound[i], &ignored))
            return text_tpl_fail(r, "a slice bound that is '%s'", text_tpl_type(&bound[i]));
    }
    if (!slice_range(r, bound, (int64_t)n, limit, &step, &count)) return false;
    const int64_t first = limit[0];
    if (!text_tpl_step(r, (uint64_t)count / 8)) return false;
    if (v->kind == TPL_STR) {
        if (!slice_string(r, v->s, first, step, count, out)) return false;
        out->safe = v->safe;
        return true;
    }
    if (v->kind == TPL_RANGE) return cut_range(r, v->seq, limit, step, count, out);
    *out = tpl_of_seq(v->kind, text_tpl_seq(r, (size_t)count));
    if (!out->seq) return false;
    for (int64_t k = 0; k < count; k++) out->seq->item[k] = v->seq->item[first + k * step];
    out->seq->n = (size_t)count;
    return true;
}
