/* text/jinja/jinja_value.h: memory, values and the state of a rendering. Private to text/jinja/.
 *
 * All values of a rendering are in one pool, which is freed as a whole, so functions here free
 * nothing and an error needs no cleanup. Strings are valid UTF-8 slices. Lists and dicts are
 * immutable once a template can access them; namespaces are not. */
#pragma once

#include "text/jinja/jinja.h"
#include <string.h>

/* ---- Memory ---- */

struct jinja_chunk;
struct jinja_pool {
    struct jinja_chunk *chunk; /* the newest one, in a list to older ones */
    uint64_t taken, limit;     /* bytes */
    bool marked;               /* each byte has a mark: 1: the template's own, 0: data */
    bool exhausted;            /* a limit of the rendering was reached: memory, steps, output */
};

/* Allocates zeroed bytes. Returns NULL with BASE_USAGE at the limit, or BASE_NO_MEMORY. */
void *jinja_alloc(struct jinja_pool *pool, size_t size, struct base_error *err);
/* Enlarges the block at p, in place if it is the last one; the old bytes are kept. */
void *jinja_grow(struct jinja_pool *pool, void *p, size_t old_size, size_t size,
                 struct base_error *err);
/* Returns whether `list` (a pointer to items of the pool) has memory for one more than `count`
 * items, `room` of which it has; enlarges it if needed. */
#define JINJA_ROOM(pool, list, count, room, err)                                                   \
    ((count) < (room) || jinja_list_grow(pool, &(list), &(room), sizeof *(list), err))
bool jinja_list_grow(struct jinja_pool *pool, void *list, size_t *room, size_t item_size,
                     struct base_error *err);
void jinja_pool_free(struct jinja_pool *pool);
/* _marks returns the marks of the bytes from p on; NULL if p is not in the pool or the pool has no
 * marks. */
char *jinja_pool_marks(const struct jinja_pool *pool, const char *p);
bool jinja_pool_holds(const struct jinja_pool *pool, const char *p);

/* ---- Values ---- */

enum jinja_kind {
    JINJA_MISSING, /* no value: an argument that was not passed, a name that is not set yet */
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STR,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_VIEW,  /* the result of keys(), values() and items() */
    JINJA_ITER,  /* a generator: its items can be read once */
    JINJA_RANGE, /* stored as a sequence of its numbers */
    JINJA_NAMESPACE,
    JINJA_MACRO,
    JINJA_FUNC,   /* a global function */
    JINJA_METHOD, /* a method and its object */
    JINJA_LOOP    /* the variable `loop` */
};

enum jinja_why { /* why a value is undefined, for the error message */
                 JINJA_NAME,
                 JINJA_ATTRIBUTE,
                 JINJA_UNSAFE,
                 JINJA_PARAMETER,
                 JINJA_EMPTY
};

struct jinja_str {
    const char *s;
    size_t n;
};

struct jinja_seq;
struct jinja_dict;
struct jinja_iter;
struct jinja_macro;
struct jinja_bound;
struct jinja_loop;
struct jinja_func;

struct jinja_value {
    uint8_t kind; /* enum jinja_kind */
    uint8_t why;  /* JINJA_UNDEFINED: enum jinja_why */
    uint8_t of;   /* JINJA_UNDEFINED: the kind of the object without that attribute */
    union {
        bool b;
        int64_t i;
        double f;
        struct jinja_str
            s; /* also the name of what is undefined, and of the type of a view or iterator */
    };
    union {
        struct jinja_seq *seq; /* list, tuple, view, range */
        struct jinja_dict *dict;
        struct jinja_iter *iter;
        struct jinja_macro *macro;
        struct jinja_bound *bound;
        struct jinja_loop *loop;
        const struct jinja_func *func;
        const char *written; /* JINJA_FLOAT: the text of a number that is printed as the caller's
                              * JSON has it; NULL: none */
    };
};

struct jinja_seq {
    struct jinja_value *item;
    size_t n, room;
};

struct jinja_iter {
    struct jinja_seq *seq;
    size_t at; /* items before it are consumed */
};

struct jinja_dict { /* its entries are in order of insertion */
    struct jinja_value *key, *value;
    uint64_t *hash;
    uint32_t *slot; /* open addressing: index + 1, or 0 */
    uint32_t n, room, n_slots;
};

/* ---- The state of a rendering ---- */

struct jinja_text { /* a string under construction, in the pool */
    char *s;
    size_t n, room;
};

struct jinja_scope;
struct jinja_run {
    const struct jinja_template *t;
    struct jinja_template_options limit;
    struct base_error *err;
    struct jinja_pool pool;
    struct jinja_text *out;       /* the present output */
    struct jinja_dict *context;   /* the caller's variables */
    struct jinja_value *resolved; /* by name id: values that were looked up */
    struct jinja_value block;     /* the text that the first filter of a block receives */
    struct tm clock;
    uint64_t steps;
    uint32_t depth;
    int line; /* that of the present node */
};

/* Sets the error "line N: ..." (BASE_USAGE) and returns false. */
bool jinja_fail(struct jinja_run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts work before it is done; false at the limit. A step is about 20 ns of work: a node, an
 * item, or as many bytes as the constants specify. */
bool jinja_step(struct jinja_run *r, uint64_t count);
enum {
    JINJA_FLOAT_WORK = 100, /* steps of printing or reading one number */
    JINJA_DECODED = 2,      /* bytes that are read as code points */
    JINJA_MOVED = 64        /* bytes that are copied, compared or searched */
};
bool jinja_enter(struct jinja_run *r); /* one level deeper; false at the limit */
void jinja_leave(struct jinja_run *r);

bool jinja_add(struct jinja_run *r, struct jinja_text *text, const char *s, size_t n);
bool jinja_add_char(struct jinja_run *r, struct jinja_text *text, char c, size_t count);
bool jinja_add_code(struct jinja_run *r, struct jinja_text *text, int32_t code);
bool jinja_add_word(struct jinja_run *r, struct jinja_text *text, const char *word);
struct jinja_value jinja_text_value(const struct jinja_text *text);
/* Sets the marks of the bytes that were added since the text had `from` bytes to those at `source`,
 * from which the bytes were computed. (Functions that copy bytes copy their marks too.) */
void jinja_mark_like(struct jinja_run *r, struct jinja_text *text, size_t from, const char *source);
/* Replaces the string by a copy whose bytes are marked as the template's own. */
bool jinja_mark_own(struct jinja_run *r, struct jinja_value *string);

static inline struct jinja_value jinja_none(void)
{
    return (struct jinja_value){.kind = JINJA_NONE};
}
static inline struct jinja_value jinja_bool(bool b)
{
    return (struct jinja_value){.kind = JINJA_BOOL, .b = b};
}
static inline struct jinja_value jinja_int(int64_t i)
{
    return (struct jinja_value){.kind = JINJA_INT, .i = i};
}
static inline struct jinja_value jinja_float(double f)
{
    return (struct jinja_value){.kind = JINJA_FLOAT, .f = f};
}
static inline struct jinja_value jinja_string(const char *s, size_t n)
{
    return (struct jinja_value){.kind = JINJA_STR, .s = {s, n}};
}
static inline struct jinja_value jinja_undefined(enum jinja_why why, struct jinja_str name)
{
    return (struct jinja_value){.kind = JINJA_UNDEFINED, .why = (uint8_t)why, .s = name};
}
static inline struct jinja_value jinja_of_seq(enum jinja_kind kind, struct jinja_seq *seq)
{
    return (struct jinja_value){.kind = (uint8_t)kind, .seq = seq};
}
static inline bool jinja_is(const struct jinja_value *v, enum jinja_kind kind)
{
    return v->kind == kind;
}
static inline bool jinja_str_is(struct jinja_str s, const char *word)
{
    return strlen(word) == s.n && memcmp(s.s, word, s.n) == 0;
}
/* Reads a truth value or an integer as an integer, as in Python. */
static inline bool jinja_as_int(const struct jinja_value *v, int64_t *out)
{
    if (v->kind != JINJA_INT && v->kind != JINJA_BOOL) return false;
    *out = v->kind == JINJA_BOOL ? v->b : v->i;
    return true;
}
static inline bool jinja_as_number(const struct jinja_value *v, double *out)
{
    int64_t i;
    if (v->kind == JINJA_FLOAT) {
        *out = v->f;
        return true;
    }
    if (!jinja_as_int(v, &i)) return false;
    *out = (double)i;
    return true;
}

const char *jinja_type(const struct jinja_value *v); /* Python's name of the type */

struct jinja_seq *jinja_seq(struct jinja_run *r, size_t room);
bool jinja_push(struct jinja_run *r, struct jinja_seq *seq, struct jinja_value v);
bool jinja_new(struct jinja_run *r, enum jinja_kind kind, struct jinja_value *out); /* empty */
/* Makes a generator over the items; `type` is Python's name for it. */
bool jinja_generator(struct jinja_run *r, struct jinja_seq *seq, const char *type,
                     struct jinja_value *out);

struct jinja_dict *jinja_dict(struct jinja_run *r);
bool jinja_dict_set(struct jinja_run *r, struct jinja_dict *d, struct jinja_value key,
                    struct jinja_value value);
bool jinja_is_key(const struct jinja_value *v); /* it has a hash */
/* Finds a key; *found is NULL if it is absent. false if it has no hash, or at the limit of steps.
 */
bool jinja_dict_find(struct jinja_run *r, const struct jinja_dict *d, const struct jinja_value *key,
                     struct jinja_value **found);
/* Finds a name of the template or of a parameter, NULL if it is absent. Takes no steps, because
 * such a name is at most as long as the source. */
struct jinja_value *jinja_dict_word(const struct jinja_dict *d, struct jinja_str key);

bool jinja_truth(struct jinja_run *r, const struct jinja_value *v, bool *out);
bool jinja_equal(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                 bool *out);
/* Compares: *out is < 0, 0 or > 0. An error for types that have no order. */
bool jinja_order(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b,
                 int *out);
/* Sorts e[n] by keys. A stable merge sort, because a comparison can fail. */
struct jinja_entry {
    struct jinja_value key, item;
};
bool jinja_sort(struct jinja_run *r, struct jinja_entry *e, struct jinja_entry *spare, size_t n,
                bool reverse);
bool jinja_contains(struct jinja_run *r, const struct jinja_value *whole,
                    const struct jinja_value *part, bool *out);
/* Returns all items of anything that can be iterated over; a generator is consumed. The result may
 * be the value's own sequence: do not change it. */
bool jinja_items(struct jinja_run *r, const struct jinja_value *v, struct jinja_seq **out);
bool jinja_has_length(const struct jinja_value *v);
bool jinja_length(struct jinja_run *r, const struct jinja_value *v, size_t *out);
/* Sets the error of using an undefined value. */
bool jinja_fail_undefined(struct jinja_run *r, const struct jinja_value *v);

/* ---- Text of values ---- */

bool jinja_str(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *v);
bool jinja_repr(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *v);
/* Returns str() as a value; a string is unchanged. */
bool jinja_to_str(struct jinja_run *r, const struct jinja_value *v, struct jinja_value *out);
/* Writes Python's repr of a float to out[40]. */
void jinja_float_repr(double f, char *out);
struct jinja_json {
    bool ascii, sort;
    struct jinja_str item, key; /* separators */
    bool lines;
    struct jinja_str indent;
};
bool jinja_to_json(struct jinja_run *r, struct jinja_text *out, const struct jinja_value *v,
                   const struct jinja_json *how, int level);

/* ---- Code points ---- */

size_t jinja_count(struct jinja_str s);
/* Returns the number of bytes of the first `count` code points of s. */
size_t jinja_bytes(struct jinja_str s, size_t count);
bool jinja_is_space(int32_t code);
bool jinja_is_printable(int32_t code);
bool jinja_is_word(int32_t code);       /* letter, digit or underscore */
bool jinja_is_line_break(int32_t code); /* where splitlines splits */
enum jinja_case { JINJA_LOWER, JINJA_UPPER, JINJA_TITLE };
bool jinja_add_case(struct jinja_run *r, struct jinja_text *out, int32_t code, enum jinja_case to);
