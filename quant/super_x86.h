/* quant/super_x86.h: private to quant/: what the x86 kernels of the super-block types share.
 *
 * Kernels are written once, on 256-bit vectors, and compiled for two levels: AVX2, and AVX-512
 * where one instruction (vpdpwssd) does the multiply-add of 16-bit pairs and there are 32
 * registers. Only the one-column kernels of Q4_K and Q5_K have a 512-bit form as well. Reading 16
 * rows side by side (`super_rows_load`) turns rows into lanes, so that what follows is the scalar
 * code of one row, for eight rows at a time. */
#ifndef QUANT_SUPER_X86_H
#define QUANT_SUPER_X86_H

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

/* ---- One column ---- */

/* acc + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] per 32-bit lane i, of 16-bit factors. */
typedef __m256i super_mad(__m256i acc, __m256i a, __m256i b);

SUPER_AVX2 __m256i super_mad_avx2(__m256i acc, __m256i a, __m256i b)
{
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}

SUPER_INLINE QUANT_TARGET_AVX512 __m256i super_mad_avx512(__m256i acc, __m256i a, __m256i b)
{
    return _mm256_dpwssd_epi32(acc, a, b);
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
typedef void super_block_sums(const void *block, const int8_t *q, const int16_t *sum,
                              super_mad *mad, int j, struct super_group *group);

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

enum { SUPER_PREFETCH_AHEAD = 4096 };

/* Rows one after the other in file order: side by side they would be better from cache but worse
 * from memory, where the weights come from; the hardware's own prefetch follows such a stream, and
 * ours takes it across pages. A group is added only after the products of the next one, for adding
 * is a long chain of dependent operations: 2 % (Q4_K) to 8 % (Q2_K) from cache. */
SUPER_AVX2 void super_gemv(const struct quant_type *type, super_block_sums *block_sums,
                           super_mad *mad, int64_t k, const void *w, size_t row_bytes,
                           int64_t n_rows, const struct quant_act *a, float *out)
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
                const char *ahead = row + (b + j) * type->block_bytes + SUPER_PREFETCH_AHEAD;
                for (uint32_t line = 0; line < type->block_bytes; line += 64)
                    _mm_prefetch(ahead + line, _MM_HINT_T1);
                block_sums(row + (b + j) * type->block_bytes, a->q + SUPER_LEN * (b + j),
                           a->sum + 16 * (b + j), mad, j, new);
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
 * of one core, those are what is short. */

enum { SUPER_ROWS = 8, SUPER_ROWS_AHEAD = 8192 };

#define SUPER_AVX512 SUPER_INLINE QUANT_TARGET_AVX512

struct super_step {
    __m512i isum[SUPER_ROWS]; /* row by row; the lanes sum to isum of quant.h */
    __m256i msum;             /* row r in lane r, where the type has minima */
    __m256 d, m;              /* scales of the weights; m is MINUS the file's dmin */
};

/* Fills a step from the super-blocks at `block` of eight rows, their 256 activations and 16 sums of
 * them. */
typedef void super_rows_step(const uint8_t *block, size_t row_bytes, const int8_t *q,
                             const int16_t *sum, struct super_step *step);

/* Elements 64i .. 64i + 63 of the activations. */
SUPER_AVX512 __m512i super_x(const int8_t *q, int i)
{
    return _mm512_load_si512(q + 64 * i);
}

/* The bytes of 32 in both halves. */
SUPER_AVX512 __m512i super_twice(const uint8_t bytes[32])
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)bytes));
}

/* `low` for the lower half of a register, `high` for the upper, in dwords. */
SUPER_AVX512 __m512i super_halves_of(int low, int high)
{
    return _mm512_inserti64x4(_mm512_set1_epi32(low), _mm256_set1_epi32(high), 1);
}

/* acc + sums of pairs of code * x, times the 16-bit scales. */
SUPER_AVX512 __m512i super_scaled_avx512(__m512i acc, __m512i code, __m512i x, __m512i scale)
{
    return _mm512_dpwssd_epi32(acc, _mm512_maddubs_epi16(code, x), scale);
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

/* Lane r of the result is the sum of the lanes of v[r]. */
SUPER_AVX512 __m256i super_lane_sums_avx512(const __m512i v[SUPER_ROWS])
{
    __m512i pair[4], four[2], all;
    for (int i = 0; i < 4; i++)
        pair[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                   _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        four[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(pair[2 * i], pair[2 * i + 1]),
                                   _mm512_unpackhi_epi64(pair[2 * i], pair[2 * i + 1]));
    all = _mm512_add_epi32(_mm512_shuffle_i64x2(four[0], four[1], 0x88),
                           _mm512_shuffle_i64x2(four[0], four[1], 0xdd));
    all = _mm512_add_epi32(all, _mm512_shuffle_i64x2(all, all, 0xb1));
    return _mm512_castsi512_si256(_mm512_shuffle_i64x2(all, all, 0x08));
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
            for (uint32_t line = 0; line < SUPER_ROWS * type->block_bytes; line += 64)
                _mm_prefetch(ahead + line, _MM_HINT_T1);
            struct super_step step;
            take(block, stride, a->q + SUPER_LEN * b, a->sum + 16 * b, &step);
            __m256 da = _mm256_set1_ps(a->d[b]), scale = _mm256_mul_ps(step.d, da);
            __m256 isum = _mm256_cvtepi32_ps(super_lane_sums_avx512(step.isum));
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
