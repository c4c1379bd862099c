/* sample/constrain/tree.c: trees of patterns and their sets of code points. See
 * sample/constrain/automaton.h. */
#include "base/size.h"
#include "sample/constrain/automaton.h"
#include <stdlib.h>
#include <string.h>

bool constrain_grow(void *array, uint32_t *room, uint32_t count, size_t size,
                    struct base_error *err)
{
    void **slot = array;
    if (count < *room) return true;
    if (*room > UINT32_MAX / 4) return base_fail(err, BASE_NO_MEMORY, "a table grows too large");
    uint32_t more = *room ? *room * 2 : 16;
    void *grown = base_resize(*slot, more, size);
    if (!grown) return base_fail(err, BASE_NO_MEMORY, "no memory for %u entries", more);
    *slot = grown;
    *room = more;
    return true;
}

void constrain_tree_free(struct constrain_tree *t)
{
    free(t->node);
    free(t->range);
    *t = (struct constrain_tree){0};
}

uint32_t constrain_tree_add(struct constrain_tree *t, enum constrain_tree_kind kind, uint32_t line,
                            uint32_t column, struct base_error *err)
{
    if (t->n_node == 0) t->n_node = 1;
    if (!constrain_grow(&t->node, &t->node_room, t->n_node, sizeof *t->node, err)) return 0;
    t->node[t->n_node] = (struct constrain_node){.kind = kind, .line = line, .column = column};
    return t->n_node++;
}

void constrain_tree_adopt(struct constrain_tree *t, uint32_t parent, uint32_t child)
{
    struct constrain_node *p = &t->node[parent];
    if (p->last)
        t->node[p->last].sibling = child;
    else
        p->child = child;
    p->last = child;
}

bool constrain_tree_add_text(struct constrain_tree *t, uint32_t parent, const char *bytes,
                             size_t size, struct base_error *err)
{
    const uint32_t seq = constrain_tree_add(t, CONSTRAIN_TREE_SEQ, 1, 1, err);
    if (!seq) return false;
    constrain_tree_adopt(t, parent, seq);
    for (size_t i = 0; i < size; i++) {
        const uint32_t byte = constrain_tree_add(t, CONSTRAIN_TREE_BYTE, 1, 1, err);
        if (!byte) return false;
        t->node[byte].min = (unsigned char)bytes[i];
        constrain_tree_adopt(t, seq, byte);
    }
    return true;
}

bool constrain_tree_range(struct constrain_tree *t, uint32_t lo, uint32_t hi,
                          struct base_error *err)
{
    if (!constrain_grow(&t->range, &t->range_room, t->n_range, sizeof *t->range, err)) return false;
    t->range[t->n_range++] = (struct constrain_range){lo, hi};
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct constrain_range *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static uint32_t merge(struct constrain_range *r, uint32_t n)
{
    uint32_t kept = 0;
    qsort(r, n, sizeof *r, compare_ranges);
    for (uint32_t i = 0; i < n; i++) {
        if (kept && r[i].lo <= r[kept - 1].hi + 1) {
            if (r[i].hi > r[kept - 1].hi) r[kept - 1].hi = r[i].hi;
        } else {
            r[kept++] = r[i];
        }
    }
    return kept;
}

uint32_t constrain_tree_set(struct constrain_tree *t, uint32_t first, bool negate, uint32_t line,
                            uint32_t column, struct base_error *err)
{
    uint32_t n = t->n_range - first;
    if (n) n = merge(t->range + first, n);
    t->n_range = first + n;
    if (negate) { /* appends the gaps, then moves them down */
        uint32_t from = 0;
        for (uint32_t i = 0; i < n; i++) {
            struct constrain_range r = t->range[first + i];
            if (r.lo > from && !constrain_tree_range(t, from, r.lo - 1, err)) return 0;
            from = r.hi + 1;
        }
        if (from <= 0x10ffff && !constrain_tree_range(t, from, 0x10ffff, err)) return 0;
        uint32_t gaps = t->n_range - first - n;
        if (gaps) memmove(t->range + first, t->range + first + n, gaps * sizeof *t->range);
        t->n_range = first + gaps;
        n = gaps;
    }
    uint32_t node = constrain_tree_add(t, CONSTRAIN_TREE_SET, line, column, err);
    if (!node) return 0;
    t->node[node].range = first;
    t->node[node].n_range = n;
    return node;
}

bool constrain_tree_ranges(struct constrain_tree *t, const struct constrain_range *range, size_t n,
                           bool negate, struct base_error *err)
{
    uint32_t from = 0;
    for (size_t i = 0; i < n; i++) { /* sorted */
        if (!negate && !constrain_tree_range(t, range[i].lo, range[i].hi, err)) return false;
        if (negate && range[i].lo > from && !constrain_tree_range(t, from, range[i].lo - 1, err))
            return false;
        from = range[i].hi + 1;
    }
    return !negate || from > 0x10ffff || constrain_tree_range(t, from, 0x10ffff, err);
}

bool constrain_tree_class(struct constrain_tree *t, int letter, struct base_error *err)
{
    static const struct constrain_range digit[] = {{'0', '9'}};
    static const struct constrain_range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const struct constrain_range space[] = {
        {9, 13},          {32, 32},         {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
        {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    bool negate = letter == 'D' || letter == 'W' || letter == 'S';
    switch (letter | 32) {
    case 'd':
        return constrain_tree_ranges(t, digit, 1, negate, err);
    case 'w':
        return constrain_tree_ranges(t, word, 4, negate, err);
    default:
        return constrain_tree_ranges(t, space, sizeof space / sizeof space[0], negate, err);
    }
}
