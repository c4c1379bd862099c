/* text/jinja/jinja_test.c: the tests of `is`. See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

static bool yes(struct jinja_value *out, bool answer)
{
    *out = jinja_bool(answer);
    return true;
}

/* Tests that depend only on the kind. */
#define KIND_TEST(name, is)                                                                        \
    static bool t_##name(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)       \
    {                                                                                              \
        (void)r;                                                                                   \
        return yes(out, c->self->kind == (is));                                                    \
    }
KIND_TEST(undefined, JINJA_UNDEFINED)
KIND_TEST(none, JINJA_NONE)
KIND_TEST(boolean, JINJA_BOOL)
KIND_TEST(integer, JINJA_INT)
KIND_TEST(float, JINJA_FLOAT)
KIND_TEST(string, JINJA_STR)
KIND_TEST(mapping, JINJA_DICT)

static bool t_defined(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind != JINJA_UNDEFINED);
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

static bool t_number(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    double f;
    (void)r;
    return yes(out, jinja_as_number(c->self, &f));
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

static bool t_in(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return compare(r, c, JINJA_IN, out);
}

static const struct jinja_func rows[] = {
    {"defined", t_defined, "", 0},   {"undefined", t_undefined, "", 0},
    {"none", t_none, "", 0},         {"boolean", t_boolean, "", 0},
    {"true", t_true, "", 0},         {"false", t_false, "", 0},
    {"integer", t_integer, "", 0},   {"float", t_float, "", 0},
    {"number", t_number, "", 0},     {"string", t_string, "", 0},
    {"mapping", t_mapping, "", 0},   {"sequence", t_sequence, "", 0},
    {"iterable", t_iterable, "", 0}, {"eq", t_eq, "b /", 1},
    {"==", t_eq, "b /", 1},          {"equalto", t_eq, "b /", 1},
    {"ne", t_ne, "b /", 1},          {"!=", t_ne, "b /", 1},
    {"in", t_in, "seq", 1},
};

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
