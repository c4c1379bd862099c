/* engine/cpu/x86/tile_floats_avx2.c: products of rows of floats, for AVX2 with FMA.
 *
 * A canonical dot has 16 strided sums (quant/quant.h), two registers. A tile of 3 rows by 4 columns
 * computes one half of them at a time: 12 sums, 7 loads for 12 multiplies. The rows of attention
 * are read in place; weights and their columns are packed in the order in which the loop reads
 * them, one half after the other, so that twice as many fit the L1 cache, without conflict misses.
 *
 * BF16 products are those of VDPBF16PS, which are ordinary fused multiply-adds with subnormals
 * treated as zero, the odd element of a pair first (quant/float/bf16.c). So a block of 32 elements
 * is two steps of 16 floats: its odd elements, then its even ones. Results have the bits of
 * tile_scalar.c. */
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <string.h>

#define TARGET CPU_TARGET_AVX2
#define INLINE static inline __attribute__((always_inline))

enum { COLS = ENGINE_TILE_COLS, NR = 3, NC = ENGINE_TILE_PACKED_COLS };
enum { BLOCK_ROWS = ENGINE_TILE_FLOAT_ROWS }; /* rows whose sums are in memory */

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

/* Steps before the next rows: one half of so many steps of 8 columns fits the L1 cache. */
enum { SLICE_STEPS = 64 };

/* Packs 32 elements as two steps: in order, or (`pairs`) the odd ones, then the even ones. */
TARGET INLINE void pack_block(bool pairs, const float *from, int64_t half, int64_t step, float *to)
{
    EACH (h, 2) {
        __m256 first = _mm256_loadu_ps(from + (pairs ? 16 : 8) * h);
        __m256 second = _mm256_loadu_ps(from + (pairs ? 16 * h + 8 : 8 * h + 16));
        if (pairs) {
            __m256 odd = _mm256_shuffle_ps(first, second, 0xdd);
            __m256 even = _mm256_shuffle_ps(first, second, 0x88);
            first = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(odd), 0xd8));
            second = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(even), 0xd8));
        }
        _mm256_storeu_ps(to + h * half, first);
        _mm256_storeu_ps(to + h * half + step, second);
    }
}

TARGET INLINE void pack(bool pairs, int64_t n, const float *row, float fill, int64_t half,
                        int64_t step, float *to)
{
    int64_t i = 0;
    for (; i + 32 <= n; i += 32, to += 2 * step) pack_block(pairs, row + i, half, step, to);
    if (i == n) return;
    float last[32];
    for (int j = 0; j < 32; j++) last[j] = i + j < n ? row[i + j] : fill;
    pack_block(pairs, last, half, step, to);
}

TARGET static void pack_f32(int64_t n, const float *row, float fill, int64_t half, int64_t step,
                            float *to)
{
    pack(false, n, row, fill, half, step, to);
}

TARGET static void pack_bf16(int64_t n, const float *row, float fill, int64_t half, int64_t step,
                             float *to)
{
    pack(true, n, row, fill, half, step, to);
}

/* Adds n steps, n even, to one half of the sums of NR rows times NC columns. */
TARGET INLINE void add_steps(bool first, int64_t n, const float *w, const float *x,
                             __m256 (*sums)[COLS])
{
    __m256 acc[NR][NC];
    EACH (r, NR)
        EACH (c, NC) acc[r][c] = first ? _mm256_setzero_ps() : sums[r][c];
    for (; n > 0; n -= 2, w += 16 * NR, x += 16 * NC) {
        EACH (j, 2) {
            __m256 wv[NR];
            EACH (r, NR) wv[r] = _mm256_loadu_ps(w + 8 * (NR * j + r));
            EACH (c, NC) {
                __m256 xv = _mm256_loadu_ps(x + 8 * (NC * j + c));
                EACH (r, NR) acc[r][c] = _mm256_fmadd_ps(wv[r], xv, acc[r][c]);
            }
        }
    }
    EACH (r, NR)
        EACH (c, NC) sums[r][c] = acc[r][c];
}

/* Not inlined: compilers do not model MXCSR and might move arithmetic across its change. */
TARGET __attribute__((noinline)) static void
add_block(int64_t n_steps, const float *w, const float *x, int n_rows, int n_cols, half_sums *sums)
{
    for (int64_t i = 0; i < 2 * n_steps;) { /* steps of the first half, then of the second */
        const int64_t h = i / n_steps, left = (h + 1) * n_steps - i;
        const int64_t n = left < SLICE_STEPS ? left : SLICE_STEPS;
        for (int r = 0; r < n_rows; r += NR) {
            for (int c = 0; c < n_cols; c += NC) {
                const float *wr = w + 8 * (2 * n_steps * r + i * NR);
                const float *xc = x + 8 * (2 * n_steps * c + i * NC);
                __m256(*to)[COLS] = (__m256(*)[COLS])(sums[h][r] + c);
                if (i == h * n_steps)
                    add_steps(true, n, wr, xc, to);
                else
                    add_steps(false, n, wr, xc, to);
            }
        }
        i += n;
    }
}

TARGET static void product_f32(int64_t n_steps, const float *w, const float *x, int n_rows,
                               int n_cols, float *const *out)
{
    half_sums sums[2];
    add_block(n_steps, w, x, n_rows, n_cols, sums);
    store_block(sums, n_rows, n_cols, out, 0);
}

/* The trees do not flush subnormals. */
TARGET static void product_bf16(int64_t n_steps, const float *w, const float *x, int n_rows,
                                int n_cols, float *const *out)
{
    const unsigned saved = _mm_getcsr();
    half_sums sums[2];
    _mm_setcsr(QUANT_BF16_MXCSR);
    add_block(n_steps, w, x, n_rows, n_cols, sums);
    _mm_setcsr(saved);
    store_block(sums, n_rows, n_cols, out, 0);
}

const struct engine_tile_packed engine_tile_packed_f32_avx2 = {
    .rows = NR, .lanes = 8, .step_len = 16, .pack = pack_f32, .product = product_f32};
const struct engine_tile_packed engine_tile_packed_bf16_avx2 = {
    .rows = NR, .lanes = 8, .step_len = 16, .pack = pack_bf16, .product = product_bf16};
