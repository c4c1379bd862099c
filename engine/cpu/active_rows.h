/* engine/cpu/active_rows.h: lists of the rows of a matrix that some column's activation needs,
 * since it is not zero. Private to engine/cpu. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether one of x[0][row] .. x[n - 1][row] is not zero; NaN is not. By integers, because
 * comparisons of floats take three times as long. */
static inline bool engine_row_is_active(const float *const *x, int64_t n, int64_t row)
{
    uint32_t all = 0, bits;
    for (int64_t i = 0; i < n; i++) {
        memcpy(&bits, x[i] + row, sizeof bits);
        all |= bits;
    }
    return all << 1 != 0; /* all bits but the signs */
}

/* Writes the next active rows of n_rows from *row on, at most `most`, to at[], which has room for
 * `most`; returns their number, 0 after the last. */
static inline int engine_active_rows_next(const float *const *x, int64_t n, int64_t n_rows,
                                          int most, int64_t *row, int64_t *at)
{
    int count = 0;
    int64_t r = *row; /* without a branch, which would be mispredicted */
    for (; r < n_rows && count < most; r++) {
        at[count] = r;
        count += engine_row_is_active(x, n, r);
    }
    *row = r;
    return count;
}
