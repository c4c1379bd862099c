/* quant/super_x86.h: private to quant/: what the x86 kernels of the super-block types share.
 *
 * Unpacking is written once, on 256-bit vectors, and compiled for the level that runs it: reading
 * 16 rows side by side (`super_rows_load`) turns rows into lanes, so that what follows is the
 * scalar code of one row, for eight rows at a time. One column has two shells: a row at a time with
 * AVX2, eight at a time with AVX-512. */
#ifndef QUANT_SUPER_X86_H
#define QUANT_SUPER_X86_H

#include "quant/stream.h"
#include "quant/super.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SUPER_AVX2 SUPER_INLINE QUANT_TARGET_AVX2

/* ---- Rows into lanes ---- */

/* 16 bytes at `offset` of each of 8 rows: out[i] holds the i-th 32-bit word, row r in lane r. */
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

/* The half-precision numbers in the low 16 bits of each lane. */
SUPER_AVX2 __m256 super_halves(__m256i words)
{
    __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

/* Four bytes per lane to four rows of sub-scales: byte j of lane i to scale[j][r + i]. */
SUPER_AVX2 void super_scales_store(__m256i bytes, int r, int32_t scale[4][16])
{
    for (int j = 0; j < 4; j++) {
        __m256i one = _mm256_and_si256(_mm256_srli_epi32(bytes, 8 * j), _mm256_set1_epi32(0xff));
        _mm256_storeu_si256((__m256i *)(scale[j] + r), one);
    }
}

/* The same for signed bytes. */
SUPER_AVX2 void super_signed_scales_store(__m256i bytes, int r, int32_t scale[4][16])
{
    for (int j = 0; j < 4; j++) {
        __m256i one = _mm256_srai_epi32(_mm256_slli_epi32(bytes, 24 - 8 * j), 24);
        _mm256_storeu_si256((__m256i *)(scale[j] + r), one);
    }
}

/* Four bytes per lane to two pairs of minima: bytes 2p and 2p + 1 of lane i to min[p][r + i]. */
SUPER_AVX2 void super_mins_store(__m256i bytes, int r, int16_t min[2][16][2])
{
    for (int p = 0; p < 2; p++) {
        __m256i two = _mm256_srli_epi32(bytes, 16 * p);
        __m256i even = _mm256_and_si256(two, _mm256_set1_epi32(0xff));
        __m256i odd = _mm256_and_si256(_mm256_slli_epi32(two, 8), _mm256_set1_epi32(0xff0000));
        _mm256_storeu_si256((__m256i *)min[p][r], _mm256_or_si256(even, odd));
    }
}

/* Four signed bytes per lane to factors of the codes of four sub-blocks, for folded panels: byte j
 * of a lane in both 16-bit halves of the lane of fold[j]. */
SUPER_AVX2 void super_folds(__m256i bytes, __m256i fold[4])
{
    for (int j = 0; j < 4; j++) {
        __m256i one = _mm256_srai_epi32(_mm256_slli_epi32(bytes, 24 - 8 * j), 24);
        fold[j] = _mm256_blend_epi16(one, _mm256_slli_epi32(one, 16), 0xaa);
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

/* Eight super-blocks of a row (fewer at its end) times the column, not yet summed over the lanes.
 */
enum { SUPER_GROUP = 8 };
struct super_group {
    __m256i isum[SUPER_GROUP]; /* the lanes sum to isum of quant.h */
    __m256i msum[SUPER_GROUP]; /* and to msum, where the type has minima */
    uint16_t d[SUPER_GROUP];   /* half precision, of the weights */
    uint16_t dmin[SUPER_GROUP];
    float da[SUPER_GROUP]; /* of the activations */
    int64_t row, block;    /* of the first */
    int n;
};

/* Fills entry j (but da) from one super-block, its 256 activations and 16 sums of them. */
typedef void super_block_sums(const void *block, const int8_t *q, const int16_t *sum, int j,
                              struct super_group *group);

/* Of 16 scales of 16 bits: number 8h .. 8h + 7, in both halves. */
SUPER_AVX2 __m256i super_scales_half(__m256i scales, int h)
{
    return h == 0 ? _mm256_permute4x64_epi64(scales, 0x44) : _mm256_permute4x64_epi64(scales, 0xee);
}

/* Of those 8: number 2g in all lanes of the lower half, 2g + 1 in all lanes of the upper. */
SUPER_AVX2 __m256i super_scales_two(__m256i eight, int g)
{
    __m128i low = _mm_set1_epi16((int16_t)(0x0404 * g + 0x0100));
    __m128i high = _mm_set1_epi16((int16_t)(0x0404 * g + 0x0302));
    return _mm256_shuffle_epi8(eight, _mm256_set_m128i(high, low));
}

/* 16 scales (or minima) times the sums of 16 activations each, summed in pairs. */
SUPER_AVX2 __m256i super_scaled_sums(__m256i scales, const int16_t *sum)
{
    return _mm256_madd_epi16(scales, _mm256_loadu_si256((const __m256i *)sum));
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

/* Adds the group's terms to the accumulator of its row. */
SUPER_AVX2 float super_group_add(const struct super_group *group, bool has_min, float acc)
{
    __m256 da = _mm256_loadu_ps(group->da);
    __m256 d = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)group->d));
    __m256 scale = _mm256_mul_ps(d, da), isum = _mm256_cvtepi32_ps(super_lane_sums(group->isum));
    float term[SUPER_GROUP];
    if (has_min) {
        __m256 dmin = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)group->dmin));
        __m256 m = _mm256_xor_ps(dmin, _mm256_set1_ps(-0.0f));
        __m256 msum = _mm256_cvtepi32_ps(super_lane_sums(group->msum));
        __m256 min_term = _mm256_mul_ps(_mm256_mul_ps(m, da), msum);
        _mm256_storeu_ps(term, _mm256_fmadd_ps(scale, isum, min_term));
    } else {
        _mm256_storeu_ps(term, _mm256_mul_ps(scale, isum));
    }
    for (int j = 0; j < group->n; j++) acc += term[j];
    return acc;
}

enum { SUPER_PREFETCH_AHEAD = 6144 };

/* Rows one after the other in file order: side by side they would be better from cache but worse
 * from memory, where the weights come from; the hardware's own prefetch follows such a stream, and
 * ours takes it across pages. A group is added only after the products of the next one, for adding
 * is a long chain of dependent operations: 2 % (Q4_K) to 8 % (Q2_K) from cache. */
SUPER_AVX2 void super_gemv(const struct quant_type *type, super_block_sums *block_sums, int64_t k,
                           const void *w, size_t row_bytes, int64_t n_rows,
                           const struct quant_act *a, float *out)
{
    int64_t n_blocks = k / SUPER_LEN;
    struct super_group group[2];
    memset(group, 0, sizeof group); /* groups of less than eight leave entries unused */
    int turn = 0;
    float acc = 0.0f;
    for (int64_t r = 0; r < n_rows; r++) {
        const char *row = (const char *)w + (size_t)r * row_bytes;
        for (int64_t b = 0; b < n_blocks; b += SUPER_GROUP) {
            struct super_group *new = &group[turn], *old = &group[turn ^ 1];
            new->n = n_blocks - b < SUPER_GROUP ? (int)(n_blocks - b) : SUPER_GROUP;
            new->row = r;
            new->block = b;
            for (int j = 0; j < new->n; j++) {
                quant_prefetch_pages(row + (b + j) * type->block_bytes + SUPER_PREFETCH_AHEAD,
                                     type->block_bytes);
                block_sums(row + (b + j) * type->block_bytes, a->q + SUPER_LEN * (b + j),
                           a->sum + 16 * (b + j), j, new);
                new->da[j] = a->d[b + j];
            }
            if (old->n > 0) {
                acc = super_group_add(old, type->panel.has_min, old->block == 0 ? 0.0f : acc);
                out[old->row] = acc;
            }
            turn ^= 1;
        }
    }
    struct super_group *last = &group[turn ^ 1];
    if (last->n > 0)
        out[last->row] = super_group_add(last, type->panel.has_min, last->block == 0 ? 0.0f : acc);
}

/* ---- One column, AVX-512 ----
 *
 * A step takes one super-block of each of eight rows. Its activations stay in registers for all
 * eight; scales, minima and everything in floats are computed with a row per lane, so that they
 * cost an eighth; the eight chains of canonical additions hide each other's latency. Codes and
 * products are 512 bits wide, which halves the instructions: where two processors are two threads
 * of one core, those are what is short.
 *
 * Sums of four products fit 16 bits where codes have 6 bits or less: those of two rows are packed
 * into one register before they meet their scales. Rows r and r + 4 go together. */

enum { SUPER_ROWS = 8, SUPER_PAIRS = SUPER_ROWS / 2, SUPER_ROWS_AHEAD = 4096 };

#define SUPER_AVX512 SUPER_INLINE QUANT_TARGET_AVX512

struct super_step {
    __m512i isum[SUPER_PAIRS]; /* in every 128 bits: two lanes of row p, two of row p + 4, whose */
                               /* sum over the register is isum of quant.h */
    __m256i msum;              /* row r in lane r, where the type has minima */
    __m256 d, m;               /* scales of the weights; m is MINUS the file's dmin */
};

/* Fills a step from the super-blocks at `block` of eight rows, their 256 activations and 16 sums of
 * them. */
typedef void super_rows_step(const uint8_t *block, size_t row_bytes, const int8_t *q,
                             const int16_t *sum, struct super_step *step);

/* 64 activations: 32 from q on, 32 from `second` on. */
SUPER_AVX512 __m512i super_x(const int8_t *q, const int8_t *second)
{
    __m512i low = _mm512_castsi256_si512(_mm256_load_si256((const __m256i *)q));
    return _mm512_inserti64x4(low, _mm256_load_si256((const __m256i *)second), 1);
}

/* The bytes of 32 in both halves. */
SUPER_AVX512 __m512i super_twice(const void *bytes)
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(bytes));
}

/* `low` for the lower half of a register, `high` for the upper, in dwords. */
SUPER_AVX512 __m512i super_halves_of(int low, int high)
{
    return _mm512_inserti64x4(_mm512_set1_epi32(low), _mm256_set1_epi32(high), 1);
}

/* (bits & mask) | rest. */
SUPER_AVX512 __m512i super_put_bits(__m512i bits, int mask, __m512i rest)
{
    return _mm512_ternarylogic_epi32(bits, _mm512_set1_epi8((char)mask), rest, 0xea);
}

/* (v >> shift) & mask in every byte, shift from 0 to 7. */
SUPER_AVX512 __m512i super_bits_avx512(__m512i v, int shift, int mask)
{
    if (shift != 0) v = _mm512_srli_epi16(v, (unsigned)shift);
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}

/* 32 bits at `at` of each of eight rows. */
SUPER_AVX512 __m256i super_rows_words(const uint8_t *at, size_t row_bytes)
{
    int32_t word[SUPER_ROWS];
    for (int r = 0; r < SUPER_ROWS; r++) memcpy(word + r, at + (size_t)r * row_bytes, sizeof *word);
    return _mm256_setr_epi32(word[0], word[1], word[2], word[3], word[4], word[5], word[6],
                             word[7]);
}

/* 16 bytes of one row in the lower half, of another in the upper. */
SUPER_AVX512 __m256i super_two_rows(const uint8_t *low, const uint8_t *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                   _mm_loadu_si128((const __m128i *)high), 1);
}

/* Of two words of each of eight rows: those of row p, then those of row p + 4. */
SUPER_AVX512 void super_pairs(__m256i first, __m256i second, __m128i pair[SUPER_PAIRS])
{
    __m256i low = _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(first, second), 0xd8);
    __m256i high = _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(first, second), 0xd8);
    pair[0] = _mm256_castsi256_si128(low);
    pair[1] = _mm256_extracti128_si256(low, 1);
    pair[2] = _mm256_castsi256_si128(high);
    pair[3] = _mm256_extracti128_si256(high, 1);
}

/* ---- Products of types whose codes have 6 bits or less ---- */

/* Places of scales for super_products: number s0 .. s3 for the products in each 128 bits of a
 * register, of one row and, `next` words on, of the other. */
SUPER_AVX512 __m512i super_places(int s0, int s1, int s2, int s3, int next)
{
    const int64_t four = 0x0001000100010001;
    return _mm512_setr_epi64(s0 * four, (s0 + next) * four, s1 * four, (s1 + next) * four,
                             s2 * four, (s2 + next) * four, s3 * four, (s3 + next) * four);
}

/* What products need of the column: for codes number i, the activations in the order of the codes,
 * what sums of four products start from, and where in a register of scales theirs are. */
struct super_column {
    __m512i x[4], start[4], place[4];
};

/* Sums that start from minus offset times their activations need no other correction. */
SUPER_AVX512 __m512i super_start(int offset, __m512i x)
{
    const __m512i zero = _mm512_setzero_si512();
    return _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(zero, _mm512_set1_epi8((char)offset), x));
}

/* Of Q2_K and Q3_K: codes number i are 32 of each half of the super-block. */
SUPER_AVX512 void super_column_halves(const int8_t *q, int offset, struct super_column *c)
{
    for (int i = 0; i < 4; i++) {
        c->x[i] = super_x(q + 32 * i, q + 128 + 32 * i);
        c->start[i] = super_start(offset, c->x[i]);
        c->place[i] = super_places(2 * i, 2 * i + 1, 8 + 2 * i, 8 + 2 * i + 1, 16);
    }
}

/* Codes number 64i .. 64i + 63 of a super-block, in the order that the type likes. */
typedef __m512i super_codes(const uint8_t *block, int i);

/* isum of a step; scale[p] has the 16-bit scales of rows p and p + 4. */
SUPER_AVX512 void super_products(super_codes *codes, const uint8_t *block, size_t row_bytes,
                                 const struct super_column *c, const __m512i scale[SUPER_PAIRS],
                                 __m512i isum[SUPER_PAIRS])
{
    for (int p = 0; p < SUPER_PAIRS; p++) {
        const uint8_t *low = block + (size_t)p * row_bytes, *high = low + 4 * row_bytes;
        isum[p] = _mm512_setzero_si512();
        for (int i = 0; i < 4; i++) {
            __m512i a = _mm512_dpbusd_epi32(c->start[i], codes(low, i), c->x[i]);
            __m512i b = _mm512_dpbusd_epi32(c->start[i], codes(high, i), c->x[i]);
            isum[p] = _mm512_dpwssd_epi32(isum[p], _mm512_packs_epi32(a, b),
                                          _mm512_permutexvar_epi16(c->place[i], scale[p]));
        }
    }
}

/* Row r in lane r. */
SUPER_AVX512 __m256i super_pair_sums(const __m512i isum[SUPER_PAIRS])
{
    __m512i two[2], all;
    for (int i = 0; i < 2; i++) { /* 128 bits: rows 2i, 2i + 4, 2i + 1, 2i + 5 */
        __m512 a = _mm512_castsi512_ps(isum[2 * i]), b = _mm512_castsi512_ps(isum[2 * i + 1]);
        two[i] = _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)),
                                  _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd)));
    }
    all = _mm512_add_epi32(_mm512_shuffle_i64x2(two[0], two[1], 0x88),
                           _mm512_shuffle_i64x2(two[0], two[1], 0xdd));
    all = _mm512_add_epi32(all, _mm512_shuffle_i64x2(all, all, 0xb1));
    const __m512i row = _mm512_setr_epi32(0, 2, 8, 10, 1, 3, 9, 11, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castsi512_si256(_mm512_permutexvar_epi32(row, all));
}

/* The same of registers whose lower half is row p, the upper row p + 4. */
SUPER_AVX512 __m256i super_half_sums(const __m512i v[SUPER_PAIRS])
{
    __m512i two[2], four;
    for (int i = 0; i < 2; i++)
        two[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                  _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    four = _mm512_add_epi32(_mm512_unpacklo_epi64(two[0], two[1]),
                            _mm512_unpackhi_epi64(two[0], two[1]));
    four = _mm512_add_epi32(four, _mm512_shuffle_i64x2(four, four, 0xb1));
    return _mm512_castsi512_si256(_mm512_shuffle_i64x2(four, four, 0x08));
}

SUPER_AVX512 void super_gemv_rows(const struct quant_type *type, super_rows_step *take, int64_t k,
                                  const void *w, size_t row_bytes, int64_t n_rows,
                                  const struct quant_act *a, float *out)
{
    const int64_t n_blocks = k / SUPER_LEN;
    /* Less than eight rows: one at a time, eight times over. */
    const int64_t group = n_rows < SUPER_ROWS ? 1 : SUPER_ROWS;
    const size_t stride = group == 1 ? 0 : row_bytes;

    for (int64_t r = 0; r < n_rows; r += group) {
        /* The last group overlaps the one before it: the same results once more. */
        if (r + group > n_rows) r = n_rows - group;
        const uint8_t *block = (const uint8_t *)w + (size_t)r * row_bytes;
        const char *ahead = (const char *)block + 7 * row_bytes + SUPER_ROWS_AHEAD;
        __m256 acc = _mm256_setzero_ps();
        for (int64_t b = 0; b < n_blocks; b++) {
            quant_prefetch_pages(ahead, SUPER_ROWS * type->block_bytes);
            struct super_step step;
            take(block, stride, a->q + SUPER_LEN * b, a->sum + 16 * b, &step);
            __m256 da = _mm256_set1_ps(a->d[b]), scale = _mm256_mul_ps(step.d, da);
            __m256 isum = _mm256_cvtepi32_ps(super_pair_sums(step.isum));
            if (type->panel.has_min) {
                __m256 t = _mm256_mul_ps(_mm256_mul_ps(step.m, da), _mm256_cvtepi32_ps(step.msum));
                acc = _mm256_add_ps(acc, _mm256_fmadd_ps(scale, isum, t));
            } else {
                acc = _mm256_add_ps(acc, _mm256_mul_ps(scale, isum));
            }
            block += type->block_bytes;
            ahead += SUPER_ROWS * type->block_bytes;
        }
        float sum[SUPER_ROWS];
        _mm256_storeu_ps(sum, acc);
        memcpy(out + r, sum, (size_t)group * sizeof *out);
    }
}

#endif
#endif
