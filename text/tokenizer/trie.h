/* text/tokenizer/trie.h: tokens by their texts, one byte after another.
 *
 * Private to text/tokenizer/. Node 0 is the root. Nodes are in order of depth, and the children of
 * a node are consecutive, sorted by byte:
 *
 *     byte[i]              the byte on the edge into node i
 *     child[i]             the first child of node i; child[i + 1] is the end of its children
 *     value[i]             the value of the text that ends here, or TEXT_NO_VALUE
 *     fail[i]              the node of the longest proper suffix of i's text that the trie has
 *     out[i]               the next node along fail that ends a text, 0: none
 *
 * With fail and out the trie is an Aho-Corasick automaton: it finds all texts inside another in
 * time linear in it. */
#ifndef TEXT_TOKENIZER_TRIE_H
#define TEXT_TOKENIZER_TRIE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { TEXT_NO_VALUE = -1 };

struct text_trie {
    uint32_t count, room;
    uint8_t *byte;
    uint32_t *child;
    int32_t *value;
    uint32_t *fail, *out; /* NULL until text_trie_link */
    uint32_t root[256];   /* the child of the root for each byte, 0: none */
};

struct text_key {
    const char *bytes; /* need not outlive text_trie_init */
    uint32_t size;
    int32_t value;
};

/* Also sorts keys[n]. Keys without text are left out; of equal texts the first counts. */
bool text_trie_init(struct text_trie *t, struct text_key *keys, uint32_t n, struct base_error *err);
/* Adds fail and out. */
bool text_trie_link(struct text_trie *t, struct base_error *err);
void text_trie_free(struct text_trie *t);

/* The child of a node by a byte, 0: none. */
uint32_t text_trie_child(const struct text_trie *t, uint32_t node, unsigned char byte);

static inline uint32_t text_trie_step(const struct text_trie *t, uint32_t node, unsigned char byte)
{
    return node ? text_trie_child(t, node, byte) : t->root[byte];
}

/* The longest text at the start of bytes[0..size): its value, and its size in *used; TEXT_NO_VALUE:
 * none. */
int32_t text_trie_longest(const struct text_trie *t, const char *bytes, size_t size, size_t *used);

#endif
