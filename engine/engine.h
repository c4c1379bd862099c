/* engine/engine.h: the engine object: instruction-set level, kernel tables, thread pool.
 *
 * All state for computing belongs to one `struct engine`; there are no globals. An engine serves
 * one running graph at a time. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/error.h"
#include "engine/isa/vec.h"
#include "engine/pool.h"
#include "quant/quant.h"

struct engine_options {
    int n_threads;        /* 0: engine_threads_default() */
    enum cpu_level level; /* a cap; cpu_level_best() for no cap */
    bool use_blas;        /* large F32 products through OpenBLAS (gives up bit-identity) */
    bool pin_threads;     /* bind thread i to the i-th allowed processor */
    bool plan_only;       /* graphs get addresses and no memory, and cannot run */
};
struct engine_options engine_options_default(void);

struct engine {
    struct engine_options options; /* n_threads and level have the values in use */
    struct quant_kernels quant;
    struct engine_vec vec;
    struct engine_pool *pool;
    struct engine_blas *blas;       /* NULL unless use_blas */
    struct engine_profile *profile; /* engine_set_profile; NULL: nothing is counted */
};

/* Fills the tables and starts the pool. The caller owns it. BASE_USAGE when use_blas is set and
 * OpenBLAS cannot be loaded. */
struct engine *engine_new(const struct engine_options *options, struct base_error *err);
void engine_free(struct engine *e); /* NULL is fine */

/* min(processors in the affinity mask, cgroup v1/v2 CPU quota rounded down but at least 1,
 * physical cores among them). */
int engine_threads_default(void);

#endif
