/* quant/super/q5_k.c: Q5_K: super-blocks of 256 five-bit codes, with 8 sub-blocks of 32 with 6-bit
 * scales and 6-bit minima; 5.5 bits per weight.
 *
 *      byte  0     2      4             16           48            176
 *            | d   | dmin | scale[12]   | high[32]   | q[128]      |     d, dmin: binary16
 *
 *      scale:          scales and minima, drawn in quant/super/k_scales.h
 *      high[l]:        bit s: bit 4 of the code of element 32s + l, l < 32
 *      q[32c + l]:     high nibble: bits 3 .. 0 of element 64c + 32 + l, low nibble: of 64c + l
 *      x = d * scale * code - dmin * min,   code 0 .. 31 */
#include "quant/encode/fit.h"
#include "quant/super/k_scales.h"
#include "quant/super/super_gemv.h"

struct q5_k_block {
    uint16_t d, dmin;
    uint8_t scale[12], high[32], q[128];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q5_k_block) == 176, "the size in the file");

QUANT_INLINE void q5_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q5_k_block *w = (const struct q5_k_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = -quant_f16_to_f32(w->dmin);
    k_scales_expand(w->scale, p);
    for (int s = 0; s < 8; s++)
        for (int l = 0; l < 32; l++)
            p->q[32 * s + l] =
                (uint8_t)((w->q[s / 2 * 32 + l] >> s % 2 * 4 & 15) | (w->high[l] >> s & 1) << 4);
}

SUPER_KERNELS(q5_k)

static const struct quant_fit_min_form q5_k_fit = {QUANT_FIT_BOUNDED, .max_code = 31,
                                                   .max_scale = 63};

static void q5_k_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    struct q5_k_block *out = row;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, out++) {
        struct quant_fit_super fit;
        search->fit->super_with_min(&q5_k_fit, 32, in + SUPER_LEN * b,
                                    super_importance(importance, b), &fit);
        memset(out, 0, sizeof *out);
        out->d = fit.d;
        out->dmin = fit.dmin;
        k_scales_pack(fit.scale, fit.min, out->scale);
        for (int i = 0; i < SUPER_LEN; i++) {
            int s = i / 32, l = i % 32;
            out->q[s / 2 * 32 + l] |= (uint8_t)((fit.q[i] & 15) << s % 2 * 4);
            out->high[l] |= (uint8_t)(fit.q[i] >> 4 << s);
        }
    }
}

#if defined(__x86_64__)
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
#endif

const struct quant_type quant_type_q5_k = {
    .name = "Q5_K",
    .id = QUANT_Q5_K,
    .block_bytes = sizeof(struct q5_k_block),
    .panel = {.sub_len = 32, .offset = 0, .max_code = 31, .has_min = true},
    SUPER_MEMBERS(q5_k),
};
