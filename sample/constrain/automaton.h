/* sample/constrain/automaton.h: patterns as trees, and their deterministic automata over bytes.
 *
 * Private to sample/. The readers of grammars and expressions build trees. An automaton may call
 * rules of its grammar, so a recursive grammar is a set of automata. Code points become their UTF-8
 * bytes: an automaton never accepts invalid UTF-8 unless choices contain it. */
#pragma once

#include "base/error.h"
#include <stddef.h>

enum constrain_tree_kind {
    CONSTRAIN_TREE_SEQ,    /* the children in order; without children the empty text */
    CONSTRAIN_TREE_ALT,    /* one of the children */
    CONSTRAIN_TREE_SET,    /* one code point of the ranges */
    CONSTRAIN_TREE_BYTE,   /* the byte `min` */
    CONSTRAIN_TREE_REPEAT, /* the child `min` to `max` times */
    CONSTRAIN_TREE_CALL,   /* the rule `min` */
    CONSTRAIN_TREE_BEGIN,  /* the empty text, only at the beginning of the text */
    CONSTRAIN_TREE_END     /* the empty text, only at the end of the text */
};
#define CONSTRAIN_NO_MAX UINT32_MAX

struct constrain_node {
    enum constrain_tree_kind kind;
    uint32_t child, last, sibling; /* indices into node[]; 0: none */
    uint32_t min, max;
    uint32_t range, n_range; /* SET: a slice of range[], sorted and merged */
    uint32_t line, column;   /* position in the source */
};
struct constrain_range {
    uint32_t lo, hi;
};

struct constrain_tree {
    struct constrain_node *node; /* node[0] is unused */
    uint32_t n_node, node_room;
    struct constrain_range *range;
    uint32_t n_range, range_room;
};
void constrain_tree_free(struct constrain_tree *t);
/* Returns a new node; 0 with BASE_NO_MEMORY. */
uint32_t constrain_tree_add(struct constrain_tree *t, enum constrain_tree_kind kind, uint32_t line,
                            uint32_t column, struct base_error *err);
void constrain_tree_adopt(struct constrain_tree *t, uint32_t parent, uint32_t child);
/* Adds a sequence of bytes to the children of `parent`. */
bool constrain_tree_add_text(struct constrain_tree *t, uint32_t parent, const char *bytes,
                             size_t size, struct base_error *err);
/* Appends a range to range[], for the next constrain_tree_set. */
bool constrain_tree_range(struct constrain_tree *t, uint32_t lo, uint32_t hi,
                          struct base_error *err);
/* Appends sorted ranges, or their complement, to range[]. */
bool constrain_tree_ranges(struct constrain_tree *t, const struct constrain_range *range, size_t n,
                           bool negate, struct base_error *err);
/* Appends the ranges of \d \w \D \W (ASCII) or \s \S (Unicode) to range[]; `letter` is the one
 * after the backslash. */
bool constrain_tree_class(struct constrain_tree *t, int letter, struct base_error *err);
/* Makes a SET node of the ranges from index `first` on: sorted, merged, negated if `negate`. */
uint32_t constrain_tree_set(struct constrain_tree *t, uint32_t first, bool negate, uint32_t line,
                            uint32_t column, struct base_error *err);

struct constrain_call {
    uint32_t rule, back; /* the automaton called, and the state after it */
};
enum { CONSTRAIN_DFA_ACCEPTS = 1, CONSTRAIN_DFA_READS = 2, CONSTRAIN_DFA_CALLS = 4 };
/* A deterministic automaton. State 0 is dead (no text is accepted from it), state 1 the start. */
struct constrain_dfa {
    uint8_t class_of[256];
    uint32_t n_class, n_state;
    uint32_t *next;    /* [n_state][n_class] */
    uint8_t *accept;   /* [n_state]: 1: accepts; after trimming CONSTRAIN_DFA_* */
    uint32_t *call_at; /* [n_state + 1]: slices of call[] */
    struct constrain_call *call;
    uint32_t *mask; /* [n_state]: bits of the operands that accept, in a product; otherwise NULL */
};
void constrain_dfa_free(struct constrain_dfa *d); /* accepts NULL */
static inline uint32_t constrain_dfa_step(const struct constrain_dfa *d, uint32_t q, uint8_t byte)
{
    return d->next[(size_t)q * d->n_class + d->class_of[byte]];
}

/* The rules of a grammar that may be inlined: their trees by rule number. */
struct constrain_rules {
    const uint32_t *tree;   /* root node of each rule */
    const uint8_t *inlined; /* 1: the rule's tree replaces each call */
};
/* Builds the automaton of a tree; `search`: any text may precede and follow. `rules` may be NULL.
 * All functions that return an automaton return NULL with an error, and the caller frees the
 * result. */
struct constrain_dfa *constrain_dfa_build(const struct constrain_tree *t, uint32_t root,
                                          bool search, const struct constrain_rules *rules,
                                          struct base_error *err);

/* Builds the automaton that runs all operands (at most 31) in parallel. It is in state 0 after
 * invalid UTF-8, and if an operand with its bit in `needed` is in its own state 0. Its mask has bit
 * i in the states where operand i accepts; the product itself accepts everywhere. */
struct constrain_dfa *constrain_dfa_product(const struct constrain_dfa *const *d, uint32_t n,
                                            uint32_t needed, struct base_error *err);
/* Builds an automaton that accepts `min` to `max` code points (CONSTRAIN_NO_MAX: no maximum). */
struct constrain_dfa *constrain_dfa_length(uint32_t min, uint32_t max, struct base_error *err);
/* Redirects moves that cannot lead to an accepting state to state 0 and removes dead calls.
 * `productive`: the rules that can end (NULL without calls). Returns whether the automaton accepts
 * any text; false without an error if it accepts none. */
bool constrain_dfa_trim(struct constrain_dfa *d, const uint8_t *productive, struct base_error *err);

/* -- readers -- */

/* Builds the automaton of a regular expression (`search`: it may match anywhere in the text). Lines
 * and columns in error messages count from `line`, `column`. */
struct constrain_dfa *constrain_regex_dfa(const char *text, size_t size, bool search, uint32_t line,
                                          uint32_t column, struct base_error *err);

/* Grows an array of elements of `size` bytes so that it has room for one more than `count`. */
bool constrain_grow(void *array, uint32_t *room, uint32_t count, size_t size,
                    struct base_error *err);
