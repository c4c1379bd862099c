/* quant/x86/block32_single_row.h: private to quant/: gemv of types with blocks of 32, with
 * AVX-512, row by row.
 *
 * On processors that read a single stream fastest, eight adjacent rows are read in the order of the
 * file, sixteen blocks per step. The values v of the eight rows are stored until all are computed;
 * then they are added as in a step on interleaved rows (quant/x86/block32_avx512.h), which also
 * multiplies the blocks after the last sixteen.
 *
 * A step on a single row is one on interleaved rows in which "row" j is the pair of blocks 2j and
 * 2j + 1. Its sums, by 128-bit lanes, elements from 3 down to 0:
 *
 *     lane      3              2             1            0
 *     block     15 13 11 9     14 12 10 8    7 5 3 1      6 4 2 0 */
#pragma once

#include "quant/x86/block32_avx512.h"

/* Blocks per step, and the maximum of blocks per row and part: v of eight rows take 16 KB. */
enum { QUANT_ROW_BLOCKS = 16, QUANT_ROW_MAX_BLOCKS = 512 };

/* A part of all rows: n blocks, a multiple of 16, from block `first` on. */
struct quant_row_part {
    int64_t first, n;
    int64_t rest; /* in the last part: remaining blocks, for interleaved steps */
    bool last;
    struct quant_row_column column[QUANT_ROW_MAX_BLOCKS / QUANT_ROW_BLOCKS];
};

/* Copies blocks b .. b + 15 of the column. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_row_column_fill(struct quant_form32 form,
                                                          const struct quant_act *a, int64_t b,
                                                          struct quant_row_column *to)
{
    const __m512i order = _mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m256i *sum = (const __m256i *)(a->sum + b);
    const __m512i less = _mm512_mullo_epi32(_mm512_cvtepi16_epi32(_mm256_loadu_si256(sum)),
                                            _mm512_set1_epi32(-form.offset));
    for (int j = 0; j < 4; j++) {
        const __m512i pair = _mm512_loadu_si512(a->q + 32 * b + 64 * j);
        const __m512i later = _mm512_loadu_si512(a->q + 32 * b + 64 * (j + 4));
        if (form.bytes) {
            _mm512_store_si512(to->q[j], pair);
            _mm512_store_si512(to->q[j + 4], later);
        } else {
            _mm512_store_si512(to->q[2 * j], _mm512_shuffle_i64x2(pair, later, 0x88));
            _mm512_store_si512(to->q[2 * j + 1], _mm512_shuffle_i64x2(pair, later, 0xdd));
        }
    }
    _mm512_store_ps(to->d, _mm512_permutexvar_ps(order, _mm512_loadu_ps(a->d + b)));
    _mm512_store_ps(to->s, _mm512_permutexvar_ps(order, _mm512_loadu_ps(a->s + b)));
    _mm512_store_si512(to->less, _mm512_permutexvar_epi32(order, less));
}

/* Computes v of sixteen blocks. inside: 64 bytes may be read from the start of the last two. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_step_single_row(const struct quant_product512 *p,
                                                          const uint8_t *at,
                                                          const struct quant_row_column *single_row,
                                                          bool inside, float *v)
{
    /* Types with bytes are limited by memory bandwidth only: they prefetch a line after the load of
     * each pair of blocks, instead of all lines of a step at once. */
    const bool by_line = p->form.bytes;
    const size_t bytes = QUANT_ROW_BLOCKS * p->form.block_bytes;
    const char *ahead = (const char *)at + QUANT_SINGLE_DISTANCE;
    const struct quant_step_rows pairs = {
        .at = at,
        .stride = 2 * p->form.block_bytes,
        .two = true,
        .inside = inside,
        .ahead = by_line ? quant_line_from(ahead) : NULL,
    };
    const struct quant_step_column column = {.single_row = single_row};
    if (!by_line) quant_prefetch_lines(ahead, bytes, single_row);
    __m512i heads, isum;
    quant_step_sums(p->form, &pairs, 1, &column, &heads, &isum);
    if (by_line) quant_prefetch_odd_line(ahead, bytes, single_row);
    if (p->form.offset != 0) isum = _mm512_add_epi32(isum, _mm512_load_si512(single_row->less));
    _mm512_store_ps(v, quant_step_values(p->form, isum, heads, _mm512_load_ps(single_row->d),
                                         _mm512_load_ps(single_row->s)));
}

/* Computes v of a part of a row. end: the part ends at the end of the last row. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_row_values(const struct quant_product512 *p,
                                                     const struct quant_row_part *part,
                                                     const uint8_t *at, bool end, float *v)
{
    const size_t bytes = QUANT_ROW_BLOCKS * p->form.block_bytes;
    const size_t with_rest = bytes + (size_t)part->rest * p->form.block_bytes;
    const struct quant_row_column *column = part->column;
    /* Loads of a step end less than two blocks after it. */
    const int64_t outside = end && part->last && part->rest < 2 ? QUANT_ROW_BLOCKS : 0;
    int64_t i = 0;
    /* For a long row at once this would be slower (docs/performance.md). */
    for (; i < part->n - outside; i += QUANT_ROW_BLOCKS, at += bytes) {
        quant_prefetch_translation((const char *)at + QUANT_SINGLE_DISTANCE, with_rest);
        quant_step_single_row(p, at, column++, true, v + i);
    }
    for (; i < part->n; i += QUANT_ROW_BLOCKS, at += bytes)
        quant_step_single_row(p, at, column++, false, v + i);
    quant_prefetch_lines((const char *)at + QUANT_SINGLE_DISTANCE,
                         (size_t)part->rest * p->form.block_bytes, part);
}

/* acc + v of eight blocks in their order; those of row r are at v + r * stride. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 quant_row_values_add(__m512 acc, const float *v,
                                                           size_t stride)
{
    __m512 row[4], two[4];
    for (size_t j = 0; j < 4; j++)
        row[j] = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(v + j * stride)),
                                    _mm256_loadu_ps(v + (j + 4) * stride), 1);
    for (int j = 0; j < 4; j += 2) {
        two[j] = _mm512_unpacklo_ps(row[j], row[j + 1]);
        two[j + 1] = _mm512_unpackhi_ps(row[j], row[j + 1]);
    }
    acc = quant_step_add(acc, _mm512_shuffle_ps(two[0], two[2], 0x44), true);
    acc = quant_step_add(acc, _mm512_shuffle_ps(two[0], two[2], 0xee), true);
    acc = quant_step_add(acc, _mm512_shuffle_ps(two[1], two[3], 0x44), true);
    return quant_step_add(acc, _mm512_shuffle_ps(two[1], two[3], 0xee), true);
}

/* Multiplies a part of all rows. The values of eight rows are added while those of the next eight
 * are computed, an eighth after each row: the processor overlaps so short a chain of additions with
 * the products of the next row, but not one of all values, while memory would be idle. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_gemv_row_part(const struct quant_product512 *p,
                                                        const struct quant_row_part *part,
                                                        const struct quant_rows *rows, float *out)
{
    enum { ROWS = QUANT_GEMV_ROWS };
    const struct quant_row_group group = {.n = ROWS, .row_stride = rows->row_bytes};
    const int64_t share = (part->n / ROWS + 7) / 8 * 8;
    _Alignas(64) float v[2][ROWS * QUANT_ROW_MAX_BLOCKS];
    const uint8_t *row = rows->w;
    const size_t eight = ROWS * rows->row_bytes;
    for (int64_t g = 0; g <= rows->n; g++, row += eight) {
        const uint8_t *at = row + (size_t)part->first * p->form.block_bytes;
        float *sum = out + ROWS * (g - 1); /* of the last eight rows */
        __m512 acc = _mm512_setzero_ps();
        if (g > 0 && part->first > 0) acc = quant_load_eight(sum);
        for (int r = 0; r < ROWS; r++, at += rows->row_bytes) {
            if (g < rows->n)
                quant_row_values(p, part, at, g + 1 == rows->n && r + 1 == ROWS,
                                 v[g % 2] + r * part->n);
            for (int64_t i = r * share; g > 0 && i < (r + 1) * share && i < part->n; i += 8)
                acc = quant_row_values_add(acc, v[(g - 1) % 2] + i, (size_t)part->n);
        }
        if (g == 0) continue;
        if (part->last)
            quant_blocks_interleaved(p, &group, row - eight, part->first + part->n, false, &acc);
        quant_store_eight(acc, sum);
    }
}

CPU_TARGET_AVX512 QUANT_INLINE void
quant_gemv_single_rows(const struct quant_product512 *p, const struct quant_rows *rows, float *out)
{
    const int64_t whole = p->n_blocks / QUANT_ROW_BLOCKS * QUANT_ROW_BLOCKS;
    struct quant_row_part part;
    for (part.first = 0, part.last = false; !part.last; part.first += part.n) {
        part.n =
            whole - part.first < QUANT_ROW_MAX_BLOCKS ? whole - part.first : QUANT_ROW_MAX_BLOCKS;
        part.last = part.first + part.n == whole;
        part.rest = part.last ? p->n_blocks - whole : 0;
        for (int64_t i = 0; i < part.n; i += QUANT_ROW_BLOCKS)
            quant_row_column_fill(p->form, p->a, part.first + i,
                                  part.column + i / QUANT_ROW_BLOCKS);
        quant_gemv_row_part(p, &part, rows, out);
    }
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_gemv32_avx512(struct quant_form32 form, bool listed,
                                                        int64_t k, const struct quant_rows *rows,
                                                        const struct quant_act *a, float *out)
{
    const struct quant_product512 product = {form, k / 32, a, 1};
    /* Eight rows that together are smaller than a page form a single stream in any order. Of odd
     * blocks a step on a single row is not faster. */
    if (!listed && rows->order == QUANT_ROWS_ADJACENT && form.block_bytes % 2 == 0 &&
        QUANT_GEMV_ROWS * rows->row_bytes > QUANT_PAGE)
        quant_gemv_single_rows(&product, rows, out);
    else
        quant_gemv_by_groups(QUANT_GEMV_ROWS, listed, quant_eight_rows_avx512, &product, rows, out);
}

typedef void quant_gemv32_fn(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                             float *out);

/* Multiplies the rows by 2 to 4 columns; strided rows are read only once, others by `gemv`, the
 * type's. n_columns is a constant in each of the inlined copies. */
CPU_TARGET_AVX512 QUANT_INLINE void
quant_gemv32_few_avx512(struct quant_form32 form, quant_gemv32_fn *gemv, int64_t k,
                        const struct quant_rows *rows, int n_columns, const struct quant_act *a,
                        float *const *out)
{
    if (form.block_bytes % 2 != 0 || rows->order == QUANT_ROWS_ADJACENT) {
        for (int c = 0; c < n_columns; c++) gemv(k, rows, a + c, out[c]);
        return;
    }
    struct quant_product512 product = {form, k / 32, a, 2};
    if (n_columns == 2) {
        quant_gemv_groups(QUANT_GEMV_ROWS, 2, QUANT_ROWS_STRIDED, quant_eight_rows_avx512, &product,
                          rows, out);
        return;
    }
    product.n_columns = 3;
    if (n_columns == 3) {
        quant_gemv_groups(QUANT_GEMV_ROWS, 3, QUANT_ROWS_STRIDED, quant_eight_rows_avx512, &product,
                          rows, out);
        return;
    }
    product.n_columns = 4;
    quant_gemv_groups(QUANT_GEMV_ROWS, 4, QUANT_ROWS_STRIDED, quant_eight_rows_avx512, &product,
                      rows, out);
}
