/* text/jinja/jinja_call.c: calling: signatures, macros, global functions. See
 * text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <stdlib.h>
#include <string.h>

/* ---- Binding arguments to a signature ---- */

static const char *next_param(const char *at, size_t *n)
{
    while (*at == ' ') at++;
    *n = strcspn(at, " ");
    return at;
}

/* The number of the parameter `name`, or -1; those before a "/" have no name for callers. */
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
    if (!f->params) return f->run(r, c, out);
    const size_t most = count_params(f->params);
    if (c->n_pos > most)
        return jinja_fail(r, "%s: %zu arguments, at most %zu", f->name, c->n_pos, most);
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

/* ---- Macros ---- */

static int name_id(const struct jinja_run *r, const char *name)
{
    for (size_t i = 0; i < r->t->n_names; i++)
        if (jinja_str_is(r->t->name[i], name)) return (int)i;
    return -1; /* cannot be: the parser notes the special names */
}

static const char *macro_name(const struct jinja_macro *m, int *n)
{
    const bool named = m->node->kind == JINJA_N_MACRO;
    *n = named ? (int)m->node->text.n : 6;
    return named ? m->node->text.s : "caller";
}

/* The arguments that no parameter takes: to varargs and kwargs, or an error. */
static bool bind_rest(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_macro *m,
                      const struct jinja_call *c, struct jinja_dict *kw)
{
    const size_t n = m->node->list.n, extra = c->n_pos > n ? c->n_pos - n : 0;
    struct jinja_value rest = jinja_of_seq(JINJA_TUPLE, jinja_seq(r, extra));
    int length;
    const char *name = macro_name(m, &length);
    if (!rest.seq) return false;
    for (size_t i = 0; i < extra; i++) rest.seq->item[rest.seq->n++] = c->pos[n + i];
    if (m->node->uses & JINJA_USES_KWARGS) {
        const struct jinja_value all = {.kind = JINJA_DICT, .dict = kw};
        if (!jinja_set(r, scope, name_id(r, "kwargs"), all)) return false;
    } else if (kw->n) {
        return jinja_fail(r, "macro '%.*s' takes no argument '%.*s'", length, name,
                          (int)kw->key[0].s.n, kw->key[0].s.s);
    }
    if (m->node->uses & JINJA_USES_VARARGS) return jinja_set(r, scope, name_id(r, "varargs"), rest);
    return !extra || jinja_fail(r, "macro '%.*s' takes at most %zu arguments", length, name, n);
}

/* Binds the parameters; kw becomes the keyword arguments that are left. */
static bool bind_params(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_macro *m,
                        const struct jinja_call *c, struct jinja_dict *kw)
{
    const struct jinja_node *node = m->node;
    const struct jinja_value missing = {.kind = JINJA_MISSING};
    bool caller_given = false;
    for (size_t i = 0; i < node->list.n; i++) {
        const struct jinja_node *param = node->list.node[i];
        const bool is_caller = jinja_str_is(param->text, "caller");
        const struct jinja_value *named =
            c->kw && i >= c->n_pos ? jinja_dict_word(c->kw, param->text) : NULL;
        if (!jinja_set(r, scope, param->id, i < c->n_pos ? c->pos[i] : named ? *named : missing))
            return false;
        caller_given |= is_caller;
    }
    for (uint32_t k = 0; c->kw && k < c->kw->n; k++) {
        const struct jinja_str name = c->kw->key[k].s;
        bool taken =
            !caller_given && jinja_str_is(name, "caller") && (node->uses & JINJA_USES_CALLER);
        for (size_t i = c->n_pos; !taken && i < node->list.n; i++) {
            const struct jinja_str param = node->list.node[i]->text;
            taken = param.n == name.n && memcmp(param.s, name.s, name.n) == 0;
        }
        if (!taken && !jinja_dict_set(r, kw, c->kw->key[k], c->kw->value[k])) return false;
    }
    if (caller_given || !(node->uses & JINJA_USES_CALLER)) return true;
    const struct jinja_value *caller =
        c->kw ? jinja_dict_word(c->kw, (struct jinja_str){"caller", 6}) : NULL;
    return jinja_set(r, scope, name_id(r, "caller"),
                     caller ? *caller
                            : jinja_undefined(JINJA_NAME, (struct jinja_str){"caller", 6}));
}

static bool fill_defaults(struct jinja_run *r, struct jinja_scope *scope,
                          const struct jinja_node *node)
{
    const size_t n = node->list.n, n_plain = n - node->defaults.n;
    for (size_t i = 0; i < n; i++) {
        const struct jinja_node *param = node->list.node[i];
        struct jinja_value value = jinja_undefined(JINJA_PARAMETER, param->text);
        const struct jinja_var *var = scope->var;
        while (var->id != param->id) var++;
        if (var->value.kind != JINJA_MISSING) continue;
        if (i >= n_plain && !jinja_eval(r, scope, node->defaults.node[i - n_plain], &value))
            return false;
        if (!jinja_set(r, scope, param->id, value)) return false;
    }
    return true;
}

static bool call_macro(struct jinja_run *r, const struct jinja_macro *m, const struct jinja_call *c,
                       struct jinja_value *out)
{
    struct jinja_text text = {0}, *before = r->out;
    struct jinja_dict *kw = jinja_dict(r);
    struct jinja_scope *scope = jinja_scope(r, m->scope, &m->node->hidden);
    if (!kw || !scope || !bind_params(r, scope, m, c, kw) || !bind_rest(r, scope, m, c, kw) ||
        !fill_defaults(r, scope, m->node))
        return false;
    r->out = &text;
    const enum jinja_flow flow = jinja_exec(r, scope, &m->node->body);
    r->out = before;
    *out = jinja_text_value(&text);
    return flow != JINJA_ERROR;
}

/* ---- Loops as functions: recursion, and what else is called ---- */

static bool call_loop(struct jinja_run *r, const struct jinja_loop *loop,
                      const struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text text = {0}, *before = r->out;
    if (!loop->node->flag)
        return jinja_fail(r, "the loop is called, but is not marked as recursive");
    if (c->n_pos != 1 || c->kw) return jinja_fail(r, "a loop is called with one argument");
    r->out = &text;
    const enum jinja_flow flow =
        jinja_exec_for(r, loop->scope, loop->node, &c->pos[0], loop->depth + 1);
    r->out = before;
    *out = jinja_text_value(&text);
    return flow != JINJA_ERROR;
}

bool jinja_call(struct jinja_run *r, const struct jinja_value *callee, struct jinja_call *c,
                struct jinja_value *out)
{
    struct jinja_cycler *cycler = callee->cycler;
    switch (callee->kind) {
    case JINJA_MACRO:
        return call_macro(r, callee->macro, c, out);
    case JINJA_FUNC:
        return jinja_invoke(r, callee->func, c, out);
    case JINJA_METHOD:
        c->self = &callee->bound->self;
        return jinja_invoke(r, callee->bound->method, c, out);
    case JINJA_LOOP:
        return call_loop(r, callee->loop, c, out);
    case JINJA_JOINER:
        if (c->n_pos || c->kw) return jinja_fail(r, "a joiner takes no arguments");
        *out = cycler->at++ ? cycler->sep : jinja_string("", 0);
        return true;
    case JINJA_UNDEFINED:
        return jinja_fail_undefined(r, callee);
    default:
        return jinja_fail(r, "'%s' object is not callable", jinja_type(callee));
    }
}

/* ---- Global functions ---- */

enum { MAX_RANGE = 100000 }; /* jinja2's own limit in the sandbox */

static bool fn_range(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    int64_t a, b, start = 0, stop, step = 1;
    const bool two = jinja_given(&c->arg[1]);
    if (!jinja_arg_int(r, c, 0, 0, &a) || !jinja_arg_int(r, c, 1, 0, &b) ||
        !jinja_arg_int(r, c, 2, 1, &step))
        return false;
    if (step == 0) return jinja_fail(r, "range: a step of zero");
    stop = two ? b : a;
    if (two) start = a;
    /* Differences and steps as unsigned numbers: these cannot overflow. */
    const uint64_t gap =
        step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const bool empty = step > 0 ? stop <= start : stop >= start;
    const uint64_t n = empty ? 0 : (gap - 1) / stride + 1;
    if (n > MAX_RANGE) return jinja_fail(r, "range: more than %d numbers", MAX_RANGE);
    if (!jinja_step(r, n)) return false;
    *out = jinja_of_seq(JINJA_RANGE, jinja_seq(r, n + 3));
    if (!out->seq) return false;
    out->seq->n = n;
    for (uint64_t i = 0; i < n; i++)
        out->seq->item[i] = jinja_int((int64_t)((uint64_t)start + i * (uint64_t)step));
    out->seq->item[n] = jinja_int(start); /* behind the items, for printing */
    out->seq->item[n + 1] = jinja_int(stop);
    out->seq->item[n + 2] = jinja_int(step);
    return true;
}

/* dict(mapping or pairs, key=value, ...) */
static bool make_dict(struct jinja_run *r, struct jinja_call *c, enum jinja_kind kind,
                      struct jinja_value *out)
{
    struct jinja_seq *items, *pair;
    if (c->n_pos > 1) return jinja_fail(r, "%s: more than one argument", c->name);
    if (!jinja_new(r, kind, out)) return false;
    const struct jinja_value *from = c->n_pos ? &c->pos[0] : NULL;
    if (from && from->kind == JINJA_DICT) {
        for (uint32_t i = 0; i < from->dict->n; i++)
            if (!jinja_dict_set(r, out->dict, from->dict->key[i], from->dict->value[i]))
                return false;
    } else if (from) {
        if (!jinja_items(r, from, &items)) return false;
        for (size_t i = 0; i < items->n; i++) {
            if (!jinja_items(r, &items->item[i], &pair)) return false;
            if (pair->n != 2) return jinja_fail(r, "%s: an item is not a pair", c->name);
            if (!jinja_dict_set(r, out->dict, pair->item[0], pair->item[1])) return false;
        }
    }
    for (uint32_t i = 0; c->kw && i < c->kw->n; i++)
        if (!jinja_dict_set(r, out->dict, c->kw->key[i], c->kw->value[i])) return false;
    return true;
}

static bool fn_dict(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return make_dict(r, c, JINJA_DICT, out);
}

static bool fn_namespace(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    return make_dict(r, c, JINJA_NAMESPACE, out);
}

static bool fn_raise(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_value text;
    (void)out;
    if (!jinja_to_str(r, &c->arg[0], &text)) return false;
    return jinja_fail(r, "raise_exception: %.*s", (int)(text.s.n > 300 ? 300 : text.s.n), text.s.s);
}

static bool fn_strftime_now(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    struct jinja_text format = {0};
    struct jinja_str given = {0};
    char text[1024];
    if (!jinja_arg_str(r, c, 0, &given)) return false;
    if (given.n > 200) return jinja_fail(r, "strftime_now: a format longer than 200 bytes");
    for (size_t i = 0; i < given.n; i++) {
        const char next = given.s[i] == '%' && i + 1 < given.n ? given.s[i + 1] : 0;
        /* Microseconds, and zones: the clock is a plain local time that has neither. */
        if (next == 'f' && !jinja_add_word(r, &format, "000000")) return false;
        if (next == 'f' || next == 'z' || next == 'Z') {
            i++;
            continue;
        }
        const size_t n = next ? 2 : 1;
        if (!jinja_add(r, &format, given.s + i, n)) return false;
        i += n - 1;
    }
    /* A byte in front: an empty result differs from one that does not fit. */
    if (!jinja_add_char(r, &format, ' ', 1) || !jinja_add_char(r, &format, '\0', 1)) return false;
    const size_t n = strftime(text, sizeof text, format.s, &r->clock);
    if (!n) return jinja_fail(r, "strftime_now: the result is too long");
    struct jinja_text result = {0};
    if (!jinja_add(r, &result, text, n - 1)) return false;
    *out = jinja_text_value(&result);
    return true;
}

static bool new_cycler(struct jinja_run *r, enum jinja_kind kind, struct jinja_value *out)
{
    *out = (struct jinja_value){.kind = (uint8_t)kind,
                                .cycler = jinja_take(&r->pool, sizeof *out->cycler, r->err)};
    return out->cycler != NULL;
}

static bool fn_cycler(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    if (!c->n_pos || c->kw) return jinja_fail(r, "cycler: needs items to cycle through");
    if (!new_cycler(r, JINJA_CYCLER, out)) return false;
    out->cycler->seq = jinja_seq(r, c->n_pos);
    if (!out->cycler->seq) return false;
    memcpy(out->cycler->seq->item, c->pos, c->n_pos * sizeof *c->pos);
    out->cycler->seq->n = c->n_pos;
    return true;
}

static bool fn_joiner(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    if (!new_cycler(r, JINJA_JOINER, out)) return false;
    out->cycler->sep = jinja_given(&c->arg[0]) ? c->arg[0] : jinja_string(", ", 2);
    return true;
}

static bool fn_lipsum(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out)
{
    (void)out;
    return jinja_fail(r, "the function '%s' is not supported", c->name);
}

const struct jinja_func *jinja_find_global(struct jinja_str name)
{
    static const struct jinja_func rows[] = {{"range", fn_range, "start stop step /", 1},
                                             {"dict", fn_dict, NULL, 0},
                                             {"namespace", fn_namespace, NULL, 0},
                                             {"raise_exception", fn_raise, "message", 1},
                                             {"strftime_now", fn_strftime_now, "format", 1},
                                             {"cycler", fn_cycler, NULL, 0},
                                             {"joiner", fn_joiner, "sep", 0},
                                             {"lipsum", fn_lipsum, NULL, 0}};
    return jinja_find_row(rows, sizeof rows / sizeof rows[0], name);
}
