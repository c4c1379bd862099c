/* text/tokenizer/piece_cache.c: reuses the ids of earlier pieces of the same text. See
 * text/tokenizer/vocab.h.
 *
 * Words repeat: in prose nine of ten pieces were encoded shortly before, and their ids are in the
 * output. A direct-mapped cache stores where they are; an overwritten entry only costs time. */
#include "text/tokenizer/vocab.h"
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 4096, MAX_PIECE = 128, MIN_TEXT = 512 /* bytes; shorter texts repeat little */ };

struct text_cached_piece {
    const char *piece; /* points into the fragment or into w->text */
    uint32_t size, round;
    size_t first; /* index of its first id in the output */
    size_t count;
};

bool text_piece_cache_begin(struct text_piece_cache *r, size_t size, struct base_error *err)
{
    r->round++;
    if (r->entry || size < MIN_TEXT) return true;
    r->entry = calloc(ENTRIES, sizeof *r->entry);
    return r->entry || base_fail(err, BASE_NO_MEMORY, "no memory for %d words", ENTRIES);
}

void text_piece_cache_free(struct text_piece_cache *r)
{
    free(r->entry);
    *r = (struct text_piece_cache){0};
}

bool text_piece_cache_find(struct text_work *w, const char *piece, size_t size,
                           struct text_cached_piece **place, bool *found)
{
    struct text_cached_piece *e = NULL;
    if (w->pieces.entry && size <= MAX_PIECE)
        e = &w->pieces.entry[text_hash(piece, size) % ENTRIES];
    *place = e;
    *found = e && e->round == w->pieces.round && e->size == size && !memcmp(e->piece, piece, size);
    if (!*found) return true;
    for (size_t i = 0; i < e->count; i++)
        if (!text_ids_add(w->out, w->out->id[e->first + i], w->err)) return false;
    return true;
}

void text_piece_cache_add(const struct text_work *w, struct text_cached_piece *place,
                          const char *piece, size_t size, size_t first)
{
    if (place)
        *place = (struct text_cached_piece){piece, (uint32_t)size, w->pieces.round, first,
                                            w->out->count - first};
}
