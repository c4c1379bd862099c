/* test/support_guard.h: memory between two inaccessible pages, so that a read or write outside of
 * it stops the test. */
#pragma once

#include <stddef.h>

struct guard {
    char *base; /* first usable byte; the page on either side is inaccessible */
    size_t size;
};

/* At least `size` usable bytes, whole pages. Ends the program if allocation fails. */
struct guard guard_new(size_t size);
void guard_free(struct guard *guard);

/* `size` bytes that end at the last usable byte. With an alignment above 1, the start is rounded
 * down to it, and the bytes after the end are filled with 0xff. */
void *guard_at_end(const struct guard *guard, size_t size, size_t align);

/* The address `offset` bytes past the first usable byte. */
void *guard_at_start(const struct guard *guard, size_t offset);
