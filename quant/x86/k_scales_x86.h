/* quant/x86/k_scales_x86.h: private to quant/: the scales and minima of Q4_K and Q5_K
 * (quant/super/k_scales.h) for x86-64. The kernels extract four of them at once from each of the
 * three 32-bit words, for several blocks. */
#pragma once

#include "quant/x86/super_x86.h"

/* Splits the first 16 bytes of eight blocks (super_rows_load). A byte per sub-block, the four bytes
 * of a lane are those of one block: [0] has sub-blocks 0..3, [1] has 4..7. */
SUPER_AVX2 void k_scales_split(const __m256i head[4], __m256i scale[2], __m256i min[2])
{
    const __m256i low6 = _mm256_set1_epi8(0x3f), top2 = _mm256_set1_epi8(0x30);
    scale[0] = _mm256_and_si256(head[1], low6);
    min[0] = _mm256_and_si256(head[2], low6);
    scale[1] = _mm256_or_si256(super_bits(head[3], 0, 15),
                               _mm256_and_si256(_mm256_srli_epi32(head[1], 2), top2));
    min[1] = _mm256_or_si256(super_bits(head[3], 4, 15),
                             _mm256_and_si256(_mm256_srli_epi32(head[2], 2), top2));
}

/* Stores d, dmin, scales and minima of rows r .. r + 7 into a panel; head: the blocks' first 16
 * bytes. */
SUPER_AVX2 void k_scales_unpack_avx2(const __m256i head[4], int r, struct quant_panel256 *out)
{
    _mm256_storeu_ps(out->d + r, super_halves(head[0]));
    __m256 dmin = super_halves(_mm256_srli_epi32(head[0], 16));
    _mm256_storeu_ps(out->m + r, _mm256_xor_ps(dmin, _mm256_set1_ps(-0.0f)));

    __m256i scale[2], min[2];
    k_scales_split(head, scale, min);
    for (int i = 0; i < 2; i++) {
        super_pairs_store(scale[i], r, out->scale + 2 * i);
        super_pairs_store(min[i], r, out->min + 2 * i);
    }
}

/* Stores d, dmin, scales and minima of 16 rows, whose super-blocks begin `at` bytes after the
 * pointers. */
SUPER_AVX2 void k_scales_unpack_rows(const void *const row[QUANT_PANEL_ROWS], int64_t at,
                                     struct quant_panel256 *out)
{
    for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
        __m256i head[4];
        super_rows_load(row + r, at, head);
        k_scales_unpack_avx2(head, r, out);
    }
}

/* Fills d, msum and scale of a group (a super_heads). */
SUPER_AVX2 void k_scales_heads(const void *const block[SUPER_GROUP], const struct super_sums *sums,
                               struct super_group *group)
{
    __m256i head[4], scale[2], min[2];
    super_rows_load(block, 0, head);
    _mm256_storeu_si256((__m256i *)group->d, head[0]);
    k_scales_split(head, scale, min);
    group->msum = _mm256_setzero_si256();
    for (int i = 0; i < 2; i++) {
        __m256i even = _mm256_and_si256(min[i], _mm256_set1_epi16(0xff));
        group->msum = super_mad_sums(group->msum, even, sums, 2 * i);
        group->msum = super_mad_sums(group->msum, _mm256_srli_epi16(min[i], 8), sums, 2 * i + 1);
    }
    for (int i = 0; i < 2; i++) _mm256_storeu_si256((__m256i *)group->scale[i], scale[i]);
}

/* Broadcasts scales 4i .. 4i + 3 of super-block j to all lanes. */
SUPER_AVX2 __m256i k_scales_part(const struct super_group *group, int i, int j)
{
    return _mm256_set1_epi32(group->scale[i][j]);
}

/* Broadcasts scale s of those four to all sixteen 16-bit lanes. */
SUPER_AVX2 __m256i k_scales_one(__m256i four, int s)
{
    return _mm256_shuffle_epi8(four, _mm256_set1_epi16((int16_t)(0x8000 | s)));
}

/* Fills four rows with sums of 32 activations: sums 0 and 2, 1 and 3, 4 and 6, 5 and 7 of
 * super-block j are in lane j, in the order of the minima in k_scales_heads. */
SUPER_AVX2 void k_scales_sums(const int16_t *const sum[SUPER_GROUP], struct super_sums *sums)
{
    for (int j = 0; j < SUPER_GROUP; j++) {
        for (int s = 0; s < 8; s++) {
            int16_t *to = sums->sum[s / 4 * 2 + s % 2];
            to[2 * j + s / 2 % 2] = (int16_t)(sum[j][2 * s] + sum[j][2 * s + 1]);
        }
    }
}

/* For four super-blocks: fills d and msum of n steps, and the scales for super_products, those of
 * the second super-block of a pair eight words after those of the first. */
SUPER_AVX512 void k_scales_four(int n, const uint8_t *const block[SUPER_STEP],
                                const struct super_column *c, struct super_step *step,
                                __m512i scale[2])
{
    enum { Z = -128 }; /* makes a zero byte */
    __m512i head = super_heads_avx512(block, 0);
    const __m512i halves = _mm512_castsi128_si512(_mm_setr_epi16(0, 8, 16, 24, 1, 9, 17, 25));
    const __m128i d = _mm512_castsi512_si128(_mm512_permutexvar_epi16(halves, head));

    /* Bytes S0..S3, S4..S7, M0..M3, M4..M7: the six bits of a number are in one byte, or four and
     * two of them in two bytes. */
    const __m128i low_at = _mm_setr_epi8(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i high_at = _mm_setr_epi8(Z, Z, Z, Z, 4, 5, 6, 7, Z, Z, Z, Z, 8, 9, 10, 11);
    const __m128i shift = _mm_setr_epi32(0, 0, 0, 4);
    const __m128i mask = _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    __m512i low = _mm512_shuffle_epi8(head, _mm512_broadcast_i32x4(low_at));
    __m512i high = _mm512_shuffle_epi8(head, _mm512_broadcast_i32x4(high_at));
    low = _mm512_srlv_epi32(low, _mm512_broadcast_i32x4(shift));
    high = super_bits_avx512(high, 2, 0x30);
    __m512i all = _mm512_ternarylogic_epi32(low, _mm512_broadcast_i32x4(mask), high, 0xea);

    scale[0] = _mm512_unpacklo_epi8(all, _mm512_setzero_si512());
    scale[1] = _mm512_castsi256_si512(_mm512_extracti64x4_epi64(scale[0], 1));
    __m512i mins = _mm512_unpackhi_epi8(all, _mm512_setzero_si512());
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    mins = _mm512_permutexvar_epi32(order, mins);
    EACH (j, n) {
        step[j].d = d;
        step[j].msum = _mm512_madd_epi16(mins, c[j].sum[0]);
        step[j].isum[0] = step[j].isum[1] = _mm512_setzero_si512();
    }
}

/* x[j][i] has the activations of two sub-blocks: 0 2, 1 3, 4 6, 5 7. Each 128 bits of sum[0] have
 * two sums of 32 activations of every super-block. */
SUPER_AVX512 void k_scales_prepare(const int8_t *const q[SUPER_STEP],
                                   const int16_t *const sum[SUPER_STEP], struct super_column *c)
{
    __m256i wide[SUPER_STEP], two[2];
    for (int j = 0; j < SUPER_STEP; j++) {
        for (int i = 0; i < 4; i++) {
            int s = i / 2 * 4 + i % 2;
            c->x[j][i] = super_join_32(q[j] + 32 * s, q[j] + 32 * (s + 2));
        }
        wide[j] =
            _mm256_madd_epi16(_mm256_set1_epi16(1), _mm256_load_si256((const __m256i *)sum[j]));
    }
    for (int p = 0; p < 2; p++) two[p] = _mm256_packs_epi32(wide[2 * p], wide[2 * p + 1]);
    const __m512i order = _mm512_setr_epi32(0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15);
    c->sum[0] = _mm512_permutexvar_epi32(
        order, _mm512_inserti64x4(_mm512_castsi256_si512(two[0]), two[1], 1));
}

SUPER_AVX512 void k_scales_places(__m512i place[4])
{
    EACH (i, 4) {
        int s = i / 2 * 4 + i % 2;
        place[i] = super_places(s, s, s + 2, s + 2, 8);
    }
}

/* The super_step_products function of Q4_K and Q5_K. */
SUPER_AVX512 void k_scales_products(int n, super_codes *codes,
                                    const uint8_t *const block[SUPER_STEP],
                                    const struct super_column *c, struct super_step *step)
{
    __m512i scale[2], place[4];
    k_scales_places(place);
    k_scales_four(n, block, c, step, scale);
    super_products(n, codes, block, c, scale, place, step);
}
