/* text/jinja/jinja_eval.c: evaluates expressions. See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"

static bool eval_name(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                      struct jinja_value *out)
{
    for (; scope; scope = scope->parent) {
        if (!jinja_step(r, scope->n / 16)) return false;
        for (size_t i = scope->n; i-- > 0;) {
            if (scope->var[i].id != node->id) continue;
            *out = scope->var[i].value;
            if (out->kind == JINJA_MISSING) *out = jinja_undefined(JINJA_NAME, node->text);
            return true;
        }
    }
    struct jinja_value *cached = &r->resolved[node->id];
    if (cached->kind == JINJA_MISSING) {
        const struct jinja_value *given = jinja_dict_word(r->context, node->text);
        const struct jinja_func *global = jinja_find_global(node->text);
        if (jinja_str_is(node->text, "self")) /* in jinja2 it refers to the template's own blocks */
            return jinja_fail(r, "the variable 'self' is not supported");
        if (given)
            *cached = *given;
        else if (global)
            *cached = (struct jinja_value){.kind = JINJA_FUNC, .func = global};
        else
            *cached = jinja_undefined(JINJA_NAME, node->text);
    }
    *out = *cached;
    return true;
}

static bool eval_sequence(struct jinja_run *r, struct jinja_scope *scope,
                          const struct jinja_node *node, struct jinja_value *out)
{
    *out = jinja_of_seq(node->kind == JINJA_N_LIST ? JINJA_LIST : JINJA_TUPLE,
                        jinja_seq(r, node->list.n));
    if (!out->seq) return false;
    for (size_t i = 0; i < node->list.n; i++)
        if (!jinja_eval(r, scope, node->list.node[i], &out->seq->item[i])) return false;
    out->seq->n = node->list.n;
    return true;
}

static bool eval_dict(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                      struct jinja_value *out)
{
    if (!jinja_new(r, JINJA_DICT, out)) return false;
    for (size_t i = 0; i + 1 < node->list.n; i += 2) {
        struct jinja_value key, value;
        if (!jinja_eval(r, scope, node->list.node[i], &key) ||
            !jinja_eval(r, scope, node->list.node[i + 1], &value) ||
            !jinja_dict_set(r, out->dict, key, value))
            return false;
    }
    return true;
}

static bool eval_item(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                      struct jinja_value *out)
{
    struct jinja_value object, key, bound[3];
    if (!jinja_eval(r, scope, node->a, &object)) return false;
    if (node->b->kind != JINJA_N_SLICE)
        return jinja_eval(r, scope, node->b, &key) && jinja_item(r, &object, &key, out);
    const struct jinja_node *part[3] = {node->b->a, node->b->b, node->b->c};
    for (int i = 0; i < 3; i++) {
        bound[i] = jinja_none();
        if (part[i] && !jinja_eval(r, scope, part[i], &bound[i])) return false;
    }
    return jinja_slice(r, &object, bound, out);
}

/* ---- Arguments ---- */

static bool add_keyword(struct jinja_run *r, struct jinja_call *c, struct jinja_value key,
                        struct jinja_value value)
{
    if (!c->kw && !(c->kw = jinja_dict(r))) return false;
    if (jinja_dict_word(c->kw, key.s))
        return jinja_fail(r, "keyword argument '%.*s' is repeated", (int)key.s.n, key.s.s);
    return jinja_dict_set(r, c->kw, key, value);
}

static bool add_star2(struct jinja_run *r, struct jinja_call *c, const struct jinja_value *more)
{
    if (more->kind != JINJA_DICT)
        return jinja_fail(r, "'**' needs a mapping, not '%s'", jinja_type(more));
    for (uint32_t i = 0; i < more->dict->n; i++) {
        if (more->dict->key[i].kind != JINJA_STR)
            return jinja_fail(r, "a keyword argument must be a string");
        if (!add_keyword(r, c, more->dict->key[i], more->dict->value[i])) return false;
    }
    return true;
}

static bool eval_args(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_args *args,
                      struct jinja_call *c)
{
    struct jinja_value value;
    struct jinja_seq *more;
    *c = (struct jinja_call){0};
    if (!args) return true;
    struct jinja_seq *pos = jinja_seq(r, args->pos.n);
    if (!pos) return false;
    for (size_t i = 0; i < args->pos.n; i++)
        if (!jinja_eval(r, scope, args->pos.node[i], &value) || !jinja_push(r, pos, value))
            return false;
    for (size_t i = 0; i < args->kw.n; i++)
        if (!jinja_eval(r, scope, args->kw.node[i], &value) ||
            !add_keyword(r, c, jinja_string(args->kw_name[i].s, args->kw_name[i].n), value))
            return false;
    if (args->star) {
        if (!jinja_eval(r, scope, args->star, &value) || !jinja_items(r, &value, &more))
            return false;
        for (size_t i = 0; i < more->n; i++)
            if (!jinja_push(r, pos, more->item[i])) return false;
    }
    if (args->star2 && (!jinja_eval(r, scope, args->star2, &value) || !add_star2(r, c, &value)))
        return false;
    c->pos = pos->item;
    c->n_pos = pos->n;
    return true;
}

static bool eval_call(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                      struct jinja_value *out)
{
    struct jinja_value callee;
    struct jinja_call c;
    return jinja_eval(r, scope, node->a, &callee) && eval_args(r, scope, node->args, &c) &&
           jinja_call(r, &callee, &c, out);
}

static bool eval_filter(struct jinja_run *r, struct jinja_scope *scope,
                        const struct jinja_node *node, struct jinja_value *out)
{
    struct jinja_value subject;
    struct jinja_call c;
    subject = r->block; /* of the first filter of a block */
    return (!node->a || jinja_eval(r, scope, node->a, &subject)) &&
           eval_args(r, scope, node->args, &c) &&
           jinja_apply_filter(r, node->text, &subject, &c, out);
}

static bool eval_test(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                      struct jinja_value *out)
{
    struct jinja_value subject;
    struct jinja_call c;
    bool yes;
    if (!jinja_eval(r, scope, node->a, &subject) || !eval_args(r, scope, node->args, &c) ||
        !jinja_apply_test(r, node->text, &subject, &c, &yes))
        return false;
    *out = jinja_bool(yes);
    return true;
}

/* ---- Operators ---- */

static bool eval_choice(struct jinja_run *r, struct jinja_scope *scope,
                        const struct jinja_node *node, struct jinja_value *out)
{
    static const char nothing[] = "the condition is false and there is no else";
    bool yes;
    const struct jinja_node *first = node->kind == JINJA_N_COND ? node->b : node->a;
    if (!jinja_eval(r, scope, first, out) || !jinja_truth(r, out, &yes)) return false;
    switch (node->kind) {
    case JINJA_N_OR:
        return yes || jinja_eval(r, scope, node->b, out);
    case JINJA_N_AND:
        return !yes || jinja_eval(r, scope, node->b, out);
    case JINJA_N_NOT:
        *out = jinja_bool(!yes);
        return true;
    default:
        break;
    }
    if (yes) return jinja_eval(r, scope, node->a, out);
    if (node->c) return jinja_eval(r, scope, node->c, out);
    *out = jinja_undefined(JINJA_EMPTY, (struct jinja_str){nothing, sizeof nothing - 1});
    return true;
}

static bool eval_compare(struct jinja_run *r, struct jinja_scope *scope,
                         const struct jinja_node *node, struct jinja_value *out)
{
    struct jinja_value left, right;
    bool yes = true;
    if (!jinja_eval(r, scope, node->list.node[0], &left)) return false;
    for (size_t i = 1; yes && i < node->list.n; i++) {
        if (!jinja_eval(r, scope, node->list.node[i], &right) ||
            !jinja_compare(r, node->ops[i - 1], &left, &right, &yes))
            return false;
        left = right;
    }
    *out = jinja_bool(yes);
    return true;
}

static bool eval_concat(struct jinja_run *r, struct jinja_scope *scope,
                        const struct jinja_node *node, struct jinja_value *out)
{
    struct jinja_text text = {0};
    struct jinja_value *part = jinja_alloc(&r->pool, node->list.n * sizeof *part, r->err);
    if (!part) return false;
    for (size_t i = 0; i < node->list.n; i++) /* computed before joining, so that the text grows in
                                               * place */
        if (!jinja_eval(r, scope, node->list.node[i], &part[i])) return false;
    for (size_t i = 0; i < node->list.n; i++)
        if (!jinja_str(r, &text, &part[i])) return false;
    *out = jinja_text_value(&text);
    return jinja_step(r, text.n / JINJA_MOVED);
}

static bool eval_unary(struct jinja_run *r, struct jinja_scope *scope,
                       const struct jinja_node *node, struct jinja_value *out)
{
    int64_t i;
    if (!jinja_eval(r, scope, node->a, out)) return false;
    if (out->kind == JINJA_UNDEFINED) return jinja_fail_undefined(r, out);
    if (out->kind == JINJA_FLOAT) {
        if (node->op == JINJA_SUB) *out = jinja_float(-out->f);
        return true;
    }
    if (!jinja_as_int(out, &i))
        return jinja_fail(r, "a sign before a value of type '%s'", jinja_type(out));
    if (node->op == JINJA_SUB && __builtin_sub_overflow((int64_t)0, i, &i))
        return jinja_fail(r, "the result of '-' has more than 64 bits");
    *out = jinja_int(i);
    return true;
}

static bool eval_binary(struct jinja_run *r, struct jinja_scope *scope,
                        const struct jinja_node *node, struct jinja_value *out)
{
    struct jinja_value a, b;
    return jinja_eval(r, scope, node->a, &a) && jinja_eval(r, scope, node->b, &b) &&
           jinja_binary(r, node->op, &a, &b, out);
}

static bool eval_attr(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                      struct jinja_value *out)
{
    struct jinja_value object;
    return jinja_eval(r, scope, node->a, &object) && jinja_attr(r, &object, node->text, out);
}

static bool eval_const(struct jinja_run *r, struct jinja_scope *scope,
                       const struct jinja_node *node, struct jinja_value *out)
{
    (void)r;
    (void)scope;
    *out = node->value;
    return true;
}

typedef bool eval_fn(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                     struct jinja_value *out);
static eval_fn *const evaluators[] = {
    [JINJA_N_CONST] = eval_const,     [JINJA_N_NAME] = eval_name,
    [JINJA_N_TUPLE] = eval_sequence,  [JINJA_N_LIST] = eval_sequence,
    [JINJA_N_DICT] = eval_dict,       [JINJA_N_ATTR] = eval_attr,
    [JINJA_N_ITEM] = eval_item,       [JINJA_N_CALL] = eval_call,
    [JINJA_N_FILTER] = eval_filter,   [JINJA_N_TEST] = eval_test,
    [JINJA_N_COND] = eval_choice,     [JINJA_N_OR] = eval_choice,
    [JINJA_N_AND] = eval_choice,      [JINJA_N_NOT] = eval_choice,
    [JINJA_N_COMPARE] = eval_compare, [JINJA_N_CONCAT] = eval_concat,
    [JINJA_N_BINARY] = eval_binary,   [JINJA_N_UNARY] = eval_unary,
};

bool jinja_eval(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                struct jinja_value *out)
{
    const int line = r->line;
    r->line = node->line;
    if (!jinja_step(r, 1) || !jinja_enter(r)) return false;
    eval_fn *eval =
        node->kind < sizeof evaluators / sizeof evaluators[0] ? evaluators[node->kind] : NULL;
    const bool ok =
        eval ? eval(r, scope, node, out) : jinja_fail(r, "a statement where an expression belongs");
    jinja_leave(r);
    if (ok) r->line = line; /* of an error it is that of the innermost expression */
    return ok;
}
