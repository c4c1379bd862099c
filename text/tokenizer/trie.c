/* text/tokenizer/trie.c: building a trie level by level. See text/tokenizer/trie.h. */
#include "text/tokenizer/trie.h"
#include "base/interrupt.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1 << 28 };

/* The keys below a node: the keys of this range begin with the node's text. */
struct range {
    uint32_t low, high;
};

struct builder {
    struct text_trie *trie;
    struct text_key *keys, *spare; /* [n] */
    struct range *range;           /* [trie->room] */
    struct base_error *err;
};

/* ---- Sorting by one byte ---- */

/* Keys that end at this depth come first. */
static int byte_at(const struct text_key *key, uint32_t depth)
{
    return depth < key->size ? (unsigned char)key->bytes[depth] : -1;
}

static void sort_few(struct text_key *keys, uint32_t n, uint32_t depth)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct text_key key = keys[i];
        const int byte = byte_at(&key, depth);
        uint32_t at = i;
        for (; at > 0 && byte_at(&keys[at - 1], depth) > byte; at--) keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

static void sort_many(struct text_key *keys, uint32_t n, uint32_t depth, struct text_key *spare)
{
    uint32_t start[258] = {0};
    for (uint32_t i = 0; i < n; i++) start[byte_at(&keys[i], depth) + 2]++;
    for (int b = 0; b < 257; b++) start[b + 1] += start[b];
    for (uint32_t i = 0; i < n; i++) spare[start[byte_at(&keys[i], depth) + 1]++] = keys[i];
    memcpy(keys, spare, n * sizeof *keys);
}

/* ---- Nodes ---- */

static bool grow(struct builder *b)
{
    struct text_trie *t = b->trie;
    const uint32_t room = t->room ? 2 * t->room : 256;
    if (room > MAX_NODES)
        return base_fail(b->err, BASE_MODEL, "the texts of the tokens are too long: %d nodes",
                         MAX_NODES);
    uint8_t *byte = realloc(t->byte, room);
    if (byte) t->byte = byte;
    uint32_t *child = realloc(t->child, ((size_t)room + 1) * sizeof *child);
    if (child) t->child = child;
    int32_t *value = realloc(t->value, (size_t)room * sizeof *value);
    if (value) t->value = value;
    struct range *range = realloc(b->range, (size_t)room * sizeof *range);
    if (range) b->range = range;
    if (!byte || !child || !value || !range)
        return base_fail(b->err, BASE_NO_MEMORY, "no memory for %u nodes of a trie", room);
    t->room = room;
    return true;
}

static bool add_node(struct builder *b, int byte, uint32_t low, uint32_t high)
{
    struct text_trie *t = b->trie;
    if (t->count == t->room && !grow(b)) return false;
    t->byte[t->count] = (uint8_t)byte;
    t->value[t->count] = TEXT_NO_VALUE;
    b->range[t->count++] = (struct range){low, high};
    return true;
}

/* Gives a node its value and its children. */
static bool split(struct builder *b, uint32_t node, uint32_t depth)
{
    const struct range r = b->range[node];
    const uint32_t n = r.high - r.low;
    if (n > 32) {
        sort_many(b->keys + r.low, n, depth, b->spare);
    } else {
        sort_few(b->keys + r.low, n, depth);
    }
    b->trie->child[node] = b->trie->count;
    for (uint32_t at = r.low, end; at < r.high; at = end) {
        const int byte = byte_at(&b->keys[at], depth);
        for (end = at + 1; end < r.high && byte_at(&b->keys[end], depth) == byte; end++) continue;
        if (byte < 0) {
            if (depth) b->trie->value[node] = b->keys[at].value;
        } else if (!add_node(b, byte, at, end)) {
            return false;
        }
    }
    return true;
}

bool text_trie_init(struct text_trie *t, struct text_key *keys, uint32_t n, struct base_error *err)
{
    struct builder b = {.trie = t, .keys = keys, .err = err};
    b.spare = malloc(((size_t)n + 1) * sizeof *b.spare);
    bool ok = b.spare || base_fail(err, BASE_NO_MEMORY, "no memory for %u tokens", n);
    ok = ok && add_node(&b, 0, 0, n);
    for (uint32_t level = 0, end = 1, depth = 0; ok && level < end; depth++) {
        for (; ok && level < end; level++)
            ok = (level % 4096 || base_goes_on(err)) && split(&b, level, depth);
        end = t->count;
    }
    if (ok) {
        t->child[t->count] = t->count;
        for (uint32_t i = t->child[0]; i < t->child[1]; i++) t->root[t->byte[i]] = i;
    }
    free(b.spare);
    free(b.range);
    return ok;
}

void text_trie_free(struct text_trie *t)
{
    free(t->byte);
    free(t->child);
    free(t->value);
    free(t->fail);
    free(t->out);
    *t = (struct text_trie){0};
}

/* ---- Walking ---- */

uint32_t text_trie_child(const struct text_trie *t, uint32_t node, unsigned char byte)
{
    const uint32_t first = t->child[node], n = t->child[node + 1] - first;
    if (n == 0) return 0;
    if (n == 1) return t->byte[first] == byte ? first : 0;
    const uint8_t *found = memchr(t->byte + first, byte, n);
    return found ? (uint32_t)(found - t->byte) : 0;
}

int32_t text_trie_longest(const struct text_trie *t, const char *bytes, size_t size, size_t *used)
{
    int32_t longest = TEXT_NO_VALUE;
    uint32_t node = 0;
    for (size_t i = 0; i < size; i++) {
        node = text_trie_step(t, node, (unsigned char)bytes[i]);
        if (!node) break;
        if (t->value[node] == TEXT_NO_VALUE) continue;
        longest = t->value[node];
        *used = i + 1;
    }
    return longest;
}

/* Parents come before their children, so the links of shorter texts are there when they are
 * needed. */
bool text_trie_link(struct text_trie *t, struct base_error *err)
{
    t->fail = calloc(t->count, sizeof *t->fail);
    t->out = calloc(t->count, sizeof *t->out);
    if (!t->fail || !t->out)
        return base_fail(err, BASE_NO_MEMORY, "no memory for %u nodes of a trie", t->count);
    for (uint32_t node = t->child[1], parent = 1; node < t->count; node++) {
        while (node >= t->child[parent + 1]) parent++;
        uint32_t from = t->fail[parent], to;
        while (!(to = text_trie_step(t, from, t->byte[node])) && from) from = t->fail[from];
        t->fail[node] = to;
        t->out[node] = t->value[to] != TEXT_NO_VALUE ? to : t->out[to];
    }
    return true;
}
