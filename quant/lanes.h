/* quant/lanes.h: private to quant/: what the float types (F32, F16, BF16) share: the tree that ends
 * their sum of 16 lanes, and the vector shells of gemv around a type's own step.
 *
 * Two rows go side by side, to hide the latency of the fma; memory sees one linear stream by the
 * prefetch. (Four rows, or twice the distance, read F16 from memory a tenth slower.) */
#ifndef QUANT_LANES_H
#define QUANT_LANES_H

#include "quant/block32_x86.h"

static inline float quant_lanes_tree(float lane[16])
{
    for (int h = 8; h >= 1; h /= 2)
        for (int i = 0; i < h; i++) lane[i] += lane[i + h];
    return lane[0];
}

#if defined(__x86_64__)

enum { QUANT_LANES_AHEAD = 4096 }; /* bytes between a read and its prefetch */

/* The sizes of a type's step. */
struct quant_lanes_form {
    int step;       /* elements per step */
    size_t w_bytes; /* per element of the weights */
    size_t x_bytes; /* per element of the column */
};

QUANT_TARGET_AVX2 QUANT_INLINE float quant_tree_avx2(__m256 v)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

/* Lanes 0 to 7 and 8 to 15. */
struct quant_lanes_avx2 {
    __m256 low, high;
};

/* Adds the products of the first n elements at w and x, n = step or less. */
typedef struct quant_lanes_avx2 quant_lanes_step_avx2(struct quant_lanes_avx2 lanes,
                                                      const uint8_t *w, const uint8_t *x, int n);
typedef __m512 quant_lanes_step_avx512(__m512 lanes, const uint8_t *w, const uint8_t *x, int n);

QUANT_TARGET_AVX2 QUANT_INLINE void quant_lanes_gemv_avx2(struct quant_lanes_form form,
                                                          quant_lanes_step_avx2 *step, int64_t k,
                                                          const void *w, size_t row_bytes,
                                                          int64_t n_rows, const void *column,
                                                          float *out)
{
    const size_t w_step = (size_t)form.step * form.w_bytes;
    const size_t x_step = (size_t)form.step * form.x_bytes;

    for (int64_t r = 0; r < n_rows; r += 2) {
        struct quant_lanes_avx2 lanes[2];
        const uint8_t *row[2], *x = column;
        int64_t left = k;

        row[0] = (const uint8_t *)w + (size_t)r * row_bytes;
        row[1] = row[0] + (r + 1 < n_rows ? row_bytes : 0); /* else its result is not stored */
        const char *ahead = (const char *)row[0] + row_bytes + QUANT_LANES_AHEAD;
        for (int i = 0; i < 2; i++)
            lanes[i] = (struct quant_lanes_avx2){_mm256_setzero_ps(), _mm256_setzero_ps()};
        for (; left >= form.step; left -= form.step, x += x_step, ahead += 2 * w_step) {
            quant_prefetch_pages(ahead, 2 * w_step);
            for (int i = 0; i < 2; i++) {
                lanes[i] = step(lanes[i], row[i], x, form.step);
                row[i] += w_step;
            }
        }
        for (int i = 0; i < 2 && r + i < n_rows; i++) {
            if (left > 0) lanes[i] = step(lanes[i], row[i], x, (int)left);
            out[r + i] = quant_tree_avx2(_mm256_add_ps(lanes[i].low, lanes[i].high));
        }
    }
}

QUANT_TARGET_AVX512 QUANT_INLINE void quant_lanes_gemv_avx512(struct quant_lanes_form form,
                                                              quant_lanes_step_avx512 *step,
                                                              int64_t k, const void *w,
                                                              size_t row_bytes, int64_t n_rows,
                                                              const void *column, float *out)
{
    const size_t w_step = (size_t)form.step * form.w_bytes;
    const size_t x_step = (size_t)form.step * form.x_bytes;

    for (int64_t r = 0; r < n_rows; r += 2) {
        __m512 lanes[2];
        const uint8_t *row[2], *x = column;
        int64_t left = k;

        row[0] = (const uint8_t *)w + (size_t)r * row_bytes;
        row[1] = row[0] + (r + 1 < n_rows ? row_bytes : 0); /* else its result is not stored */
        const char *ahead = (const char *)row[0] + row_bytes + QUANT_LANES_AHEAD;
        for (int i = 0; i < 2; i++) lanes[i] = _mm512_setzero_ps();
        for (; left >= form.step; left -= form.step, x += x_step, ahead += 2 * w_step) {
            quant_prefetch_pages(ahead, 2 * w_step);
            for (int i = 0; i < 2; i++) {
                lanes[i] = step(lanes[i], row[i], x, form.step);
                row[i] += w_step;
            }
        }
        for (int i = 0; i < 2 && r + i < n_rows; i++) {
            if (left > 0) lanes[i] = step(lanes[i], row[i], x, (int)left);
            out[r + i] = quant_tree_avx2(_mm256_add_ps(_mm512_castps512_ps256(lanes[i]),
                                                       _mm512_extractf32x8_ps(lanes[i], 1)));
        }
    }
}

/* Lanes below n, as the mask of a blend: lanes `first` to first + 7. */
QUANT_TARGET_AVX2 QUANT_INLINE __m256 quant_live_avx2(int n, int first)
{
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n - first), lane));
}

#endif
#endif
