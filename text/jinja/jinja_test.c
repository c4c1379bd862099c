/* text/jinja/jinja_test.c: the tests of `is`. See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"

static bool yes(struct jinja_value *out, bool answer)
{
    *out = jinja_bool(answer);
    return true;
}

static bool t_kind(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == c->form);
}

static bool t_defined(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind != JINJA_UNDEFINED);
}

static bool t_truth(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)r;
    return yes(out, c->self->kind == JINJA_BOOL && c->self->b == c->form);
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

static bool t_compare(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    bool answer;
    return jinja_compare(r, (enum jinja_op)c->form, c->self, &c->arg[0], &answer) &&
           yes(out, answer);
}

static const struct jinja_func rows[] = {
    {"defined", t_defined, "", 0, 0},       {"undefined", t_kind, "", 0, JINJA_UNDEFINED},
    {"none", t_kind, "", 0, JINJA_NONE},    {"boolean", t_kind, "", 0, JINJA_BOOL},
    {"true", t_truth, "", 0, true},         {"false", t_truth, "", 0, false},
    {"integer", t_kind, "", 0, JINJA_INT},  {"float", t_kind, "", 0, JINJA_FLOAT},
    {"number", t_number, "", 0, 0},         {"string", t_kind, "", 0, JINJA_STR},
    {"mapping", t_kind, "", 0, JINJA_DICT}, {"sequence", t_sequence, "", 0, 0},
    {"iterable", t_iterable, "", 0, 0},     {"eq", t_compare, "b /", 1, JINJA_EQ},
    {"==", t_compare, "b /", 1, JINJA_EQ},  {"equalto", t_compare, "b /", 1, JINJA_EQ},
    {"ne", t_compare, "b /", 1, JINJA_NE},  {"!=", t_compare, "b /", 1, JINJA_NE},
    {"in", t_compare, "seq", 1, JINJA_IN},
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
