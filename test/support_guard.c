/* test/support_guard.c: see the header. */
#include "test/support_guard.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard guard_new(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct guard guard = {.size = (size + page - 1) / page * page};
    char *all = mmap(NULL, guard.size + 2 * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all, page, PROT_NONE) != 0 ||
        mprotect(all + page + guard.size, page, PROT_NONE) != 0) {
        fprintf(stderr, "guard_new: no memory for %zu bytes\n", size);
        exit(1);
    }
    guard.base = all + page;
    return guard;
}

void guard_free(struct guard *guard)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (guard->base) munmap(guard->base - page, guard->size + 2 * page);
    guard->base = NULL;
}

void *guard_at_end(const struct guard *guard, size_t size, size_t align)
{
    size_t taken = (size + align - 1) / align * align;
    char *start = guard->base + guard->size - taken;
    memset(start + size, 0xff, taken - size);
    return start;
}

void *guard_at_start(const struct guard *guard, size_t offset)
{
    return guard->base + offset;
}
