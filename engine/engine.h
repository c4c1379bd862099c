/* engine/engine.h: the engine object: instruction-set level, kernel tables, thread pool.
 *
 * All state for computing belongs to one `struct engine`; there are no globals. An engine runs
 * one graph at a time. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/error.h"
#include "engine/cpu/isa/vec.h"
#include "engine/cpu/pool.h"
#include "quant/quant.h"

struct engine_options {
    int n_threads;        /* 0: engine_threads_default() */
    enum cpu_level level; /* a cap; cpu_level_best() for no cap */
    bool use_blas;        /* large F32 products by OpenBLAS (results may differ in the last bits) */
    bool pin_threads;     /* bind thread i to the i-th allowed processor */
    bool plan_only;       /* graphs get addresses but no memory, and cannot run */
};
struct engine_options engine_options_default(void);

struct engine_tensor;

/* The inputs of one weight matrix in a product: w[n][k], x[T][k] with batches, and ids[T][U] of
 * experts (NULL without experts); shapes as in engine_mul_mat and engine_mul_mat_id
 * (engine/graph.h). */
struct engine_product_inputs {
    const struct engine_tensor *w, *x, *ids;
};

/* A callback for the inputs of all products of an engine's runs. Each worker that computes a part
 * of a product calls `product` before it, once for each of its matrices; the calls are concurrent,
 * and the callback divides its work by the worker's ith and nth. */
struct engine_observer {
    void (*product)(void *user, const struct engine_worker *worker,
                    const struct engine_product_inputs *inputs);
    void *user;
};

struct engine {
    struct engine_options options; /* n_threads and level have the values in use */
    struct quant_kernels quant;
    struct engine_vec vec;
    struct engine_pool *pool;
    struct engine_blas *blas;               /* NULL unless use_blas */
    struct engine_profile *profile;         /* engine_set_profile; NULL: off */
    const struct engine_observer *observer; /* engine_set_observer; NULL: none */
};

/* Fills the tables and starts the pool; the caller frees the engine by engine_free. BASE_USAGE when
 * use_blas is set and OpenBLAS cannot be loaded. */
struct engine *engine_new(const struct engine_options *options, struct base_error *err);
void engine_free(struct engine *e); /* e may be NULL */

/* Sets the observer of all later runs; NULL: none. It must remain valid. Results do not change. */
void engine_set_observer(struct engine *e, const struct engine_observer *observer);

/* min(processors in the affinity mask, cgroup v1/v2 CPU quota rounded down but at least 1,
 * physical cores among them). */
int engine_threads_default(void);

#endif
