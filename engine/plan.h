/* engine/plan.h: a planned graph: steps, their order and memory. Created by plan.c, prepared and
 * run by a backend. Private to engine/. */
#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

#include "engine/backend.h"
#include "engine/tensor.h"

struct engine_graph;

struct engine_step {
    struct engine_tensor *node;
    const void *row; /* the device's row of its op */
    bool barrier;    /* CPU: a barrier of all workers precedes this step */
    bool alone;      /* CPU: only worker 0 runs it */
};

struct engine_plan {
    struct engine_step *steps; /* [n_steps], sources before users */
    int n_steps;
    uint64_t buffer_bytes;  /* inputs, intermediates and outputs */
    uint64_t scratch_bytes; /* the scratch of the step that needs the most; it follows the tensors
                               in the same buffer */
    const struct engine_backend *backend;
    struct engine_buffer buffer;
    char *scratch;
};

/* Bytes of the graph's arena that engine_plan_make uses for a graph of max_tensors. */
uint64_t engine_plan_arena_bytes(int max_tensors);

/* Computes the plan and allocates its buffer. BASE_NO_MEMORY when that fails. */
bool engine_plan_make(struct engine_graph *g, struct base_error *err);
void engine_plan_free(struct engine_plan *plan); /* frees the buffer */

#endif
