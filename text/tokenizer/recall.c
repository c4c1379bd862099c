/* text/tokenizer/recall.c: reuses the ids of earlier pieces of the same text. See
 * text/tokenizer/vocab.h.
 *
 * Words repeat: in prose nine of ten pieces were encoded shortly before, and their ids are in the
 * output. A direct-mapped cache stores where they are; an overwritten entry only costs time. */
#include "text/tokenizer/vocab.h"
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 4096, MAX_PIECE = 128, MIN_TEXT = 512 /* bytes; shorter texts repeat little */ };

struct text_recalled {
    const char *piece; /* points into the fragment or into w->text */
    uint32_t size, round;
    size_t first; /* index of its first id in the output */
    size_t count;
};

bool text_recall_begin(struct text_recall *r, size_t size, struct base_error *err)
{
    r->round++;
    if (r->entry || size < MIN_TEXT) return true;
    r->entry = calloc(ENTRIES, sizeof *r->entry);
    return r->entry || base_fail(err, BASE_NO_MEMORY, "no memory for %d words", ENTRIES);
}

void text_recall_free(struct text_recall *r)
{
    free(r->entry);
    *r = (struct text_recall){0};
}

bool text_recall(struct text_work *w, const char *piece, size_t size, struct text_recalled **place,
                 bool *found)
{
    struct text_recalled *e = NULL;
    if (w->recall.entry && size <= MAX_PIECE)
        e = &w->recall.entry[text_hash(piece, size) % ENTRIES];
    *place = e;
    *found = e && e->round == w->recall.round && e->size == size && !memcmp(e->piece, piece, size);
    if (!*found) return true;
    for (size_t i = 0; i < e->count; i++)
        if (!text_ids_add(w->out, w->out->id[e->first + i], w->err)) return false;
    return true;
}

void text_remember(const struct text_work *w, struct text_recalled *place, const char *piece,
                   size_t size, size_t first)
{
    if (place)
        *place = (struct text_recalled){piece, (uint32_t)size, w->recall.round, first,
                                        w->out->count - first};
}
