/* engine/cpu/isa/tile_scalar.c: the tile kernels in plain C, which are the specification. Called by
 * matmul and attention through struct engine_tile. */
#include "engine/cpu/isa/tile.h"
#include <math.h>
#include <string.h>

enum { ROWS = QUANT_PANEL_ROWS };

/* isum[r] += 4 codes of each row times 4 elements of one column. Rows are innermost so that
 * compilers can vectorize the loop on any machine. */
static inline void add4(const uint8_t w[ROWS][4], const int8_t x[4], int32_t isum[ROWS])
{
    for (int r = 0; r < ROWS; r++)
        isum[r] += w[r][0] * x[0] + w[r][1] * x[1] + w[r][2] * x[2] + w[r][3] * x[3];
}

/* The sums of column c, zeroed before the first K-block. */
static float *begin(const struct engine_tile_to *to, int c)
{
    float *acc = to->sums->of[0][c];
    if (to->first) memset(acc, 0, ROWS * sizeof(*acc));
    return acc;
}

static void finish(const struct engine_tile_to *to, int c)
{
    if (to->last) memcpy(to->out[c], to->sums->of[0][c], (size_t)to->n_rows * sizeof(float));
}

static void panel32_scalar(const struct quant_panel_form *form, int64_t n_blocks,
                           const void *panels, const void *columns, const struct engine_tile_to *to)
{
    const struct quant_panel32 *w = panels;
    const struct engine_cols32 *x = columns;
    for (int c = 0; c < to->n_cols; c++) {
        float *acc = begin(to, c);
        for (int64_t b = 0; b < n_blocks; b++) {
            int32_t isum[ROWS];
            for (int r = 0; r < ROWS; r++) isum[r] = form->offset * x[b].minus_sum[c];
            for (int i = 0; i < 8; i++) add4(w[b].q[i], x[b].q[i][c], isum);
            for (int r = 0; r < ROWS; r++) {
                float d = w[b].d[r] * x[b].d[c];
                acc[r] += form->has_min ? fmaf(d, (float)isum[r], w[b].m[r] * x[b].s[c])
                                        : d * (float)isum[r];
            }
        }
        finish(to, c);
    }
}

/* Adds one super-block's value of column c to acc[r]. */
static void super_block(const struct quant_panel_form *form, const struct quant_panel256 *w,
                        const struct engine_cols256 *x, int c, float acc[ROWS])
{
    int32_t isum[ROWS] = {0}, msum[ROWS] = {0};
    for (int i = 0; i < 256 / form->sub_len; i++) {
        int32_t sub[ROWS];
        int32_t sum = form->sub_len == 16 ? x->sum16[i / 2][c][i % 2] : x->sum32[i / 2][c][i % 2];
        for (int r = 0; r < ROWS; r++) sub[r] = -form->offset * sum;
        for (int g = i * form->sub_len / 4; g < (i + 1) * form->sub_len / 4; g++)
            add4(w->q[g], x->q[g][c], sub);
        for (int r = 0; r < ROWS; r++) {
            isum[r] += w->scale[i / 2][r][i % 2] * sub[r];
            if (form->has_min) msum[r] += w->min[i / 2][r][i % 2] * sum;
        }
    }
    for (int r = 0; r < ROWS; r++) {
        float d = w->d[r] * x->d[c];
        acc[r] += form->has_min ? fmaf(d, (float)isum[r], w->m[r] * x->d[c] * (float)msum[r])
                                : d * (float)isum[r];
    }
}

static void panel256_scalar(const struct quant_panel_form *form, int64_t n_blocks,
                            const void *panels, const void *columns,
                            const struct engine_tile_to *to)
{
    const struct quant_panel256 *w = panels;
    const struct engine_cols256 *x = columns;
    for (int c = 0; c < to->n_cols; c++) {
        float *acc = begin(to, c);
        for (int64_t b = 0; b < n_blocks; b++) super_block(form, &w[b], &x[b], c, acc);
        finish(to, c);
    }
}

static void interleave_scalar(int64_t n, const int8_t *const q[ENGINE_TILE_COLS],
                              int8_t (*to)[ENGINE_TILE_COLS][4])
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < ENGINE_TILE_COLS; c++) memcpy(to[i][c], q[c] + 4 * i, 4);
}

static float dot_f32(int64_t k, const float *w, const float *x)
{
    float lane[16] = {0};
    for (int64_t i = 0; i < k; i++) lane[i % 16] = fmaf(w[i], x[i], lane[i % 16]);
    for (int h = 8; h > 0; h /= 2)
        for (int i = 0; i < h; i++) lane[i] += lane[i + h];
    return lane[0];
}

static void f32_scalar(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                       const float *const *x, int64_t n_cols, float *const *out)
{
    for (int64_t c = 0; c < n_cols; c++)
        for (int64_t r = 0; r < n_rows; r++) out[c][r] = dot_f32(k, w + r * w_stride, x[c]);
}

static void weighted_sum_scalar(int64_t n, int64_t dim, const float *v, int64_t v_stride,
                                const float *const *p, int64_t n_rows, float *const *o)
{
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t d = 0; d < dim; d++) o[i][d] = fmaf(v[j * v_stride + d], p[i][j], o[i][d]);
}

const struct engine_tile engine_tile_scalar = {
    ENGINE_TILE_INTERLEAVED,         .panel32 = panel32_scalar, .panel256 = panel256_scalar,
    .interleave = interleave_scalar, .f32 = f32_scalar,         .weighted_sum = weighted_sum_scalar,
};
