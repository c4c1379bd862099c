/* sample/constrain/schema.h: a JSON schema as formulas, then as places with alternatives. Private
 * to sample/.
 *
 * The reader converts a schema into formulas: and, or, and atoms, each about one type of value. A
 * literal is a formula or its negation (2 * formula + 1). A place is a set of literals that a value
 * must satisfy together. The compiler converts it into alternatives of one type each: a condition
 * on numbers, an automaton of strings, an array or an object, whose items and properties are places
 * again. So allOf, anyOf, oneOf, not, if and dependencies cost nothing while a text is read. */
#pragma once

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
    CONSTRAIN_F_OR,           /* at least one literal of list[a..a + b) */
    CONSTRAIN_F_TYPE,         /* the type is in the mask a */
    CONSTRAIN_F_MIN,          /* number >= decimal a, or > if b; c: from a const or enum */
    CONSTRAIN_F_MAX,          /* number <= decimal a, or < if b; c: as above */
    CONSTRAIN_F_MULTIPLE,     /* number is a multiple of decimal a */
    CONSTRAIN_F_TEXT,         /* string is in automaton a, or CONSTRAIN_TEXT_UNKNOWN */
    CONSTRAIN_F_LENGTH,       /* string has at least a > 0 code points */
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
/* An automaton that cannot be built: no string is generated that it accepts or refuses. */
#define CONSTRAIN_TEXT_UNKNOWN UINT32_MAX
enum { CONSTRAIN_LIT_TRUE = 0, CONSTRAIN_LIT_FALSE = 1 }; /* formula 0 is the empty AND */

struct constrain_formula {
    enum constrain_formula_kind kind;
    uint32_t a, b, c;
    uint32_t json; /* its node in the schema's text, for messages */
};

enum { CONSTRAIN_MAX_AVOID = 4 };
#define CONSTRAIN_NUMBER_UNIT ((__int128)1000000000) /* units per 1 */
/* A condition on numbers. In places index 0 means none. */
struct constrain_number {
    /* For generation, if only one value is possible: the JSON node with that value as written in
     * the schema; 0: none. */
    uint32_t literal;
    struct constrain_decimal min, max;
    bool has_min, has_max, open_min, open_max;                   /* open: the bound is exclusive */
    uint32_t multiple, n_multiple, not_multiple, n_not_multiple; /* slices of step[] */
    /* For generation, in 1/10^9: inclusive bounds, the step between values (0: none known), steps
     * to avoid. */
    __int128 lo, hi, grid, avoid[CONSTRAIN_MAX_AVOID];
    uint32_t n_avoid;
    bool rounded; /* lo, hi, grid and avoid do not express the whole condition */
    bool bounded; /* any of the above */
};
/* Returns whether d satisfies the condition, exactly. */
bool constrain_number_accepts(const struct constrain_schema *s, const struct constrain_number *c,
                              const struct constrain_decimal *d);
/* _is_writable returns whether generation has a number for the condition; _may_exist whether a
 * number with more digits than are generated may satisfy it. */
bool constrain_number_is_writable(const struct constrain_number *c);
bool constrain_number_may_exist(const struct constrain_number *c);

struct constrain_slice {
    uint32_t at, count;
};
/* The length of strings in code points. It is counted and not part of an automaton, because an
 * automaton of lengths up to 65,536 would have a million states. */
struct constrain_length {
    uint32_t min, max; /* CONSTRAIN_NO_MAX: no maximum */
};
struct constrain_atom { /* a condition of a string */
    uint32_t kind, a, negated;
};
struct constrain_string {
    struct constrain_dfa *dfa;
    struct constrain_length length; /* restricts only if dfa accepts any string */
    struct constrain_slice atoms;   /* of atom[]: its conditions */
};
/* Returns a number that is equal for counts which allow the same tokens: the distances of `count`
 * from min and max, each at most CONSTRAIN_TOKEN_REACH, because no token has more code points. */
enum { CONSTRAIN_TOKEN_REACH = 1024 };
static inline uint32_t constrain_length_key(struct constrain_length l, uint32_t count)
{
    const uint32_t reach = CONSTRAIN_TOKEN_REACH;
    const uint32_t left = l.max - count, missing = count < l.min ? l.min - count : 0;
    return (left < reach ? left : reach) * (reach + 1) + (missing < reach ? missing : reach);
}

/* One way to read an item or a value. */
struct constrain_option {
    uint32_t place; /* of place[] */
    uint32_t marks; /* bit i: it counts for the i-th `contains` condition, or sets mark i */
};
struct constrain_array {
    uint32_t min, max;
    uint32_t positions;  /* options of 0..positions - 1, then of all further items */
    uint32_t position;   /* first of positions + 1 slices */
    uint32_t n_contains; /* number of `contains` conditions */
    uint32_t unique; /* number of values that may occur once each; then `marks` of an option is the
                      * number of its value. 0: items may repeat */
    uint8_t min_contains[8], max_contains[8]; /* 255: no maximum */
    bool alive;
};
struct constrain_object {
    struct constrain_dfa *key; /* of names; where a name ends, label[state] is 1 + its class */
    uint32_t label, reach;     /* indices into label[] and bits[] */
    uint32_t cls, n_class;     /* index into slices: the options of a value */
    uint32_t known;            /* index into label[]: 1 + the known name of a class, or 0 */
    uint32_t words;            /* 64-bit words of a set of classes */
    uint32_t usable;           /* index into bits[]: classes with a possible value */
    uint64_t required[CONSTRAIN_SEEN_WORDS]; /* bits of known names, then of marks */
    uint32_t n_required;                     /* names only */
    uint32_t min, max;
    uint32_t n_key; /* known names, in the order of generation */
    uint32_t rest;  /* index into label[], if the order matters: marks[n_key + 1], which the names
                     * from k on can add, then names[n_key + 1], how many of these may come */
    bool alive;
};
enum { CONSTRAIN_MANY_NAMES = 1 << 30 }; /* no limit on names that the schema does not mention */
enum { CONSTRAIN_MAX_MARKS = 6 };
/* The mark of a name that the schema does not mention. If a number of properties is required, at
 * most one such name is generated: a second one could repeat the first, and readers count equal
 * names once. */
enum { CONSTRAIN_OTHER_SEEN = 511 };
static inline bool constrain_object_counts(bool generate, uint32_t min)
{
    return generate && min > 1;
}

/* Returns whether `seen` contains all members that an object requires. */
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
    bool ordered;               /* names come in the order of an object's known names */
    uint64_t *rank, last_rank;  /* [n_formula]: order of the formulas of the places so far */
    const char *lenient_advice; /* the caller's; only while compiling */
    struct constrain_json json;
    struct constrain_formula *formula;
    uint32_t n_formula, formula_room;
    uint32_t *list; /* children of AND and OR */
    uint32_t n_list, list_room;
    struct constrain_decimal *decimal;
    uint32_t n_decimal, decimal_room;
    struct constrain_dfa **text; /* automata of formulas */
    uint32_t n_text, text_room;
    uint32_t *key; /* 2 n: the name of JSON node n; 2 n + 1: its text */
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
    struct constrain_atom *atom;
    uint32_t n_atom, atom_room;
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
    uint32_t *member; /* [options' n_members]: places of its anyOf's members; at first literals */
};
void constrain_schema_free(struct constrain_schema *s); /* accepts NULL */

/* Fails with a message that names the place and keyword of a formula. */
bool constrain_schema_fail(const struct constrain_schema *s, uint32_t json, struct base_error *err,
                           const char *what);

/* Fails for a keyword that the user may make lenient; the message explains how. */
bool constrain_schema_refuse(const struct constrain_schema *s, uint32_t json,
                             struct base_error *err, const char *what);

/* -- tables (schema.c) -- */

bool constrain_schema_formula(struct constrain_schema *s, enum constrain_formula_kind kind,
                              uint32_t a, uint32_t b, uint32_t c, uint32_t json, uint32_t *lit,
                              struct base_error *err);
/* Makes the AND or OR of literals. */
bool constrain_schema_join(struct constrain_schema *s, enum constrain_formula_kind kind,
                           const uint32_t *lits, uint32_t n, uint32_t json, uint32_t *lit,
                           struct base_error *err);
/* Returns the key's bytes (not terminated). */
const char *constrain_schema_key(const struct constrain_schema *s, uint32_t key, uint32_t *size);
/* Sets the literals of an AND or OR formula. */
bool constrain_schema_set_list(struct constrain_schema *s, uint32_t formula, const uint32_t *lits,
                               uint32_t n, struct base_error *err);
int constrain_schema_compare(const void *a, const void *b); /* compares literals, for qsort */
/* Returns in *place the place of a set of literals; it is compiled later. */
bool constrain_schema_place(struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                            uint32_t *place, struct base_error *err);
/* Makes 2^n_with options, with marks 0, 1, 2 ...: the literals `base` and, for each bit i of the
 * marks, with[i]; for a bit that is 0, if exact[i], its negation (`exact` NULL: never). */
bool constrain_schema_options_of(struct constrain_schema *s, const uint32_t *base, uint32_t n_base,
                                 const uint32_t *with, const bool *exact, uint32_t n_with,
                                 struct constrain_slice *out, struct base_error *err);
/* Computes the length that the atoms require. Returns whether they require nothing else. */
bool constrain_schema_length(const struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                             struct constrain_length *length);
/* Returns the automaton of the strings that satisfy the atoms, trimmed; NULL without an error if
 * there are none. */
struct constrain_dfa *constrain_schema_string(const struct constrain_schema *s,
                                              const uint32_t *atoms, uint32_t n,
                                              struct base_error *err);

/* Stores an automaton, which the schema then owns; false if it is NULL. */
bool constrain_schema_keep_text(struct constrain_schema *s, struct constrain_dfa *d, uint32_t *text,
                                struct base_error *err);
/* Store the automaton of the string children of a node, of the names of its members (`names`), or
 * of the string that it is; and that of the regular expression in a node, or in its name. */
bool constrain_schema_words(struct constrain_schema *s, uint32_t json, bool names, uint32_t *text,
                            struct base_error *err);
bool constrain_schema_regex(struct constrain_schema *s, uint32_t json, bool name, uint32_t *text,
                            struct base_error *err);
/* Returns the expression of a format's strings; NULL if the format is not known. */
const char *constrain_schema_format(const char *name, size_t size);

/* Compiles a schema's text into *s, which is zeroed; the caller frees it after a failure too. */
bool constrain_schema_compile(struct constrain_schema *s, const char *text, size_t size,
                              const struct constrain_schema_options *options,
                              struct base_error *err);

/* -- reading (schema_read.c, schema_ref.c) -- */

/* Reads the schema's text into formulas; *root is its literal. */
bool constrain_schema_read(struct constrain_schema *s, const char *text, size_t size,
                           const struct constrain_schema_options *options, uint32_t *root,
                           struct base_error *err);
/* Returns the node of the schema itself, inside the wrapper of an API: {"name", "strict",
 * "schema"}, which may be inside {"type": "json_schema", "json_schema"}. */
uint32_t constrain_schema_unwrap(const struct constrain_json *j);
struct constrain_refs; /* targets of identifiers and anchors in the schema at `root` */
struct constrain_refs *constrain_refs_new(const struct constrain_json *j, uint32_t root,
                                          struct base_error *err);
void constrain_refs_free(struct constrain_refs *r);
/* Returns the JSON node that the reference in `ref`, a member of the schema `owner`, refers to; 0
 * with an error. */
uint32_t constrain_refs_find(struct constrain_refs *r, uint32_t owner, uint32_t ref,
                             struct base_error *err);
/* Returns whether the member "id" identifies that schema: in draft 4 it does for each schema, in
 * others only for the root. */
bool constrain_refs_reads_id(const struct constrain_refs *r, uint32_t node);
/* Returns whether node v is the URI of a supported draft. Where drafts differ, the newest one
 * applies. */
bool constrain_schema_draft_is_known(const struct constrain_json *json, uint32_t v);

/* Finds the different values of `enum` or `const` in the schema at `json`, or in one that it refers
 * to. Returns their number, 0 if there is no such keyword, if there are too many values, or if
 * lists or objects are among them. */
enum { CONSTRAIN_MAX_UNIQUE = 64 };
uint32_t constrain_schema_values(struct constrain_refs *refs, const struct constrain_json *j,
                                 uint32_t json, uint32_t value[CONSTRAIN_MAX_UNIQUE]);
/* Adds the values of a schema whose `type` has few (null, true and false, integers between a
 * minimum and a maximum) as new nodes. *n is their number, 0 for other types, too many values, or a
 * schema without `type`. */
bool constrain_schema_few(struct constrain_json *j, uint32_t json,
                          uint32_t value[CONSTRAIN_MAX_UNIQUE], uint32_t *n,
                          struct base_error *err);

/* -- expanding (schema_expand.c) -- */

/* Calls `leaf` for each way to satisfy the literals with a value of one type, with the sorted
 * literals of atoms about that type. */
typedef bool constrain_leaf_fn(void *context, const uint32_t *atoms, uint32_t n,
                               struct base_error *err);
bool constrain_schema_expand(const struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                             enum constrain_type type, constrain_leaf_fn *leaf, void *context,
                             struct base_error *err);

/* -- compiling (schema_place.c, schema_object.c) -- */

/* Gives ranks, larger than all earlier ones, to the formulas that the literals lead to, in the
 * order in which the schema mentions them. */
bool constrain_schema_rank(struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                           struct base_error *err);
bool constrain_schema_object(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                             struct constrain_object *out, bool *some, struct base_error *err);
/* Marks the objects, arrays and places that at least one value satisfies. */
void constrain_schema_find_alive(struct constrain_schema *s);
