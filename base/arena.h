/* base/arena.h: one allocation that is divided into pieces in order and freed as a whole.
 *
 * The size is fixed when the arena is made; an arena never grows, so code that runs after set-up
 * cannot allocate by accident. Under AddressSanitizer a poisoned red zone follows each piece, so
 * that an overrun inside the arena is still detected. Not thread-safe. */
#pragma once

#include "base/error.h"

struct base_arena; /* opaque; the caller frees it with base_arena_free */

/* An arena of `size` bytes, zeroed. NULL and BASE_NO_MEMORY when the allocation fails. */
struct base_arena *base_arena_new(uint64_t size, struct base_error *err);
/* Frees the arena and all of its pieces. `arena` may be NULL. */
void base_arena_free(struct base_arena *arena);

/* Returns `size` zeroed bytes at a multiple of `align` (a power of two <= 4096), valid until the
 * arena is freed. NULL when the arena is full: BASE_NO_MEMORY with the arena's size in the text. */
void *base_arena_take(struct base_arena *arena, uint64_t size, uint64_t align,
                      struct base_error *err);

/* The maximum number of bytes that a piece uses beyond its size, for alignments of at most 64
 * bytes: to size an arena beforehand. */
#define BASE_ARENA_PIECE_OVERHEAD 128u
