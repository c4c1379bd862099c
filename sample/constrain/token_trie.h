/* sample/constrain/token_trie.h: tries of the bytes of a vocabulary's tokens, in preorder. Private
 * to sample/. */
#ifndef SAMPLE_CONSTRAIN_TOKEN_TRIE_H
#define SAMPLE_CONSTRAIN_TOKEN_TRIE_H

#include "sample/constrain/automaton.h"
#include "sample/constrain/constraint.h"

enum {
    CONSTRAIN_MAX_TOKEN = 1024, /* longer tokens are never allowed */
    CONSTRAIN_PLAIN = 24        /* plain tokens have at most so many code points */
};

/* Node i's subtree is i..next - 1, its children begin at i + 1. */
struct constrain_trie_node {
    uint32_t next;
    uint32_t token; /* first of its tokens in order[]; they end where those of node i + 1 begin */
    uint16_t depth; /* bytes from the root */
    uint8_t byte;
};
struct constrain_trie {
    uint32_t n_node;
    struct constrain_trie_node *node; /* node[0] is the root; one more after the last */
    int32_t *order;                   /* ids, by their bytes */
    uint32_t *below;    /* [n_node] kinds of the bytes in the subtree, less the node's */
    uint32_t root[256]; /* the root's child of each byte; 0: none */
};
/* The kind of a byte, as one of 31 bits: patterns usually treat all bytes of a kind alike. */
uint32_t constrain_byte_kind(uint8_t byte);

/* Plain tokens are a few whole code points that need no escape in a JSON string. Most tokens are
 * plain, and most states treat all of the same length alike: a precomputed mask suffices for
 * these. */
struct constrain_token_trie {
    uint32_t n_vocab, words;
    struct constrain_trie plain, other;
    uint64_t *plain_mask; /* [CONSTRAIN_PLAIN + 1][words]: of at most so many code points */
};

/* The longest plain strings from each state of an automaton. good[state]: 0: must not be reached,
 * 1: may be reached, 2: may be reached if its own entries allow it. min_depth[q]: any string of so
 * many code points passes; max_depth[q]: none of more does; both at most CONSTRAIN_PLAIN, which
 * represents any number. min_depth > max_depth: nothing is known. `todo` has room for 2 *
 * n_state. */
void constrain_plain_depths(const struct constrain_dfa *d, const uint8_t *good, uint8_t *min_depth,
                            uint8_t *max_depth, uint32_t *todo);

#endif
