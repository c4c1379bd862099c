/* sample/constrain/grammar.h: a GBNF grammar as it was read: named rules, each a tree. Private to
 * sample/. */
#ifndef SAMPLE_CONSTRAIN_GRAMMAR_H
#define SAMPLE_CONSTRAIN_GRAMMAR_H

#include "sample/constrain/automaton.h"

struct sample_rule {
    char *name;
    uint32_t tree; /* 0: called but not defined (so far) */
    uint32_t line, column;
};
struct sample_grammar {
    struct sample_tree tree;
    struct sample_rule *rule;
    uint32_t n_rule, rule_room;
    uint32_t root;
};
void sample_grammar_free(struct sample_grammar *g);

/* Reads and checks names; BASE_USAGE with line and column. The caller frees `g` in any case. */
bool sample_grammar_read(struct sample_grammar *g, const char *text, size_t size,
                         struct base_error *err);

#endif
