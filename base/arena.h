/* base/arena.h: one allocation, carved in order, freed at once.
 *
 * The size is fixed when the arena is made; an arena never grows, so code that runs after set-up
 * cannot allocate by accident. Under AddressSanitizer a poisoned red zone follows each piece, so
 * that an overrun inside the arena is still detected. Not thread-safe. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/error.h"
#include <stddef.h>

struct base_arena; /* opaque; the caller owns it */

/* An arena of `size` bytes, zeroed. NULL and BASE_NO_MEMORY when the allocation fails. */
struct base_arena *base_arena_new(uint64_t size, struct base_error *err);
void base_arena_free(struct base_arena *arena); /* NULL is fine */

/* `size` zeroed bytes at a multiple of `align` (a power of two <= 4096). NULL when the arena is
 * full: BASE_NO_MEMORY with the arena's size in the text. The piece belongs to the arena. */
void *base_arena_take(struct base_arena *arena, uint64_t size, uint64_t align,
                      struct base_error *err);

/* Discards all pieces and zeroes what was used; the memory stays. */
void base_arena_reset(struct base_arena *arena);
uint64_t base_arena_used(const struct base_arena *arena);

/* The most that base_arena_take uses beyond `size`, for sizing an arena beforehand. */
#define BASE_ARENA_PIECE_OVERHEAD 128u

#endif
