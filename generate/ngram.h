/* generate/ngram.h: an index of the n-grams of a text, which drafts the tokens that followed the
 * same ids before.
 *
 * Contains the ids of one text, and where each group of GENERATE_NGRAM consecutive ids occurs;
 * draft.h determines the number of draft tokens. Adding and looking up take bounded time. Private
 * to generate/. */
#pragma once

#include "base/error.h"
#include <stdint.h>

enum { GENERATE_NGRAM = 3, GENERATE_NGRAM_MATCH = 32 /* ids of a match that are counted */ };

struct generate_ngram {
    int32_t *id;      /* [n], with room for `room` */
    uint32_t *before; /* [n]: the previous position after ids with the same hash; 0: none */
    uint32_t *latest; /* [1 << bits]: the latest position after ids with this hash; 0: none */
    uint32_t n, room, bits;
};

/* Allocates an index for texts of at most `room` ids. Fails with BASE_NO_MEMORY. The caller calls
 * generate_ngram_free, after a failure too. */
bool generate_ngram_init(struct generate_ngram *g, uint32_t room, struct base_error *err);
void generate_ngram_free(struct generate_ngram *g);  /* may be all zeros */
void generate_ngram_clear(struct generate_ngram *g); /* begins another text */
/* Appends an id to the text, which must have room for it. */
void generate_ngram_add(struct generate_ngram *g, int32_t id);
/* Returns the position after the longest earlier match of the text's end, the latest of several:
 * id[position] and the ids after it are the draft. *length is the number of matching ids, at most
 * GENERATE_NGRAM_MATCH. Returns 0 if the end has not occurred before. */
uint32_t generate_ngram_find(const struct generate_ngram *g, uint32_t *length);
