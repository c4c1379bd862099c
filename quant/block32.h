/* quant/block32.h: private to quant/: what the types with blocks of 32 share: the search for scales
 * when encoding, and the vector shells of gemv and unpack, into which a type file puts only how its
 * own bits become codes and scales.
 *
 * The shells are always inlined with the type's functions as constant arguments, so each kernel
 * comes out as one straight loop and nothing is called through a pointer. */
#ifndef QUANT_BLOCK32_H
#define QUANT_BLOCK32_H

#include "quant/types.h"

#define QUANT_INLINE static inline __attribute__((always_inline))

/* ---- Encoding (quant/block32.c) ---- */

/* Scale and minimum of 32 elements as the file keeps them. */
struct quant_scales {
    uint16_t d, m; /* binary16 */
};

/* x ~ d * (code - offset) with codes 0 .. 2 * offset - 1; offset 8 or 16. Writes the codes. A block
 * with an element that is not finite gets d = NaN, so that it shows. */
struct quant_scales quant_encode_symmetric(const float x[32], int offset, uint8_t code[32]);

/* x ~ d * code + m with codes 0 .. max_code. NaN as above. */
struct quant_scales quant_encode_with_min(const float x[32], int max_code, uint8_t code[32]);

/* The canonical sum of code * q, and the value v of a block (quant/quant.h). */
static inline int quant_sum32(const uint8_t code[32], int offset, const int8_t *q)
{
    int sum = 0;
    for (int i = 0; i < 32; i++) sum += (code[i] - offset) * q[i];
    return sum;
}

/* Writes one row's codes into its lane of a panel. */
static inline void quant_panel32_put(struct quant_panel32 *panel, int row, const uint8_t code[32])
{
    for (int i = 0; i < 8; i++) memcpy(panel->q[i][row], code + 4 * i, 4);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* ---- gemv ----
 *
 * Four rows go side by side, because the canonical sum is a chain of float adds in the order of
 * blocks: four chains in the lanes of one register hide each other's latency, and the column is
 * loaded once for four rows. A step takes 4 blocks (AVX-512) or 2 blocks (AVX2) of each row and
 * makes one vector of values v with block j of row i at 4 * j + i.
 *
 * Memory sees one linear stream all the same: a prefetch runs over the matrix in address order, far
 * enough ahead that the fourth row of the group was fetched when it is needed. It goes to the
 * second-level cache, because four long rows do not fit the first. */

enum { QUANT_PREFETCH_AHEAD = 8192 };

struct quant_gemv_form {
    size_t block_bytes;
    int offset;   /* of the codes: the file's code minus the true value */
    bool has_min; /* v has the term with m */
};

/* The row pointers of rows r .. r + 3; beyond the last row, the last one again (its results are
 * not stored). */
QUANT_INLINE void quant_four_rows(const uint8_t *row[4], const void *w, size_t row_bytes, int64_t r,
                                  int64_t n_rows)
{
    for (int i = 0; i < 4; i++) {
        int64_t at = r + i < n_rows ? r + i : n_rows - 1;
        row[i] = (const uint8_t *)w + (size_t)at * row_bytes;
    }
}

QUANT_INLINE void quant_prefetch(const char *at, size_t bytes)
{
    for (size_t line = 0; line < bytes; line += 64) _mm_prefetch(at + line, _MM_HINT_T1);
}

QUANT_INLINE uint16_t quant_load16(const uint8_t *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

QUANT_INLINE int quant_load32(const uint8_t *at)
{
    int v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* Two blocks of one row (exactly their bytes are read): 128-bit lane j gets four partial sums of
 * code * q of block j. q_low: elements 0 to 15 of the two blocks, q_high: elements 16 to 31. */
typedef __m256i quant_sums_avx2(const uint8_t *blocks, __m256i q_low, __m256i q_high);

/* The scales of two blocks of four rows, block j of row i at 4 * j + i. */
typedef void quant_scales_avx2(const uint8_t *const rows[4], __m256 *d, __m256 *m);

/* 16 bytes at each of two places. */
QUANT_TARGET_AVX2 QUANT_INLINE __m256i quant_pair_avx2(const uint8_t *low, const uint8_t *high)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)high), 1);
}

/* The 16-bit words at byte `offset` of two blocks of four rows, in the order of scales. */
QUANT_TARGET_AVX2 QUANT_INLINE __m128i quant_words_avx2(const uint8_t *const rows[4], size_t offset,
                                                        size_t block_bytes)
{
    __m128i v = _mm_setzero_si128();
    v = _mm_insert_epi16(v, quant_load16(rows[0] + offset), 0);
    v = _mm_insert_epi16(v, quant_load16(rows[1] + offset), 1);
    v = _mm_insert_epi16(v, quant_load16(rows[2] + offset), 2);
    v = _mm_insert_epi16(v, quant_load16(rows[3] + offset), 3);
    offset += block_bytes;
    v = _mm_insert_epi16(v, quant_load16(rows[0] + offset), 4);
    v = _mm_insert_epi16(v, quant_load16(rows[1] + offset), 5);
    v = _mm_insert_epi16(v, quant_load16(rows[2] + offset), 6);
    return _mm_insert_epi16(v, quant_load16(rows[3] + offset), 7);
}

/* Adds the values of n blocks (1 or 2) at `rows` to acc; block b of the column belongs to the first
 * of them. */
QUANT_TARGET_AVX2 QUANT_INLINE __m128 quant_step_avx2(
    struct quant_gemv_form form, quant_sums_avx2 *sums, quant_scales_avx2 *scales,
    const uint8_t *const rows[4], const struct quant_act *a, int64_t b, int n, __m128 acc)
{
    const int8_t *q = a->q + 32 * b;
    __m256i a0 = _mm256_loadu_si256((const __m256i *)q);
    __m256i a1 = _mm256_loadu_si256((const __m256i *)(q + 32));
    __m256i q_low = _mm256_permute2x128_si256(a0, a1, 0x20);
    __m256i q_high = _mm256_permute2x128_si256(a0, a1, 0x31);
    int next = n - 1; /* of one block only, its values stand in for the second, which is dropped */
    __m256i isum;
    __m256 d, m;

    isum = _mm256_hadd_epi32(
        _mm256_hadd_epi32(sums(rows[0], q_low, q_high), sums(rows[1], q_low, q_high)),
        _mm256_hadd_epi32(sums(rows[2], q_low, q_high), sums(rows[3], q_low, q_high)));
    if (form.offset != 0) {
        __m256i sum = _mm256_set_m128i(_mm_set1_epi32(a->sum[b + next]), _mm_set1_epi32(a->sum[b]));
        isum = _mm256_sub_epi32(isum, _mm256_mullo_epi32(sum, _mm256_set1_epi32(form.offset)));
    }
    scales(rows, &d, &m);
    __m256 v = _mm256_mul_ps(d, _mm256_set_m128(_mm_set1_ps(a->d[b + next]), _mm_set1_ps(a->d[b])));
    if (form.has_min) {
        __m256 s = _mm256_set_m128(_mm_set1_ps(a->s[b + next]), _mm_set1_ps(a->s[b]));
        v = _mm256_fmadd_ps(v, _mm256_cvtepi32_ps(isum), _mm256_mul_ps(m, s));
    } else {
        v = _mm256_mul_ps(v, _mm256_cvtepi32_ps(isum));
    }
    acc = _mm_add_ps(acc, _mm256_castps256_ps128(v));
    return n == 2 ? _mm_add_ps(acc, _mm256_extractf128_ps(v, 1)) : acc;
}

QUANT_TARGET_AVX2 QUANT_INLINE void quant_gemv_avx2(struct quant_gemv_form form,
                                                    quant_sums_avx2 *sums,
                                                    quant_scales_avx2 *scales, int64_t k,
                                                    const void *w, size_t row_bytes, int64_t n_rows,
                                                    const struct quant_act *a, float *out)
{
    const int64_t n_blocks = k / 32;
    const size_t step = 2 * form.block_bytes;

    for (int64_t r = 0; r < n_rows; r += 4) {
        const uint8_t *row[4];
        __m128 acc = _mm_setzero_ps();
        int64_t b = 0;

        quant_four_rows(row, w, row_bytes, r, n_rows);
        const char *ahead = (const char *)row[0] + 3 * row_bytes + QUANT_PREFETCH_AHEAD;
        for (; b + 2 <= n_blocks; b += 2, ahead += 4 * step) {
            quant_prefetch(ahead, 4 * step);
            acc = quant_step_avx2(form, sums, scales, row, a, b, 2, acc);
            for (int i = 0; i < 4; i++) row[i] += step;
        }
        if (b < n_blocks) {
            /* The step reads two blocks: where this would leave the matrix, from a copy. */
            uint8_t copy[4][2 * 64] = {{0}};
            for (int i = 0; i < 4 && r + 4 >= n_rows; i++)
                row[i] = memcpy(copy[i], row[i], form.block_bytes);
            quant_prefetch(ahead, 4 * step);
            acc = quant_step_avx2(form, sums, scales, row, a, b, 1, acc);
        }
        float sum[4];
        _mm_storeu_ps(sum, acc);
        memcpy(out + r, sum, (size_t)(n_rows - r < 4 ? n_rows - r : 4) * sizeof *out);
    }
}

/* The same for four blocks. */
typedef __m512i quant_sums_avx512(const uint8_t *blocks, __m512i q_low, __m512i q_high);
typedef void quant_scales_avx512(const uint8_t *const rows[4], __m512 *d, __m512 *m);

/* Sixteen partial sums in four registers, one per row, to one sum per block and row. */
QUANT_TARGET_AVX512 QUANT_INLINE __m512i quant_fold_avx512(const __m512i part[4])
{
    __m512i t0 = _mm512_add_epi32(_mm512_unpacklo_epi32(part[0], part[1]),
                                  _mm512_unpackhi_epi32(part[0], part[1]));
    __m512i t1 = _mm512_add_epi32(_mm512_unpacklo_epi32(part[2], part[3]),
                                  _mm512_unpackhi_epi32(part[2], part[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(t0, t1), _mm512_unpackhi_epi64(t0, t1));
}

/* The 16-bit words at bytes 2 * at[0] .. 2 * at[3] of each row, word j of row i at 4 * j + i. Words
 * below 32 are read from the row's first 64 bytes, the others (given plus 32) from the 64 bytes at
 * `second`, which is 0 where there are no others. */
QUANT_TARGET_AVX512 QUANT_INLINE __m256i quant_words_avx512(const uint8_t *const rows[4],
                                                            size_t second, const int at[4])
{
    __m512i index = _mm512_castsi256_si512(
        _mm256_setr_epi64x(at[0] * 0x1000100010001ll, at[1] * 0x1000100010001ll,
                           at[2] * 0x1000100010001ll, at[3] * 0x1000100010001ll));
    __m512i v = _mm512_setzero_si512();
    for (int i = 0; i < 4; i++) {
        const __mmask32 to = 0x1111u << i;
        if (second == 0) {
            v = _mm512_mask_permutexvar_epi16(v, to, index, _mm512_loadu_si512(rows[i]));
            continue;
        }
        __m512i row = _mm512_permutex2var_epi16(_mm512_loadu_si512(rows[i]), index,
                                                _mm512_loadu_si512(rows[i] + second));
        v = _mm512_mask_mov_epi16(v, to, row);
    }
    return _mm512_castsi512_si256(v);
}

/* The same for dwords: those below 16 from the row's first 64 bytes, the others (given plus 16)
 * from the 64 bytes at `second`. */
QUANT_TARGET_AVX512 QUANT_INLINE __m512i quant_dwords_avx512(const uint8_t *const rows[4],
                                                             size_t second, const int at[4])
{
    __m512i index = _mm512_setr_epi32(at[0], at[0], at[0], at[0], at[1], at[1], at[1], at[1], at[2],
                                      at[2], at[2], at[2], at[3], at[3], at[3], at[3]);
    __m512i v = _mm512_setzero_si512();
    for (int i = 0; i < 4; i++) {
        __m512i row = _mm512_permutex2var_epi32(_mm512_loadu_si512(rows[i]), index,
                                                _mm512_loadu_si512(rows[i] + second));
        v = _mm512_mask_mov_epi32(v, (__mmask16)(0x1111 << i), row);
    }
    return v;
}

/* Both halves of sixteen dwords as floats: a scale below, a minimum above. */
QUANT_TARGET_AVX512 QUANT_INLINE void quant_split_scales_avx512(__m512i dm, __m512 *d, __m512 *m)
{
    *d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(dm));
    *m = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(dm, 16)));
}

/* Byte i of each 128-bit lane becomes 16 where bit i of the lane's 16 bits is set; the bits are
 * given in every dword of the lane, at byte `first` of it (0 or 2). */
QUANT_TARGET_AVX2 QUANT_INLINE __m256i quant_bits_to_16_avx2(__m256i dwords, int first)
{
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const long long low = 0x0101010101010101 * first, high = 0x0101010101010101 * (first + 1);
    __m256i bytes = _mm256_shuffle_epi8(dwords, _mm256_setr_epi64x(low, high, low, high));
    bytes = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(16));
}

/* The same, added to codes below 16. */
QUANT_TARGET_AVX512 QUANT_INLINE __m512i quant_add_fifth_avx512(__m512i codes, __m512i dwords,
                                                                int first)
{
    const __m512i bit = _mm512_set1_epi64((long long)0x8040201008040201);
    const long long low = 0x0101010101010101 * first, high = 0x0101010101010101 * (first + 1);
    __m512i bytes =
        _mm512_shuffle_epi8(dwords, _mm512_setr_epi64(low, high, low, high, low, high, low, high));
    return _mm512_mask_add_epi8(codes, _mm512_test_epi8_mask(bytes, bit), codes,
                                _mm512_set1_epi8(16));
}

QUANT_TARGET_AVX512 QUANT_INLINE __m128 quant_step_avx512(
    struct quant_gemv_form form, quant_sums_avx512 *sums, quant_scales_avx512 *scales,
    const uint8_t *const rows[4], const struct quant_act *a, int64_t b, int n, __m128 acc)
{
    const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __mmask8 live = (__mmask8)((1 << n) - 1);
    const int8_t *q = a->q + 32 * b;
    __m512i a0 = _mm512_loadu_si512(q);
    __m512i a1 = n > 2 ? _mm512_loadu_si512(q + 64) : _mm512_setzero_si512();
    __m512i q_low = _mm512_shuffle_i64x2(a0, a1, 0x88);
    __m512i q_high = _mm512_shuffle_i64x2(a0, a1, 0xdd);
    __m512i part[4];
    __m512 d, m;

    for (int i = 0; i < 4; i++) part[i] = sums(rows[i], q_low, q_high);
    __m512i isum = quant_fold_avx512(part);
    if (form.offset != 0) {
        __m128i sum = _mm_cvtepi16_epi32(_mm_maskz_loadu_epi16(live, a->sum + b));
        sum = _mm_mullo_epi32(sum, _mm_set1_epi32(form.offset));
        isum =
            _mm512_sub_epi32(isum, _mm512_permutexvar_epi32(spread, _mm512_castsi128_si512(sum)));
    }
    scales(rows, &d, &m);
    __m512 da = _mm512_castps128_ps512(_mm_maskz_loadu_ps(live, a->d + b));
    __m512 v = _mm512_mul_ps(d, _mm512_permutexvar_ps(spread, da));
    if (form.has_min) {
        __m512 s = _mm512_castps128_ps512(_mm_maskz_loadu_ps(live, a->s + b));
        __m512 t = _mm512_mul_ps(m, _mm512_permutexvar_ps(spread, s));
        v = _mm512_fmadd_ps(v, _mm512_cvtepi32_ps(isum), t);
    } else {
        v = _mm512_mul_ps(v, _mm512_cvtepi32_ps(isum));
    }
    /* A zero changes no sum that began at +0, so blocks that are not there may be added. */
    if (n < 4) v = _mm512_maskz_mov_ps((__mmask16)((1 << 4 * n) - 1), v);
    acc = _mm_add_ps(acc, _mm512_castps512_ps128(v));
    acc = _mm_add_ps(acc, _mm512_extractf32x4_ps(v, 1));
    acc = _mm_add_ps(acc, _mm512_extractf32x4_ps(v, 2));
    return _mm_add_ps(acc, _mm512_extractf32x4_ps(v, 3));
}

/* The last 1 to 3 blocks of the rows. A step reads four: where this would leave the matrix, from a
 * copy. `inside`: three more blocks belong to the matrix. */
QUANT_TARGET_AVX512 QUANT_INLINE __m128 quant_tail_avx512(struct quant_gemv_form form,
                                                          quant_sums_avx512 *sums,
                                                          quant_scales_avx512 *scales,
                                                          const uint8_t *const rows[4], bool inside,
                                                          const struct quant_act *a, int64_t b,
                                                          int n, __m128 acc)
{
    uint8_t copy[4][192];
    const uint8_t *from[4];

    for (int i = 0; i < 4; i++) {
        from[i] = rows[i];
        if (inside) continue;
        memcpy(copy[i], rows[i], (size_t)n * form.block_bytes);
        memset(copy[i] + (size_t)n * form.block_bytes, 0, (size_t)(4 - n) * form.block_bytes);
        from[i] = copy[i];
    }
    return quant_step_avx512(form, sums, scales, from, a, b, n, acc);
}

QUANT_TARGET_AVX512 QUANT_INLINE void
quant_gemv_avx512(struct quant_gemv_form form, quant_sums_avx512 *sums, quant_scales_avx512 *scales,
                  int64_t k, const void *w, size_t row_bytes, int64_t n_rows,
                  const struct quant_act *a, float *out)
{
    const int64_t n_blocks = k / 32;
    const size_t step = 4 * form.block_bytes;

    for (int64_t r = 0; r < n_rows; r += 4) {
        const uint8_t *row[4];
        __m128 acc = _mm_setzero_ps();
        int64_t b = 0;

        quant_four_rows(row, w, row_bytes, r, n_rows);
        const char *ahead = (const char *)row[0] + 3 * row_bytes + QUANT_PREFETCH_AHEAD;
        for (; b + 4 <= n_blocks; b += 4, ahead += 4 * step) {
            quant_prefetch(ahead, 4 * step);
            acc = quant_step_avx512(form, sums, scales, row, a, b, 4, acc);
            for (int i = 0; i < 4; i++) row[i] += step;
        }
        if (b < n_blocks) {
            quant_prefetch(ahead, 4 * step);
            bool inside = r + 4 < n_rows && n_blocks >= 3;
            acc =
                quant_tail_avx512(form, sums, scales, row, inside, a, b, (int)(n_blocks - b), acc);
        }
        __mmask8 live = n_rows - r >= 4 ? 15 : (__mmask8)((1 << (n_rows - r)) - 1);
        _mm_mask_storeu_ps(out + r, live, acc);
    }
}

/* ---- decode ---- */

/* The 32 codes of nibbles at qs, in order of elements. */
QUANT_TARGET_AVX2 QUANT_INLINE __m256i quant_codes_avx2(const uint8_t *qs)
{
    __m128i packed = _mm_loadu_si128((const __m128i *)qs);
    __m256i both = _mm256_set_m128i(_mm_srli_epi16(packed, 4), packed);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

/* The fifth bits: byte i is 16 where bit i of `high` is set. */
QUANT_TARGET_AVX2 QUANT_INLINE __m256i quant_fifth_of_32_avx2(int high)
{
    const long long ones = 0x0101010101010101;
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i source = _mm256_setr_epi64x(0, ones, 2 * ones, 3 * ones);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(high), source);
    bytes = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(16));
}

/* out[i] = d * (code - offset), and + m where the type has it: the product is exact, so there is
 * one rounding at most. */
QUANT_TARGET_AVX2 QUANT_INLINE void quant_decode32_avx2(struct quant_gemv_form form, __m256i codes,
                                                        uint16_t d, uint16_t m, float *out)
{
    const __m256 dv = _mm256_set1_ps(_cvtsh_ss(d)), mv = _mm256_set1_ps(_cvtsh_ss(m));
    uint8_t code[32];
    _mm256_storeu_si256((__m256i *)code, codes);
    for (int i = 0; i < 32; i += 8) {
        __m256i c = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(code + i)));
        c = _mm256_sub_epi32(c, _mm256_set1_epi32(form.offset));
        __m256 x = _mm256_mul_ps(dv, _mm256_cvtepi32_ps(c));
        _mm256_storeu_ps(out + i, form.has_min ? _mm256_add_ps(x, mv) : x);
    }
}

/* ---- unpack ---- */

/* Dword i of the 16 bytes at byte `offset` of each of 8 or 16 rows, to t[i], row r at r. */
QUANT_TARGET_AVX2 QUANT_INLINE void quant_transpose_avx2(const uint8_t *const row[8], size_t offset,
                                                         __m256i t[4])
{
    __m256i v0 = quant_pair_avx2(row[0] + offset, row[4] + offset);
    __m256i v1 = quant_pair_avx2(row[1] + offset, row[5] + offset);
    __m256i v2 = quant_pair_avx2(row[2] + offset, row[6] + offset);
    __m256i v3 = quant_pair_avx2(row[3] + offset, row[7] + offset);
    __m256i lo01 = _mm256_unpacklo_epi32(v0, v1), hi01 = _mm256_unpackhi_epi32(v0, v1);
    __m256i lo23 = _mm256_unpacklo_epi32(v2, v3), hi23 = _mm256_unpackhi_epi32(v2, v3);

    t[0] = _mm256_unpacklo_epi64(lo01, lo23);
    t[1] = _mm256_unpackhi_epi64(lo01, lo23);
    t[2] = _mm256_unpacklo_epi64(hi01, hi23);
    t[3] = _mm256_unpackhi_epi64(hi01, hi23);
}

/* 16 bytes at each of rows r, r + 4, r + 8, r + 12. */
QUANT_TARGET_AVX512 QUANT_INLINE __m512i quant_quad_avx512(const uint8_t *const row[16], int r,
                                                           size_t offset)
{
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(quant_pair_avx2(row[r] + offset, row[r + 4] + offset)),
        quant_pair_avx2(row[r + 8] + offset, row[r + 12] + offset), 1);
}

QUANT_TARGET_AVX512 QUANT_INLINE void quant_transpose_avx512(const uint8_t *const row[16],
                                                             size_t offset, __m512i t[4])
{
    __m512i v0 = quant_quad_avx512(row, 0, offset), v1 = quant_quad_avx512(row, 1, offset);
    __m512i v2 = quant_quad_avx512(row, 2, offset), v3 = quant_quad_avx512(row, 3, offset);
    __m512i lo01 = _mm512_unpacklo_epi32(v0, v1), hi01 = _mm512_unpackhi_epi32(v0, v1);
    __m512i lo23 = _mm512_unpacklo_epi32(v2, v3), hi23 = _mm512_unpackhi_epi32(v2, v3);

    t[0] = _mm512_unpacklo_epi64(lo01, lo23);
    t[1] = _mm512_unpackhi_epi64(lo01, lo23);
    t[2] = _mm512_unpacklo_epi64(hi01, hi23);
    t[3] = _mm512_unpackhi_epi64(hi01, hi23);
}

/* The 16-bit word at byte `offset` of 8 rows. */
QUANT_TARGET_AVX2 QUANT_INLINE __m128i quant_row_words_avx2(const uint8_t *const row[8],
                                                            size_t offset)
{
    __m128i v = _mm_setzero_si128();
    v = _mm_insert_epi16(v, quant_load16(row[0] + offset), 0);
    v = _mm_insert_epi16(v, quant_load16(row[1] + offset), 1);
    v = _mm_insert_epi16(v, quant_load16(row[2] + offset), 2);
    v = _mm_insert_epi16(v, quant_load16(row[3] + offset), 3);
    v = _mm_insert_epi16(v, quant_load16(row[4] + offset), 4);
    v = _mm_insert_epi16(v, quant_load16(row[5] + offset), 5);
    v = _mm_insert_epi16(v, quant_load16(row[6] + offset), 6);
    return _mm_insert_epi16(v, quant_load16(row[7] + offset), 7);
}

/* The 32-bit word at byte `offset` of 8 rows. */
QUANT_TARGET_AVX2 QUANT_INLINE __m256i quant_row_dwords_avx2(const uint8_t *const row[8],
                                                             size_t offset)
{
    return _mm256_setr_epi32(quant_load32(row[0] + offset), quant_load32(row[1] + offset),
                             quant_load32(row[2] + offset), quant_load32(row[3] + offset),
                             quant_load32(row[4] + offset), quant_load32(row[5] + offset),
                             quant_load32(row[6] + offset), quant_load32(row[7] + offset));
}

/* Splits transposed nibbles: the low ones are elements 0 to 15, the high ones 16 to 31. */
QUANT_TARGET_AVX2 QUANT_INLINE void quant_nibbles_avx2(const __m256i t[4], __m256i q[8])
{
    const __m256i nibble = _mm256_set1_epi8(15);
    for (int i = 0; i < 4; i++) {
        q[i] = _mm256_and_si256(t[i], nibble);
        q[i + 4] = _mm256_and_si256(_mm256_srli_epi16(t[i], 4), nibble);
    }
}

QUANT_TARGET_AVX512 QUANT_INLINE void quant_nibbles_avx512(const __m512i t[4], __m512i q[8])
{
    const __m512i nibble = _mm512_set1_epi8(15);
    for (int i = 0; i < 4; i++) {
        q[i] = _mm512_and_si512(t[i], nibble);
        q[i + 4] = _mm512_and_si512(_mm512_srli_epi16(t[i], 4), nibble);
    }
}

/* Adds the fifth bit of each code: bit 4i + j of a row's dword `high` belongs to byte j of q[i]. A
 * multiplication by 1 + 2^7 + 2^14 + 2^21 takes four neighbouring bits to four bytes. */
QUANT_TARGET_AVX2 QUANT_INLINE void quant_fifth_bits_avx2(__m256i high, __m256i q[8])
{
    const __m256i four = _mm256_set1_epi32(15), one = _mm256_set1_epi32(0x10101010);
    const __m256i spread = _mm256_set1_epi32(0x00204081 << 4);
    for (int i = 0; i < 8; i++) {
        __m256i bits = _mm256_and_si256(_mm256_srli_epi32(high, 4 * i), four);
        bits = _mm256_and_si256(_mm256_mullo_epi32(bits, spread), one);
        q[i] = _mm256_or_si256(q[i], bits);
    }
}

/* The same by a table of the sixteen patterns; the permute looks at four bits of each index. */
QUANT_TARGET_AVX512 QUANT_INLINE void quant_fifth_bits_avx512(__m512i high, __m512i q[8])
{
    const __m512i pattern =
        _mm512_setr_epi32(0x00000000, 0x00000010, 0x00001000, 0x00001010, 0x00100000, 0x00100010,
                          0x00101000, 0x00101010, 0x10000000, 0x10000010, 0x10001000, 0x10001010,
                          0x10100000, 0x10100010, 0x10101000, 0x10101010);
    for (int i = 0; i < 8; i++)
        q[i] = _mm512_or_si512(
            q[i], _mm512_permutexvar_epi32(_mm512_srli_epi32(high, (unsigned)(4 * i)), pattern));
}

/* Stores eight groups of codes of rows `first` .. first + 7 (AVX2) or of all rows (AVX-512). */
QUANT_TARGET_AVX2 QUANT_INLINE void quant_put_avx2(struct quant_panel32 *p, int first,
                                                   const __m256i q[8])
{
    for (int i = 0; i < 8; i++) _mm256_store_si256((__m256i *)p->q[i][first], q[i]);
}

QUANT_TARGET_AVX512 QUANT_INLINE void quant_put_avx512(struct quant_panel32 *p, const __m512i q[8])
{
    for (int i = 0; i < 8; i++) _mm512_store_si512(p->q[i], q[i]);
}

QUANT_TARGET_AVX512 QUANT_INLINE __m512i quant_join_avx512(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

#endif
#endif
