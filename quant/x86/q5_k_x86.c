/* quant/x86/q5_k_x86.c: the kernels of Q5_K (quant/super/q5_k.h) for x86-64. */
#include "quant/super/q5_k.h"
#include "quant/x86/k_scales_x86.h"
#include "quant/x86/super_gemv.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(q5_k)

CPU_TARGET_AVX2 static void q5_k_unpack_avx2(int64_t first, int64_t n_blocks,
                                             const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q5_k_block);
        for (int r = 0; r < 16; r += 8) {
            __m256i v[4];
            super_rows_load(row + r, at, v);
            k_scales_unpack_avx2(v, r, out);
            for (int i = 0; i < 8; i += 4) { /* words i .. i + 3 of each sub-block */
                __m256i high[4];
                super_rows_load(row + r, at + (int)offsetof(struct q5_k_block, high) + 4 * i, high);
                for (int s = 0; s < 8; s++) {
                    int words = (int)offsetof(struct q5_k_block, q) + s / 2 * 32 + 4 * i;
                    if (s % 2 == 0) super_rows_load(row + r, at + words, v);
                    for (int j = 0; j < 4; j++) {
                        __m256i code = _mm256_or_si256(super_bits(v[j], s % 2 * 4, 15),
                                                       super_bits(high[j], s - 4, 16));
                        _mm256_storeu_si256((__m256i *)out->q[8 * s + i + j][r], code);
                    }
                }
            }
        }
    }
}

CPU_TARGET_AVX512 static void q5_k_unpack_avx512(int64_t first, int64_t n_blocks,
                                                 const void *const row[QUANT_PANEL_ROWS],
                                                 void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q5_k_block);
        k_scales_unpack_rows(row, at, out);
        for (int i = 0; i < 8; i += 4) { /* words i .. i + 3 of each sub-block */
            __m512i v[4], high[4];
            int words = (int)offsetof(struct q5_k_block, high) + 4 * i;
            super_rows_load_avx512(row, at + words, high);
            for (int s = 0; s < 8; s += 2) {
                words = (int)offsetof(struct q5_k_block, q) + s / 2 * 32 + 4 * i;
                super_rows_load_avx512(row, at + words, v);
                for (int j = 0; j < 4; j++) {
                    uint8_t(*to)[16][4] = out->q + 8 * s + i + j;
                    __m512i even = super_bits_avx512(v[j], 0, 15);
                    __m512i odd = super_bits_avx512(v[j], 4, 15);
                    even = super_put_bits(super_move_avx512(high[j], s - 4), 16, even);
                    odd = super_put_bits(super_move_avx512(high[j], s - 3), 16, odd);
                    _mm512_storeu_si512(to[0], even);
                    _mm512_storeu_si512(to[8], odd);
                }
            }
        }
    }
}

SUPER_AVX2 __m256i q5_k_isum(const struct super_input *in)
{
    const struct q5_k_block *w = in->block;
    __m256i high = super_load_once(w->high);
    __m256i acc[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int s = 0; s < 8; s += 2) {
        __m256i codes = super_load_once(w->q + 16 * s);
        __m256i four = k_scales_part(in->group, s / 4, in->j);
        for (int i = 0; i < 2; i++) {
            __m256i code =
                _mm256_or_si256(super_bits(codes, 4 * i, 15), super_bits(high, s + i - 4, 16));
            __m256i x = _mm256_loadu_si256((const __m256i *)(in->q + 32 * (s + i)));
            acc[i] =
                super_mad(acc[i], _mm256_maddubs_epi16(code, x), k_scales_one(four, s % 4 + i));
        }
    }
    return _mm256_add_epi32(acc[0], acc[1]);
}

SUPER_AVX512 __m512i q5_k_codes(const uint8_t *block, int i)
{
    const struct q5_k_block *w = (const void *)block;
    int s = i / 2 * 4 + i % 2; /* sub-block s in the lower half, s + 2 in the upper */
    __m512i low = super_bits_avx512(_mm512_loadu_si512(w->q + i / 2 * 64), i % 2 * 4, 15);
    __m512i fifth =
        _mm512_rorv_epi32(super_broadcast_32(w->high), super_set_halves(s + 28, s + 30));
    return super_put_bits(fifth, 16, low);
}

SUPER_AVX512 void q5_k_products(int n, const uint8_t *const block[SUPER_STEP],
                                const struct super_column *c, struct super_step *step)
{
    k_scales_products(n, q5_k_codes, block, c, step);
}

SUPER_GEMV(q5_k, k_scales_sums, k_scales_heads, q5_k_isum, k_scales_prepare, q5_k_products)
SUPER_GEMV_PAIR(q5_k, k_scales_prepare, q5_k_products)

const struct quant_kernel quant_x86_q5_k[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_MEMBERS_AVX2(q5_k)},
    [CPU_AVX512] = {SUPER_MEMBERS_AVX512(q5_k)},
};
