/* quant/x86/lanes_x86.h: private to quant/: the loops of gemv of the float types around the step of
 * a type, for x86-64.
 *
 * A step multiplies four rows (quant/row_groups.h); with AVX-512, which needs half of the
 * instructions per row, adjacent rows are read consecutively (docs/performance.md). */
#ifndef QUANT_X86_LANES_X86_H
#define QUANT_X86_LANES_X86_H

#include "quant/float/lanes.h"
#include "quant/row_groups.h"
#include <immintrin.h>

/* The sizes of a type's step. */
struct quant_lanes_form {
    int step;       /* elements per step */
    size_t w_bytes; /* per element of the weights */
    size_t x_bytes; /* per element of the column */
};

CPU_TARGET_AVX2 QUANT_INLINE float quant_tree_avx2(__m256 v)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

CPU_TARGET_AVX512 QUANT_INLINE float quant_tree_avx512(__m512 v)
{
    return quant_tree_avx2(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}

/* Lanes 0 to 7 and 8 to 15. */
struct quant_lanes_avx2 {
    __m256 low, high;
};

/* Adds the products of the first n elements at w and x, n = step or less. */
typedef struct quant_lanes_avx2 quant_lanes_step_avx2(struct quant_lanes_avx2 lanes,
                                                      const uint8_t *w, const uint8_t *x, int n);
typedef __m512 quant_lanes_step_avx512(__m512 lanes, const uint8_t *w, const uint8_t *x, int n);

enum { QUANT_LANES_ROWS = 4 };

/* Constants of a gemv, for all groups of rows. */
struct quant_lanes_product {
    struct quant_lanes_form form;
    quant_lanes_step_avx2 *step;
    int64_t k;
    const void *column;
};

CPU_TARGET_AVX2 QUANT_INLINE void quant_lanes_rows_avx2(const void *product,
                                                        const struct quant_row_group *group,
                                                        const uint8_t *row, float *sum)
{
    const struct quant_lanes_product *p = product;
    const size_t w_step = (size_t)p->form.step * p->form.w_bytes;
    const size_t x_step = (size_t)p->form.step * p->form.x_bytes;
    const uint8_t *x = p->column;
    struct quant_lanes_avx2 lanes[QUANT_LANES_ROWS] = {0};
    int64_t left = p->k;
    size_t done = 0;
    for (; left >= p->form.step; left -= p->form.step, x += x_step, row += w_step, done += w_step) {
        quant_group_prefetch_adjacent(group, row, done, w_step);
        EACH (i, QUANT_LANES_ROWS) {
            const uint8_t *w = quant_group_row(group, row, (size_t)i, done);
            quant_group_prefetch_strided(group, w, w_step);
            quant_group_prefetch_listed(group, (size_t)i, done, w_step);
            lanes[i] = p->step(lanes[i], w, x, p->form.step);
        }
    }
    if (left > 0) {
        EACH (i, QUANT_LANES_ROWS)
            lanes[i] =
                p->step(lanes[i], quant_group_row(group, row, (size_t)i, done), x, (int)left);
    }
    EACH (i, QUANT_LANES_ROWS) sum[i] = quant_tree_avx2(_mm256_add_ps(lanes[i].low, lanes[i].high));
}

CPU_TARGET_AVX2 QUANT_INLINE void quant_lanes_gemv_avx2(struct quant_lanes_form form,
                                                        quant_lanes_step_avx2 *step, int64_t k,
                                                        const struct quant_rows *rows,
                                                        const void *column, float *out)
{
    const struct quant_lanes_product p = {form, step, k, column};
    quant_gemv_by_groups(QUANT_LANES_ROWS, rows->order == QUANT_ROWS_LISTED, quant_lanes_rows_avx2,
                         &p, rows, out);
}

/* Rows times n_columns columns (a constant after inlining), with AVX-512. */
struct quant_lanes_product_avx512 {
    struct quant_lanes_form form;
    quant_lanes_step_avx512 *step;
    int64_t k;
    int n_columns;
    const void *const *column;
};

CPU_TARGET_AVX512 QUANT_INLINE void quant_lanes_rows_avx512(const void *product,
                                                            const struct quant_row_group *group,
                                                            const uint8_t *row, float *sum)
{
    const struct quant_lanes_product_avx512 *p = product;
    const size_t w_step = (size_t)p->form.step * p->form.w_bytes;
    const size_t x_step = (size_t)p->form.step * p->form.x_bytes;
    const uint8_t *x[QUANT_FEW_COLUMNS];
    __m512 lanes[QUANT_FEW_COLUMNS][QUANT_LANES_ROWS];
    int64_t left = p->k;
    EACH (c, p->n_columns) {
        x[c] = p->column[c];
        EACH (i, group->n) lanes[c][i] = _mm512_setzero_ps();
    }
    size_t done = 0;
    for (; left >= p->form.step; left -= p->form.step, row += w_step, done += w_step) {
        EACH (i, group->n) {
            const uint8_t *w = quant_group_row(group, row, (size_t)i, done);
            if (done % 64 < w_step) quant_group_prefetch_listed(group, (size_t)i, done, 64);
            if (group->adjacent_rows) {
                quant_prefetch_translation((const char *)w + QUANT_SINGLE_DISTANCE, w_step);
                quant_prefetch_once((const char *)w + QUANT_SINGLE_DISTANCE, w_step);
            } else if ((uintptr_t)w % 64 < w_step) /* once for each line */
                quant_group_prefetch_strided(group, w, 64);
            EACH (c, p->n_columns) lanes[c][i] = p->step(lanes[c][i], w, x[c], p->form.step);
        }
        EACH (c, p->n_columns) x[c] += x_step;
    }
    EACH (c, p->n_columns) {
        EACH (i, group->n) {
            if (left > 0)
                lanes[c][i] = p->step(lanes[c][i], quant_group_row(group, row, (size_t)i, done),
                                      x[c], (int)left);
            sum[c * QUANT_MAX_ROWS_PER_STEP + i] = quant_tree_avx512(lanes[c][i]);
        }
    }
}

/* Adjacent rows are read one after another: a single stream. */
CPU_TARGET_AVX512 QUANT_INLINE void
quant_lanes_gemv_avx512(struct quant_lanes_form form, quant_lanes_step_avx512 *step, int64_t k,
                        const struct quant_rows *rows, int n_columns, const void *const *column,
                        float *const *out)
{
    const struct quant_lanes_product_avx512 p = {form, step, k, n_columns, column};
    struct quant_rows single = *rows;
    single.n *= QUANT_LANES_ROWS;
    if (rows->order == QUANT_ROWS_ADJACENT)
        quant_gemv_groups(1, n_columns, QUANT_ROWS_ADJACENT, quant_lanes_rows_avx512, &p, &single,
                          out);
    else if (n_columns == 1 && rows->order == QUANT_ROWS_LISTED)
        quant_gemv_groups(QUANT_LANES_ROWS, 1, QUANT_ROWS_LISTED, quant_lanes_rows_avx512, &p, rows,
                          out);
    else
        quant_gemv_groups(QUANT_LANES_ROWS, n_columns, QUANT_ROWS_STRIDED, quant_lanes_rows_avx512,
                          &p, rows, out);
}

/* Multiplies by 2 to QUANT_FEW_COLUMNS columns and reads each row once. */
CPU_TARGET_AVX512 QUANT_INLINE void
quant_lanes_gemv_few_avx512(struct quant_lanes_form form, quant_lanes_step_avx512 *step, int64_t k,
                            const struct quant_rows *rows, int n_columns, const void *const *column,
                            float *const *out)
{
    if (n_columns == 2)
        quant_lanes_gemv_avx512(form, step, k, rows, 2, column, out);
    else if (n_columns == 3)
        quant_lanes_gemv_avx512(form, step, k, rows, 3, column, out);
    else
        quant_lanes_gemv_avx512(form, step, k, rows, 4, column, out);
}

/* Blend mask of lanes `first` to first + 7: set in lanes below n. */
CPU_TARGET_AVX2 QUANT_INLINE __m256 quant_live_avx2(int n, int first)
{
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n - first), lane));
}

/* Eight elements of the weights as floats. */
typedef __m256 quant_lanes_load_avx2(const uint8_t *w);

/* The step of 16 elements of a type whose activations are F32. */
CPU_TARGET_AVX2 QUANT_INLINE struct quant_lanes_avx2
quant_lanes_fma_avx2(quant_lanes_load_avx2 *load, size_t w_bytes, struct quant_lanes_avx2 lanes,
                     const uint8_t *w, const uint8_t *x, int n)
{
    float w_tail[16] = {0}, x_tail[16] = {0};
    if (n < 16) {
        w = memcpy(w_tail, w, (size_t)n * w_bytes);
        x = memcpy(x_tail, x, (size_t)n * sizeof *x_tail);
    }
    __m256 low =
        _mm256_fmadd_ps(load(w), _mm256_loadu_ps((const float *)(const void *)x), lanes.low);
    __m256 high = _mm256_fmadd_ps(
        load(w + 8 * w_bytes), _mm256_loadu_ps((const float *)(const void *)(x + 32)), lanes.high);
    if (n < 16) {
        low = _mm256_blendv_ps(lanes.low, low, quant_live_avx2(n, 0));
        high = _mm256_blendv_ps(lanes.high, high, quant_live_avx2(n, 8));
    }
    return (struct quant_lanes_avx2){low, high};
}

/* Loads weights as floats; lanes outside `live` become zero. */
typedef __m512 quant_lanes_load_avx512(__mmask16 live, const uint8_t *w);
CPU_TARGET_AVX512 QUANT_INLINE __m512 quant_lanes_fma_avx512(quant_lanes_load_avx512 *load,
                                                             __m512 lanes, const uint8_t *w,
                                                             const uint8_t *x, int n)
{
    const __mmask16 live = (__mmask16)((1u << n) - 1);
    return _mm512_mask3_fmadd_ps(load(live, w), _mm512_maskz_loadu_ps(live, x), lanes, live);
}

/* gemv_avx2, gemv_avx512 and gemv_few_avx512 of a type whose activations are F32. */
#define QUANT_LANES_GEMV(LOAD_AVX2, LOAD_AVX512, ELEMENT_BYTES)                                    \
    static const struct quant_lanes_form lanes_form = {                                            \
        .step = 16, .w_bytes = (ELEMENT_BYTES), .x_bytes = sizeof(float)};                         \
    CPU_TARGET_AVX2 QUANT_INLINE struct quant_lanes_avx2 step_avx2(                                \
        struct quant_lanes_avx2 lanes, const uint8_t *w, const uint8_t *x, int n)                  \
    {                                                                                              \
        return quant_lanes_fma_avx2(LOAD_AVX2, (ELEMENT_BYTES), lanes, w, x, n);                   \
    }                                                                                              \
    CPU_TARGET_AVX2 static void gemv_avx2(int64_t k, const struct quant_rows *rows,                \
                                          const struct quant_act *a, float *out)                   \
    {                                                                                              \
        quant_lanes_gemv_avx2(lanes_form, step_avx2, k, rows, a->f32, out);                        \
    }                                                                                              \
    CPU_TARGET_AVX512 QUANT_INLINE __m512 step_avx512(__m512 lanes, const uint8_t *w,              \
                                                      const uint8_t *x, int n)                     \
    {                                                                                              \
        return quant_lanes_fma_avx512(LOAD_AVX512, lanes, w, x, n);                                \
    }                                                                                              \
    CPU_TARGET_AVX512 static void gemv_avx512(int64_t k, const struct quant_rows *rows,            \
                                              const struct quant_act *a, float *out)               \
    {                                                                                              \
        const void *column = a->f32;                                                               \
        quant_lanes_gemv_avx512(lanes_form, step_avx512, k, rows, 1, &column, &out);               \
    }                                                                                              \
    CPU_TARGET_AVX512 static void gemv_few_avx512(int64_t k, const struct quant_rows *rows,        \
                                                  int n_columns, const struct quant_act *a,        \
                                                  float *const *out)                               \
    {                                                                                              \
        const void *column[QUANT_FEW_COLUMNS] = {0};                                               \
        for (int c = 0; c < n_columns; c++) column[c] = a[c].f32;                                  \
        quant_lanes_gemv_few_avx512(lanes_form, step_avx512, k, rows, n_columns, column, out);     \
    }

#endif
