/* engine/cpu/x86/tile_floats_avx2.c: products of rows of floats, for AVX2 with FMA.
 *
 * A canonical dot has 16 strided sums (quant/quant.h), two registers. The rows of attention are
 * read in place: a tile of 3 rows by 4 columns computes one half of the sums at a time, 7 loads for
 * 12 multiplies. Weights and their columns are packed (engine/cpu/isa/tile.h) and multiplied a sum
 * at a time: 24 rows in three registers by 4 columns, again 7 loads for 12 multiplies, but of those
 * four are of one float each, which is in the first-level cache.
 *
 * BF16 products are those of VDPBF16PS, which are ordinary fused multiply-adds with subnormals
 * treated as zero, the odd element of a pair first (quant/float/bf16.c), so each element of a pair
 * is a step. Results have the bits of tile_scalar.c. */
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <string.h>

#define TARGET CPU_TARGET_AVX2
#define INLINE static inline __attribute__((always_inline))

enum { COLS = ENGINE_TILE_COLS, NR = 3, NC = 4 };
enum { BLOCK_ROWS = 24 }; /* rows whose sums are in memory */

typedef __m256 half_sums[BLOCK_ROWS][COLS]; /* sums 0 to 7, or 8 to 15 */

/* ---- The trees ---- */

/* out[c][0..7] of one column: the tree over the sums of eight rows. */
TARGET INLINE __m256 tree8(half_sums *sums, int row, int c)
{
    __m256 eight[8], four[4], two[2];
    EACH (r, 8) eight[r] = _mm256_add_ps(sums[0][row + r][c], sums[1][row + r][c]);
    EACH (r, 4)
        four[r] = _mm256_add_ps(_mm256_permute2f128_ps(eight[r], eight[r + 4], 0x20),
                                _mm256_permute2f128_ps(eight[r], eight[r + 4], 0x31));
    EACH (r, 2)
        two[r] = _mm256_add_ps(_mm256_shuffle_ps(four[2 * r], four[2 * r + 1], 0x44),
                               _mm256_shuffle_ps(four[2 * r], four[2 * r + 1], 0xee));
    return _mm256_add_ps(_mm256_shuffle_ps(two[0], two[1], 0x88),
                         _mm256_shuffle_ps(two[0], two[1], 0xdd));
}

/* Rows are computed three at a time; the trees process eight at a time. */
TARGET INLINE void store_block(half_sums *sums, int n_rows, int n_cols, float *const *out,
                               int64_t row)
{
    for (int r = (n_rows + NR - 1) / NR * NR; r % 8; r++)
        for (int h = 0; h < 2; h++) memset(sums[h][r], 0, sizeof sums[h][r]);
    for (int c = 0; c < n_cols; c++) {
        int r = 0;
        for (; r + 8 <= n_rows; r += 8) _mm256_storeu_ps(out[c] + row + r, tree8(sums, r, c));
        if (r == n_rows) continue;
        float eight[8];
        _mm256_storeu_ps(eight, tree8(sums, r, c));
        memcpy(out[c] + row + r, eight, (size_t)(n_rows - r) * sizeof *eight);
    }
}

/* ---- Rows in place ---- */

/* Rows and columns of a block. Missing ones repeat the last. */
struct block {
    const float *w[BLOCK_ROWS], *x[COLS];
    int n_rows, n_cols;
};

/* One half of the sums of NR rows times NC columns, over n steps of 16. */
TARGET INLINE void half_of(int64_t n, const float *const w[NR], const float *const x[NC], int h,
                           __m256 (*sums)[COLS])
{
    __m256 acc[NR][NC];
    EACH (r, NR)
        EACH (c, NC) acc[r][c] = _mm256_setzero_ps();
    for (int64_t i = 8 * h; i < 16 * n; i += 16) {
        __m256 wv[NR];
        EACH (r, NR) wv[r] = _mm256_loadu_ps(w[r] + i);
        EACH (c, NC) {
            __m256 xv = _mm256_loadu_ps(x[c] + i);
            EACH (r, NR) acc[r][c] = _mm256_fmadd_ps(wv[r], xv, acc[r][c]);
        }
    }
    EACH (r, NR)
        EACH (c, NC) sums[r][c] = acc[r][c];
}

/* Adds the last n < 16 elements, from `at` on; other lanes are unchanged. */
TARGET static void add_tail(int n, int64_t at, const struct block *b, half_sums *sums)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (int h = 0; h < 2; h++) {
        __m256i part = _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8 * h), lane);
        for (int r = 0; r < b->n_rows; r++) {
            __m256 w = _mm256_maskload_ps(b->w[r] + at + 8 * h, part);
            for (int c = 0; c < b->n_cols; c++) {
                __m256 old = sums[h][r][c], x = _mm256_maskload_ps(b->x[c] + at + 8 * h, part);
                sums[h][r][c] =
                    _mm256_blendv_ps(old, _mm256_fmadd_ps(w, x, old), _mm256_castsi256_ps(part));
            }
        }
    }
}

TARGET void engine_tile_f32_avx2(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                                 const float *const *x, int64_t n_cols, float *const *out)
{
    struct block b = {.n_cols = (int)n_cols};
    for (int c = 0; c < COLS; c++) b.x[c] = x[c < n_cols ? c : n_cols - 1];
    for (int64_t first = 0; first < n_rows; first += BLOCK_ROWS) {
        half_sums sums[2];
        b.n_rows = n_rows - first < BLOCK_ROWS ? (int)(n_rows - first) : BLOCK_ROWS;
        for (int r = 0; r < BLOCK_ROWS; r++)
            b.w[r] = w + (first + (r < b.n_rows ? r : b.n_rows - 1)) * w_stride;
        for (int r = 0; r < b.n_rows; r += NR)
            for (int h = 0; h < 2; h++)
                for (int c = 0; c < b.n_cols; c += NC)
                    half_of(k / 16, b.w + r, b.x + c, h, (__m256(*)[COLS])(sums[h][r] + c));
        if (k % 16) add_tail((int)(k % 16), k / 16 * 16, &b, sums);
        store_block(sums, b.n_rows, b.n_cols, out, first);
    }
}

/* ---- Packed rows ---- */

enum { VECTORS = 3, BUNDLE = 8 * VECTORS, ROWS = ENGINE_TILE_FLOAT_ROWS };

/* Word i of eight rows becomes to[i]. */
TARGET INLINE void transpose8(const float *row, int64_t stride, __m256 *to)
{
    __m256 a[8], b[8];
    EACH (i, 4) /* words 4 h .. 4 h + 3 of rows i and i + 4 */
        EACH (h, 2)
            a[4 * h + i] =
                _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row + i * stride + 4 * h)),
                                     _mm_loadu_ps(row + (i + 4) * stride + 4 * h), 1);
    EACH (i, 4) {
        b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
    }
    EACH (h, 2)
        EACH (i, 2) {
            const __m256 first = b[4 * h + i], second = b[4 * h + 2 + i];
            to[4 * h + 2 * i] = _mm256_shuffle_ps(first, second, 0x44);
            to[4 * h + 2 * i + 1] = _mm256_shuffle_ps(first, second, 0xee);
        }
}

TARGET INLINE void pack_words(bool pairs, int64_t n, const float (*row)[ENGINE_TILE_PACK_WORDS],
                              int64_t leaf, int64_t step, float *to)
{
    const __m256 odd = _mm256_castsi256_ps(_mm256_set1_epi32((int)0xffff0000));
    for (int64_t s = 0; s < n; s++, to += (pairs ? 2 : 1) * step)
        EACH (h, 2) {
            __m256 word[8];
            transpose8(row[0] + 16 * s + 8 * h, ENGINE_TILE_PACK_WORDS, word);
            EACH (i, 8) {
                float *at = to + engine_tile_leaf_sum(8 * h + i) * leaf;
                _mm256_storeu_ps(at, pairs ? _mm256_and_ps(word[i], odd) : word[i]);
                if (pairs)
                    _mm256_storeu_si256((__m256i *)(at + step),
                                        _mm256_slli_epi32(_mm256_castps_si256(word[i]), 16));
            }
        }
}

TARGET void engine_tile_pack_avx2(int64_t n, const float (*row)[ENGINE_TILE_PACK_WORDS],
                                  int64_t leaf, int64_t step, float *to)
{
    pack_words(false, n, row, leaf, step, to);
}

TARGET void engine_tile_pack_pairs_avx2(int64_t n, const float (*row)[ENGINE_TILE_PACK_WORDS],
                                        int64_t leaf, int64_t step, float *to)
{
    pack_words(true, n, row, leaf, step, to);
}

/* Of a leaf: VECTORS times 8 rows by NC columns. */
typedef __m256 leaf_sums[VECTORS][NC];

TARGET INLINE void multiply_leaf(int64_t n, const float *w, const float *x, leaf_sums acc)
{
    EACH (v, VECTORS)
        EACH (c, NC) acc[v][c] = _mm256_setzero_ps();
    for (; n > 0; n--, w += BUNDLE, x += COLS) {
        __m256 wv[VECTORS];
        EACH (v, VECTORS) wv[v] = _mm256_loadu_ps(w + 8 * v);
        EACH (c, NC) {
            const __m256 xv = _mm256_broadcast_ss(x + c);
            EACH (v, VECTORS) acc[v][c] = _mm256_fmadd_ps(wv[v], xv, acc[v][c]);
        }
    }
}

/* Adds the sums from row `row` and column `col` on to the tree. */
TARGET INLINE void add_leaf(int leaf, int row, int col, leaf_sums acc,
                            struct engine_tile_tree *tree)
{
    int i = engine_tile_tree_depth(leaf);
    for (; leaf & 1; leaf >>= 1) {
        i--;
        EACH (v, VECTORS)
            EACH (c, NC)
                acc[v][c] =
                    _mm256_add_ps(_mm256_load_ps(tree->of[i][col + c] + row + 8 * v), acc[v][c]);
    }
    EACH (v, VECTORS)
        EACH (c, NC) _mm256_store_ps(tree->of[i][col + c] + row + 8 * v, acc[v][c]);
}

TARGET static void product_f32(const struct engine_tile_leaves *l, const float *w, const float *x,
                               int n_rows, int n_cols, float *const *out)
{
    for (int leaf = l->first; leaf < l->end; leaf++)
        for (int r = 0; r < n_rows; r += BUNDLE)
            for (int c = 0; c < n_cols; c += NC) {
                leaf_sums acc;
                multiply_leaf(l->n_steps, w + l->n_steps * (16 * r + leaf * BUNDLE),
                              x + l->n_steps * leaf * COLS + c, acc);
                add_leaf(leaf, r, c, acc, l->tree);
            }
    engine_tile_results_store(l, n_rows, n_cols, out);
}

/* Not inlined: compilers do not model MXCSR and might move arithmetic across its change. */
TARGET __attribute__((noinline)) static void multiply_apart(const struct engine_tile_leaves *l,
                                                            const float *w, const float *x,
                                                            int n_rows, int n_cols, leaf_sums *sums)
{
    for (int leaf = l->first; leaf < l->end; leaf++)
        for (int r = 0; r < n_rows; r += BUNDLE)
            for (int c = 0; c < n_cols; c += NC, sums++) {
                leaf_sums acc;
                multiply_leaf(l->n_steps, w + l->n_steps * (16 * r + leaf * BUNDLE),
                              x + l->n_steps * leaf * COLS + c, acc);
                EACH (v, VECTORS)
                    EACH (j, NC) (*sums)[v][j] = acc[v][j];
            }
}

/* The tree does not flush subnormals, and follows all leaves, since the processor completes what it
 * has begun before MXCSR changes. */
TARGET static void product_bf16(const struct engine_tile_leaves *l, const float *w, const float *x,
                                int n_rows, int n_cols, float *const *out)
{
    const unsigned saved = _mm_getcsr();
    leaf_sums sums[16 * ROWS / BUNDLE * COLS / NC], *next = sums;
    _mm_setcsr(QUANT_BF16_MXCSR);
    multiply_apart(l, w, x, n_rows, n_cols, sums);
    _mm_setcsr(saved);
    for (int leaf = l->first; leaf < l->end; leaf++)
        for (int r = 0; r < n_rows; r += BUNDLE)
            for (int c = 0; c < n_cols; c += NC) add_leaf(leaf, r, c, *next++, l->tree);
    engine_tile_results_store(l, n_rows, n_cols, out);
}

const struct engine_tile_packed engine_tile_packed_f32_avx2 = {
    .rows = BUNDLE, .step_len = 16, .pack = engine_tile_pack_avx2, .product = product_f32};
const struct engine_tile_packed engine_tile_packed_bf16_avx2 = {
    .rows = BUNDLE, .step_len = 16, .pack = engine_tile_pack_pairs_avx2, .product = product_bf16};
