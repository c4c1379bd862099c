/* text/jinja/jinja_args.c: binds the arguments of a call to the signature of a built-in callable.
 * See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

static const char *next_param(const char *at, size_t *n)
{
    while (*at == ' ') at++;
    *n = strcspn(at, " ");
    return at;
}

/* Returns the number of the parameter `name`, or -1; parameters before a "/" are positional
 * only. */
static int find_param(const char *params, struct jinja_str name)
{
    size_t n;
    const char *slash = strchr(params, '/');
    int i = 0;
    for (const char *at = next_param(params, &n); n; at = next_param(at + n, &n)) {
        if (*at == '/') continue;
        if (n == name.n && memcmp(at, name.s, n) == 0 && (!slash || at > slash)) return i;
        i++;
    }
    return -1;
}

static size_t count_params(const char *params)
{
    size_t n, count = 0;
    for (const char *at = next_param(params, &n); n; at = next_param(at + n, &n))
        count += *at != '/';
    return count;
}

bool jinja_invoke(struct jinja_run *r, const struct jinja_func *f, struct jinja_call *c,
                  struct jinja_value *out)
{
    c->name = f->name;
    c->form = f->form;
    if (!f->params) return f->run(r, c, out);
    const size_t max = count_params(f->params);
    if (c->n_pos > max)
        return jinja_fail(r, "%s: %zu arguments, at most %zu", f->name, c->n_pos, max);
    for (size_t i = 0; i < JINJA_MAX_PARAMS; i++)
        c->arg[i] = i < c->n_pos ? c->pos[i] : (struct jinja_value){.kind = JINJA_MISSING};
    for (uint32_t k = 0; c->kw && k < c->kw->n; k++) {
        const struct jinja_str name = c->kw->key[k].s;
        const int i = find_param(f->params, name);
        if (i < 0)
            return jinja_fail(r, "%s: no argument named '%.*s'", f->name, (int)name.n, name.s);
        if (jinja_given(&c->arg[i]))
            return jinja_fail(r, "%s: two values for '%.*s'", f->name, (int)name.n, name.s);
        c->arg[i] = c->kw->value[k];
    }
    for (unsigned i = 0; i < f->required; i++)
        if (!jinja_given(&c->arg[i]))
            return jinja_fail(r, "%s: needs %u arguments", f->name, f->required);
    return f->run(r, c, out);
}

bool jinja_arg_str(struct jinja_run *r, const struct jinja_call *c, int i, struct jinja_str *out)
{
    if (c->arg[i].kind != JINJA_STR)
        return jinja_fail(r, "%s: a string is needed, not '%s'", c->name, jinja_type(&c->arg[i]));
    *out = c->arg[i].s;
    return true;
}

bool jinja_arg_int(struct jinja_run *r, const struct jinja_call *c, int i, int64_t by_default,
                   int64_t *out)
{
    *out = by_default;
    if (!jinja_given(&c->arg[i]) || jinja_as_int(&c->arg[i], out)) return true;
    return jinja_fail(r, "%s: an integer is needed, not '%s'", c->name, jinja_type(&c->arg[i]));
}

bool jinja_arg_truth(struct jinja_run *r, const struct jinja_call *c, int i, bool by_default,
                     bool *out)
{
    *out = by_default;
    return !jinja_given(&c->arg[i]) || jinja_truth(r, &c->arg[i], out);
}

const struct jinja_func *jinja_find_row(const struct jinja_func *rows, size_t n, struct jinja_str s)
{
    for (size_t i = 0; i < n; i++)
        if (jinja_str_is(s, rows[i].name)) return &rows[i];
    return NULL;
}
