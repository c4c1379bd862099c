/* base/clock.h: the clock that all times are measured with. */
#pragma once

#include <time.h>

/* Seconds of a monotonic clock; its origin is arbitrary. */
static inline double base_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
