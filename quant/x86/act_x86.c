/* quant/x86/act_x86.c: the conversions of activations (quant/act.c) for x86-64. */
#include "quant/act.h"
#include "quant/x86/types_x86.h"
#include <immintrin.h>

/* The largest of eight non-negative integers. */
CPU_TARGET_AVX2 static inline uint32_t reduce_max_avx2(__m256i v)
{
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* The bits of 8 elements without the sign. */
CPU_TARGET_AVX2 static inline __m256i magnitude_avx2(const float *x)
{
    __m256i v = _mm256_castps_si256(_mm256_loadu_ps(x));
    return _mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff));
}

CPU_TARGET_AVX2 QUANT_INLINE __m256i largest_of_32_avx2(const float *x)
{
    return _mm256_max_epi32(_mm256_max_epi32(magnitude_avx2(x), magnitude_avx2(x + 8)),
                            _mm256_max_epi32(magnitude_avx2(x + 16), magnitude_avx2(x + 24)));
}

CPU_TARGET_AVX2 QUANT_INLINE __m256i quantize_avx2(const float *x, float factor, int8_t *q)
{
    const __m256 f = _mm256_set1_ps(factor);
    __m256i c0 = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), f));
    __m256i c1 = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), f));
    __m256i c2 = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 16), f));
    __m256i c3 = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 24), f));
    __m256i codes = _mm256_packs_epi16(_mm256_packs_epi32(c0, c1), _mm256_packs_epi32(c2, c3));
    /* The pack instructions work per 128-bit half; this restores the order of the groups of
     * four. */
    codes = _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    if (factor == 0.0f) codes = _mm256_setzero_si256();
    _mm256_storeu_si256((__m256i *)q, codes);
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), codes),
                             _mm256_set1_epi16(1));
}

/* The sums of the lower and the upper lanes of eight vectors, in the order v[0] lower, v[0] upper,
 * v[1] lower, ... */
CPU_TARGET_AVX2 static inline __m256i sums_of_halves_avx2(const __m256i v[8])
{
    __m256i first = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i last = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    __m256i all = _mm256_packs_epi32(first, last); /* all lower halves, all upper halves */
    __m128i low = _mm256_castsi256_si128(all), high = _mm256_extracti128_si256(all, 1);
    return _mm256_set_m128i(_mm_unpackhi_epi16(low, high), _mm_unpacklo_epi16(low, high));
}

/* Lane i of the result is the largest lane of v[i]. */
CPU_TARGET_AVX2 static inline __m256i largest_of_each_avx2(const __m256i v[8])
{
    __m256i two[4], four[2];
    for (int i = 0; i < 4; i++)
        two[i] = _mm256_max_epi32(_mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                  _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        four[i] = _mm256_max_epi32(_mm256_unpacklo_epi64(two[2 * i], two[2 * i + 1]),
                                   _mm256_unpackhi_epi64(two[2 * i], two[2 * i + 1]));
    return _mm256_max_epi32(_mm256_permute2x128_si256(four[0], four[1], 0x20),
                            _mm256_permute2x128_si256(four[0], four[1], 0x31));
}

/* Applies quant_act_scale to eight blocks. */
CPU_TARGET_AVX2 static inline __m256 block_scales_avx2(__m256i largest_bits, float factor[8])
{
    const __m256i infinite =
        _mm256_cmpgt_epi32(largest_bits, _mm256_set1_epi32(QUANT_ACT_INFINITY - 1));
    const __m256i tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(QUANT_ACT_TINY), largest_bits);
    const __m256 none = _mm256_castsi256_ps(_mm256_or_si256(infinite, tiny));
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    __m256 d = _mm256_div_ps(_mm256_castsi256_ps(largest_bits), _mm256_set1_ps(127.0f));
    _mm256_storeu_ps(factor, _mm256_andnot_ps(none, _mm256_div_ps(_mm256_set1_ps(1.0f), d)));
    return _mm256_blendv_ps(_mm256_andnot_ps(none, d), nan, _mm256_castsi256_ps(infinite));
}

/* Returns eight numbers whose maximum is the largest magnitude of 32 elements. */
typedef __m256i largest_of_32(const float *x);
/* Writes the codes of 32 elements and returns the sums of four adjacent codes each, those of
 * elements 0 to 15 in the lower half. A factor of 0 gives zeros even if x is not finite. */
typedef __m256i quantize_32(const float *x, float factor, int8_t *q);

/* Quantizes eight blocks at a time, which share the instructions for divisions and sums over lanes;
 * the end of a row is padded with blocks of zeros. */
CPU_TARGET_AVX2 QUANT_INLINE void q8_32_x86(largest_of_32 *largest, quantize_32 *codes, int64_t k,
                                            const float *x, const struct quant_act *to)
{
    const int64_t n_blocks = k / 32;
    int8_t *q = to->q;
    for (int64_t b = 0; b < n_blocks; b += 8, x += 256, q += 256) {
        const int n = n_blocks - b < 8 ? (int)(n_blocks - b) : 8;
        __m256i v[8];
        float factor[8], scale[8], t[8];
        int16_t sums[16];
        for (int i = 0; i < 8; i++) v[i] = i < n ? largest(x + 32 * i) : _mm256_setzero_si256();
        const __m256 all = block_scales_avx2(largest_of_each_avx2(v), factor);
        for (int i = 0; i < 8; i++)
            v[i] = i < n ? codes(x + 32 * i, factor[i], q + 32 * i) : _mm256_setzero_si256();
        __m256i pairs = _mm256_madd_epi16(sums_of_halves_avx2(v), _mm256_set1_epi16(1));
        _mm256_storeu_ps(scale, all);
        _mm256_storeu_ps(t, _mm256_mul_ps(all, _mm256_cvtepi32_ps(pairs)));
        _mm256_storeu_si256((__m256i *)sums,
                            _mm256_permute4x64_epi64(_mm256_packs_epi32(pairs, pairs), 0x08));
        memcpy(to->d + b, scale, (size_t)n * sizeof *scale);
        memcpy(to->s + b, t, (size_t)n * sizeof *t);
        memcpy(to->sum + b, sums, (size_t)n * sizeof *sums);
    }
}

CPU_TARGET_AVX2 QUANT_INLINE void q8_256_x86(largest_of_32 *largest, quantize_32 *codes, int64_t k,
                                             const float *x, const struct quant_act *to)
{
    int8_t *q = to->q;
    for (int64_t b = 0; b < k / 256; b++, x += 256, q += 256) {
        __m256i max = _mm256_setzero_si256(), fours[8];
        float factor;
        for (int i = 0; i < 8; i++) max = _mm256_max_epi32(max, largest(x + 32 * i));
        to->d[b] = quant_act_scale(reduce_max_avx2(max), &factor);
        for (int i = 0; i < 8; i++) fours[i] = codes(x + 32 * i, factor, q + 32 * i);
        _mm256_storeu_si256((__m256i *)(to->sum + 16 * b), sums_of_halves_avx2(fours));
    }
}

CPU_TARGET_AVX2 static void q8_32_avx2(int64_t k, const float *x, const struct quant_act *to)
{
    q8_32_x86(largest_of_32_avx2, quantize_avx2, k, x, to);
}

CPU_TARGET_AVX2 static void q8_256_avx2(int64_t k, const float *x, const struct quant_act *to)
{
    q8_256_x86(largest_of_32_avx2, quantize_avx2, k, x, to);
}

CPU_TARGET_AVX2 static void bf16_avx2(int64_t k, const float *x, const struct quant_act *to)
{
    const __m256i one = _mm256_set1_epi32(1), below_half = _mm256_set1_epi32(0x7fff);
    const int64_t whole = k / quant_act_bf16.rounded * quant_act_bf16.rounded;
    for (int64_t i = 0; i < whole; i += 8) {
        __m256 f = _mm256_loadu_ps(x + i);
        __m256i bits = _mm256_castps_si256(f), upper = _mm256_srli_epi32(bits, 16);
        __m256i rounded = _mm256_add_epi32(bits, below_half);
        rounded = _mm256_add_epi32(rounded, _mm256_and_si256(upper, one));
        rounded = _mm256_srli_epi32(rounded, 16);
        __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
        __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q));
        rounded = _mm256_blendv_epi8(rounded, nan, is_nan);
        __m128i packed =
            _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
        _mm_storeu_si128((__m128i *)(to->bf16 + i), packed);
    }
    quant_act_scalar.quantize[quant_act_bf16.index](k - whole, x + whole,
                                                    &(struct quant_act){.bf16 = to->bf16 + whole});
}

CPU_TARGET_AVX512 QUANT_INLINE __m256i largest_of_32_avx512(const float *x)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512i v0 = _mm512_and_si512(_mm512_loadu_si512(x), magnitude);
    __m512i v1 = _mm512_and_si512(_mm512_loadu_si512(x + 16), magnitude);
    v0 = _mm512_max_epi32(v0, v1);
    return _mm256_max_epi32(_mm512_castsi512_si256(v0), _mm512_extracti64x4_epi64(v0, 1));
}

CPU_TARGET_AVX512 QUANT_INLINE __m256i quantize_avx512(const float *x, float factor, int8_t *q)
{
    const __m512 f = _mm512_set1_ps(factor);
    __m512i c0 = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), f));
    __m512i c1 = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), f));
    __m256i codes = _mm256_set_m128i(_mm512_cvtepi32_epi8(c1), _mm512_cvtepi32_epi8(c0));
    if (factor == 0.0f) codes = _mm256_setzero_si256();
    _mm256_storeu_si256((__m256i *)q, codes);
    return _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), codes);
}

CPU_TARGET_AVX512 static void q8_32_avx512(int64_t k, const float *x, const struct quant_act *to)
{
    q8_32_x86(largest_of_32_avx512, quantize_avx512, k, x, to);
}

CPU_TARGET_AVX512 static void q8_256_avx512(int64_t k, const float *x, const struct quant_act *to)
{
    q8_256_x86(largest_of_32_avx512, quantize_avx512, k, x, to);
}

/* Rounds by integer arithmetic, because VCVTNEPS2BF16 would flush subnormals to zero. */
CPU_TARGET_AVX512 static void bf16_avx512(int64_t k, const float *x, const struct quant_act *to)
{
    const int64_t end = quant_act_round_up(k, quant_act_bf16.rounded);
    const __m512i one = _mm512_set1_epi32(1), below_half = _mm512_set1_epi32(0x7fff);
    for (int64_t i = 0; i < end; i += 16) {
        __mmask16 live = k - i >= 16 ? 0xffff : k <= i ? 0 : (__mmask16)((1u << (k - i)) - 1);
        __m512 f = _mm512_maskz_loadu_ps(live, x + i);
        __m512i bits = _mm512_castps_si512(f), upper = _mm512_srli_epi32(bits, 16);
        __m512i rounded = _mm512_add_epi32(bits, below_half);
        rounded = _mm512_add_epi32(rounded, _mm512_and_si512(upper, one));
        rounded = _mm512_srli_epi32(rounded, 16);
        __mmask16 is_nan = _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q);
        rounded = _mm512_mask_or_epi32(rounded, is_nan, upper, _mm512_set1_epi32(0x40));
        _mm256_storeu_si256((__m256i *)(to->bf16 + i), _mm512_cvtepi32_epi16(rounded));
    }
}

const struct quant_act_kernel quant_x86_act[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {{NULL, bf16_avx2, q8_32_avx2, q8_256_avx2}},
    [CPU_AVX512] = {{NULL, bf16_avx512, q8_32_avx512, q8_256_avx512}},
};
