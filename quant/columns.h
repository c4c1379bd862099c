/* quant/columns.h: matrices by columns, for products with activations most of which are zero.
 *
 * A file stores a matrix by rows, so a zero activation saves no reading. By columns it saves its
 * column. The numbers are those of the rows in another order, and so are the bits of the products:
 *
 *   block b of 32 columns, b ascending:
 *     Q4_0   [32][n_rows / 64][32]  bytes: the codes of rows 64 g + i (low) and 64 g + 32 + i (high)
 *            [n_rows]               binary16: the scales of the rows' block b
 *     Q8_0   [32][n_rows]           codes
 *            [n_rows]               scales
 *     F16    [32][n_rows]           weights
 *
 * Why skipping zeros keeps the bits of quant/quant.h, for finite scales and weights, which
 * quant_columns_make checks:
 *
 *   Q4_0, Q8_0   A code of zero adds 0 to an integer sum. A block of zero codes whose d_a is a
 *                number has d_a = 0 (a block with d_a > 0 has a code of 127), so v is a zero of
 *                either sign; acc + v = acc, because acc begins with +0 and no sum of it is -0.
 *                A block whose d_a is NaN is not skipped.
 *   F16          fmaf(w, 0, lane) = lane, except that a lane of -0, the result of an underflow, may
 *                become +0. That can change only the sign of a lane that is zero, and so only the
 *                sign of a result that is zero: the caller computes such a result by rows. */
#pragma once

#include "quant/quant.h"

enum { QUANT_COLUMNS_ROWS = 64, QUANT_COLUMNS_BLOCK = 32 };

/* The bytes of a matrix [n_rows][k] by columns. False if its type has no such form, n_rows is no
 * multiple of QUANT_COLUMNS_ROWS or k none of QUANT_COLUMNS_BLOCK, or the size overflows. */
bool quant_columns_size(const struct quant_type *type, int64_t k, int64_t n_rows, uint64_t *bytes);

/* Writes rows first .. first + n - 1, both multiples of QUANT_COLUMNS_ROWS, of the matrix at w to
 * their places in `to`, which has the size above. False if a scale or weight is not finite. */
bool quant_columns_make(const struct quant_type *type, int64_t k, int64_t n_rows, const void *w,
                        int64_t row_bytes, int64_t first, int64_t n, void *to);

/* Whether `columns` is what quant_columns_make makes of the matrix, by a sample of at least 64
 * blocks: a copy of other weights of that shape differs nearly everywhere. */
bool quant_columns_check(const struct quant_type *type, int64_t k, int64_t n_rows, const void *w,
                         int64_t row_bytes, const void *columns);

/* Private to quant/: the bytes of a column and of the scales of a block. */
static inline int64_t quant_columns_column(enum quant_id id, int64_t n_rows)
{
    return id == QUANT_Q4_0 ? n_rows / 2 : id == QUANT_Q8_0 ? n_rows : 2 * n_rows;
}

static inline int64_t quant_columns_block(enum quant_id id, int64_t n_rows)
{
    const int64_t codes = QUANT_COLUMNS_BLOCK * quant_columns_column(id, n_rows);
    return codes + (id == QUANT_F16 ? 0 : 2 * n_rows);
}

/* Private to quant/: puts the scalar kernels into the table. */
void quant_columns_fill(struct quant_kernels *kernels);
