/* text/jinja/jinja_ast.c: nodes, names and tokens, which the lexer, the parsers of expressions and
 * statements, and the check share. See text/jinja/jinja_ast.h. */
#include "text/jinja/jinja_ast.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool jinja_syntax(struct jinja_parser *p, int line, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return base_fail(p->err, BASE_USAGE, "line %d: %s", line, text);
}

struct jinja_node *jinja_node(struct jinja_parser *p, enum jinja_node_kind kind, int line)
{
    struct jinja_node *node = jinja_alloc(&p->t->pool, sizeof *node, p->err);
    if (!node) return NULL;
    node->kind = kind;
    node->line = line;
    return node;
}

bool jinja_below(struct jinja_parser *p, struct jinja_node *node, const struct jinja_node *child)
{
    if (!child || child->depth < node->depth) return true;
    node->depth = child->depth + 1;
    if (node->depth <= JINJA_MAX_TREE) return true;
    return jinja_syntax(p, node->line, "a construct of more than %d levels", JINJA_MAX_TREE);
}

bool jinja_list_add(struct jinja_parser *p, struct jinja_list *list, struct jinja_node *node)
{
    if (!JINJA_ROOM(&p->t->pool, list->node, list->n, list->room, p->err)) return false;
    list->node[list->n++] = node;
    return true;
}

int jinja_name_id(struct jinja_parser *p, struct jinja_str name)
{
    struct jinja_template *t = p->t;
    for (size_t i = 0; i < t->n_names; i++)
        if (t->name[i].n == name.n && memcmp(t->name[i].s, name.s, name.n) == 0) return (int)i;
    if (!JINJA_ROOM(&t->pool, t->name, t->n_names, t->name_room, p->err)) return -1;
    if (t->n_names == 4000) {
        jinja_syntax(p, jinja_now(p)->line, "more than 4000 names");
        return -1;
    }
    t->name[t->n_names] = name;
    return (int)t->n_names++;
}

bool jinja_skip(struct jinja_parser *p, enum jinja_token_kind kind, const char *word)
{
    if (jinja_now(p)->kind != kind || (word && !jinja_str_is(jinja_now(p)->text, word)))
        return false;
    if (kind != JINJA_T_END) p->at++;
    return true;
}

static const char *token_name(const struct jinja_token *token)
{
    switch (token->kind) {
    case JINJA_T_END:
        return "end of template";
    case JINJA_T_DATA:
        return "text";
    case JINJA_T_VAR_BEGIN:
        return "{{";
    case JINJA_T_VAR_END:
        return "}}";
    case JINJA_T_BLOCK_BEGIN:
        return "{%";
    case JINJA_T_BLOCK_END:
        return "%}";
    case JINJA_T_STRING:
        return "string";
    case JINJA_T_NAME:
        return "name";
    default:
        return NULL;
    }
}

bool jinja_unexpected(struct jinja_parser *p)
{
    const struct jinja_token *token = jinja_now(p);
    const char *name = token->kind == JINJA_T_NAME ? NULL : token_name(token);
    if (name) return jinja_syntax(p, token->line, "unexpected %s", name);
    return jinja_syntax(p, token->line, "unexpected '%.*s'", (int)token->text.n, token->text.s);
}

bool jinja_expect(struct jinja_parser *p, enum jinja_token_kind kind, const char *word)
{
    if (jinja_skip(p, kind, word)) return true;
    const struct jinja_token *token = jinja_now(p), expected = {.kind = kind};
    const char *name = token->kind == JINJA_T_NAME ? NULL : token_name(token);
    return jinja_syntax(p, token->line, "expected %s, found '%.*s'",
                        word ? word : token_name(&expected),
                        name ? (int)strlen(name) : (int)token->text.n, name ? name : token->text.s);
}
