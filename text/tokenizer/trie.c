/* text/tokenizer/trie.c: builds a trie depth first. See text/tokenizer/trie.h. */
#include "text/tokenizer/trie.h"
#include "base/interrupt.h"
#include "base/list.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1 << 28 };

/* A node whose children are not added yet: the keys low .. high - 1 begin with its text. */
struct pending {
    uint32_t node, low, high, depth;
};

struct builder {
    struct text_trie *trie;
    struct text_key *keys, *spare; /* [n] each */
    struct pending *stack;
    size_t n_stack, stack_room;
    struct base_error *err;
};

/* ---- Sorting by one byte ---- */

/* Returns the key's byte at this depth; -1, which sorts first, if the key ends there. */
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
    struct text_node *node = realloc(t->node, (size_t)room * sizeof *node);
    if (node) t->node = node;
    if (!byte || !node)
        return base_fail(b->err, BASE_NO_MEMORY, "no memory for %u nodes of a trie", room);
    t->room = room;
    return true;
}

static bool add_node(struct builder *b, int byte)
{
    struct text_trie *t = b->trie;
    if (t->count == t->room && !grow(b)) return false;
    t->byte[t->count] = (uint8_t)byte;
    t->node[t->count++] = (struct text_node){.value = TEXT_NO_VALUE};
    return true;
}

static bool push(struct builder *b, struct pending p)
{
    if (!BASE_LIST_ROOM(b->stack, b->n_stack, b->stack_room))
        return base_fail(b->err, BASE_NO_MEMORY, "no memory for %zu nodes of a trie",
                         b->n_stack + 1);
    b->stack[b->n_stack++] = p;
    return true;
}

/* Sets the edges of `node` to its children, which were added last. */
static bool set_edges(struct builder *b, uint32_t node, uint32_t first)
{
    struct text_trie *t = b->trie;
    const uint32_t n = t->count - first;
    if (n == 0) return true;
    if (n <= 8) {
        for (uint32_t i = 0; i < 8; i++)
            t->node[node].edges |= (uint64_t)t->byte[first + (i < n ? i : 0)] << 8 * i;
        t->node[node].child = first;
        return true;
    }
    if (!BASE_LIST_ROOM(t->many, t->n_many, t->many_room))
        return base_fail(b->err, BASE_NO_MEMORY, "no memory for %u nodes of a trie", t->n_many + 1);
    memset(t->many[t->n_many], 0, sizeof *t->many);
    for (uint32_t i = 0; i < n; i++) t->many[t->n_many][t->byte[first + i]] = (uint8_t)i;
    t->node[node].edges = t->n_many++;
    t->node[node].child = first | TEXT_TRIE_MANY;
    return true;
}

/* Sets the node's value and pushes its children onto the stack. */
static bool split(struct builder *b, struct pending p)
{
    const uint32_t n = p.high - p.low, first = b->trie->count;
    if (n > 32) {
        sort_many(b->keys + p.low, n, p.depth, b->spare);
    } else {
        sort_few(b->keys + p.low, n, p.depth);
    }
    for (uint32_t at = p.low, end; at < p.high; at = end) {
        const int byte = byte_at(&b->keys[at], p.depth);
        for (end = at + 1; end < p.high && byte_at(&b->keys[end], p.depth) == byte; end++) continue;
        if (byte < 0) {
            if (p.depth) b->trie->node[p.node].value = b->keys[at].value;
        } else if (!push(b, (struct pending){b->trie->count, at, end, p.depth + 1}) ||
                   !add_node(b, byte)) {
            return false;
        }
    }
    return set_edges(b, p.node, first);
}

bool text_trie_init(struct text_trie *t, struct text_key *keys, uint32_t n, struct base_error *err)
{
    struct builder b = {.trie = t, .keys = keys, .err = err};
    b.spare = malloc(((size_t)n + 1) * sizeof *b.spare);
    bool ok = b.spare || base_fail(err, BASE_NO_MEMORY, "no memory for %u tokens", n);
    ok = ok && add_node(&b, 0) && push(&b, (struct pending){0, 0, n, 0});
    for (uint32_t step = 0; ok && b.n_stack; step++)
        ok = (step % 4096 || base_goes_on(err)) && split(&b, b.stack[--b.n_stack]);
    for (int c = 0; ok && c < 256; c++) t->root[c] = text_trie_child(t, 0, (uint8_t)c);
    free(b.spare);
    free(b.stack);
    return ok;
}

void text_trie_free(struct text_trie *t)
{
    free(t->byte);
    free(t->node);
    free(t->many);
    free(t->fail);
    free(t->out);
    *t = (struct text_trie){0};
}

/* ---- Links ---- */

/* Sets fail and out. Visits the nodes in order of depth, because the links of a node depend on
 * those of shorter texts. `queue` has room for [count]. */
static void link(struct text_trie *t, uint32_t *queue)
{
    uint32_t n_queue = 0;
    queue[n_queue++] = 0;
    for (uint32_t i = 0; i < n_queue; i++) {
        const uint32_t parent = queue[i];
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t node = text_trie_child(t, parent, (uint8_t)byte);
            if (!node) continue;
            queue[n_queue++] = node;
            if (!parent) continue;
            uint32_t from = t->fail[parent], to;
            while (!(to = text_trie_step(t, from, (uint8_t)byte)) && from) from = t->fail[from];
            t->fail[node] = to;
            t->out[node] = t->node[to].value != TEXT_NO_VALUE ? to : t->out[to];
        }
    }
}

bool text_trie_link(struct text_trie *t, struct base_error *err)
{
    uint32_t *queue = malloc((size_t)t->count * sizeof *queue);
    t->fail = calloc(t->count, sizeof *t->fail);
    t->out = calloc(t->count, sizeof *t->out);
    const bool ok = queue && t->fail && t->out;
    if (ok) link(t, queue);
    free(queue);
    return ok || base_fail(err, BASE_NO_MEMORY, "no memory for %u nodes of a trie", t->count);
}
