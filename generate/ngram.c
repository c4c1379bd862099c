/* generate/ngram.c: finds earlier occurrences of the end of a text. See generate/ngram.h. */
#include "generate/ngram.h"
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TRIES = 8 /* number of earlier occurrences that are compared */,
    MIN_BITS = 8,
    MAX_BITS = 20
};

bool generate_ngram_init(struct generate_ngram *g, uint32_t room, struct base_error *err)
{
    *g = (struct generate_ngram){.room = room, .bits = MIN_BITS};
    while (g->bits < MAX_BITS && 1u << g->bits < room) g->bits++;
    g->id = calloc((size_t)room + 1, sizeof *g->id);
    g->before = calloc((size_t)room + 1, sizeof *g->before);
    g->latest = calloc((size_t)1 << g->bits, sizeof *g->latest);
    return (g->id && g->before && g->latest) ||
           base_fail(err, BASE_NO_MEMORY, "not enough memory for draft tokens");
}

void generate_ngram_free(struct generate_ngram *g)
{
    free(g->id), free(g->before), free(g->latest);
    *g = (struct generate_ngram){0};
}

void generate_ngram_clear(struct generate_ngram *g)
{
    g->n = 0;
    memset(g->latest, 0, ((size_t)1 << g->bits) * sizeof *g->latest);
}

/* Returns the hash of the ids before `place`. */
static uint32_t hash_at(const struct generate_ngram *g, uint32_t place)
{
    uint64_t h = 0;
    for (uint32_t i = place - GENERATE_NGRAM; i < place; i++)
        h = (h ^ (uint32_t)g->id[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> (64 - g->bits));
}

void generate_ngram_add(struct generate_ngram *g, int32_t id)
{
    g->id[g->n++] = id;
    if (g->n < GENERATE_NGRAM) return;
    uint32_t *latest = &g->latest[hash_at(g, g->n)];
    g->before[g->n] = *latest;
    *latest = g->n;
}

/* Returns the number of equal ids before `place` and before the text's end. */
static uint32_t match(const struct generate_ngram *g, uint32_t place)
{
    uint32_t n = 0;
    while (n < place && n < GENERATE_NGRAM_MATCH && g->id[place - 1 - n] == g->id[g->n - 1 - n])
        n++;
    return n;
}

uint32_t generate_ngram_find(const struct generate_ngram *g, uint32_t *length)
{
    uint32_t best = 0;
    *length = 0;
    if (g->n < GENERATE_NGRAM) return 0;
    uint32_t place = g->before[g->n]; /* the latest place with this hash is the end itself */
    for (int i = 0; i < MAX_TRIES && place; i++, place = g->before[place]) {
        const uint32_t n = match(g, place);
        if (n < GENERATE_NGRAM || n <= *length) continue;
        best = place;
        *length = n;
    }
    return best;
}
