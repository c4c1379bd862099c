/* quant/x86/block32_x86.h: private to quant/: x86 kernels of the types with blocks of 32:
 * decode and gemv with AVX2, unpack with AVX2 and AVX-512. Scalar: quant/block32/block32.h. */
#pragma once

#include "quant/block32/block32.h"
#include "quant/row_groups.h"

#include <immintrin.h>

/* ---- Loads ---- */

/* Loads 16 bytes from each of two addresses. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_pair_avx2(const uint8_t *low, const uint8_t *high)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)high), 1);
}

CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_join_avx512(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
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

/* ---- Scales ---- */

/* The low and the high halves of the first 32-bit words of eight rows' blocks. */
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

/* quant_e8m0 of eight e. */
CPU_TARGET_AVX2 QUANT_INLINE __m256 quant_e8m0_avx2(__m256i e)
{
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    __m256i large = _mm256_cmpgt_epi32(e, _mm256_set1_epi32(1));
    return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, large));
}

/* d of a block of each of eight rows, and m, which is 0 in types without minima. */
CPU_TARGET_AVX2 QUANT_INLINE void
quant_scales_avx2(struct quant_form32 form, const uint8_t *const row[8], __m256 *d, __m256 *m)
{
    *m = _mm256_setzero_ps();
    if (form.e8m0) {
        __m256i words = quant_row_dwords_avx2(row, 0);
        *d = quant_e8m0_avx2(_mm256_and_si256(words, _mm256_set1_epi32(0xff)));
        return;
    }
    __m128i low, high;
    quant_row_halves_avx2(row, &low, &high);
    *d = _mm256_cvtph_ps(low);
    if (form.has_min) *m = _mm256_cvtph_ps(high);
}

/* ---- Codes of a block of each of two rows ---- */

/* Byte i of each 128-bit lane becomes 16 where bit i of the lane's bytes `first` (0 or 2) and first
 * + 1 is set, otherwise 0. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_bits_to_16_avx2(__m256i bits, int first)
{
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const long long low = 0x0101010101010101 * first, high = 0x0101010101010101 * (first + 1);
    __m256i bytes = _mm256_shuffle_epi8(bits, _mm256_setr_epi64x(low, high, low, high));
    bytes = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(16));
}

/* Adds bits 5 and 4 of a block's codes (quant_add_top_bits), whose bytes begin each 128-bit lane.
 */
CPU_TARGET_AVX2 QUANT_INLINE void quant_top_bits_avx2(__m256i bytes, __m256i *low, __m256i *high)
{
    const __m256i top = _mm256_set1_epi8(0x30);
    __m256i both = _mm256_unpacklo_epi64(bytes, _mm256_srli_epi16(bytes, 4));
    *low = _mm256_or_si256(*low, _mm256_and_si256(_mm256_slli_epi16(both, 4), top));
    *high = _mm256_or_si256(*high, _mm256_and_si256(_mm256_slli_epi16(both, 2), top));
}

/* The codebook in both lanes, for vpshufb: the codes of 16 nibbles, or without the offset their
 * values. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_values_avx2(struct quant_form32 form)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)form.codebook));
}

CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_codebook_avx2(struct quant_form32 form)
{
    return _mm256_add_epi8(quant_values_avx2(form), _mm256_set1_epi8((char)form.offset));
}

/* VPMADDUBSW multiplies unsigned bytes by signed ones and adds two products in 16 bits. Two such
 * sums can also be added in 16 bits if 4 * 127 * max_code <= INT16_MAX; in other types the offset
 * is subtracted from the codes first, and the products are |value| * (q with the sign of value). */
QUANT_INLINE bool quant_by_value32(struct quant_form32 form)
{
    return 4 * 127 * form.max_code > INT16_MAX;
}

/* Elements 0 to 15 (*low) and 16 to 31 (*high) of a block at `even` in the lower lane, of one at
 * `odd` in the upper lane: codes, or values if quant_by_value32. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_pair_codes_avx2(struct quant_form32 form,
                                                        const uint8_t *even, const uint8_t *odd,
                                                        __m256i *low, __m256i *high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i first = quant_pair_avx2(even + form.codes, odd + form.codes);
    if (form.bytes) {
        *low = first;
        *high = quant_pair_avx2(even + form.codes + 16, odd + form.codes + 16);
        return;
    }
    *low = _mm256_and_si256(first, nibble);
    *high = _mm256_and_si256(_mm256_srli_epi16(first, 4), nibble);
    if (form.fifth) { /* the other twelve bytes of `bits` are unused */
        __m256i bits = quant_pair_avx2(even + form.fifth, odd + form.fifth);
        *low = _mm256_or_si256(*low, quant_bits_to_16_avx2(bits, 0));
        *high = _mm256_or_si256(*high, quant_bits_to_16_avx2(bits, 2));
    }
    if (form.top) quant_top_bits_avx2(quant_pair_avx2(even + form.top, odd + form.top), low, high);
    if (form.codebook) {
        const __m256i book =
            quant_by_value32(form) ? quant_values_avx2(form) : quant_codebook_avx2(form);
        *low = _mm256_shuffle_epi8(book, *low);
        *high = _mm256_shuffle_epi8(book, *high);
    }
}

/* ---- gemv ----
 *
 * A step multiplies one block of each of eight rows (quant/row_groups.h): one addition then updates
 * the canonical sums of eight rows, one per lane, and the column is loaded once for all of them.
 * With AVX-512 this is used only for blocks of an odd number of bytes, which permutations of 16-bit
 * words cannot separate; the others are in quant/x86/block32_avx512.h. */

enum { QUANT_GEMV_ROWS = 8 };

/* A block of each of two rows (exactly its bytes are read): 128-bit half j gets four partial sums
 * of code * q of row j, each of eight products. q_low: elements 0 to 15 in both halves, q_high:
 * elements 16 to 31. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_pair_sums_avx2(struct quant_form32 form,
                                                          const uint8_t *even, const uint8_t *odd,
                                                          __m256i q_low, __m256i q_high)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i low, high;
    quant_pair_codes_avx2(form, even, odd, &low, &high);
    if (quant_by_value32(form)) { /* 2 * 128 * 127 <= INT16_MAX */
        low = _mm256_maddubs_epi16(_mm256_abs_epi8(low), _mm256_sign_epi8(q_low, low));
        high = _mm256_maddubs_epi16(_mm256_abs_epi8(high), _mm256_sign_epi8(q_high, high));
        return _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones));
    }
    low = _mm256_maddubs_epi16(low, q_low);
    high = _mm256_maddubs_epi16(high, q_high);
    return _mm256_madd_epi16(_mm256_add_epi16(low, high), ones);
}

/* Four partial sums of eight products each are reduced to one in two steps that add adjacent sums.
 * If the sums fit 16 bits, a step is a pack and a multiply-add by 1: two operations instead of
 * three. */
QUANT_INLINE bool quant_eights_fit_16(struct quant_form32 form)
{
    return 8 * 127 * form.max_code <= INT16_MAX;
}

QUANT_INLINE bool quant_sixteens_fit_16(struct quant_form32 form)
{
    return 16 * 127 * form.max_code <= INT16_MAX;
}

CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_add_pairs_avx2(bool fit_16, __m256i a, __m256i b)
{
    if (fit_16) return _mm256_madd_epi16(_mm256_packs_epi32(a, b), _mm256_set1_epi16(1));
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}

/* Reduces the pairs that quant_add_pairs_avx2 returned to one sum each. If sums of eight fit 16
 * bits, each lane has the pairs of a, then those of b; otherwise they alternate. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_add_rest_avx2(struct quant_form32 form, __m256i a,
                                                         __m256i b)
{
    if (quant_sixteens_fit_16(form)) return quant_add_pairs_avx2(true, a, b);
    if (!quant_eights_fit_16(form))
        return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    __m256 f0 = _mm256_castsi256_ps(a), f1 = _mm256_castsi256_ps(b);
    return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(f0, f1, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(f0, f1, 0xdd)));
}

/* Constants of a gemv, for all groups of rows. */
struct quant_product32 {
    struct quant_form32 form;
    int offset; /* of the codes that are multiplied */
    int64_t n_blocks;
    const struct quant_act *a;
};

/* A block of each of eight rows after its products. The remaining operations are a long dependent
 * chain, which overlaps the products of the next block; partly added sums keep it within the
 * registers of AVX2. */
struct quant_step {
    __m256i two[2]; /* partly added sums */
    __m256i less;   /* offset * (sum of q), where the type has an offset */
    __m256 scale;   /* d_w * d_a */
    __m256 t;       /* quant/quant.h, where the type has minima */
};

CPU_TARGET_AVX2 QUANT_INLINE struct quant_step quant_step_begin(const struct quant_product32 *p,
                                                                const struct quant_row_group *group,
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
        row[i] = quant_group_row(group, block, i, (size_t)b * form.block_bytes);
        quant_group_prefetch_strided(group, row[i], form.block_bytes);
        quant_group_prefetch_listed(group, i, (size_t)b * form.block_bytes, form.block_bytes);
    }
    quant_group_prefetch_adjacent(group, block, (size_t)b * form.block_bytes, form.block_bytes);
    for (int i = 0; i < 2; i++) {
        __m256i first = quant_pair_sums_avx2(form, row[2 * i], row[2 * i + 4], q_low, q_high);
        __m256i second = quant_pair_sums_avx2(form, row[2 * i + 1], row[2 * i + 5], q_low, q_high);
        step.two[i] = quant_add_pairs_avx2(quant_eights_fit_16(form), first, second);
    }
    quant_scales_avx2(form, row, &d, &m);
    step.scale = _mm256_mul_ps(d, _mm256_set1_ps(p->a->d[b]));
    if (form.has_min) step.t = _mm256_mul_ps(m, _mm256_set1_ps(p->a->s[b]));
    if (p->offset != 0) step.less = _mm256_set1_epi32(p->offset * p->a->sum[b]);
    return step;
}

/* v (quant/quant.h) of each lane's block. */
CPU_TARGET_AVX2 QUANT_INLINE __m256 quant_step_end(const struct quant_product32 *p,
                                                   const struct quant_step *step)
{
    const struct quant_form32 form = p->form;
    __m256i isum = quant_add_rest_avx2(form, step->two[0], step->two[1]);
    if (p->offset != 0) isum = _mm256_sub_epi32(isum, step->less);
    const __m256 v = _mm256_cvtepi32_ps(isum);
    return form.has_min ? _mm256_fmadd_ps(step->scale, v, step->t) : _mm256_mul_ps(step->scale, v);
}

CPU_TARGET_AVX2 QUANT_INLINE void quant_eight_rows(const void *product,
                                                   const struct quant_row_group *group,
                                                   const uint8_t *block, float *sum)
{
    const struct quant_product32 *p = product;
    __m256 acc = _mm256_setzero_ps();
    if (p->n_blocks > 0) {
        struct quant_step last = quant_step_begin(p, group, block, 0);
        for (int64_t b = 1; b < p->n_blocks; b++) {
            block += p->form.block_bytes;
            struct quant_step step = quant_step_begin(p, group, block, b);
            acc = _mm256_add_ps(acc, quant_step_end(p, &last));
            last = step;
        }
        acc = _mm256_add_ps(acc, quant_step_end(p, &last));
    }
    _mm256_storeu_ps(sum, acc);
}

/* `listed`, a constant: the rows are listed ones, which a kernel multiplies in a function of its
 * own, because addresses of both kinds take more registers than there are. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_gemv32_avx2(struct quant_form32 form, bool listed,
                                                    int64_t k, const struct quant_rows *rows,
                                                    const struct quant_act *a, float *out)
{
    const int offset = quant_by_value32(form) ? 0 : form.offset;
    const struct quant_product32 product = {form, offset, k / 32, a};
    quant_gemv_by_groups(QUANT_GEMV_ROWS, listed, quant_eight_rows, &product, rows, out);
}

/* ---- decode ---- */

/* The fifth bits: byte i is 16 where bit i of `high` is set, otherwise 0. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_fifth_of_32_avx2(int high)
{
    const long long ones = 0x0101010101010101;
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i source = _mm256_setr_epi64x(0, ones, 2 * ones, 3 * ones);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(high), source);
    bytes = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(16));
}

/* The 32 codes of a block, in the order of elements. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_codes_avx2(struct quant_form32 form, const uint8_t *at)
{
    if (form.bytes)
        return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(at + form.codes)),
                                _mm256_set1_epi8(-128));
    __m128i packed = _mm_loadu_si128((const __m128i *)(at + form.codes));
    __m256i codes = _mm256_set_m128i(_mm_srli_epi16(packed, 4), packed);
    codes = _mm256_and_si256(codes, _mm256_set1_epi8(15));
    if (form.fifth)
        codes = _mm256_or_si256(codes, quant_fifth_of_32_avx2(quant_load32(at + form.fifth)));
    if (form.top) {
        __m256i high = _mm256_permute4x64_epi64(codes, 0x0e), low = codes;
        quant_top_bits_avx2(quant_pair_avx2(at + form.top, at + form.top), &low, &high);
        codes = _mm256_permute2x128_si256(low, high, 0x20);
    }
    return form.codebook ? _mm256_shuffle_epi8(quant_codebook_avx2(form), codes) : codes;
}

/* The product d * (code - offset) is exact, so only the sum with m is rounded, as in
 * quant_decode32. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_decode32_avx2(struct quant_form32 form, int64_t first,
                                                      int64_t n, const void *row, float *out)
{
    const uint8_t *at = (const uint8_t *)row + (size_t)(first / 32) * form.block_bytes;
    for (int64_t b = 0; b < n / 32; b++, at += form.block_bytes, out += 32) {
        const __m256 d = _mm256_set1_ps(form.e8m0 ? quant_e8m0(*at) : _cvtsh_ss(quant_load16(at)));
        const __m256 m = _mm256_set1_ps(form.has_min ? _cvtsh_ss(quant_load16(at + 2)) : 0.0f);
        uint8_t code[32];
        _mm256_storeu_si256((__m256i *)code, quant_codes_avx2(form, at));
        for (int i = 0; i < 32; i += 8) {
            __m256i c = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(code + i)));
            c = _mm256_sub_epi32(c, _mm256_set1_epi32(form.offset));
            __m256 x = _mm256_mul_ps(d, _mm256_cvtepi32_ps(c));
            _mm256_storeu_ps(out + i, form.has_min ? _mm256_add_ps(x, m) : x);
        }
    }
}

/* ---- unpack ---- */

/* Transposes the 16 bytes at byte `offset` of each of 8 or 16 rows: dword i of row r becomes
 * element r of t[i]. */
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

/* Loads 16 bytes from each of rows r, r + 4, r + 8 and r + 12. */
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

/* Splits transposed nibbles: q[0] to q[3] get elements 0 to 15, q[4] to q[7] elements 16 to 31. */
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
 * multiplication by 1 + 2^7 + 2^14 + 2^21 moves four adjacent bits to four bytes. */
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

/* Adds the fifth bits by a table of the sixteen patterns; the permute uses four bits of each
 * index. */
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

/* Adds bits 5 and 4 of the codes: of l, 16 + l, 8 + l and 24 + l in byte l of two dwords a row. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_top_rows_avx2(const __m256i two[2], __m256i q[8])
{
    const __m256i top = _mm256_set1_epi8(0x30);
    for (int i = 0; i < 2; i++) {
        const __m256i at[4] = {_mm256_slli_epi16(two[i], 4), two[i], _mm256_slli_epi16(two[i], 2),
                               _mm256_srli_epi16(two[i], 2)};
        for (int j = 0; j < 4; j++)
            q[2 * j + i] = _mm256_or_si256(q[2 * j + i], _mm256_and_si256(at[j], top));
    }
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_top_rows_avx512(const __m512i two[2], __m512i q[8])
{
    const __m512i top = _mm512_set1_epi8(0x30);
    for (int i = 0; i < 2; i++) {
        const __m512i at[4] = {_mm512_slli_epi16(two[i], 4), two[i], _mm512_slli_epi16(two[i], 2),
                               _mm512_srli_epi16(two[i], 2)};
        for (int j = 0; j < 4; j++)
            q[2 * j + i] = _mm512_or_si512(q[2 * j + i], _mm512_and_si512(at[j], top));
    }
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

/* The codes of a block of each of 8 (AVX2) or 16 rows, transposed. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_panel_codes_avx2(struct quant_form32 form,
                                                         const uint8_t *const at[8], __m256i q[8])
{
    __m256i t[4];
    quant_transpose_avx2(at, form.codes, form.bytes ? q : t);
    if (form.bytes) {
        quant_transpose_avx2(at, form.codes + 16, q + 4);
        for (int i = 0; i < 8; i++) q[i] = _mm256_xor_si256(q[i], _mm256_set1_epi8(-128));
        return;
    }
    quant_nibbles_avx2(t, q);
    if (form.fifth) quant_fifth_bits_avx2(quant_row_dwords_avx2(at, form.fifth), q);
    if (form.top)
        quant_top_rows_avx2((const __m256i[2]){quant_row_dwords_avx2(at, form.top),
                                               quant_row_dwords_avx2(at, form.top + 4)},
                            q);
    for (int i = 0; form.codebook && i < 8; i++)
        q[i] = _mm256_shuffle_epi8(quant_codebook_avx2(form), q[i]);
}

CPU_TARGET_AVX512 QUANT_INLINE void
quant_panel_codes_avx512(struct quant_form32 form, const uint8_t *const at[16], __m512i q[8])
{
    __m512i t[4];
    quant_transpose_avx512(at, form.codes, form.bytes ? q : t);
    if (form.bytes) {
        quant_transpose_avx512(at, form.codes + 16, q + 4);
        for (int i = 0; i < 8; i++) q[i] = _mm512_xor_si512(q[i], _mm512_set1_epi8(-128));
        return;
    }
    quant_nibbles_avx512(t, q);
    if (form.fifth)
        quant_fifth_bits_avx512(quant_join_avx512(quant_row_dwords_avx2(at, form.fifth),
                                                  quant_row_dwords_avx2(at + 8, form.fifth)),
                                q);
    if (form.top) {
        __m512i two[2];
        for (int i = 0; i < 2; i++)
            two[i] = quant_join_avx512(quant_row_dwords_avx2(at, form.top + 4 * i),
                                       quant_row_dwords_avx2(at + 8, form.top + 4 * i));
        quant_top_rows_avx512(two, q);
    }
    for (int i = 0; form.codebook && i < 8; i++)
        q[i] = _mm512_shuffle_epi8(_mm512_broadcast_i64x4(quant_codebook_avx2(form)), q[i]);
}

/* Fills `at` with the addresses of block `first` of each row. */
QUANT_INLINE void quant_blocks_at(struct quant_form32 form, const void *const row[QUANT_PANEL_ROWS],
                                  int64_t first, const uint8_t *at[QUANT_PANEL_ROWS])
{
    for (int r = 0; r < QUANT_PANEL_ROWS; r++)
        at[r] = (const uint8_t *)row[r] + (size_t)first * form.block_bytes;
}

CPU_TARGET_AVX2 QUANT_INLINE void quant_unpack32_avx2(struct quant_form32 form, int64_t first,
                                                      int64_t n_blocks,
                                                      const void *const row[QUANT_PANEL_ROWS],
                                                      void *panel)
{
    struct quant_panel32 *p = panel;
    const uint8_t *at[QUANT_PANEL_ROWS];
    quant_blocks_at(form, row, first, at);
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
            __m256i q[8];
            __m256 d, m;
            quant_scales_avx2(form, at + r, &d, &m);
            _mm256_store_ps(p->d + r, d);
            _mm256_store_ps(p->m + r, m);
            quant_panel_codes_avx2(form, at + r, q);
            quant_put_avx2(p, r, q);
        }
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += form.block_bytes;
    }
}

/* As quant_scales_avx2, for 16 rows. */
CPU_TARGET_AVX512 QUANT_INLINE void
quant_scales_avx512(struct quant_form32 form, const uint8_t *const at[16], __m512 *d, __m512 *m)
{
    *m = _mm512_setzero_ps();
    if (form.e8m0) {
        __m256 half[2], none;
        quant_scales_avx2(form, at, &half[0], &none);
        quant_scales_avx2(form, at + 8, &half[1], &none);
        *d = _mm512_insertf32x8(_mm512_castps256_ps512(half[0]), half[1], 1);
        return;
    }
    __m128i low[2], high[2];
    quant_row_halves_avx2(at, &low[0], &high[0]);
    quant_row_halves_avx2(at + 8, &low[1], &high[1]);
    *d = _mm512_cvtph_ps(_mm256_set_m128i(low[1], low[0]));
    if (form.has_min) *m = _mm512_cvtph_ps(_mm256_set_m128i(high[1], high[0]));
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_unpack32_avx512(struct quant_form32 form, int64_t first,
                                                          int64_t n_blocks,
                                                          const void *const row[QUANT_PANEL_ROWS],
                                                          void *panel)
{
    struct quant_panel32 *p = panel;
    const uint8_t *at[QUANT_PANEL_ROWS];
    quant_blocks_at(form, row, first, at);
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        __m512i q[8];
        __m512 d, m;
        quant_scales_avx512(form, at, &d, &m);
        _mm512_store_ps(p->d, d);
        _mm512_store_ps(p->m, m);
        quant_panel_codes_avx512(form, at, q);
        quant_put_avx512(p, q);
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += form.block_bytes;
    }
}
