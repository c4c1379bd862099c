/* engine/cpu/arm/tile_floats_neon.c: products of floats for all levels of 64-bit ARM, in 16 lanes
 * (quant/quant.h): four registers of each product, or, of packed floats, four passes with one. */
#include "engine/cpu/arm/kernels_arm.h"
#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* The tree of 16 lanes. */
INLINE float tree(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d)
{
    const float32x4_t four = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
    return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}

/* ---- Rows and columns in place ---- */

enum { FEW_ROWS = 2, FEW_COLS = 2 };

/* The products of n_rows rows and n_cols columns, constants at most FEW_ROWS and FEW_COLS. */
INLINE void few_products(int n_rows, int n_cols, int64_t k, const float *w, int64_t w_stride,
                         const float *const *x, int64_t r, float *const *out)
{
    float32x4_t acc[FEW_ROWS][FEW_COLS][4];
    float end[FEW_ROWS + FEW_COLS][16] = {{0}};
    const int64_t whole = k / 16 * 16, rest = k - whole;
    EACH (i, n_rows) memcpy(end[i], w + i * w_stride + whole, (size_t)rest * sizeof(float));
    EACH (c, n_cols) memcpy(end[n_rows + c], x[c] + whole, (size_t)rest * sizeof(float));
    EACH (i, n_rows)
        EACH (c, n_cols)
            EACH (q, 4) acc[i][c][q] = vdupq_n_f32(0.0f);
    for (int64_t at = 0; at < whole; at += 16)
        EACH (q, 4)
            EACH (i, n_rows) {
                const float32x4_t wv = vld1q_f32(w + i * w_stride + at + 4 * q);
                EACH (c, n_cols)
                    acc[i][c][q] = vfmaq_f32(acc[i][c][q], wv, vld1q_f32(x[c] + at + 4 * q));
            }
    EACH (i, n_rows)
        EACH (c, n_cols) {
            float lane[16];
            EACH (q, 4) vst1q_f32(lane + 4 * q, acc[i][c][q]);
            for (int64_t l = 0; l < rest; l++)
                lane[l] = __builtin_fmaf(end[i][l], end[n_rows + c][l], lane[l]);
            out[c][r + i] = tree(vld1q_f32(lane), vld1q_f32(lane + 4), vld1q_f32(lane + 8),
                                 vld1q_f32(lane + 12));
        }
}

void engine_tile_f32_neon(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                          const float *const *x, int64_t n_cols, float *const *out)
{
    for (int64_t r = 0; r < n_rows; r += FEW_ROWS, w += FEW_ROWS * w_stride)
        for (int64_t c = 0; c < n_cols; c += FEW_COLS) {
            const bool one_row = r + 1 == n_rows, one_col = c + 1 == n_cols;
            if (one_row && one_col)
                few_products(1, 1, k, w, w_stride, x + c, r, out + c);
            else if (one_row)
                few_products(1, 2, k, w, w_stride, x + c, r, out + c);
            else if (one_col)
                few_products(2, 1, k, w, w_stride, x + c, r, out + c);
            else
                few_products(2, 2, k, w, w_stride, x + c, r, out + c);
        }
}

/* ---- Packed floats ---- */

enum { ROWS = 6, PACKED_COLS = ENGINE_TILE_PACKED_COLS, LANES = 4 };

static void pack(int64_t n, const float *row, float fill, int64_t quarter, int64_t step, float *to)
{
    for (int64_t at = 0; at < n; at += 16, to += step)
        for (int q = 0; q < 4; q++)
            for (int l = 0; l < LANES; l++) {
                const int64_t i = at + LANES * q + l;
                to[q * quarter + l] = i < n ? row[i] : fill;
            }
    /* The number of steps is even. */
    for (int q = 0; (n + 15) / 16 % 2 && q < 4; q++)
        for (int l = 0; l < LANES; l++) to[q * quarter + l] = fill;
}

/* A quarter of the lanes of a bundle of rows times one of columns. */
INLINE void quarter_products(int64_t n_steps, const float *w, const float *x,
                             float32x4_t (*sum)[PACKED_COLS])
{
    float32x4_t acc[ROWS][PACKED_COLS];
    EACH (i, ROWS)
        EACH (c, PACKED_COLS) acc[i][c] = vdupq_n_f32(0.0f);
    for (int64_t s = 0; s < n_steps; s++, w += ROWS * LANES, x += PACKED_COLS * LANES) {
        float32x4_t xv[PACKED_COLS];
        EACH (c, PACKED_COLS) xv[c] = vld1q_f32(x + LANES * c);
        EACH (i, ROWS) {
            const float32x4_t wv = vld1q_f32(w + LANES * i);
            EACH (c, PACKED_COLS) acc[i][c] = vfmaq_f32(acc[i][c], wv, xv[c]);
        }
    }
    EACH (i, ROWS)
        EACH (c, PACKED_COLS) sum[i][c] = acc[i][c];
}

static void packed_product(int64_t n_steps, const float *w, const float *x, int n_rows, int n_cols,
                           float *const *out)
{
    for (int r = 0; r < n_rows; r += ROWS)
        for (int c = 0; c < n_cols; c += PACKED_COLS) {
            float32x4_t sum[4][ROWS][PACKED_COLS];
            const float *rows = w + r * n_steps * 16, *cols = x + c * n_steps * 16;
            for (int q = 0; q < 4; q++)
                quarter_products(n_steps, rows + q * n_steps * ROWS * LANES,
                                 cols + q * n_steps * PACKED_COLS * LANES, sum[q]);
            for (int i = 0; i < ROWS && r + i < n_rows; i++)
                for (int j = 0; j < PACKED_COLS && c + j < n_cols; j++)
                    out[c + j][r + i] =
                        tree(sum[0][i][j], sum[1][i][j], sum[2][i][j], sum[3][i][j]);
        }
}

const struct engine_tile_packed engine_tile_packed_f32_neon = {
    .rows = ROWS, .lanes = LANES, .step_len = 16, .pack = pack, .product = packed_product};

/* ---- Attention ---- */

void engine_tile_weighted_sum_neon(int64_t n, int64_t dim, const float *v, int64_t v_stride,
                                   const float *const *p, int64_t n_rows, float *const *o)
{
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t d = 0;
        for (; d + 16 <= dim; d += 16) {
            float32x4_t acc[4];
            EACH (q, 4) acc[q] = vld1q_f32(o[i] + d + 4 * q);
            for (int64_t j = 0; j < n; j++)
                EACH (q, 4)
                    acc[q] = vfmaq_n_f32(acc[q], vld1q_f32(v + j * v_stride + d + 4 * q), p[i][j]);
            EACH (q, 4) vst1q_f32(o[i] + d + 4 * q, acc[q]);
        }
        for (; d < dim; d++)
            for (int64_t j = 0; j < n; j++)
                o[i][d] = __builtin_fmaf(v[j * v_stride + d], p[i][j], o[i][d]);
    }
}
