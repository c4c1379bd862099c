/* engine/cpu/x86/tile_floats_avx512.c: products of rows of floats, for AVX-512, and of BF16 for
 * VDPBF16PS.
 *
 * A canonical dot has 16 strided sums (quant/quant.h), one register. In attention, and in products
 * with few columns, rows are read in place, 4 rows by 4 columns at a time, 8 loads for 16
 * multiplies. Otherwise rows and columns are packed (engine/cpu/isa/tile.h) and multiplied a sum at
 * a time: 48 rows in three registers by 8 columns, 11 loads for 24 multiplies, of which the rows'
 * are from the second-level cache. Results have the bits of tile_scalar.c. */
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <string.h>

#define TARGET      CPU_TARGET_AVX512
#define TARGET_BF16 CPU_TARGET_AVX512BF16
#define INLINE      static inline __attribute__((always_inline))

/* The tree over the lanes of 16 vectors at once: result[4 * c + r] is the sum of v[4 * r + c]. */
TARGET INLINE __m512 tree16(const __m512 *v)
{
    __m512 a[8], b[4], e[2];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44),
                             _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee));
    for (int i = 0; i < 4; i++)
        b[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0x88),
                             _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0xdd));
    for (int i = 0; i < 2; i++)
        e[i] = _mm512_add_ps(_mm512_shuffle_ps(b[2 * i], b[2 * i + 1], 0x44),
                             _mm512_shuffle_ps(b[2 * i], b[2 * i + 1], 0xee));
    return _mm512_add_ps(_mm512_shuffle_ps(e[0], e[1], 0x88), _mm512_shuffle_ps(e[0], e[1], 0xdd));
}

/* Writes the n_rows x n_cols corner of a 4 x 4 result. */
TARGET INLINE void store4x4(__m512 sums, int64_t row, int64_t n_rows, int64_t n_cols,
                            float *const *out)
{
    const __mmask8 rows = (__mmask8)(n_rows < 4 ? (1 << n_rows) - 1 : 15);
    _Alignas(64) float value[4][4];
    _mm512_store_ps(value[0], sums);
    EACH (c, 4)
        if (c < n_cols) _mm_mask_storeu_ps(out[c] + row, rows, _mm_load_ps(value[c]));
}

/* ---- Rows in place ---- */

TARGET INLINE __m512 f32_4x4(int64_t k, const float *const *w, const float *const *x)
{
    __m512 acc[16];
    for (int i = 0; i < 16; i++) acc[i] = _mm512_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= k; i += 16) {
        __m512 xv[4];
        for (int c = 0; c < 4; c++) xv[c] = _mm512_loadu_ps(x[c] + i);
        for (int r = 0; r < 4; r++) {
            __m512 wv = _mm512_loadu_ps(w[r] + i);
            for (int c = 0; c < 4; c++) acc[4 * r + c] = _mm512_fmadd_ps(wv, xv[c], acc[4 * r + c]);
        }
    }
    if (i < k) { /* lanes past k are unchanged */
        __mmask16 tail = (__mmask16)((1u << (k - i)) - 1);
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < 4; c++)
                acc[4 * r + c] = _mm512_mask3_fmadd_ps(_mm512_maskz_loadu_ps(tail, w[r] + i),
                                                       _mm512_maskz_loadu_ps(tail, x[c] + i),
                                                       acc[4 * r + c], tail);
    }
    return tree16(acc);
}

/* ---- Short rows of floats: 16 rows by 4 columns, a row per lane ----
 *
 * If k is small (keys of attention) the trees over lanes take as long as the products. After a
 * transposition rows are lanes, the sixteen strided sums of quant/quant.h are registers, and the
 * tree over them is plain additions. */

enum { SHORT_K = 128, SHORT_COLS = 4 };

/* 16 x 16 floats: out[i] has element i of each row. */
TARGET INLINE void transpose16(const float *const *row, float *out)
{
    __m512 v[16], t[16];
    /* v[4g + i]: elements 4g .. 4g + 3 of rows i, 4 + i, 8 + i, 12 + i, one row per quarter. */
    EACH (g, 4)
        EACH (i, 4) {
            __m512 q = _mm512_castps128_ps512(_mm_loadu_ps(row[i] + 4 * g));
            q = _mm512_mask_broadcast_f32x4(q, 0x00f0, _mm_loadu_ps(row[4 + i] + 4 * g));
            q = _mm512_mask_broadcast_f32x4(q, 0x0f00, _mm_loadu_ps(row[8 + i] + 4 * g));
            v[4 * g + i] =
                _mm512_mask_broadcast_f32x4(q, 0xf000, _mm_loadu_ps(row[12 + i] + 4 * g));
        }
    EACH (g, 4) {
        t[4 * g] = _mm512_unpacklo_ps(v[4 * g], v[4 * g + 1]);
        t[4 * g + 1] = _mm512_unpackhi_ps(v[4 * g], v[4 * g + 1]);
        t[4 * g + 2] = _mm512_unpacklo_ps(v[4 * g + 2], v[4 * g + 3]);
        t[4 * g + 3] = _mm512_unpackhi_ps(v[4 * g + 2], v[4 * g + 3]);
        _mm512_store_ps(out + 64 * g, _mm512_shuffle_ps(t[4 * g], t[4 * g + 2], 0x44));
        _mm512_store_ps(out + 64 * g + 16, _mm512_shuffle_ps(t[4 * g], t[4 * g + 2], 0xee));
        _mm512_store_ps(out + 64 * g + 32, _mm512_shuffle_ps(t[4 * g + 1], t[4 * g + 3], 0x44));
        _mm512_store_ps(out + 64 * g + 48, _mm512_shuffle_ps(t[4 * g + 1], t[4 * g + 3], 0xee));
    }
}

/* Strided sums l, l + 4, l + 8 and l + 12 of quant/quant.h for 4 columns, added in the order of its
 * tree. */
TARGET INLINE void short_lanes(int64_t k, const float (*w)[16], const float *const *x, int l,
                               __m512 *sum)
{
    __m512 acc[4][SHORT_COLS];
    EACH (j, 4)
        EACH (c, SHORT_COLS) acc[j][c] = _mm512_setzero_ps();
    for (int64_t i = 0; i < k; i += 16)
        EACH (j, 4) {
            const int64_t at = i + l + 4 * j;
            __m512 wv = _mm512_load_ps(w[at]);
            EACH (c, SHORT_COLS)
                acc[j][c] = _mm512_fmadd_ps(wv, _mm512_set1_ps(x[c][at]), acc[j][c]);
        }
    EACH (c, SHORT_COLS)
        sum[c] =
            _mm512_add_ps(_mm512_add_ps(acc[0][c], acc[2][c]), _mm512_add_ps(acc[1][c], acc[3][c]));
}

/* k is a multiple of 16. */
TARGET INLINE void short_16x4(int64_t k, const float (*w)[16], const float *const *x, int n_rows,
                              int64_t n_cols, int64_t row, float *const *out)
{
    const __mmask16 rows = (__mmask16)((1u << n_rows) - 1);
    __m512 sum[4][SHORT_COLS];
    EACH (l, 4) short_lanes(k, w, x, l, sum[l]);
    EACH (c, SHORT_COLS)
        if (c < n_cols)
            _mm512_mask_storeu_ps(out[c] + row, rows,
                                  _mm512_add_ps(_mm512_add_ps(sum[0][c], sum[2][c]),
                                                _mm512_add_ps(sum[1][c], sum[3][c])));
}

TARGET static void f32_short(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                             const float *const *x, int64_t n_cols, float *const *out)
{
    _Alignas(64) float transposed[SHORT_K][16];
    for (int64_t r = 0; r < n_rows; r += 16) {
        const float *row[16];
        for (int j = 0; j < 16; j++) row[j] = w + (r + j < n_rows ? r + j : n_rows - 1) * w_stride;
        for (int64_t i = 0; i < k; i += 16) {
            transpose16(row, transposed[i]);
            for (int j = 0; j < 16; j++) row[j] += 16;
        }
        for (int64_t c = 0; c < n_cols; c += SHORT_COLS) {
            const float *xc[SHORT_COLS];
            for (int j = 0; j < SHORT_COLS; j++) xc[j] = x[c + j < n_cols ? c + j : n_cols - 1];
            short_16x4(k, transposed, xc, n_rows - r < 16 ? (int)(n_rows - r) : 16, n_cols - c, r,
                       out + c);
        }
    }
}

TARGET void engine_tile_f32_avx512(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                                   const float *const *x, int64_t n_cols, float *const *out)
{
    if (k <= SHORT_K && k % 16 == 0 && n_cols >= 2 * SHORT_COLS) {
        f32_short(k, w, w_stride, n_rows, x, n_cols, out);
        return;
    }
    for (int64_t r = 0; r < n_rows; r += 4) {
        const float *wr[4];
        for (int j = 0; j < 4; j++) wr[j] = w + (r + j < n_rows ? r + j : n_rows - 1) * w_stride;
        for (int64_t c = 0; c < n_cols; c += 4) {
            const float *xc[4];
            for (int j = 0; j < 4; j++) xc[j] = x[c + j < n_cols ? c + j : n_cols - 1];
            store4x4(f32_4x4(k, wr, xc), r, n_rows - r, n_cols - c, out + c);
        }
    }
}

/* ---- Packed rows ---- */

enum { COLS = ENGINE_TILE_COLS, ROWS = ENGINE_TILE_FLOAT_ROWS, VECTORS = ROWS / 16 };

/* Of a leaf: VECTORS times 16 rows by the columns. */
typedef __m512 leaf_sums[VECTORS][COLS];

/* acc plus the products of a step. */
typedef __m512 step_product(__m512 acc, __m512 w, __m512 x);

TARGET INLINE __m512 step_fma(__m512 acc, __m512 w, __m512 x)
{
    return _mm512_fmadd_ps(w, x, acc);
}

TARGET_BF16 INLINE __m512 step_dots(__m512 acc, __m512 w, __m512 x)
{
    return _mm512_dpbf16_ps(acc, (__m512bh)w, (__m512bh)x);
}

TARGET INLINE void multiply_leaf(step_product *product, int n_vectors, int64_t n, const float *w,
                                 const float *x, leaf_sums acc)
{
    EACH (v, n_vectors)
        EACH (c, COLS) acc[v][c] = _mm512_setzero_ps();
    for (; n > 0; n--, w += ROWS, x += COLS) {
        __m512 wv[VECTORS];
        EACH (v, n_vectors) wv[v] = _mm512_loadu_ps(w + 16 * v);
        EACH (c, COLS) {
            const __m512 xv = _mm512_set1_ps(x[c]);
            EACH (v, n_vectors) acc[v][c] = product(acc[v][c], wv[v], xv);
        }
    }
}

TARGET INLINE void add_leaf(int leaf, int n_vectors, leaf_sums acc, struct engine_tile_tree *tree)
{
    int i = engine_tile_tree_depth(leaf);
    for (; leaf & 1; leaf >>= 1) {
        i--;
        EACH (v, n_vectors)
            EACH (c, COLS)
                acc[v][c] = _mm512_add_ps(_mm512_load_ps(tree->of[i][c] + 16 * v), acc[v][c]);
    }
    EACH (v, n_vectors)
        EACH (c, COLS) _mm512_store_ps(tree->of[i][c] + 16 * v, acc[v][c]);
}

TARGET INLINE void add_leaves(step_product *product, int n_vectors,
                              const struct engine_tile_leaves *l, const float *w, const float *x)
{
    for (int leaf = l->first; leaf < l->end; leaf++) {
        leaf_sums acc;
        multiply_leaf(product, n_vectors, l->n_steps, w + leaf * l->n_steps * ROWS,
                      x + leaf * l->n_steps * COLS, acc);
        add_leaf(leaf, n_vectors, acc, l->tree);
    }
}

TARGET INLINE void store_results(const struct engine_tile_leaves *l, int n_rows, int n_cols,
                                 float *const *out)
{
    for (int c = 0; l->end == 16 && c < n_cols; c++)
        for (int r = 0; r < n_rows; r += 16) {
            const __mmask16 rows = (__mmask16)(n_rows - r < 16 ? (1 << (n_rows - r)) - 1 : 0xffff);
            _mm512_mask_storeu_ps(out[c] + r, rows, _mm512_load_ps(l->tree->of[0][c] + r));
        }
}

TARGET INLINE void product_by(step_product *product, const struct engine_tile_leaves *l,
                              const float *w, const float *x, int n_rows, int n_cols,
                              float *const *out)
{
    if (n_rows > 32)
        add_leaves(product, 3, l, w, x);
    else if (n_rows > 16)
        add_leaves(product, 2, l, w, x);
    else
        add_leaves(product, 1, l, w, x);
    store_results(l, n_rows, n_cols, out);
}

TARGET static void product_f32(const struct engine_tile_leaves *l, const float *w, const float *x,
                               int n_rows, int n_cols, float *const *out)
{
    product_by(step_fma, l, w, x, n_rows, n_cols, out);
}

TARGET_BF16 static void product_dots(const struct engine_tile_leaves *l, const float *w,
                                     const float *x, int n_rows, int n_cols, float *const *out)
{
    product_by(step_dots, l, w, x, n_rows, n_cols, out);
}

/* Not inlined: compilers do not model MXCSR and might move arithmetic across its change. */
TARGET __attribute__((noinline)) static void
multiply_apart(const struct engine_tile_leaves *l, const float *w, const float *x, leaf_sums *sums)
{
    for (int leaf = l->first; leaf < l->end; leaf++) {
        leaf_sums acc;
        multiply_leaf(step_fma, VECTORS, l->n_steps, w + leaf * l->n_steps * ROWS,
                      x + leaf * l->n_steps * COLS, acc);
        EACH (v, VECTORS)
            EACH (c, COLS) sums[leaf][v][c] = acc[v][c];
    }
}

/* Fused multiply-adds of floats, which are faster than VDPBF16PS on Intel's processors (for AVX2
 * see tile_floats_avx2.c). The tree does not flush subnormals, and follows all leaves, since the
 * processor completes what it has begun before MXCSR changes. */
TARGET static void product_bf16(const struct engine_tile_leaves *l, const float *w, const float *x,
                                int n_rows, int n_cols, float *const *out)
{
    const unsigned saved = _mm_getcsr();
    leaf_sums sums[16];
    _mm_setcsr(QUANT_BF16_MXCSR);
    multiply_apart(l, w, x, sums);
    _mm_setcsr(saved);
    for (int leaf = l->first; leaf < l->end; leaf++) add_leaf(leaf, VECTORS, sums[leaf], l->tree);
    store_results(l, n_rows, n_cols, out);
}

const struct engine_tile_packed engine_tile_packed_f32_avx512 = {
    .rows = ROWS, .step_len = 16, .pack = engine_tile_pack_avx2, .product = product_f32};
const struct engine_tile_packed engine_tile_packed_bf16_avx512 = {
    .rows = ROWS, .step_len = 16, .pack = engine_tile_pack_pairs_avx2, .product = product_bf16};
const struct engine_tile_packed engine_tile_packed_bf16_dots = {
    .rows = ROWS, .step_len = 32, .pack = engine_tile_pack_avx2, .product = product_dots};

/* ---- BF16 ---- */

/* The number of columns that four rows are multiplied by, four at a time: all columns if they fit
 * the L1 cache together with the rows, which are then read from the L2 cache only once. */
static int64_t columns_at_once(int64_t row_bytes, int64_t n_cols)
{
    enum { L1_BYTES = 32 << 10 };
    return (n_cols + 4) * row_bytes <= L1_BYTES ? n_cols : 4;
}

TARGET_BF16 INLINE __m512 bf16_4x4(int64_t k, const char *const *w, const uint16_t *const *x)
{
    __m512 acc[16];
    for (int i = 0; i < 16; i++) acc[i] = _mm512_setzero_ps();
    for (int64_t i = 0; i < k; i += 32) {
        __mmask32 part = k - i < 32 ? ((__mmask32)1 << (k - i)) - 1 : ~(__mmask32)0;
        __m512i xv[4];
        for (int c = 0; c < 4; c++) xv[c] = _mm512_loadu_si512(x[c] + i);
        for (int r = 0; r < 4; r++) {
            __m512i wv = _mm512_maskz_loadu_epi16(part, w[r] + 2 * i);
            for (int c = 0; c < 4; c++)
                acc[4 * r + c] = _mm512_dpbf16_ps(acc[4 * r + c], (__m512bh)wv, (__m512bh)xv[c]);
        }
    }
    return tree16(acc);
}

TARGET_BF16 void engine_tile_bf16_avx512(int64_t k, const char *w, int64_t row_bytes,
                                         int64_t n_rows, const uint16_t *const *x, int64_t n_cols,
                                         float *const *out)
{
    const int64_t width = columns_at_once(2 * k, n_cols);
    for (int64_t first = 0; first < n_cols; first += width) {
        for (int64_t r = 0; r < n_rows; r += 4) {
            const char *wr[4];
            for (int j = 0; j < 4; j++)
                wr[j] = w + (r + j < n_rows ? r + j : n_rows - 1) * row_bytes;
            for (int64_t c = first; c < n_cols && c < first + width; c += 4) {
                const uint16_t *xc[4];
                for (int j = 0; j < 4; j++) xc[j] = x[c + j < n_cols ? c + j : n_cols - 1];
                store4x4(bf16_4x4(k, wr, xc), r, n_rows - r, n_cols - c, out + c);
            }
        }
    }
}
