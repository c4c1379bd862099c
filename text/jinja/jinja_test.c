/* text/jinja/jinja_test.c: the tests of `is`. See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

static bool yes(struct tpl_value *out, bool answer)
{
    *out = tpl_bool(answer);
    return true;
}

static bool t_defined(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind != TPL_UNDEFINED);
}

static bool t_undefined(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_UNDEFINED);
}

static bool t_none(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_NONE);
}

static bool t_boolean(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_BOOL);
}

static bool t_true(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_BOOL && c->self->b);
}

static bool t_false(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_BOOL && !c->self->b);
}

static bool t_integer(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_INT);
}

static bool t_float(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_FLOAT);
}

static bool t_number(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    double f;
    (void)r;
    return yes(out, tpl_as_number(c->self, &f));
}

static bool t_string(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_STR);
}

static bool t_mapping(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_DICT);
}

static bool t_sequence(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, text_tpl_has_length(c->self) && c->self->kind != TPL_VIEW);
}

static bool t_iterable(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, text_tpl_has_length(c->self) || c->self->kind == TPL_ITER ||
                        c->self->kind == TPL_LOOP);
}

static bool t_callable(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    const int kind = c->self->kind;
    (void)r;
    return yes(out, kind == TPL_MACRO || kind == TPL_FUNC || kind == TPL_METHOD ||
                        kind == TPL_LOOP || kind == TPL_JOINER || kind == TPL_UNDEFINED);
}

static bool t_escaped(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_STR && c->self->safe);
}

static bool remainder_is(struct tpl_run *r, struct tpl_call *c, struct tpl_value by, int64_t want,
                         struct tpl_value *out)
{
    struct tpl_value rest, wanted = tpl_int(want);
    bool same;
    if (!text_tpl_binary(r, TPL_MOD, c->self, &by, &rest) ||
        !text_tpl_equal(r, &rest, &wanted, &same))
        return false;
    return yes(out, same);
}

static bool t_odd(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return remainder_is(r, c, tpl_int(2), 1, out);
}

static bool t_even(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return remainder_is(r, c, tpl_int(2), 0, out);
}

static bool t_divisibleby(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return remainder_is(r, c, c->arg[0], 0, out);
}

static bool is_case(struct tpl_run *r, struct tpl_call *c, enum tpl_case want,
                    struct tpl_value *out)
{
    struct tpl_value text;
    return text_tpl_to_str(r, c->self, &text) && yes(out, text_tpl_is_cased(text.s, want));
}

static bool t_lower(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return is_case(r, c, TPL_LOWER, out);
}

static bool t_upper(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return is_case(r, c, TPL_UPPER, out);
}

static bool compare(struct tpl_run *r, struct tpl_call *c, enum tpl_op op, struct tpl_value *out)
{
    bool answer;
    return text_tpl_compare(r, op, c->self, &c->arg[0], &answer) && yes(out, answer);
}

static bool t_eq(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return compare(r, c, TPL_EQ, out);
}

static bool t_ne(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return compare(r, c, TPL_NE, out);
}

static bool t_lt(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return compare(r, c, TPL_LT, out);
}

static bool t_le(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return compare(r, c, TPL_LE, out);
}

static bool t_gt(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return compare(r, c, TPL_GT, out);
}

static bool t_ge(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return compare(r, c, TPL_GE, out);
}

static bool t_in(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    return compare(r, c, TPL_IN, out);
}

/* The same object; equal values of one simple type count as one object. */
static bool t_sameas(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    const struct tpl_value *a = c->self, *b = &c->arg[0];
    bool same = a->kind == b->kind;
    if (same && a->kind >= TPL_LIST) return yes(out, a->seq == b->seq);
    if (same && !text_tpl_equal(r, a, b, &same)) return false;
    return yes(out, same);
}

static bool t_filter(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_STR && text_tpl_find_filter(c->self->s));
}

static bool t_test(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out)
{
    (void)r;
    return yes(out, c->self->kind == TPL_STR && text_tpl_find_test(c->self->s));
}

static const struct tpl_func rows[] = {{"defined", t_defined, "", 0},
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

const struct tpl_func *text_tpl_find_test(struct tpl_str name)
{
    return text_tpl_find_row(rows, sizeof rows / sizeof rows[0], name);
}

bool text_tpl_apply_test(struct tpl_run *r, struct tpl_str name, const struct tpl_value *subject,
                         struct tpl_call *c, bool *out)
{
    const struct tpl_func *test = text_tpl_find_test(name);
    struct tpl_value answer;
    if (!test) return text_tpl_fail(r, "no test named '%.*s'", (int)name.n, name.s);
    c->self = subject;
    if (!text_tpl_invoke(r, test, c, &answer)) return false;
    *out = answer.b;
    return true;
}
