/* engine/gpu/device/gpu_groups.c: device code: the columns of each matrix, for products of experts
 * in tiles. A block of threads has a matrix. */
#include "engine/gpu/device/gpu_groups.h"

/* The matrix of column c, or by->n if there is none. */
static int64_t list_of(const struct quant_gpu_matrices *by, int64_t c)
{
    const int64_t matrix = quant_gpu_matrix_of(by, (uint32_t)c);
    return matrix >= 0 && matrix < by->n ? matrix : by->n;
}

/* Each thread has consecutive columns, so columns of a matrix remain in order. */
GPU_KERNEL(engine_gpu_group_columns, engine_gpu_group_columns)
{
    const int matrix = gpu_block();
    const int64_t per_thread = (p.n_columns + ENGINE_GPU_THREADS - 1) / ENGINE_GPU_THREADS,
                  first = gpu_thread() * per_thread,
                  end = first + per_thread < p.n_columns ? first + per_thread : p.n_columns;
    int32_t less = 0, equal = 0, n_less, n_equal;
    for (int64_t c = first; c < end; c++) {
        const int64_t of = list_of(&p.by, c);
        less += of < matrix;
        equal += of == matrix;
    }
    (void)gpu_sum_before(less, &n_less);
    int32_t at = n_less + gpu_sum_before(equal, &n_equal);
    for (int64_t c = first; c < end; c++) {
        if (list_of(&p.by, c) == matrix) p.columns[at++] = (int32_t)c;
    }
    const int64_t group = quant_gpu_first_group(matrix, n_less),
                  next = quant_gpu_first_group(matrix + 1, n_less + n_equal);
    for (int64_t g = group + gpu_thread(); g < next; g += ENGINE_GPU_THREADS) {
        const int32_t before = (int32_t)(g - group) * QUANT_GPU_TILE_COLUMNS;
        p.groups[g] = (struct quant_gpu_group){matrix, n_less + before, n_equal - before};
    }
}
