/* text/jinja/jinja_exec.c: runs statements: output, assignments, loops, blocks.
 * See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

/* ---- Scopes ---- */

static int name_id(const struct jinja_run *r, const char *name)
{
    for (size_t i = 0; i < r->t->n_names; i++)
        if (jinja_str_is(r->t->name[i], name)) return (int)i;
    return -1; /* impossible: the parser records the special names */
}

struct jinja_scope *jinja_scope(struct jinja_run *r, struct jinja_scope *parent,
                                const struct jinja_hidden *hidden)
{
    struct jinja_scope *scope = jinja_alloc(&r->pool, sizeof *scope, r->err);
    if (!scope) return NULL;
    scope->parent = parent;
    if (!hidden || !hidden->n) return scope;
    scope->var = jinja_alloc(&r->pool, hidden->n * sizeof *scope->var, r->err);
    if (!scope->var || !jinja_step(r, hidden->n)) return NULL;
    scope->room = scope->n = hidden->n; /* all values are zero: missing */
    for (size_t i = 0; i < hidden->n; i++) scope->var[i].id = hidden->id[i];
    return scope;
}

static bool set(struct jinja_run *r, struct jinja_scope *scope, int id, struct jinja_value value)
{
    if (!jinja_step(r, scope->n / 16)) return false;
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->var[i].id != id) continue;
        scope->var[i].value = value;
        return true;
    }
    if (!JINJA_ROOM(&r->pool, scope->var, scope->n, scope->room, r->err)) return false;
    scope->var[scope->n++] = (struct jinja_var){id, value};
    return true;
}

/* ---- Assignment ---- */

static bool set_attribute(struct jinja_run *r, struct jinja_scope *scope,
                          const struct jinja_node *target, const struct jinja_value *value)
{
    struct jinja_node name = *target;
    struct jinja_value object;
    name.kind = JINJA_N_NAME;
    if (!jinja_eval(r, scope, &name, &object)) return false;
    if (object.kind != JINJA_NAMESPACE)
        return jinja_fail(r, "'%.*s' is not a namespace: its attribute cannot be set",
                          (int)target->text.n, target->text.s);
    const struct jinja_str attr = target->b->text;
    return jinja_dict_set(r, object.dict, jinja_string(attr.s, attr.n), *value);
}

static bool unpack(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *target,
                   const struct jinja_value *value)
{
    struct jinja_seq *items;
    if (target->kind == JINJA_N_NAME) return set(r, scope, target->id, *value);
    if (target->kind == JINJA_N_NSREF) return set_attribute(r, scope, target, value);
    if (!jinja_items(r, value, &items)) return false;
    if (items->n != target->list.n)
        return jinja_fail(r, "%zu values for %zu names", items->n, target->list.n);
    for (size_t i = 0; i < items->n; i++)
        if (!unpack(r, scope, target->list.node[i], &items->item[i])) return false;
    return true;
}

/* ---- Loops ---- */

static bool fill_loop(struct jinja_run *r, struct jinja_loop *loop, size_t count)
{
    const struct jinja_node *test = loop->node->c;
    if (!test) return true; /* items is the source itself */
    for (; loop->items->n < count && loop->read < loop->source->n; loop->read++) {
        const struct jinja_value *item = &loop->source->item[loop->read];
        struct jinja_scope *scope = jinja_scope(r, loop->scope, NULL);
        struct jinja_value value;
        bool yes;
        if (!scope || !unpack(r, scope, loop->node->a, item) ||
            !jinja_eval(r, scope, test, &value) || !jinja_truth(r, &value, &yes) ||
            (yes && !jinja_push(r, loop->items, *item)))
            return false;
    }
    return true;
}

static enum jinja_flow exec_for(struct jinja_run *r, struct jinja_scope *scope,
                                const struct jinja_node *node)
{
    const int id = name_id(r, "loop");
    struct jinja_value items;
    struct jinja_loop *loop = jinja_alloc(&r->pool, sizeof *loop, r->err);
    if (!loop) return JINJA_ERROR;
    *loop = (struct jinja_loop){.node = node, .scope = scope, .fill = fill_loop};
    if (!jinja_eval(r, scope, node->b, &items) || !jinja_items(r, &items, &loop->source))
        return JINJA_ERROR;
    loop->items = node->c ? jinja_seq(r, 0) : loop->source;
    if (!loop->items) return JINJA_ERROR;
    const struct jinja_value variable = {.kind = JINJA_LOOP, .loop = loop};
    bool whole = false; /* the body ran to its end for an item: no else */
    for (;; loop->index++) {
        if (!fill_loop(r, loop, loop->index + 1)) return JINJA_ERROR;
        if (loop->index >= loop->items->n) break;
        struct jinja_scope *inner = jinja_scope(r, scope, &node->hidden);
        if (!inner || !jinja_step(r, 1) || !set(r, inner, id, variable)) return JINJA_ERROR;
        r->line = node->line;
        if (!unpack(r, inner, node->a, &loop->items->item[loop->index])) return JINJA_ERROR;
        const enum jinja_flow flow = jinja_exec(r, inner, &node->body);
        if (flow == JINJA_ERROR) return flow;
        if (flow == JINJA_BROKE) break;
        whole |= flow == JINJA_ON;
    }
    if (whole || !node->other.n) return JINJA_ON;
    struct jinja_scope *inner = jinja_scope(r, scope, &node->other_hidden);
    return inner ? jinja_exec(r, inner, &node->other) : JINJA_ERROR;
}

/* ---- Macros ---- */

/* Runs a body in a scope of its own and writes to `out` instead of the output. */
static enum jinja_flow exec_into(struct jinja_run *r, struct jinja_scope *scope,
                                 const struct jinja_list *body, struct jinja_value *out)
{
    struct jinja_text text = {0}, *before = r->out;
    r->out = &text;
    const enum jinja_flow flow = jinja_exec(r, scope, body);
    r->out = before;
    *out = jinja_text_value(&text);
    return flow;
}

static const char *macro_name(const struct jinja_macro *m, int *n)
{
    const bool named = m->node->kind == JINJA_N_MACRO;
    *n = named ? (int)m->node->text.n : 6;
    return named ? m->node->text.s : "caller";
}

/* Binds surplus arguments to varargs and kwargs; an error if the macro does not use these. */
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
        if (!set(r, scope, name_id(r, "kwargs"), all)) return false;
    } else if (kw->n) {
        return jinja_fail(r, "macro '%.*s' takes no argument '%.*s'", length, name,
                          (int)kw->key[0].s.n, kw->key[0].s.s);
    }
    if (m->node->uses & JINJA_USES_VARARGS) return set(r, scope, name_id(r, "varargs"), rest);
    return !extra || jinja_fail(r, "macro '%.*s' takes at most %zu arguments", length, name, n);
}

/* Binds the parameters; kw becomes the remaining keyword arguments. */
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
        if (!set(r, scope, param->id, i < c->n_pos ? c->pos[i] : named ? *named : missing))
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
    return set(r, scope, name_id(r, "caller"),
               caller ? *caller : jinja_undefined(JINJA_NAME, (struct jinja_str){"caller", 6}));
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
        if (!set(r, scope, param->id, value)) return false;
    }
    return true;
}

static bool call_macro(struct jinja_run *r, const struct jinja_macro *m, const struct jinja_call *c,
                       struct jinja_value *out)
{
    struct jinja_dict *kw = jinja_dict(r);
    struct jinja_scope *scope = jinja_scope(r, m->scope, &m->node->hidden);
    if (!kw || !scope || !bind_params(r, scope, m, c, kw) || !bind_rest(r, scope, m, c, kw) ||
        !fill_defaults(r, scope, m->node))
        return false;
    return exec_into(r, scope, &m->node->body, out) != JINJA_ERROR;
}

/* ---- Output and blocks ---- */

static bool check_output(struct jinja_run *r)
{
    if (r->out->n <= r->limit.max_output) return true;
    r->pool.exhausted = true;
    return jinja_fail(r, "the template writes more than %llu bytes",
                      (unsigned long long)r->limit.max_output);
}

static bool exec_print(struct jinja_run *r, struct jinja_scope *scope,
                       const struct jinja_node *node)
{
    for (size_t i = 0; i < node->list.n; i++) {
        struct jinja_value value;
        if (!jinja_eval(r, scope, node->list.node[i], &value) || !jinja_str(r, r->out, &value))
            return false;
    }
    return check_output(r);
}

/* Runs {% set x %} or {% filter f %}: assigns or prints the body's text, after the filters node->b
 * if there are any. */
static enum jinja_flow exec_text_block(struct jinja_run *r, struct jinja_scope *scope,
                                       const struct jinja_node *node)
{
    struct jinja_value value;
    struct jinja_scope *inner = jinja_scope(r, scope, &node->hidden);
    if (!inner) return JINJA_ERROR;
    const enum jinja_flow flow = exec_into(r, inner, &node->body, &value);
    if (flow != JINJA_ON) return flow;
    r->block = value;
    if (node->b && !jinja_eval(r, inner, node->b, &value)) return JINJA_ERROR;
    const bool ok = node->kind == JINJA_N_SET_BLOCK
                        ? unpack(r, scope, node->a, &value)
                        : jinja_str(r, r->out, &value) && check_output(r);
    return ok ? JINJA_ON : JINJA_ERROR;
}

static enum jinja_flow exec_with(struct jinja_run *r, struct jinja_scope *scope,
                                 const struct jinja_node *node)
{
    struct jinja_scope *inner = jinja_scope(r, scope, &node->hidden);
    if (!inner) return JINJA_ERROR;
    for (size_t i = 0; i < node->list.n; i++) {
        struct jinja_value value;
        if (!jinja_eval(r, scope, node->defaults.node[i], &value) ||
            !unpack(r, inner, node->list.node[i], &value))
            return JINJA_ERROR;
    }
    return jinja_exec(r, inner, &node->body);
}

static enum jinja_flow exec_if(struct jinja_run *r, struct jinja_scope *scope,
                               const struct jinja_node *node)
{
    const struct jinja_node *part = node;
    for (size_t i = 0;; i++) {
        struct jinja_value value;
        bool yes;
        if (!jinja_eval(r, scope, part->a, &value) || !jinja_truth(r, &value, &yes))
            return JINJA_ERROR;
        if (yes) return jinja_exec(r, scope, &part->body);
        if (i == node->list.n) return jinja_exec(r, scope, &node->other);
        part = node->list.node[i];
    }
}

static struct jinja_macro *new_macro(struct jinja_run *r, struct jinja_scope *scope,
                                     const struct jinja_node *node)
{
    struct jinja_macro *macro = jinja_alloc(&r->pool, sizeof *macro, r->err);
    if (macro) *macro = (struct jinja_macro){node, scope, call_macro};
    return macro;
}

static bool exec_macro(struct jinja_run *r, struct jinja_scope *scope,
                       const struct jinja_node *node)
{
    struct jinja_macro *macro = new_macro(r, scope, node);
    return macro &&
           set(r, scope, node->id, (struct jinja_value){.kind = JINJA_MACRO, .macro = macro});
}

/* A call block passes its body to the called macro as `caller`. A generation block only marks its
 * body, which runs as a function too, as in the transformers library. */
static bool exec_call_block(struct jinja_run *r, struct jinja_scope *scope,
                            const struct jinja_node *node)
{
    struct jinja_value caller = {.kind = JINJA_MACRO}, value;
    struct jinja_call none = {0};
    caller.macro = new_macro(r, scope, node);
    if (!caller.macro) return false;
    if (!node->a) {
        if (!jinja_call(r, &caller, &none, &value)) return false;
    } else {
        /* The caller is a keyword argument of a copy of the call's node. */
        struct jinja_node literal = {.kind = JINJA_N_CONST, .line = node->line, .value = caller};
        struct jinja_node call = *node->a;
        struct jinja_args args = *call.args;
        const size_t n = args.kw.n;
        args.kw.node = jinja_alloc(&r->pool, (n + 1) * sizeof *args.kw.node, r->err);
        args.kw_name = jinja_alloc(&r->pool, (n + 1) * sizeof *args.kw_name, r->err);
        if (!args.kw.node || !args.kw_name) return false;
        if (n) memcpy(args.kw.node, call.args->kw.node, n * sizeof *args.kw.node);
        if (n) memcpy(args.kw_name, call.args->kw_name, n * sizeof *args.kw_name);
        args.kw.node[n] = &literal;
        args.kw_name[n] = (struct jinja_str){"caller", 6};
        args.kw.n = n + 1;
        call.args = &args;
        if (!jinja_eval(r, scope, &call, &value)) return false;
    }
    return jinja_str(r, r->out, &value) && check_output(r);
}

static enum jinja_flow exec_node(struct jinja_run *r, struct jinja_scope *scope,
                                 const struct jinja_node *node)
{
    struct jinja_value value;
    bool ok;
    switch (node->kind) {
    case JINJA_N_DATA:
        ok = jinja_add(r, r->out, node->text.s, node->text.n) && check_output(r);
        break;
    case JINJA_N_PRINT:
        ok = exec_print(r, scope, node);
        break;
    case JINJA_N_SET:
        ok = jinja_eval(r, scope, node->b, &value) && unpack(r, scope, node->a, &value);
        break;
    case JINJA_N_MACRO:
        ok = exec_macro(r, scope, node);
        break;
    case JINJA_N_CALL_BLOCK:
        ok = exec_call_block(r, scope, node);
        break;
    case JINJA_N_SET_BLOCK:
    case JINJA_N_FILTER_BLOCK:
        return exec_text_block(r, scope, node);
    case JINJA_N_WITH:
        return exec_with(r, scope, node);
    case JINJA_N_IF:
        return exec_if(r, scope, node);
    case JINJA_N_FOR:
        return exec_for(r, scope, node);
    case JINJA_N_BREAK:
        return JINJA_BROKE;
    case JINJA_N_CONTINUE:
        return JINJA_CONTINUED;
    default:
        ok = jinja_fail(r, "an expression where a statement belongs");
        break;
    }
    return ok ? JINJA_ON : JINJA_ERROR;
}

enum jinja_flow jinja_exec(struct jinja_run *r, struct jinja_scope *scope,
                           const struct jinja_list *body)
{
    enum jinja_flow flow = JINJA_ON;
    if (!jinja_enter(r)) return JINJA_ERROR;
    for (size_t i = 0; flow == JINJA_ON && i < body->n; i++) {
        r->line = body->node[i]->line;
        flow = jinja_step(r, 1) ? exec_node(r, scope, body->node[i]) : JINJA_ERROR;
    }
    jinja_leave(r);
    return flow;
}
