/* engine/plan.h: a planned graph: steps, their order and memory. Created by plan.c, prepared and
 * run by the devices of its places. Private to engine/. */
#pragma once

#include "engine/backend.h"
#include "engine/tensor.h"

struct engine_graph;

struct engine_step {
    struct engine_tensor *node;
    const void *row; /* the device's row of its op */
    bool barrier;    /* CPU: a barrier of all workers precedes this step */
    bool alone;      /* CPU: only worker 0 runs it */
    /* CPU: chosen experts that are complete when this step begins; NULL: none */
    const struct engine_tensor *chosen;
};

/* A copy of a tensor from one place to another; one of the two is place 0. */
struct engine_copy {
    struct engine_tensor *from, *to;
};

/* Consecutive steps in one place, after copies of what they read from other places. */
struct engine_segment {
    const struct engine_place *place;
    int first_step, n_steps, first_copy, n_copies;
    void *prepared; /* the device's own */
};

struct engine_plan_memory {
    uint64_t buffer_bytes;  /* inputs, intermediates and outputs */
    uint64_t scratch_bytes; /* the scratch of the step that needs the most; it follows the tensors
                               in the same buffer */
    struct engine_buffer buffer;
    char *scratch;
};

struct engine_plan {
    struct engine_step *steps;       /* [n_steps], sources before users */
    struct engine_segment *segments; /* [n_segments] */
    struct engine_copy *copies;      /* [n_copies] */
    int n_steps, n_segments, n_copies;
    struct engine_plan_memory memory[ENGINE_PLACES_MAX]; /* by place */
    bool made;
};

/* The number of tensors that a graph of max_tensors needs on n_places, with copies. */
int engine_plan_tensors(int max_tensors, int n_places);
/* Bytes of the graph's arena that engine_plan_make uses for a graph with room for max_tensors,
 * those of copies included. */
uint64_t engine_plan_arena_bytes(int max_tensors, int n_places);

/* Computes the plan and allocates its buffers. BASE_NO_MEMORY when that fails. */
bool engine_plan_make(struct engine_graph *g, struct base_error *err);
/* Runs the plan's segments, in order. BASE_INTERRUPTED when base/interrupt.h's flag is
 * set. */
bool engine_plan_run(const struct engine_plan *plan, const struct engine *engine,
                     struct base_error *err);
void engine_plan_free(struct engine_plan *plan); /* frees the buffers */
