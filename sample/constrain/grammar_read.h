/* sample/constrain/grammar_read.h: a parsed GBNF grammar: named rules with one tree each. Private
 * to sample/. */
#pragma once

#include "sample/constrain/automaton.h"

struct constrain_rule {
    char *name;
    uint32_t tree; /* 0: not defined (yet), or the name of a token */
    uint32_t line, column;
};
struct constrain_grammar {
    struct constrain_tree tree;
    struct constrain_rule *rule;
    uint32_t n_rule, rule_room;
    uint32_t root;
};
/* Names of tokens are rules too: "<text>", "<[id]>", "!<...>". */
static inline bool constrain_rule_is_token(const struct constrain_rule *rule)
{
    return rule->name[0] == '<' || rule->name[0] == '!';
}
/* Reads a grammar and checks its names. Fails with BASE_USAGE, with line and column. The caller
 * frees `g` by constrain_grammar_free, after a failure too. */
bool constrain_grammar_read(struct constrain_grammar *g, const char *text, size_t size,
                            struct base_error *err);
void constrain_grammar_free(struct constrain_grammar *g);
