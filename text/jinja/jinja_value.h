/* text/jinja/jinja_value.h: what a template computes with: memory, values and the state of a
 * rendering. For text/template_*.c only.
 *
 * All values of a rendering live in one pool and are freed together, so no function here frees
 * anything and an error needs no cleanup. Strings are valid UTF-8 slices. Lists and dicts are never
 * changed once a template can see them; only namespaces are. */
#ifndef TEXT_JINJA_JINJA_VALUE_H
#define TEXT_JINJA_JINJA_VALUE_H

#include "text/jinja/jinja.h"
#include <string.h>

/* ---- Memory ---- */

struct tpl_chunk;
struct tpl_pool {
    struct tpl_chunk *chunk; /* the newest; older ones hang off it */
    uint64_t taken, limit;   /* bytes */
    bool marked;             /* each byte has a mark: the template's own, or (0) data */
};

/* Zeroed bytes, or NULL with an error: BASE_USAGE at the limit, BASE_NO_MEMORY without memory. */
void *text_tpl_take(struct tpl_pool *pool, size_t size, struct base_error *err);
/* Makes the piece at p larger, in place where it is the last one. Old bytes are kept. */
void *text_tpl_grow(struct tpl_pool *pool, void *p, size_t old_size, size_t size,
                    struct base_error *err);
void text_tpl_pool_free(struct tpl_pool *pool);
/* The marks of the bytes from p on; NULL when p is not in the pool, or the pool has no marks. */
char *text_tpl_pool_marks(const struct tpl_pool *pool, const char *p);
bool text_tpl_pool_holds(const struct tpl_pool *pool, const char *p);

/* ---- Values ---- */

enum tpl_kind {
    TPL_MISSING, /* no value at all: an argument that was not given, a name not set yet */
    TPL_UNDEFINED,
    TPL_NONE,
    TPL_BOOL,
    TPL_INT,
    TPL_FLOAT,
    TPL_STR,
    TPL_LIST,
    TPL_TUPLE,
    TPL_DICT,
    TPL_VIEW,  /* what keys(), values() and items() return */
    TPL_ITER,  /* a generator: its items can be read once */
    TPL_RANGE, /* kept as a sequence of its numbers */
    TPL_NAMESPACE,
    TPL_MACRO,
    TPL_FUNC,   /* a global function */
    TPL_METHOD, /* a method and its object */
    TPL_LOOP,   /* the variable `loop` */
    TPL_CYCLER,
    TPL_JOINER
};

enum tpl_why { /* why a value is undefined; decides the message of an error */
               TPL_NAME,
               TPL_ATTRIBUTE,
               TPL_UNSAFE,
               TPL_PARAMETER,
               TPL_EMPTY
};

struct tpl_str {
    const char *s;
    size_t n;
};

struct tpl_seq;
struct tpl_dict;
struct tpl_iter;
struct tpl_macro;
struct tpl_bound;
struct tpl_loop;
struct tpl_cycler;
struct tpl_func;

struct tpl_value {
    uint8_t kind; /* enum tpl_kind */
    uint8_t why;  /* TPL_UNDEFINED: enum tpl_why */
    uint8_t of;   /* TPL_UNDEFINED: the kind of the object that lacks the attribute */
    bool safe;    /* TPL_STR: marked as safe markup: what is added to it gets escaped */
    bool group;   /* TPL_TUPLE: from groupby, with the attributes grouper and list */
    union {
        bool b;
        int64_t i;
        double f;
        struct tpl_str s; /* also the name of what is undefined, of a view's and iterator's type */
    };
    union {
        struct tpl_seq *seq; /* list, tuple, view, range */
        struct tpl_dict *dict;
        struct tpl_iter *iter;
        struct tpl_macro *macro;
        struct tpl_bound *bound;
        struct tpl_loop *loop;
        struct tpl_cycler *cycler;
        const struct tpl_func *func;
    };
};

struct tpl_seq {
    struct tpl_value *item;
    size_t n, room;
};

struct tpl_iter {
    struct tpl_seq *seq;
    size_t at; /* items before it are consumed */
};

struct tpl_cycler {
    struct tpl_seq *seq;
    size_t at;
    struct tpl_value sep; /* of a joiner */
};

struct tpl_dict { /* in order of insertion */
    struct tpl_value *key, *value;
    uint64_t *hash;
    uint32_t *slot; /* open addressing: index + 1, or 0 */
    uint32_t n, room, n_slots;
};

/* ---- The state of a rendering ---- */

struct tpl_text { /* a string under construction, in the pool */
    char *s;
    size_t n, room;
};

struct tpl_scope;
struct tpl_run {
    const struct text_template *t;
    struct text_template_options limit;
    struct base_error *err;
    struct tpl_pool pool;
    struct tpl_text *out;       /* where output goes now */
    struct tpl_dict *context;   /* the caller's variables */
    struct tpl_value *resolved; /* by name id: context and globals, once looked up */
    struct tpl_value block;     /* the text that the filters of a block begin with */
    struct tm clock;
    uint64_t steps;
    uint32_t depth;
    int line; /* of the node in work */
};

/* Records "line N: ..." (BASE_USAGE) and returns false. */
bool text_tpl_fail(struct tpl_run *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool text_tpl_step(struct tpl_run *r, uint64_t count); /* false at the limit */
bool text_tpl_enter(struct tpl_run *r);                /* one level deeper; false at the limit */
void text_tpl_leave(struct tpl_run *r);

bool text_tpl_add(struct tpl_run *r, struct tpl_text *text, const char *s, size_t n);
bool text_tpl_add_char(struct tpl_run *r, struct tpl_text *text, char c, size_t count);
bool text_tpl_add_code(struct tpl_run *r, struct tpl_text *text, int32_t code);
bool text_tpl_add_word(struct tpl_run *r, struct tpl_text *text, const char *word);
struct tpl_value text_tpl_text_value(const struct tpl_text *text);
/* What was added since the text had `from` bytes was made of the bytes at `source`: it is the
 * template's own where they are. Adding bytes copies their marks by itself; this is for bytes that
 * were computed. */
void text_tpl_mark_like(struct tpl_run *r, struct tpl_text *text, size_t from, const char *source);
/* A copy of the string that counts as the template's own. */
bool text_tpl_own(struct tpl_run *r, struct tpl_value *string);

static inline struct tpl_value tpl_none(void)
{
    return (struct tpl_value){.kind = TPL_NONE};
}
static inline struct tpl_value tpl_bool(bool b)
{
    return (struct tpl_value){.kind = TPL_BOOL, .b = b};
}
static inline struct tpl_value tpl_int(int64_t i)
{
    return (struct tpl_value){.kind = TPL_INT, .i = i};
}
static inline struct tpl_value tpl_float(double f)
{
    return (struct tpl_value){.kind = TPL_FLOAT, .f = f};
}
static inline struct tpl_value tpl_string(const char *s, size_t n)
{
    return (struct tpl_value){.kind = TPL_STR, .s = {s, n}};
}
static inline struct tpl_value tpl_undefined(enum tpl_why why, struct tpl_str name)
{
    return (struct tpl_value){.kind = TPL_UNDEFINED, .why = (uint8_t)why, .s = name};
}
static inline struct tpl_value tpl_of_seq(enum tpl_kind kind, struct tpl_seq *seq)
{
    return (struct tpl_value){.kind = (uint8_t)kind, .seq = seq};
}
static inline bool tpl_is(const struct tpl_value *v, enum tpl_kind kind)
{
    return v->kind == kind;
}
static inline bool tpl_is_word(struct tpl_str s, const char *word)
{
    return strlen(word) == s.n && memcmp(s.s, word, s.n) == 0;
}
/* Truth values and integers count as integers, as in Python. */
static inline bool tpl_as_int(const struct tpl_value *v, int64_t *out)
{
    if (v->kind != TPL_INT && v->kind != TPL_BOOL) return false;
    *out = v->kind == TPL_BOOL ? v->b : v->i;
    return true;
}
static inline bool tpl_as_number(const struct tpl_value *v, double *out)
{
    int64_t i;
    if (v->kind == TPL_FLOAT) {
        *out = v->f;
        return true;
    }
    if (!tpl_as_int(v, &i)) return false;
    *out = (double)i;
    return true;
}

const char *text_tpl_type(const struct tpl_value *v); /* Python's name of the type */

struct tpl_seq *text_tpl_seq(struct tpl_run *r, size_t room);
bool text_tpl_push(struct tpl_run *r, struct tpl_seq *seq, struct tpl_value v);
bool text_tpl_new(struct tpl_run *r, enum tpl_kind kind, struct tpl_value *out); /* empty */
/* A generator over the items; `type` is Python's name for it. */
bool text_tpl_generator(struct tpl_run *r, struct tpl_seq *seq, const char *type,
                        struct tpl_value *out);

struct tpl_dict *text_tpl_dict(struct tpl_run *r);
bool text_tpl_dict_set(struct tpl_run *r, struct tpl_dict *d, struct tpl_value key,
                       struct tpl_value value);
/* NULL when absent. *ok turns false when the key cannot be hashed. */
struct tpl_value *text_tpl_dict_find(const struct tpl_dict *d, const struct tpl_value *key,
                                     bool *ok);
struct tpl_value *text_tpl_dict_word(const struct tpl_dict *d, struct tpl_str key);

bool text_tpl_truth(struct tpl_run *r, const struct tpl_value *v, bool *out);
bool text_tpl_equal(struct tpl_run *r, const struct tpl_value *a, const struct tpl_value *b,
                    bool *out);
/* *out < 0, 0 or > 0; an error for types that have no order. */
bool text_tpl_order(struct tpl_run *r, const struct tpl_value *a, const struct tpl_value *b,
                    int *out);
bool text_tpl_contains(struct tpl_run *r, const struct tpl_value *whole,
                       const struct tpl_value *part, bool *out);
/* All items of anything that can be iterated over; a generator is consumed. The result may be the
 * value's own sequence: do not change it. */
bool text_tpl_items(struct tpl_run *r, const struct tpl_value *v, struct tpl_seq **out);
bool text_tpl_has_length(const struct tpl_value *v);
bool text_tpl_length(struct tpl_run *r, const struct tpl_value *v, size_t *out);
/* The error that using an undefined value gives. */
bool text_tpl_fail_undefined(struct tpl_run *r, const struct tpl_value *v);

/* ---- Text of values ---- */

bool text_tpl_str(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *v);
bool text_tpl_repr(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *v);
/* str() as a value; strings come back as they are. */
bool text_tpl_to_str(struct tpl_run *r, const struct tpl_value *v, struct tpl_value *out);
/* Python's repr of a float in out[40]. */
void text_tpl_float_repr(double f, char *out);
bool text_tpl_escape(struct tpl_run *r, const struct tpl_value *v, struct tpl_value *out);
struct tpl_json {
    bool ascii, sort;
    struct tpl_str item, key; /* separators */
    bool lines;
    struct tpl_str indent;
};
bool text_tpl_to_json(struct tpl_run *r, struct tpl_text *out, const struct tpl_value *v,
                      const struct tpl_json *how, int level);

/* ---- Code points ---- */

size_t text_tpl_count(struct tpl_str s);
/* The bytes of `count` code points at the start of s. */
size_t text_tpl_bytes(struct tpl_str s, size_t count);
bool text_tpl_is_space(int32_t code);
bool text_tpl_is_printable(int32_t code);
bool text_tpl_is_word(int32_t code);       /* letter, digit or underscore */
bool text_tpl_is_line_break(int32_t code); /* where splitlines splits */
enum tpl_case { TPL_LOWER, TPL_UPPER, TPL_TITLE };
bool text_tpl_add_case(struct tpl_run *r, struct tpl_text *out, int32_t code, enum tpl_case to);

#endif
