/* sample/vocab.h: the bytes of a vocabulary's tokens as a trie in preorder. Private to sample/. */
#ifndef SAMPLE_VOCAB_H
#define SAMPLE_VOCAB_H

#include "sample/constraint.h"

enum { SAMPLE_MAX_TOKEN = 1024 }; /* longer tokens are never allowed */

/* Node i's subtree is i..next - 1, its children begin at i + 1. */
struct sample_trie_node {
    uint32_t next;
    uint32_t token; /* first of its tokens in order[]; they end where those of node i + 1 begin */
    uint16_t depth; /* bytes from the root */
    uint8_t byte;
};
struct sample_vocab {
    uint32_t n_vocab, n_node;
    struct sample_trie_node *node; /* node[0] is the root; one more stands behind the last */
    int32_t *order;                /* ids, by their bytes */
};

#endif
