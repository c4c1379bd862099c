/* text/tokenizer/trie.h: a trie of the tokens' texts, byte by byte.
 *
 * Private to text/tokenizer/. Node 0 is the root. The children of a node are consecutive and sorted
 * by byte, and so is the subtree of each: reading a text that only one key continues touches few
 * cache lines.
 *
 *     byte[i]              the byte on the edge into node i
 *     node[i].child        the first child of node i, 0: none; TEXT_TRIE_MANY is set if there are
 *                          more than 8
 *     node[i].edges        up to 8 children: their bytes, the first one in the low byte and again in
 *                          the unused bytes; more: the row of `many` that has, for each byte with a
 *                          child, the distance of that child from the first one
 *     node[i].value        the value of the text that ends here, or TEXT_NO_VALUE
 *     fail[i]              the node of the longest proper suffix of i's text that the trie has
 *     out[i]               the next node along fail that ends a text, 0: none
 *
 * With fail and out the trie is an Aho-Corasick automaton: it finds all its texts inside another
 * text in linear time. */
#pragma once

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { TEXT_NO_VALUE = -1 };
#define TEXT_TRIE_MANY (1u << 31)

struct text_node {
    uint32_t child;
    int32_t value;
    uint64_t edges;
};

struct text_trie {
    uint32_t count, room;
    uint8_t *byte;
    struct text_node *node;
    uint8_t (*many)[256];
    uint32_t n_many;
    size_t many_room;
    uint32_t *fail, *out; /* NULL before text_trie_link */
    uint32_t root[256];   /* the root's child for each byte, 0: none */
};

struct text_key {
    const char *bytes; /* need not outlive text_trie_init */
    uint32_t size;
    int32_t value;
};

/* Builds the trie and sorts keys[n]. Keys without text are left out; the first of several equal
 * texts counts. The caller frees *t with text_trie_free. */
bool text_trie_init(struct text_trie *t, struct text_key *keys, uint32_t n, struct base_error *err);
/* Computes fail and out. */
bool text_trie_link(struct text_trie *t, struct base_error *err);
void text_trie_free(struct text_trie *t);

/* Returns the child of a node by a byte, 0: none. */
static inline uint32_t text_trie_child(const struct text_trie *t, uint32_t node, uint8_t byte)
{
    const uint64_t ones = 0x0101010101010101u;
    const struct text_node *n = &t->node[node];
    if (n->child & TEXT_TRIE_MANY) {
        const uint32_t child = (n->child & ~TEXT_TRIE_MANY) + t->many[n->edges][byte];
        return t->byte[child] == byte ? child : 0;
    }
    const uint64_t x = n->edges ^ ones * byte;
    const uint64_t equal =
        (x - ones) & ~x & ones << 7; /* its lowest bit set is that of an equal byte */
    return equal ? n->child + (uint32_t)__builtin_ctzll(equal) / 8 : 0;
}

static inline uint32_t text_trie_step(const struct text_trie *t, uint32_t node, uint8_t byte)
{
    return node ? text_trie_child(t, node, byte) : t->root[byte];
}

/* Continues from *node, the node of bytes[0..from) (the root if `from` is 0), and sets *node to the
 * node of bytes[0..size), 0: none. Returns the value of the longest text on the way, and its size
 * in *used; if there is none, returns `longest` and leaves *used unchanged. */
static inline int32_t text_trie_go(const struct text_trie *t, uint32_t *node, const char *bytes,
                                   size_t from, size_t size, int32_t longest, size_t *used)
{
    for (size_t i = from; i < size; i++) {
        *node = text_trie_step(t, *node, (unsigned char)bytes[i]);
        if (!*node) break;
        if (t->node[*node].value == TEXT_NO_VALUE) continue;
        longest = t->node[*node].value;
        *used = i + 1;
    }
    return longest;
}

/* Returns the value of the longest text at the start of bytes[0..size), and its size in *used;
 * TEXT_NO_VALUE if there is none. */
static inline int32_t text_trie_longest(const struct text_trie *t, const char *bytes, size_t size,
                                        size_t *used)
{
    uint32_t node = 0;
    return text_trie_go(t, &node, bytes, 0, size, TEXT_NO_VALUE, used);
}
