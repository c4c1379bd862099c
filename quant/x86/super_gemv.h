/* quant/x86/super_gemv.h: private to quant/: the loop over rows of the AVX-512 gemv of
 * super-blocks, and the macros that define the gemv of a type and the members of its rows. */
#pragma once

#include "quant/x86/super_x86.h"

/* A part of the matrix: n super-blocks (at most SUPER_PART) of each row. If these are whole rows
 * whose length is not a multiple of a step, up to four rows form a group, so that a step may span
 * two rows. */
struct super_part {
    const uint8_t *w;
    int64_t n, n_rows;
    int64_t group; /* super-blocks */
    size_t skip;   /* bytes from the end of a group to the next */
};

SUPER_AVX512 struct super_part super_part_of(size_t bytes, int64_t n, const uint8_t *w,
                                             size_t row_bytes, int64_t n_rows)
{
    int64_t rows = 1;
    if ((size_t)n * bytes == row_bytes)
        while (rows < SUPER_STEP && rows * n % SUPER_STEP != 0 && 2 * rows * n <= SUPER_PART)
            rows *= 2;
    return (struct super_part){.w = w,
                               .n = n,
                               .n_rows = n_rows,
                               .group = rows * n,
                               .skip = (size_t)rows * (row_bytes - (size_t)n * bytes)};
}

/* Fills a column from super-block b on, for a group; the n columns of a step are adjacent. The last
 * super-block is repeated to fill the group. */
SUPER_AVX512 void super_columns_fill(int n, super_column_fill *prepare,
                                     const struct super_part *part, const struct quant_act *a,
                                     int64_t b, struct super_column *column)
{
    const int64_t end = b + part->n;
    int64_t at = b - 1;
    for (int64_t i = 0; i < part->group; i += SUPER_STEP, column += n) {
        const int8_t *q[SUPER_STEP];
        const int16_t *sum[SUPER_STEP];
        for (int64_t j = 0; j < SUPER_STEP; j++) {
            if (i + j < part->group) at = at + 1 < end ? at + 1 : b;
            q[j] = a->q + SUPER_LEN * at;
            sum[j] = a->sum + 16 * at;
            column->d[j] = a->d[at];
        }
        prepare(q, sum, column);
    }
}

/* The values of some rows of n super-blocks are stored, then added: additions within the loop over
 * steps, with branches for the ends of rows, take a fifth of the time of Q4_K. */
enum { SUPER_VALUES = 4 * SUPER_PART };

/* Adds n values of each of the rows to its sum, in order. */
void quant_x86_super_sum(int64_t n, int64_t n_rows, const float *value, float *out);

/* Prefetches data of the same stream that later steps read; n: super-blocks of this step. */
SUPER_AVX512 void super_step_prefetch(size_t super_block, const uint8_t *step, int n,
                                      struct cpu_prefetch policy)
{
    const char *at = (const char *)step;
    const size_t bytes = (size_t)n * super_block;
    if (policy.streams) {
        quant_prefetch(at + SUPER_L1_DISTANCE, SUPER_STEP * super_block);
        quant_prefetch_to_l1(at + SUPER_NEAR_DISTANCE, SUPER_STEP * super_block);
        return;
    }
    /* The hint moves this code out of the loop; in the loop it costs Q6_K 4 % on other processors.
     */
    if (__builtin_expect(policy.to_l1, false)) {
        quant_prefetch_translation(at + QUANT_SINGLE_DISTANCE, bytes);
        quant_prefetch_once(at + QUANT_SINGLE_DISTANCE, bytes);
        return;
    }
    const size_t at_once = SUPER_STEP * super_block < 768 ? 1024 : 512; /* measured: 3 % each */
    quant_prefetch_stream(at + SUPER_DISTANCE, bytes, at_once);
    /* The processor drops some requests, so this prefetches again at a smaller distance. */
    quant_prefetch(at + SUPER_L1_DISTANCE, SUPER_STEP * super_block);
}

/* Adds the products of a part of each stream, or of each listed row, with n columns; a group is
 * then one row, and the same bytes of a later one are prefetched. The values of a step of a single
 * stream are computed after the products of the next step have been started, which makes Q4_K a
 * tenth faster. */
SUPER_AVX512 void super_gemv_part(int n, int n_streams, bool listed,
                                  const struct super_layout *layout, super_step_products *products,
                                  const struct quant_rows *rows, const struct super_part *part,
                                  const struct super_column *column, float *const *out)
{
    const size_t bytes = layout->block_bytes;
    const int64_t n_at_once = SUPER_VALUES / part->n / SUPER_STEP * SUPER_STEP; /* whole groups */
    const uint8_t *at = part->w, *row = listed ? rows->list[0] : rows->w;
    const size_t offset = (size_t)(at - row); /* in a row */
    float value[SUPER_STREAMS][SUPER_COLUMNS][SUPER_VALUES + SUPER_STEP];
    const bool delayed = n_streams == 1;
    struct super_step last[SUPER_COLUMNS] = {0};
    int64_t i = 0; /* in the group */
    for (int64_t r = 0; r < part->n_rows; r += n_at_once) {
        const int64_t n_rows = part->n_rows - r < n_at_once ? part->n_rows - r : n_at_once;
        const int64_t n_values = n_rows * part->n;
        int64_t listed_row = r, done = -1; /* the first value of the last step */
        for (int64_t j = 0, n_step; j < n_values; j += n_step) {
            const struct super_column *x = column + i / SUPER_STEP * n;
            const int64_t rest = part->group - i < n_values - j ? part->group - i : n_values - j;
            n_step = rest < SUPER_STEP ? rest : SUPER_STEP;
            for (int s = 0; s < n_streams; s++) {
                struct super_step step[SUPER_COLUMNS];
                const uint8_t *from = at + (size_t)(s * rows->stride) * rows->row_bytes;
                const uint8_t *block[SUPER_STEP] = {from};
                if (listed)
                    quant_prefetch((const char *)super_listed_ahead(rows->list + listed_row,
                                                                    part->n_rows - listed_row) +
                                       (at - row),
                                   (size_t)n_step * bytes);
                else
                    super_step_prefetch(bytes, from, (int)n_step, rows->prefetch);
                EACH (b, SUPER_STEP)
                    block[b] = from + (size_t)(b < n_step ? b : n_step - 1) * bytes;
                EACH (c, n) step[c].da = _mm_load_ps(x[c].d);
                products(n, block, x, step);
                if (layout->header_bytes) {
                    const uint8_t *of = row + (size_t)(s * rows->stride) * rows->row_bytes;
                    EACH (c, n) step[c].d = _mm_castps_si128(_mm_set1_ps(super_row_d(layout, of)));
                }
                if (!delayed || done >= 0)
                    EACH (c, n)
                        _mm_storeu_ps(value[s][c] + (delayed ? done : j),
                                      super_step_values(layout, delayed ? &last[c] : &step[c]));
                EACH (c, n) last[c] = step[c];
            }
            done = j;
            i += SUPER_STEP;
            at += (size_t)n_step * bytes;
            if (i >= part->group) {
                i = 0;
                at += part->skip;
                row += rows->row_bytes; /* the next: with a header no group has several rows */
                if (listed && ++listed_row < part->n_rows) {
                    row = rows->list[listed_row];
                    at = row + offset;
                }
            }
        }
        for (int s = 0; s < n_streams; s++)
            EACH (c, n) {
                if (delayed) _mm_storeu_ps(value[s][c] + done, super_step_values(layout, &last[c]));
                quant_x86_super_sum(part->n, n_rows, value[s][c], out[c] + s * rows->stride + r);
            }
    }
}

/* Multiplies all rows by n_columns columns, in steps of rows_per_step rows; both are constants
 * after inlining. The rows of a step are read as streams if they are strided. */
SUPER_AVX512 void super_gemv_steps(int n_columns, int rows_per_step,
                                   const struct super_layout *layout, super_column_fill *prepare,
                                   super_step_products *products, int64_t k,
                                   const struct quant_rows *rows, const struct quant_act *a,
                                   float *const *out)
{
    struct super_column column[SUPER_COLUMNS * SUPER_PART / SUPER_STEP];
    const bool listed = n_columns == 1 && rows->order == QUANT_ROWS_LISTED;
    const int n_streams = rows->order == QUANT_ROWS_STRIDED ? rows_per_step : 1;
    const int64_t n_rows = rows->n * (rows->order == QUANT_ROWS_ADJACENT ? rows_per_step : 1);
    for (int s = 0; s < n_streams; s++)
        EACH (c, n_columns) memset(out[c] + s * rows->stride, 0, (size_t)n_rows * sizeof(float));
    for (int64_t b = 0; b < k / SUPER_LEN; b += SUPER_PART) {
        int64_t n = k / SUPER_LEN - b < SUPER_PART ? k / SUPER_LEN - b : SUPER_PART;
        const uint8_t *from = super_block_at(layout, listed ? rows->list[0] : rows->w, b);
        struct super_part part = super_part_of(layout->block_bytes, n, from,
                                               listed ? SIZE_MAX : rows->row_bytes, n_rows);
        EACH (c, n_columns) super_columns_fill(n_columns, prepare, &part, a + c, b, column + c);
        if (listed)
            super_gemv_part(1, 1, true, layout, products, rows, &part, column, out);
        else if (n_streams > 1)
            super_gemv_part(n_columns, rows_per_step, false, layout, products, rows, &part, column,
                            out);
        else
            super_gemv_part(n_columns, 1, false, layout, products, rows, &part, column, out);
    }
}

/* Defines the gemv of a type for AVX2 and AVX-512 from its functions. */
#define SUPER_GEMV(NAME, SUMS, HEADS, ISUM, PREPARE, PRODUCTS)                                     \
    CPU_TARGET_AVX2 static void NAME##_gemv_avx2(int64_t k, const struct quant_rows *rows,         \
                                                 const struct quant_act *a, float *out)            \
    {                                                                                              \
        const struct super_kernel kernel = {SUMS, HEADS, ISUM, 1.0f};                              \
        super_gemv(&NAME##_layout, &kernel, k, rows, a, out);                                      \
    }                                                                                              \
    QUANT_GEMV_AT(                                                                                 \
        NAME##_gemv_avx512, CPU_TARGET_AVX512,                                                     \
        super_gemv_steps(1, SUPER_STREAMS, &NAME##_layout, PREPARE, PRODUCTS, k, rows, a, &out))

/* Defines gemv_few of a type whose PRODUCTS shares codes between two columns. */
#define SUPER_GEMV_PAIR(NAME, PREPARE, PRODUCTS)                                                   \
    CPU_TARGET_AVX512 static void NAME##_gemv_few_avx512(int64_t k, const struct quant_rows *rows, \
                                                         int n_columns, const struct quant_act *a, \
                                                         float *const *out)                        \
    {                                                                                              \
        (void)n_columns;                                                                           \
        super_gemv_steps(2, SUPER_STREAMS, &NAME##_layout, PREPARE, PRODUCTS, k, rows, a, out);    \
    }

/* Members of the rows of levels. */
#define SUPER_GEMV_MEMBERS(NAME)                                                                   \
    .gemv = NAME##_gemv_avx512, .gemv_few = NAME##_gemv_few_avx512, .few_columns = 2,              \
    .reads_lists = true, .rows_per_step = SUPER_STREAMS
#define SUPER_MEMBERS_AVX2(NAME)                                                                   \
    .decode = NAME##_decode_avx2, .unpack = NAME##_unpack_avx2, .panel = &NAME##_layout.panel,     \
    .gemv = NAME##_gemv_avx2, .reads_lists = true
#define SUPER_MEMBERS_AVX512(NAME)                                                                 \
    .unpack = NAME##_unpack_avx512, .panel = &NAME##_layout.panel, SUPER_GEMV_MEMBERS(NAME)
