/* base/size.h: sizes that cannot wrap. Every size that depends on a file, an option or a model's
 * dimensions is computed by these functions; on overflow the result is unchanged and the function
 * returns false. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool base_add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

static inline bool base_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

/* Rounds up to a multiple of `align` (a power of two, not 0). */
static inline bool base_align_up(uint64_t n, uint64_t align, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(n, align - 1, &sum)) return false;
    *out = sum & ~(align - 1);
    return true;
}

/* realloc to `count` items; NULL if there is no memory, and then the array is unchanged. */
static inline void *base_resize(void *array, uint64_t count, size_t size)
{
    uint64_t bytes;
    return base_mul(count, size, &bytes) && bytes <= SIZE_MAX ? realloc(array, (size_t)bytes)
                                                              : NULL;
}
