/* sample/vocab.c: builds the trie of a vocabulary. See sample/vocab.h. */
#include "sample/vocab.h"
#include "sample/automaton.h"
#include <stdlib.h>
#include <string.h>

struct token {
    size_t at;
    uint32_t size;
    int32_t id;
};

static int compare_tokens(const void *a, const void *b, void *bytes)
{
    const struct token *x = a, *y = b;
    uint32_t n = x->size < y->size ? x->size : y->size;
    int order = memcmp((char *)bytes + x->at, (char *)bytes + y->at, n);
    if (order) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static bool add_node(struct sample_vocab *v, uint32_t *room, uint32_t token, size_t depth,
                     uint8_t byte, struct base_error *err)
{
    if (!sample_grow(&v->node, room, v->n_node + 1, sizeof *v->node, err)) return false;
    v->node[v->n_node++] = (struct sample_trie_node){0, token, (uint16_t)depth, byte};
    return true;
}

/* Tokens come sorted: a token shares its path with the one before as far as their bytes agree. */
static bool fill(struct sample_vocab *v, const struct token *t, uint32_t n, const char *bytes,
                 struct base_error *err)
{
    uint32_t path[SAMPLE_MAX_TOKEN + 1], room = 0;
    size_t depth = 0;
    if (!add_node(v, &room, 0, 0, 0, err)) return false;
    path[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t same = 0;
        while (i && same < t[i].size && same < t[i - 1].size &&
               bytes[t[i].at + same] == bytes[t[i - 1].at + same])
            same++;
        for (; depth > same; depth--) v->node[path[depth]].next = v->n_node;
        while (depth < t[i].size) {
            path[++depth] = v->n_node;
            if (!add_node(v, &room, i, depth, (uint8_t)bytes[t[i].at + depth - 1], err))
                return false;
        }
        v->order[i] = t[i].id;
    }
    for (size_t d = 0; d <= depth; d++) v->node[path[d]].next = v->n_node;
    v->node[v->n_node] = (struct sample_trie_node){v->n_node + 1, n, 0, 0};
    /* A node made for a longer token has none of its own: they begin with the next node's. */
    return true;
}

struct sample_vocab *sample_vocab_new(uint32_t n_vocab, sample_token_bytes_fn *bytes, void *context,
                                      struct base_error *err)
{
    struct sample_vocab *v = calloc(1, sizeof *v);
    struct token *t = calloc((size_t)n_vocab + 1, sizeof *t);
    struct base_buffer text = BASE_BUFFER_INIT;
    uint32_t n = 0;
    bool ok = v && t && (v->order = calloc((size_t)n_vocab + 1, sizeof *v->order));
    for (uint32_t id = 0; ok && id < n_vocab; id++) {
        size_t at = text.size;
        bytes(context, (int32_t)id, &text);
        size_t size = text.size - at;
        ok = !text.failed;
        if (size == 0 || size > SAMPLE_MAX_TOKEN) continue;
        t[n++] = (struct token){at, (uint32_t)size, (int32_t)id};
    }
    if (!ok) base_fail(err, BASE_NO_MEMORY, "no memory for a vocabulary's trie");
    if (ok && n) qsort_r(t, n, sizeof *t, compare_tokens, text.data);
    if (ok) {
        v->n_vocab = n_vocab;
        ok = fill(v, t, n, text.data, err);
    }
    base_buffer_free(&text);
    free(t);
    if (ok) return v;
    sample_vocab_free(v);
    return NULL;
}

void sample_vocab_free(struct sample_vocab *v)
{
    if (!v) return;
    free(v->node);
    free(v->order);
    free(v);
}
