/* text/jinja/jinja_run.h: evaluation: scopes, calls, and the tables of functions, filters, tests
 * and methods. Private to text/jinja/. */
#pragma once

#include "text/jinja/jinja_ast.h"

/* ---- Scopes and macros ---- */

struct jinja_var {
    int id;
    struct jinja_value value;
};

struct jinja_scope {
    struct jinja_scope *parent;
    struct jinja_var *var;
    size_t n, room;
};

/* A macro and a loop contain a pointer to the function that runs them, so that calls, attributes
 * and printing do not depend on the evaluator, which calls them. */
struct jinja_call;
struct jinja_macro {
    const struct jinja_node *node; /* JINJA_N_MACRO or JINJA_N_CALL_BLOCK */
    struct jinja_scope *scope;     /* where it was defined */
    bool (*call)(struct jinja_run *r, const struct jinja_macro *m, const struct jinja_call *c,
                 struct jinja_value *out);
};

struct jinja_loop {
    const struct jinja_node *node;
    struct jinja_scope *scope;        /* around the loop */
    struct jinja_seq *source, *items; /* all items; the items that passed the loop's test */
    size_t read;                      /* number of source's items that were tested */
    size_t index;                     /* of the present item */
    /* Applies the loop's test to its source until `count` items have passed or all are read. */
    bool (*fill)(struct jinja_run *r, struct jinja_loop *loop, size_t count);
};

struct jinja_scope *jinja_scope(struct jinja_run *r, struct jinja_scope *parent,
                                const struct jinja_hidden *hidden);

/* ---- Evaluation ---- */

bool jinja_eval(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node,
                struct jinja_value *out);
enum jinja_flow { JINJA_ERROR, JINJA_ON, JINJA_BROKE, JINJA_CONTINUED };
enum jinja_flow jinja_exec(struct jinja_run *r, struct jinja_scope *scope,
                           const struct jinja_list *body);

bool jinja_binary(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                  const struct jinja_value *b, struct jinja_value *out);
bool jinja_compare(struct jinja_run *r, enum jinja_op op, const struct jinja_value *a,
                   const struct jinja_value *b, bool *out);
bool jinja_attr(struct jinja_run *r, const struct jinja_value *v, struct jinja_str name,
                struct jinja_value *out);
bool jinja_item(struct jinja_run *r, const struct jinja_value *v, const struct jinja_value *key,
                struct jinja_value *out);
/* Replaces *v by what a path such as "a.b.0" leads to. An undefined step becomes the fallback,
 * unless that is missing or none. */
bool jinja_follow(struct jinja_run *r, struct jinja_str path, const struct jinja_value *fallback,
                  struct jinja_value *v);
bool jinja_slice(struct jinja_run *r, const struct jinja_value *v,
                 const struct jinja_value bound[3], struct jinja_value *out);

/* ---- Calls ---- */

enum { JINJA_MAX_PARAMS = 6 };

struct jinja_call {
    const char *name; /* for messages */
    int form;         /* that of the row */
    const struct jinja_value *self;
    const struct jinja_value *pos;
    size_t n_pos;
    struct jinja_dict *kw;                    /* names to values; NULL: none */
    struct jinja_value arg[JINJA_MAX_PARAMS]; /* bound by the signature; missing if not passed */
};

/* A built-in callable. `params` are the names of its parameters without self, separated by spaces;
 * names before a "/" cannot be keywords. NULL: any arguments, not bound. */
typedef bool jinja_fn(struct jinja_run *r, struct jinja_call *c, struct jinja_value *out);
struct jinja_func {
    const char *name;
    jinja_fn *run;
    const char *params;
    unsigned required;
    int form; /* which of several similar callables, for `run` */
};

struct jinja_bound {
    struct jinja_value self;
    const struct jinja_func *method;
};

bool jinja_invoke(struct jinja_run *r, const struct jinja_func *f, struct jinja_call *c,
                  struct jinja_value *out);
bool jinja_call(struct jinja_run *r, const struct jinja_value *callee, struct jinja_call *c,
                struct jinja_value *out);
bool jinja_apply_filter(struct jinja_run *r, struct jinja_str name,
                        const struct jinja_value *subject, struct jinja_call *c,
                        struct jinja_value *out);
bool jinja_apply_test(struct jinja_run *r, struct jinja_str name, const struct jinja_value *subject,
                      struct jinja_call *c, bool *out);

/* Return the row of a name; NULL if there is none. */
const struct jinja_func *jinja_find_filter(struct jinja_str name);
const struct jinja_func *jinja_find_test(struct jinja_str name);
const struct jinja_func *jinja_find_global(struct jinja_str name);
const struct jinja_func *jinja_find_str_method(struct jinja_str name);
const struct jinja_func *jinja_find_method(enum jinja_kind kind, struct jinja_str name);
const struct jinja_func *jinja_find_row(const struct jinja_func *rows, size_t n,
                                        struct jinja_str s);

extern const struct jinja_func jinja_sequence_filters[];
extern const size_t jinja_n_sequence_filters;

/* ---- Arguments ---- */

static inline bool jinja_given(const struct jinja_value *v)
{
    return v->kind != JINJA_MISSING;
}
/* Read an argument as a string, an integer or a truth value; `by_default` if it was not passed. */
bool jinja_arg_str(struct jinja_run *r, const struct jinja_call *c, int i, struct jinja_str *out);
bool jinja_arg_int(struct jinja_run *r, const struct jinja_call *c, int i, int64_t by_default,
                   int64_t *out);
bool jinja_arg_truth(struct jinja_run *r, const struct jinja_call *c, int i, bool by_default,
                     bool *out);

/* ---- Strings ---- */

/* Strips a text by the optional argument 0 of the call: characters, otherwise space. */
enum jinja_sides { JINJA_LEFT = 1, JINJA_RIGHT = 2, JINJA_BOTH = 3 };
bool jinja_strip_value(struct jinja_run *r, const struct jinja_call *c, struct jinja_str from,
                       enum jinja_sides sides, struct jinja_value *out);
bool jinja_replace(struct jinja_run *r, struct jinja_str s, struct jinja_str old,
                   struct jinja_str by, int64_t count, struct jinja_value *out);
bool jinja_split_lines(struct jinja_run *r, struct jinja_str s, struct jinja_seq *out);
bool jinja_change_case(struct jinja_run *r, struct jinja_str s, enum jinja_case to,
                       struct jinja_value *out);
bool jinja_capitalize(struct jinja_run *r, struct jinja_str s, struct jinja_value *out);
/* Parse all of s as a decimal number; false if it is not one. */
bool jinja_parse_int(struct jinja_str s, int64_t *out, bool *too_large);
bool jinja_parse_float(struct jinja_str s, double *out);
