/* quant/row_groups.h: private to quant/: gemv with several rows per step.
 *
 * The rows of a step are strided or adjacent (enum quant_row_order). Some processors read several
 * long streams faster than one; on these the engine uses the largest possible stride. On others a
 * single stream is faster, and the rows are adjacent (docs/performance.md).
 *
 *     strided, stride n           adjacent
 *     step r:  r, r+n, r+2n, ..   step r:  r*m, r*m+1, .., r*m+m-1        m rows per step
 *
 * Listed rows are any m addresses. A single row is m strided rows with stride 0. */
#ifndef QUANT_ROW_GROUPS_H
#define QUANT_ROW_GROUPS_H

#include "quant/stream.h"
#include "quant/types.h"

/* The prefetch distance of adjacent rows is this plus the size of a group, which is a few KB. */
enum { QUANT_ADJACENT_DISTANCE = 4096 };

/* The rows of a step, and how they are prefetched. `n` and `adjacent_rows` are constants in an
 * inlined kernel, which has no branch on them at run time. */
struct quant_row_group {
    int n;
    bool adjacent_rows;
    size_t row_stride; /* bytes from row to row */
    size_t distance;   /* prefetch distance in bytes within each row, if rows are strided */
    /* Listed rows of this step and of the next one; NULL otherwise, a constant, too. */
    const uint8_t *const *list, *const *next;
};

/* Row i of a step, `done` bytes from its start; `at` is there in row 0. */
QUANT_INLINE const uint8_t *quant_group_row(const struct quant_row_group *group, const uint8_t *at,
                                            size_t i, size_t done)
{
    return group->list ? group->list[i] + done : at + i * group->row_stride;
}

/* Called for each of `bytes` of row i of a step, `done` bytes from its start, if rows are listed:
 * prefetches the same bytes of a row of the next step. */
QUANT_INLINE void quant_group_prefetch_listed(const struct quant_row_group *group, size_t i,
                                              size_t done, size_t bytes)
{
    if (group->list) quant_prefetch((const char *)group->next[i] + done, bytes);
}

/* Called for each row of a step that reads `bytes` at `at`: prefetches later data of a strided row,
 * at least one line. */
QUANT_INLINE void quant_group_prefetch_strided(const struct quant_row_group *group,
                                               const uint8_t *at, size_t bytes)
{
    if (!group->adjacent_rows && !group->list)
        quant_prefetch((const char *)at + group->distance, bytes);
}

/* Called once per step with adjacent rows; `at` is in the first row, `done` bytes from its start.
 * Prefetches as many bytes of the next group as the step reads of this one, in address order. */
QUANT_INLINE void quant_group_prefetch_adjacent(const struct quant_row_group *group,
                                                const uint8_t *at, size_t done, size_t bytes)
{
    const size_t n = (size_t)group->n;
    const uint8_t *next = at + n * group->row_stride + (n - 1) * done;
    const char *ahead = (const char *)next + QUANT_ADJACENT_DISTANCE;
    if (!group->adjacent_rows) return;
    quant_prefetch_translation(ahead, n * bytes);
    quant_prefetch_once(ahead, n * bytes);
}

/* Computes the sums of a group of rows that begins at `row`; those of the next column follow
 * QUANT_MAX_ROWS_PER_STEP floats later. */
typedef void quant_group_sums(const void *product, const struct quant_row_group *group,
                              const uint8_t *row, float *sum);

/* Calls `sums` for each step and stores the sums of its n rows. `order`, a constant, is that of
 * *rows; strided rows may be single ones. */
QUANT_INLINE void quant_gemv_groups(int n, int n_columns, enum quant_row_order order,
                                    quant_group_sums *sums, const void *product,
                                    const struct quant_rows *rows, float *const *out)
{
    const bool listed = order == QUANT_ROWS_LISTED, adjacent_rows = order == QUANT_ROWS_ADJACENT;
    const int64_t stride = listed || adjacent_rows             ? 1
                           : rows->order == QUANT_ROWS_STRIDED ? rows->stride
                                                               : 0,
                  step = listed || adjacent_rows ? n : 1, n_steps = listed ? rows->n / n : rows->n;
    struct quant_row_group group = {.n = n,
                                    .adjacent_rows = adjacent_rows,
                                    .row_stride = (size_t)stride * rows->row_bytes,
                                    .distance = rows->prefetch.distance};
    const uint8_t *row = rows->w;
    for (int64_t r = 0; r < n_steps; r++, row += (size_t)step * rows->row_bytes) {
        float sum[QUANT_FEW_COLUMNS][QUANT_MAX_ROWS_PER_STEP];
        if (listed) {
            group.list = (const uint8_t *const *)rows->list + r * n;
            group.next = r + 1 < n_steps ? group.list + n : group.list;
            row = group.list[0];
        }
        sums(product, &group, row, sum[0]);
        for (int c = 0; c < n_columns; c++)
            for (int64_t i = 0; i < n; i++) out[c][r * step + i * stride] = sum[c][i];
    }
}

/* gemv with n rows per step. `listed`: the order of *rows is QUANT_ROWS_LISTED; a constant where
 * listed rows have a function of their own. */
QUANT_INLINE void quant_gemv_by_groups(int n, bool listed, quant_group_sums *sums,
                                       const void *product, const struct quant_rows *rows,
                                       float *out)
{
    if (listed)
        quant_gemv_groups(n, 1, QUANT_ROWS_LISTED, sums, product, rows, &out);
    else if (rows->order == QUANT_ROWS_ADJACENT)
        quant_gemv_groups(n, 1, QUANT_ROWS_ADJACENT, sums, product, rows, &out);
    else
        quant_gemv_groups(n, 1, QUANT_ROWS_STRIDED, sums, product, rows, &out);
}

#endif
