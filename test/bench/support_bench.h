/* test/bench/support_bench.h: what tools that measure have in common. They end where something
 * fails. */
#ifndef TEST_BENCH_SUPPORT_BENCH_H
#define TEST_BENCH_SUPPORT_BENCH_H

#include "base/error.h"
#include "engine/engine.h"
#include "engine/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds of a clock that only goes forward. */
double support_seconds(void);

/* Prints the error and exits with 1. */
_Noreturn void support_die(const struct base_error *err);

/* An engine of these options with so many threads; the caller frees it. */
struct engine *support_engine(struct engine_options options, int n_threads);

/* A tensor over `data`, which stays the caller's. */
struct engine_tensor support_tensor(enum quant_id type, int n_dims, const int64_t *ne, void *data);

/* `size` bytes, written once, at a multiple of 64; the caller frees them. Exits with 4. */
void *support_memory(size_t size);

/* Reads each line of `bytes` once, and prefetches them as kernels with one stream do; near:
 * past the outer caches. Returns a sum, so that nothing is left out. */
uint64_t support_read(const char *from, size_t bytes, bool to_l1);

/* The one in the middle of n numbers, which it sorts; the upper one of two. */
double support_median(double *x, size_t n);

#endif
