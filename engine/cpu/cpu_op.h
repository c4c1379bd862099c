/* engine/cpu/cpu_op.h: how the CPU runs an op: one row of a table for each: split rule, scratch
 * rule, run, route.
 *
 * A run function is called on each worker that the split rule selects, with its task and the
 * destination. Each row, engine_cpu_op_NAME, is in the file that implements it. */
#pragma once

#include "engine/cpu/cpu_device.h"
#include "engine/op.h"

struct engine_task {
    const struct engine_worker *worker;     /* ith, nth; for barriers and chunk claims */
    const struct engine_cpu *cpu;           /* kernel tables */
    const struct engine_observer *observer; /* NULL: none */
    char *scratch; /* [scratch_size] bytes of all workers, 64-byte aligned */
    int64_t scratch_size;
};

enum engine_split {
    ENGINE_SPLIT_ONE,  /* only worker 0: too small to divide */
    ENGINE_SPLIT_ROWS, /* workers divide rows (engine_task_rows), without barriers or claims; */
                       /* small nodes run on worker 0 with nth = 1; scratch: op_rows.h */
    ENGINE_SPLIT_OWN   /* the run function claims chunks and waits at barriers */
};

struct engine_cpu_op {
    const struct engine_op *op;
    enum engine_split split;
    /* Bytes of shared scratch for n_threads workers; NULL: none. */
    int64_t (*scratch)(const struct engine_tensor *dst, int n_threads);
    void (*run)(const struct engine_task *task, struct engine_tensor *dst);
    /* The name of the route by which the processor computes dst, for profiles; NULL if the op has
     * only one. */
    const char *(*route)(const struct engine_cpu *e, const struct engine_tensor *dst);
};

/* Returns the CPU's row of an op, or NULL if it has none. */
const struct engine_cpu_op *engine_cpu_op_of(const struct engine_op *op);

/* Defines the row of an op whose workers divide rows. */
#define ENGINE_CPU_ROWS_OP(name_, scratch_, run_)                                                  \
    const struct engine_cpu_op engine_cpu_op_##name_ = {.op = &engine_op_##name_,                  \
                                                        .split = ENGINE_SPLIT_ROWS,                \
                                                        .scratch = (scratch_),                     \
                                                        .run = (run_)}

/* The rows of `n` that this worker computes, from *first to before the result: contiguous, the same
 * for every op, so that they often are in this worker's cache. */
int64_t engine_task_rows(const struct engine_task *task, int64_t n, int64_t *first);

/* n rounded up to a multiple of unit, for sizes that the plan has checked; n >= 0. */
static inline int64_t engine_round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}
/* Reserves `bytes` of scratch at *at, rounded up to cache lines; returns their offset. */
static inline int64_t engine_scratch_reserve(int64_t *at, int64_t bytes)
{
    const int64_t here = *at;
    *at += engine_round_up(bytes, 64);
    return here;
}

static inline int64_t engine_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t engine_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
