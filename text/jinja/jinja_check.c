/* text/jinja/jinja_check.c: the checks that jinja2 performs at compile time: names that a scope
 * hides, variables that a macro uses, and unknown filters and tests. See text/jinja/jinja_ast.h.
 *
 * jinja2 compiles names to variables of Python functions. A variable that a scope sets before it
 * reads it is undefined at the start of the scope, even if the caller passed a value. An unknown
 * filter or test is an error at parsing, except directly inside an if or a conditional expression,
 * where it is an error only when it is evaluated. */
#include "text/jinja/jinja_run.h"
#include <string.h>

enum { UNKNOWN = 0, KNOWN, STARTS_UNDEFINED };

/* The state of each name (by id) in a scope. */
struct symbols {
    const struct symbols *parent;
    uint8_t *ref; /* [n_name]: one of the states above */
    bool *stored;
};

struct checker {
    struct jinja_parser *p;
    struct symbols *s;
    bool soft; /* inside an if or a conditional expression of the present scope */
};

static bool visit(struct checker *k, const struct jinja_node *node);
static bool enter_node(struct checker *k, struct jinja_node *node);

static bool new_symbols(struct checker *k, const struct symbols *parent, struct symbols *out)
{
    const size_t n = k->p->t->n_names + 1;
    out->parent = parent;
    out->ref = jinja_alloc(&k->p->t->pool, n, k->p->err);
    out->stored = jinja_alloc(&k->p->t->pool, n, k->p->err);
    return out->ref && out->stored;
}

static bool parents_know(const struct symbols *s, int id)
{
    for (s = s->parent; s; s = s->parent)
        if (s->ref[id]) return true;
    return false;
}

static void load(struct checker *k, int id)
{
    k->p->t->loaded[id] = true;
    if (!k->s->ref[id] && !parents_know(k->s, id)) k->s->ref[id] = KNOWN;
}

static void store(struct checker *k, int id)
{
    k->s->stored[id] = true;
    if (!k->s->ref[id]) k->s->ref[id] = parents_know(k->s, id) ? KNOWN : STARTS_UNDEFINED;
}

static void declare(struct checker *k, int id)
{
    k->s->stored[id] = true;
    k->s->ref[id] = KNOWN;
}

/* ---- Names, in the order in which jinja2 visits them ---- */

static void visit_target(struct checker *k, const struct jinja_node *target, bool as_param)
{
    if (target->kind == JINJA_N_NAME) {
        if (as_param)
            declare(k, target->id);
        else
            store(k, target->id);
    } else if (target->kind == JINJA_N_NSREF) {
        load(k, target->id);
    }
    for (size_t i = 0; i < target->list.n; i++) visit_target(k, target->list.node[i], as_param);
}

static bool visit_list(struct checker *k, const struct jinja_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (!visit(k, list->node[i])) return false;
    return true;
}

static bool visit_branch(struct checker *k, const struct jinja_list *list, struct symbols *branch)
{
    struct symbols *whole = k->s;
    const size_t n = k->p->t->n_names;
    if (!new_symbols(k, whole->parent, branch)) return false;
    memcpy(branch->ref, whole->ref, n);
    memcpy(branch->stored, whole->stored, n * sizeof *branch->stored);
    k->s = branch;
    const bool ok = visit_list(k, list);
    k->s = whole;
    return ok;
}

/* A name that only some branches set keeps its outer value in the others. */
static bool visit_if(struct checker *k, const struct jinja_node *node)
{
    struct symbols branch[3];
    const size_t n = k->p->t->n_names;
    if (!visit(k, node->a) || !visit_branch(k, &node->body, &branch[0]) ||
        !visit_branch(k, &node->list, &branch[1]) || !visit_branch(k, &node->other, &branch[2]))
        return false;
    for (size_t id = 0; id < n; id++) {
        int stores = 0;
        const bool before = k->s->stored[id];
        for (int i = 0; i < 3; i++) {
            stores += branch[i].stored[id];
            if (branch[i].ref[id]) k->s->ref[id] = branch[i].ref[id];
            k->s->stored[id] |= branch[i].stored[id];
        }
        if (!before && stores > 0 && stores < 3) k->s->ref[id] = KNOWN;
    }
    return true;
}

static bool visit_args(struct checker *k, const struct jinja_args *args)
{
    if (!args) return true;
    return visit_list(k, &args->pos) && visit_list(k, &args->kw) && visit(k, args->star) &&
           visit(k, args->star2);
}

/* Records the names that a node uses in the present scope, without inner scopes. */
static bool visit(struct checker *k, const struct jinja_node *node)
{
    if (!node) return true;
    switch (node->kind) {
    case JINJA_N_NAME:
        load(k, node->id);
        return true;
    case JINJA_N_IF:
        return visit_if(k, node);
    case JINJA_N_FOR:
        return visit(k, node->b);
    case JINJA_N_WITH:
        return visit_list(k, &node->defaults);
    case JINJA_N_MACRO:
        store(k, node->id);
        return true;
    case JINJA_N_CALL_BLOCK:
        return visit(k, node->a);
    case JINJA_N_FILTER_BLOCK:
        return visit(k, node->b);
    case JINJA_N_SET:
        if (!visit(k, node->b)) return false;
        visit_target(k, node->a, false);
        return true;
    case JINJA_N_SET_BLOCK:
        visit_target(k, node->a, false);
        return true;
    case JINJA_N_COND: /* the test comes first, as in jinja2's field order */
        return visit(k, node->b) && visit(k, node->a) && visit(k, node->c);
    default:
        return visit(k, node->a) && visit(k, node->b) && visit(k, node->c) &&
               visit_list(k, &node->list) && visit_args(k, node->args);
    }
}

static bool note_hidden(struct checker *k, const struct symbols *s, struct jinja_hidden *hidden)
{
    const size_t n = k->p->t->n_names;
    size_t count = 0;
    for (size_t id = 0; id < n; id++) count += s->ref[id] == STARTS_UNDEFINED;
    hidden->n = 0;
    hidden->id = jinja_alloc(&k->p->t->pool, (count + 1) * sizeof *hidden->id, k->p->err);
    if (!hidden->id) return false;
    for (size_t id = 0; id < n; id++)
        if (s->ref[id] == STARTS_UNDEFINED) hidden->id[hidden->n++] = (int)id;
    return true;
}

/* ---- Variables that macros use ---- */

static bool list_uses(const struct jinja_list *list, const char *name);

static bool args_use(const struct jinja_args *args, const char *name);

static bool node_uses(const struct jinja_node *node, const char *name)
{
    if (!node) return false;
    if (node->kind == JINJA_N_NAME) return jinja_str_is(node->text, name);
    if (node->kind == JINJA_N_CONST || node->kind == JINJA_N_DATA) return false;
    const bool assigns =
        node->kind == JINJA_N_SET || node->kind == JINJA_N_SET_BLOCK || node->kind == JINJA_N_FOR;
    const bool has_params = node->kind == JINJA_N_MACRO || node->kind == JINJA_N_CALL_BLOCK ||
                            node->kind == JINJA_N_WITH;
    return (!assigns && node_uses(node->a, name)) || node_uses(node->b, name) ||
           node_uses(node->c, name) || args_use(node->args, name) ||
           (!has_params && list_uses(&node->list, name)) || list_uses(&node->defaults, name) ||
           list_uses(&node->body, name) || list_uses(&node->other, name);
}

static bool args_use(const struct jinja_args *args, const char *name)
{
    return args && (list_uses(&args->pos, name) || list_uses(&args->kw, name) ||
                    node_uses(args->star, name) || node_uses(args->star2, name));
}

static bool list_uses(const struct jinja_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (node_uses(list->node[i], name)) return true;
    return false;
}

static bool is_param(const struct jinja_node *node, const char *name, bool *has_default)
{
    for (size_t i = 0; i < node->list.n; i++) {
        if (!jinja_str_is(node->list.node[i]->text, name)) continue;
        *has_default = i + node->defaults.n >= node->list.n;
        return true;
    }
    return false;
}

static bool note_uses(struct checker *k, struct jinja_node *node)
{
    static const struct {
        const char *name;
        unsigned flag;
    } special[] = {{"caller", JINJA_USES_CALLER},
                   {"kwargs", JINJA_USES_KWARGS},
                   {"varargs", JINJA_USES_VARARGS}};
    for (size_t i = 0; i < 3; i++) {
        bool has_default = true;
        const bool param = is_param(node, special[i].name, &has_default);
        if (!list_uses(&node->body, special[i].name)) continue;
        if (i == 0 && param && !has_default)
            return jinja_syntax(k->p, node->line, "the parameter 'caller' must have a default");
        if (param) continue;
        node->uses |= special[i].flag;
        const int id =
            jinja_name_id(k->p, (struct jinja_str){special[i].name, strlen(special[i].name)});
        if (id < 0) return false;
        declare(k, id);
    }
    return true;
}

/* ---- Scopes ---- */

static bool enter_list(struct checker *k, const struct jinja_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (!enter_node(k, list->node[i])) return false;
    return true;
}

/* Checks a body with a scope of its own, whose names are recorded already. */
static bool enter_scope(struct checker *k, struct symbols *s, const struct jinja_list *body,
                        struct jinja_hidden *hidden)
{
    struct checker inner = {.p = k->p, .s = s};
    return note_hidden(k, s, hidden) && enter_list(&inner, body);
}

static bool enter_for(struct checker *k, struct jinja_node *node)
{
    struct symbols body, other, test;
    struct checker inner = {.p = k->p, .s = &body};
    if (!enter_node(k, node->b) || !new_symbols(k, k->s, &body)) return false;
    visit_target(&inner, node->a, true);
    const int loop = jinja_name_id(k->p, (struct jinja_str){"loop", 4});
    if (loop < 0) return false;
    if (list_uses(&node->body, "loop")) declare(&inner, loop);
    if (!visit_list(&inner, &node->body) || !enter_scope(k, &body, &node->body, &node->hidden))
        return false;
    if (node->c) {
        inner.s = &test;
        if (!new_symbols(k, k->s, &test)) return false;
        visit_target(&inner, node->a, true);
        if (!visit(&inner, node->c) || !enter_node(&inner, node->c)) return false;
    }
    inner.s = &other;
    return new_symbols(k, k->s, &other) && visit_list(&inner, &node->other) &&
           enter_scope(k, &other, &node->other, &node->other_hidden);
}

static bool enter_function(struct checker *k, struct jinja_node *node)
{
    struct symbols s;
    struct checker inner = {.p = k->p, .s = &s};
    if (!enter_node(k, node->a) || !new_symbols(k, k->s, &s)) return false;
    for (size_t i = 0; i < node->list.n; i++) declare(&inner, node->list.node[i]->id);
    if (!note_uses(&inner, node) || !visit_list(&inner, &node->defaults) ||
        !visit_list(&inner, &node->body))
        return false;
    return enter_list(&inner, &node->defaults) && enter_scope(k, &s, &node->body, &node->hidden);
}

/* Checks set, filter and with blocks. */
static bool enter_block(struct checker *k, struct jinja_node *node)
{
    struct symbols s;
    struct checker inner = {.p = k->p, .s = &s};
    if (!enter_list(k, &node->defaults) || !new_symbols(k, k->s, &s)) return false;
    if (node->kind == JINJA_N_WITH)
        for (size_t i = 0; i < node->list.n; i++) visit_target(&inner, node->list.node[i], true);
    if (!visit_list(&inner, &node->body)) return false;
    if (node->kind == JINJA_N_FILTER_BLOCK && !visit(&inner, node->b)) return false;
    return enter_node(&inner, node->b) && enter_scope(k, &s, &node->body, &node->hidden);
}

static bool check_name(struct checker *k, const struct jinja_node *node)
{
    const bool filter = node->kind == JINJA_N_FILTER;
    const char *what = filter ? "filter" : "test";
    if (k->soft || (filter ? jinja_find_filter(node->text) : jinja_find_test(node->text)))
        return true;
    return jinja_syntax(k->p, node->line, "no %s named '%.*s'", what, (int)node->text.n,
                        node->text.s);
}

static bool enter_args(struct checker *k, const struct jinja_args *args)
{
    if (!args) return true;
    return enter_list(k, &args->pos) && enter_list(k, &args->kw) && enter_node(k, args->star) &&
           enter_node(k, args->star2);
}

static bool enter_node(struct checker *k, struct jinja_node *node)
{
    if (!node) return true;
    struct checker inner = *k;
    switch (node->kind) {
    case JINJA_N_FOR:
        return enter_for(k, node);
    case JINJA_N_MACRO:
    case JINJA_N_CALL_BLOCK:
        return enter_function(k, node);
    case JINJA_N_SET_BLOCK:
    case JINJA_N_FILTER_BLOCK:
    case JINJA_N_WITH:
        return enter_block(k, node);
    case JINJA_N_IF:
    case JINJA_N_COND:
        inner.soft = true;
        break;
    case JINJA_N_FILTER:
    case JINJA_N_TEST:
        if (!check_name(k, node)) return false;
        break;
    default:
        break;
    }
    return enter_node(&inner, node->a) && enter_node(&inner, node->b) &&
           enter_node(&inner, node->c) && enter_args(&inner, node->args) &&
           enter_list(&inner, &node->list) && enter_list(&inner, &node->body) &&
           enter_list(&inner, &node->other);
}

bool jinja_check(struct jinja_parser *p)
{
    static const char *const special[] = {"loop", "caller", "kwargs", "varargs"};
    struct symbols root;
    struct checker k = {.p = p, .s = &root};
    for (size_t i = 0; i < 4; i++) /* the tables below need entries for these */
        if (jinja_name_id(p, (struct jinja_str){special[i], strlen(special[i])}) < 0) return false;
    p->t->loaded = jinja_alloc(&p->t->pool, p->t->n_names, p->err);
    return p->t->loaded && new_symbols(&k, NULL, &root) && visit_list(&k, &p->t->body) &&
           enter_scope(&k, &root, &p->t->body, &p->t->hidden);
}
