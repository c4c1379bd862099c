/* gguf/index.h: lookup by name: pointers sorted by name, binary search.
 *
 * The names come from the file, and a hash table would be slow for names that were chosen to
 * collide; a binary search is fast for any names. Private to gguf/. */
#pragma once

#include "gguf/gguf.h"

struct gguf_index {
    const struct gguf_str **name; /* [count], each the first member of the record that it names */
    uint64_t count;
};

/* Sorts the names at the start of `count` records of `stride` bytes. The records must not move.
 * False and BASE_NO_MEMORY when there is no memory. */
bool gguf_index_init(struct gguf_index *index, const void *records, uint64_t count, size_t stride,
                     struct base_error *err);
void gguf_index_free(struct gguf_index *index);

/* The record of that name, or NULL. */
const void *gguf_index_find(const struct gguf_index *index, struct gguf_str name);

/* A record whose name an earlier record has too (the last of equal names), or NULL. */
const void *gguf_index_duplicate(const struct gguf_index *index);
