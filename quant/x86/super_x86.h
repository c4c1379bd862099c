/* quant/x86/super_x86.h: private to quant/: code that the x86 kernels of the super-block types
 * share.
 *
 * Unpacking uses 256-bit vectors, and with AVX-512 512-bit vectors for the codes (except IQ4_XS,
 * where they are not faster). super_rows_load reads 8 or 16 rows and transposes them, so that a
 * lane is a row and the code after it is the scalar code of one row. gemv multiplies rows one by
 * one, in one loop for AVX2 and one for AVX-512. */
#pragma once

#include "quant/stream.h"
#include "quant/super/super.h"

#include <immintrin.h>

#define SUPER_AVX2 QUANT_INLINE CPU_TARGET_AVX2

/* ---- Rows into lanes ---- */

/* Loads 16 bytes at `offset` of each of 8 rows: lane r of out[i] is the i-th 32-bit word of row r.
 */
SUPER_AVX2 void super_rows_load(const void *const row[8], int64_t offset, __m256i out[4])
{
    __m256i v[4];
    for (int r = 0; r < 4; r++) {
        const __m128i *low = (const void *)((const char *)row[r] + offset);
        const __m128i *high = (const void *)((const char *)row[r + 4] + offset);
        v[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                       _mm_loadu_si128(high), 1);
    }
    __m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpacklo_epi32(v[2], v[3]);
    __m256i c = _mm256_unpackhi_epi32(v[0], v[1]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm256_unpacklo_epi64(a, b);
    out[1] = _mm256_unpackhi_epi64(a, b);
    out[2] = _mm256_unpacklo_epi64(c, d);
    out[3] = _mm256_unpackhi_epi64(c, d);
}

/* Converts the half-precision numbers in the low 16 bits of each lane. */
SUPER_AVX2 __m256 super_halves(__m256i words)
{
    __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

/* Stores four bytes per lane as two pairs of sub-scales or minima: bytes 2p and 2p + 1 of lane i to
 * to[p][r + i]. */
SUPER_AVX2 void super_pairs_store(__m256i bytes, int r, int16_t to[2][16][2])
{
    for (int p = 0; p < 2; p++) {
        __m256i two = _mm256_srli_epi32(bytes, 16 * p);
        __m256i even = _mm256_and_si256(two, _mm256_set1_epi32(0xff));
        __m256i odd = _mm256_and_si256(_mm256_slli_epi32(two, 8), _mm256_set1_epi32(0xff0000));
        _mm256_storeu_si256((__m256i *)to[p][r], _mm256_or_si256(even, odd));
    }
}

/* super_pairs_store for signed bytes. */
SUPER_AVX2 void super_signed_pairs_store(__m256i bytes, int r, int16_t to[2][16][2])
{
    for (int p = 0; p < 2; p++) {
        __m256i two = _mm256_slli_epi32(bytes, 16 - 16 * p); /* in the upper half */
        __m256i even = _mm256_srai_epi16(_mm256_srli_epi32(two, 8), 8);
        __m256i odd = _mm256_srai_epi16(two, 8);
        _mm256_storeu_si256((__m256i *)to[p][r], _mm256_blend_epi16(even, odd, 0xaa));
    }
}

/* Indices for VPSHUFB that move byte j of each lane to both upper bytes of its 16-bit halves. */
SUPER_AVX2 __m128i super_scale_factor_place(int j)
{
    const __m128i first = _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
    return _mm_add_epi8(first, _mm_set1_epi8((char)j));
}

/* Widens four signed bytes per lane to factors of the codes of four sub-blocks, for folded panels:
 * both 16-bit halves of a lane of fold[j] are byte j of that lane. */
SUPER_AVX2 void super_scale_factors(__m256i bytes, __m256i fold[4])
{
    for (int j = 0; j < 4; j++) {
        __m256i at = _mm256_broadcastsi128_si256(super_scale_factor_place(j));
        fold[j] = _mm256_srai_epi16(_mm256_shuffle_epi8(bytes, at), 8);
    }
}

/* (v >> shift) & mask in every byte, for shifts from -7 (to the left) to 7. */
SUPER_AVX2 __m256i super_bits(__m256i v, int shift, int mask)
{
    __m256i moved = shift < 0 ? _mm256_slli_epi16(v, -shift) : _mm256_srli_epi16(v, shift);
    return _mm256_and_si256(moved, _mm256_set1_epi8((char)mask));
}

/* ---- One column, AVX2 ---- */

/* acc + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] per 32-bit lane i, of 16-bit factors. */
SUPER_AVX2 __m256i super_mad(__m256i acc, __m256i a, __m256i b)
{
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}

/* The products of eight super-blocks of a row (fewer at its end) before the lanes are added. */
enum { SUPER_GROUP = 8 };
struct super_group {
    __m256i isum[SUPER_GROUP]; /* the sum of its lanes is isum of quant/quant.h */
    __m256i msum;              /* super-block j in lane j, if the type has minima */
    /* Half precision: d in the low half, dmin in the high half; or the bits of a row's float d. */
    uint32_t d[SUPER_GROUP];
    /* Scales that super_heads stored: four bytes of super-block j in [0][j], four in [1][j]. */
    int32_t scale[2][SUPER_GROUP];
    float da[SUPER_GROUP]; /* of the activations */
    float *out;
    int n;
};

/* The terms that a group adds to the sum of its row; terms past the end of the row are zero. */
struct super_terms {
    float of[SUPER_GROUP];
    float *out;
};

/* Data of eight super-blocks of the column, computed once for all rows. */
struct super_sums {
    int16_t sum[SUPER_GROUP][16]; /* of activations, in the order of the type's scales */
    float da[SUPER_GROUP];
};

/* Fills sum from 16 sums of activations of each super-block. */
typedef void super_sums_prepare(const int16_t *const sum[SUPER_GROUP], struct super_sums *sums);

/* Fills msum, d and scale of a group from its super-blocks at once, in types that support it. Past
 * the end of a row the last super-block is repeated. */
typedef void super_heads(const void *const block[SUPER_GROUP], const struct super_sums *sums,
                         struct super_group *group);

/* Super-block j of a group, and its 256 activations. */
struct super_input {
    const void *block;
    const int8_t *q;
    int j;
    const struct super_sums *sums;
    struct super_group *group;
};

/* isum of one super-block; fills group->d[j] in types without super_heads whose blocks have d. */
typedef __m256i super_isum(const struct super_input *in);

/* Loads 32 bytes that are used twice. The empty statement keeps the compiler from loading them for
 * each use. */
SUPER_AVX2 __m256i super_load_once(const void *bytes)
{
    __m256i v = _mm256_loadu_si256(bytes);
    __asm__("" : "+x"(v));
    return v;
}

/* acc plus the products of 16 numbers with row i of the sums, added in pairs. */
SUPER_AVX2 __m256i super_mad_sums(__m256i acc, __m256i v, const struct super_sums *sums, int i)
{
    return super_mad(acc, v, _mm256_loadu_si256((const __m256i *)sums->sum[i]));
}

/* 16 bytes of scales: even sub-blocks, then odd ones. */
SUPER_AVX2 __m128i super_scales_even_odd(const void *scales)
{
    return _mm_shuffle_epi8(_mm_loadu_si128(scales),
                            _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
}

/* Given scales in that order as 16-bit numbers: the scale of sub-block 2g in all lanes of the lower
 * half, 2g + 1 in all lanes of the upper. */
SUPER_AVX2 __m256i super_scale_pair(__m256i scales, int g)
{
    return _mm256_shuffle_epi8(scales, _mm256_set1_epi16((int16_t)(0x0202 * g + 0x0100)));
}

/* Sums of 16 activations in the same order, times a factor. */
SUPER_AVX2 void super_sums_even_odd(const int16_t *const sum[SUPER_GROUP], int factor,
                                    struct super_sums *sums)
{
    for (int j = 0; j < SUPER_GROUP; j++) {
        for (int s = 0; s < 16; s++)
            sums->sum[j][s / 2 + s % 2 * 8] = (int16_t)(sum[j][s] * factor);
    }
}

/* Lane j of the result is the sum of the lanes of v[j]. */
SUPER_AVX2 __m256i super_lane_sums(const __m256i v[8])
{
    __m256i pair[4], four[2];
    for (int i = 0; i < 4; i++)
        pair[i] = _mm256_add_epi32(_mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                   _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        four[i] = _mm256_add_epi32(_mm256_unpacklo_epi64(pair[2 * i], pair[2 * i + 1]),
                                   _mm256_unpackhi_epi64(pair[2 * i], pair[2 * i + 1]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(four[0], four[1], 0x20),
                            _mm256_permute2x128_si256(four[0], four[1], 0x31));
}

/* Computes v (quant/quant.h) of the group's super-blocks. */
SUPER_AVX2 void super_group_terms(const struct super_layout *layout,
                                  const struct super_group *group, float factor,
                                  struct super_terms *terms)
{
    const bool has_min = layout->panel.has_min;
    __m256i d = _mm256_loadu_si256((const __m256i *)group->d);
    __m256 da = _mm256_loadu_ps(group->da);
    __m256 dw = layout->header_bytes ? _mm256_castsi256_ps(d) : super_halves(d);
    if (factor != 1.0f) dw = _mm256_mul_ps(dw, _mm256_set1_ps(factor));
    __m256 scale = _mm256_mul_ps(dw, da);
    __m256 isum = _mm256_cvtepi32_ps(super_lane_sums(group->isum));
    if (has_min) {
        __m256 dmin = super_halves(_mm256_srli_epi32(d, 16));
        __m256 m = _mm256_xor_ps(dmin, _mm256_set1_ps(-0.0f));
        __m256 msum = _mm256_cvtepi32_ps(group->msum);
        __m256 min_term = _mm256_mul_ps(_mm256_mul_ps(m, da), msum);
        _mm256_storeu_ps(terms->of, _mm256_fmadd_ps(scale, isum, min_term));
    } else {
        _mm256_storeu_ps(terms->of, _mm256_mul_ps(scale, isum));
    }
    for (int j = group->n; j < SUPER_GROUP; j++) terms->of[j] = 0.0f;
    terms->out = group->out;
}

/* Adds the terms from index j on. */
SUPER_AVX2 float super_terms_add(const struct super_terms *terms, int j, float acc)
{
    for (; j < SUPER_GROUP; j++) acc += terms->of[j];
    return acc;
}

enum { SUPER_DISTANCE = 6144, SUPER_SUMS = 8 };

/* How many rows later the listed row is whose bytes are prefetched: one is too near, because a row
 * takes less time than a read from memory. */
enum { SUPER_ROWS_AHEAD = 4 };
SUPER_AVX2 const uint8_t *super_listed_ahead(const void *const *list, int64_t n)
{
    return list[n - 1 < SUPER_ROWS_AHEAD ? n - 1 : SUPER_ROWS_AHEAD];
}

/* The functions of a type; prepare and heads may be NULL. */
struct super_kernel {
    super_sums_prepare *prepare;
    super_heads *heads;
    super_isum *isum;
    float factor; /* a power of two that d is multiplied by */
};

SUPER_AVX2 void super_heads_of_group(const struct super_layout *layout, super_heads *heads,
                                     const uint8_t *at, int n, const struct super_sums *sums,
                                     struct super_group *group)
{
    const void *block[SUPER_GROUP];
    for (int j = 0; j < SUPER_GROUP; j++)
        block[j] = at + (size_t)(j < n ? j : n - 1) * layout->block_bytes;
    heads(block, sums, group);
}

/* Fills the group and adds the terms of another between its products, because the additions are a
 * dependent chain. Prefetches as many bytes at `ahead`. */
SUPER_AVX2 void super_group_fill(const struct super_layout *layout,
                                 const struct super_kernel *kernel, const uint8_t *at,
                                 const int8_t *q, const struct super_sums *sums, bool to_l1,
                                 const char *ahead, struct super_group *group,
                                 const struct super_terms *terms)
{
    if (kernel->heads && group->n == SUPER_GROUP)
        super_heads_of_group(layout, kernel->heads, at, SUPER_GROUP, sums, group);
    else if (kernel->heads)
        super_heads_of_group(layout, kernel->heads, at, group->n, sums, group);
    memcpy(group->da, sums->da, sizeof group->da);
    float acc = *terms->out;
    for (int j = 0; j < group->n; j++) {
        quant_prefetch_single(ahead, layout->block_bytes, to_l1);
        ahead += layout->block_bytes;
        group->isum[j] = kernel->isum(&(struct super_input){at, q, j, sums, group});
        acc += terms->of[j];
        at += layout->block_bytes;
        q += SUPER_LEN;
    }
    *terms->out = super_terms_add(terms, group->n, acc);
}

SUPER_AVX2 void super_sums_fill(super_sums_prepare *prepare, const struct quant_act *a, int64_t b,
                                int64_t n, struct super_sums *sums)
{
    for (int64_t i = 0; i < n; i += SUPER_GROUP, sums++) {
        const int16_t *sum[SUPER_GROUP];
        for (int64_t j = 0; j < SUPER_GROUP; j++) {
            int64_t at = b + (i + j < n ? i + j : n - 1);
            sum[j] = a->sum + 16 * at;
            sums->da[j] = a->d[at];
        }
        if (prepare) prepare(sum, sums);
    }
}

/* Multiplies rows one by one in file order: several per step are faster from cache but slower from
 * memory (docs/performance.md). The hardware prefetcher follows such a stream within a page, and
 * software prefetch continues it across pages. A group is converted to terms after the products of
 * the next group, and the terms are added during the products of the group after that, because both
 * are long chains of dependent operations. */
SUPER_AVX2 void super_gemv(const struct super_layout *layout, const struct super_kernel *kernel,
                           int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                           float *out)
{
    struct super_sums sums[SUPER_SUMS];
    struct super_group group[2];
    memset(sums, 0, sizeof sums);   /* for types without prepare */
    memset(group, 0, sizeof group); /* groups of fewer than eight leave entries unused */
    memset(out, 0, (size_t)rows->n * sizeof *out);
    struct super_group *new = group, *old = group + 1;
    float none = 0.0f; /* receives the initial terms, which belong to no group */
    struct super_terms terms = {.out = &none};
    const bool listed = rows->order == QUANT_ROWS_LISTED, to_l1 = rows->prefetch.to_l1;
    for (int64_t b = 0; b < k / SUPER_LEN; b += SUPER_SUMS * SUPER_GROUP) {
        int64_t n = k / SUPER_LEN - b;
        if (n > SUPER_SUMS * SUPER_GROUP) n = SUPER_SUMS * SUPER_GROUP;
        super_sums_fill(kernel->prepare, a, b, n, sums);
        for (int64_t r = 0; r < rows->n; r++) {
            const uint8_t *row =
                listed ? rows->list[r] : (const uint8_t *)rows->w + (size_t)r * rows->row_bytes;
            const uint8_t *at = super_block_at(layout, row, b);
            const uint8_t *next = listed ? super_listed_ahead(rows->list + r, rows->n - r) : row;
            const char *ahead = (const char *)next + (at - row) +
                                (listed  ? 0
                                 : to_l1 ? (int)QUANT_SINGLE_DISTANCE
                                         : (int)SUPER_DISTANCE);
            const uint32_t d = layout->header_bytes ? quant_bits_of(super_row_d(layout, row)) : 0;
            for (int64_t i = 0; i < n; i += SUPER_GROUP) {
                new->n = n - i < SUPER_GROUP ? (int)(n - i) : SUPER_GROUP;
                new->out = out + r;
                super_group_fill(layout, kernel, at + (size_t)i * layout->block_bytes,
                                 a->q + SUPER_LEN * (b + i), sums + i / SUPER_GROUP, to_l1,
                                 ahead + (size_t)i * layout->block_bytes, new, &terms);
                if (layout->header_bytes)
                    EACH (j, SUPER_GROUP) new->d[j] = d;
                if (old->n > 0) super_group_terms(layout, old, kernel->factor, &terms);
                struct super_group *spare = old;
                old = new;
                new = spare;
            }
        }
    }
    *terms.out = super_terms_add(&terms, 0, *terms.out);
    if (old->n == 0) return;
    super_group_terms(layout, old, kernel->factor, &terms);
    *terms.out = super_terms_add(&terms, 0, *terms.out);
}

/* ---- One column, AVX-512 ----
 *
 * Rows are multiplied one by one, too. A step multiplies four super-blocks, 0 to 3, of one row: the
 * scales of all four are in one register, and so are the minima and the floats. The table has the
 * super-block of each element of isum and msum, by 128-bit lanes, elements from 3 down to 0:
 *
 *     lane         3          2          1          0
 *     isum[0]      1 1 0 0    1 1 0 0    1 1 0 0    1 1 0 0
 *     isum[1]      3 3 2 2    3 3 2 2    3 3 2 2    3 3 2 2
 *     msum         3 2 1 0    3 2 1 0    3 2 1 0    3 2 1 0
 *
 * Codes and products are 512 bits wide, which halves the number of instructions: with two threads
 * per core, instruction throughput is the limit.
 *
 * Sums of four products fit 16 bits if codes have at most 6 bits: those of two super-blocks are
 * packed into one register before they are multiplied by their scales.
 *
 * The column is reordered once for all rows, to the order in which codes are unpacked, in parts
 * that fit the first-level cache. */

enum { SUPER_STEP = 4, SUPER_PART = 16 * SUPER_STEP };
enum { SUPER_L1_DISTANCE = 2048, SUPER_NEAR_DISTANCE = 768 };
enum { SUPER_COLUMNS = 2, SUPER_STREAMS = 4 }; /* maximum per call */

#define SUPER_AVX512 QUANT_INLINE CPU_TARGET_AVX512

/* Data of four super-blocks of the column. */
struct super_column {
    __m512i x[SUPER_STEP][4]; /* [j][i]: activations for codes 64i .. 64i + 63 of super-block j */
    __m512i sum[2];           /* sums of activations, in the order of the type's scales */
    float d[SUPER_STEP];
};

/* Fills x and sum from the activations of four super-blocks and 16 sums of each. */
typedef void super_column_fill(const int8_t *const q[SUPER_STEP],
                               const int16_t *const sum[SUPER_STEP], struct super_column *column);

struct super_step {
    /* [p]: super-blocks 2p and 2p + 1: two elements of each in every 128 bits, whose sum over the
     * register is isum of quant/quant.h. */
    __m512i isum[2];
    __m512i msum; /* super-block j in lane j of every 128 bits, if the type has minima */
    __m128i d;    /* half precision: d of the four, then dmin; or the bits of a row's float d */
    __m128 da;    /* of the activations */
};

/* Fills isum, msum and d of n steps, one per column; n is a constant after inlining. */
typedef void super_step_products(int n, const uint8_t *const block[SUPER_STEP],
                                 const struct super_column *column, struct super_step *step);

/* 64 activations: 32 from q on, 32 from `second` on. */
SUPER_AVX512 __m512i super_join_32(const int8_t *q, const int8_t *second)
{
    __m512i low = _mm512_castsi256_si512(_mm256_load_si256((const __m256i *)q));
    return _mm512_inserti64x4(low, _mm256_load_si256((const __m256i *)second), 1);
}

/* 32 bytes in both halves. */
SUPER_AVX512 __m512i super_broadcast_32(const void *bytes)
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(bytes));
}

/* All dwords of the lower half are `low`, those of the upper half `high`. */
SUPER_AVX512 __m512i super_set_halves(int low, int high)
{
    return _mm512_inserti64x4(_mm512_set1_epi32(low), _mm256_set1_epi32(high), 1);
}

/* (bits & mask) | rest. */
SUPER_AVX512 __m512i super_put_bits(__m512i bits, int mask, __m512i rest)
{
    return _mm512_ternarylogic_epi32(bits, _mm512_set1_epi8((char)mask), rest, 0xea);
}

/* As super_rows_load, for 16 rows. */
SUPER_AVX512 void super_rows_load_avx512(const void *const row[16], int64_t offset, __m512i out[4])
{
    __m512i v[4];
    for (int r = 0; r < 4; r++) {
        const __m128i *at[4];
        for (int i = 0; i < 4; i++) at[i] = (const void *)((const char *)row[r + 4 * i] + offset);
        v[r] = _mm512_castsi128_si512(_mm_loadu_si128(at[0]));
        v[r] = _mm512_inserti32x4(v[r], _mm_loadu_si128(at[1]), 1);
        v[r] = _mm512_inserti32x4(v[r], _mm_loadu_si128(at[2]), 2);
        v[r] = _mm512_inserti32x4(v[r], _mm_loadu_si128(at[3]), 3);
    }
    __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpacklo_epi32(v[2], v[3]);
    __m512i c = _mm512_unpackhi_epi32(v[0], v[1]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm512_unpacklo_epi64(a, b);
    out[1] = _mm512_unpackhi_epi64(a, b);
    out[2] = _mm512_unpacklo_epi64(c, d);
    out[3] = _mm512_unpackhi_epi64(c, d);
}

/* As super_scale_factors, for 16 rows, the first eight in `bytes[0]`. */
SUPER_AVX512 void super_scale_factors_avx512(const __m256i bytes[2], __m512i fold[4])
{
    __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(bytes[0]), bytes[1], 1);
    for (int j = 0; j < 4; j++) {
        __m512i at = _mm512_broadcast_i32x4(super_scale_factor_place(j));
        fold[j] = _mm512_srai_epi16(_mm512_shuffle_epi8(all, at), 8);
    }
}

/* v >> shift in 16-bit words, for shifts from -7 (to the left) to 7. Bits cross byte boundaries;
 * the caller masks them. */
SUPER_AVX512 __m512i super_move_avx512(__m512i v, int shift)
{
    if (shift == 0) return v;
    return shift < 0 ? _mm512_slli_epi16(v, (unsigned)-shift)
                     : _mm512_srli_epi16(v, (unsigned)shift);
}

/* (v >> shift) & mask in every byte. */
SUPER_AVX512 __m512i super_bits_avx512(__m512i v, int shift, int mask)
{
    return _mm512_and_si512(super_move_avx512(v, shift), _mm512_set1_epi8((char)mask));
}

/* Four times 16 bytes. */
SUPER_AVX512 __m512i super_join_16(const __m128i one[4])
{
    __m512i all = _mm512_mask_broadcast_i32x4(_mm512_castsi128_si512(one[0]), 0x00f0, one[1]);
    all = _mm512_mask_broadcast_i32x4(all, 0x0f00, one[2]);
    return _mm512_mask_broadcast_i32x4(all, 0xf000, one[3]);
}

/* 16 bytes at `offset` of each of four super-blocks, 128 bits each. */
SUPER_AVX512 __m512i super_heads_avx512(const uint8_t *const block[SUPER_STEP], size_t offset)
{
    __m128i one[SUPER_STEP];
    EACH (j, SUPER_STEP) one[j] = _mm_loadu_si128((const __m128i *)(block[j] + offset));
    return super_join_16(one);
}

/* 32 bits at `offset` of each of four super-blocks. */
SUPER_AVX512 __m128i super_words(const uint8_t *const block[SUPER_STEP], size_t offset)
{
    int32_t word[SUPER_STEP];
    EACH (j, SUPER_STEP) memcpy(word + j, block[j] + offset, sizeof *word);
    return _mm_setr_epi32(word[0], word[1], word[2], word[3]);
}

/* The lower 16 bits of all words, then the upper ones. */
SUPER_AVX512 __m128i super_split_words(__m128i words)
{
    return _mm_shuffle_epi8(words,
                            _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
}

/* ---- Products of types whose codes have 6 bits or less ---- */

/* Indices of scales for super_products: lane i of 128 bits has index si four times, for one
 * super-block, and si + next four times, for the other. */
SUPER_AVX512 __m512i super_places(int s0, int s1, int s2, int s3, int next)
{
    const int64_t four = 0x0001000100010001;
    return _mm512_setr_epi64(s0 * four, (s0 + next) * four, s1 * four, (s1 + next) * four,
                             s2 * four, (s2 + next) * four, s3 * four, (s3 + next) * four);
}

/* Codes 64i .. 64i + 63 of a super-block, in the order in which the type's bits are unpacked. */
typedef __m512i super_codes(const uint8_t *block, int i);

/* Adds the products of four super-blocks to isum of each step; scale[p] has the 16-bit scales of
 * super-blocks 2p and 2p + 1, place[i] the indices of the scales for codes(block, i). */
SUPER_AVX512 void super_products(int n, super_codes *codes, const uint8_t *const block[SUPER_STEP],
                                 const struct super_column *c, const __m512i scale[2],
                                 const __m512i place[4], struct super_step *step)
{
    const __m512i zero = _mm512_setzero_si512();
    EACH (p, 2)
        EACH (i, 4) {
            const __m512i one = codes(block[2 * p], i), other = codes(block[2 * p + 1], i);
            const __m512i four = _mm512_permutexvar_epi16(place[i], scale[p]);
            EACH (j, n) {
                __m512i a = _mm512_dpbusd_epi32(zero, one, c[j].x[2 * p][i]);
                __m512i b = _mm512_dpbusd_epi32(zero, other, c[j].x[2 * p + 1][i]);
                step[j].isum[p] =
                    _mm512_dpwssd_epi32(step[j].isum[p], _mm512_packs_epi32(a, b), four);
            }
        }
}

/* ---- Scales of sub-blocks of 16 ----
 *
 * A register has the scales of two super-blocks as 16-bit words, in the order in which products
 * with sums of activations are lanes of isum:
 *
 *     words                0 to 3      4 to 7    8 to 11     12 to 15    16 to 19    ...
 *     scales of `one`      0 to 3                4 to 7                  8 to 11     ...
 *     scales of `other`                0 to 3                4 to 7                  ... */

/* Reorders 16 bytes of one super-block and 16 of another to that order. */
SUPER_AVX512 __m256i super_pair_order(__m256i one)
{
    return _mm256_permutevar8x32_epi32(one, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

SUPER_AVX512 __m256i super_pair_scales(const uint8_t *one, const uint8_t *other)
{
    __m256i both = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)one));
    return super_pair_order(
        _mm256_inserti128_si256(both, _mm_loadu_si128((const __m128i *)other), 1));
}

/* super_places for scales in this order. */
SUPER_AVX512 __m512i super_pair_places(int s0, int s1, int s2, int s3)
{
    return super_places(s0 / 4 * 8 + s0 % 4, s1 / 4 * 8 + s1 % 4, s2 / 4 * 8 + s2 % 4,
                        s3 / 4 * 8 + s3 % 4, 4);
}

/* Sums of 16 activations in this order, times a factor. */
SUPER_AVX512 void super_pair_sums(const int16_t *const sum[SUPER_STEP], int factor,
                                  struct super_column *c)
{
    const __m512i order = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    for (int p = 0; p < 2; p++) {
        const __m256i *one = (const void *)sum[2 * p], *other = (const void *)sum[2 * p + 1];
        __m512i both =
            _mm512_permutex2var_epi64(_mm512_castsi256_si512(_mm256_load_si256(one)), order,
                                      _mm512_castsi256_si512(_mm256_load_si256(other)));
        c->sum[p] = _mm512_mullo_epi16(both, _mm512_set1_epi16((int16_t)factor));
    }
}

/* Fills x for Q2_K and Q3_K, where codes(block, i) are 32 of each half of the super-block. */
SUPER_AVX512 void super_column_halves(const int8_t *const q[SUPER_STEP], struct super_column *c)
{
    for (int j = 0; j < SUPER_STEP; j++)
        for (int i = 0; i < 4; i++) c->x[j][i] = super_join_32(q[j] + 32 * i, q[j] + 128 + 32 * i);
}

SUPER_AVX512 void super_places_halves(__m512i place[4])
{
    EACH (i, 4) place[i] = super_pair_places(2 * i, 2 * i + 1, 8 + 2 * i, 8 + 2 * i + 1);
}

/* ---- From sums to floats ---- */

/* Adds adjacent elements of isum of a step: super-block j is then element j of every 128 bits. */
SUPER_AVX512 __m512i super_add_pairs(const __m512i pair[2])
{
    __m512 a = _mm512_castsi512_ps(pair[0]), b = _mm512_castsi512_ps(pair[1]);
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd)));
}

/* Adds the four 128-bit lanes of a (lower half of the result), and those of b (upper half). */
SUPER_AVX512 __m256i super_add_lanes(__m512i a, __m512i b)
{
    __m512i two =
        _mm512_add_epi32(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
    __m256i low = _mm512_castsi512_si256(two), high = _mm512_extracti64x4_epi64(two, 1);
    return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                            _mm256_permute2x128_si256(low, high, 0x31));
}

/* Computes v (quant/quant.h) of the four super-blocks. */
SUPER_AVX512 __m128 super_step_values(const struct super_layout *layout,
                                      const struct super_step *step)
{
    __m512i isum = super_add_pairs(step->isum);
    if (!layout->panel.has_min) {
        __m256i two =
            _mm256_add_epi32(_mm512_castsi512_si256(isum), _mm512_extracti64x4_epi64(isum, 1));
        __m128i one = _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
        __m128 d = layout->header_bytes ? _mm_castsi128_ps(step->d) : _mm_cvtph_ps(step->d);
        return _mm_mul_ps(_mm_mul_ps(d, step->da), _mm_cvtepi32_ps(one));
    }
    __m256 sums = _mm256_cvtepi32_ps(super_add_lanes(isum, step->msum));
    __m256 d = _mm256_xor_ps(_mm256_cvtph_ps(step->d),
                             _mm256_setr_ps(0.0f, 0.0f, 0.0f, 0.0f, -0.0f, -0.0f, -0.0f, -0.0f));
    __m256 scale = _mm256_mul_ps(d, _mm256_set_m128(step->da, step->da));
    __m128 t = _mm_mul_ps(_mm256_extractf128_ps(scale, 1), _mm256_extractf128_ps(sums, 1));
    return _mm_fmadd_ps(_mm256_castps256_ps128(scale), _mm256_castps256_ps128(sums), t);
}

/* Defines NAME_decode_avx2, the scalar code compiled for AVX2. */
#define SUPER_DECODE_AVX2(NAME)                                                                    \
    QUANT_DECODE_AT(NAME##_decode_avx2, CPU_TARGET_AVX2,                                           \
                    super_decode(&NAME##_layout, NAME##_expand, first, n, row, out))
