/* text/jinja/jinja_eval.c: evaluates expressions. See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

static bool eval_name(struct tpl_run *r, const struct tpl_scope *scope, const struct tpl_node *node,
                      struct tpl_value *out)
{
    for (; scope; scope = scope->parent) {
        for (size_t i = scope->n; i-- > 0;) {
            if (scope->var[i].id != node->id) continue;
            *out = scope->var[i].value;
            if (out->kind == TPL_MISSING) *out = tpl_undefined(TPL_NAME, node->text);
            return true;
        }
    }
    struct tpl_value *cached = &r->resolved[node->id];
    if (cached->kind == TPL_MISSING) {
        const struct tpl_value *given = text_tpl_dict_word(r->context, node->text);
        const struct tpl_func *global = text_tpl_find_global(node->text);
        if (tpl_is_word(node->text, "self")) /* jinja2's view of the template's own blocks */
            return text_tpl_fail(r, "the variable 'self' is not supported");
        if (given)
            *cached = *given;
        else if (global)
            *cached = (struct tpl_value){.kind = TPL_FUNC, .func = global};
        else
            *cached = tpl_undefined(TPL_NAME, node->text);
    }
    *out = *cached;
    return true;
}

static bool eval_sequence(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                          struct tpl_value *out)
{
    *out =
        tpl_of_seq(node->kind == TPL_N_LIST ? TPL_LIST : TPL_TUPLE, text_tpl_seq(r, node->list.n));
    if (!out->seq) return false;
    for (size_t i = 0; i < node->list.n; i++)
        if (!text_tpl_eval(r, scope, node->list.node[i], &out->seq->item[i])) return false;
    out->seq->n = node->list.n;
    return true;
}

static bool eval_dict(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                      struct tpl_value *out)
{
    if (!text_tpl_new(r, TPL_DICT, out)) return false;
    for (size_t i = 0; i + 1 < node->list.n; i += 2) {
        struct tpl_value key, value;
        if (!text_tpl_eval(r, scope, node->list.node[i], &key) ||
            !text_tpl_eval(r, scope, node->list.node[i + 1], &value) ||
            !text_tpl_dict_set(r, out->dict, key, value))
            return false;
    }
    return true;
}

static bool eval_item(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                      struct tpl_value *out)
{
    struct tpl_value object, key, bound[3];
    if (!text_tpl_eval(r, scope, node->a, &object)) return false;
    if (node->b->kind != TPL_N_SLICE) {
        if (!text_tpl_eval(r, scope, node->b, &key)) return false;
        r->line = node->line;
        return text_tpl_item(r, &object, &key, out);
    }
    const struct tpl_node *part[3] = {node->b->a, node->b->b, node->b->c};
    for (int i = 0; i < 3; i++) {
        bound[i] = tpl_none();
        if (part[i] && !text_tpl_eval(r, scope, part[i], &bound[i])) return false;
    }
    r->line = node->line;
    return text_tpl_slice(r, &object, bound, out);
}

/* ---- Arguments ---- */

static bool add_keyword(struct tpl_run *r, struct tpl_call *c, struct tpl_value key,
                        struct tpl_value value)
{
    if (!c->kw && !(c->kw = text_tpl_dict(r))) return false;
    if (text_tpl_dict_word(c->kw, key.s))
        return text_tpl_fail(r, "keyword argument '%.*s' is repeated", (int)key.s.n, key.s.s);
    return text_tpl_dict_set(r, c->kw, key, value);
}

static bool add_star2(struct tpl_run *r, struct tpl_call *c, const struct tpl_value *more)
{
    if (more->kind != TPL_DICT)
        return text_tpl_fail(r, "'**' needs a mapping, not '%s'", text_tpl_type(more));
    for (uint32_t i = 0; i < more->dict->n; i++) {
        if (more->dict->key[i].kind != TPL_STR)
            return text_tpl_fail(r, "a keyword argument must be a string");
        if (!add_keyword(r, c, more->dict->key[i], more->dict->value[i])) return false;
    }
    return true;
}

static bool eval_args(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_args *args,
                      struct tpl_call *c)
{
    struct tpl_value value;
    struct tpl_seq *more;
    *c = (struct tpl_call){0};
    if (!args) return true;
    struct tpl_seq *pos = text_tpl_seq(r, args->pos.n);
    if (!pos) return false;
    for (size_t i = 0; i < args->pos.n; i++)
        if (!text_tpl_eval(r, scope, args->pos.node[i], &value) || !text_tpl_push(r, pos, value))
            return false;
    for (size_t i = 0; i < args->kw.n; i++)
        if (!text_tpl_eval(r, scope, args->kw.node[i], &value) ||
            !add_keyword(r, c, tpl_string(args->kw_name[i].s, args->kw_name[i].n), value))
            return false;
    if (args->star) {
        if (!text_tpl_eval(r, scope, args->star, &value) || !text_tpl_items(r, &value, &more))
            return false;
        for (size_t i = 0; i < more->n; i++)
            if (!text_tpl_push(r, pos, more->item[i])) return false;
    }
    if (args->star2 && (!text_tpl_eval(r, scope, args->star2, &value) || !add_star2(r, c, &value)))
        return false;
    c->pos = pos->item;
    c->n_pos = pos->n;
    return true;
}

static bool eval_call(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                      struct tpl_value *out)
{
    struct tpl_value callee;
    struct tpl_call c;
    if (!text_tpl_eval(r, scope, node->a, &callee) || !eval_args(r, scope, node->args, &c))
        return false;
    r->line = node->line;
    return text_tpl_call(r, &callee, &c, out);
}

static bool eval_filter(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                        struct tpl_value *out)
{
    struct tpl_value subject;
    struct tpl_call c;
    if (!node->a)
        subject = r->block; /* at the head of a block's filters */
    else if (!text_tpl_eval(r, scope, node->a, &subject))
        return false;
    if (!eval_args(r, scope, node->args, &c)) return false;
    r->line = node->line;
    return text_tpl_apply_filter(r, node->text, &subject, &c, out);
}

static bool eval_test(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                      struct tpl_value *out)
{
    struct tpl_value subject;
    struct tpl_call c;
    bool yes;
    if (!text_tpl_eval(r, scope, node->a, &subject) || !eval_args(r, scope, node->args, &c))
        return false;
    r->line = node->line;
    if (!text_tpl_apply_test(r, node->text, &subject, &c, &yes)) return false;
    *out = tpl_bool(yes);
    return true;
}

/* ---- Operators ---- */

static bool eval_choice(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                        struct tpl_value *out)
{
    static const char nothing[] = "the condition is false and there is no else";
    bool yes;
    const struct tpl_node *first = node->kind == TPL_N_COND ? node->b : node->a;
    if (!text_tpl_eval(r, scope, first, out) || !text_tpl_truth(r, out, &yes)) return false;
    switch (node->kind) {
    case TPL_N_OR:
        return yes || text_tpl_eval(r, scope, node->b, out);
    case TPL_N_AND:
        return !yes || text_tpl_eval(r, scope, node->b, out);
    case TPL_N_NOT:
        *out = tpl_bool(!yes);
        return true;
    default:
        break;
    }
    if (yes) return text_tpl_eval(r, scope, node->a, out);
    if (node->c) return text_tpl_eval(r, scope, node->c, out);
    *out = tpl_undefined(TPL_EMPTY, (struct tpl_str){nothing, sizeof nothing - 1});
    return true;
}

static bool eval_compare(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                         struct tpl_value *out)
{
    struct tpl_value left, right;
    bool yes = true;
    if (!text_tpl_eval(r, scope, node->list.node[0], &left)) return false;
    for (size_t i = 1; yes && i < node->list.n; i++) {
        if (!text_tpl_eval(r, scope, node->list.node[i], &right)) return false;
        r->line = node->line;
        if (!text_tpl_compare(r, node->ops[i - 1], &left, &right, &yes)) return false;
        left = right;
    }
    *out = tpl_bool(yes);
    return true;
}

static bool eval_concat(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                        struct tpl_value *out)
{
    struct tpl_text text = {0};
    struct tpl_value *part = text_tpl_take(&r->pool, node->list.n * sizeof *part, r->err);
    if (!part) return false;
    for (size_t i = 0; i < node->list.n; i++) /* all before joining: the pool grows in place */
        if (!text_tpl_eval(r, scope, node->list.node[i], &part[i])) return false;
    r->line = node->line;
    for (size_t i = 0; i < node->list.n; i++)
        if (!text_tpl_str(r, &text, &part[i])) return false;
    *out = text_tpl_text_value(&text);
    return text_tpl_step(r, text.n / 64);
}

static bool eval_unary(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                       struct tpl_value *out)
{
    int64_t i;
    if (!text_tpl_eval(r, scope, node->a, out)) return false;
    r->line = node->line;
    if (out->kind == TPL_UNDEFINED) return text_tpl_fail_undefined(r, out);
    if (out->kind == TPL_FLOAT) {
        if (node->op == TPL_SUB) out->f = -out->f;
        return true;
    }
    if (!tpl_as_int(out, &i))
        return text_tpl_fail(r, "a sign before a value of type '%s'", text_tpl_type(out));
    if (node->op == TPL_SUB && __builtin_sub_overflow((int64_t)0, i, &i))
        return text_tpl_fail(r, "'-' gives more than 64 bits");
    *out = tpl_int(i);
    return true;
}

static bool eval_binary(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                        struct tpl_value *out)
{
    struct tpl_value a, b;
    if (!text_tpl_eval(r, scope, node->a, &a) || !text_tpl_eval(r, scope, node->b, &b))
        return false;
    r->line = node->line;
    return text_tpl_binary(r, node->op, &a, &b, out);
}

static bool eval_attr(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                      struct tpl_value *out)
{
    struct tpl_value object;
    if (!text_tpl_eval(r, scope, node->a, &object)) return false;
    r->line = node->line;
    return text_tpl_attr(r, &object, node->text, out);
}

static bool eval_node(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                      struct tpl_value *out)
{
    switch (node->kind) {
    case TPL_N_CONST:
        *out = node->value;
        return true;
    case TPL_N_NAME:
        return eval_name(r, scope, node, out);
    case TPL_N_TUPLE:
    case TPL_N_LIST:
        return eval_sequence(r, scope, node, out);
    case TPL_N_DICT:
        return eval_dict(r, scope, node, out);
    case TPL_N_ATTR:
        return eval_attr(r, scope, node, out);
    case TPL_N_ITEM:
        return eval_item(r, scope, node, out);
    case TPL_N_CALL:
        return eval_call(r, scope, node, out);
    case TPL_N_FILTER:
        return eval_filter(r, scope, node, out);
    case TPL_N_TEST:
        return eval_test(r, scope, node, out);
    case TPL_N_COND:
    case TPL_N_OR:
    case TPL_N_AND:
    case TPL_N_NOT:
        return eval_choice(r, scope, node, out);
    case TPL_N_COMPARE:
        return eval_compare(r, scope, node, out);
    case TPL_N_CONCAT:
        return eval_concat(r, scope, node, out);
    case TPL_N_BINARY:
        return eval_binary(r, scope, node, out);
    case TPL_N_UNARY:
        return eval_unary(r, scope, node, out);
    default:
        return text_tpl_fail(r, "a statement where an expression belongs");
    }
}

bool text_tpl_eval(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                   struct tpl_value *out)
{
    r->line = node->line;
    if (!text_tpl_step(r, 1) || !text_tpl_enter(r)) return false;
    const bool ok = eval_node(r, scope, node, out);
    text_tpl_leave(r);
    return ok;
}
