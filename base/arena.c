/* base/arena.c: a fixed block of memory, divided into pieces in order. See base/arena.h. */
#include "base/arena.h"
#include "base/size.h"
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
enum { RED_ZONE = 32 };
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
enum { RED_ZONE = 0 };
#endif

enum { BASE_ALIGN = 4096 }; /* the largest alignment of a piece */

struct base_arena {
    void *allocated;
    char *memory; /* within it, aligned */
    uint64_t size;
    uint64_t used;
};

/* Large memory of calloc is new pages of the system, which are zeros without being written. */
struct base_arena *base_arena_new(uint64_t size, struct base_error *err)
{
    struct base_arena *arena = calloc(1, sizeof *arena);
    uint64_t bytes;
    if (!arena || !base_add(size, BASE_ALIGN, &bytes)) goto fail;
    arena->allocated = calloc(1, bytes);
    if (!arena->allocated) goto fail;
    arena->memory = arena->allocated;
    arena->memory += -(uintptr_t)arena->memory % BASE_ALIGN;
    arena->size = size;
    ASAN_POISON_MEMORY_REGION(arena->memory, size);
    return arena;

fail:
    base_arena_free(arena);
    return base_null(
        base_fail(err, BASE_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)size));
}

void base_arena_free(struct base_arena *arena)
{
    if (!arena) return;
    if (arena->memory) ASAN_UNPOISON_MEMORY_REGION(arena->memory, arena->size);
    free(arena->allocated);
    free(arena);
}

void *base_arena_take(struct base_arena *arena, uint64_t size, uint64_t align,
                      struct base_error *err)
{
    uint64_t start, end;
    if (!base_align_up(arena->used, align, &start) || !base_add(start, size, &end) ||
        !base_add(end, RED_ZONE, &end) || end > arena->size)
        return base_null(base_fail(err, BASE_NO_MEMORY, "an arena of %llu bytes is full",
                                   (unsigned long long)arena->size));
    ASAN_UNPOISON_MEMORY_REGION(arena->memory + start, size);
    arena->used = end;
    return arena->memory + start;
}
