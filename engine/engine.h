/* engine/engine.h: the engine object: options, places and their devices, observers.
 *
 * All state for computing belongs to one `struct engine`; there are no globals. An engine runs
 * one graph at a time. */
#pragma once

#include "base/cpu.h"
#include "base/error.h"
#include "engine/place.h"

struct engine_options {
    int n_threads;        /* 0: engine_threads_default() (engine/cpu/threads.h) */
    enum cpu_level level; /* a cap; cpu_level_best() for no cap */
    bool use_blas;        /* large F32 products by OpenBLAS (results may differ in the last bits) */
    bool columns;         /* models copy matrices whose inputs have many zeros by columns */
    bool predicts;        /* models skip what predictors in their files expect to be zero */
    bool pin_threads;     /* bind thread i to the i-th allowed processor */
    bool plan_only;       /* graphs get addresses but no memory, and cannot run */
};
struct engine_options engine_options_default(void);

struct engine_cpu;
struct engine_profile;
struct engine_tensor;
struct engine_worker;

/* The inputs of one weight matrix in a product: w[n][k], x[T][k] with batches, and ids[T][U] of
 * experts (NULL without experts); shapes as in engine_mul_mat and engine_mul_mat_id
 * (engine/graph.h). */
struct engine_product_inputs {
    const struct engine_tensor *w, *x, *ids;
    bool transposed; /* w[k][n], of engine_mul_mat_transposed */
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
    struct engine_options options;                /* n_threads and level have the values in use */
    struct engine_place place[ENGINE_PLACES_MAX]; /* [n_places]; 0: this machine's memory */
    int n_places;
    struct engine_cpu *cpu;                 /* the device of place 0 (engine/cpu/cpu_device.h) */
    struct engine_profile *profile;         /* engine_set_profile; NULL: off */
    const struct engine_observer *observer; /* engine_set_observer; NULL: none */
    bool reads_ahead;                       /* engine_set_read_ahead */
};

/* Opens the processor as the device of place 0; the caller frees the engine by engine_free. Errors
 * are those of engine_cpu_new. */
struct engine *engine_new(const struct engine_options *options, struct base_error *err);
void engine_free(struct engine *e); /* e may be NULL */

/* Adds a place whose memory and nodes belong to `device`, a device of the backend that must
 * outlive the engine. Graphs and models that exist already do not use it. Returns NULL and
 * BASE_FAILED if there are ENGINE_PLACES_MAX. */
const struct engine_place *engine_add_place(struct engine *e, const struct engine_backend *backend,
                                            void *device, struct base_error *err);

/* Sets the observer of all later runs; NULL: none. It must remain valid. Results do not change. */
void engine_set_observer(struct engine *e, const struct engine_observer *observer);

/* Sets whether later runs request the weights of chosen experts from the disk before the products
 * that multiply them (engine/cpu/read_ahead.h): for models larger than the memory. Results do not
 * change. */
void engine_set_read_ahead(struct engine *e, bool on);
