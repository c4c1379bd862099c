/* quant/x86/columns_x86.c: the kernels of matrices by columns (quant/columns.h) for AVX2, which are
 * limited by memory: wider registers would gain nothing.
 *
 * Blocks: 64 rows (Q8_0: 32) at a time, the columns with a code in pairs, sums in registers. The
 * columns of a later block are prefetched, because they are too short for hardware prefetchers: a
 * line of each along with the rows that it has, because the processor drops prefetches of a burst.
 * Zen 5 drops most of those to L2, whose pages have no cached translation, but none to L1. */
#include "quant/columns.h"
#include "quant/stream.h"
#include "quant/x86/types_x86.h"
#include <immintrin.h>
#include <math.h>

enum { BLOCK = QUANT_COLUMNS_BLOCK, AHEAD = 4, RING = 8, F16_ROWS = 256 };

/* The columns of a block with a code, as a mask. */
CPU_TARGET_AVX2 QUANT_INLINE uint32_t codes_avx2(const int8_t *q)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)q);
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_setzero_si256()));
}

/* A pair of columns: their addresses, and their codes of the activations as a pair of bytes; the
 * second code is 0 if their number is odd. */
struct column_pair {
    const uint8_t *a, *b;
    uint16_t q;
};

struct column_block {
    struct column_pair pair[BLOCK / 2];
    int n;
    const uint8_t *scales;
};

QUANT_INLINE void find_pairs(uint32_t mask, const uint8_t *at, int64_t column, const int8_t *q,
                             struct column_block *to)
{
    to->n = 0;
    to->scales = at + BLOCK * column;
    while (mask) {
        const int i = __builtin_ctz(mask);
        mask &= mask - 1;
        const int j = mask ? __builtin_ctz(mask) : i;
        const uint8_t second = mask ? (uint8_t)q[j] : 0;
        mask &= mask - 1;
        to->pair[to->n++] = (struct column_pair){at + i * column, at + j * column,
                                                 (uint16_t)((uint8_t)q[i] | second << 8)};
    }
}

QUANT_INLINE void prefetch(bool to_l1, const uint8_t *at, int64_t bytes)
{
    if (to_l1)
        quant_prefetch_to_l1((const char *)at, (size_t)bytes);
    else
        quant_prefetch((const char *)at, (size_t)bytes);
}

/* Prefetches `bytes` of the block's columns, and n scales. */
QUANT_INLINE void prefetch_block(const struct column_block *b, bool to_l1, int64_t from,
                                 int64_t bytes, int64_t first, int64_t n)
{
    if (b->n == 0) return;
    for (int i = 0; i < b->n; i++) {
        prefetch(to_l1, b->pair[i].a + from, bytes);
        prefetch(to_l1, b->pair[i].b + from, bytes);
    }
    prefetch(to_l1, b->scales + 2 * first, 2 * n);
}

/* Adds the contribution of a block to 8 results. */
CPU_TARGET_AVX2 QUANT_INLINE void add_avx2(__m256i isum, const uint8_t *scales, __m256 d_a,
                                           float *out)
{
    const __m256 d_w = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)scales));
    const __m256 v = _mm256_mul_ps(_mm256_mul_ps(d_w, d_a), _mm256_cvtepi32_ps(isum));
    _mm256_storeu_ps(out, _mm256_add_ps(_mm256_loadu_ps(out), v));
}

/* Rows 32 h .. 32 h + 31 of a group of 64: sums of 16 bits in the order of unpacking. |sum of (code
 * - 8) * q| is at most 8 * 127 * 32, so what exceeds 16 bits before `less` is subtracted does not
 * matter. */
CPU_TARGET_AVX2 QUANT_INLINE void add_half_avx2(__m256i lo, __m256i hi, __m256i less,
                                                const uint8_t *scales, __m256 d_a, float *out)
{
    lo = _mm256_sub_epi16(lo, less);
    hi = _mm256_sub_epi16(hi, less);
    add_avx2(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(lo)), scales, d_a, out);
    add_avx2(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(hi)), scales + 16, d_a, out + 8);
    add_avx2(_mm256_cvtepi16_epi32(_mm256_extracti128_si256(lo, 1)), scales + 32, d_a, out + 16);
    add_avx2(_mm256_cvtepi16_epi32(_mm256_extracti128_si256(hi, 1)), scales + 48, d_a, out + 24);
}

CPU_TARGET_AVX2 QUANT_INLINE void q4_0_rows_avx2(const struct column_block *b, int64_t row,
                                                 __m256i less, __m256 d_a, float *out)
{
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
    for (int i = 0; i < b->n; i++) {
        const __m256i q = _mm256_set1_epi16((short)b->pair[i].q);
        const __m256i x = _mm256_loadu_si256((const __m256i *)(b->pair[i].a + row / 2));
        const __m256i y = _mm256_loadu_si256((const __m256i *)(b->pair[i].b + row / 2));
        const __m256i x0 = _mm256_and_si256(x, mask), y0 = _mm256_and_si256(y, mask);
        const __m256i x1 = _mm256_and_si256(_mm256_srli_epi16(x, 4), mask);
        const __m256i y1 = _mm256_and_si256(_mm256_srli_epi16(y, 4), mask);
        s0 = _mm256_add_epi16(s0, _mm256_maddubs_epi16(_mm256_unpacklo_epi8(x0, y0), q));
        s1 = _mm256_add_epi16(s1, _mm256_maddubs_epi16(_mm256_unpackhi_epi8(x0, y0), q));
        s2 = _mm256_add_epi16(s2, _mm256_maddubs_epi16(_mm256_unpacklo_epi8(x1, y1), q));
        s3 = _mm256_add_epi16(s3, _mm256_maddubs_epi16(_mm256_unpackhi_epi8(x1, y1), q));
    }
    add_half_avx2(s0, s1, less, b->scales + 2 * row, d_a, out);
    add_half_avx2(s2, s3, less, b->scales + 2 * (row + 32), d_a, out + 32);
}

/* Sums of 8 rows of two columns, whose codes are interleaved in x. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i q8_0_sum_avx2(__m256i sum, __m128i x, __m256i q)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepi8_epi16(x), q));
}

CPU_TARGET_AVX2 QUANT_INLINE void q8_0_rows_avx2(const struct column_block *b, int64_t row,
                                                 __m256 d_a, float *out)
{
    __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
    for (int i = 0; i < b->n; i++) {
        const uint16_t both = b->pair[i].q;
        const __m256i q =
            _mm256_set1_epi32((uint16_t)(int8_t)(both & 255) | (int8_t)(both >> 8) * 65536);
        const __m256i x = _mm256_loadu_si256((const __m256i *)(b->pair[i].a + row));
        const __m256i y = _mm256_loadu_si256((const __m256i *)(b->pair[i].b + row));
        const __m256i lo = _mm256_unpacklo_epi8(x, y), hi = _mm256_unpackhi_epi8(x, y);
        s0 = q8_0_sum_avx2(s0, _mm256_castsi256_si128(lo), q);
        s1 = q8_0_sum_avx2(s1, _mm256_castsi256_si128(hi), q);
        s2 = q8_0_sum_avx2(s2, _mm256_extracti128_si256(lo, 1), q);
        s3 = q8_0_sum_avx2(s3, _mm256_extracti128_si256(hi, 1), q);
    }
    const uint8_t *scales = b->scales + 2 * row;
    add_avx2(s0, scales, d_a, out);
    add_avx2(s1, scales + 16, d_a, out + 8);
    add_avx2(s2, scales + 32, d_a, out + 16);
    add_avx2(s3, scales + 48, d_a, out + 24);
}

CPU_TARGET_AVX2 QUANT_INLINE void blocks_avx2(enum quant_id id, const struct quant_columns *c,
                                              int64_t first, int64_t n, const struct quant_act *a,
                                              float *out)
{
    const int64_t column = quant_columns_column(id, c->n_rows);
    const int64_t bytes = quant_columns_block(id, c->n_rows), n_blocks = c->k / BLOCK;
    const int64_t rows_per_line = 64 * c->n_rows / column;
    struct column_block ring[RING]; /* b .. b + AHEAD */
    for (int64_t i = 0; i < n; i++) out[i] = 0.0f;
    for (int64_t b = -AHEAD; b < n_blocks; b++) {
        struct column_block *next = &ring[(b + AHEAD) % RING];
        const int8_t *q = a->q + (b + AHEAD) * BLOCK;
        next->n = 0;
        if (b + AHEAD < n_blocks)
            find_pairs(codes_avx2(q), (const uint8_t *)c->data + (b + AHEAD) * bytes, column, q,
                       next);
        if (b < 0) continue;
        const struct column_block *block = &ring[b % RING];
        if (block->n == 0 && !isnan(a->d[b])) {
            prefetch_block(next, c->to_l1, first * column / c->n_rows, n * column / c->n_rows,
                           first, n);
            continue;
        }
        const __m256 d_a = _mm256_set1_ps(a->d[b]);
        const __m256i less = _mm256_set1_epi16((short)(8 * a->sum[b]));
        for (int64_t i = 0; i < n; i += id == QUANT_Q4_0 ? 64 : 32) {
            if (i % rows_per_line == 0)
                prefetch_block(next, c->to_l1, (first + i) * column / c->n_rows, 64, first + i,
                               rows_per_line);
            if (id == QUANT_Q4_0)
                q4_0_rows_avx2(block, first + i, less, d_a, out + i);
            else
                q8_0_rows_avx2(block, first + i, d_a, out + i);
        }
    }
}

CPU_TARGET_AVX2 static void q4_0_avx2(const struct quant_columns *c, int64_t first, int64_t n,
                                      const struct quant_act *a, float *out)
{
    blocks_avx2(QUANT_Q4_0, c, first, n, a, out);
}

CPU_TARGET_AVX2 static void q8_0_avx2(const struct quant_columns *c, int64_t first, int64_t n,
                                      const struct quant_act *a, float *out)
{
    blocks_avx2(QUANT_Q8_0, c, first, n, a, out);
}

/* At most F16_ROWS rows: their 16 lanes are in the first-level cache. */
CPU_TARGET_AVX2 static void f16_rows_avx2(const struct quant_columns *c, int64_t first, int64_t n,
                                          const struct quant_act *a, float *out)
{
    enum { LIST = 256 };
    _Alignas(32) float lane[16][F16_ROWS];
    const uint8_t *w = (const uint8_t *)c->data + 2 * first;
    int64_t list[LIST];
    for (int l = 0; l < 16; l++) memset(lane[l], 0, (size_t)n * sizeof(float));
    for (int64_t j = 0; j < c->k;) {
        int count = 0;
        for (; j < c->k && count < LIST; j++) {
            list[count] = j;
            count += a->f32[j] != 0.0f;
        }
        for (int t = 0; t < count; t++) {
            if (t + AHEAD < count)
                quant_prefetch_to_l1((const char *)w + 2 * list[t + AHEAD] * c->n_rows,
                                     (size_t)(2 * n));
            float *to = lane[list[t] % 16];
            const uint8_t *column = w + 2 * list[t] * c->n_rows;
            const __m256 x = _mm256_set1_ps(a->f32[list[t]]);
            for (int64_t i = 0; i < n; i += 8) {
                const __m256 v =
                    _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(column + 2 * i)));
                _mm256_store_ps(to + i, _mm256_fmadd_ps(v, x, _mm256_load_ps(to + i)));
            }
        }
    }
    for (int h = 8; h > 0; h /= 2)
        for (int l = 0; l < h; l++)
            for (int64_t i = 0; i < n; i += 8)
                _mm256_store_ps(lane[l] + i, _mm256_add_ps(_mm256_load_ps(lane[l] + i),
                                                           _mm256_load_ps(lane[l + h] + i)));
    memcpy(out, lane[0], (size_t)n * sizeof(float));
}

CPU_TARGET_AVX2 static void f16_avx2(const struct quant_columns *c, int64_t first, int64_t n,
                                     const struct quant_act *a, float *out)
{
    for (int64_t i = 0, some; i < n; i += some) {
        some = n - i < F16_ROWS ? n - i : F16_ROWS;
        f16_rows_avx2(c, first + i, some, a, out + i);
    }
}

void quant_x86_columns_fill(struct quant_kernels *kernels)
{
    kernels->type[QUANT_Q4_0].columns = q4_0_avx2;
    kernels->type[QUANT_Q8_0].columns = q8_0_avx2;
    kernels->type[QUANT_F16].columns = f16_avx2;
}
