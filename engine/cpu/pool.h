/* engine/cpu/pool.h: persistent worker threads.
 *
 * The calling thread is worker 0. Between jobs workers spin for a short time, then sleep, so that a
 * burst of small graph nodes costs no system calls and an idle program no processor time. */
#pragma once

#include "base/error.h"

struct engine_pool; /* opaque */

/* A worker, as its job receives it. */
struct engine_worker {
    int ith, nth; /* this worker's number, and the number of workers */
    struct engine_pool *pool;
};

/* A pool of n_threads workers, or as many as the system can start: at least the caller. NULL and
 * BASE_USAGE for a number out of range, or BASE_NO_MEMORY. */
struct engine_pool *engine_pool_new(int n_threads, bool pin, struct base_error *err);
void engine_pool_free(struct engine_pool *pool); /* pool may be NULL */
int engine_pool_threads(const struct engine_pool *pool);

/* Runs job(worker, data) once on every worker and returns when all are done. */
void engine_pool_run(struct engine_pool *pool, void (*job)(const struct engine_worker *, void *),
                     void *data);

/* Inside a job: waits until all workers have called it. The last caller resets the chunk counter,
 * so each region between two barriers claims its work from 0. */
void engine_pool_barrier(const struct engine_worker *w);

/* Inside a job: claims the next `n` units of work and returns the first. A worker stops when that
 * is not below the total, which must be the same for all workers of a region. */
int64_t engine_pool_claim(const struct engine_worker *w, int64_t n);

/* Inside a job, the other way to divide units 0 .. total - 1 (below 2^31) of a region. Each worker
 * has a share of consecutive units and claims them in ascending order, so that it can prefetch the
 * data that it reads next; when its share is exhausted it claims units of the next worker's share
 * (work stealing). Returns total when no unit is left. */
int64_t engine_pool_take(const struct engine_worker *w, int64_t total);
