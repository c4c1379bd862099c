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

uint64_t rng_next(struct rng *rng)
{
    /* splitmix64 */
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t rng_below(struct rng *rng, uint32_t n)
{
    return (uint32_t)((rng_next(rng) >> 32) * n >> 32);
}

float rng_gauss(struct rng *rng)
{
    int64_t sum = 0;
    for (int i = 0; i < 12; i++) sum += (int64_t)(rng_next(rng) >> 40) - (1 << 23);
    return (float)sum * 0x1p-24f;
}
