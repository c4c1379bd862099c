/* quant/block32/block32_x86.h: private to quant/: the vector shells of types with blocks of 32,
 * beside the scalar ones of quant/block32/block32.h. */
#ifndef QUANT_BLOCK32_BLOCK32_X86_H
#define QUANT_BLOCK32_BLOCK32_X86_H

#include "quant/block32/block32.h"
#include "quant/far.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* ---- gemv ----
 *
 * Eight rows go side by side (quant/far.h), one block of each at a step: in the lanes of one
 * register eight canonical sums hide each other's latency, and the column is loaded once for eight
 * rows. With AVX-512 only MXFP4 is left here, whose blocks of 17 bytes no permutation of words
 * takes apart; the others are in quant/block32/block32_avx512.h. */

enum { QUANT_GEMV_ROWS = 8 };

/* A block of each of two rows (exactly its bytes are read): 128-bit half j gets four partial sums
 * of code * q of row j, each of eight products. q_low: elements 0 to 15 in both halves, q_high:
 * elements 16 to 31. */
typedef __m256i quant_sums(const uint8_t *even, const uint8_t *odd, __m256i q_low, __m256i q_high);

/* The scales of a block of each of eight rows; minima only where the type has them. */
typedef void quant_scales(const uint8_t *const row[8], __m256 *d, __m256 *m);

/* 16 bytes at each of two places. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_pair_avx2(const uint8_t *low, const uint8_t *high)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)high), 1);
}

/* The 32-bit words at the start of eight rows' blocks: their low halves, and their high halves. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_row_halves_avx2(const uint8_t *const row[8], __m128i *low,
                                                        __m128i *high)
{
    __m128i two[4];
    for (int i = 0; i < 4; i++)
        two[i] = _mm_unpacklo_epi16(_mm_cvtsi32_si128(quant_load32(row[2 * i])),
                                    _mm_cvtsi32_si128(quant_load32(row[2 * i + 1])));
    __m128i first = _mm_unpacklo_epi32(two[0], two[1]), last = _mm_unpacklo_epi32(two[2], two[3]);
    *low = _mm_unpacklo_epi64(first, last);
    *high = _mm_unpackhi_epi64(first, last);
}

/* As most types have them: half-precision numbers, one after the other. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_scales_avx2(const uint8_t *const row[8], __m256 *d,
                                                    __m256 *m)
{
    __m128i low, high;
    quant_row_halves_avx2(row, &low, &high);
    *d = _mm256_cvtph_ps(low);
    *m = _mm256_cvtph_ps(high);
}

/* Four partial sums of each of eight rows become one sum per row, in two steps. Where sums fit 16
 * bits, a multiplication by 1 adds neighbours: two operations instead of three. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_fold_pairs_avx2(int narrow, __m256i a, __m256i b)
{
    if (narrow > 0) return _mm256_madd_epi16(_mm256_packs_epi32(a, b), _mm256_set1_epi16(1));
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}

CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_fold_rest_avx2(int narrow, __m256i a, __m256i b)
{
    if (narrow == 2) return quant_fold_pairs_avx2(narrow, a, b);
    if (narrow == 0)
        return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    __m256 f0 = _mm256_castsi256_ps(a), f1 = _mm256_castsi256_ps(b);
    return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(f0, f1, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(f0, f1, 0xdd)));
}

/* What the groups of rows of a gemv have in common. */
struct quant_product32 {
    struct quant_form32 form;
    quant_sums *sums;
    quant_scales *scales;
    int64_t n_blocks;
    const struct quant_act *a;
};

/* What a step leaves to the next one, of a block of each of eight rows: the rest is a long chain of
 * dependent operations, which then waits behind the products of the next block and not before them.
 * Half folded, it fits the registers of AVX2. */
struct quant_step {
    __m256i two[2]; /* half folded sums */
    __m256i less;   /* offset * (sum of q), where the type has an offset */
    __m256 scale;   /* d_w * d_a */
    __m256 t;       /* quant/quant.h, where the type has minima */
};

CPU_TARGET_AVX2 QUANT_INLINE struct quant_step quant_step_begin(const struct quant_product32 *p,
                                                                const struct quant_far *far,
                                                                const uint8_t *block, int64_t b)
{
    const struct quant_form32 form = p->form;
    const __m128i *q = (const __m128i *)(p->a->q + 32 * b);
    const __m256i q_low = _mm256_broadcastsi128_si256(q[0]);
    const __m256i q_high = _mm256_broadcastsi128_si256(q[1]);
    const uint8_t *row[QUANT_GEMV_ROWS];
    struct quant_step step;
    __m256 d, m;
    for (size_t i = 0; i < QUANT_GEMV_ROWS; i++) {
        row[i] = block + i * far->stride;
        quant_far_prefetch(far, row[i], form.block_bytes);
    }
    quant_far_prefetch_adjacent(far, block, (size_t)b * form.block_bytes, form.block_bytes);
    for (int i = 0; i < 2; i++) {
        __m256i first = p->sums(row[2 * i], row[2 * i + 4], q_low, q_high);
        __m256i second = p->sums(row[2 * i + 1], row[2 * i + 5], q_low, q_high);
        step.two[i] = quant_fold_pairs_avx2(form.narrow, first, second);
    }
    p->scales(row, &d, &m);
    step.scale = _mm256_mul_ps(d, _mm256_set1_ps(p->a->d[b]));
    if (form.has_min) step.t = _mm256_mul_ps(m, _mm256_set1_ps(p->a->s[b]));
    if (form.offset != 0) step.less = _mm256_set1_epi32(form.offset * p->a->sum[b]);
    return step;
}

/* v of quant/quant.h, for each lane's block. */
CPU_TARGET_AVX2 QUANT_INLINE __m256 quant_step_end(struct quant_form32 form,
                                                   const struct quant_step *step)
{
    __m256i isum = quant_fold_rest_avx2(form.narrow, step->two[0], step->two[1]);
    if (form.offset != 0) isum = _mm256_sub_epi32(isum, step->less);
    const __m256 v = _mm256_cvtepi32_ps(isum);
    return form.has_min ? _mm256_fmadd_ps(step->scale, v, step->t) : _mm256_mul_ps(step->scale, v);
}

CPU_TARGET_AVX2 QUANT_INLINE void quant_eight_rows(const void *product, const struct quant_far *far,
                                                   const uint8_t *block, float *sum)
{
    const struct quant_product32 *p = product;
    __m256 acc = _mm256_setzero_ps();
    if (p->n_blocks > 0) {
        struct quant_step last = quant_step_begin(p, far, block, 0);
        for (int64_t b = 1; b < p->n_blocks; b++) {
            block += p->form.block_bytes;
            struct quant_step step = quant_step_begin(p, far, block, b);
            acc = _mm256_add_ps(acc, quant_step_end(p->form, &last));
            last = step;
        }
        acc = _mm256_add_ps(acc, quant_step_end(p->form, &last));
    }
    _mm256_storeu_ps(sum, acc);
}

CPU_TARGET_AVX2 QUANT_INLINE void quant_gemv32(struct quant_form32 form, quant_sums *sums,
                                               quant_scales *scales, int64_t k,
                                               const struct quant_rows *rows,
                                               const struct quant_act *a, float *out)
{
    const struct quant_product32 product = {form, sums, scales, k / 32, a};
    quant_far_rows(QUANT_GEMV_ROWS, quant_eight_rows, &product, rows, out);
}

/* Byte i of each 128-bit lane becomes 16 where bit i of the lane's 16 bits is set, which are bytes
 * `first` (0 or 2) and first + 1 of the lane. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_bits_to_16_avx2(__m256i bits, int first)
{
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const long long low = 0x0101010101010101 * first, high = 0x0101010101010101 * (first + 1);
    __m256i bytes = _mm256_shuffle_epi8(bits, _mm256_setr_epi64x(low, high, low, high));
    bytes = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(16));
}

/* ---- decode ---- */

/* The 32 codes of nibbles at qs, in order of elements. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_codes_avx2(const uint8_t *qs)
{
    __m128i packed = _mm_loadu_si128((const __m128i *)qs);
    __m256i both = _mm256_set_m128i(_mm_srli_epi16(packed, 4), packed);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

/* The fifth bits: byte i is 16 where bit i of `high` is set. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_fifth_of_32_avx2(int high)
{
    const long long ones = 0x0101010101010101;
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i source = _mm256_setr_epi64x(0, ones, 2 * ones, 3 * ones);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(high), source);
    bytes = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(16));
}

/* The 32 codes of a block, in the order of elements. Scales are binary16 at byte 0, minima at 2. */
typedef __m256i quant_codes(const uint8_t *at);

/* The product is exact, so there is one rounding at most. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_decode32_avx2(struct quant_form32 form, quant_codes *codes,
                                                      int64_t k, const void *row, float *out)
{
    const uint8_t *at = row;
    for (int64_t b = 0; b < k / 32; b++, at += form.block_bytes, out += 32) {
        const __m256 d = _mm256_set1_ps(_cvtsh_ss(quant_load16(at)));
        const __m256 m = _mm256_set1_ps(form.has_min ? _cvtsh_ss(quant_load16(at + 2)) : 0.0f);
        uint8_t code[32];
        _mm256_storeu_si256((__m256i *)code, codes(at));
        for (int i = 0; i < 32; i += 8) {
            __m256i c = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(code + i)));
            c = _mm256_sub_epi32(c, _mm256_set1_epi32(form.offset));
            __m256 x = _mm256_mul_ps(d, _mm256_cvtepi32_ps(c));
            _mm256_storeu_ps(out + i, form.has_min ? _mm256_add_ps(x, m) : x);
        }
    }
}

/* ---- unpack ---- */

/* Dword i of the 16 bytes at byte `offset` of each of 8 or 16 rows, to t[i], row r at r. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_transpose_avx2(const uint8_t *const row[8], size_t offset,
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
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_quad_avx512(const uint8_t *const row[16], int r,
                                                         size_t offset)
{
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(quant_pair_avx2(row[r] + offset, row[r + 4] + offset)),
        quant_pair_avx2(row[r + 8] + offset, row[r + 12] + offset), 1);
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_transpose_avx512(const uint8_t *const row[16],
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

/* The 32-bit word at byte `offset` of 8 rows. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_row_dwords_avx2(const uint8_t *const row[8],
                                                           size_t offset)
{
    return _mm256_setr_epi32(quant_load32(row[0] + offset), quant_load32(row[1] + offset),
                             quant_load32(row[2] + offset), quant_load32(row[3] + offset),
                             quant_load32(row[4] + offset), quant_load32(row[5] + offset),
                             quant_load32(row[6] + offset), quant_load32(row[7] + offset));
}

/* Splits transposed nibbles: the low ones are elements 0 to 15, the high ones 16 to 31. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_nibbles_avx2(const __m256i t[4], __m256i q[8])
{
    const __m256i nibble = _mm256_set1_epi8(15);
    for (int i = 0; i < 4; i++) {
        q[i] = _mm256_and_si256(t[i], nibble);
        q[i + 4] = _mm256_and_si256(_mm256_srli_epi16(t[i], 4), nibble);
    }
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_nibbles_avx512(const __m512i t[4], __m512i q[8])
{
    const __m512i nibble = _mm512_set1_epi8(15);
    for (int i = 0; i < 4; i++) {
        q[i] = _mm512_and_si512(t[i], nibble);
        q[i + 4] = _mm512_and_si512(_mm512_srli_epi16(t[i], 4), nibble);
    }
}

/* Adds the fifth bit of each code: bit 4i + j of a row's dword `high` belongs to byte j of q[i]. A
 * multiplication by 1 + 2^7 + 2^14 + 2^21 takes four neighbouring bits to four bytes. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_fifth_bits_avx2(__m256i high, __m256i q[8])
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
CPU_TARGET_AVX512 QUANT_INLINE void quant_fifth_bits_avx512(__m512i high, __m512i q[8])
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
CPU_TARGET_AVX2 QUANT_INLINE void quant_put_avx2(struct quant_panel32 *p, int first,
                                                 const __m256i q[8])
{
    for (int i = 0; i < 8; i++) _mm256_store_si256((__m256i *)p->q[i][first], q[i]);
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_put_avx512(struct quant_panel32 *p, const __m512i q[8])
{
    for (int i = 0; i < 8; i++) _mm512_store_si512(p->q[i], q[i]);
}

CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_join_avx512(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* The codes of a block of each of 8 (AVX2) or 16 rows as a panel wants them. */
typedef void quant_panel_codes_avx2(const uint8_t *const at[8], __m256i q[8]);
typedef void quant_panel_codes_avx512(const uint8_t *const at[16], __m512i q[8]);

CPU_TARGET_AVX2 QUANT_INLINE void
quant_unpack32_avx2(struct quant_form32 form, quant_scales *scales, quant_panel_codes_avx2 *codes,
                    int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *p = panel;
    const uint8_t *at[QUANT_PANEL_ROWS];
    memcpy(at, row, sizeof at);
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
            __m256i q[8];
            __m256 d, m;
            scales(at + r, &d, &m);
            _mm256_store_ps(p->d + r, d);
            _mm256_store_ps(p->m + r, form.has_min ? m : _mm256_setzero_ps());
            codes(at + r, q);
            quant_put_avx2(p, r, q);
        }
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += form.block_bytes;
    }
}

/* d and m of 16 rows. */
CPU_TARGET_AVX512 QUANT_INLINE void
quant_half_scales_avx512(bool has_min, const uint8_t *const at[16], __m512 *d, __m512 *m)
{
    __m128i low[2], high[2];
    quant_row_halves_avx2(at, &low[0], &high[0]);
    quant_row_halves_avx2(at + 8, &low[1], &high[1]);
    *d = _mm512_cvtph_ps(_mm256_set_m128i(low[1], low[0]));
    *m = has_min ? _mm512_cvtph_ps(_mm256_set_m128i(high[1], high[0])) : _mm512_setzero_ps();
}

CPU_TARGET_AVX512 QUANT_INLINE void
quant_unpack32_avx512(struct quant_form32 form, quant_panel_codes_avx512 *codes, int64_t n_blocks,
                      const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *p = panel;
    const uint8_t *at[QUANT_PANEL_ROWS];
    memcpy(at, row, sizeof at);
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        __m512i q[8];
        __m512 d, m;
        quant_half_scales_avx512(form.has_min, at, &d, &m);
        _mm512_store_ps(p->d, d);
        _mm512_store_ps(p->m, m);
        codes(at, q);
        quant_put_avx512(p, q);
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += form.block_bytes;
    }
}

#endif
#endif
