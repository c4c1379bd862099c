/* text/tokenizer/prefix.c: finding the tokens that a text begins with. See text/tokenizer/vocab.h.
 *
 * The tokens lie sorted by text, so those with a common beginning are neighbours, and each byte
 * that is walked narrows the range by two binary searches. */
#include "text/tokenizer/vocab.h"
#include <stdlib.h>
#include <string.h>

static struct gguf_str text_at(const struct text_prefix_index *index, uint32_t place)
{
    return text_token(index->tokenizer, (uint32_t)index->id[place]);
}

static int compare(const void *a, const void *b, void *tokenizer)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    struct gguf_str x = text_token(tokenizer, (uint32_t)left);
    struct gguf_str y = text_token(tokenizer, (uint32_t)right);
    uint64_t common = x.size < y.size ? x.size : y.size;
    int order = memcmp(x.data, y.data, common);
    if (order) return order;
    if (x.size != y.size) return x.size < y.size ? -1 : 1;
    return left < right ? -1 : left > right;
}

void text_prefix_init(struct text_prefix_index *index, const struct text_tokenizer *t, int32_t *ids,
                      uint32_t count)
{
    index->tokenizer = t;
    index->id = ids;
    for (uint32_t i = 0; i < count; i++)
        if (text_token(t, (uint32_t)ids[i]).size) ids[index->count++] = ids[i];
    qsort_r(ids, index->count, sizeof *ids, compare, (void *)t);
    for (uint32_t i = 0; i < index->count; i++)
        index->first[(unsigned char)text_at(index, i).data[0] + 1]++;
    for (int b = 0; b < 256; b++) index->first[b + 1] += index->first[b];
}

void text_prefix_free(struct text_prefix_index *index)
{
    free(index->id);
    index->id = NULL;
    index->count = 0;
}

bool text_prefix_begin(const struct text_prefix_index *index, char byte,
                       struct text_prefix_walk *walk)
{
    unsigned char b = (unsigned char)byte;
    *walk = (struct text_prefix_walk){index->first[b], index->first[b + 1], 1};
    return walk->low < walk->high;
}

/* The first place in [low, high) whose byte at `depth` is at least `byte`; a token that ends there
 * comes before all bytes. */
static uint32_t lower_bound(const struct text_prefix_index *index, uint32_t low, uint32_t high,
                            uint32_t depth, int byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct gguf_str text = text_at(index, middle);
        int there = depth < text.size ? (unsigned char)text.data[depth] : -1;
        if (there < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool text_prefix_step(const struct text_prefix_index *index, char byte,
                      struct text_prefix_walk *walk)
{
    int b = (unsigned char)byte;
    walk->low = lower_bound(index, walk->low, walk->high, walk->depth, b);
    walk->high = lower_bound(index, walk->low, walk->high, walk->depth, b + 1);
    walk->depth++;
    return walk->low < walk->high;
}

int64_t text_prefix_found(const struct text_prefix_index *index,
                          const struct text_prefix_walk *walk)
{
    if (walk->low >= walk->high || text_at(index, walk->low).size != walk->depth)
        return TEXT_NO_VALUE;
    return walk->low;
}
