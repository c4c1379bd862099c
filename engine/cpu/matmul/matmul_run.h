/* engine/cpu/matmul/matmul_run.h: private to matmul: declarations that the phases of a run share.
 * Every function is called on every worker and cannot fail: matmul_op.c has checked the shapes. */
#pragma once

#include "engine/cpu/matmul/matmul.h"

/* The context of all phases: the product, and this worker's memory. */
struct engine_matmul_run {
    const struct engine_task *task;
    const struct engine_matmul *p;
    struct engine_route_facts facts;
    const struct engine_tile *tile; /* p->tile */
    struct engine_tensor *dst;
    char *shared; /* tables, columns, column panels: the common copy, or this worker's */
    char *local;  /* row panels, or rows */
    struct engine_matmul_header *header;
    struct engine_matmul_gemm *gemms;
    struct engine_matmul_column *columns;
};

/* An M-block by an N-block: n_rows consecutive rows. On route gemv-strided: rows r + i *
 * row_stride, i < rows_per_step, r < n_rows, and then `rest` rows from row rest_at on. */
struct engine_matmul_block {
    enum engine_route route;
    const struct quant_type *type;
    const struct quant_kernel *kernel;
    const char *w;  /* the first row */
    const char *up; /* the same rows of the up projection if there is a gate; otherwise NULL */
    int64_t row_bytes, n_rows;
    int64_t row_stride, rest, rest_at; /* in rows; rest_at relative to the first one */
    int64_t out_offset;   /* bytes from the start of a row of dst to the block's first result */
    int64_t n, col_panel; /* columns; their first column panel */
    const struct engine_matmul_column *columns;
};

/* ---- matmul_pack.c ---- */

/* Converts row x_row of x to every activation form of the node's weights. */
void engine_matmul_convert(const struct engine_matmul_run *run, int64_t x_row);

/* The converted row as gemv and route rows read it. */
struct quant_act engine_matmul_column_act(const struct engine_matmul_run *run,
                                          const struct quant_act_form *form, int64_t x_row);

/* Writes a column panel of each activation form; `convert`: converts its rows of x first. */
void engine_matmul_col_panel_build(const struct engine_matmul_run *run, int64_t col_panel,
                                   bool convert);

/* The first function returns the start of the bundle of floats with `column`, counted from the
 * first column of a column panel. The second returns the start of a K-block of a quantized column
 * panel; the same K-block of the next column panel follows it. */
char *engine_matmul_floats_at(const struct engine_matmul_run *run,
                              const struct quant_act_form *form, int64_t col_panel, int64_t column);
void *engine_matmul_k_block_at(const struct engine_matmul_run *run,
                               const struct quant_act_form *form, int64_t col_panel,
                               struct engine_matmul_k_block k_block);

/* The tile of ENGINE_ROUTE_PACKED for a form of floats. */
const struct engine_tile_packed *engine_matmul_packed(const struct engine_matmul_run *run,
                                                      const struct quant_act_form *form);
/* The number of steps of packed rows and columns. */
int64_t engine_matmul_packed_steps(const struct engine_matmul_run *run,
                                   const struct engine_tile_packed *packed);

/* Packs eight rows of k elements as the rows from `to` on of a bundle of n rows. */
void engine_matmul_pack_rows(const struct engine_matmul_run *run, const struct quant_type *type,
                             const char *const row[8], float fill, int n, float *to);

/* ---- route_*.c: every result of the block ---- */

void engine_route_active_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b);
/* On all routes of a product with `active`, after the block: clears the results that are zero. */
void engine_route_active_clear(const struct engine_matmul_run *run,
                               const struct engine_matmul_block *b);
/* The whole product from its copy by columns, if most elements of x are zero; false otherwise: the
 * routes of the rows compute it. Called when x is converted. */
bool engine_route_columns_run(const struct engine_matmul_run *run);
void engine_route_gemv_run(const struct engine_matmul_run *run,
                           const struct engine_matmul_block *b);
void engine_route_gemv_strided_run(const struct engine_matmul_run *run,
                                   const struct engine_matmul_block *b);
void engine_route_packed_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b);
void engine_route_rows_run(const struct engine_matmul_run *run,
                           const struct engine_matmul_block *b);
void engine_route_panels_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b); /* and panels-k */
