/* sample/constrain/token_trie.h: tries of the bytes of a vocabulary's tokens, with their nodes in
 * preorder. Private to sample/. */
#pragma once

#include "sample/constrain/automaton.h"
#include "sample/constrain/constraint.h"

enum {
    CONSTRAIN_MAX_TOKEN = 1024, /* bytes; longer tokens are never allowed */
    CONSTRAIN_PLAIN = 24        /* maximum number of code points of a plain token */
};

/* A node. The subtree of node i is i .. next - 1, and its children begin at i + 1. */
struct constrain_trie_node {
    uint32_t next;
    uint32_t token; /* its first one in order[]; its tokens end where those of node i + 1 begin */
    uint16_t depth; /* bytes from the root */
    uint8_t byte;
};
struct constrain_trie {
    uint32_t n_node;
    struct constrain_trie_node *node; /* node[0] is the root; one more after the last */
    int32_t *order;                   /* token ids, sorted by their bytes */
    uint32_t *below;    /* [n_node]: kinds of the bytes in the subtree, without the node's own */
    uint32_t root[256]; /* the root's child of each byte; 0: none */
};
/* Returns the kind of a byte as one of 31 bits: patterns usually treat all bytes of a kind
 * alike. */
uint32_t constrain_byte_kind(uint8_t byte);

/* A plain token is a few whole code points that need no escape in a JSON string. Most tokens are
 * plain, and most states treat all plain tokens of a length alike: one precomputed mask serves
 * these states. */
struct constrain_token_trie {
    uint32_t n_vocab, words;
    struct constrain_trie plain, other;
    uint64_t *plain_mask; /* [CONSTRAIN_PLAIN + 1][words]: of at most that many code points */
};

/* Computes, for each state q of an automaton, which plain strings it accepts by their number of
 * code points n:
 *
 *     n <= min_depth[q]                   every string
 *     n > max_depth[q]                    none
 *     min_depth[q] > max_depth[q]         the number does not decide
 *
 * A depth of CONSTRAIN_PLAIN means any number. good[q] 0: must not be reached; 1: may be reached;
 * 2: may be reached if its own entries allow it. `todo` has room for 2 * n_state. */
void constrain_plain_depths(const struct constrain_dfa *d, const uint8_t *good, uint8_t *min_depth,
                            uint8_t *max_depth, uint32_t *todo);
