/* text/jinja/jinja_parse.c: parses statements into a tree and owns the parsed template.
 * See text/jinja/jinja.h, text/jinja/jinja_ast.h. */
#include "base/utf8.h"
#include "text/jinja/jinja_ast.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCE = 4 << 20, MAX_TREE_MEMORY = 256 << 20 };

/* ---- What all parts of the parser use ---- */

bool text_tpl_syntax(struct tpl_parser *p, int line, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return base_fail(p->err, BASE_USAGE, "line %d: %s", line, text);
}

struct tpl_node *text_tpl_node(struct tpl_parser *p, enum tpl_node_kind kind, int line)
{
    struct tpl_node *node = text_tpl_take(&p->t->pool, sizeof *node, p->err);
    if (!node) return NULL;
    node->kind = kind;
    node->line = line;
    return node;
}

bool text_tpl_below(struct tpl_parser *p, struct tpl_node *node, const struct tpl_node *child)
{
    if (!child || child->depth < node->depth) return true;
    node->depth = child->depth + 1;
    if (node->depth <= TPL_MAX_TREE) return true;
    return text_tpl_syntax(p, node->line, "a construct of more than %d levels", TPL_MAX_TREE);
}

bool text_tpl_list_add(struct tpl_parser *p, struct tpl_list *list, struct tpl_node *node)
{
    if (list->n == list->room) {
        const size_t room = list->room ? list->room * 2 : 4;
        struct tpl_node **more = text_tpl_grow(&p->t->pool, list->node, list->n * sizeof *more,
                                               room * sizeof *more, p->err);
        if (!more) return false;
        list->node = more;
        list->room = room;
    }
    list->node[list->n++] = node;
    return true;
}

int text_tpl_name_id(struct tpl_parser *p, struct tpl_str name)
{
    struct text_template *t = p->t;
    for (size_t i = 0; i < t->n_names; i++)
        if (t->name[i].n == name.n && memcmp(t->name[i].s, name.s, name.n) == 0) return (int)i;
    if (t->n_names == t->name_room) {
        const size_t room = t->name_room ? t->name_room * 2 : 64;
        t->name = text_tpl_grow(&t->pool, t->name, t->n_names * sizeof *t->name,
                                room * sizeof *t->name, p->err);
        if (!t->name) return -1;
        t->name_room = room;
    }
    if (t->n_names == 4000) {
        text_tpl_syntax(p, tpl_now(p)->line, "more than 4000 names");
        return -1;
    }
    t->name[t->n_names] = name;
    return (int)t->n_names++;
}

bool text_tpl_skip(struct tpl_parser *p, enum tpl_token_kind kind, const char *word)
{
    if (tpl_now(p)->kind != kind || (word && !tpl_is_word(tpl_now(p)->text, word))) return false;
    if (kind != TPL_T_END) p->at++;
    return true;
}

static const char *token_name(const struct tpl_token *token)
{
    switch (token->kind) {
    case TPL_T_END:
        return "end of template";
    case TPL_T_DATA:
        return "text";
    case TPL_T_VAR_BEGIN:
        return "{{";
    case TPL_T_VAR_END:
        return "}}";
    case TPL_T_BLOCK_BEGIN:
        return "{%";
    case TPL_T_BLOCK_END:
        return "%}";
    case TPL_T_STRING:
        return "string";
    case TPL_T_NAME:
        return "name";
    default:
        return NULL;
    }
}

bool text_tpl_unexpected(struct tpl_parser *p)
{
    const struct tpl_token *token = tpl_now(p);
    const char *name = token->kind == TPL_T_NAME ? NULL : token_name(token);
    if (name) return text_tpl_syntax(p, token->line, "unexpected %s", name);
    return text_tpl_syntax(p, token->line, "unexpected '%.*s'", (int)token->text.n, token->text.s);
}

bool text_tpl_expect(struct tpl_parser *p, enum tpl_token_kind kind, const char *word)
{
    if (text_tpl_skip(p, kind, word)) return true;
    const struct tpl_token *token = tpl_now(p), wanted = {.kind = kind};
    const char *name = token->kind == TPL_T_NAME ? NULL : token_name(token);
    return text_tpl_syntax(
        p, token->line, "expected %s, found '%.*s'", word ? word : token_name(&wanted),
        name ? (int)strlen(name) : (int)token->text.n, name ? name : token->text.s);
}

/* ---- Statements ---- */

static bool at_name(const struct tpl_parser *p, const char *name)
{
    return tpl_token_is(tpl_now(p), TPL_T_NAME, name);
}

static bool at_any(const struct tpl_parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (at_name(p, *ends)) return true;
    return false;
}

static struct tpl_node *parse_statement(struct tpl_parser *p);

static bool add_to(struct tpl_parser *p, struct tpl_node *owner, struct tpl_list *list,
                   struct tpl_node *node)
{
    return node && (!owner || text_tpl_below(p, owner, node)) && text_tpl_list_add(p, list, node);
}

static bool add_printed(struct tpl_parser *p, struct tpl_node *owner, struct tpl_list *list)
{
    struct tpl_node *print = text_tpl_node(p, TPL_N_PRINT, tpl_now(p)->line);
    if (!print) return false;
    return add_to(p, print, &print->list, text_tpl_parse_tuple(p, 0)) &&
           text_tpl_expect(p, TPL_T_VAR_END, NULL) && add_to(p, owner, list, print);
}

/* Statements up to a tag whose name is in `ends` (the name is the present token then), or up to the
 * end of the template if `ends` is NULL. */
static bool parse_statements(struct tpl_parser *p, struct tpl_node *owner, struct tpl_list *list,
                             const char *const *ends)
{
    for (;;) {
        const struct tpl_token *token = tpl_now(p);
        if (token->kind == TPL_T_DATA) {
            struct tpl_node *data = text_tpl_node(p, TPL_N_DATA, token->line);
            if (!data || !add_to(p, owner, list, data)) return false;
            data->text = token->text;
            p->at++;
        } else if (token->kind == TPL_T_VAR_BEGIN) {
            p->at++;
            if (!add_printed(p, owner, list)) return false;
        } else if (token->kind == TPL_T_BLOCK_BEGIN) {
            p->at++;
            if (at_any(p, ends)) return true;
            if (!add_to(p, owner, list, parse_statement(p)) ||
                !text_tpl_expect(p, TPL_T_BLOCK_END, NULL))
                return false;
        } else {
            if (!ends) return true;
            return text_tpl_syntax(p, owner->line, "this block is not closed: no '%s' found",
                                   ends[0]);
        }
    }
}

/* The body of a block, from its opening tag's end to a tag of `ends`. */
static bool parse_block(struct tpl_parser *p, struct tpl_node *owner, struct tpl_list *list,
                        const char *const *ends)
{
    text_tpl_skip(p, TPL_T_OP, ":");
    if (!text_tpl_expect(p, TPL_T_BLOCK_END, NULL)) return false;
    if (++p->nesting > TPL_MAX_NESTING)
        return text_tpl_syntax(p, owner->line, "blocks nested deeper than %d levels",
                               TPL_MAX_NESTING);
    const bool ok = parse_statements(p, owner, list, ends);
    p->nesting--;
    return ok;
}

/* The same with one possible end, whose name is skipped. */
static bool parse_whole_block(struct tpl_parser *p, struct tpl_node *owner, struct tpl_list *list,
                              const char *end)
{
    const char *const ends[] = {end, NULL};
    if (!parse_block(p, owner, list, ends)) return false;
    p->at++;
    return true;
}

static bool check_target(struct tpl_parser *p, const struct tpl_node *target)
{
    if (target->kind == TPL_N_NAME || target->kind == TPL_N_NSREF) return true;
    if (target->kind != TPL_N_TUPLE)
        return text_tpl_syntax(p, target->line, "cannot assign to this");
    for (size_t i = 0; i < target->list.n; i++)
        if (!check_target(p, target->list.node[i])) return false;
    return true;
}

static struct tpl_node *parse_target(struct tpl_parser *p, unsigned flags)
{
    struct tpl_node *target = text_tpl_parse_tuple(p, TPL_SIMPLE | flags);
    return target && check_target(p, target) ? target : NULL;
}

static bool assigns_loop(const struct tpl_node *target)
{
    if (target->kind == TPL_N_NAME) return tpl_is_word(target->text, "loop");
    for (size_t i = 0; target->kind == TPL_N_TUPLE && i < target->list.n; i++)
        if (assigns_loop(target->list.node[i])) return true;
    return false;
}

/* A target of set or for. */
static bool check_loop(struct tpl_parser *p, const struct tpl_node *target)
{
    return !p->for_tags || !assigns_loop(target) ||
           text_tpl_syntax(p, target->line, "'loop' cannot be assigned in a for loop");
}

static bool parse_set(struct tpl_parser *p, struct tpl_node *node)
{
    node->a = parse_target(p, TPL_NSREFS);
    if (!node->a || !check_loop(p, node->a)) return false;
    if (text_tpl_skip(p, TPL_T_OP, "=")) {
        node->b = text_tpl_parse_tuple(p, 0);
        return node->b && text_tpl_below(p, node, node->b);
    }
    node->kind = TPL_N_SET_BLOCK;
    if (tpl_token_is(tpl_now(p), TPL_T_OP, "|")) {
        node->b = text_tpl_parse_filters(p, NULL, false);
        if (!node->b || !text_tpl_below(p, node, node->b)) return false;
    }
    return parse_whole_block(p, node, &node->body, "endset");
}

static bool parse_if(struct tpl_parser *p, struct tpl_node *node)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    for (struct tpl_node *part = node;;) {
        part->a = text_tpl_parse_tuple(p, TPL_NO_COND);
        if (!part->a || !text_tpl_below(p, part, part->a) ||
            !parse_block(p, part, &part->body, ends))
            return false;
        if (part != node && !text_tpl_below(p, node, part)) return false;
        const struct tpl_token *token = tpl_now(p);
        p->at++;
        if (tpl_is_word(token->text, "endif")) return true;
        if (tpl_is_word(token->text, "else"))
            return parse_whole_block(p, node, &node->other, "endif");
        part = text_tpl_node(p, TPL_N_IF, token->line);
        if (!part || !text_tpl_list_add(p, &node->list, part)) return false;
    }
}

static bool parse_for(struct tpl_parser *p, struct tpl_node *node)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    p->for_tags++;
    node->a = parse_target(p, 0);
    if (!node->a || !check_loop(p, node->a) || !text_tpl_expect(p, TPL_T_NAME, "in")) return false;
    node->b = text_tpl_parse_tuple(p, TPL_NO_COND);
    if (!node->b || !text_tpl_below(p, node, node->b)) return false;
    if (text_tpl_skip(p, TPL_T_NAME, "if")) {
        node->c = text_tpl_parse_expression(p);
        if (!node->c || !text_tpl_below(p, node, node->c)) return false;
    }
    node->flag = text_tpl_skip(p, TPL_T_NAME, "recursive");
    p->in_loops++;
    const bool ok = parse_block(p, node, &node->body, ends);
    p->in_loops--;
    if (!ok) return false;
    const bool has_else = at_name(p, "else");
    p->at++;
    if (has_else && !parse_whole_block(p, node, &node->other, "endfor")) return false;
    p->for_tags--;
    return true;
}

static bool parse_signature(struct tpl_parser *p, struct tpl_node *node)
{
    if (!text_tpl_expect(p, TPL_T_OP, "(")) return false;
    while (!tpl_token_is(tpl_now(p), TPL_T_OP, ")")) {
        if (node->list.n && !text_tpl_expect(p, TPL_T_OP, ",")) return false;
        struct tpl_node *name = text_tpl_node(p, TPL_N_NAME, tpl_now(p)->line);
        if (!name) return false;
        name->text = tpl_now(p)->text;
        if (!text_tpl_expect(p, TPL_T_NAME, NULL)) return false;
        name->id = text_tpl_name_id(p, name->text);
        for (size_t i = 0; i < node->list.n; i++)
            if (node->list.node[i]->id == name->id)
                return text_tpl_syntax(p, name->line, "the parameter '%.*s' stands twice",
                                       (int)name->text.n, name->text.s);
        if (name->id < 0 || !text_tpl_list_add(p, &node->list, name)) return false;
        if (text_tpl_skip(p, TPL_T_OP, "=")) {
            if (!add_to(p, node, &node->defaults, text_tpl_parse_expression(p))) return false;
        } else if (node->defaults.n) {
            return text_tpl_syntax(p, name->line,
                                   "a parameter without default after one with default");
        }
    }
    p->at++;
    return true;
}

/* The body of a function: loops around it do not count for break and continue. */
static bool parse_function(struct tpl_parser *p, struct tpl_node *node, const char *end)
{
    const int in_loops = p->in_loops;
    p->in_loops = 0;
    const bool ok = parse_whole_block(p, node, &node->body, end);
    p->in_loops = in_loops;
    return ok;
}

static bool parse_macro(struct tpl_parser *p, struct tpl_node *node)
{
    node->text = tpl_now(p)->text;
    if (!text_tpl_expect(p, TPL_T_NAME, NULL)) return false;
    node->id = text_tpl_name_id(p, node->text);
    return node->id >= 0 && parse_signature(p, node) && parse_function(p, node, "endmacro");
}

static bool parse_call_block(struct tpl_parser *p, struct tpl_node *node)
{
    if (tpl_token_is(tpl_now(p), TPL_T_OP, "(") && !parse_signature(p, node)) return false;
    node->a = text_tpl_parse_expression(p);
    if (!node->a || !text_tpl_below(p, node, node->a)) return false;
    if (node->a->kind != TPL_N_CALL)
        return text_tpl_syntax(p, node->line, "a call block needs a call");
    return parse_function(p, node, "endcall");
}

static bool parse_generation(struct tpl_parser *p, struct tpl_node *node)
{
    return parse_function(p, node, "endgeneration");
}

static bool parse_filter_block(struct tpl_parser *p, struct tpl_node *node)
{
    node->b = text_tpl_parse_filters(p, NULL, true);
    return node->b && text_tpl_below(p, node, node->b) &&
           parse_whole_block(p, node, &node->body, "endfilter");
}

static bool parse_with(struct tpl_parser *p, struct tpl_node *node)
{
    while (tpl_now(p)->kind != TPL_T_BLOCK_END) {
        if (node->list.n && !text_tpl_expect(p, TPL_T_OP, ",")) return false;
        struct tpl_node *target = parse_target(p, 0);
        if (!target || !text_tpl_list_add(p, &node->list, target) ||
            !text_tpl_expect(p, TPL_T_OP, "=") ||
            !add_to(p, node, &node->defaults, text_tpl_parse_expression(p)))
            return false;
    }
    return parse_whole_block(p, node, &node->body, "endwith");
}

static bool parse_print(struct tpl_parser *p, struct tpl_node *node)
{
    while (tpl_now(p)->kind != TPL_T_BLOCK_END) {
        if (node->list.n && !text_tpl_expect(p, TPL_T_OP, ",")) return false;
        if (!add_to(p, node, &node->list, text_tpl_parse_expression(p))) return false;
    }
    return true;
}

static bool parse_jump(struct tpl_parser *p, struct tpl_node *node)
{
    if (p->in_loops) return true;
    return text_tpl_syntax(p, node->line, "'%s' outside of a loop",
                           node->kind == TPL_N_BREAK ? "break" : "continue");
}

static struct tpl_node *parse_statement(struct tpl_parser *p)
{
    static const struct {
        const char *tag;
        enum tpl_node_kind kind;
        bool (*parse)(struct tpl_parser *p, struct tpl_node *node); /* NULL: refused */
    } tags[] = {{"set", TPL_N_SET, parse_set},
                {"if", TPL_N_IF, parse_if},
                {"for", TPL_N_FOR, parse_for},
                {"macro", TPL_N_MACRO, parse_macro},
                {"call", TPL_N_CALL_BLOCK, parse_call_block},
                {"generation", TPL_N_CALL_BLOCK, parse_generation},
                {"filter", TPL_N_FILTER_BLOCK, parse_filter_block},
                {"with", TPL_N_WITH, parse_with},
                {"print", TPL_N_PRINT, parse_print},
                {"break", TPL_N_BREAK, parse_jump},
                {"continue", TPL_N_CONTINUE, parse_jump},
                {"include", TPL_N_DATA, NULL},
                {"import", TPL_N_DATA, NULL},
                {"from", TPL_N_DATA, NULL},
                {"extends", TPL_N_DATA, NULL},
                {"block", TPL_N_DATA, NULL},
                {"autoescape", TPL_N_DATA, NULL}};
    const struct tpl_token *token = tpl_now(p);
    if (!text_tpl_expect(p, TPL_T_NAME, NULL)) return NULL;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!tpl_is_word(token->text, tags[i].tag)) continue;
        if (!tags[i].parse) {
            text_tpl_syntax(p, token->line, "the tag '%s' is not supported", tags[i].tag);
            return NULL;
        }
        struct tpl_node *node = text_tpl_node(p, tags[i].kind, token->line);
        return node && tags[i].parse(p, node) ? node : NULL;
    }
    text_tpl_syntax(p, token->line, "unknown tag '%.*s'", (int)token->text.n, token->text.s);
    return NULL;
}

bool text_tpl_parse_body(struct tpl_parser *p, struct tpl_list *body)
{
    return parse_statements(p, NULL, body, NULL);
}

/* ---- The template ---- */

/* Copies the source with every line break as \n and without the last one. */
static bool normalise(struct tpl_parser *p, const char *source, size_t size, struct tpl_str *out)
{
    char *copy = text_tpl_take(&p->t->pool, size + 1, p->err);
    size_t n = 0;
    int line = 1;
    if (!copy) return false;
    for (size_t i = 0; i < size;) {
        int32_t code;
        const size_t used = base_utf8_decode(source + i, size - i, &code);
        if (code < 0) return text_tpl_syntax(p, line, "the template is not valid UTF-8");
        if (code == '\r') {
            i += i + 1 < size && source[i + 1] == '\n';
            copy[n++] = '\n';
        } else {
            memcpy(copy + n, source + i, used);
            n += used;
        }
        line += copy[n - 1] == '\n';
        i += used;
    }
    if (n && copy[n - 1] == '\n') n--;
    *out = (struct tpl_str){copy, n};
    return true;
}

struct text_template *text_template_parse(const char *source, size_t size, struct base_error *err)
{
    struct text_template *t = calloc(1, sizeof *t);
    struct tpl_parser p = {.t = t, .err = err};
    struct tpl_str text;
    if (!t) {
        base_fail(err, BASE_NO_MEMORY, "no memory for a template");
        return NULL;
    }
    t->pool.limit = MAX_TREE_MEMORY;
    if (size > MAX_SOURCE)
        base_fail(err, BASE_USAGE, "a template of %zu bytes; at most %d", size, MAX_SOURCE);
    else if (normalise(&p, source, size, &text) && text_tpl_lex(&p, text) &&
             text_tpl_parse_body(&p, &t->body) && text_tpl_check(&p))
        return t;
    text_template_free(t);
    return NULL;
}

void text_template_free(struct text_template *t)
{
    if (!t) return;
    text_tpl_pool_free(&t->pool);
    free(t);
}

bool text_template_uses(const struct text_template *t, const char *name)
{
    for (size_t i = 0; i < t->n_names; i++)
        if (tpl_is_word(t->name[i], name)) return t->loaded[i];
    return false;
}
