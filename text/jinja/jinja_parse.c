/* text/jinja/jinja_parse.c: parses statements into a tree; creates and frees the parsed template.
 * See text/jinja/jinja.h, text/jinja/jinja_ast.h. */
#include "base/utf8.h"
#include "text/jinja/jinja_ast.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCE = 4 << 20, MAX_TREE_MEMORY = 256 << 20 };

/* ---- Statements ---- */

static bool at_name(const struct jinja_parser *p, const char *name)
{
    return jinja_token_is(jinja_now(p), JINJA_T_NAME, name);
}

static bool at_any(const struct jinja_parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (at_name(p, *ends)) return true;
    return false;
}

static struct jinja_node *parse_statement(struct jinja_parser *p);

static bool add_to(struct jinja_parser *p, struct jinja_node *owner, struct jinja_list *list,
                   struct jinja_node *node)
{
    return node && (!owner || jinja_below(p, owner, node)) && jinja_list_add(p, list, node);
}

/* Makes a node a child of another, in *place; false if it is NULL, after an error. */
static bool set_child(struct jinja_parser *p, struct jinja_node *owner, struct jinja_node **place,
                      struct jinja_node *child)
{
    *place = child;
    return child && jinja_below(p, owner, child);
}

static bool add_printed(struct jinja_parser *p, struct jinja_node *owner, struct jinja_list *list)
{
    struct jinja_node *print = jinja_node(p, JINJA_N_PRINT, jinja_now(p)->line);
    if (!print) return false;
    return add_to(p, print, &print->list, jinja_parse_tuple(p, 0)) &&
           jinja_expect(p, JINJA_T_VAR_END, NULL) && add_to(p, owner, list, print);
}

/* Parses statements up to a tag whose name is in `ends` (the name is then the present token), or up
 * to the end of the template if `ends` is NULL. */
static bool parse_statements(struct jinja_parser *p, struct jinja_node *owner,
                             struct jinja_list *list, const char *const *ends)
{
    for (;;) {
        const struct jinja_token *token = jinja_now(p);
        if (token->kind == JINJA_T_DATA) {
            struct jinja_node *data = jinja_node(p, JINJA_N_DATA, token->line);
            if (!data || !add_to(p, owner, list, data)) return false;
            data->text = token->text;
            p->at++;
        } else if (token->kind == JINJA_T_VAR_BEGIN) {
            p->at++;
            if (!add_printed(p, owner, list)) return false;
        } else if (token->kind == JINJA_T_BLOCK_BEGIN) {
            p->at++;
            if (at_any(p, ends)) return true;
            if (!add_to(p, owner, list, parse_statement(p)) ||
                !jinja_expect(p, JINJA_T_BLOCK_END, NULL))
                return false;
        } else {
            if (!ends) return true;
            return jinja_syntax(p, owner->line, "this block is not closed: no '%s' found", ends[0]);
        }
    }
}

/* Parses the body of a block, from the end of its opening tag to a tag of `ends`. */
static bool parse_block(struct jinja_parser *p, struct jinja_node *owner, struct jinja_list *list,
                        const char *const *ends)
{
    jinja_skip(p, JINJA_T_OP, ":");
    if (!jinja_expect(p, JINJA_T_BLOCK_END, NULL)) return false;
    if (++p->nesting > JINJA_MAX_NESTING)
        return jinja_syntax(p, owner->line, "blocks nested deeper than %d levels",
                            JINJA_MAX_NESTING);
    const bool ok = parse_statements(p, owner, list, ends);
    p->nesting--;
    return ok;
}

/* Parses a block with one possible end, and skips the end's name. */
static bool parse_whole_block(struct jinja_parser *p, struct jinja_node *owner,
                              struct jinja_list *list, const char *end)
{
    const char *const ends[] = {end, NULL};
    if (!parse_block(p, owner, list, ends)) return false;
    p->at++;
    return true;
}

static bool check_target(struct jinja_parser *p, const struct jinja_node *target)
{
    if (target->kind == JINJA_N_NAME || target->kind == JINJA_N_NSREF) return true;
    if (target->kind != JINJA_N_TUPLE)
        return jinja_syntax(p, target->line, "cannot assign to this");
    for (size_t i = 0; i < target->list.n; i++)
        if (!check_target(p, target->list.node[i])) return false;
    return true;
}

static struct jinja_node *parse_target(struct jinja_parser *p, unsigned flags)
{
    struct jinja_node *target = jinja_parse_tuple(p, JINJA_SIMPLE | flags);
    return target && check_target(p, target) ? target : NULL;
}

static bool assigns_loop(const struct jinja_node *target)
{
    if (target->kind == JINJA_N_NAME) return jinja_str_is(target->text, "loop");
    for (size_t i = 0; target->kind == JINJA_N_TUPLE && i < target->list.n; i++)
        if (assigns_loop(target->list.node[i])) return true;
    return false;
}

/* Fails for an assignment to `loop` in a for loop. */
static bool check_loop(struct jinja_parser *p, const struct jinja_node *target)
{
    return !p->for_tags || !assigns_loop(target) ||
           jinja_syntax(p, target->line, "'loop' cannot be assigned in a for loop");
}

static bool parse_set(struct jinja_parser *p, struct jinja_node *node)
{
    node->a = parse_target(p, JINJA_NSREFS);
    if (!node->a || !check_loop(p, node->a)) return false;
    if (jinja_skip(p, JINJA_T_OP, "="))
        return set_child(p, node, &node->b, jinja_parse_tuple(p, 0));
    node->kind = JINJA_N_SET_BLOCK;
    if (jinja_token_is(jinja_now(p), JINJA_T_OP, "|") &&
        !set_child(p, node, &node->b, jinja_parse_filters(p, NULL, false)))
        return false;
    return parse_whole_block(p, node, &node->body, "endset");
}

static bool parse_if(struct jinja_parser *p, struct jinja_node *node)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    for (struct jinja_node *part = node;;) {
        if (!set_child(p, part, &part->a, jinja_parse_tuple(p, JINJA_NO_COND)) ||
            !parse_block(p, part, &part->body, ends))
            return false;
        if (part != node && !jinja_below(p, node, part)) return false;
        const struct jinja_token *token = jinja_now(p);
        p->at++;
        if (jinja_str_is(token->text, "endif")) return true;
        if (jinja_str_is(token->text, "else"))
            return parse_whole_block(p, node, &node->other, "endif");
        part = jinja_node(p, JINJA_N_IF, token->line);
        if (!part || !jinja_list_add(p, &node->list, part)) return false;
    }
}

static bool parse_for(struct jinja_parser *p, struct jinja_node *node)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    p->for_tags++;
    node->a = parse_target(p, 0);
    if (!node->a || !check_loop(p, node->a) || !jinja_expect(p, JINJA_T_NAME, "in")) return false;
    if (!set_child(p, node, &node->b, jinja_parse_tuple(p, JINJA_NO_COND)) ||
        (jinja_skip(p, JINJA_T_NAME, "if") &&
         !set_child(p, node, &node->c, jinja_parse_expression(p))))
        return false;
    if (jinja_token_is(jinja_now(p), JINJA_T_NAME, "recursive"))
        return jinja_syntax(p, jinja_now(p)->line, "recursive loops are not supported");
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

static bool parse_signature(struct jinja_parser *p, struct jinja_node *node)
{
    if (!jinja_expect(p, JINJA_T_OP, "(")) return false;
    while (!jinja_token_is(jinja_now(p), JINJA_T_OP, ")")) {
        if (node->list.n && !jinja_expect(p, JINJA_T_OP, ",")) return false;
        struct jinja_node *name = jinja_node(p, JINJA_N_NAME, jinja_now(p)->line);
        if (!name) return false;
        name->text = jinja_now(p)->text;
        if (!jinja_expect(p, JINJA_T_NAME, NULL)) return false;
        name->id = jinja_name_id(p, name->text);
        for (size_t i = 0; i < node->list.n; i++)
            if (node->list.node[i]->id == name->id)
                return jinja_syntax(p, name->line, "the parameter '%.*s' occurs twice",
                                    (int)name->text.n, name->text.s);
        if (name->id < 0 || !jinja_list_add(p, &node->list, name)) return false;
        if (jinja_skip(p, JINJA_T_OP, "=")) {
            if (!add_to(p, node, &node->defaults, jinja_parse_expression(p))) return false;
        } else if (node->defaults.n) {
            return jinja_syntax(p, name->line,
                                "a parameter without default after one with default");
        }
    }
    p->at++;
    return true;
}

/* Parses the body of a function: enclosing loops do not count for break and continue. */
static bool parse_function(struct jinja_parser *p, struct jinja_node *node, const char *end)
{
    const int in_loops = p->in_loops;
    p->in_loops = 0;
    const bool ok = parse_whole_block(p, node, &node->body, end);
    p->in_loops = in_loops;
    return ok;
}

static bool parse_macro(struct jinja_parser *p, struct jinja_node *node)
{
    node->text = jinja_now(p)->text;
    if (!jinja_expect(p, JINJA_T_NAME, NULL)) return false;
    node->id = jinja_name_id(p, node->text);
    return node->id >= 0 && parse_signature(p, node) && parse_function(p, node, "endmacro");
}

static bool parse_call_block(struct jinja_parser *p, struct jinja_node *node)
{
    if (jinja_token_is(jinja_now(p), JINJA_T_OP, "(") && !parse_signature(p, node)) return false;
    if (!set_child(p, node, &node->a, jinja_parse_expression(p))) return false;
    if (node->a->kind != JINJA_N_CALL)
        return jinja_syntax(p, node->line, "a call block needs a call");
    return parse_function(p, node, "endcall");
}

static bool parse_generation(struct jinja_parser *p, struct jinja_node *node)
{
    return parse_function(p, node, "endgeneration");
}

static bool parse_filter_block(struct jinja_parser *p, struct jinja_node *node)
{
    return set_child(p, node, &node->b, jinja_parse_filters(p, NULL, true)) &&
           parse_whole_block(p, node, &node->body, "endfilter");
}

static bool parse_with(struct jinja_parser *p, struct jinja_node *node)
{
    while (jinja_now(p)->kind != JINJA_T_BLOCK_END) {
        if (node->list.n && !jinja_expect(p, JINJA_T_OP, ",")) return false;
        struct jinja_node *target = parse_target(p, 0);
        if (!target || !jinja_list_add(p, &node->list, target) ||
            !jinja_expect(p, JINJA_T_OP, "=") ||
            !add_to(p, node, &node->defaults, jinja_parse_expression(p)))
            return false;
    }
    return parse_whole_block(p, node, &node->body, "endwith");
}

static bool parse_print(struct jinja_parser *p, struct jinja_node *node)
{
    while (jinja_now(p)->kind != JINJA_T_BLOCK_END) {
        if (node->list.n && !jinja_expect(p, JINJA_T_OP, ",")) return false;
        if (!add_to(p, node, &node->list, jinja_parse_expression(p))) return false;
    }
    return true;
}

static bool parse_jump(struct jinja_parser *p, struct jinja_node *node)
{
    if (p->in_loops) return true;
    return jinja_syntax(p, node->line, "'%s' outside of a loop",
                        node->kind == JINJA_N_BREAK ? "break" : "continue");
}

static struct jinja_node *parse_statement(struct jinja_parser *p)
{
    static const struct {
        const char *tag;
        enum jinja_node_kind kind;
        bool (*parse)(struct jinja_parser *p, struct jinja_node *node); /* NULL: not supported */
    } tags[] = {{"set", JINJA_N_SET, parse_set},
                {"if", JINJA_N_IF, parse_if},
                {"for", JINJA_N_FOR, parse_for},
                {"macro", JINJA_N_MACRO, parse_macro},
                {"call", JINJA_N_CALL_BLOCK, parse_call_block},
                {"generation", JINJA_N_CALL_BLOCK, parse_generation},
                {"filter", JINJA_N_FILTER_BLOCK, parse_filter_block},
                {"with", JINJA_N_WITH, parse_with},
                {"print", JINJA_N_PRINT, parse_print},
                {"break", JINJA_N_BREAK, parse_jump},
                {"continue", JINJA_N_CONTINUE, parse_jump},
                {"include", JINJA_N_DATA, NULL},
                {"import", JINJA_N_DATA, NULL},
                {"from", JINJA_N_DATA, NULL},
                {"extends", JINJA_N_DATA, NULL},
                {"block", JINJA_N_DATA, NULL},
                {"autoescape", JINJA_N_DATA, NULL}};
    const struct jinja_token *token = jinja_now(p);
    if (!jinja_expect(p, JINJA_T_NAME, NULL)) return NULL;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!jinja_str_is(token->text, tags[i].tag)) continue;
        if (!tags[i].parse) {
            jinja_syntax(p, token->line, "the tag '%s' is not supported", tags[i].tag);
            return NULL;
        }
        struct jinja_node *node = jinja_node(p, tags[i].kind, token->line);
        return node && tags[i].parse(p, node) ? node : NULL;
    }
    jinja_syntax(p, token->line, "unknown tag '%.*s'", (int)token->text.n, token->text.s);
    return NULL;
}

bool jinja_parse_body(struct jinja_parser *p, struct jinja_list *body)
{
    return parse_statements(p, NULL, body, NULL);
}

/* ---- The template ---- */

/* Copies the source with every line break as \n and without the last one. */
static bool normalise(struct jinja_parser *p, const char *source, size_t size,
                      struct jinja_str *out)
{
    char *copy = jinja_alloc(&p->t->pool, size + 1, p->err);
    size_t n = 0;
    int line = 1;
    if (!copy) return false;
    for (size_t i = 0; i < size;) {
        int32_t code;
        const size_t used = base_utf8_decode(source + i, size - i, &code);
        if (code < 0) return jinja_syntax(p, line, "the template is not valid UTF-8");
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
    *out = (struct jinja_str){copy, n};
    return true;
}

struct jinja_template *jinja_template_parse(const char *source, size_t size, struct base_error *err)
{
    struct jinja_template *t = calloc(1, sizeof *t);
    struct jinja_parser p = {.t = t, .err = err};
    struct jinja_str text;
    if (!t) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for a template"));
    t->pool.limit = MAX_TREE_MEMORY;
    if (size > MAX_SOURCE)
        base_fail(err, BASE_USAGE, "a template of %zu bytes; at most %d", size, MAX_SOURCE);
    else if (normalise(&p, source, size, &text) && jinja_lex(&p, text) &&
             jinja_parse_body(&p, &t->body) && jinja_check(&p))
        return t;
    jinja_template_free(t);
    return NULL;
}

void jinja_template_free(struct jinja_template *t)
{
    if (!t) return;
    jinja_pool_free(&t->pool);
    free(t);
}

bool jinja_template_uses(const struct jinja_template *t, const char *name)
{
    for (size_t i = 0; i < t->n_names; i++)
        if (jinja_str_is(t->name[i], name)) return t->loaded[i];
    return false;
}
