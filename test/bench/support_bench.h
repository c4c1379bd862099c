/* test/bench/support_bench.h: helpers of the measuring tools. They end the program on a failure. */
#pragma once

#include "base/error.h"
#include "engine/engine.h"
#include "engine/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds of a monotonic clock. */
double support_seconds(void);

/* Prints the error and exits with 1. */
_Noreturn void support_die(const struct base_error *err);

/* An engine with these options and n_threads threads; the caller frees it. */
struct engine *support_engine(struct engine_options options, int n_threads);

/* A tensor over `data`, which the caller owns. */
struct engine_tensor support_tensor(enum quant_id type, int n_dims, const int64_t *ne, void *data);

/* Allocates `size` bytes at a multiple of 64 and writes each; the caller frees them. Exits with 4
 * on failure. */
void *support_memory(size_t size);

/* Reads each line of `bytes` once, with the prefetches of kernels that read one stream; to_l1: as
 * in struct cpu_prefetch. Returns a sum, so that the compiler keeps the reads. */
uint64_t support_read(const char *from, size_t bytes, bool to_l1);

/* Sorts n numbers and returns the median; the upper one of two. */
double support_median(double *x, size_t n);
