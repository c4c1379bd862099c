/* engine/matmul/matmul_run.h: private to the product driver: what the phases of a run share.
 * Everything here is called on every worker, and fails never: shapes are checked (matmul_op.c). */
#ifndef ENGINE_MATMUL_MATMUL_RUN_H
#define ENGINE_MATMUL_MATMUL_RUN_H

#include "engine/matmul/matmul.h"

/* What the phases pass around: the product, and this worker's memory. */
struct engine_matmul_run {
    const struct engine_task *task;
    const struct engine_matmul *p;
    struct engine_route_facts facts;
    const struct engine_tile *tile; /* the facts' */
    struct engine_tensor *dst;
    char *shared; /* tables, columns, groups: the common copy, or this worker's own */
    char *own;    /* panels, rows */
    struct engine_matmul_header *header;
    struct engine_matmul_job *jobs;
    struct engine_matmul_column *columns;
};

/* Weight rows with the columns of an N-block that meet them: n_rows one behind the other; in a
 * product by parts, so many of each of gemv's streams, and then `rest` rows from row rest_at on. */
struct engine_matmul_block {
    enum engine_route route;
    const struct quant_type *type;
    const struct quant_kernel *kernel;
    const char *w;  /* the first row */
    const char *up; /* with a gate, as many rows of the other side; else NULL */
    int64_t row_bytes, n_rows;
    int64_t apart, rest, rest_at; /* in rows; rest_at from the first one */
    int64_t out_offset; /* bytes from the start of a row of dst to this block's first result */
    int64_t n, group;   /* columns; the first one's group */
    const struct engine_matmul_column *columns;
};

/* ---- matmul_pack.c ---- */

/* Row x_row of x to each activation form of the weights. */
void engine_matmul_convert(const struct engine_matmul_run *run, int64_t x_row);

/* The same row as gemv, and tiles of floats as they lie, read it. */
struct quant_act engine_matmul_column_act(const struct engine_matmul_run *run,
                                          const struct quant_act_form *form, int64_t x_row);

/* Makes a group of each form from its columns; `convert`: its rows of x, too, first. */
void engine_matmul_group_build(const struct engine_matmul_run *run, int64_t group, bool convert);

/* Where a group of floats begins, and where the K-block of a group of quantized columns does; the
 * same K-block of the next group follows. */
char *engine_matmul_floats_at(const struct engine_matmul_run *run,
                              const struct quant_act_form *form, int64_t group);
void *engine_matmul_k_block_at(const struct engine_matmul_run *run,
                               const struct quant_act_form *form, int64_t group,
                               struct engine_matmul_k_block k_block);

/* The tile of ENGINE_ROUTE_PACKED for a form of floats. */
const struct engine_tile_packed *engine_matmul_packed(const struct engine_matmul_run *run,
                                                      const struct quant_act_form *form);
int64_t engine_matmul_packed_steps(const struct engine_matmul_run *run);

/* A row of k elements to place i of those that lie in bundles of n from `to` on. */
void engine_matmul_pack_row(const struct engine_matmul_run *run,
                            const struct engine_tile_packed *packed, const struct quant_type *type,
                            const char *row, float fill, int n, int64_t i, float *to);

/* ---- matmul_block.c ---- */

/* Every result of the block, in place. */
void engine_matmul_block_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *c);

#endif
