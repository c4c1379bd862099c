/* engine/gpu/gpu_product.h: what the rows of products share. Private to engine/gpu/. */
#pragma once

#include "engine/gpu/device/gpu_ops.h"
#include "engine/gpu/gpu_op.h"
#include "quant/gpu/gpu_quant.h"

enum {
    ENGINE_GPU_MAX_COLUMNS = 65535,   /* of a grid's second dimension */
    ENGINE_GPU_COLUMNS_AT_ONCE = 4096 /* of a start without matrices of their own */
};

/* n rows of floats, `bytes` apart. */
struct engine_gpu_lines {
    char *at;
    int64_t bytes, n;
};

/* Columns of k elements in a form other than floats, which are at `to`. */
struct quant_gpu_columns engine_gpu_columns_at(const struct quant_act_form *form, int64_t k,
                                               char *to);

/* Returns the rows of x as columns of k elements in a form: x itself, or converted to `to`. */
struct quant_gpu_columns engine_gpu_columns(struct engine_gpu *gpu, struct engine_gpu_lines x,
                                            int64_t k, const struct quant_act_form *form, char *to);

/* States the steps after the one that is started. */
static inline void engine_gpu_follow(struct engine_gpu *gpu, const struct engine_step *steps, int n)
{
    gpu->rest = steps;
    gpu->n_rest = n;
}

/* Weights of the next product that are to be loaded by more blocks of a grid, which it adds; those
 * that kernels before it load are not loaded again. None before products with several columns, and
 * with a grid of several rows. */
struct engine_gpu_ahead engine_gpu_load_ahead(struct engine_gpu *gpu, struct engine_gpu_grid *grid);

/* If the node that is started next multiplies the rows of x, converted to blocks of 32 or 256,
 * returns their columns, in scratch: who computes x converts it, too, and that node does not.
 * Otherwise none. */
struct engine_gpu_converted
engine_gpu_convert_for_next(struct engine_gpu *gpu, const struct engine_tensor *x, char *scratch);

/* Bytes of the columns of the rows of x, at most; a multiple of 64. */
int64_t engine_gpu_converted_bytes(const struct engine_tensor *x);

/* Whether n columns of the matrices of w are multiplied in tiles. */
bool engine_gpu_multiplies_tiles(const struct engine_tensor *w, int64_t n);

/* Columns sorted by matrices, with by.ids (struct quant_gpu_tile). */
struct engine_gpu_groups {
    struct quant_gpu_group *groups;
    int32_t *columns;
};

/* At most ENGINE_GPU_MAX_COLUMNS. out row c = the rows of the matrix of w that `by` names, times
 * column c; groups: read if they are multiplied in tiles. */
void engine_gpu_multiply(struct engine_gpu *gpu, const struct engine_tensor *w,
                         struct quant_gpu_columns columns, struct quant_gpu_matrices by,
                         const struct engine_gpu_groups *groups, struct engine_gpu_lines out);
