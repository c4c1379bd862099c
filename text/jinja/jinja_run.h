/* text/jinja/jinja_run.h: evaluation: scopes, calls, and the tables of functions, filters, tests
 * and methods. For text/template_*.c only. */
#ifndef TEXT_JINJA_JINJA_RUN_H
#define TEXT_JINJA_JINJA_RUN_H

#include "text/jinja/jinja_ast.h"

/* ---- Scopes and macros ---- */

struct tpl_var {
    int id;
    struct tpl_value value;
};

struct tpl_scope {
    struct tpl_scope *parent;
    struct tpl_var *var;
    size_t n, room;
};

struct tpl_macro {
    const struct tpl_node *node; /* TPL_N_MACRO or TPL_N_CALL_BLOCK */
    struct tpl_scope *scope;     /* where it was defined */
};

struct tpl_loop {
    const struct tpl_node *node;
    struct tpl_scope *scope;        /* around the loop */
    struct tpl_seq *source, *items; /* all items; those that passed the loop's test */
    size_t read;                    /* items of source that were tested */
    size_t index;                   /* of the present item */
    size_t depth;
    struct tpl_value changed; /* arguments of the last changed(), a tuple, or missing */
};

struct tpl_scope *text_tpl_scope(struct tpl_run *r, struct tpl_scope *parent,
                                 const struct tpl_hidden *hidden);
bool text_tpl_set(struct tpl_run *r, struct tpl_scope *scope, int id, struct tpl_value value);

/* ---- Evaluation ---- */

bool text_tpl_eval(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *node,
                   struct tpl_value *out);
enum tpl_flow { TPL_ERROR, TPL_ON, TPL_BROKE, TPL_CONTINUED };
enum tpl_flow text_tpl_exec(struct tpl_run *r, struct tpl_scope *scope,
                            const struct tpl_list *body);
/* Runs a loop over `items`; `depth` counts recursive calls of the same loop. */
enum tpl_flow text_tpl_exec_for(struct tpl_run *r, struct tpl_scope *scope,
                                const struct tpl_node *node, const struct tpl_value *items,
                                size_t depth);
/* Makes the loop test its source until `count` items passed or all are read. */
bool text_tpl_loop_fill(struct tpl_run *r, struct tpl_loop *loop, size_t count);
bool text_tpl_unpack(struct tpl_run *r, struct tpl_scope *scope, const struct tpl_node *target,
                     const struct tpl_value *value);

bool text_tpl_binary(struct tpl_run *r, enum tpl_op op, const struct tpl_value *a,
                     const struct tpl_value *b, struct tpl_value *out);
bool text_tpl_compare(struct tpl_run *r, enum tpl_op op, const struct tpl_value *a,
                      const struct tpl_value *b, bool *out);
bool text_tpl_attr(struct tpl_run *r, const struct tpl_value *v, struct tpl_str name,
                   struct tpl_value *out);
bool text_tpl_item(struct tpl_run *r, const struct tpl_value *v, const struct tpl_value *key,
                   struct tpl_value *out);
/* Goes from *v along a path such as "a.b.0"; an undefined step becomes the fallback, unless that is
 * missing or none. */
bool text_tpl_follow(struct tpl_run *r, struct tpl_str path, const struct tpl_value *fallback,
                     struct tpl_value *v);
bool text_tpl_slice(struct tpl_run *r, const struct tpl_value *v, const struct tpl_value bound[3],
                    struct tpl_value *out);

/* ---- Calls ---- */

enum { TPL_MAX_PARAMS = 6 };

struct tpl_call {
    const char *name; /* for messages */
    const struct tpl_value *self;
    const struct tpl_value *pos;
    size_t n_pos;
    struct tpl_dict *kw;                  /* names to values; NULL: none */
    struct tpl_value arg[TPL_MAX_PARAMS]; /* bound by the signature; missing where not given */
};

/* A callable of ours. `params` are the names of its parameters apart from self, separated by
 * spaces; names before a "/" cannot be given by keyword; NULL: any arguments, unbound. */
typedef bool tpl_fn(struct tpl_run *r, struct tpl_call *c, struct tpl_value *out);
struct tpl_func {
    const char *name;
    tpl_fn *run;
    const char *params;
    unsigned required;
};

struct tpl_bound {
    struct tpl_value self;
    const struct tpl_func *method;
};

bool text_tpl_invoke(struct tpl_run *r, const struct tpl_func *f, struct tpl_call *c,
                     struct tpl_value *out);
bool text_tpl_call(struct tpl_run *r, const struct tpl_value *callee, struct tpl_call *c,
                   struct tpl_value *out);
bool text_tpl_apply_filter(struct tpl_run *r, struct tpl_str name, const struct tpl_value *subject,
                           struct tpl_call *c, struct tpl_value *out);
bool text_tpl_apply_test(struct tpl_run *r, struct tpl_str name, const struct tpl_value *subject,
                         struct tpl_call *c, bool *out);

/* Finds a row by name; NULL when there is none. */
const struct tpl_func *text_tpl_find_filter(struct tpl_str name);
const struct tpl_func *text_tpl_find_test(struct tpl_str name);
const struct tpl_func *text_tpl_find_global(struct tpl_str name);
const struct tpl_func *text_tpl_find_str_method(struct tpl_str name);
const struct tpl_func *text_tpl_find_method(enum tpl_kind kind, struct tpl_str name);
const struct tpl_func *text_tpl_find_row(const struct tpl_func *rows, size_t n, struct tpl_str s);
/* Filters of jinja2 that are refused by name. */
bool text_tpl_filter_refused(struct tpl_str name);

extern const struct tpl_func text_tpl_string_filters[], text_tpl_sequence_filters[],
    text_tpl_choice_filters[];
extern const size_t text_tpl_n_string_filters, text_tpl_n_sequence_filters,
    text_tpl_n_choice_filters;

/* ---- Arguments ---- */

static inline bool tpl_given(const struct tpl_value *v)
{
    return v->kind != TPL_MISSING;
}
/* The argument as a string, an integer or a truth value; `by_default` where it was not given. */
bool text_tpl_arg_str(struct tpl_run *r, const struct tpl_call *c, int i, struct tpl_str *out);
bool text_tpl_arg_int(struct tpl_run *r, const struct tpl_call *c, int i, int64_t by_default,
                      int64_t *out);
bool text_tpl_arg_truth(struct tpl_run *r, const struct tpl_call *c, int i, bool by_default,
                        bool *out);

/* ---- Strings ---- */

bool text_tpl_format_percent(struct tpl_run *r, struct tpl_str format, const struct tpl_value *args,
                             struct tpl_value *out);
bool text_tpl_format_braces(struct tpl_run *r, struct tpl_str format, struct tpl_call *c,
                            struct tpl_value *out);
struct tpl_str text_tpl_strip(struct tpl_str s, const struct tpl_str *chars, bool left, bool right);
bool text_tpl_replace(struct tpl_run *r, struct tpl_str s, struct tpl_str old, struct tpl_str by,
                      int64_t count, struct tpl_value *out);
bool text_tpl_split_lines(struct tpl_run *r, struct tpl_str s, bool keep, struct tpl_seq *out);
bool text_tpl_change_case(struct tpl_run *r, struct tpl_str s, enum tpl_case to,
                          struct tpl_value *out);
bool text_tpl_capitalize(struct tpl_run *r, struct tpl_str s, struct tpl_value *out);
bool text_tpl_center(struct tpl_run *r, struct tpl_str s, int64_t width, struct tpl_str fill,
                     int where, struct tpl_value *out); /* where: -1 left, 0 centre, 1 right */
bool text_tpl_is_cased(struct tpl_str s, enum tpl_case want);
bool text_tpl_parse_int(struct tpl_str s, int base, int64_t *out, bool *too_large);
bool text_tpl_parse_float(struct tpl_str s, double *out);

#endif
