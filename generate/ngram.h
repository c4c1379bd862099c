/* generate/ngram.h: an index of the n-grams of a text, to draft tokens from what followed the same
 * ids before.
 *
 * Owns: the ids of one text, and where each group of GENERATE_NGRAM consecutive ids occurs.
 * Refuses: the number of draft tokens (draft.h). Adding and looking up take bounded time. Private
 * to generate/. */
#ifndef GENERATE_NGRAM_H
#define GENERATE_NGRAM_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { GENERATE_NGRAM = 3, GENERATE_NGRAM_MATCH = 32 /* ids of a match that are counted */ };

struct generate_ngram {
    int32_t *id;      /* [n] of `room` */
    uint32_t *before; /* [n] the previous place after ids with the same hash; 0: none */
    uint32_t *latest; /* [1 << bits] the latest place after ids with this hash; 0: none */
    uint32_t n, room, bits;
};

/* For texts of at most `room` ids. BASE_NO_MEMORY; generate_ngram_free is to be called on failure
 * too. */
bool generate_ngram_init(struct generate_ngram *g, uint32_t room, struct base_error *err);
void generate_ngram_free(struct generate_ngram *g);  /* a zeroed one is fine */
void generate_ngram_clear(struct generate_ngram *g); /* for another text */
/* Appends an id to the text, which must have room for it. */
void generate_ngram_add(struct generate_ngram *g, int32_t id);
/* The place after the longest earlier match of the text's end, the latest of several: id[place] and
 * the ids after it are the draft. *length: ids that match, at most GENERATE_NGRAM_MATCH. 0 if the
 * end has not occurred before. */
uint32_t generate_ngram_find(const struct generate_ngram *g, uint32_t *length);

#endif
