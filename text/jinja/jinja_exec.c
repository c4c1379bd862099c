/* text/jinja/jinja_exec.c: runs statements: output, assignments, loops, blocks.
 * See text/jinja/jinja_run.h. */
#include "text/jinja/jinja_run.h"
#include <string.h>

/* ---- Scopes ---- */

struct tpl_scope *text_tpl_scope(struct tpl_run *r, struct tpl_scope *parent,
                                 const struct tpl_hidden *hidden)
{
    struct tpl_scope *scope = text_tpl_take(&r->pool, sizeof *scope, r->err);
    if (!scope) return NULL;
    scope->parent = parent;
    for (size_t i = 0; hidden && i < hidden->n; i++)
        if (!text_tpl_set(r, scope, hidden->id[i], (struct tpl_value){.kind = TPL_MISSING}))
            return NULL;
    return scope;
}

bool text_tpl_set(struct tpl_run *r, struct tpl_scope *scope, int id, struct tpl_value value)
{
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->var[i].id != id) continue;
        scope->var[i].value = value;
        return true;
    }
    if (scope->n == scope->room) {
        const size_t room = scope->room ? scope->room * 2 : 4;
        scope->var = text_tpl_grow(&r->pool, scope->var, scope->n * sizeof *scope->var,
                                   room * sizeof *scope->var, r->err);
        if (!scope->var) return false;
        scope->room = room;
    }
    scope->var[scope->n++] = (struct tpl_var){id, value};
    return true;
}

/* ---- Assignment ---- */

static bool set_attribute(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *target,
                          const struct tpl_value *value)
{
    struct tpl_node name = *target;
    struct tpl_value object;
    name.kind = TPL_N_NAME;
    if (!text_tpl_eval(r, scope, &name, &object)) return false;
    if (object.kind != TPL_NAMESPACE)
        return text_tpl_fail(r, "'%.*s' is no namespace: its attribute cannot be set",
                             (int)target->text.n, target->text.s);
    const struct tpl_str attr = target->b->text;
    return text_tpl_dict_set(r, object.dict, tpl_string(attr.s, attr.n), *value);
}

bool text_tpl_unpack(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *target,
                     const struct tpl_value *value)
{
    struct tpl_seq *items;
    if (target->kind == TPL_N_NAME) return text_tpl_set(r, scope, target->id, *value);
    if (target->kind == TPL_N_NSREF) return set_attribute(r, scope, target, value);
    if (!text_tpl_items(r, value, &items)) return false;
    if (items->n != target->list.n)
        return text_tpl_fail(r, "%zu values for %zu names", items->n, target->list.n);
    for (size_t i = 0; i < items->n; i++)
        if (!text_tpl_unpack(r, scope, target->list.node[i], &items->item[i])) return false;
    return true;
}

/* ---- Loops ---- */

bool text_tpl_loop_fill(struct tpl_run *r, struct tpl_loop *loop, size_t count)
{
    const struct tpl_node *test = loop->node->c;
    if (!test) return true; /* items is the source itself */
    for (; loop->items->n < count && loop->read < loop->source->n; loop->read++) {
        const struct tpl_value *item = &loop->source->item[loop->read];
        struct tpl_scope *scope = text_tpl_scope(r, loop->scope, NULL);
        struct tpl_value value;
        bool yes;
        if (!scope || !text_tpl_unpack(r, scope, loop->node->a, item) ||
            !text_tpl_eval(r, scope, test, &value) || !text_tpl_truth(r, &value, &yes) ||
            (yes && !text_tpl_push(r, loop->items, *item)))
            return false;
    }
    return true;
}

static int loop_id(const struct tpl_run *r)
{
    for (size_t i = 0; i < r->t->n_names; i++)
        if (tpl_is_word(r->t->name[i], "loop")) return (int)i;
    return -1; /* cannot be: the parser notes the name */
}

enum tpl_flow text_tpl_exec_for(struct tpl_run *r, struct tpl_scope *scope,
                                const struct tpl_node *node, const struct tpl_value *items,
                                size_t depth)
{
    const int id = loop_id(r);
    struct tpl_loop *loop = text_tpl_take(&r->pool, sizeof *loop, r->err);
    if (!loop) return TPL_ERROR;
    *loop = (struct tpl_loop){.node = node, .scope = scope, .depth = depth};
    if (!text_tpl_items(r, items, &loop->source)) return TPL_ERROR;
    loop->items = node->c ? text_tpl_seq(r, 0) : loop->source;
    if (!loop->items) return TPL_ERROR;
    const struct tpl_value variable = {.kind = TPL_LOOP, .loop = loop};
    bool whole = false; /* an item went through the body to its end: no else */
    for (;; loop->index++) {
        if (!text_tpl_loop_fill(r, loop, loop->index + 1)) return TPL_ERROR;
        if (loop->index >= loop->items->n) break;
        struct tpl_scope *inner = text_tpl_scope(r, scope, &node->hidden);
        if (!inner || !text_tpl_step(r, 1) || !text_tpl_set(r, inner, id, variable))
            return TPL_ERROR;
        r->line = node->line;
        if (!text_tpl_unpack(r, inner, node->a, &loop->items->item[loop->index])) return TPL_ERROR;
        const enum tpl_flow flow = text_tpl_exec(r, inner, &node->body);
        if (flow == TPL_ERROR) return flow;
        if (flow == TPL_BROKE) break;
        whole |= flow == TPL_ON;
    }
    if (whole || !node->other.n) return TPL_ON;
    struct tpl_scope *inner = text_tpl_scope(r, scope, &node->other_hidden);
    return inner ? text_tpl_exec(r, inner, &node->other) : TPL_ERROR;
}

static enum tpl_flow exec_for(struct tpl_run *r, struct tpl_scope *scope,
                              const struct tpl_node *node)
{
    struct tpl_value items;
    if (!text_tpl_eval(r, scope, node->b, &items)) return TPL_ERROR;
    r->line = node->line;
    return text_tpl_exec_for(r, scope, node, &items, 0);
}

/* ---- Output and blocks ---- */

static bool check_output(struct tpl_run *r)
{
    return r->out->n <= r->limit.max_output ||
           text_tpl_fail(r, "the template writes more than %llu bytes",
                         (unsigned long long)r->limit.max_output);
}

static bool exec_print(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node)
{
    for (size_t i = 0; i < node->list.n; i++) {
        struct tpl_value value;
        if (!text_tpl_eval(r, scope, node->list.node[i], &value)) return false;
        r->line = node->line;
        if (!text_tpl_str(r, r->out, &value)) return false;
    }
    return check_output(r);
}

/* Runs a body in a scope of its own into `out` instead of the output. */
static enum tpl_flow exec_into(struct tpl_run *r, struct tpl_scope *scope,
                               const struct tpl_list *body, struct tpl_value *out)
{
    struct tpl_text text = {0}, *before = r->out;
    r->out = &text;
    const enum tpl_flow flow = text_tpl_exec(r, scope, body);
    r->out = before;
    *out = text_tpl_text_value(&text);
    return flow;
}

static enum tpl_flow exec_set_block(struct tpl_run *r, struct tpl_scope *scope,
                                    const struct tpl_node *node)
{
    struct tpl_value value;
    struct tpl_scope *inner = text_tpl_scope(r, scope, &node->hidden);
    if (!inner) return TPL_ERROR;
    const enum tpl_flow flow = exec_into(r, inner, &node->body, &value);
    if (flow != TPL_ON) return flow;
    r->block = value;
    if (node->b && !text_tpl_eval(r, inner, node->b, &value)) return TPL_ERROR;
    return text_tpl_unpack(r, scope, node->a, &value) ? TPL_ON : TPL_ERROR;
}

static enum tpl_flow exec_filter_block(struct tpl_run *r, struct tpl_scope *scope,
                                       const struct tpl_node *node)
{
    struct tpl_value value;
    struct tpl_scope *inner = text_tpl_scope(r, scope, &node->hidden);
    if (!inner) return TPL_ERROR;
    const enum tpl_flow flow = exec_into(r, inner, &node->body, &value);
    if (flow != TPL_ON) return flow;
    r->block = value;
    if (!text_tpl_eval(r, inner, node->b, &value) || !text_tpl_str(r, r->out, &value))
        return TPL_ERROR;
    return check_output(r) ? TPL_ON : TPL_ERROR;
}

static enum tpl_flow exec_with(struct tpl_run *r, struct tpl_scope *scope,
                               const struct tpl_node *node)
{
    struct tpl_scope *inner = text_tpl_scope(r, scope, &node->hidden);
    if (!inner) return TPL_ERROR;
    for (size_t i = 0; i < node->list.n; i++) {
        struct tpl_value value;
        if (!text_tpl_eval(r, scope, node->defaults.node[i], &value) ||
            !text_tpl_unpack(r, inner, node->list.node[i], &value))
            return TPL_ERROR;
    }
    return text_tpl_exec(r, inner, &node->body);
}

static enum tpl_flow exec_if(struct tpl_run *r, struct tpl_scope *scope,
                             const struct tpl_node *node)
{
    const struct tpl_node *part = node;
    for (size_t i = 0;; i++) {
        struct tpl_value value;
        bool yes;
        if (!text_tpl_eval(r, scope, part->a, &value) || !text_tpl_truth(r, &value, &yes))
            return TPL_ERROR;
        if (yes) return text_tpl_exec(r, scope, &part->body);
        if (i == node->list.n) return text_tpl_exec(r, scope, &node->other);
        part = node->list.node[i];
    }
}

static struct tpl_macro *new_macro(struct tpl_run *r, struct tpl_scope *scope,
                                   const struct tpl_node *node)
{
    struct tpl_macro *macro = text_tpl_take(&r->pool, sizeof *macro, r->err);
    if (macro) *macro = (struct tpl_macro){node, scope};
    return macro;
}

static bool exec_macro(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node)
{
    struct tpl_macro *macro = new_macro(r, scope, node);
    return macro &&
           text_tpl_set(r, scope, node->id, (struct tpl_value){.kind = TPL_MACRO, .macro = macro});
}

/* A call block gives its body to the called macro as `caller`; a generation block only marks its
 * body, which runs as a function all the same, as in the transformers library. */
static bool exec_call_block(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node)
{
    struct tpl_value caller = {.kind = TPL_MACRO}, value;
    struct tpl_call none = {0};
    caller.macro = new_macro(r, scope, node);
    if (!caller.macro) return false;
    if (!node->a) {
        if (!text_tpl_call(r, &caller, &none, &value)) return false;
    } else {
        /* The caller goes along as a keyword argument of a copy of the call's node. */
        struct tpl_node literal = {.kind = TPL_N_CONST, .line = node->line, .value = caller};
        struct tpl_node call = *node->a;
        struct tpl_args args = *call.args;
        const size_t n = args.kw.n;
        args.kw.node = text_tpl_take(&r->pool, (n + 1) * sizeof *args.kw.node, r->err);
        args.kw_name = text_tpl_take(&r->pool, (n + 1) * sizeof *args.kw_name, r->err);
        if (!args.kw.node || !args.kw_name) return false;
        if (n) memcpy(args.kw.node, call.args->kw.node, n * sizeof *args.kw.node);
        if (n) memcpy(args.kw_name, call.args->kw_name, n * sizeof *args.kw_name);
        args.kw.node[n] = &literal;
        args.kw_name[n] = (struct tpl_str){"caller", 6};
        args.kw.n = n + 1;
        call.args = &args;
        if (!text_tpl_eval(r, scope, &call, &value)) return false;
    }
    return text_tpl_str(r, r->out, &value) && check_output(r);
}

static enum tpl_flow exec_node(struct tpl_run *r, struct tpl_scope *scope,
                               const struct tpl_node *node)
{
    struct tpl_value value;
    bool ok;
    switch (node->kind) {
    case TPL_N_DATA:
        ok = text_tpl_add(r, r->out, node->text.s, node->text.n) && check_output(r);
        break;
    case TPL_N_PRINT:
        ok = exec_print(r, scope, node);
        break;
    case TPL_N_SET:
        ok = text_tpl_eval(r, scope, node->b, &value) && text_tpl_unpack(r, scope, node->a, &value);
        break;
    case TPL_N_MACRO:
        ok = exec_macro(r, scope, node);
        break;
    case TPL_N_CALL_BLOCK:
        ok = exec_call_block(r, scope, node);
        break;
    case TPL_N_SET_BLOCK:
        return exec_set_block(r, scope, node);
    case TPL_N_FILTER_BLOCK:
        return exec_filter_block(r, scope, node);
    case TPL_N_WITH:
        return exec_with(r, scope, node);
    case TPL_N_IF:
        return exec_if(r, scope, node);
    case TPL_N_FOR:
        return exec_for(r, scope, node);
    case TPL_N_BREAK:
        return TPL_BROKE;
    case TPL_N_CONTINUE:
        return TPL_CONTINUED;
    default:
        ok = text_tpl_fail(r, "an expression where a statement belongs");
        break;
    }
    return ok ? TPL_ON : TPL_ERROR;
}

enum tpl_flow text_tpl_exec(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_list *body)
{
    enum tpl_flow flow = TPL_ON;
    if (!text_tpl_enter(r)) return TPL_ERROR;
    for (size_t i = 0; flow == TPL_ON && i < body->n; i++) {
        r->line = body->node[i]->line;
        flow = text_tpl_step(r, 1) ? exec_node(r, scope, body->node[i]) : TPL_ERROR;
    }
    text_tpl_leave(r);
    return flow;
}
