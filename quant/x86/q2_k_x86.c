/* quant/x86/q2_k_x86.c: the kernels of Q2_K (quant/super/q2_k.h) for x86-64. */
#include "quant/super/q2_k.h"
#include "quant/x86/super_gemv.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(q2_k)

/* Stores d and minima of rows r .. r + 7; byte j of a lane of four[i] is scale 4i + j. */
SUPER_AVX2 void q2_k_scales_unpack(const void *const row[8], int64_t at, int r,
                                   struct quant_panel256 *out, __m256i four[4])
{
    __m256i v[4];
    super_rows_load(row, at + (int)sizeof(struct q2_k_block) - 16, v);
    __m256 dmin = super_halves(_mm256_srli_epi32(v[3], 16));
    _mm256_storeu_ps(out->d + r, super_halves(v[3]));
    _mm256_storeu_ps(out->m + r, _mm256_xor_ps(dmin, _mm256_set1_ps(-0.0f)));
    super_rows_load(row, at, v);
    for (int i = 0; i < 4; i++) {
        four[i] = super_bits(v[i], 0, 15);
        super_pairs_store(super_bits(v[i], 4, 15), r, out->min + 2 * i);
    }
}

/* A scale-folded code is at most 3 * 15, so one 16-bit multiplication applies a factor to two
 * bytes. */
CPU_TARGET_AVX2 static void q2_k_unpack_avx2(int64_t first, int64_t n_blocks,
                                             const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q2_k_block);
        for (int r = 0; r < 16; r += 8) {
            __m256i v[4], fold[16];
            q2_k_scales_unpack(row + r, at, r, out, v);
            for (int i = 0; i < 4; i++) super_scale_factors(v[i], fold + 4 * i);
            for (int i = 0; i < 16; i += 4) { /* words i .. i + 3 of the 16 words of codes */
                super_rows_load(row + r, at + (int)offsetof(struct q2_k_block, q) + 4 * i, v);
                for (int g = 0; g < 4; g++) {
                    uint8_t(*to)[16][4] = out->q + 32 * (i / 8) + 8 * g + i % 8;
                    for (int j = 0; j < 4; j++) {
                        __m256i code = _mm256_mullo_epi16(super_bits(v[j], 2 * g, 3),
                                                          fold[i / 8 * 8 + 2 * g + i / 4 % 2]);
                        _mm256_storeu_si256((__m256i *)to[j][r], code);
                    }
                }
            }
        }
    }
}

CPU_TARGET_AVX512 static void q2_k_unpack_avx512(int64_t first, int64_t n_blocks,
                                                 const void *const row[QUANT_PANEL_ROWS],
                                                 void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q2_k_block);
        __m256i half[2][4];
        __m512i fold[16];
        for (int h = 0; h < 2; h++) q2_k_scales_unpack(row + 8 * h, at, 8 * h, out, half[h]);
        for (int i = 0; i < 4; i++)
            super_scale_factors_avx512((__m256i[]){half[0][i], half[1][i]}, fold + 4 * i);
        for (int i = 0; i < 16; i += 4) { /* words i .. i + 3 of the 16 words of codes */
            __m512i v[4];
            super_rows_load_avx512(row, at + (int)offsetof(struct q2_k_block, q) + 4 * i, v);
            for (int g = 0; g < 4; g++) {
                uint8_t(*to)[16][4] = out->q + 32 * (i / 8) + 8 * g + i % 8;
                for (int j = 0; j < 4; j++)
                    _mm512_storeu_si512(to[j],
                                        _mm512_mullo_epi16(super_bits_avx512(v[j], 2 * g, 3),
                                                           fold[i / 8 * 8 + 2 * g + i / 4 % 2]));
            }
        }
    }
}

static const struct quant_panel_form q2_k_folded = {
    .sub_len = 16, .offset = 0, .max_code = 45, .has_min = true, .folded = true};

/* Fills eight rows with sums of 16 activations: sums 4i and 4i + 2, 4i + 1 and 4i + 3 of
 * super-block j are in lane j, in the order of the minima in q2_k_heads. */
SUPER_AVX2 void q2_k_sums(const int16_t *const sum[SUPER_GROUP], struct super_sums *sums)
{
    for (int j = 0; j < SUPER_GROUP; j++) {
        for (int s = 0; s < 16; s++) {
            int16_t *to = sums->sum[s / 4 * 2 + s % 2];
            to[2 * j + s / 2 % 2] = sum[j][s];
        }
    }
}

SUPER_AVX2 void q2_k_heads(const void *const block[SUPER_GROUP], const struct super_sums *sums,
                           struct super_group *group)
{
    __m256i v[4];
    super_rows_load(block, 0, v);
    group->msum = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        __m256i even = _mm256_and_si256(_mm256_srli_epi16(v[i], 4), _mm256_set1_epi16(15));
        group->msum = super_mad_sums(group->msum, even, sums, 2 * i);
        group->msum = super_mad_sums(group->msum, _mm256_srli_epi16(v[i], 12), sums, 2 * i + 1);
    }
}

/* Codes at bits 0 to 5 are multiplied without a shift to bit 0, and the sums are shifted instead,
 * because 2 * 127 * 0x30 <= INT16_MAX. Codes at bits 6 and 7 are shifted by 2 first. */
SUPER_AVX2 __m256i q2_k_isum(const struct super_input *in)
{
    const struct q2_k_block *w = in->block;
    __m256i scale =
        _mm256_cvtepu8_epi16(_mm_and_si128(super_scales_even_odd(w->scale), _mm_set1_epi8(15)));
    __m256i acc[3] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int h = 0; h < 2; h++) {
        __m256i codes = super_load_once(w->q + 32 * h);
        for (int g = 0; g < 4; g++) {
            int place = g < 3 ? g : 2; /* the codes are at bits 2 * place and 2 * place + 1 */
            __m256i code = super_bits(codes, 2 * (g - place), 3 << 2 * place);
            __m256i x = _mm256_loadu_si256((const __m256i *)(in->q + 128 * h + 32 * g));
            acc[place] = super_mad(acc[place], _mm256_maddubs_epi16(code, x),
                                   super_scale_pair(scale, 4 * h + g));
        }
    }
    memcpy(in->group->d + in->j, &w->d, 4); /* and dmin */
    acc[1] = _mm256_srai_epi32(acc[1], 2);
    acc[2] = _mm256_srai_epi32(acc[2], 4);
    return _mm256_add_epi32(_mm256_add_epi32(acc[0], acc[1]), acc[2]);
}

SUPER_AVX512 __m512i q2_k_codes(const uint8_t *block, int i)
{
    const struct q2_k_block *w = (const void *)block;
    return super_bits_avx512(_mm512_loadu_si512(w->q), 2 * i, 3);
}

SUPER_AVX512 void q2_k_prepare(const int8_t *const q[SUPER_STEP],
                               const int16_t *const sum[SUPER_STEP], struct super_column *c)
{
    super_column_halves(q, c);
    super_pair_sums(sum, 1, c);
}

SUPER_AVX512 void q2_k_products(int n, const uint8_t *const block[SUPER_STEP],
                                const struct super_column *c, struct super_step *step)
{
    __m512i scale[2], min[2], place[4];
    super_places_halves(place);
    EACH (p, 2) {
        __m512i both = _mm512_cvtepu8_epi16(super_pair_scales(block[2 * p], block[2 * p + 1]));
        scale[p] = _mm512_and_si512(both, _mm512_set1_epi16(15));
        min[p] = _mm512_srli_epi16(both, 4);
    }
    const __m128i d = super_split_words(super_words(block, offsetof(struct q2_k_block, d)));
    EACH (j, n) {
        __m512i msum[2];
        EACH (p, 2) msum[p] = _mm512_madd_epi16(min[p], c[j].sum[p]);
        step[j].msum = super_add_pairs(msum);
        step[j].d = d;
        step[j].isum[0] = step[j].isum[1] = _mm512_setzero_si512();
    }
    super_products(n, q2_k_codes, block, c, scale, place, step);
}

SUPER_GEMV(q2_k, q2_k_sums, q2_k_heads, q2_k_isum, q2_k_prepare, q2_k_products)
SUPER_GEMV_PAIR(q2_k, q2_k_prepare, q2_k_products)

const struct quant_kernel quant_x86_q2_k[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {.decode = q2_k_decode_avx2,
                  .unpack = q2_k_unpack_avx2,
                  .panel = &q2_k_folded,
                  .gemv = q2_k_gemv_avx2},
    [CPU_AVX512] = {.unpack = q2_k_unpack_avx512, .panel = &q2_k_folded, SUPER_GEMV_MEMBERS(q2_k)},
};
