/* text/jinja/jinja_ast.h: a parsed template: tokens, nodes, and who makes them. For
 * text/template_*.c only. */
#ifndef TEXT_JINJA_JINJA_AST_H
#define TEXT_JINJA_JINJA_AST_H

#include "text/jinja/jinja_value.h"

/* ---- Tokens ---- */

enum tpl_token_kind {
    TPL_T_END,
    TPL_T_DATA,
    TPL_T_VAR_BEGIN,
    TPL_T_VAR_END,
    TPL_T_BLOCK_BEGIN,
    TPL_T_BLOCK_END,
    TPL_T_NAME,
    TPL_T_STRING,
    TPL_T_INT,
    TPL_T_FLOAT,
    TPL_T_OP
};

struct tpl_token {
    enum tpl_token_kind kind;
    int line;
    struct tpl_str text; /* data, name, decoded string; an operator as written */
    int64_t i;
    double f;
};

struct tpl_tokens {
    struct tpl_token *token; /* the last is TPL_T_END */
    size_t n, room;
};

/* ---- Nodes ---- */

enum tpl_node_kind {
    /* expressions */
    TPL_N_CONST,  /* value */
    TPL_N_NAME,   /* text, id */
    TPL_N_TUPLE,  /* list */
    TPL_N_LIST,   /* list */
    TPL_N_DICT,   /* list: key, value, key, value, ... */
    TPL_N_ATTR,   /* a.text */
    TPL_N_ITEM,   /* a[b] */
    TPL_N_SLICE,  /* a : b : c, each may be NULL; only as b of TPL_N_ITEM */
    TPL_N_CALL,   /* a(args) */
    TPL_N_FILTER, /* a|text(args); a is NULL at the head of a filter or set block */
    TPL_N_TEST,   /* a is text(args) */
    TPL_N_COND,   /* a if b else c; c may be NULL */
    TPL_N_OR,
    TPL_N_AND,
    TPL_N_NOT,
    TPL_N_COMPARE, /* list: operand, operand, ...; op[i] stands before operand i + 1 */
    TPL_N_CONCAT,  /* list */
    TPL_N_BINARY,  /* a op b */
    TPL_N_UNARY,   /* op a */
    TPL_N_NSREF,   /* text.b (b: a name), as a target of set */
    /* statements */
    TPL_N_DATA,      /* text */
    TPL_N_PRINT,     /* list */
    TPL_N_SET,       /* a = b */
    TPL_N_SET_BLOCK, /* a = body, through the filters b (or NULL) */
    TPL_N_IF,        /* a: test, body, other; elif: list of TPL_N_IF */
    TPL_N_FOR,       /* a: target, b: iterable, c: test or NULL, body, other; flag: recursive */
    TPL_N_BREAK,
    TPL_N_CONTINUE,
    TPL_N_MACRO,        /* text, id; list: parameters; defaults: of the last ones; body */
    TPL_N_CALL_BLOCK,   /* a: the call or NULL (a generation block), list, defaults, body */
    TPL_N_FILTER_BLOCK, /* b: the filters, body */
    TPL_N_WITH          /* list: targets, defaults: values, body */
};

enum tpl_op {
    TPL_ADD,
    TPL_SUB,
    TPL_MUL,
    TPL_DIV,
    TPL_FLOORDIV,
    TPL_MOD,
    TPL_POW,
    TPL_EQ,
    TPL_NE,
    TPL_LT,
    TPL_LE,
    TPL_GT,
    TPL_GE,
    TPL_IN,
    TPL_NOT_IN
};

struct tpl_node;
struct tpl_list {
    struct tpl_node **node;
    size_t n, room;
};

struct tpl_args {
    struct tpl_list pos, kw;
    struct tpl_str *kw_name; /* of kw */
    struct tpl_node *star, *star2;
};

/* Names whose first use in a scope sets them, unknown to the scopes around: before that they are
 * undefined there, even if the caller gave a variable of that name. (jinja2 decides so when it
 * compiles; templates can tell the difference.) */
struct tpl_hidden {
    int *id;
    size_t n;
};

enum { TPL_USES_CALLER = 1, TPL_USES_KWARGS = 2, TPL_USES_VARARGS = 4 };

struct tpl_node {
    enum tpl_node_kind kind;
    int line, depth; /* depth of the tree below: bounds every recursion over it */
    int id;
    bool flag;
    unsigned uses; /* macros and call blocks: TPL_USES_* */
    enum tpl_op op;
    enum tpl_op *ops;
    struct tpl_str text;
    struct tpl_value value;
    struct tpl_node *a, *b, *c;
    struct tpl_args *args;
    struct tpl_list list, defaults, body, other;
    struct tpl_hidden hidden, other_hidden; /* of the scopes of body and other */
};

struct text_template {
    struct tpl_pool pool;
    struct tpl_str *name; /* by id */
    bool *loaded;         /* by id: the name is read somewhere */
    size_t n_names, name_room;
    struct tpl_list body;
    struct tpl_hidden hidden;
};

/* ---- The parser's parts ---- */

enum { TPL_MAX_NESTING = 150, TPL_MAX_TREE = 400 };

struct tpl_parser {
    struct text_template *t;
    struct tpl_tokens tokens;
    struct base_error *err;
    size_t at;
    int nesting;  /* of the constructs being parsed */
    int in_loops; /* loops around, within the innermost macro */
    int for_tags; /* loops around, through macros too: `loop` cannot be assigned in them */
};

bool text_tpl_syntax(struct tpl_parser *p, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Tokens of normalised source (newlines are \n, the last one removed). */
bool text_tpl_lex(struct tpl_parser *p, struct tpl_str source);

struct tpl_node *text_tpl_node(struct tpl_parser *p, enum tpl_node_kind kind, int line);
/* Notes that `child` (may be NULL) hangs below; false when the tree gets too deep. */
bool text_tpl_below(struct tpl_parser *p, struct tpl_node *node, const struct tpl_node *child);
bool text_tpl_list_add(struct tpl_parser *p, struct tpl_list *list, struct tpl_node *node);
int text_tpl_name_id(struct tpl_parser *p, struct tpl_str name); /* -1: error */

static inline const struct tpl_token *tpl_now(const struct tpl_parser *p)
{
    return &p->tokens.token[p->at];
}
static inline const struct tpl_token *tpl_next(const struct tpl_parser *p)
{
    return &p->tokens.token[p->at + (tpl_now(p)->kind != TPL_T_END)];
}
static inline bool tpl_token_is(const struct tpl_token *t, enum tpl_token_kind kind,
                                const char *word)
{
    return t->kind == kind && tpl_is_word(t->text, word);
}
bool text_tpl_skip(struct tpl_parser *p, enum tpl_token_kind kind, const char *word);
bool text_tpl_expect(struct tpl_parser *p, enum tpl_token_kind kind, const char *word);
bool text_tpl_unexpected(struct tpl_parser *p);

enum { TPL_NO_COND = 1, TPL_SIMPLE = 2, TPL_PARENS = 4, TPL_NSREFS = 8 };
/* One expression or a tuple without parentheses. */
struct tpl_node *text_tpl_parse_tuple(struct tpl_parser *p, unsigned flags);
struct tpl_node *text_tpl_parse_expression(struct tpl_parser *p);
struct tpl_node *text_tpl_parse_filters(struct tpl_parser *p, struct tpl_node *subject,
                                        bool start_inline);
bool text_tpl_parse_body(struct tpl_parser *p, struct tpl_list *body); /* the whole template */

/* After parsing: unknown filters and tests, hidden names, what macros use. */
bool text_tpl_check(struct tpl_parser *p);

#endif
