/* base/keep.h: memory of many small values that are freed together, and lists of texts in it. */
#pragma once

#include "base/error.h"
#include <stddef.h>

/* All zeros: empty. */
struct base_keep {
    struct base_keep_block *latest;
};

/* Returns `size` zeroed bytes, aligned for any type, that are valid until base_keep_free; NULL with
 * BASE_NO_MEMORY. */
void *base_keep_take(struct base_keep *k, size_t size, struct base_error *err);
/* Returns a copy of text[0..size) with a NUL at its end; NULL with BASE_NO_MEMORY. */
const char *base_keep_text(struct base_keep *k, const char *text, size_t size,
                           struct base_error *err);
void base_keep_free(struct base_keep *k);

/* A list of NUL-terminated texts. A copy of the struct shares the array; only one of them may grow.
 */
struct base_texts {
    const char **item; /* [count] */
    size_t count;
};

/* Appends a text, which must outlive the list; the array is taken from `k`. */
bool base_texts_add(struct base_texts *list, const char *text, struct base_keep *k,
                    struct base_error *err);
