/* quant/x86/q4_k_x86.c: the kernels of Q4_K (quant/super/q4_k.h) for x86-64. */
#include "quant/super/q4_k.h"
#include "quant/x86/k_scales_x86.h"
#include "quant/x86/super_gemv.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(q4_k)

CPU_TARGET_AVX2 static void q4_k_unpack_avx2(int64_t first, int64_t n_blocks,
                                             const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q4_k_block);
        for (int r = 0; r < 16; r += 8) {
            __m256i v[4];
            super_rows_load(row + r, at, v);
            k_scales_unpack_avx2(v, r, out);
            for (int i = 0; i < 32; i += 4) { /* words i .. i + 3 of the 32 words of codes */
                super_rows_load(row + r, at + (int)offsetof(struct q4_k_block, q) + 4 * i, v);
                for (int j = 0; j < 4; j++) {
                    int low = 16 * (i / 8) + i % 8 + j;
                    _mm256_storeu_si256((__m256i *)out->q[low][r], super_bits(v[j], 0, 15));
                    _mm256_storeu_si256((__m256i *)out->q[low + 8][r], super_bits(v[j], 4, 15));
                }
            }
        }
    }
}

CPU_TARGET_AVX512 static void q4_k_unpack_avx512(int64_t first, int64_t n_blocks,
                                                 const void *const row[QUANT_PANEL_ROWS],
                                                 void *panel)
{
    struct quant_panel256 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct q4_k_block);
        k_scales_unpack_rows(row, at, out);
        for (int i = 0; i < 32; i += 4) { /* words i .. i + 3 of the 32 words of codes */
            __m512i v[4];
            super_rows_load_avx512(row, at + (int)offsetof(struct q4_k_block, q) + 4 * i, v);
            for (int j = 0; j < 4; j++) {
                int low = 16 * (i / 8) + i % 8 + j;
                _mm512_storeu_si512(out->q[low], super_bits_avx512(v[j], 0, 15));
                _mm512_storeu_si512(out->q[low + 8], super_bits_avx512(v[j], 4, 15));
            }
        }
    }
}

SUPER_AVX2 __m256i q4_k_isum(const struct super_input *in)
{
    const struct q4_k_block *w = in->block;
    __m256i acc[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int s = 0; s < 8; s += 2) {
        __m256i codes = super_load_once(w->q + 16 * s);
        __m256i four = k_scales_part(in->group, s / 4, in->j);
        const __m256i *x = (const __m256i *)(in->q + 32 * s);
        __m256i low = _mm256_maddubs_epi16(super_bits(codes, 0, 15), _mm256_loadu_si256(x));
        __m256i high = _mm256_maddubs_epi16(super_bits(codes, 4, 15), _mm256_loadu_si256(x + 1));
        acc[0] = super_mad(acc[0], low, k_scales_one(four, s % 4));
        acc[1] = super_mad(acc[1], high, k_scales_one(four, s % 4 + 1));
    }
    return _mm256_add_epi32(acc[0], acc[1]);
}

SUPER_AVX512 __m512i q4_k_codes(const uint8_t *block, int i)
{
    const struct q4_k_block *w = (const void *)block;
    return super_bits_avx512(_mm512_loadu_si512(w->q + i / 2 * 64), i % 2 * 4, 15);
}

SUPER_AVX512 void q4_k_products(int n, const uint8_t *const block[SUPER_STEP],
                                const struct super_column *c, struct super_step *step)
{
    k_scales_products(n, q4_k_codes, block, c, step);
}

SUPER_GEMV(q4_k, k_scales_sums, k_scales_heads, q4_k_isum, k_scales_prepare, q4_k_products)
SUPER_GEMV_PAIR(q4_k, k_scales_prepare, q4_k_products)

const struct quant_kernel quant_x86_q4_k[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_MEMBERS_AVX2(q4_k)},
    [CPU_AVX512] = {SUPER_MEMBERS_AVX512(q4_k)},
};
