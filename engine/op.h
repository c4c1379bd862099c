/* engine/op.h: an op is one row of a table: name, shape rule, scratch rule, split rule, run.
 *
 * A run function is called on each worker that the split rule selects, with its task and the
 * destination. Each row is in the file that implements it; engine/ops.h lists all. */
#ifndef ENGINE_OP_H
#define ENGINE_OP_H

#include "engine/engine.h"
#include "engine/tensor.h"

struct engine_work; /* engine/profile.h */

struct engine_task {
    const struct engine_worker *worker; /* ith, nth; for barriers and chunk claims */
    const struct engine *engine;        /* kernel tables */
    char *scratch;                      /* [scratch_size] bytes of all workers, 64-byte aligned */
    int64_t scratch_size;
};

enum engine_split {
    ENGINE_SPLIT_ONE,  /* only worker 0: too small to divide */
    ENGINE_SPLIT_ROWS, /* workers divide rows (engine_task_rows), without barriers or claims; */
                       /* small nodes run on worker 0 with nth = 1; scratch: op_rows.h */
    ENGINE_SPLIT_OWN   /* the run function claims chunks and waits at barriers */
};

struct engine_op {
    const char *name;
    bool is_view;  /* the result is in the source's memory; there is nothing to run */
    bool in_place; /* may overwrite src[0] if no other node reads it */
    enum engine_split split;
    int n_src;   /* number of required sources */
    int updates; /* 1 + index of the source, a leaf, that a run writes in addition to dst; 0: none
                  */
    /* Sets dst->type and ne from its sources and params; false with a message (BASE_MODEL: shapes
     * come from files) when they do not fit. */
    bool (*shape)(struct engine_tensor *dst, struct base_error *err);
    /* Bytes of shared scratch for n_threads workers; NULL: none. */
    int64_t (*scratch)(const struct engine_tensor *dst, int n_threads);
    void (*run)(const struct engine_task *task, struct engine_tensor *dst);
    /* The work of a run, for profiles; NULL: that of reading its sources and writing dst. */
    struct engine_work (*work)(const struct engine_tensor *dst);
    /* The name of the route by which e computes dst, for profiles; NULL if the op has only one. */
    const char *(*route)(const struct engine *e, const struct engine_tensor *dst);
};

/* The rows [*first, *last) of `n` that this worker computes: contiguous, the same for every op, so
 * that they often are in this worker's cache. */
void engine_task_rows(const struct engine_task *task, int64_t n, int64_t *first, int64_t *last);

/* n rounded up to a multiple of unit, for sizes that the plan has checked; n >= 0. */
static inline int64_t engine_round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static inline int64_t engine_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t engine_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
