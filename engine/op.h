/* engine/op.h: an op is one row of a table: name, sources, shape rule, work.
 *
 * A row defines an op, not how it is computed: each device has a table of its own for that
 * (engine/cpu/cpu_op.h). Rows are in engine/graph/, with their builders; engine/ops.h lists all. */
#pragma once

#include "engine/tensor.h"

/* Lower bounds of a node's work. */
struct engine_work {
    double bytes; /* read and written once */
    double macs;  /* multiply-adds of products */
};

struct engine_op {
    const char *name;
    bool is_view;  /* the result is in the source's memory; there is nothing to run */
    bool in_place; /* may overwrite src[0] if no other node reads it */
    int n_src;     /* number of required sources */
    int updates;   /* 1 + index of the source, a leaf, that a run writes in addition to dst; 0: none
                    */
    /* Sets dst->type and ne from its sources and params; false with a message (BASE_MODEL: shapes
     * come from files) when they do not fit. */
    bool (*shape)(struct engine_tensor *dst, struct base_error *err);
    /* The work of a run, for profiles; NULL: that of reading its sources and writing dst. */
    struct engine_work (*work)(const struct engine_tensor *dst);
};
