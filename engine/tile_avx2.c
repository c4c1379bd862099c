/* engine/tile_avx2.c: tile kernels for AVX2 with FMA.
 *
 * A panel's 16 rows are two halves of 8 lanes; a half meets 4 columns at a time, so that its
 * accumulators stay in 16 registers. VPMADDUBSW adds two products in 16 bits and saturates: how
 * many such sums fit is known from the type's largest code (DEPTH), and codes beyond 128 are taken
 * as sign and magnitude instead. Everything inside a block is exact. Twin of tile_scalar.c. */
#include "engine/tile.h"
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline))
/* A loop over arrays that are registers: unrolled before the compiler takes them for memory. */
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

enum { COLS = ENGINE_TILE_COLS, NC = 4, HALF = 8 };

TARGET INLINE __m256i broadcast4(const void *from)
{
    int32_t four;
    memcpy(&four, from, sizeof(four));
    return _mm256_set1_epi32(four);
}

/* ---- Integer sums ---- */

/* How many VPMADDUBSW results may be added in 16 bits: 2 * code * 127 each; 0: not even one. */
static int sum_depth(int max_code)
{
    int depth = 32767 / (2 * 127 * (max_code ? max_code : 1));
    return depth >= 8 ? 8 : depth >= 4 ? 4 : depth >= 2 ? 2 : depth;
}

/* sum[c] += factor * codes * q of n groups of 4 elements, for 8 rows and NC columns; factor: in
 * both 16-bit halves of a row's lane. depth 0: codes are taken as code - 128. */
TARGET INLINE void add_groups(int depth, int n, const uint8_t (*w)[16][4],
                              const int8_t (*x)[COLS][4], int row, int col, __m256i factor,
                              __m256i *sum)
{
    const __m256i top = _mm256_set1_epi8((char)0x80);
    int step = depth > n ? n : depth ? depth : 1;
    _Pragma("GCC unroll 8") for (int i = 0; i < n; i += step)
    {
        __m256i pairs[NC];
        EACH (j, step) {
            __m256i q = _mm256_load_si256((const __m256i *)w[i + j][row]);
            __m256i s = _mm256_xor_si256(q, top);
            if (depth == 0) q = _mm256_abs_epi8(s);
            EACH (c, NC) {
                __m256i a = broadcast4(x[i + j][col + c]);
                if (depth == 0) a = _mm256_sign_epi8(a, s);
                __m256i product = _mm256_maddubs_epi16(q, a);
                pairs[c] = j ? _mm256_add_epi16(pairs[c], product) : product;
                /* Opaque, or gcc adds them as a tree, for which there are not registers enough. */
                __asm__("" : "+x"(pairs[c]));
            }
        }
        EACH (c, NC) sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(pairs[c], factor));
    }
}

/* ---- Blocks of 32 ----
 *
 * Offsets: sums start at -offset * (sum of q), but for types with minima (no offset) and for codes
 * that are taken as code - 128 (their offset). */

/* 8 rows from `row` on by NC columns from `col` on. */
TARGET INLINE void panel32_part(int depth, bool has_min, const struct quant_panel_form *form,
                                int64_t n_blocks, const struct quant_panel32 *w,
                                const struct engine_cols32 *x, int row, int col, __m256 *acc)
{
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i offset_shift = _mm256_set1_epi32(__builtin_ctz(form->offset | 256));
    EACH (c, NC) acc[c] = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b++, w++, x++) {
        __m256i sum[NC];
        EACH (c, NC)
            sum[c] = has_min || depth == 0
                         ? _mm256_setzero_si256()
                         : _mm256_sllv_epi32(broadcast4(&x->minus_sum[col + c]), offset_shift);
        add_groups(depth, 8, w->q, x->q, row, col, ones, sum);
        __m256 d = _mm256_load_ps(w->d + row), m = _mm256_load_ps(w->m + row);
        EACH (c, NC) {
            __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(x->d[col + c]));
            __m256 f = _mm256_cvtepi32_ps(sum[c]), v;
            if (has_min)
                v = _mm256_fmadd_ps(scale, f, _mm256_mul_ps(m, _mm256_set1_ps(x->s[col + c])));
            else
                v = _mm256_mul_ps(scale, f);
            acc[c] = _mm256_add_ps(acc[c], v);
        }
    }
}

TARGET static void panel32_half(const struct quant_panel_form *form, int64_t n_blocks,
                                const struct quant_panel32 *w, const struct engine_cols32 *x,
                                int row, int col, __m256 *acc)
{
    const int depth = sum_depth(form->max_code);
    if (depth == 8 && form->has_min)
        panel32_part(8, true, form, n_blocks, w, x, row, col, acc);
    else if (depth == 8)
        panel32_part(8, false, form, n_blocks, w, x, row, col, acc);
    else if (depth == 4 && form->has_min)
        panel32_part(4, true, form, n_blocks, w, x, row, col, acc);
    else if (depth == 4)
        panel32_part(4, false, form, n_blocks, w, x, row, col, acc);
    else if (depth)
        panel32_part(1, false, form, n_blocks, w, x, row, col, acc);
    else
        panel32_part(0, false, form, n_blocks, w, x, row, col, acc);
}

TARGET INLINE void store_half(const __m256 *acc, int row, int col, int n_rows, int n_cols,
                              float *const *out)
{
    for (int c = 0; c < NC && col + c < n_cols; c++) {
        _Alignas(32) float value[HALF];
        int n = n_rows - row < HALF ? n_rows - row : HALF;
        _mm256_store_ps(value, acc[c]);
        memcpy(out[col + c] + row, value, (size_t)n * sizeof(float));
    }
}

TARGET static void panel32_avx2(const struct quant_panel_form *form, int64_t n_blocks,
                                const struct quant_panel32 *w, const struct engine_cols32 *x,
                                int n_rows, int n_cols, float *const *out)
{
    for (int row = 0; row < n_rows; row += HALF) {
        for (int col = 0; col < n_cols; col += NC) {
            __m256 acc[NC];
            panel32_half(form, n_blocks, w, x, row, col, acc);
            store_half(acc, row, col, n_rows, n_cols, out);
        }
    }
}

/* ---- Blocks of 256 ---- */

TARGET INLINE __m256 super_block(const struct quant_panel_form *form,
                                 const struct quant_panel256 *w, const struct engine_cols256 *x,
                                 int row, int col, __m256i total)
{
    __m256 d = _mm256_load_ps(w->d + row), m = _mm256_load_ps(w->m + row);
    __m256 da = _mm256_set1_ps(x->d[col]), scale = _mm256_mul_ps(d, da);
    __m256 f = _mm256_cvtepi32_ps(total);
    if (!form->has_min) return _mm256_mul_ps(scale, f);
    __m256i msum = _mm256_setzero_si256();
    for (int i = 0; i < 128 / form->sub_len; i++) {
        __m256i min = _mm256_load_si256((const __m256i *)w->min[i][row]);
        __m256i pair = broadcast4(form->sub_len == 16 ? x->sum16[i][col] : x->sum32[i][col]);
        msum = _mm256_add_epi32(msum, _mm256_madd_epi16(min, pair));
    }
    __m256 t = _mm256_mul_ps(_mm256_mul_ps(m, da), _mm256_cvtepi32_ps(msum));
    return _mm256_fmadd_ps(scale, f, t);
}

/* total[c] -= offset * the sum over sub-blocks of scale * (sum of q). */
TARGET INLINE void subtract_offset(int offset, int sub_len, const struct quant_panel256 *w,
                                   const struct engine_cols256 *x, int row, int col, __m256i *total)
{
    const __m256i offset_shift = _mm256_set1_epi32(__builtin_ctz(offset));
    __m256i sum[NC];
    EACH (c, NC) sum[c] = _mm256_setzero_si256();
    for (int i = 0; i < 128 / sub_len; i++) {
        __m256i even = _mm256_load_si256((const __m256i *)(w->scale[2 * i] + row));
        __m256i odd = _mm256_load_si256((const __m256i *)(w->scale[2 * i + 1] + row));
        __m256i scales = _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xaa);
        EACH (c, NC) {
            __m256i pair = broadcast4(sub_len == 16 ? x->sum16[i][col + c] : x->sum32[i][col + c]);
            sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(scales, pair));
        }
    }
    EACH (c, NC) total[c] = _mm256_sub_epi32(total[c], _mm256_sllv_epi32(sum[c], offset_shift));
}

TARGET INLINE void panel256_part(int depth, int sub_len, const struct quant_panel_form *form,
                                 int64_t n_blocks, const struct quant_panel256 *w,
                                 const struct engine_cols256 *x, int row, int col, __m256 *acc)
{
    EACH (c, NC) acc[c] = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b++, w++, x++) {
        __m256i total[NC];
        EACH (c, NC) total[c] = _mm256_setzero_si256();
        for (int i = 0; i < 256 / sub_len; i++) {
            int g = i * sub_len / 4;
            __m256i scale = _mm256_load_si256((const __m256i *)(w->scale[i] + row));
            scale = _mm256_blend_epi16(scale, _mm256_slli_epi32(scale, 16), 0xaa);
            add_groups(depth, sub_len / 4, w->q + g, x->q + g, row, col, scale, total);
        }
        if (depth && form->offset) subtract_offset(form->offset, sub_len, w, x, row, col, total);
        EACH (c, NC)
            acc[c] = _mm256_add_ps(acc[c], super_block(form, w, x, row, col + c, total[c]));
    }
}

TARGET INLINE void panel256_depth(int depth, const struct quant_panel_form *form, int64_t n_blocks,
                                  const struct quant_panel256 *w, const struct engine_cols256 *x,
                                  int row, int col, __m256 *acc)
{
    if (form->sub_len == 16)
        panel256_part(depth, 16, form, n_blocks, w, x, row, col, acc);
    else
        panel256_part(depth, 32, form, n_blocks, w, x, row, col, acc);
}

TARGET static void panel256_half(const struct quant_panel_form *form, int64_t n_blocks,
                                 const struct quant_panel256 *w, const struct engine_cols256 *x,
                                 int row, int col, __m256 *acc)
{
    switch (sum_depth(form->max_code)) {
    case 8:
        panel256_depth(8, form, n_blocks, w, x, row, col, acc);
        break;
    case 4:
        panel256_depth(4, form, n_blocks, w, x, row, col, acc);
        break;
    case 2:
        panel256_depth(2, form, n_blocks, w, x, row, col, acc);
        break;
    case 1:
        panel256_depth(1, form, n_blocks, w, x, row, col, acc);
        break;
    default:
        panel256_depth(0, form, n_blocks, w, x, row, col, acc);
    }
}

TARGET static void panel256_avx2(const struct quant_panel_form *form, int64_t n_blocks,
                                 const struct quant_panel256 *w, const struct engine_cols256 *x,
                                 int n_rows, int n_cols, float *const *out)
{
    for (int row = 0; row < n_rows; row += HALF) {
        for (int col = 0; col < n_cols; col += NC) {
            __m256 acc[NC];
            panel256_half(form, n_blocks, w, x, row, col, acc);
            store_half(acc, row, col, n_rows, n_cols, out);
        }
    }
}

/* 8 x 8 fours at a time, turned in registers. */
TARGET void engine_tile_interleave_avx2(int64_t n, const int8_t *const q[COLS],
                                        int8_t (*to)[COLS][4])
{
    for (int64_t i = 0; i < n; i += 8, to += 8) {
        __m256i v[8], two[8], four[8];
        for (int c = 0; c < 8; c++) v[c] = _mm256_loadu_si256((const __m256i *)(q[c] + 4 * i));
        for (int c = 0; c < 8; c += 2) {
            two[c] = _mm256_unpacklo_epi32(v[c], v[c + 1]);
            two[c + 1] = _mm256_unpackhi_epi32(v[c], v[c + 1]);
        }
        for (int h = 0; h < 2; h++) { /* columns 4h .. 4h + 3: elements j and j + 4 of each */
            four[4 * h] = _mm256_unpacklo_epi64(two[4 * h], two[4 * h + 2]);
            four[4 * h + 1] = _mm256_unpackhi_epi64(two[4 * h], two[4 * h + 2]);
            four[4 * h + 2] = _mm256_unpacklo_epi64(two[4 * h + 1], two[4 * h + 3]);
            four[4 * h + 3] = _mm256_unpackhi_epi64(two[4 * h + 1], two[4 * h + 3]);
        }
        for (int j = 0; j < 4; j++) {
            __m256i low = _mm256_permute2x128_si256(four[j], four[j + 4], 0x20);
            __m256i high = _mm256_permute2x128_si256(four[j], four[j + 4], 0x31);
            _mm256_storeu_si256((__m256i *)to[j], low);
            _mm256_storeu_si256((__m256i *)to[j + 4], high);
        }
    }
}

/* ---- Floats: 2 rows by 2 columns, lanes 0 to 7 and 8 to 15 in two registers ---- */

TARGET INLINE float tree(__m256 lo, __m256 hi)
{
    __m256 a = _mm256_add_ps(lo, hi);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* Lanes below n are all ones. */
TARGET INLINE __m256i lane_mask(int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

TARGET INLINE void f32_2x2(int64_t k, const float *const *w, const float *const *x, float *sums)
{
    __m256 acc[4][2];
    for (int i = 0; i < 4; i++) acc[i][0] = acc[i][1] = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= k; i += 16)
        for (int h = 0; h < 2; h++) {
            __m256 x0 = _mm256_loadu_ps(x[0] + i + 8 * h), x1 = _mm256_loadu_ps(x[1] + i + 8 * h);
            __m256 w0 = _mm256_loadu_ps(w[0] + i + 8 * h), w1 = _mm256_loadu_ps(w[1] + i + 8 * h);
            acc[0][h] = _mm256_fmadd_ps(w0, x0, acc[0][h]);
            acc[1][h] = _mm256_fmadd_ps(w0, x1, acc[1][h]);
            acc[2][h] = _mm256_fmadd_ps(w1, x0, acc[2][h]);
            acc[3][h] = _mm256_fmadd_ps(w1, x1, acc[3][h]);
        }
    for (int h = 0; i < k && h < 2; h++) { /* lanes beyond k stay as they are */
        __m256i part = lane_mask(k - i - 8 * h);
        for (int j = 0; j < 4; j++) {
            __m256 sum = _mm256_fmadd_ps(_mm256_maskload_ps(w[j / 2] + i + 8 * h, part),
                                         _mm256_maskload_ps(x[j % 2] + i + 8 * h, part), acc[j][h]);
            acc[j][h] = _mm256_blendv_ps(acc[j][h], sum, _mm256_castsi256_ps(part));
        }
    }
    for (int j = 0; j < 4; j++) sums[j] = tree(acc[j][0], acc[j][1]);
}

TARGET static void f32_avx2(int64_t k, const float *w, int64_t w_stride, int64_t n_rows,
                            const float *const *x, int64_t n_cols, float *const *out)
{
    for (int64_t c = 0; c < n_cols; c += 2) {
        int64_t c1 = c + 1 < n_cols ? c + 1 : c;
        const float *xc[2] = {x[c], x[c1]};
        for (int64_t r = 0; r < n_rows; r += 2) {
            int64_t r1 = r + 1 < n_rows ? r + 1 : r;
            const float *wr[2] = {w + r * w_stride, w + r1 * w_stride};
            float sums[4];
            f32_2x2(k, wr, xc, sums);
            out[c][r] = sums[0];
            out[c1][r] = sums[1];
            out[c][r1] = sums[2];
            out[c1][r1] = sums[3];
        }
    }
}

/* ---- Weighted sums of rows ---- */

/* nr rows of o by nv vectors of 8 columns, which stay in registers over all n. */
TARGET INLINE void weighted_tile(int64_t n, const float *v, int64_t v_stride, __m256i part,
                                 const float *const *p, float *const *o, int nr, int nv)
{
    __m256 acc[2][4];
    for (int i = 0; i < nr; i++)
        for (int d = 0; d < nv; d++) acc[i][d] = _mm256_maskload_ps(o[i] + 8 * d, part);
    for (int64_t j = 0; j < n; j++, v += v_stride) {
        for (int d = 0; d < nv; d++) {
            __m256 row = _mm256_maskload_ps(v + 8 * d, part);
            for (int i = 0; i < nr; i++)
                acc[i][d] = _mm256_fmadd_ps(row, _mm256_set1_ps(p[i][j]), acc[i][d]);
        }
    }
    for (int i = 0; i < nr; i++)
        for (int d = 0; d < nv; d++) _mm256_maskstore_ps(o[i] + 8 * d, part, acc[i][d]);
}

TARGET INLINE void weighted_rows(int64_t n, int64_t dim, const float *v, int64_t v_stride,
                                 const float *const *p, float *const *o, int nr)
{
    for (int64_t d = 0; d < dim;) {
        float *at[2] = {o[0] + d, o[nr - 1] + d};
        if (dim - d >= 32) {
            weighted_tile(n, v + d, v_stride, lane_mask(8), p, at, nr, 4);
            d += 32;
        } else {
            weighted_tile(n, v + d, v_stride, lane_mask(dim - d), p, at, nr, 1);
            d += 8;
        }
    }
}

TARGET static void weighted_sum_avx2(int64_t n, int64_t dim, const float *v, int64_t v_stride,
                                     const float *const *p, int64_t n_rows, float *const *o)
{
    int64_t i = 0;
    for (; i + 2 <= n_rows; i += 2) weighted_rows(n, dim, v, v_stride, p + i, o + i, 2);
    if (i < n_rows) weighted_rows(n, dim, v, v_stride, p + i, o + i, 1);
}

const struct engine_tile engine_tile_avx2 = {
    .panel32 = panel32_avx2,
    .panel256 = panel256_avx2,
    .interleave = engine_tile_interleave_avx2,
    .f32 = f32_avx2,
    .weighted_sum = weighted_sum_avx2,
};
#endif
