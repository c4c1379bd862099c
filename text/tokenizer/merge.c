/* text/tokenizer/merge.c: merges adjacent symbols in order of their rank. See
 * text/tokenizer/vocab.h.
 *
 * A binary heap contains every pair that could be merged; the symbols are a linked list. A pair is
 * stale after another merge has changed one of its symbols: its size then differs, and it is
 * removed when it reaches the top. n symbols make at most 3 n pairs, so the time is O(n log n). */
#include "base/list.h"
#include "text/tokenizer/vocab.h"
#include <stdlib.h>

struct text_candidate {
    uint64_t key;   /* the pair's key << 32 | left: the leftmost of equal keys is first */
    uint32_t right; /* index of the right symbol */
    uint32_t size;  /* size of both symbols when the pair was added */
};

bool text_merger_add(struct text_merger *m, size_t start, size_t size, struct base_error *err)
{
    if (!BASE_LIST_ROOM(m->symbol, m->count, m->room))
        return base_fail(err, BASE_NO_MEMORY, "no memory for %zu symbols", m->count + 1);
    int32_t index = (int32_t)m->count++;
    m->symbol[index] = (struct text_symbol){(uint32_t)start, (uint32_t)size, index - 1, -1};
    if (index > 0) m->symbol[index - 1].after = index;
    return true;
}

void text_merger_free(struct text_merger *m)
{
    free(m->symbol);
    free(m->heap);
    *m = (struct text_merger){0};
}

/* ---- The heap ---- */

static bool push(struct text_merger *m, struct text_candidate c, struct base_error *err)
{
    if (!BASE_LIST_ROOM(m->heap, m->n_heap, m->heap_room))
        return base_fail(err, BASE_NO_MEMORY, "no memory for %zu pairs", m->n_heap + 1);
    size_t at = m->n_heap++;
    for (; at > 0 && c.key < m->heap[(at - 1) / 2].key; at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = c;
    return true;
}

static struct text_candidate pop(struct text_merger *m)
{
    struct text_candidate top = m->heap[0], last = m->heap[--m->n_heap];
    size_t at = 0;
    for (size_t child = 1; child < m->n_heap; child = 2 * at + 1) {
        if (child + 1 < m->n_heap && m->heap[child + 1].key < m->heap[child].key) child++;
        if (last.key <= m->heap[child].key) break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return top;
}

/* ---- Merging ---- */

struct merge_run {
    struct text_merger *m;
    const struct text_tokenizer *tokenizer;
    const char *text;
    text_pair_fn *pair;
    struct base_error *err;
};

static bool consider(const struct merge_run *r, int32_t left, int32_t right)
{
    if (left < 0 || right < 0) return true;
    const struct text_symbol *a = &r->m->symbol[left], *b = &r->m->symbol[right];
    uint32_t key;
    if (!r->pair(r->tokenizer, r->text + a->start, a->size, b->size, &key)) return true;
    return push(r->m,
                (struct text_candidate){(uint64_t)key << 32 | (uint32_t)left, (uint32_t)right,
                                        a->size + b->size},
                r->err);
}

bool text_merger_run(struct text_merger *m, const struct text_tokenizer *t, const char *text,
                     text_pair_fn *pair, struct base_error *err)
{
    const struct merge_run r = {m, t, text, pair, err};
    m->n_heap = 0;
    for (size_t i = 1; i < m->count; i++)
        if (!base_goes_on(err) || !consider(&r, (int32_t)i - 1, (int32_t)i)) return false;
    while (m->n_heap) {
        if (!base_goes_on(err)) return false;
        struct text_candidate c = pop(m);
        int32_t left = (int32_t)(uint32_t)c.key;
        struct text_symbol *a = &m->symbol[left], *b = &m->symbol[c.right];
        if (!a->size || !b->size || a->size + b->size != c.size) continue;
        a->size = c.size;
        b->size = 0;
        a->after = b->after;
        if (b->after >= 0) m->symbol[b->after].before = left;
        if (!consider(&r, a->before, left) || !consider(&r, left, a->after)) return false;
    }
    return true;
}
