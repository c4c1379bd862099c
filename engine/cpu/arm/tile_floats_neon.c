/* engine/cpu/arm/tile_floats_neon.c: products of floats for all levels of 64-bit ARM, in 16 lanes
 * (quant/quant.h): four registers of each product, or, of packed floats, a lane after the other,
 * with a row in each element of a register. */
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

enum { COLS = ENGINE_TILE_COLS, VECTORS = 3, BUNDLE = 4 * VECTORS };

static void pack(int64_t n, const float (*row)[ENGINE_TILE_PACK_WORDS], int64_t leaf, int64_t step,
                 float *to)
{
    for (int64_t s = 0; s < n; s++)
        for (int l = 0; l < 16; l++)
            for (int r = 0; r < 8; r++)
                to[engine_tile_leaf_sum(l) * leaf + s * step + r] = row[r][16 * s + l];
}

/* The sums of a leaf of VECTORS times 4 rows by all columns. */
INLINE void multiply_leaf(int64_t n, const float *w, const float *x, float32x4_t (*acc)[COLS])
{
    EACH (v, VECTORS)
        EACH (c, COLS) acc[v][c] = vdupq_n_f32(0.0f);
    for (; n > 0; n--, w += 2 * BUNDLE, x += COLS) {
        float32x4_t wv[VECTORS], xv[COLS / 4];
        EACH (v, VECTORS) wv[v] = vld1q_f32(w + 4 * v);
        EACH (q, COLS / 4) xv[q] = vld1q_f32(x + 4 * q);
        EACH (v, VECTORS)
            EACH (q, COLS / 4) {
                acc[v][4 * q] = vfmaq_laneq_f32(acc[v][4 * q], wv[v], xv[q], 0);
                acc[v][4 * q + 1] = vfmaq_laneq_f32(acc[v][4 * q + 1], wv[v], xv[q], 1);
                acc[v][4 * q + 2] = vfmaq_laneq_f32(acc[v][4 * q + 2], wv[v], xv[q], 2);
                acc[v][4 * q + 3] = vfmaq_laneq_f32(acc[v][4 * q + 3], wv[v], xv[q], 3);
            }
    }
}

/* Adds the sums from row `row` on to the tree. */
INLINE void add_leaf(int leaf, int row, float32x4_t (*acc)[COLS], struct engine_tile_tree *tree)
{
    int i = engine_tile_tree_depth(leaf);
    for (; leaf & 1; leaf >>= 1) {
        i--;
        EACH (v, VECTORS)
            EACH (c, COLS)
                acc[v][c] = vaddq_f32(vld1q_f32(tree->of[i][c] + row + 4 * v), acc[v][c]);
    }
    EACH (v, VECTORS)
        EACH (c, COLS) vst1q_f32(tree->of[i][c] + row + 4 * v, acc[v][c]);
}

static void packed_product(const struct engine_tile_leaves *l, const float *w, const float *x,
                           int n_rows, int n_cols, float *const *out)
{
    for (int leaf = l->first; leaf < l->end; leaf++)
        for (int r = 0; r < n_rows; r += BUNDLE) {
            float32x4_t acc[VECTORS][COLS];
            const int in_pair = r % (2 * BUNDLE);
            multiply_leaf(l->n_steps,
                          w + l->n_steps * (16 * (r - in_pair) + leaf * 2 * BUNDLE) + in_pair,
                          x + l->n_steps * leaf * COLS, acc);
            add_leaf(leaf, r, acc, l->tree);
        }
    engine_tile_results_store(l, n_rows, n_cols, out);
}

/* `pack` packs eight rows, so two of these bundles are one of weights. */
const struct engine_tile_packed engine_tile_packed_f32_neon = {
    .rows = 2 * BUNDLE, .step_len = 16, .pack = pack, .product = packed_product};

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
