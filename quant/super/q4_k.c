/* quant/super/q4_k.c: Q4_K: super-blocks of 256 four-bit codes, with 8 sub-blocks of 32 with 6-bit
 * scales and 6-bit minima; 4.5 bits per weight.
 *
 *      byte  0     2      4             16            144
 *            | d   | dmin | scale[12]   | q[128]      |     d, dmin: binary16, little-endian
 *
 *      scale:          scales and minima, drawn in quant/super/k_scales.h
 *      q[32c + l]:     high nibble: code of element 64c + 32 + l, low nibble: of 64c + l, l < 32
 *      x = d * scale * code - dmin * min,   code 0 .. 15 */
#include "quant/encode/fit.h"
#include "quant/super/k_scales.h"
#include "quant/super/super_gemv.h"

struct q4_k_block {
    uint16_t d, dmin;
    uint8_t scale[12], q[128];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct q4_k_block) == 144, "the size in the file");

QUANT_INLINE void q4_k_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct q4_k_block *w = (const struct q4_k_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = -quant_f16_to_f32(w->dmin);
    k_scales_expand(w->scale, p);
    for (int c = 0; c < 4; c++) {
        for (int l = 0; l < 32; l++) {
            p->q[64 * c + l] = w->q[32 * c + l] & 15;
            p->q[64 * c + 32 + l] = w->q[32 * c + l] >> 4;
        }
    }
}

SUPER_KERNELS(q4_k)

static const struct quant_fit_min_form q4_k_fit = {QUANT_FIT_BOUNDED, .max_code = 15,
                                                   .max_scale = 63};

static void q4_k_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    struct q4_k_block *out = row;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, out++) {
        struct quant_fit_super fit;
        search->fit->super_with_min(&q4_k_fit, 32, in + SUPER_LEN * b,
                                    super_importance(importance, b), &fit);
        out->d = fit.d;
        out->dmin = fit.dmin;
        k_scales_pack(fit.scale, fit.min, out->scale);
        for (int i = 0; i < 128; i++) {
            const uint8_t *q = fit.q + i / 32 * 64 + i % 32;
            out->q[i] = (uint8_t)(q[0] | q[32] << 4);
        }
    }
}

#if defined(__x86_64__)
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
#endif

const struct quant_type quant_type_q4_k = {
    .name = "Q4_K",
    .id = QUANT_Q4_K,
    .block_bytes = sizeof(struct q4_k_block),
    .panel = {.sub_len = 32, .offset = 0, .max_code = 15, .has_min = true},
    SUPER_MEMBERS(q4_k),
};
