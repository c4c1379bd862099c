/* text/jinja/jinja_ast.h: a parsed template: tokens, nodes, and the functions that make them.
 * Private to text/jinja/. */
#pragma once

#include "text/jinja/jinja_value.h"

/* ---- Tokens ---- */

enum jinja_token_kind {
    JINJA_T_END,
    JINJA_T_DATA,
    JINJA_T_VAR_BEGIN,
    JINJA_T_VAR_END,
    JINJA_T_BLOCK_BEGIN,
    JINJA_T_BLOCK_END,
    JINJA_T_NAME,
    JINJA_T_STRING,
    JINJA_T_INT,
    JINJA_T_FLOAT,
    JINJA_T_OP
};

struct jinja_token {
    enum jinja_token_kind kind;
    int line;
    struct jinja_str text; /* data, name, decoded string; an operator as written */
    int64_t i;
    double f;
};

struct jinja_tokens {
    struct jinja_token *token; /* the last is JINJA_T_END */
    size_t n, room;
};

/* ---- Nodes ---- */

enum jinja_node_kind {
    /* expressions */
    JINJA_N_CONST,  /* value */
    JINJA_N_NAME,   /* text, id */
    JINJA_N_TUPLE,  /* list */
    JINJA_N_LIST,   /* list */
    JINJA_N_DICT,   /* list: key, value, key, value, ... */
    JINJA_N_ATTR,   /* a.text */
    JINJA_N_ITEM,   /* a[b] */
    JINJA_N_SLICE,  /* a : b : c, each may be NULL; only as b of JINJA_N_ITEM */
    JINJA_N_CALL,   /* a(args) */
    JINJA_N_FILTER, /* a|text(args); a is NULL at the head of a filter or set block */
    JINJA_N_TEST,   /* a is text(args) */
    JINJA_N_COND,   /* a if b else c; c may be NULL */
    JINJA_N_OR,
    JINJA_N_AND,
    JINJA_N_NOT,
    JINJA_N_COMPARE, /* list: operand, operand, ...; op[i] precedes operand i + 1 */
    JINJA_N_CONCAT,  /* list */
    JINJA_N_BINARY,  /* a op b */
    JINJA_N_UNARY,   /* op a */
    JINJA_N_NSREF,   /* text.b (b: a name), as a target of set */
    /* statements */
    JINJA_N_DATA,      /* text */
    JINJA_N_PRINT,     /* list */
    JINJA_N_SET,       /* a = b */
    JINJA_N_SET_BLOCK, /* a = body, through the filters b (or NULL) */
    JINJA_N_IF,        /* a: test, body, other; elif: list of JINJA_N_IF */
    JINJA_N_FOR,       /* a: target, b: iterable, c: test or NULL, body, other */
    JINJA_N_BREAK,
    JINJA_N_CONTINUE,
    JINJA_N_MACRO,        /* text, id; list: parameters; defaults: of the last ones; body */
    JINJA_N_CALL_BLOCK,   /* a: the call or NULL (a generation block), list, defaults, body */
    JINJA_N_FILTER_BLOCK, /* b: the filters, body */
    JINJA_N_WITH          /* list: targets, defaults: values, body */
};

enum jinja_op {
    JINJA_ADD,
    JINJA_SUB,
    JINJA_MUL,
    JINJA_DIV,
    JINJA_FLOORDIV,
    JINJA_MOD,
    JINJA_POW,
    JINJA_EQ,
    JINJA_NE,
    JINJA_LT,
    JINJA_LE,
    JINJA_GT,
    JINJA_GE,
    JINJA_IN,
    JINJA_NOT_IN
};

struct jinja_node;
struct jinja_list {
    struct jinja_node **node;
    size_t n, room;
};

struct jinja_args {
    struct jinja_list pos, kw;
    struct jinja_str *kw_name; /* [n_kw]: names of the keyword arguments */
    struct jinja_node *star, *star2;
};

/* Names whose first use in a scope sets them and that no enclosing scope has. Before that use they
 * are undefined there, even if the caller passed a variable of that name: jinja2 decides this at
 * compile time, and templates can observe it. */
struct jinja_hidden {
    int *id;
    size_t n;
};

enum { JINJA_USES_CALLER = 1, JINJA_USES_KWARGS = 2, JINJA_USES_VARARGS = 4 };

struct jinja_node {
    enum jinja_node_kind kind;
    int line, depth; /* depth of the subtree: bounds every recursion over it */
    int id;
    unsigned uses; /* macros and call blocks: JINJA_USES_* */
    enum jinja_op op;
    enum jinja_op *ops;
    struct jinja_str text;
    struct jinja_value value;
    struct jinja_node *a, *b, *c;
    struct jinja_args *args;
    struct jinja_list list, defaults, body, other;
    struct jinja_hidden hidden, other_hidden; /* hidden names of the scopes of body and other */
};

struct jinja_template {
    struct jinja_pool pool;
    struct jinja_str *name; /* by id */
    bool *loaded;           /* by id: the template reads the name */
    size_t n_names, name_room;
    struct jinja_list body;
    struct jinja_hidden hidden;
};

/* ---- The parser's parts ---- */

enum { JINJA_MAX_NESTING = 150, JINJA_MAX_TREE = 400 };

struct jinja_parser {
    struct jinja_template *t;
    struct jinja_tokens tokens;
    struct base_error *err;
    size_t at;
    int nesting;  /* nesting of the constructs that are being parsed */
    int in_loops; /* enclosing loops, within the innermost macro */
    int for_tags; /* enclosing loops, also outside macros: these may not assign to `loop` */
};

bool jinja_syntax(struct jinja_parser *p, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Splits normalized source (newlines are \n, the last one removed) into tokens. */
bool jinja_lex(struct jinja_parser *p, struct jinja_str source);

struct jinja_node *jinja_node(struct jinja_parser *p, enum jinja_node_kind kind, int line);
/* Updates the depth of `node` for a `child` (may be NULL); false if the tree is too deep. */
bool jinja_below(struct jinja_parser *p, struct jinja_node *node, const struct jinja_node *child);
bool jinja_list_add(struct jinja_parser *p, struct jinja_list *list, struct jinja_node *node);
int jinja_name_id(struct jinja_parser *p, struct jinja_str name); /* -1 with an error */

static inline const struct jinja_token *jinja_now(const struct jinja_parser *p)
{
    return &p->tokens.token[p->at];
}
static inline const struct jinja_token *jinja_next(const struct jinja_parser *p)
{
    return &p->tokens.token[p->at + (jinja_now(p)->kind != JINJA_T_END)];
}
static inline bool jinja_token_is(const struct jinja_token *t, enum jinja_token_kind kind,
                                  const char *word)
{
    return t->kind == kind && jinja_str_is(t->text, word);
}
bool jinja_skip(struct jinja_parser *p, enum jinja_token_kind kind, const char *word);
bool jinja_expect(struct jinja_parser *p, enum jinja_token_kind kind, const char *word);
bool jinja_unexpected(struct jinja_parser *p);

enum { JINJA_NO_COND = 1, JINJA_SIMPLE = 2, JINJA_PARENS = 4, JINJA_NSREFS = 8 };
/* _tuple parses one expression, or a tuple without parentheses; _expression only the former. */
struct jinja_node *jinja_parse_tuple(struct jinja_parser *p, unsigned flags);
struct jinja_node *jinja_parse_expression(struct jinja_parser *p);
struct jinja_node *jinja_parse_filters(struct jinja_parser *p, struct jinja_node *subject,
                                       bool start_inline);
bool jinja_parse_body(struct jinja_parser *p, struct jinja_list *body); /* the whole template */

/* After parsing: checks filters and tests, finds hidden names and the variables that macros use. */
bool jinja_check(struct jinja_parser *p);
