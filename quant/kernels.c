/* quant/kernels.c: fills the kernel table for an instruction-set level, scalar first; after that
 * the table is only read. */
#include "quant/columns.h"
#include "quant/types.h"

void quant_kernels_fill(struct quant_kernels *kernels, enum cpu_level level)
{
    enum cpu_level path[CPU_LEVEL_COUNT];
    *kernels =
        (struct quant_kernels){.level = cpu_level_cap(level), .search = &quant_search_scalar};
    quant_overlay_act(&quant_act_scalar, kernels);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (type) quant_overlay_type(&type->scalar, &kernels->type[id]);
    }
    quant_columns_fill(kernels);
    const int n = cpu_path(kernels->level, path);
    for (int i = 1; i < n; i++) {
#if defined(__x86_64__)
        quant_x86_overlay(kernels, path[i]);
#elif defined(__aarch64__)
        quant_arm_overlay(kernels, path[i]);
#endif
    }
}

void quant_kernels_fill_for(struct quant_kernels *kernels, enum cpu_level level,
                            const struct cpu_family *family)
{
    quant_kernels_fill(kernels, level);
    kernels->prefetch = family->prefetch;
    kernels->dual_512 = family->dual_512 && cpu_has(kernels->level, CPU_AVX512);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act) continue;
        /* Kernels of super-blocks multiply rows one by one, those for ARM four at once. */
        if (type->act->layout == QUANT_LAYOUT_256 && !kernels->prefetch.streams &&
            !cpu_has(kernels->level, CPU_NEON))
            kernels->type[id].rows_per_step = 1;
        /* Kernels of blocks of 32 share the loaded rows between columns only if the rows of a step
         * are strided. */
        if (type->act->layout == QUANT_LAYOUT_32 && kernels->prefetch.adjacent_rows &&
            kernels->type[id].rows_per_step > 1)
            kernels->type[id].few_columns = 1;
    }
}

void quant_kernels_init(struct quant_kernels *kernels, enum cpu_level level)
{
    quant_kernels_fill_for(kernels, level, cpu_family());
}

void quant_encode(const struct quant_kernels *kernels, enum quant_id id, int64_t k, const float *in,
                  const float *importance, void *row)
{
    kernels->type[id].encode(kernels->search, k, in, importance, row);
}

void quant_gemv_steps(const struct quant_kernel *kernel, int64_t k, const struct quant_rows *rows,
                      int n_columns, const struct quant_act *a, float *const *out)
{
    const int few = rows->order == QUANT_ROWS_LISTED ? 1 : kernel->few_columns;
    if (rows->n == 0) return;
    for (int c = 0, some; c < n_columns; c += some) {
        some = n_columns - c < few ? n_columns - c : few;
        if (some > 1)
            kernel->gemv_few(k, rows, some, a + c, out + c);
        else
            kernel->gemv(k, rows, a + c, out[c]);
    }
}

void quant_gemv(const struct quant_kernel *kernel, struct cpu_prefetch prefetch, int64_t k,
                const void *w, size_t row_bytes, int64_t n_rows, int n_columns,
                const struct quant_act *a, float *const *out)
{
    const int64_t n = n_rows / kernel->rows_per_step;
    const struct quant_rows rows = {.w = w,
                                    .row_bytes = row_bytes,
                                    .n = n,
                                    .order = kernel->rows_per_step == 1 ? QUANT_ROWS_SINGLE
                                             : prefetch.adjacent_rows   ? QUANT_ROWS_ADJACENT
                                                                        : QUANT_ROWS_STRIDED,
                                    .stride = n,
                                    .prefetch = prefetch};
    quant_gemv_steps(kernel, k, &rows, n_columns, a, out);
    const int64_t done = n * kernel->rows_per_step;
    const struct quant_rows rest = {.w = (const char *)w + (size_t)done * row_bytes,
                                    .row_bytes = row_bytes,
                                    .n = n_rows - done,
                                    .order = QUANT_ROWS_SINGLE,
                                    .prefetch = prefetch};
    float *left[QUANT_FEW_COLUMNS];
    for (int c = 0; c < n_columns; c++) left[c] = out[c] + done;
    quant_gemv_steps(kernel, k, &rest, n_columns, a, left);
}
