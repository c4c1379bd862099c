/* quant/x86/q6_k_x86.c: the kernels of Q6_K (quant/super/q6_k.h) for x86-64. */
#include "quant/super/q6_k.h"
#include "quant/x86/super_gemv.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(q6_k)

/* Stores scales and d of rows r .. r + 7. */
SUPER_AVX2 void q6_k_scales_unpack(const void *const row[8], int64_t at, int r,
                                   struct quant_panel256 *out)
{
    __m256i v[4];
    super_rows_load(row, at + (int)offsetof(struct q6_k_block, scale), v);
    for (int s = 0; s < 16; s += 4) super_signed_pairs_store(v[s / 4], r, out->scale + s / 2);
    /* d is in the upper half of the last 4 bytes. */
    super_rows_load(row, at + (int)sizeof(struct q6_k_block) - 16, v);
    _mm256_storeu_ps(out->d + r, super_halves(_mm256_srli_epi32(v[3], 16)));
    _mm256_storeu_ps(out->m + r, _mm256_setzero_ps());
}

CPU_TARGET_AVX2 static void q6_k_unpack_avx2(int64_t first, int64_t n_blocks,
                                             const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q6_k_block);
        for (int r = 0; r < 16; r += 8) {
            q6_k_scales_unpack(row + r, at, r, out);
            for (int i = 0; i < 16; i += 4) { /* words i .. i + 3 of the 16 words of high bits */
                __m256i high[4], low[2][4];
                int half = i / 8, word = i % 8;
                super_rows_load(row + r, at + (int)offsetof(struct q6_k_block, high) + 4 * i, high);
                super_rows_load(row + r, at + 64 * half + 4 * word, low[0]);
                super_rows_load(row + r, at + 64 * half + 32 + 4 * word, low[1]);
                for (int g = 0; g < 4; g++) {
                    for (int j = 0; j < 4; j++) {
                        __m256i code = _mm256_or_si256(super_bits(low[g % 2][j], g / 2 * 4, 15),
                                                       super_bits(high[j], 2 * g - 4, 0x30));
                        _mm256_storeu_si256((__m256i *)out->q[32 * half + 8 * g + word + j][r],
                                            code);
                    }
                }
            }
        }
    }
}

CPU_TARGET_AVX512 static void q6_k_unpack_avx512(int64_t first, int64_t n_blocks,
                                                 const void *const row[QUANT_PANEL_ROWS],
                                                 void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q6_k_block);
        for (int r = 0; r < 16; r += 8) q6_k_scales_unpack(row + r, at, r, out);
        for (int i = 0; i < 16; i += 4) { /* words i .. i + 3 of the 16 words of high bits */
            __m512i high[4], low[2][4];
            int half = i / 8, word = i % 8;
            super_rows_load_avx512(row, at + (int)offsetof(struct q6_k_block, high) + 4 * i, high);
            super_rows_load_avx512(row, at + 64 * half + 4 * word, low[0]);
            super_rows_load_avx512(row, at + 64 * half + 32 + 4 * word, low[1]);
            for (int g = 0; g < 4; g++) {
                for (int j = 0; j < 4; j++) {
                    __m512i code = super_bits_avx512(low[g % 2][j], g / 2 * 4, 15);
                    code = super_put_bits(super_move_avx512(high[j], 2 * g - 4), 0x30, code);
                    _mm512_storeu_si512(out->q[32 * half + 8 * g + word + j], code);
                }
            }
        }
    }
}

/* Multiplies the sums by minus half the offset: by the whole offset they would not fit 16 bits. */
SUPER_AVX2 void q6_k_sums(const int16_t *const sum[SUPER_GROUP], struct super_sums *sums)
{
    super_sums_even_odd(sum, -16, sums);
}

SUPER_AVX2 __m256i q6_k_isum(const struct super_input *in)
{
    const struct q6_k_block *w = in->block;
    __m256i scale = _mm256_cvtepi8_epi16(super_scales_even_odd(w->scale));
    __m256i half = super_mad_sums(_mm256_setzero_si256(), scale, in->sums, in->j);
    __m256i acc[2] = {half, half};
    for (int h = 0; h < 2; h++) {
        __m256i high = super_load_once(w->high + 32 * h);
        __m256i two[2] = {super_load_once(w->low + 64 * h), super_load_once(w->low + 64 * h + 32)};
        for (int g = 0; g < 4; g++) {
            __m256i low = two[g % 2];
            __m256i code =
                _mm256_or_si256(super_bits(low, g / 2 * 4, 15), super_bits(high, 2 * g - 4, 0x30));
            __m256i x = _mm256_loadu_si256((const __m256i *)(in->q + 128 * h + 32 * g));
            acc[g % 2] = super_mad(acc[g % 2], _mm256_maddubs_epi16(code, x),
                                   super_scale_pair(scale, 4 * h + g));
        }
    }
    in->group->d[in->j] = w->d;
    return _mm256_add_epi32(acc[0], acc[1]);
}

SUPER_AVX512 __m512i q6_k_codes(const uint8_t *block, int i)
{
    const struct q6_k_block *w = (const void *)block;
    int h = i / 2, g = i % 2 * 2; /* bit pair g in the lower half, g + 1 in the upper */
    __m512i low = super_bits_avx512(_mm512_loadu_si512(w->low + 64 * h), 2 * g, 15);
    __m512i high = super_broadcast_32(w->high + 32 * h);
    high = _mm512_rorv_epi32(high, super_set_halves((28 + 2 * g) % 32, 30 + 2 * g - g / 2 * 32));
    return super_put_bits(high, 0x30, low);
}

SUPER_AVX512 void q6_k_prepare(const int8_t *const q[SUPER_STEP],
                               const int16_t *const sum[SUPER_STEP], struct super_column *c)
{
    for (int j = 0; j < SUPER_STEP; j++)
        for (int i = 0; i < 4; i++) c->x[j][i] = _mm512_load_si512(q[j] + 64 * i);
    super_pair_sums(sum, -16, c); /* minus half the offset, as above */
}

SUPER_AVX512 void q6_k_products(int n, const uint8_t *const block[SUPER_STEP],
                                const struct super_column *c, struct super_step *step)
{
    const size_t at = offsetof(struct q6_k_block, scale);
    __m512i scale[2], place[4];
    EACH (i, 4) place[i] = super_pair_places(4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
    EACH (p, 2) {
        scale[p] =
            _mm512_cvtepi8_epi16(super_pair_scales(block[2 * p] + at, block[2 * p + 1] + at));
        EACH (j, n) {
            __m512i half = _mm512_madd_epi16(scale[p], c[j].sum[p]);
            step[j].isum[p] = _mm512_add_epi32(half, half);
        }
    }
    /* d is in the upper half of the last 4 bytes. */
    __m128i last = super_words(block, sizeof(struct q6_k_block) - 4);
    EACH (j, n) step[j].d = _mm_unpackhi_epi64(super_split_words(last), last);
    super_products(n, q6_k_codes, block, c, scale, place, step);
}

SUPER_GEMV(q6_k, q6_k_sums, NULL, q6_k_isum, q6_k_prepare, q6_k_products)
SUPER_GEMV_PAIR(q6_k, q6_k_prepare, q6_k_products)

const struct quant_kernel quant_x86_q6_k[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_MEMBERS_AVX2(q6_k)},
    [CPU_AVX512] = {SUPER_MEMBERS_AVX512(q6_k)},
};
