/* engine/cpu/x86/tile_avx2.c: tile kernels for AVX2 with FMA, and for AVX2 with AVX-VNNI.
 *
 * A panel's 16 rows are two halves of 8 lanes. Both are multiplied by 4 columns at a time, block by
 * block: 8 registers of 16-bit sums, 6 loads for 8 multiplies; the other 4 columns then find the
 * block in the L1 cache, and float sums are in memory. VPMADDUBSW adds two products in 16 bits and
 * saturates: the number of such sums that fit (depth) follows from the type's largest code, and for
 * super-blocks from the columns' bounds (`measure`). If not even one fits, code - 128 is multiplied
 * instead of the code, by sign and magnitude. With AVX-VNNI, VPDPBUSD adds four products in 32 bits
 * instead. All arithmetic inside a block is exact.
 *
 * The empty asm statements prevent two optimizations of gcc that spill registers: adding sums as a
 * tree, and loading a block's weights only once for all columns. Results have the bits of
 * tile_scalar.c. */
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <string.h>

#define TARGET CPU_TARGET_AVX2
#define INLINE static inline __attribute__((always_inline))

enum { COLS = ENGINE_TILE_COLS, NC = 4, HALF = 8 };

TARGET INLINE __m256i broadcast4(const void *from)
{
    int32_t four;
    memcpy(&four, from, sizeof(four));
    return _mm256_set1_epi32(four);
}

/* ---- Integer sums ---- */

/* The number of VPMADDUBSW results, each up to 2 * code * 127, that can be added in 16 bits; 0: not
 * even one. */
static int sum_depth(int max_code)
{
    int depth = 32767 / (2 * 127 * (max_code ? max_code : 1));
    return depth >= 8 ? 8 : depth >= 4 ? 4 : depth >= 2 ? 2 : depth;
}

/* pairs + the sums of two products each. Both instructions are one asm statement, because gcc would
 * multiply all columns first. */
TARGET INLINE __m256i add_products(__m256i pairs, __m256i codes, __m256i q)
{
    __m256i products;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
            : "+x"(pairs), "=&x"(products)
            : "x"(codes), "x"(q));
    return pairs;
}

/* sum + factor * pairs, in 32 bits. */
TARGET INLINE __m256i add_widened(__m256i sum, __m256i pairs, __m256i factor)
{
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, factor));
    __asm__("" : "+x"(sum));
    return sum;
}

/* sum[h][c] += factor[h] * codes * q of `depth` groups of 4 elements, for both halves and NC
 * columns from x on; factor: in both 16-bit halves of a row's lane. */
TARGET INLINE void add_groups(int depth, const uint8_t (*w)[16][4], const int8_t (*x)[COLS][4],
                              const __m256i factor[2], __m256i sum[2][NC])
{
    __m256i pairs[2][NC];
    EACH (j, depth) {
        __m256i codes[2];
        EACH (h, 2) codes[h] = _mm256_load_si256((const __m256i *)w[j][HALF * h]);
        EACH (c, NC) {
            __m256i q = broadcast4(x[j][c]);
            EACH (h, 2)
                pairs[h][c] =
                    j ? add_products(pairs[h][c], codes[h], q) : _mm256_maddubs_epi16(codes[h], q);
        }
    }
    EACH (c, NC)
        EACH (h, 2) sum[h][c] = add_widened(sum[h][c], pairs[h][c], factor[h]);
}

/* add_groups for few groups: their codes are in registers, and columns are processed one by one, so
 * that the sums of a column are in registers, too. */
TARGET INLINE void add_few_groups(int depth, const uint8_t (*w)[16][4], const int8_t (*x)[COLS][4],
                                  const __m256i factor[2], __m256i sum[2][NC])
{
    __m256i codes[2][2];
    EACH (j, depth)
        EACH (h, 2) codes[j][h] = _mm256_load_si256((const __m256i *)w[j][HALF * h]);
    EACH (c, NC) {
        __m256i q[2];
        EACH (j, depth) q[j] = broadcast4(x[j][c]);
        EACH (h, 2) {
            __m256i pairs = _mm256_maddubs_epi16(codes[0][h], q[0]);
            if (depth == 2) pairs = add_products(pairs, codes[1][h], q[1]);
            sum[h][c] = add_widened(sum[h][c], pairs, factor[h]);
        }
    }
}

/* add_groups for one group, with code - 128 instead of the code. */
TARGET INLINE void add_signed_group(const uint8_t (*w)[4], const int8_t (*x)[4],
                                    const __m256i factor[2], __m256i sum[2][NC])
{
    const __m256i top = _mm256_set1_epi8((char)0x80);
    __m256i value[2], size[2];
    EACH (h, 2) {
        value[h] = _mm256_xor_si256(_mm256_load_si256((const __m256i *)w[HALF * h]), top);
        size[h] = _mm256_abs_epi8(value[h]);
    }
    EACH (c, NC) {
        __m256i q = broadcast4(x[c]);
        EACH (h, 2) {
            __m256i pairs = _mm256_maddubs_epi16(size[h], _mm256_sign_epi8(q, value[h]));
            sum[h][c] = add_widened(sum[h][c], pairs, factor[h]);
        }
    }
}

/* Special values of depth for VPDPBUSD: sums over a sub-block fit 16 bits (DOTS) or may not
 * (DOTS_WIDE). */
enum { DOTS = 16, DOTS_WIDE };

/* sum + four products. Its intrinsic is not available to functions compiled for plain AVX2. */
TARGET INLINE __m256i add_dots(__m256i sum, __m256i codes, __m256i q)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(codes), "x"(q));
    return sum;
}

/* sum[h][c] += codes * q, of n groups. */
TARGET INLINE void add_dots_block(int n, const uint8_t (*w)[16][4], const int8_t (*x)[COLS][4],
                                  __m256i sum[2][NC])
{
    EACH (i, n) {
        __m256i codes[2];
        EACH (h, 2) codes[h] = _mm256_load_si256((const __m256i *)w[i][HALF * h]);
        EACH (c, NC) {
            __m256i q = broadcast4(x[i][c]);
            EACH (h, 2) sum[h][c] = add_dots(sum[h][c], codes[h], q);
        }
    }
}

/* sum[h][c] += factor[h] * codes * q, of n groups; `sums32`: their sums may not fit 16 bits. */
TARGET INLINE void add_scaled_dots(bool sums32, int n, const uint8_t (*w)[16][4],
                                   const int8_t (*x)[COLS][4], const __m256i factor[2],
                                   __m256i sum[2][NC])
{
    __m256i sub[2][NC], scale[2];
    EACH (h, 2) {
        scale[h] = _mm256_slli_epi32(factor[h], 16);
        scale[h] = sums32 ? _mm256_srai_epi32(scale[h], 16) : _mm256_srli_epi32(scale[h], 16);
        EACH (c, NC) sub[h][c] = _mm256_setzero_si256();
    }
    add_dots_block(n, w, x, sub);
    EACH (c, NC)
        EACH (h, 2) {
            if (sums32)
                sum[h][c] = _mm256_add_epi32(sum[h][c], _mm256_mullo_epi32(sub[h][c], scale[h]));
            else
                sum[h][c] = add_widened(sum[h][c], sub[h][c], scale[h]);
        }
}

/* Adds n groups. depth 0: code - 128 instead of the code. Without `scaled` all factors are 1. */
TARGET INLINE void add_block(int depth, bool scaled, int n, const uint8_t (*w)[16][4],
                             const int8_t (*x)[COLS][4], const __m256i factor[2],
                             __m256i sum[2][NC])
{
    const int step = depth > n ? n : depth;
    if (depth >= DOTS && scaled)
        add_scaled_dots(depth == DOTS_WIDE, n, w, x, factor, sum);
    else if (depth >= DOTS)
        add_dots_block(n, w, x, sum);
    else if (depth == 0)
        EACH (i, n) add_signed_group(w[i], x[i], factor, sum);
    else
        EACH (i, n / step) {
            if (step > 2)
                add_groups(step, w + i * step, x + i * step, factor, sum);
            else
                add_few_groups(step, w + i * step, x + i * step, factor, sum);
        }
}

/* q from column `col` on. */
INLINE const int8_t (*columns_from(const int8_t (*q)[COLS][4], int64_t col))[COLS][4]
{
    return (const int8_t(*)[COLS][4])q[0][col];
}

/* ---- Blocks of 32 ----
 *
 * Sums start at -offset * (sum of q), except in types with minima (no offset) and if code - 128 is
 * multiplied (which is the value). */

TARGET INLINE void panel32_part(int depth, bool has_min, const struct quant_panel_form *form,
                                int64_t n_blocks, const struct quant_panel32 *w,
                                const struct engine_cols32 *x, int n_cols, __m256 *acc)
{
    const __m256i ones[2] = {_mm256_set1_epi16(1), _mm256_set1_epi16(1)};
    const __m256i offset_shift = _mm256_set1_epi32(__builtin_ctz(form->offset | 256));
    for (int64_t b = 0; b < n_blocks; b++, w++, x++) {
        for (int64_t col = 0; col < n_cols; col += NC) {
            __asm__("" : "+r"(w), "+r"(x));
            __m256i sum[2][NC];
            EACH (c, NC)
                sum[0][c] = sum[1][c] =
                    has_min || depth == 0
                        ? _mm256_setzero_si256()
                        : _mm256_sllv_epi32(broadcast4(&x->minus_sum[col + c]), offset_shift);
            add_block(depth, false, 8, w->q, columns_from(x->q, col), ones, sum);
            EACH (h, 2) {
                __m256 d = _mm256_load_ps(w->d + HALF * h), m = _mm256_load_ps(w->m + HALF * h);
                EACH (c, NC) {
                    __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(x->d[col + c]));
                    __m256 f = _mm256_cvtepi32_ps(sum[h][c]), v;
                    if (has_min) {
                        __m256 s = _mm256_set1_ps(x->s[col + c]);
                        v = _mm256_fmadd_ps(scale, f, _mm256_mul_ps(m, s));
                    } else {
                        v = _mm256_mul_ps(scale, f);
                    }
                    acc[2 * (col + c) + h] = _mm256_add_ps(acc[2 * (col + c) + h], v);
                }
            }
        }
    }
}

/* The sums of both halves of each column, zeroed before the first K-block. gcc would zero an array
 * by REP STOS, which takes as long as a block. */
TARGET INLINE __m256 *begin_tile(const struct engine_tile_to *to)
{
    __m256 *acc = (__m256 *)to->sums->of[0], zero = _mm256_setzero_ps();
    __asm__("" : "+x"(zero));
    if (to->first)
        EACH (i, 2 * COLS) acc[i] = zero;
    return acc;
}

TARGET INLINE void finish_tile(const __m256 *acc, const struct engine_tile_to *to)
{
    for (int c = 0; to->last && c < to->n_cols; c++) {
        if (to->n_rows == 2 * HALF) {
            _mm256_storeu_ps(to->out[c], acc[2 * c]);
            _mm256_storeu_ps(to->out[c] + HALF, acc[2 * c + 1]);
        } else {
            memcpy(to->out[c], acc + 2 * c, (size_t)to->n_rows * sizeof(float));
        }
    }
}

TARGET static void panel32_avx2(const struct quant_panel_form *form, int64_t n_blocks,
                                const void *w, const void *x, const struct engine_tile_to *to)
{
    __m256 *acc = begin_tile(to);
    const int depth = sum_depth(form->max_code);
    if (depth == 8 && form->has_min)
        panel32_part(8, true, form, n_blocks, w, x, to->n_cols, acc);
    else if (depth == 8)
        panel32_part(8, false, form, n_blocks, w, x, to->n_cols, acc);
    else if (depth == 4 && form->has_min)
        panel32_part(4, true, form, n_blocks, w, x, to->n_cols, acc);
    else if (depth == 4)
        panel32_part(4, false, form, n_blocks, w, x, to->n_cols, acc);
    else if (depth)
        panel32_part(1, false, form, n_blocks, w, x, to->n_cols, acc);
    else
        panel32_part(0, false, form, n_blocks, w, x, to->n_cols, acc);
    finish_tile(acc, to);
}

TARGET static void panel32_avxvnni(const struct quant_panel_form *form, int64_t n_blocks,
                                   const void *w, const void *x, const struct engine_tile_to *to)
{
    __m256 *acc = begin_tile(to);
    if (form->has_min)
        panel32_part(DOTS, true, form, n_blocks, w, x, to->n_cols, acc);
    else
        panel32_part(DOTS, false, form, n_blocks, w, x, to->n_cols, acc);
    finish_tile(acc, to);
}

/* ---- Blocks of 256 ---- */

/* Sums of q over sub-blocks 2i and 2i + 1. */
TARGET INLINE __m256i pair_of_sums(const struct engine_cols256 *x, int sub_len, int i, int64_t col)
{
    return broadcast4(sub_len == 16 ? x->sum16[i][col] : x->sum32[i][col]);
}

/* sum[h][c] = the sum over sub-blocks of minimum * (sum of q). */
TARGET INLINE void minima(int sub_len, const struct quant_panel256 *w,
                          const struct engine_cols256 *x, int64_t col, __m256i sum[2][NC])
{
    EACH (c, NC) sum[0][c] = sum[1][c] = _mm256_setzero_si256();
    EACH (i, 128 / sub_len) {
        EACH (c, NC) {
            __m256i pair = pair_of_sums(x, sub_len, i, col + c);
            EACH (h, 2) {
                __m256i min = _mm256_load_si256((const __m256i *)w->min[i][HALF * h]);
                sum[h][c] = add_widened(sum[h][c], min, pair);
            }
        }
    }
}

/* total -= offset * the sum over sub-blocks of scale * (sum of q). */
TARGET INLINE void subtract_offset(int offset, int sub_len, const struct quant_panel256 *w,
                                   const struct engine_cols256 *x, int64_t col,
                                   __m256i total[2][NC])
{
    const __m256i offset_shift = _mm256_set1_epi32(__builtin_ctz(offset));
    __m256i sum[2][NC];
    EACH (c, NC) sum[0][c] = sum[1][c] = _mm256_setzero_si256();
    EACH (i, 128 / sub_len) {
        __m256i scales[2];
        EACH (h, 2) scales[h] = _mm256_load_si256((const __m256i *)w->scale[i][HALF * h]);
        EACH (c, NC) {
            __m256i pair = pair_of_sums(x, sub_len, i, col + c);
            EACH (h, 2) sum[h][c] = add_widened(sum[h][c], scales[h], pair);
        }
    }
    EACH (c, NC)
        EACH (h, 2)
            total[h][c] = _mm256_sub_epi32(total[h][c], _mm256_sllv_epi32(sum[h][c], offset_shift));
}

/* The number of VPMADDUBSW results of these columns that can be added in 16 bits: 4 or 8 if the
 * columns' bounds allow it, otherwise by the largest code. */
static int sums_depth(const struct quant_panel_form *form, const struct engine_cols256 *x)
{
    if (form->max_code * x->peak8 <= INT16_MAX) return 8;
    if (form->max_code * x->peak4 <= INT16_MAX) return 4;
    return sum_depth(form->max_code);
}

/* The depth for VPDPBUSD, where a sub-block is two 16-bit lanes of 4 or 8 groups. */
static int dots_depth(const struct quant_panel_form *form, const struct engine_cols256 *x)
{
    const int peak = form->sub_len == 16 ? x->peak4 : x->peak8;
    return 2 * form->max_code * peak <= INT16_MAX ? DOTS : DOTS_WIDE;
}

/* Element i % 2 of each pair, in both halves of the pair's lane. */
TARGET INLINE __m256i one_of_pair(const int16_t *pairs, int i)
{
    const __m256i first = _mm256_set_epi32(0x0d0c0d0c, 0x09080908, 0x05040504, 0x01000100, //
                                           0x0d0c0d0c, 0x09080908, 0x05040504, 0x01000100);
    const __m256i places = _mm256_add_epi8(first, _mm256_set1_epi8((char)(i % 2 * 2)));
    return _mm256_shuffle_epi8(_mm256_load_si256((const __m256i *)pairs), places);
}

/* total = isum (quant/quant.h) of both halves and NC columns from `col` on; the offset is not
 * subtracted unless code - 128 is multiplied. */
TARGET INLINE void super_block_sums(int depth, bool folded, int sub_len,
                                    const struct quant_panel256 *w, const struct engine_cols256 *x,
                                    int64_t col, __m256i total[2][NC])
{
    const uint8_t(*wq)[16][4] = w->q;
    const int8_t(*xq)[COLS][4] = columns_from(x->q, col);
    __m256i scale[2] = {_mm256_set1_epi16(1), _mm256_set1_epi16(1)};
    const int len = folded ? 32 : sub_len;
    EACH (c, NC) total[0][c] = total[1][c] = _mm256_setzero_si256();
    for (int i = 0; i < 256 / len; i++, wq += len / 4, xq += len / 4) {
        if (!folded)
            EACH (h, 2) scale[h] = one_of_pair(w->scale[i / 2][HALF * h], i);
        add_block(depth, !folded, len / 4, wq, xq, scale, total);
    }
}

TARGET INLINE void panel256_part(bool dots, bool folded, int sub_len,
                                 const struct quant_panel_form *form, int64_t n_blocks,
                                 const struct quant_panel256 *w, const struct engine_cols256 *x,
                                 int n_cols, __m256 *acc)
{
    const bool has_min = form->has_min;
    for (int64_t b = 0; b < n_blocks; b++, w++, x++) {
        const int depth = dots ? dots_depth(form, x) : sums_depth(form, x);
        for (int64_t col = 0; col < n_cols; col += NC) {
            __asm__("" : "+r"(w), "+r"(x));
            __m256i total[2][NC], min[2][NC];
            if (dots && depth == DOTS)
                super_block_sums(DOTS, folded, sub_len, w, x, col, total);
            else if (dots)
                super_block_sums(DOTS_WIDE, folded, sub_len, w, x, col, total);
            else if (depth == 8)
                super_block_sums(8, folded, sub_len, w, x, col, total);
            else if (depth == 4)
                super_block_sums(4, folded, sub_len, w, x, col, total);
            else if (depth == 2)
                super_block_sums(2, folded, sub_len, w, x, col, total);
            else if (depth == 1)
                super_block_sums(1, folded, sub_len, w, x, col, total);
            else
                super_block_sums(0, folded, sub_len, w, x, col, total);
            if (depth && form->offset) subtract_offset(form->offset, sub_len, w, x, col, total);
            if (has_min) minima(sub_len, w, x, col, min);
            EACH (h, 2) {
                __m256 d = _mm256_load_ps(w->d + HALF * h), m = _mm256_load_ps(w->m + HALF * h);
                EACH (c, NC) {
                    __m256 da = _mm256_set1_ps(x->d[col + c]), scale = _mm256_mul_ps(d, da);
                    __m256 f = _mm256_cvtepi32_ps(total[h][c]), v;
                    if (has_min) {
                        v = _mm256_mul_ps(_mm256_mul_ps(m, da), _mm256_cvtepi32_ps(min[h][c]));
                        v = _mm256_fmadd_ps(scale, f, v);
                    } else {
                        v = _mm256_mul_ps(scale, f);
                    }
                    acc[2 * (col + c) + h] = _mm256_add_ps(acc[2 * (col + c) + h], v);
                }
            }
        }
    }
}

TARGET INLINE void panel256(bool dots, const struct quant_panel_form *form, int64_t n_blocks,
                            const struct quant_panel256 *w, const struct engine_cols256 *x,
                            const struct engine_tile_to *to)
{
    __m256 *acc = begin_tile(to);
    if (form->folded)
        panel256_part(dots, true, 16, form, n_blocks, w, x, to->n_cols, acc);
    else if (form->sub_len == 16)
        panel256_part(dots, false, 16, form, n_blocks, w, x, to->n_cols, acc);
    else
        panel256_part(dots, false, 32, form, n_blocks, w, x, to->n_cols, acc);
    finish_tile(acc, to);
}

TARGET static void panel256_avx2(const struct quant_panel_form *form, int64_t n_blocks,
                                 const void *w, const void *x, const struct engine_tile_to *to)
{
    panel256(false, form, n_blocks, w, x, to);
}

TARGET static void panel256_avxvnni(const struct quant_panel_form *form, int64_t n_blocks,
                                    const void *w, const void *x, const struct engine_tile_to *to)
{
    panel256(true, form, n_blocks, w, x, to);
}

/* Sums, over 4 and over 8 groups of 4 elements, of the elements of one sign that VPMADDUBSW adds in
 * the same 16-bit lane. */
TARGET static void measure_avx2(int64_t n_blocks, struct engine_cols256 *x)
{
    const __m256i ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    for (int64_t b = 0; b < n_blocks; b++, x++) {
        __m256i peak[2] = {zero, zero};
        for (int i = 0; i < 64; i += 8) {
            __m256i plus[2] = {zero, zero}, minus[2] = {zero, zero};
            EACH (h, 2)
                EACH (g, 4) {
                    __m256i q = _mm256_loadu_si256((const __m256i *)x->q[i + 4 * h + g]);
                    __m256i above = _mm256_max_epi8(q, zero), below = _mm256_sub_epi8(above, q);
                    plus[h] = _mm256_add_epi16(plus[h], _mm256_maddubs_epi16(ones, above));
                    minus[h] = _mm256_add_epi16(minus[h], _mm256_maddubs_epi16(ones, below));
                }
            EACH (h, 2) peak[0] = _mm256_max_epi16(peak[0], _mm256_max_epi16(plus[h], minus[h]));
            peak[1] = _mm256_max_epi16(peak[1], _mm256_add_epi16(plus[0], plus[1]));
            peak[1] = _mm256_max_epi16(peak[1], _mm256_add_epi16(minus[0], minus[1]));
        }
        int16_t four[16], eight[16];
        _mm256_storeu_si256((__m256i *)four, peak[0]);
        _mm256_storeu_si256((__m256i *)eight, peak[1]);
        x->peak4 = x->peak8 = 0;
        for (int l = 0; l < 16; l++) {
            if (four[l] > x->peak4) x->peak4 = four[l];
            if (eight[l] > x->peak8) x->peak8 = eight[l];
        }
    }
}

/* Transposes 8 x 8 groups of four bytes at a time, in registers. */
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
        for (int h = 0; h < 2; h++) { /* elements j and j + 4 of columns 4h .. 4h + 3 */
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

/* ---- Weighted sums of rows ---- */

/* A mask of the lanes below n. */
TARGET INLINE __m256i lane_mask(int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

/* nr rows of o times nv vectors of 8 columns, with the sums in registers. */
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

/* The rows of AVX2 and AVX-VNNI differ in the kernels of panels. */
#define TILE(level)                                                                                \
    const struct engine_tile engine_tile_##level = {                                               \
        ENGINE_TILE_INTERLEAVED,                                                                   \
        .panel32 = panel32_##level,                                                                \
        .panel256 = panel256_##level,                                                              \
        .interleave = engine_tile_interleave_avx2,                                                 \
        .measure = measure_avx2,                                                                   \
        .f32 = engine_tile_f32_avx2,                                                               \
        .packed_f32 = &engine_tile_packed_f32_avx2,                                                \
        .packed_bf16 = &engine_tile_packed_bf16_avx2,                                              \
        .weighted_sum = weighted_sum_avx2,                                                         \
    }
TILE(avx2);
TILE(avxvnni);
