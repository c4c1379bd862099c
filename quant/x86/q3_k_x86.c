/* quant/x86/q3_k_x86.c: the kernels of Q3_K (quant/super/q3_k.h) for x86-64. */
#include "quant/super/q3_k.h"
#include "quant/x86/super_gemv.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(q3_k)

/* Returns d of eight rows; byte j of a lane of four[i] is scale 4i + j minus 32. */
SUPER_AVX2 __m256 q3_k_scales_load(const void *const row[8], int64_t at, __m256i four[4])
{
    __m256i v[4], word[3];
    /* The last 16 bytes: 2 of codes, 12 of scales, d. */
    super_rows_load(row, at + (int)sizeof(struct q3_k_block) - 16, v);
    for (int i = 0; i < 3; i++)
        word[i] = _mm256_or_si256(_mm256_srli_epi32(v[i], 16), _mm256_slli_epi32(v[i + 1], 16));
    for (int i = 0; i < 4; i++) {
        __m256i six = _mm256_or_si256(super_bits(word[i % 2], i / 2 * 4, 15),
                                      super_bits(word[2], 2 * i - 4, 0x30));
        four[i] = _mm256_sub_epi8(six, _mm256_set1_epi8(32));
    }
    return super_halves(_mm256_srli_epi32(v[3], 16));
}

CPU_TARGET_AVX2 static void q3_k_unpack_avx2(int64_t first, int64_t n_blocks,
                                             const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q3_k_block);
        for (int r = 0; r < 16; r += 8) {
            __m256i four[4];
            _mm256_storeu_ps(out->d + r, q3_k_scales_load(row + r, at, four));
            _mm256_storeu_ps(out->m + r, _mm256_setzero_ps());
            for (int s = 0; s < 16; s += 4)
                super_signed_pairs_store(four[s / 4], r, out->scale + s / 2);
            for (int i = 0; i < 8; i += 4) { /* words i .. i + 3 of each 8 words of codes */
                __m256i v[2][4], high[4];
                int words = (int)offsetof(struct q3_k_block, q) + 4 * i;
                super_rows_load(row + r, at + 4 * i, high);
                super_rows_load(row + r, at + words, v[0]);
                super_rows_load(row + r, at + words + 32, v[1]);
                for (int s = 0; s < 8; s++) {
                    for (int j = 0; j < 4; j++) {
                        __m256i code = _mm256_or_si256(super_bits(v[s / 4][j], s % 4 * 2, 3),
                                                       super_bits(high[j], s - 2, 4));
                        _mm256_storeu_si256((__m256i *)out->q[8 * s + i + j][r], code);
                    }
                }
            }
        }
    }
}

/* A folded code is (scale - 32) * (code - 4) + 127, from 3 (31 * -4) to 255 (-32 * -4). One 16-bit
 * multiplication by scale - 32 multiplies two bytes: a negative product of the lower one borrows
 * from the upper one, and adding 127 - 4 * (scale - 32) to both as one 16-bit number cancels the
 * borrow.
 */
enum { Q3_K_FOLDED_OFFSET = 127 };

/* The addend, in both bytes, for scales in 16 bits. */
SUPER_AVX512 __m512i q3_k_add(__m512i scale)
{
    __m512i add =
        _mm512_sub_epi16(_mm512_set1_epi16(Q3_K_FOLDED_OFFSET), _mm512_slli_epi16(scale, 2));
    return _mm512_add_epi16(add, _mm512_slli_epi16(add, 8));
}

CPU_TARGET_AVX512 static void q3_k_unpack_avx512(int64_t first, int64_t n_blocks,
                                                 const void *const row[QUANT_PANEL_ROWS],
                                                 void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q3_k_block);
        __m256i half[2][4];
        __m512i scale[16];
        for (int h = 0; h < 2; h++)
            _mm256_storeu_ps(out->d + 8 * h, q3_k_scales_load(row + 8 * h, at, half[h]));
        _mm512_storeu_ps(out->m, _mm512_setzero_ps());
        for (int i = 0; i < 4; i++)
            super_scale_factors_avx512((__m256i[]){half[0][i], half[1][i]}, scale + 4 * i);
        for (int i = 0; i < 8; i += 4) { /* words i .. i + 3 of each 8 words of codes */
            __m512i v[2][4], high[4];
            int words = (int)offsetof(struct q3_k_block, q) + 4 * i;
            super_rows_load_avx512(row, at + 4 * i, high);
            super_rows_load_avx512(row, at + words, v[0]);
            super_rows_load_avx512(row, at + words + 32, v[1]);
            for (int s = 0; s < 8; s++) {
                const __m512i one = scale[2 * s + i / 4], add = q3_k_add(one);
                for (int j = 0; j < 4; j++) {
                    __m512i code = super_bits_avx512(v[s / 4][j], s % 4 * 2, 3);
                    code = super_put_bits(super_move_avx512(high[j], s - 2), 4, code);
                    code = _mm512_add_epi16(_mm512_mullo_epi16(code, one), add);
                    _mm512_storeu_si512(out->q[8 * s + i + j], code);
                }
            }
        }
    }
}

static const struct quant_panel_form q3_k_folded = {
    .sub_len = 16, .offset = Q3_K_FOLDED_OFFSET, .max_code = 255, .has_min = false, .folded = true};

/* The 16 scales minus 32 as 16-bit numbers: even sub-blocks, then odd ones. */
SUPER_AVX2 __m256i q3_k_scales_avx2(const struct q3_k_block *w)
{
    /* The last 16 bytes: 2 of codes, 12 of scales, d. */
    const uint8_t *tail = (const uint8_t *)(w + 1) - 16;
    __m128i all = _mm_loadu_si128((const __m128i *)tail);
    __m128i low =
        _mm_shuffle_epi8(all, _mm_setr_epi8(2, 4, 6, 8, 2, 4, 6, 8, 3, 5, 7, 9, 3, 5, 7, 9));
    __m128i high = _mm_shuffle_epi8(
        all, _mm_setr_epi8(10, 12, 10, 12, 10, 12, 10, 12, 11, 13, 11, 13, 11, 13, 11, 13));
    low = _mm_and_si128(_mm_srlv_epi32(low, _mm_setr_epi32(0, 4, 0, 4)), _mm_set1_epi8(15));
    /* Moves the bit pairs at bits 0, 2, 4 and 6 to bit 4, in two bytes at once. */
    high = _mm_mullo_epi16(high, _mm_setr_epi16(64, 16, 4, 1, 64, 16, 4, 1));
    high = _mm_and_si128(_mm_srli_epi16(high, 2), _mm_set1_epi8(0x30));
    return _mm256_cvtepi8_epi16(_mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32)));
}

SUPER_AVX2 void q3_k_sums(const int16_t *const sum[SUPER_GROUP], struct super_sums *sums)
{
    super_sums_even_odd(sum, -4, sums);
}

/* Unpacks two codes per byte, at bits 2..0 and 6..4. The upper ones are multiplied without a shift,
 * because 2 * 127 * 0x70 <= INT16_MAX, and their sums are divided by 16. */
SUPER_AVX2 __m256i q3_k_isum(const struct super_input *in)
{
    const struct q3_k_block *w = in->block;
    /* Tables for four bits: the first and third, and the second and fourth, at bits 2 and 6. */
    const __m256i even = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 0, 4, 0x40, 0x44, 0x40, 0x44, 0, 4, 0, 4, 0x40, 0x44, 0x40, 0x44));
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, 4, 4, 0, 0, 4, 4, 0x40, 0x40, 0x44, 0x44, 0x40, 0x40, 0x44, 0x44));
    __m256i scale = q3_k_scales_avx2(w);
    __m256i high = super_load_once(w->high);
    __m256i acc[2] = {super_mad_sums(_mm256_setzero_si256(), scale, in->sums, in->j),
                      _mm256_setzero_si256()};
    for (int h = 0; h < 2; h++) {
        __m256i low = super_load_once(w->q + 32 * h);
        __m256i four = super_bits(high, 4 * h, 15);
        __m256i two[2] = {
            _mm256_or_si256(super_bits(low, 0, 0x33), _mm256_shuffle_epi8(even, four)),
            _mm256_or_si256(super_bits(low, 2, 0x33), _mm256_shuffle_epi8(odd, four))};
        for (int g = 0; g < 4; g++) {
            __m256i code = super_bits(two[g % 2], 0, g < 2 ? 7 : 0x70);
            __m256i x = _mm256_loadu_si256((const __m256i *)(in->q + 128 * h + 32 * g));
            acc[g / 2] = super_mad(acc[g / 2], _mm256_maddubs_epi16(code, x),
                                   super_scale_pair(scale, 4 * h + g));
        }
    }
    in->group->d[in->j] = w->d;
    return _mm256_add_epi32(acc[0], _mm256_srai_epi32(acc[1], 4));
}

SUPER_AVX512 __m512i q3_k_codes(const uint8_t *block, int i)
{
    const struct q3_k_block *w = (const void *)block;
    __m512i low = super_bits_avx512(_mm512_loadu_si512(w->q), 2 * i, 3);
    /* Rotates bit i of the lower half and bit 4 + i of the upper half to bit 2. */
    __m512i high =
        _mm512_rorv_epi32(super_broadcast_32(w->high), super_set_halves((i + 30) % 32, i + 2));
    return super_put_bits(high, 4, low);
}

SUPER_AVX512 void q3_k_prepare(const int8_t *const q[SUPER_STEP],
                               const int16_t *const sum[SUPER_STEP], struct super_column *c)
{
    super_column_halves(q, c);
    super_pair_sums(sum, -4, c);
}

/* Returns the last 32 bits of four super-blocks; scale[p] has the scales of super-blocks 2p and 2p
 * + 1. */
SUPER_AVX512 __m128i q3_k_scales_four(const uint8_t *const block[SUPER_STEP], __m512i scale[2])
{
    /* The last 16 bytes: 2 of codes, 12 of scales, d. */
    __m512i tail = super_heads_avx512(block, sizeof(struct q3_k_block) - 16);
    const __m128i low_at = _mm_setr_epi8(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9);
    const __m128i high_at =
        _mm_setr_epi8(10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13);
    __m512i low = _mm512_shuffle_epi8(tail, _mm512_broadcast_i32x4(low_at));
    __m512i high = _mm512_shuffle_epi8(tail, _mm512_broadcast_i32x4(high_at));
    low = _mm512_srlv_epi64(low, _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 4, 0)));
    high = _mm512_rolv_epi32(high, _mm512_broadcast_i32x4(_mm_setr_epi32(4, 2, 0, 30)));
    low = super_bits_avx512(low, 0, 15);
    __m512i all = _mm512_sub_epi8(super_put_bits(high, 0x30, low), _mm512_set1_epi8(32));
    scale[0] = _mm512_cvtepi8_epi16(super_pair_order(_mm512_castsi512_si256(all)));
    scale[1] = _mm512_cvtepi8_epi16(super_pair_order(_mm512_extracti64x4_epi64(all, 1)));
    const __m512i last = _mm512_castsi128_si512(_mm_setr_epi32(3, 7, 11, 15));
    return _mm512_castsi512_si128(_mm512_permutexvar_epi32(last, tail));
}

SUPER_AVX512 void q3_k_products(int n, const uint8_t *const block[SUPER_STEP],
                                const struct super_column *c, struct super_step *step)
{
    __m512i scale[2], place[4];
    super_places_halves(place);
    __m128i last = q3_k_scales_four(block, scale); /* d is in the upper half */
    EACH (j, n) {
        step[j].d = _mm_unpackhi_epi64(super_split_words(last), last);
        EACH (p, 2) step[j].isum[p] = _mm512_madd_epi16(scale[p], c[j].sum[p]);
    }
    super_products(n, q3_k_codes, block, c, scale, place, step);
}

SUPER_GEMV(q3_k, q3_k_sums, NULL, q3_k_isum, q3_k_prepare, q3_k_products)
SUPER_GEMV_PAIR(q3_k, q3_k_prepare, q3_k_products)

const struct quant_kernel quant_x86_q3_k[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {.decode = q3_k_decode_avx2,
                  .unpack = q3_k_unpack_avx2,
                  .panel = &q3_k_layout.panel,
                  .gemv = q3_k_gemv_avx2},
    [CPU_AVX512] = {.unpack = q3_k_unpack_avx512, .panel = &q3_k_folded, SUPER_GEMV_MEMBERS(q3_k)},
};
