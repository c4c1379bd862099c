/* text/jinja/jinja_expr.c: parses expressions, by jinja2's grammar and precedence.
 * See text/jinja/jinja_ast.h. */
#include "text/jinja/jinja_ast.h"
#include <string.h>

static struct tpl_node *parse_unary(struct tpl_parser *p, bool with_filter);

static bool at_op(const struct tpl_parser *p, const char *op)
{
    return tpl_token_is(tpl_now(p), TPL_T_OP, op);
}

static bool at_name(const struct tpl_parser *p, const char *name)
{
    return tpl_token_is(tpl_now(p), TPL_T_NAME, name);
}

static struct tpl_node *node2(struct tpl_parser *p, enum tpl_node_kind kind, int line,
                              struct tpl_node *a, struct tpl_node *b)
{
    struct tpl_node *node = a && b ? text_tpl_node(p, kind, line) : NULL;
    if (!node || !text_tpl_below(p, node, a) || !text_tpl_below(p, node, b)) return NULL;
    node->a = a;
    node->b = b;
    return node;
}

static struct tpl_node *node1(struct tpl_parser *p, enum tpl_node_kind kind, int line,
                              struct tpl_node *a)
{
    struct tpl_node *node = a ? text_tpl_node(p, kind, line) : NULL;
    if (!node || !text_tpl_below(p, node, a)) return NULL;
    node->a = a;
    return node;
}

static bool add_item(struct tpl_parser *p, struct tpl_node *node, struct tpl_node *item)
{
    return item && text_tpl_below(p, node, item) && text_tpl_list_add(p, &node->list, item);
}

static struct tpl_node *constant(struct tpl_parser *p, int line, struct tpl_value value)
{
    struct tpl_node *node = text_tpl_node(p, TPL_N_CONST, line);
    if (node) node->value = value;
    return node;
}

/* ---- Literals and names ---- */

static struct tpl_node *parse_strings(struct tpl_parser *p)
{
    const int line = tpl_now(p)->line;
    struct tpl_str whole = tpl_now(p)->text;
    for (p->at++; tpl_now(p)->kind == TPL_T_STRING; p->at++) {
        const struct tpl_str more = tpl_now(p)->text;
        char *joined = text_tpl_take(&p->t->pool, whole.n + more.n + 1, p->err);
        if (!joined) return NULL;
        memcpy(joined, whole.s, whole.n);
        memcpy(joined + whole.n, more.s, more.n);
        whole = (struct tpl_str){joined, whole.n + more.n};
    }
    return constant(p, line, tpl_string(whole.s, whole.n));
}

static struct tpl_node *parse_list(struct tpl_parser *p)
{
    struct tpl_node *node = text_tpl_node(p, TPL_N_LIST, tpl_now(p)->line);
    if (!node) return NULL;
    p->at++;
    while (!at_op(p, "]")) {
        if (node->list.n && !text_tpl_expect(p, TPL_T_OP, ",")) return NULL;
        if (at_op(p, "]")) break;
        if (!add_item(p, node, text_tpl_parse_expression(p))) return NULL;
    }
    p->at++;
    return node;
}

static struct tpl_node *parse_dict(struct tpl_parser *p)
{
    struct tpl_node *node = text_tpl_node(p, TPL_N_DICT, tpl_now(p)->line);
    if (!node) return NULL;
    p->at++;
    while (!at_op(p, "}")) {
        if (node->list.n && !text_tpl_expect(p, TPL_T_OP, ",")) return NULL;
        if (at_op(p, "}")) break;
        if (!add_item(p, node, text_tpl_parse_expression(p)) ||
            !text_tpl_expect(p, TPL_T_OP, ":") || !add_item(p, node, text_tpl_parse_expression(p)))
            return NULL;
    }
    p->at++;
    return node;
}

static struct tpl_node *parse_name(struct tpl_parser *p, bool with_nsref)
{
    const struct tpl_token *token = tpl_now(p);
    p->at++;
    if (tpl_is_word(token->text, "true") || tpl_is_word(token->text, "True"))
        return constant(p, token->line, tpl_bool(true));
    if (tpl_is_word(token->text, "false") || tpl_is_word(token->text, "False"))
        return constant(p, token->line, tpl_bool(false));
    if (tpl_is_word(token->text, "none") || tpl_is_word(token->text, "None"))
        return constant(p, token->line, tpl_none());
    struct tpl_node *node = text_tpl_node(p, TPL_N_NAME, token->line);
    if (!node) return NULL;
    node->text = token->text;
    node->id = text_tpl_name_id(p, token->text);
    if (node->id < 0) return NULL;
    if (!with_nsref || !text_tpl_skip(p, TPL_T_OP, ".")) return node;
    struct tpl_node *attr = text_tpl_node(p, TPL_N_CONST, token->line);
    if (!attr) return NULL;
    attr->text = tpl_now(p)->text;
    if (!text_tpl_expect(p, TPL_T_NAME, NULL)) return NULL;
    node->kind = TPL_N_NSREF;
    node->b = attr;
    return node;
}

static struct tpl_node *parse_primary(struct tpl_parser *p, bool with_nsref)
{
    const struct tpl_token *token = tpl_now(p);
    struct tpl_node *node;
    switch (token->kind) {
    case TPL_T_NAME:
        return parse_name(p, with_nsref);
    case TPL_T_STRING:
        return parse_strings(p);
    case TPL_T_INT:
        p->at++;
        return constant(p, token->line, tpl_int(token->i));
    case TPL_T_FLOAT:
        p->at++;
        return constant(p, token->line, tpl_float(token->f));
    default:
        break;
    }
    if (at_op(p, "[")) return parse_list(p);
    if (at_op(p, "{")) return parse_dict(p);
    if (!at_op(p, "(")) {
        text_tpl_unexpected(p);
        return NULL;
    }
    p->at++;
    node = text_tpl_parse_tuple(p, TPL_PARENS);
    return node && text_tpl_expect(p, TPL_T_OP, ")") ? node : NULL;
}

static bool tuple_ends(const struct tpl_parser *p)
{
    const struct tpl_token *token = tpl_now(p);
    return token->kind == TPL_T_VAR_END || token->kind == TPL_T_BLOCK_END || at_op(p, ")");
}

static struct tpl_node *parse_or(struct tpl_parser *p);

struct tpl_node *text_tpl_parse_tuple(struct tpl_parser *p, unsigned flags)
{
    const int line = tpl_now(p)->line;
    struct tpl_node *first = NULL, *tuple = NULL;
    for (;;) {
        if (first && !text_tpl_expect(p, TPL_T_OP, ",")) return NULL;
        if (tuple_ends(p)) break;
        struct tpl_node *item = flags & TPL_SIMPLE    ? parse_primary(p, flags & TPL_NSREFS)
                                : flags & TPL_NO_COND ? parse_or(p)
                                                      : text_tpl_parse_expression(p);
        if (!item) return NULL;
        if (!first) first = item;
        if (!tuple && !at_op(p, ",")) return first;
        if (!tuple && !(tuple = text_tpl_node(p, TPL_N_TUPLE, line))) return NULL;
        if (!add_item(p, tuple, item)) return NULL;
        if (!at_op(p, ",")) break;
    }
    if (tuple) return tuple;
    if (flags & TPL_PARENS) return text_tpl_node(p, TPL_N_TUPLE, line);
    text_tpl_unexpected(p);
    return NULL;
}

/* ---- Subscripts, calls, filters, tests ---- */

static struct tpl_node *parse_subscribed(struct tpl_parser *p)
{
    struct tpl_node *part[3] = {NULL};
    const int line = tpl_now(p)->line;
    if (!at_op(p, ":")) {
        part[0] = text_tpl_parse_expression(p);
        if (!part[0] || !at_op(p, ":")) return part[0];
    }
    for (int i = 1; i < 3 && text_tpl_skip(p, TPL_T_OP, ":"); i++) {
        if (at_op(p, ":") || at_op(p, "]") || at_op(p, ",")) continue;
        part[i] = text_tpl_parse_expression(p);
        if (!part[i]) return NULL;
    }
    struct tpl_node *node = text_tpl_node(p, TPL_N_SLICE, line);
    for (int i = 0; i < 3; i++)
        if (!node || !text_tpl_below(p, node, part[i])) return NULL;
    node->a = part[0];
    node->b = part[1];
    node->c = part[2];
    return node;
}

static struct tpl_node *parse_brackets(struct tpl_parser *p, struct tpl_node *object)
{
    const int line = tpl_now(p)->line;
    struct tpl_node *first = NULL, *tuple = NULL;
    p->at++;
    while (!at_op(p, "]")) {
        if (first && !text_tpl_expect(p, TPL_T_OP, ",")) return NULL;
        struct tpl_node *item = parse_subscribed(p);
        if (!item) return NULL;
        if (first && item->kind == TPL_N_SLICE) {
            text_tpl_syntax(p, line, "a slice among several subscripts is not supported");
            return NULL;
        }
        if (first && !tuple &&
            (!(tuple = text_tpl_node(p, TPL_N_TUPLE, line)) || !add_item(p, tuple, first)))
            return NULL;
        if (tuple && !add_item(p, tuple, item)) return NULL;
        if (!first) first = item;
    }
    p->at++;
    if (!first) first = text_tpl_node(p, TPL_N_TUPLE, line);
    return node2(p, TPL_N_ITEM, line, object, tuple ? tuple : first);
}

static struct tpl_node *parse_dot(struct tpl_parser *p, struct tpl_node *object)
{
    const int line = tpl_now(p)->line;
    p->at++;
    const struct tpl_token *token = tpl_now(p);
    if (token->kind == TPL_T_INT) {
        p->at++;
        return node2(p, TPL_N_ITEM, line, object, constant(p, line, tpl_int(token->i)));
    }
    if (!text_tpl_expect(p, TPL_T_NAME, NULL)) return NULL;
    struct tpl_node *node = node1(p, TPL_N_ATTR, line, object);
    if (node) node->text = token->text;
    return node;
}

static bool add_keyword(struct tpl_parser *p, struct tpl_node *owner, struct tpl_str name,
                        struct tpl_node *value)
{
    struct tpl_args *args = owner->args;
    struct tpl_str *names = text_tpl_grow(&p->t->pool, args->kw_name, args->kw.n * sizeof *names,
                                          (args->kw.n + 1) * sizeof *names, p->err);
    if (!names) return false;
    args->kw_name = names;
    names[args->kw.n] = name;
    for (size_t i = 0; i < args->kw.n; i++)
        if (names[i].n == name.n && memcmp(names[i].s, name.s, name.n) == 0)
            return text_tpl_syntax(p, owner->line, "keyword argument '%.*s' is repeated",
                                   (int)name.n, name.s);
    return value && text_tpl_below(p, owner, value) && text_tpl_list_add(p, &args->kw, value);
}

static bool parse_arg(struct tpl_parser *p, struct tpl_node *owner)
{
    struct tpl_args *args = owner->args;
    const struct tpl_token *token = tpl_now(p);
    struct tpl_node **star = NULL;
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
        struct tpl_node *value = ok ? text_tpl_parse_expression(p) : NULL;
        *star = value;
        if (ok) return value && text_tpl_below(p, owner, value);
    } else if (token->kind == TPL_T_NAME && tpl_token_is(tpl_next(p), TPL_T_OP, "=")) {
        ok = !args->star2;
        p->at += 2;
        if (ok) return add_keyword(p, owner, token->text, text_tpl_parse_expression(p));
    } else {
        ok = !args->star && !args->star2 && !args->kw.n;
        struct tpl_node *value = ok ? text_tpl_parse_expression(p) : NULL;
        if (ok)
            return value && text_tpl_below(p, owner, value) &&
                   text_tpl_list_add(p, &args->pos, value);
    }
    return text_tpl_syntax(p, token->line, "arguments in a wrong order");
}

static bool parse_args(struct tpl_parser *p, struct tpl_node *owner)
{
    owner->args = text_tpl_take(&p->t->pool, sizeof *owner->args, p->err);
    if (!owner->args) return false;
    p->at++;
    for (bool more = false; !at_op(p, ")"); more = true) {
        if (more && !text_tpl_expect(p, TPL_T_OP, ",")) return false;
        if (at_op(p, ")")) break;
        if (!parse_arg(p, owner)) return false;
    }
    p->at++;
    return true;
}

static struct tpl_node *parse_call(struct tpl_parser *p, struct tpl_node *callee)
{
    struct tpl_node *node = node1(p, TPL_N_CALL, tpl_now(p)->line, callee);
    return node && parse_args(p, node) ? node : NULL;
}

static struct tpl_node *parse_postfix(struct tpl_parser *p, struct tpl_node *node)
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

/* "name" or "dotted.name" of a filter or test; dotted ones are unknown, but named in the error. */
static bool parse_dotted(struct tpl_parser *p, struct tpl_str *name)
{
    *name = tpl_now(p)->text;
    if (!text_tpl_expect(p, TPL_T_NAME, NULL)) return false;
    while (text_tpl_skip(p, TPL_T_OP, ".")) {
        const struct tpl_str part = tpl_now(p)->text;
        if (!text_tpl_expect(p, TPL_T_NAME, NULL)) return false;
        name->n = (size_t)(part.s + part.n - name->s);
    }
    return true;
}

struct tpl_node *text_tpl_parse_filters(struct tpl_parser *p, struct tpl_node *subject,
                                        bool start_inline)
{
    while (start_inline || at_op(p, "|")) {
        if (!start_inline) p->at++;
        start_inline = false;
        struct tpl_node *node = text_tpl_node(p, TPL_N_FILTER, tpl_now(p)->line);
        if (!node || !text_tpl_below(p, node, subject)) return NULL;
        node->a = subject;
        if (!parse_dotted(p, &node->text)) return NULL;
        if (at_op(p, "(") && !parse_args(p, node)) return NULL;
        subject = node;
    }
    return subject;
}

/* Whether the token begins the argument of a test that stands without parentheses. */
static bool begins_argument(const struct tpl_parser *p)
{
    switch (tpl_now(p)->kind) {
    case TPL_T_NAME:
        return !at_name(p, "else") && !at_name(p, "or") && !at_name(p, "and");
    case TPL_T_STRING:
    case TPL_T_INT:
    case TPL_T_FLOAT:
        return true;
    default:
        return at_op(p, "[") || at_op(p, "{");
    }
}

static struct tpl_node *parse_test(struct tpl_parser *p, struct tpl_node *subject)
{
    const int line = tpl_now(p)->line;
    p->at++;
    const bool negated = text_tpl_skip(p, TPL_T_NAME, "not");
    struct tpl_node *node = node1(p, TPL_N_TEST, line, subject);
    if (!node || !parse_dotted(p, &node->text)) return NULL;
    if (at_op(p, "(")) {
        if (!parse_args(p, node)) return NULL;
    } else if (begins_argument(p)) {
        if (at_name(p, "is")) {
            text_tpl_syntax(p, line, "several tests with 'is' in a chain");
            return NULL;
        }
        struct tpl_node *arg = parse_postfix(p, parse_primary(p, false));
        node->args = text_tpl_take(&p->t->pool, sizeof *node->args, p->err);
        if (!arg || !node->args || !text_tpl_below(p, node, arg) ||
            !text_tpl_list_add(p, &node->args->pos, arg))
            return NULL;
    }
    return negated ? node1(p, TPL_N_NOT, line, node) : node;
}

static struct tpl_node *parse_filter_expr(struct tpl_parser *p, struct tpl_node *node)
{
    while (node) {
        if (at_op(p, "|"))
            node = text_tpl_parse_filters(p, node, false);
        else if (at_name(p, "is"))
            node = parse_test(p, node);
        else if (at_op(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* ---- Operators, tightest first ---- */

static struct tpl_node *parse_unary(struct tpl_parser *p, bool with_filter)
{
    const int line = tpl_now(p)->line;
    struct tpl_node *node = NULL;
    if (++p->nesting > TPL_MAX_NESTING) {
        text_tpl_syntax(p, line, "an expression nested deeper than %d levels", TPL_MAX_NESTING);
        return NULL;
    }
    if (at_op(p, "-") || at_op(p, "+")) {
        const enum tpl_op op = at_op(p, "-") ? TPL_SUB : TPL_ADD;
        p->at++;
        node = node1(p, TPL_N_UNARY, line, parse_unary(p, false));
        if (node) node->op = op;
    } else {
        node = parse_primary(p, false);
    }
    node = parse_postfix(p, node);
    if (with_filter) node = parse_filter_expr(p, node);
    p->nesting--;
    return node;
}

static struct tpl_node *binary(struct tpl_parser *p, enum tpl_op op, int line, struct tpl_node *a,
                               struct tpl_node *b)
{
    struct tpl_node *node = node2(p, TPL_N_BINARY, line, a, b);
    if (node) node->op = op;
    return node;
}

static struct tpl_node *parse_pow(struct tpl_parser *p)
{
    const int line = tpl_now(p)->line;
    struct tpl_node *left = parse_unary(p, true);
    while (left && text_tpl_skip(p, TPL_T_OP, "**"))
        left = binary(p, TPL_POW, line, left, parse_unary(p, true));
    return left;
}

static struct tpl_node *parse_product(struct tpl_parser *p)
{
    static const struct {
        const char *text;
        enum tpl_op op;
    } ops[] = {{"*", TPL_MUL}, {"/", TPL_DIV}, {"//", TPL_FLOORDIV}, {"%", TPL_MOD}};
    const int line = tpl_now(p)->line;
    struct tpl_node *left = parse_pow(p);
    for (size_t i = 0; left && i < 4;) {
        if (text_tpl_skip(p, TPL_T_OP, ops[i].text)) {
            left = binary(p, ops[i].op, line, left, parse_pow(p));
            i = 0;
        } else {
            i++;
        }
    }
    return left;
}

static struct tpl_node *parse_concat(struct tpl_parser *p)
{
    struct tpl_node *first = parse_product(p);
    if (!first || !at_op(p, "~")) return first;
    struct tpl_node *node = text_tpl_node(p, TPL_N_CONCAT, first->line);
    if (!node || !add_item(p, node, first)) return NULL;
    while (text_tpl_skip(p, TPL_T_OP, "~"))
        if (!add_item(p, node, parse_product(p))) return NULL;
    return node;
}

static struct tpl_node *parse_sum(struct tpl_parser *p)
{
    const int line = tpl_now(p)->line;
    struct tpl_node *left = parse_concat(p);
    while (left && (at_op(p, "+") || at_op(p, "-"))) {
        const enum tpl_op op = at_op(p, "+") ? TPL_ADD : TPL_SUB;
        p->at++;
        left = binary(p, op, line, left, parse_concat(p));
    }
    return left;
}

/* The comparison operator that stands here, skipped; false if there is none. */
static bool skip_comparison(struct tpl_parser *p, enum tpl_op *op)
{
    static const struct {
        const char *text;
        enum tpl_op op;
    } ops[] = {{"==", TPL_EQ}, {"!=", TPL_NE}, {"<", TPL_LT},
               {"<=", TPL_LE}, {">", TPL_GT},  {">=", TPL_GE}};
    for (size_t i = 0; i < 6; i++) {
        *op = ops[i].op;
        if (text_tpl_skip(p, TPL_T_OP, ops[i].text)) return true;
    }
    *op = TPL_IN;
    if (text_tpl_skip(p, TPL_T_NAME, "in")) return true;
    *op = TPL_NOT_IN;
    if (!at_name(p, "not") || !tpl_token_is(tpl_next(p), TPL_T_NAME, "in")) return false;
    p->at += 2;
    return true;
}

static struct tpl_node *parse_compare(struct tpl_parser *p)
{
    struct tpl_node *first = parse_sum(p), *node = NULL;
    enum tpl_op op;
    while (first && skip_comparison(p, &op)) {
        if (!node) {
            node = text_tpl_node(p, TPL_N_COMPARE, first->line);
            if (!node || !add_item(p, node, first)) return NULL;
        }
        const size_t n = node->list.n;
        node->ops =
            text_tpl_grow(&p->t->pool, node->ops, (n - 1) * sizeof op, n * sizeof op, p->err);
        if (!node->ops) return NULL;
        node->ops[n - 1] = op;
        if (!add_item(p, node, parse_sum(p))) return NULL;
    }
    return node ? node : first;
}

static struct tpl_node *parse_not(struct tpl_parser *p)
{
    const int line = tpl_now(p)->line;
    int count = 0;
    while (text_tpl_skip(p, TPL_T_NAME, "not")) count++;
    struct tpl_node *node = parse_compare(p);
    while (node && count-- > 0) node = node1(p, TPL_N_NOT, line, node);
    return node;
}

static struct tpl_node *parse_and(struct tpl_parser *p)
{
    const int line = tpl_now(p)->line;
    struct tpl_node *left = parse_not(p);
    while (left && text_tpl_skip(p, TPL_T_NAME, "and"))
        left = node2(p, TPL_N_AND, line, left, parse_not(p));
    return left;
}

static struct tpl_node *parse_or(struct tpl_parser *p)
{
    const int line = tpl_now(p)->line;
    struct tpl_node *left = parse_and(p);
    while (left && text_tpl_skip(p, TPL_T_NAME, "or"))
        left = node2(p, TPL_N_OR, line, left, parse_and(p));
    return left;
}

static struct tpl_node *parse_condition(struct tpl_parser *p)
{
    const int line = tpl_now(p)->line;
    struct tpl_node *node = parse_or(p);
    while (node && text_tpl_skip(p, TPL_T_NAME, "if")) {
        struct tpl_node *test = parse_or(p), *otherwise = NULL;
        if (!test) return NULL;
        if (text_tpl_skip(p, TPL_T_NAME, "else")) {
            otherwise = text_tpl_parse_expression(p);
            if (!otherwise) return NULL;
        }
        node = node2(p, TPL_N_COND, line, node, test);
        if (!node || !text_tpl_below(p, node, otherwise)) return NULL;
        node->c = otherwise;
    }
    return node;
}

struct tpl_node *text_tpl_parse_expression(struct tpl_parser *p)
{
    struct tpl_node *node = NULL;
    if (++p->nesting > TPL_MAX_NESTING)
        text_tpl_syntax(p, tpl_now(p)->line, "an expression nested deeper than %d levels",
                        TPL_MAX_NESTING);
    else
        node = parse_condition(p);
    p->nesting--;
    return node;
}
