/* text/jinja/jinja_test.c: the tests of `is`. See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

static bool yes(struct jinja_value *out, bool answer)
{
    *out = jinja_bool(answer);
    return true;
}

static bool t_defined(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind != JINJA_UNDEFINED);
}

static bool t_undefined(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_UNDEFINED);
}

static bool t_none(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_NONE);
}

static bool t_boolean(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_BOOL);
}

static bool t_true(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_BOOL && c->self->b);
}

static bool t_false(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_BOOL && !c->self->b);
}

static bool t_integer(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_INT);
}

static bool t_float(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_FLOAT);
}

static bool t_number(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    double f;
    (void)r;
    return yes(out, jinja_as_number(c->self, &f));
}

static bool t_string(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_STR);
}

static bool t_mapping(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_DICT);
}

static bool t_sequence(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, jinja_has_length(c->self) && c->self->kind != JINJA_VIEW);
}

static bool t_iterable(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, jinja_has_length(c->self) || c->self->kind == JINJA_ITER ||
                        c->self->kind == JINJA_LOOP);
}

static bool t_callable(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    const int kind = c->self->kind;
    (void)r;
    return yes(out, kind == JINJA_MACRO || kind == JINJA_FUNC || kind == JINJA_METHOD ||
                        kind == JINJA_LOOP || kind == JINJA_JOINER || kind == JINJA_UNDEFINED);
}

static bool t_escaped(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_STR && c->self->safe);
}

static bool remainder_is(struct jinja_run *r, struct jinja_call *c, struct jinja_value by,
                         int64_t want, struct jinja_value *out)
{
    struct jinja_value rest, wanted = jinja_int(want);
    bool same;
    if (!jinja_binary(r, JINJA_MOD, c->self, &by, &rest) || !jinja_equal(r, &rest, &wanted, &same))
        return false;
    return yes(out, same);
}

static bool t_odd(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return remainder_is(r, c, jinja_int(2), 1, out);
}

static bool t_even(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return remainder_is(r, c, jinja_int(2), 0, out);
}

static bool t_divisibleby(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return remainder_is(r, c, c->arg[0], 0, out);
}

static bool is_case(struct jinja_run *r, struct jinja_call *c, enum jinja_case want,
                    struct jinja_value *out)
{
    struct jinja_value text;
    return jinja_to_str(r, c->self, &text) && yes(out, jinja_is_cased(text.s, want));
}

static bool t_lower(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return is_case(r, c, JINJA_LOWER, out);
}

static bool t_upper(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return is_case(r, c, JINJA_UPPER, out);
}

static bool compare(struct jinja_run *r, struct jinja_call *c, enum jinja_op op,
                    struct jinja_value *out)
{
    bool answer;
    return jinja_compare(r, op, c->self, &c->arg[0], &answer) && yes(out, answer);
}

static bool t_eq(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return compare(r, c, JINJA_EQ, out);
}

static bool t_ne(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return compare(r, c, JINJA_NE, out);
}

static bool t_lt(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return compare(r, c, JINJA_LT, out);
}

static bool t_le(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return compare(r, c, JINJA_LE, out);
}

static bool t_gt(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return compare(r, c, JINJA_GT, out);
}

static bool t_ge(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return compare(r, c, JINJA_GE, out);
}

static bool t_in(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return compare(r, c, JINJA_IN, out);
}

/* The same object; equal values of one simple type count as one object. */
static bool t_sameas(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    const struct jinja_value *a = c->self, *b = &c->arg[0];
    bool same = a->kind == b->kind;
    if (same && a->kind >= JINJA_LIST) return yes(out, a->seq == b->seq);
    if (same && !jinja_equal(r, a, b, &same)) return false;
    return yes(out, same);
}

static bool t_filter(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_STR && jinja_find_filter(c->self->s));
}

static bool t_test(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_STR && jinja_find_test(c->self->s));
}

static const struct jinja_func rows[] = {{"defined", t_defined, "", 0},
                                         {"undefined", t_undefined, "", 0},
                                         {"none", t_none, "", 0},
                                         {"boolean", t_boolean, "", 0},
                                         {"true", t_true, "", 0},
                                         {"false", t_false, "", 0},
                                         {"integer", t_integer, "", 0},
                                         {"float", t_float, "", 0},
                                         {"number", t_number, "", 0},
                                         {"string", t_string, "", 0},
                                         {"mapping", t_mapping, "", 0},
                                         {"sequence", t_sequence, "", 0},
                                         {"iterable", t_iterable, "", 0},
                                         {"callable", t_callable, "", 0},
                                         {"escaped", t_escaped, "", 0},
                                         {"odd", t_odd, "", 0},
                                         {"even", t_even, "", 0},
                                         {"divisibleby", t_divisibleby, "num", 1},
                                         {"lower", t_lower, "", 0},
                                         {"upper", t_upper, "", 0},
                                         {"eq", t_eq, "b /", 1},
                                         {"==", t_eq, "b /", 1},
                                         {"equalto", t_eq, "b /", 1},
                                         {"ne", t_ne, "b /", 1},
                                         {"!=", t_ne, "b /", 1},
                                         {"lt", t_lt, "b /", 1},
                                         {"<", t_lt, "b /", 1},
                                         {"lessthan", t_lt, "b /", 1},
                                         {"le", t_le, "b /", 1},
                                         {"<=", t_le, "b /", 1},
                                         {"gt", t_gt, "b /", 1},
                                         {">", t_gt, "b /", 1},
                                         {"greaterthan", t_gt, "b /", 1},
                                         {"ge", t_ge, "b /", 1},
                                         {">=", t_ge, "b /", 1},
                                         {"in", t_in, "seq", 1},
                                         {"sameas", t_sameas, "other", 1},
                                         {"filter", t_filter, "", 0},
                                         {"test", t_test, "", 0}};

const struct jinja_func *jinja_find_test(struct jinja_str name)
{
    return jinja_find_row(rows, sizeof rows / sizeof rows[0], name);
}

bool jinja_apply_test(struct jinja_run *r, struct jinja_str name, const struct jinja_value *subject,
                      struct jinja_call *c, bool *out)
{
    const struct jinja_func *test = jinja_find_test(name);
    struct jinja_value answer;
    if (!test) return jinja_fail(r, "no test named '%.*s'", (int)name.n, name.s);
    c->self = subject;
    if (!jinja_invoke(r, test, c, &answer)) return false;
    *out = answer.b;
    return true;
}
