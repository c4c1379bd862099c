/* sample/constrain/schema.h: a JSON schema as formulas, then as places with alternatives. Private
 * to sample/.
 *
 * A schema is read into formulas: and, or, and atoms, each about one type of value. A literal is a
 * formula or its negation (2 * formula + 1). A place is a set of literals that a value must satisfy
 * together; it is compiled into alternatives of one type each: a condition on numbers, an automaton
 * of strings, an array, an object, whose items and properties are places again. So allOf, anyOf,
 * oneOf, not, if and dependencies have no cost at run time. */
#ifndef SAMPLE_CONSTRAIN_SCHEMA_H
#define SAMPLE_CONSTRAIN_SCHEMA_H

#include "sample/constrain/automaton.h"
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/constraint.h"
#include "sample/constrain/decimal.h"
#include "sample/constrain/idset.h"
#include "sample/constrain/json.h"

struct constrain_schema;

enum constrain_type {
    CONSTRAIN_IS_NULL = 1,
    CONSTRAIN_IS_FALSE = 2,
    CONSTRAIN_IS_TRUE = 4,
    CONSTRAIN_IS_NUMBER = 8,
    CONSTRAIN_IS_STRING = 16,
    CONSTRAIN_IS_ARRAY = 32,
    CONSTRAIN_IS_OBJECT = 64,
    CONSTRAIN_IS_ANY = 127
};

enum constrain_formula_kind {
    CONSTRAIN_F_AND,          /* all literals of list[a..a + b); none: true */
    CONSTRAIN_F_OR,           /* some literal of the list */
    CONSTRAIN_F_TYPE,         /* the type is in the mask a */
    CONSTRAIN_F_MIN,          /* number >= decimal a, or > if b; c: a member of a const or enum */
    CONSTRAIN_F_MAX,          /* the same of <= and < */
    CONSTRAIN_F_MULTIPLE,     /* of decimal a */
    CONSTRAIN_F_TEXT,         /* string in automaton a */
    CONSTRAIN_F_LENGTH,       /* string of a code points or more, a > 0 */
    CONSTRAIN_F_PROPERTY,     /* the property named by key a, if present, satisfies literal b */
    CONSTRAIN_F_PATTERN,      /* properties whose names are in automaton a satisfy b */
    CONSTRAIN_F_NAMES,        /* all names satisfy literal b */
    CONSTRAIN_F_REQUIRED,     /* key a is present */
    CONSTRAIN_F_MIN_PROPS,    /* a properties or more */
    CONSTRAIN_F_ITEM,         /* item a, if present, satisfies b */
    CONSTRAIN_F_ITEMS,        /* items from index a on satisfy b */
    CONSTRAIN_F_MIN_ITEMS,    /* a items or more */
    CONSTRAIN_F_UNIQUE,       /* no two items are equal; each equals a literal of list[a..a + b) */
    CONSTRAIN_F_MIN_CONTAINS, /* a items or more from index c on satisfy b */
    CONSTRAIN_F_EXISTS        /* a property with its name in automaton a satisfies b */
};
enum { CONSTRAIN_LIT_TRUE = 0, CONSTRAIN_LIT_FALSE = 1 }; /* formula 0 is the empty AND */

struct constrain_formula {
    enum constrain_formula_kind kind;
    uint32_t a, b, c;
    uint32_t json; /* its position in the schema */
};

enum { CONSTRAIN_MAX_AVOID = 4 };
#define CONSTRAIN_NUMBER_UNIT ((__int128)1000000000) /* of 1/10^9 each */
/* A condition on numbers; 0 in places means none. */
struct constrain_number {
    /* For generation, if only one value is left: the JSON node with that value as written in the
     * schema; 0: none. */
    uint32_t literal;
    struct constrain_decimal min, max;
    bool has_min, has_max, open_min, open_max;                   /* open: the bound is exclusive */
    uint32_t multiple, n_multiple, not_multiple, n_not_multiple; /* slices of step[] */
    /* For generation, in 1/10^9: inclusive bounds, the grid (0: none known), steps to avoid. */
    __int128 lo, hi, grid, avoid[CONSTRAIN_MAX_AVOID];
    uint32_t n_avoid;
    bool rounded; /* lo, hi, grid and avoid do not express the whole condition */
    bool bounded; /* any of the above */
};
/* Whether the condition holds for d, exactly. */
bool constrain_number_accepts(const struct constrain_schema *s, const struct constrain_number *c,
                              const struct constrain_decimal *d);
/* Whether generation has a number for the condition, and whether one with more digits than are
 * generated may exist. */
bool constrain_number_is_writable(const struct constrain_number *c);
bool constrain_number_may_exist(const struct constrain_number *c);

/* The length of strings in code points. It is counted and not part of an automaton, because one for
 * lengths up to 65,536 would have a million states. */
struct constrain_length {
    uint32_t min, max; /* CONSTRAIN_NO_MAX: any */
};
struct constrain_string {
    struct constrain_dfa *dfa;
    struct constrain_length length; /* a restriction only if dfa accepts any string */
};
/* The counts of a string that must be distinguished: counts further from a bound than the length of
 * a token are equivalent. */
enum { CONSTRAIN_TOKEN_REACH = 1024 }; /* code points: no token has more */
static inline uint32_t constrain_length_key(struct constrain_length l, uint32_t count)
{
    const uint32_t reach = CONSTRAIN_TOKEN_REACH;
    const uint32_t left = l.max - count, missing = count < l.min ? l.min - count : 0;
    return (left < reach ? left : reach) * (reach + 1) + (missing < reach ? missing : reach);
}

/* One way to read an item or value: its place, and the counts or marks that it increases. */
struct constrain_option {
    uint32_t place, marks;
};
struct constrain_slice {
    uint32_t at, count;
};
struct constrain_array {
    uint32_t min, max;
    uint32_t positions;  /* options of 0..positions - 1, then of all further items */
    uint32_t position;   /* first of positions + 1 slices */
    uint32_t n_contains; /* counters */
    uint32_t unique; /* values, each of which may occur once; the marks of an option are the number
                        of its value. 0: they may repeat */
    uint8_t min_contains[8], max_contains[8]; /* 255: any */
    bool alive;
};
struct constrain_object {
    struct constrain_dfa *key; /* of names; label[state] is the class plus 1 where a name ends */
    uint32_t label, reach;     /* into label[] and bits[] */
    uint32_t cls, n_class;     /* into slices: the options of a value */
    uint32_t known;            /* into label[]: the known name of a class plus 1, or 0 */
    uint32_t words;            /* 64-bit words of a set of classes */
    uint32_t usable;           /* into bits[]: classes whose value can be */
    uint64_t required[CONSTRAIN_SEEN_WORDS]; /* bits of known names; marks from CONSTRAIN_FIRST_MARK
                                                on */
    uint32_t n_required;                     /* names only */
    uint32_t min, max;
    bool alive;
};
enum { CONSTRAIN_MAX_MARKS = 6 };
/* A mark: a name that the schema does not mention has occurred. If a number of properties is
 * required, at most one such name is generated, because a second could repeat the first, and
 * readers count equal names once. */
enum { CONSTRAIN_OTHER_SEEN = 511 };
static inline bool constrain_object_counts(bool generate, uint32_t min)
{
    return generate && min > 1;
}

/* Whether `seen` has all members that an object requires. */
static inline bool constrain_object_has_all(const struct constrain_object *o, const uint64_t *seen)
{
    uint64_t missing = 0;
    for (int i = 0; i < CONSTRAIN_SEEN_WORDS; i++) missing |= o->required[i] & ~seen[i];
    return missing == 0;
}

struct constrain_place {
    uint32_t fixed;                                       /* CONSTRAIN_IS_NULL, _FALSE, _TRUE */
    struct constrain_slice number, string, array, object; /* of index[], into the tables */
    bool alive;
};

struct constrain_schema {
    bool generate, open;        /* as in constrain_schema_options */
    const char *lenient_advice; /* while compiling; the caller's */
    struct constrain_json json;
    struct constrain_formula *formula;
    uint32_t n_formula, formula_room;
    uint32_t *list; /* children of AND and OR */
    uint32_t n_list, list_room;
    struct constrain_decimal *decimal;
    uint32_t n_decimal, decimal_room;
    struct constrain_dfa **text; /* automata of formulas */
    uint32_t n_text, text_room;
    uint32_t *key; /* keys: JSON node whose name or text it is, doubled, + 1 for text */
    uint32_t n_key, key_room;

    struct constrain_place *place;
    uint32_t n_place, place_room;
    struct constrain_idsets lits; /* literals of each place */
    uint32_t *index, n_index, index_room;
    struct constrain_number *number;
    uint32_t n_number, number_room;
    struct constrain_decimal *step;
    uint32_t n_step, step_room;
    struct constrain_string *string; /* 0: any */
    uint32_t n_string, string_room;
    struct constrain_array *array;
    uint32_t n_array, array_room;
    struct constrain_object *object;
    uint32_t n_object, object_room;
    struct constrain_option *option;
    uint32_t n_option, option_room;
    struct constrain_slice *slice;
    uint32_t n_slice, slice_room;
    uint32_t *label, n_label, label_room;
    uint64_t *bits;
    uint32_t n_bits, bits_room;
    uint32_t root;    /* place */
    uint32_t *member; /* [options' n_members] places of its anyOf's members; literals at first */
};
void constrain_schema_free(struct constrain_schema *s); /* NULL is fine */

/* Fails with the place and keyword of a formula. */
bool constrain_schema_fail(const struct constrain_schema *s, uint32_t json, struct base_error *err,
                           const char *what);

/* As above for a keyword that may be named as lenient. */
bool constrain_schema_refuse(const struct constrain_schema *s, uint32_t json,
                             struct base_error *err, const char *what);

/* -- tables (schema.c) -- */

bool constrain_schema_formula(struct constrain_schema *s, enum constrain_formula_kind kind,
                              uint32_t a, uint32_t b, uint32_t c, uint32_t json, uint32_t *lit,
                              struct base_error *err);
/* AND or OR of literals. */
bool constrain_schema_join(struct constrain_schema *s, enum constrain_formula_kind kind,
                           const uint32_t *lits, uint32_t n, uint32_t json, uint32_t *lit,
                           struct base_error *err);
/* The key's bytes (not terminated). */
const char *constrain_schema_key(const struct constrain_schema *s, uint32_t key, uint32_t *size);
/* Makes the AND or OR formula one of lits[n]. */
bool constrain_schema_set_list(struct constrain_schema *s, uint32_t formula, const uint32_t *lits,
                               uint32_t n, struct base_error *err);
int constrain_schema_compare(const void *a, const void *b); /* of literals, for qsort */
/* The place of a set of literals, which is compiled later. */
bool constrain_schema_place(struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                            uint32_t *place, struct base_error *err);
/* One option for each combination (bit by bit) of the literals of `with` that count or mark, in
 * conjunction with `base`. */
bool constrain_schema_options_of(struct constrain_schema *s, const uint32_t *base, uint32_t n_base,
                                 const uint32_t *with, const bool *exact, uint32_t n_with,
                                 struct constrain_slice *out, struct base_error *err);
/* The length that the atoms require; returns whether they require nothing else. */
bool constrain_schema_length(const struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                             struct constrain_length *length);
/* The automaton of the strings that satisfy the atoms, trimmed; NULL without an error if there are
 * none. */
struct constrain_dfa *constrain_schema_string(const struct constrain_schema *s,
                                              const uint32_t *atoms, uint32_t n,
                                              struct base_error *err);

/* -- reading (schema_read.c, schema_ref.c) -- */

/* Reads the schema's text into formulas; *root is its literal. */
bool constrain_schema_read(struct constrain_schema *s, const char *text, size_t size,
                           const struct constrain_schema_options *options, uint32_t *root,
                           struct base_error *err);
/* The node of the schema itself, without the wrapper of an API: {"name", "strict", "schema"}, which
 * may be in {"type": "json_schema", "json_schema"}. */
uint32_t constrain_schema_unwrap(const struct constrain_json *j);
struct constrain_refs; /* targets of identifiers and anchors in the schema at `root` */
struct constrain_refs *constrain_refs_new(const struct constrain_json *j, uint32_t root,
                                          struct base_error *err);
void constrain_refs_free(struct constrain_refs *r);
/* The JSON node that the reference in `ref`, a member of the schema `owner`, refers to; 0 on an
 * error. */
uint32_t constrain_refs_find(struct constrain_refs *r, uint32_t owner, uint32_t ref,
                             struct base_error *err);
/* Whether the member "id" identifies that schema: each schema in draft 4, only the root in
 * others. */
bool constrain_refs_reads_id(const struct constrain_refs *r, uint32_t node);
/* Whether node v is the URI of a supported draft; where drafts differ, the newest applies. */
bool constrain_schema_draft_is_known(const struct constrain_json *json, uint32_t v);

/* The different values of `enum` or `const` in the schema at `json`, or in one that it refers to:
 * nodes. 0: no such keyword, too many values, or lists and objects among them. */
enum { CONSTRAIN_MAX_UNIQUE = 64 };
uint32_t constrain_schema_values(struct constrain_refs *refs, const struct constrain_json *j,
                                 uint32_t json, uint32_t value[CONSTRAIN_MAX_UNIQUE]);
/* As above for a schema whose `type` has few values (null, true and false, integers between a
 * minimum and a maximum), as new nodes. *n is 0 for other types, too many values, or a schema
 * without `type`. */
bool constrain_schema_few(struct constrain_json *j, uint32_t json,
                          uint32_t value[CONSTRAIN_MAX_UNIQUE], uint32_t *n,
                          struct base_error *err);

/* -- expanding (schema_expand.c) -- */

/* Calls `leaf` with each way to satisfy the literals with a value of one type: sorted literals of
 * atoms about that type. */
typedef bool constrain_leaf_fn(void *context, const uint32_t *atoms, uint32_t n,
                               struct base_error *err);
bool constrain_schema_expand(const struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                             enum constrain_type type, constrain_leaf_fn *leaf, void *context,
                             struct base_error *err);

/* -- compiling (schema_place.c, schema_object.c) -- */

bool constrain_schema_object(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                             struct constrain_object *out, bool *some, struct base_error *err);
/* Marks the objects, arrays and places that some value satisfies. */
void constrain_schema_find_alive(struct constrain_schema *s);

#endif
