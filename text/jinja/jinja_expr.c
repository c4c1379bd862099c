/* text/jinja/jinja_expr.c: parses expressions, by jinja2's grammar and precedence.
 * See text/jinja/jinja_ast.h. */
#include "text/jinja/jinja_ast.h"
#include <string.h>

/* Levels of precedence, the lowest first. */
enum level { OR, AND, NOT, COMPARE, SUM, CONCAT, PRODUCT, POWER, UNARY };

static struct jinja_node *parse_level(struct jinja_parser *p, enum level level);

static bool at_op(const struct jinja_parser *p, const char *op)
{
    return jinja_token_is(jinja_now(p), JINJA_T_OP, op);
}

static bool at_name(const struct jinja_parser *p, const char *name)
{
    return jinja_token_is(jinja_now(p), JINJA_T_NAME, name);
}

static struct jinja_node *node2(struct jinja_parser *p, enum jinja_node_kind kind, int line,
                                struct jinja_node *a, struct jinja_node *b)
{
    struct jinja_node *node = a && b ? jinja_node(p, kind, line) : NULL;
    if (!node || !jinja_below(p, node, a) || !jinja_below(p, node, b)) return NULL;
    node->a = a;
    node->b = b;
    return node;
}

static struct jinja_node *node1(struct jinja_parser *p, enum jinja_node_kind kind, int line,
                                struct jinja_node *a)
{
    struct jinja_node *node = a ? jinja_node(p, kind, line) : NULL;
    if (!node || !jinja_below(p, node, a)) return NULL;
    node->a = a;
    return node;
}

static bool add_item(struct jinja_parser *p, struct jinja_node *node, struct jinja_node *item)
{
    return item && jinja_below(p, node, item) && jinja_list_add(p, &node->list, item);
}

static struct jinja_node *constant(struct jinja_parser *p, int line, struct jinja_value value)
{
    struct jinja_node *node = jinja_node(p, JINJA_N_CONST, line);
    if (node) node->value = value;
    return node;
}

/* ---- Literals and names ---- */

static struct jinja_node *parse_strings(struct jinja_parser *p)
{
    const int line = jinja_now(p)->line;
    struct jinja_str whole = jinja_now(p)->text;
    for (p->at++; jinja_now(p)->kind == JINJA_T_STRING; p->at++) {
        const struct jinja_str more = jinja_now(p)->text;
        char *joined = jinja_alloc(&p->t->pool, whole.n + more.n + 1, p->err);
        if (!joined) return NULL;
        memcpy(joined, whole.s, whole.n);
        memcpy(joined + whole.n, more.s, more.n);
        whole = (struct jinja_str){joined, whole.n + more.n};
    }
    return constant(p, line, jinja_string(whole.s, whole.n));
}

/* Parses a list, or the keys and values of a mapping. */
static struct jinja_node *parse_items(struct jinja_parser *p, bool is_dict)
{
    const char *end = is_dict ? "}" : "]";
    struct jinja_node *node =
        jinja_node(p, is_dict ? JINJA_N_DICT : JINJA_N_LIST, jinja_now(p)->line);
    if (!node) return NULL;
    p->at++;
    while (!at_op(p, end)) {
        if (node->list.n && !jinja_expect(p, JINJA_T_OP, ",")) return NULL;
        if (at_op(p, end)) break;
        if (!add_item(p, node, jinja_parse_expression(p)) ||
            (is_dict &&
             (!jinja_expect(p, JINJA_T_OP, ":") || !add_item(p, node, jinja_parse_expression(p)))))
            return NULL;
    }
    p->at++;
    return node;
}

static struct jinja_node *parse_name(struct jinja_parser *p, bool with_nsref)
{
    const struct jinja_token *token = jinja_now(p);
    p->at++;
    if (jinja_str_is(token->text, "true") || jinja_str_is(token->text, "True"))
        return constant(p, token->line, jinja_bool(true));
    if (jinja_str_is(token->text, "false") || jinja_str_is(token->text, "False"))
        return constant(p, token->line, jinja_bool(false));
    if (jinja_str_is(token->text, "none") || jinja_str_is(token->text, "None"))
        return constant(p, token->line, jinja_none());
    struct jinja_node *node = jinja_node(p, JINJA_N_NAME, token->line);
    if (!node) return NULL;
    node->text = token->text;
    node->id = jinja_name_id(p, token->text);
    if (node->id < 0) return NULL;
    if (!with_nsref || !jinja_skip(p, JINJA_T_OP, ".")) return node;
    struct jinja_node *attr = jinja_node(p, JINJA_N_CONST, token->line);
    if (!attr) return NULL;
    attr->text = jinja_now(p)->text;
    if (!jinja_expect(p, JINJA_T_NAME, NULL)) return NULL;
    node->kind = JINJA_N_NSREF;
    node->b = attr;
    return node;
}

static struct jinja_node *parse_primary(struct jinja_parser *p, bool with_nsref)
{
    const struct jinja_token *token = jinja_now(p);
    struct jinja_node *node;
    switch (token->kind) {
    case JINJA_T_NAME:
        return parse_name(p, with_nsref);
    case JINJA_T_STRING:
        return parse_strings(p);
    case JINJA_T_INT:
        p->at++;
        return constant(p, token->line, jinja_int(token->i));
    case JINJA_T_FLOAT:
        p->at++;
        return constant(p, token->line, jinja_float(token->f));
    default:
        break;
    }
    if (at_op(p, "[") || at_op(p, "{")) return parse_items(p, at_op(p, "{"));
    if (!at_op(p, "(")) {
        jinja_unexpected(p);
        return NULL;
    }
    p->at++;
    node = jinja_parse_tuple(p, JINJA_PARENS);
    return node && jinja_expect(p, JINJA_T_OP, ")") ? node : NULL;
}

static bool tuple_ends(const struct jinja_parser *p)
{
    const struct jinja_token *token = jinja_now(p);
    return token->kind == JINJA_T_VAR_END || token->kind == JINJA_T_BLOCK_END || at_op(p, ")");
}

struct jinja_node *jinja_parse_tuple(struct jinja_parser *p, unsigned flags)
{
    const int line = jinja_now(p)->line;
    struct jinja_node *first = NULL, *tuple = NULL;
    for (;;) {
        if (first && !jinja_expect(p, JINJA_T_OP, ",")) return NULL;
        if (tuple_ends(p)) break;
        struct jinja_node *item = flags & JINJA_SIMPLE    ? parse_primary(p, flags & JINJA_NSREFS)
                                  : flags & JINJA_NO_COND ? parse_level(p, OR)
                                                          : jinja_parse_expression(p);
        if (!item) return NULL;
        if (!first) first = item;
        if (!tuple && !at_op(p, ",")) return first;
        if (!tuple && !(tuple = jinja_node(p, JINJA_N_TUPLE, line))) return NULL;
        if (!add_item(p, tuple, item)) return NULL;
        if (!at_op(p, ",")) break;
    }
    if (tuple) return tuple;
    if (flags & JINJA_PARENS) return jinja_node(p, JINJA_N_TUPLE, line);
    jinja_unexpected(p);
    return NULL;
}

/* ---- Subscripts, calls, filters, tests ---- */

static struct jinja_node *parse_subscribed(struct jinja_parser *p)
{
    struct jinja_node *part[3] = {NULL};
    const int line = jinja_now(p)->line;
    if (!at_op(p, ":")) {
        part[0] = jinja_parse_expression(p);
        if (!part[0] || !at_op(p, ":")) return part[0];
    }
    for (int i = 1; i < 3 && jinja_skip(p, JINJA_T_OP, ":"); i++) {
        if (at_op(p, ":") || at_op(p, "]") || at_op(p, ",")) continue;
        part[i] = jinja_parse_expression(p);
        if (!part[i]) return NULL;
    }
    struct jinja_node *node = jinja_node(p, JINJA_N_SLICE, line);
    for (int i = 0; i < 3; i++)
        if (!node || !jinja_below(p, node, part[i])) return NULL;
    node->a = part[0];
    node->b = part[1];
    node->c = part[2];
    return node;
}

static struct jinja_node *parse_brackets(struct jinja_parser *p, struct jinja_node *object)
{
    const int line = jinja_now(p)->line;
    struct jinja_node *first = NULL, *tuple = NULL;
    p->at++;
    while (!at_op(p, "]")) {
        if (first && !jinja_expect(p, JINJA_T_OP, ",")) return NULL;
        struct jinja_node *item = parse_subscribed(p);
        if (!item) return NULL;
        if (first && item->kind == JINJA_N_SLICE) {
            jinja_syntax(p, line, "a slice among several subscripts is not supported");
            return NULL;
        }
        if (first && !tuple &&
            (!(tuple = jinja_node(p, JINJA_N_TUPLE, line)) || !add_item(p, tuple, first)))
            return NULL;
        if (tuple && !add_item(p, tuple, item)) return NULL;
        if (!first) first = item;
    }
    p->at++;
    if (!first) first = jinja_node(p, JINJA_N_TUPLE, line);
    return node2(p, JINJA_N_ITEM, line, object, tuple ? tuple : first);
}

static struct jinja_node *parse_dot(struct jinja_parser *p, struct jinja_node *object)
{
    const int line = jinja_now(p)->line;
    p->at++;
    const struct jinja_token *token = jinja_now(p);
    if (token->kind == JINJA_T_INT) {
        p->at++;
        return node2(p, JINJA_N_ITEM, line, object, constant(p, line, jinja_int(token->i)));
    }
    if (!jinja_expect(p, JINJA_T_NAME, NULL)) return NULL;
    struct jinja_node *node = node1(p, JINJA_N_ATTR, line, object);
    if (node) node->text = token->text;
    return node;
}

static bool add_keyword(struct jinja_parser *p, struct jinja_node *owner, struct jinja_str name,
                        struct jinja_node *value)
{
    struct jinja_args *args = owner->args;
    struct jinja_str *names = jinja_grow(&p->t->pool, args->kw_name, args->kw.n * sizeof *names,
                                         (args->kw.n + 1) * sizeof *names, p->err);
    if (!names) return false;
    args->kw_name = names;
    names[args->kw.n] = name;
    for (size_t i = 0; i < args->kw.n; i++)
        if (names[i].n == name.n && memcmp(names[i].s, name.s, name.n) == 0)
            return jinja_syntax(p, owner->line, "keyword argument '%.*s' is repeated", (int)name.n,
                                name.s);
    return value && jinja_below(p, owner, value) && jinja_list_add(p, &args->kw, value);
}

static bool parse_arg(struct jinja_parser *p, struct jinja_node *owner)
{
    struct jinja_args *args = owner->args;
    const struct jinja_token *token = jinja_now(p);
    struct jinja_node **star = NULL;
    bool ok = true;
    if (at_op(p, "*")) {
        ok = !args->star && !args->star2;
        star = &args->star;
    } else if (at_op(p, "**")) {
        ok = !args->star2;
        star = &args->star2;
    }
    if (star) {
        p->at++;
        struct jinja_node *value = ok ? jinja_parse_expression(p) : NULL;
        *star = value;
        if (ok) return value && jinja_below(p, owner, value);
    } else if (token->kind == JINJA_T_NAME && jinja_token_is(jinja_next(p), JINJA_T_OP, "=")) {
        ok = !args->star2;
        p->at += 2;
        if (ok) return add_keyword(p, owner, token->text, jinja_parse_expression(p));
    } else {
        ok = !args->star && !args->star2 && !args->kw.n;
        struct jinja_node *value = ok ? jinja_parse_expression(p) : NULL;
        if (ok)
            return value && jinja_below(p, owner, value) && jinja_list_add(p, &args->pos, value);
    }
    return jinja_syntax(p, token->line, "arguments in a wrong order");
}

static bool parse_args(struct jinja_parser *p, struct jinja_node *owner)
{
    owner->args = jinja_alloc(&p->t->pool, sizeof *owner->args, p->err);
    if (!owner->args) return false;
    p->at++;
    for (bool more = false; !at_op(p, ")"); more = true) {
        if (more && !jinja_expect(p, JINJA_T_OP, ",")) return false;
        if (at_op(p, ")")) break;
        if (!parse_arg(p, owner)) return false;
    }
    p->at++;
    return true;
}

static struct jinja_node *parse_call(struct jinja_parser *p, struct jinja_node *callee)
{
    struct jinja_node *node = node1(p, JINJA_N_CALL, jinja_now(p)->line, callee);
    return node && parse_args(p, node) ? node : NULL;
}

static struct jinja_node *parse_postfix(struct jinja_parser *p, struct jinja_node *node)
{
    while (node) {
        if (at_op(p, "."))
            node = parse_dot(p, node);
        else if (at_op(p, "["))
            node = parse_brackets(p, node);
        else if (at_op(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* Reads "name" or "dotted.name" of a filter or test; dotted names are unknown, but messages contain
 * them. */
static bool parse_dotted(struct jinja_parser *p, struct jinja_str *name)
{
    *name = jinja_now(p)->text;
    if (!jinja_expect(p, JINJA_T_NAME, NULL)) return false;
    while (jinja_skip(p, JINJA_T_OP, ".")) {
        const struct jinja_str part = jinja_now(p)->text;
        if (!jinja_expect(p, JINJA_T_NAME, NULL)) return false;
        name->n = (size_t)(part.s + part.n - name->s);
    }
    return true;
}

struct jinja_node *jinja_parse_filters(struct jinja_parser *p, struct jinja_node *subject,
                                       bool start_inline)
{
    while (start_inline || at_op(p, "|")) {
        if (!start_inline) p->at++;
        start_inline = false;
        struct jinja_node *node = jinja_node(p, JINJA_N_FILTER, jinja_now(p)->line);
        if (!node || !jinja_below(p, node, subject)) return NULL;
        node->a = subject;
        if (!parse_dotted(p, &node->text)) return NULL;
        if (at_op(p, "(") && !parse_args(p, node)) return NULL;
        subject = node;
    }
    return subject;
}

/* Returns whether the token begins the argument of a test without parentheses. */
static bool begins_argument(const struct jinja_parser *p)
{
    switch (jinja_now(p)->kind) {
    case JINJA_T_NAME:
        return !at_name(p, "else") && !at_name(p, "or") && !at_name(p, "and");
    case JINJA_T_STRING:
    case JINJA_T_INT:
    case JINJA_T_FLOAT:
        return true;
    default:
        return at_op(p, "[") || at_op(p, "{");
    }
}

static struct jinja_node *parse_test(struct jinja_parser *p, struct jinja_node *subject)
{
    const int line = jinja_now(p)->line;
    p->at++;
    const bool negated = jinja_skip(p, JINJA_T_NAME, "not");
    struct jinja_node *node = node1(p, JINJA_N_TEST, line, subject);
    if (!node || !parse_dotted(p, &node->text)) return NULL;
    if (at_op(p, "(")) {
        if (!parse_args(p, node)) return NULL;
    } else if (begins_argument(p)) {
        if (at_name(p, "is")) {
            jinja_syntax(p, line, "several tests with 'is' in a chain");
            return NULL;
        }
        struct jinja_node *arg = parse_postfix(p, parse_primary(p, false));
        node->args = jinja_alloc(&p->t->pool, sizeof *node->args, p->err);
        if (!arg || !node->args || !jinja_below(p, node, arg) ||
            !jinja_list_add(p, &node->args->pos, arg))
            return NULL;
    }
    return negated ? node1(p, JINJA_N_NOT, line, node) : node;
}

static struct jinja_node *parse_filter_expr(struct jinja_parser *p, struct jinja_node *node)
{
    while (node) {
        if (at_op(p, "|"))
            node = jinja_parse_filters(p, node, false);
        else if (at_name(p, "is"))
            node = parse_test(p, node);
        else if (at_op(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* ---- Operators ---- */

static struct jinja_node *parse_unary(struct jinja_parser *p, bool with_filter)
{
    const int line = jinja_now(p)->line;
    struct jinja_node *node = NULL;
    if (++p->nesting > JINJA_MAX_NESTING) {
        jinja_syntax(p, line, "an expression nested deeper than %d levels", JINJA_MAX_NESTING);
        return NULL;
    }
    if (at_op(p, "-") || at_op(p, "+")) {
        const enum jinja_op op = at_op(p, "-") ? JINJA_SUB : JINJA_ADD;
        p->at++;
        node = node1(p, JINJA_N_UNARY, line, parse_unary(p, false));
        if (node) node->op = op;
    } else {
        node = parse_primary(p, false);
    }
    node = parse_postfix(p, node);
    if (with_filter) node = parse_filter_expr(p, node);
    p->nesting--;
    return node;
}

static struct jinja_node *parse_concat(struct jinja_parser *p)
{
    struct jinja_node *first = parse_level(p, PRODUCT);
    if (!first || !at_op(p, "~")) return first;
    struct jinja_node *node = jinja_node(p, JINJA_N_CONCAT, first->line);
    if (!node || !add_item(p, node, first)) return NULL;
    while (jinja_skip(p, JINJA_T_OP, "~"))
        if (!add_item(p, node, parse_level(p, PRODUCT))) return NULL;
    return node;
}

/* Reads a comparison operator; false if there is none. */
static bool skip_comparison(struct jinja_parser *p, enum jinja_op *op)
{
    static const struct {
        const char *text;
        enum jinja_op op;
    } ops[] = {{"==", JINJA_EQ}, {"!=", JINJA_NE}, {"<", JINJA_LT},
               {"<=", JINJA_LE}, {">", JINJA_GT},  {">=", JINJA_GE}};
    for (size_t i = 0; i < 6; i++) {
        *op = ops[i].op;
        if (jinja_skip(p, JINJA_T_OP, ops[i].text)) return true;
    }
    *op = JINJA_IN;
    if (jinja_skip(p, JINJA_T_NAME, "in")) return true;
    *op = JINJA_NOT_IN;
    if (!at_name(p, "not") || !jinja_token_is(jinja_next(p), JINJA_T_NAME, "in")) return false;
    p->at += 2;
    return true;
}

static struct jinja_node *parse_compare(struct jinja_parser *p)
{
    struct jinja_node *first = parse_level(p, SUM), *node = NULL;
    enum jinja_op op;
    while (first && skip_comparison(p, &op)) {
        if (!node) {
            node = jinja_node(p, JINJA_N_COMPARE, first->line);
            if (!node || !add_item(p, node, first)) return NULL;
        }
        const size_t n = node->list.n;
        node->ops = jinja_grow(&p->t->pool, node->ops, (n - 1) * sizeof op, n * sizeof op, p->err);
        if (!node->ops) return NULL;
        node->ops[n - 1] = op;
        if (!add_item(p, node, parse_level(p, SUM))) return NULL;
    }
    return node ? node : first;
}

static struct jinja_node *parse_not(struct jinja_parser *p)
{
    const int line = jinja_now(p)->line;
    int count = 0;
    while (jinja_skip(p, JINJA_T_NAME, "not")) count++;
    struct jinja_node *node = parse_level(p, COMPARE);
    while (node && count-- > 0) node = node1(p, JINJA_N_NOT, line, node);
    return node;
}

static struct jinja_node *parse_level(struct jinja_parser *p, enum level level)
{
    /* Operators that are applied from left to right. */
    static const struct {
        enum jinja_token_kind token;
        enum jinja_node_kind node;
        struct {
            const char *text;
            enum jinja_op op;
        } op[4];
    } levels[] = {
        [OR] = {JINJA_T_NAME, JINJA_N_OR, {{"or", 0}}},
        [AND] = {JINJA_T_NAME, JINJA_N_AND, {{"and", 0}}},
        [SUM] = {JINJA_T_OP, JINJA_N_BINARY, {{"+", JINJA_ADD}, {"-", JINJA_SUB}}},
        [PRODUCT] =
            {JINJA_T_OP,
             JINJA_N_BINARY,
             {{"*", JINJA_MUL}, {"/", JINJA_DIV}, {"//", JINJA_FLOORDIV}, {"%", JINJA_MOD}}},
        [POWER] = {JINJA_T_OP, JINJA_N_BINARY, {{"**", JINJA_POW}}},
    };
    if (level == NOT) return parse_not(p);
    if (level == COMPARE) return parse_compare(p);
    if (level == CONCAT) return parse_concat(p);
    if (level == UNARY) return parse_unary(p, true);
    const int line = jinja_now(p)->line;
    struct jinja_node *left = parse_level(p, level + 1);
    for (int i = 0; left && i < 4 && levels[level].op[i].text;) {
        if (!jinja_skip(p, levels[level].token, levels[level].op[i].text)) {
            i++;
            continue;
        }
        left = node2(p, levels[level].node, line, left, parse_level(p, level + 1));
        if (left) left->op = levels[level].op[i].op;
        i = 0;
    }
    return left;
}

static struct jinja_node *parse_condition(struct jinja_parser *p)
{
    const int line = jinja_now(p)->line;
    struct jinja_node *node = parse_level(p, OR);
    while (node && jinja_skip(p, JINJA_T_NAME, "if")) {
        struct jinja_node *test = parse_level(p, OR), *otherwise = NULL;
        if (!test) return NULL;
        if (jinja_skip(p, JINJA_T_NAME, "else")) {
            otherwise = jinja_parse_expression(p);
            if (!otherwise) return NULL;
        }
        node = node2(p, JINJA_N_COND, line, node, test);
        if (!node || !jinja_below(p, node, otherwise)) return NULL;
        node->c = otherwise;
    }
    return node;
}

struct jinja_node *jinja_parse_expression(struct jinja_parser *p)
{
    struct jinja_node *node = NULL;
    if (++p->nesting > JINJA_MAX_NESTING)
        jinja_syntax(p, jinja_now(p)->line, "an expression nested deeper than %d levels",
                     JINJA_MAX_NESTING);
    else
        node = parse_condition(p);
    p->nesting--;
    return node;
}
