/* engine/profile.h: the time of graph runs per kind of node.
 *
 * Worker 0 reads the clock at the start of every step and adds the time since the last reading to
 * the previous step, so the time of waiting for other workers is counted for the node that they
 * run. When off, it costs one comparison per node. cli/out/profile_report.c prints the counters. */
#pragma once

#include "engine/engine.h"
#include "engine/op.h"
#include "engine/tensor.h"

enum { ENGINE_PROFILE_ROWS = 96 };

/* Nodes with the same op and route and, if the op has weights, the same weight type and shape. */
struct engine_profile_row {
    const struct engine_op *op;
    const char *name;              /* of the op */
    const char *route;             /* NULL for ops with only one route */
    const struct quant_type *type; /* type of the weights; NULL for ops without weights */
    int64_t n, k;                  /* shape [n][k] of the weights; 0 for ops without weights */
    uint64_t calls;
    double seconds;
    struct engine_work work;
};

struct engine_profile {
    struct engine_profile_row
        row[ENGINE_PROFILE_ROWS]; /* further kinds are added to the last row */
    int n_rows;
    uint64_t runs, barriers;
    double seconds; /* total of all runs */
    /* The current step; private to engine/. */
    struct engine_profile_row *now;
    double since;
};

/* Counts all later runs of e's graphs in *p; NULL stops counting. The caller initializes *p to {0}
 * and must not read it during a run. */
void engine_set_profile(struct engine *e, struct engine_profile *p);

/* For backends, on worker 0: called at the start of a run, before each step, and after the last
 * one. */
void engine_profile_start(struct engine_profile *p);
void engine_profile_step(struct engine_profile *p, const struct engine_tensor *node,
                         const char *route, bool barrier);
void engine_profile_end(struct engine_profile *p);
