/* engine/tile_floats_avx2.c: products of F32 and BF16 rows, for AVX2 with FMA.
 *
 * A canonical dot has 16 strided sums (quant/quant.h), two registers. 3 rows by 4 columns take one
 * half of them at a time: 12 sums, for which 7 loads serve 12 multiplies. So that what is read
 * twice comes from the L1 cache, a slice of k meets 24 rows and all columns before the next one,
 * and sums wait in memory meanwhile.
 *
 * BF16 products are those of VDPBF16PS, which are ordinary fused multiply-adds with subnormals
 * taken for zero, the odd element of a pair first (quant/bf16.c). So a block of 32 elements is two
 * steps of 16 floats: its odd elements, then its even ones. Twin of tile_scalar.c. */
#include "engine/tile.h"
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline))
/* A loop over arrays that are registers: unrolled before the compiler takes them for memory. */
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

enum { COLS = ENGINE_TILE_COLS, NR = 3, NC = 4, BLOCK_ROWS = 24, SLICE = 640 };

struct lanes {
    __m256 half[2]; /* sums 0 to 7, 8 to 15 */
};

/* Rows and columns of a slice. Those beyond the last are repeated. */
struct slice {
    const char *w[BLOCK_ROWS];
    const float *x[COLS];
    int n_rows, n_cols;
};

/* Elements 8h to 8h + 7 of a step of 16; of BF16, step j of a block of 32. */
TARGET INLINE __m256 load_weights(bool bf16, const char *w, int h, int j)
{
    if (!bf16) return _mm256_loadu_ps((const float *)w + 8 * h);
    __m256i two = _mm256_loadu_si256((const __m256i *)w + h);
    return _mm256_castsi256_ps(j ? _mm256_slli_epi32(two, 16)
                                 : _mm256_and_si256(two, _mm256_set1_epi32((int)0xffff0000)));
}

/* One half of the sums of NR rows by NC columns, n steps of 16 on. */
TARGET INLINE void add_half(bool bf16, int64_t n, const char *const w[NR], const float *const x[NC],
                            int h, struct lanes (*sums)[COLS])
{
    const int at_once = bf16 ? 2 : 1;
    __m256 acc[NR][NC];
    EACH (r, NR)
        EACH (c, NC) acc[r][c] = sums[r][c].half[h];
    for (int64_t i = 0; i < n; i += at_once) {
        EACH (j, at_once) {
            __m256 wv[NR];
            EACH (r, NR) wv[r] = load_weights(bf16, w[r] + i * (bf16 ? 32 : 64), h, j);
            EACH (c, NC) {
                __m256 xv = _mm256_loadu_ps(x[c] + 16 * (i + j) + 8 * h);
                EACH (r, NR) acc[r][c] = _mm256_fmadd_ps(wv[r], xv, acc[r][c]);
            }
        }
    }
    EACH (r, NR)
        EACH (c, NC) sums[r][c].half[h] = acc[r][c];
}

TARGET INLINE void add_slice(bool bf16, int64_t n, const struct slice *s,
                             struct lanes (*sums)[COLS])
{
    for (int r = 0; r < s->n_rows; r += NR)
        for (int c = 0; c < s->n_cols; c += NC)
            for (int h = 0; h < 2; h++)
                add_half(bf16, n, s->w + r, s->x + c, h, (struct lanes(*)[COLS])(sums[r] + c));
}

/* out[c][0..3] of one column: the tree over the lanes of four rows. */
TARGET INLINE __m128 tree4(const struct lanes (*sums)[COLS], int c)
{
    __m128 four[4];
    EACH (r, 4) {
        __m256 eight = _mm256_add_ps(sums[r][c].half[0], sums[r][c].half[1]);
        four[r] = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    }
    __m128 a = _mm_add_ps(_mm_movelh_ps(four[0], four[1]), _mm_movehl_ps(four[1], four[0]));
    __m128 b = _mm_add_ps(_mm_movelh_ps(four[2], four[3]), _mm_movehl_ps(four[3], four[2]));
    return _mm_add_ps(_mm_shuffle_ps(a, b, 0x88), _mm_shuffle_ps(a, b, 0xdd));
}

TARGET INLINE void store_block(const struct lanes (*sums)[COLS], int n_rows, int n_cols,
                               float *const *out, int64_t row)
{
    for (int c = 0; c < n_cols; c++) {
        for (int r = 0; r < n_rows; r += 4) {
            float four[4];
            _mm_storeu_ps(four, tree4(sums + r, c));
            memcpy(out[c] + row + r, four,
                   (size_t)(n_rows - r < 4 ? n_rows - r : 4) * sizeof *four);
        }
    }
}

/* ---- F32 ---- */

/* The last n < 16 elements: lanes beyond them stay as they are. */
TARGET static void add_tail(int n, const struct slice *s, struct lanes (*sums)[COLS])
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (int h = 0; h < 2; h++) {
        __m256i part = _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8 * h), lane);
        for (int r = 0; r < s->n_rows; r++) {
            __m256 w = _mm256_maskload_ps((const float *)s->w[r] + 8 * h, part);
            for (int c = 0; c < s->n_cols; c++) {
                __m256 old = sums[r][c].half[h];
                __m256 sum = _mm256_fmadd_ps(w, _mm256_maskload_ps(s->x[c] + 8 * h, part), old);
                sums[r][c].half[h] = _mm256_blendv_ps(old, sum, _mm256_castsi256_ps(part));
            }
        }
    }
}

/* Elements of a slice: all alike, a multiple of 32. */
static int64_t slice_length(int64_t k)
{
    const int64_t n = (k + SLICE - 1) / SLICE;
    return n ? ((k + n - 1) / n + 31) / 32 * 32 : SLICE;
}

/* The rows of a block, at element `at`. */
static void slice_rows(struct slice *s, const char *w, int64_t row_bytes, size_t at)
{
    for (int r = 0; r < BLOCK_ROWS; r++)
        s->w[r] = w + (r < s->n_rows ? r : s->n_rows - 1) * row_bytes + at;
}

TARGET void engine_tile_f32_avx2(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                                 const float *const *x, int64_t n_cols, float *const *out)
{
    const int64_t length = slice_length(k);
    for (int64_t r = 0; r < n_rows; r += BLOCK_ROWS) {
        struct lanes sums[BLOCK_ROWS][COLS] = {0};
        struct slice s = {.n_cols = (int)n_cols};
        s.n_rows = n_rows - r < BLOCK_ROWS ? (int)(n_rows - r) : BLOCK_ROWS;
        for (int64_t i = 0; i < k; i += length) {
            const int64_t n = k - i < length ? k - i : length;
            slice_rows(&s, (const char *)(w + r * w_stride), w_stride * 4, (size_t)i * 4);
            for (int c = 0; c < COLS; c++) s.x[c] = x[c < n_cols ? c : n_cols - 1] + i;
            add_slice(false, n / 16, &s, sums);
            if (n % 16 == 0) continue;
            for (int j = 0; j < s.n_rows; j++) s.w[j] += n / 16 * 64;
            for (int c = 0; c < COLS; c++) s.x[c] += n / 16 * 16;
            add_tail((int)(n % 16), &s, sums);
        }
        store_block(sums, s.n_rows, s.n_cols, out, r);
    }
}

/* ---- BF16 ---- */

enum { MXCSR_FLUSH_NEAREST = 0x9fc0 }; /* flush to zero, denormals are zero, no exceptions */

/* Not inlined: compilers know nothing of MXCSR and might move arithmetic past its change. */
TARGET __attribute__((noinline)) static void add_slice_bf16(int64_t n, const struct slice *s,
                                                            struct lanes (*sums)[COLS])
{
    add_slice(true, n, s, sums);
}

/* n elements as floats, of each 32 the odd ones first; up to a multiple of 32 there are zeros. */
TARGET static void widen_column(int64_t n, const uint16_t *x, float *to)
{
    for (int64_t i = 0; i < n; i += 32)
        for (int j = 0; j < 2; j++)
            for (int h = 0; h < 2; h++)
                _mm256_store_ps(to + i + 16 * j + 8 * h,
                                load_weights(true, (const char *)(x + i), h, j));
}

TARGET void engine_tile_bf16_avx2(int64_t k, const char *w, int64_t row_bytes, int64_t n_rows,
                                  const uint16_t *const *x, int64_t n_cols, float *const *out)
{
    const unsigned saved = _mm_getcsr();
    const int64_t length = slice_length(k);
    for (int64_t r = 0; r < n_rows; r += BLOCK_ROWS) {
        struct lanes sums[BLOCK_ROWS][COLS] = {0};
        _Alignas(32) float columns[COLS][SLICE];
        struct slice s = {.n_cols = (int)n_cols};
        s.n_rows = n_rows - r < BLOCK_ROWS ? (int)(n_rows - r) : BLOCK_ROWS;
        for (int64_t i = 0; i < k; i += length) {
            const int64_t n = k - i < length ? k - i : length;
            slice_rows(&s, w + r * row_bytes, row_bytes, (size_t)i * 2);
            for (int c = 0; c < COLS; c++) {
                s.x[c] = columns[c];
                if (c < n_cols) widen_column(n, x[c] + i, columns[c]);
            }
            for (int64_t c = n_cols; c < COLS; c++) s.x[c] = columns[n_cols - 1];
            _mm_setcsr(MXCSR_FLUSH_NEAREST);
            add_slice_bf16(n / 32 * 2, &s, sums);
            _mm_setcsr(saved);
            if (n % 32 == 0) continue;
            char tail[BLOCK_ROWS][64] = {0};
            for (int j = 0; j < BLOCK_ROWS; j++) {
                memcpy(tail[j], s.w[j] + n / 32 * 64, (size_t)(n % 32) * 2);
                s.w[j] = tail[j];
            }
            for (int c = 0; c < COLS; c++) s.x[c] += n / 32 * 32;
            _mm_setcsr(MXCSR_FLUSH_NEAREST);
            add_slice_bf16(2, &s, sums);
            _mm_setcsr(saved);
        }
        store_block(sums, s.n_rows, s.n_cols, out, r);
    }
}
#endif
