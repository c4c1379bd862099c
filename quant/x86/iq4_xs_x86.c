/* quant/x86/iq4_xs_x86.c: the kernels of IQ4_XS (quant/super/iq4_xs.h) for x86-64. */
#include "quant/super/iq4_xs.h"
#include "quant/x86/super_gemv.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(iq4_xs)

/* Splits 16 bytes into 32 codes in the order of their elements: the low nibbles, then the high
 * ones. */
SUPER_AVX2 __m256i iq4_xs_codes_avx2(const uint8_t bytes[16])
{
    __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes));
    __m256i moved = _mm256_srlv_epi32(both, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return _mm256_and_si256(moved, _mm256_set1_epi8(15));
}

/* The codebook in both lanes, for VPSHUFB. */
SUPER_AVX2 __m256i iq4_xs_codebook_avx2(void)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)quant_codebook_iq4));
}

CPU_TARGET_AVX2 static void iq4_xs_unpack_avx2(int64_t first, int64_t n_blocks,
                                               const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel256 *out = panel;
    __m256i book = _mm256_add_epi8(iq4_xs_codebook_avx2(), _mm256_set1_epi8(-128));
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        int64_t at = (first + b) * (int64_t)sizeof(struct iq4_xs_block);
        for (int r = 0; r < 16; r += 8) {
            __m256i v[4];
            super_rows_load(row + r, at, v);
            _mm256_storeu_ps(out->d + r, super_halves(v[0]));
            _mm256_storeu_ps(out->m + r, _mm256_setzero_ps());
            for (int s = 0; s < 8; s += 2) { /* sub-block s in the lower half, s + 1 in the upper */
                __m256i low = _mm256_srli_epi32(v[1], 4 * s),
                        top = _mm256_srli_epi32(v[0], 16 + 2 * s);
                low = _mm256_blend_epi16(low, _mm256_slli_epi32(low, 12), 0xaa);
                top = _mm256_blend_epi16(top, _mm256_slli_epi32(top, 14), 0xaa);
                __m256i six = _mm256_or_si256(
                    _mm256_and_si256(low, _mm256_set1_epi16(15)),
                    _mm256_slli_epi16(_mm256_and_si256(top, _mm256_set1_epi16(3)), 4));
                _mm256_storeu_si256((__m256i *)out->scale[s / 2][r],
                                    _mm256_sub_epi16(six, _mm256_set1_epi16(32)));
            }
            for (int s = 0; s < 8; s++) {
                super_rows_load(row + r, at + (int)offsetof(struct iq4_xs_block, q) + 16 * s, v);
                for (int j = 0; j < 4; j++) {
                    __m256i low = _mm256_shuffle_epi8(book, super_bits(v[j], 0, 15));
                    __m256i high = _mm256_shuffle_epi8(book, super_bits(v[j], 4, 15));
                    _mm256_storeu_si256((__m256i *)out->q[8 * s + j][r], low);
                    _mm256_storeu_si256((__m256i *)out->q[8 * s + 4 + j][r], high);
                }
            }
        }
    }
}

/* The 8 scales minus 32. */
SUPER_AVX2 __m256i iq4_xs_scales_avx2(const struct iq4_xs_block *w)
{
    uint32_t low;
    memcpy(&low, w->scale_low, sizeof low);
    __m256i places = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    __m256i four = _mm256_srlv_epi32(_mm256_set1_epi32((int32_t)low), places);
    __m256i two = _mm256_srlv_epi32(_mm256_set1_epi32(w->scale_high), _mm256_srli_epi32(places, 1));
    four = _mm256_and_si256(four, _mm256_set1_epi32(15));
    two = _mm256_slli_epi32(_mm256_and_si256(two, _mm256_set1_epi32(3)), 4);
    return _mm256_sub_epi32(_mm256_or_si256(four, two), _mm256_set1_epi32(32));
}

SUPER_AVX2 __m256i iq4_xs_isum(const struct super_input *in)
{
    const struct iq4_xs_block *w = in->block;
    const __m256i codebook = iq4_xs_codebook_avx2();
    __m256i wide = iq4_xs_scales_avx2(w);
    __m256i eight = _mm256_permute4x64_epi64(_mm256_packs_epi32(wide, wide), 0x88);
    __m256i acc[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int s = 0; s < 8; s++) {
        __m256i value = _mm256_shuffle_epi8(codebook, iq4_xs_codes_avx2(w->q + 16 * s));
        __m256i x = _mm256_loadu_si256((const __m256i *)(in->q + 32 * s));
        /* VPMADDUBSW has one unsigned operand. 2 * 127 * 127 <= INT16_MAX. */
        __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
        __m256i scale =
            _mm256_shuffle_epi8(eight, _mm256_set1_epi16((int16_t)(0x0100 * (2 * s + 1) + 2 * s)));
        acc[s % 2] = super_mad(acc[s % 2], products, scale);
    }
    in->group->d[in->j] = w->d;
    return _mm256_add_epi32(acc[0], acc[1]);
}

/* Returns the first 32 bits of four super-blocks. scale[p] has the scales of super-blocks 2p and 2p
 * + 1 minus 32: sub-blocks 0 2 4 6 1 3 5 7 of each. */
SUPER_AVX512 __m128i iq4_xs_scales_four(const uint8_t *const block[SUPER_STEP], __m512i scale[2])
{
    __m128i head = super_words(block, 0); /* d, then the high bits */
    __m128i low = super_words(block, offsetof(struct iq4_xs_block, scale_low));
    /* Each byte gets the high bits of two scales: bits 1 and 0 of an even sub-block, 3 and 2 of an
     * odd one. */
    __m128i two = _mm_srli_epi32(head, 16);
    two = _mm_or_si128(two, _mm_slli_epi32(two, 8));
    two = _mm_and_si128(two, _mm_set1_epi32(0x00ff00ff));
    two = _mm_or_si128(two, _mm_slli_epi32(two, 4));
    const __m128i four = _mm_set1_epi8(15), top = _mm_set1_epi8(0x30), less = _mm_set1_epi8(32);
    __m128i even =
        _mm_or_si128(_mm_and_si128(low, four), _mm_and_si128(_mm_slli_epi16(two, 4), top));
    __m128i odd = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(low, 4), four),
                               _mm_and_si128(_mm_slli_epi16(two, 2), top));
    even = _mm_sub_epi8(even, less);
    odd = _mm_sub_epi8(odd, less);
    scale[0] = _mm512_cvtepi8_epi32(_mm_unpacklo_epi32(even, odd));
    scale[1] = _mm512_cvtepi8_epi32(_mm_unpackhi_epi32(even, odd));
    return head;
}

/* Each 128 bits of x are half of a sub-block: x[0] and x[1] have the activations for low nibbles,
 * x[2] and x[3] those for high ones. */
SUPER_AVX512 void iq4_xs_prepare(const int8_t *const q[SUPER_STEP],
                                 const int16_t *const sum[SUPER_STEP], struct super_column *c)
{
    for (int j = 0; j < SUPER_STEP; j++) {
        for (int h = 0; h < 2; h++) {
            __m512i a = _mm512_load_si512(q[j] + 128 * h);
            __m512i b = _mm512_load_si512(q[j] + 128 * h + 64);
            c->x[j][h] = _mm512_shuffle_i32x4(a, b, 0x88);
            c->x[j][2 + h] = _mm512_shuffle_i32x4(a, b, 0xdd);
        }
    }
    super_pair_sums(sum, -8, c);
}

/* VPDPBUSD multiplies unsigned bytes, so the codes are values + 128, and the sums start from minus
 * 128 times scales times activations. */
SUPER_AVX512 void iq4_xs_step(const uint8_t *const block[SUPER_STEP], const struct super_column *c,
                              struct super_step *step)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i book = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)quant_codebook_iq4)),
            scale[2];
    book = _mm512_add_epi8(book, _mm512_set1_epi8(-128));
    /* Words of scale[p], each twice, in the order of the sums of 16. */
    const __m512i twice = _mm512_mullo_epi32(
        _mm512_setr_epi32(0, 8, 16, 24, 2, 10, 18, 26, 4, 12, 20, 28, 6, 14, 22, 30),
        _mm512_set1_epi32(0x00010001));
    step->d = super_split_words(iq4_xs_scales_four(block, scale));
    EACH (p, 2) {
        __m512i acc[2];
        EACH (m, 2) {
            const struct iq4_xs_block *w = (const void *)block[2 * p + m];
            const __m512i *x = c->x[2 * p + m];
            EACH (h, 2) {
                __m512i codes = _mm512_loadu_si512(w->q + 64 * h);
                __m512i first = _mm512_shuffle_epi8(book, super_bits_avx512(codes, 0, 15));
                __m512i second = _mm512_shuffle_epi8(book, super_bits_avx512(codes, 4, 15));
                __m512i products = _mm512_dpbusd_epi32(zero, first, x[h]);
                products = _mm512_dpbusd_epi32(products, second, x[2 + h]);
                const __m512i at = _mm512_add_epi32(
                    _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 1, 1, 1, 1, 5, 5, 5, 5),
                    _mm512_set1_epi32(8 * m + 2 * h));
                products = _mm512_mullo_epi32(products, _mm512_permutexvar_epi32(at, scale[p]));
                acc[m] = h == 0 ? products : _mm512_add_epi32(acc[m], products);
            }
        }
        __m512i start = _mm512_slli_epi16(_mm512_permutexvar_epi16(twice, scale[p]), 4);
        step->isum[p] = _mm512_add_epi32(_mm512_unpacklo_epi64(acc[0], acc[1]),
                                         _mm512_unpackhi_epi64(acc[0], acc[1]));
        step->isum[p] = _mm512_add_epi32(step->isum[p], _mm512_madd_epi16(start, c->sum[p]));
    }
}

SUPER_AVX512 void iq4_xs_products(int n, const uint8_t *const block[SUPER_STEP],
                                  const struct super_column *c, struct super_step *step)
{
    EACH (j, n) iq4_xs_step(block, c + j, step + j);
}

SUPER_GEMV(iq4_xs, NULL, NULL, iq4_xs_isum, iq4_xs_prepare, iq4_xs_products)

const struct quant_kernel quant_x86_iq4_xs[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {.decode = iq4_xs_decode_avx2,
                  .unpack = iq4_xs_unpack_avx2,
                  .panel = &iq4_xs_layout.panel,
                  .gemv = iq4_xs_gemv_avx2},
    [CPU_AVX512] = {.gemv = iq4_xs_gemv_avx512, .rows_per_step = SUPER_STREAMS},
};
