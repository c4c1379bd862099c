/* sample/block.c: arithmetic on blocks of 64 logits. See block.h. */
#include "sample/block.h"
#include "quant/quant.h"
#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LANES = 16 };

/* exp(d) for d <= 0: d = n ln(2)/16 + f with |f| <= h = ln(2)/32, so exp(d) is 2^(n/16) times 1 +
 * (1 + h^2/8) f + f^2/2, a polynomial whose error is at most h^3/24 = 4e-7. Adding `rounder` rounds
 * d * 16 log2(e) to n, which is then in the low bits; the product of n and ln(2)/16 is exact inside
 * the fused operation. */
static const float rounder = 0x1.8p23f, sixteenths = 0x1.715476p+4f,
                   minus_sixteenth = -0x1.62e430p-5f, slope = 0x1.0003d8p+0f, lowest = -87.0f;
/* Constants of adaptive-p. */
static const float steepness = 1.0f / 0.3f, minus_ten = -10.0f;
/* The bits of 2^(j/16), minus the contribution of j to n << 19. */
static const uint32_t power_bits[16] = {0x3f800000,
                                        0x3f85aac3 - 0x080000,
                                        0x3f8b95c2 - 0x100000,
                                        0x3f91c3d3 - 0x180000,
                                        0x3f9837f0 - 0x200000,
                                        0x3f9ef532 - 0x280000,
                                        0x3fa5fed7 - 0x300000,
                                        0x3fad583f - 0x380000,
                                        0x3fb504f3 - 0x400000,
                                        0x3fbd08a4 - 0x480000,
                                        0x3fc5672a - 0x500000,
                                        0x3fce248c - 0x580000,
                                        0x3fd744fd - 0x600000,
                                        0x3fe0ccdf - 0x680000,
                                        0x3feac0c7 - 0x700000,
                                        0x3ff5257d - 0x780000};

/* Prefetches the block that is 64 blocks ahead: a vocabulary is usually larger than the cache. */
static inline void fetch_ahead(const float *x)
{
    for (int i = 0; i < SAMPLE_BLOCK; i += 16) __builtin_prefetch(x + 64 * SAMPLE_BLOCK + i);
}

/* ---- Portable ---- */

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

static void keep_plain(float *to, const float *from, float threshold)
{
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const float x = from[i] >= threshold ? from[i] : -INFINITY;
        to[i] = x > FLT_MAX ? FLT_MAX : x;
    }
}

static float bound_plain(const float *x, uint64_t allowed)
{
    float lane[LANES];
    for (int l = 0; l < LANES; l++) lane[l] = -INFINITY;
    for (int i = 0; i < SAMPLE_BLOCK; i++)
        if (allowed >> i & 1) lane[i % LANES] = larger(x[i], lane[i % LANES]);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] = larger(lane[l], lane[l + half]);
    return lane[0];
}

static void bounds_plain(const float *x, const uint64_t *allowed, uint32_t n, float *bound)
{
    for (uint32_t b = 0; b < n; b++)
        bound[b] = bound_plain(x + (size_t)b * SAMPLE_BLOCK, allowed ? allowed[b] : UINT64_MAX);
}

static uint32_t count_plain(const float *x, float threshold)
{
    uint32_t n = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i++) n += x[i] >= threshold;
    return n;
}

static uint64_t reach_plain(const float *x, float threshold)
{
    uint64_t ids = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i++) ids |= (uint64_t)(x[i] >= threshold) << i;
    return ids;
}

/* Returns the weight exp((x - top) * scale); 0 if x < min_logit or the distance is -87 or less. */
static float weight_of(float x, float top, float scale, float min_logit, float *distance)
{
    const float d = *distance = (x - top) * scale;
    if (!(d > lowest && x >= min_logit)) return 0.0f;
    const float t = fmaf(d, sixteenths, rounder), f = fmaf(t - rounder, minus_sixteenth, d);
    const float p = fmaf(fmaf(f, 0.5f, slope), f, 1.0f);
    uint32_t n;
    memcpy(&n, &t, sizeof n);
    n = power_bits[n & 15] + (n << 19);
    float power;
    memcpy(&power, &n, sizeof power);
    return p * power;
}

static void weigh_plain(const float *x, float top, float scale, float min_logit, float *weight)
{
    float d;
    for (int i = 0; i < SAMPLE_BLOCK; i++) weight[i] = weight_of(x[i], top, scale, min_logit, &d);
}

static float fold_plain(float lane[LANES])
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

static void weights_plain(const float *x, const float *top, uint32_t n, float scale,
                          float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        float sum[LANES] = {0}, d;
        for (int i = 0; i < SAMPLE_BLOCK; i++)
            sum[i % LANES] += weight_of(x[i], top[b], scale, min_logit, &d);
        to.sum[b] = fold_plain(sum);
    }
}

static void entropy_plain(const float *x, const float *top, uint32_t n, float scale,
                          float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        float sum[LANES] = {0}, second[LANES] = {0}, d;
        for (int i = 0; i < SAMPLE_BLOCK; i++) {
            const float w = weight_of(x[i], top[b], scale, min_logit, &d);
            sum[i % LANES] += w;
            second[i % LANES] += w > 0.0f ? w * d : 0.0f;
        }
        to.sum[b] = fold_plain(sum);
        to.second[b] = fold_plain(second);
        to.n[b] = count_plain(x, min_logit);
    }
}

static void moments_plain(const float *x, const float *top, uint32_t n, float scale,
                          float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        float sum[LANES] = {0}, second[LANES] = {0};
        for (int i = 0; i < SAMPLE_BLOCK; i++) {
            const float d = x[i] >= min_logit ? (x[i] - top[b]) * scale : 0.0f;
            sum[i % LANES] += d;
            second[i % LANES] = fmaf(d, d, second[i % LANES]);
        }
        to.sum[b] = fold_plain(sum);
        to.second[b] = fold_plain(second);
        to.n[b] = count_plain(x, min_logit);
    }
}

static float shape_plain(const float *x, const struct sample_block_shape *s, float *weight)
{
    float sum[LANES] = {0}, unused;
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const float p = weight_of(x[i], s->top, s->scale, s->min_logit, &unused) * s->inverse;
        const float d = fabsf(p - s->target) * steepness;
        const float e = d * d * minus_ten / (1.0f + d);
        weight[i] = weight_of(e, 0.0f, 1.0f, x[i] >= s->min_logit ? -FLT_MAX : INFINITY, &unused);
        sum[i % LANES] += weight[i];
    }
    return fold_plain(sum);
}

static const struct sample_block_kernels plain = {keep_plain,
                                                  bound_plain,
                                                  bounds_plain,
                                                  count_plain,
                                                  reach_plain,
                                                  weigh_plain,
                                                  {weights_plain, entropy_plain, moments_plain},
                                                  shape_plain};

/* ---- AVX2 ---- */

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma,popcnt")))

AVX2 static inline __m256 bits_of(uint64_t allowed, int i)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i all = _mm256_set1_epi32((int)(allowed >> i & 255));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, bit), bit));
}

AVX2 static void keep_avx2(float *to, const float *from, float threshold)
{
    const __m256 min = _mm256_set1_ps(threshold), none = _mm256_set1_ps(-INFINITY),
                 max = _mm256_set1_ps(FLT_MAX);
    for (int i = 0; i < SAMPLE_BLOCK; i += 8) {
        const __m256 x = _mm256_loadu_ps(from + i), is = _mm256_cmp_ps(x, min, _CMP_GE_OQ);
        _mm256_storeu_ps(to + i, _mm256_min_ps(_mm256_blendv_ps(none, x, is), max));
    }
}

AVX2 static inline float max_avx2(const float *x, uint64_t allowed)
{
    const __m256 none = _mm256_set1_ps(-INFINITY);
    __m256 a = none, b = none;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES) {
        __m256 low = _mm256_loadu_ps(x + i), high = _mm256_loadu_ps(x + i + 8);
        if (allowed != UINT64_MAX) {
            low = _mm256_blendv_ps(none, low, bits_of(allowed, i));
            high = _mm256_blendv_ps(none, high, bits_of(allowed, i + 8));
        }
        a = _mm256_max_ps(low, a); /* max_ps returns its second operand if one is NaN */
        b = _mm256_max_ps(high, b);
    }
    a = _mm256_max_ps(a, b);
    __m128 c = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_max_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

AVX2 static float bound_avx2(const float *x, uint64_t allowed)
{
    return max_avx2(x, allowed);
}

AVX2 static void bounds_avx2(const float *x, const uint64_t *allowed, uint32_t n, float *bound)
{
    for (uint32_t b = 0; b < n; b++)
        bound[b] = allowed && allowed[b] == 0
                       ? -INFINITY
                       : max_avx2(x + (size_t)b * SAMPLE_BLOCK, allowed ? allowed[b] : UINT64_MAX);
}

AVX2 static uint32_t count_avx2(const float *x, float threshold)
{
    const __m256 min = _mm256_set1_ps(threshold);
    __m256i n = _mm256_setzero_si256(); /* a comparison is -1 in lanes where it holds */
    for (int i = 0; i < SAMPLE_BLOCK; i += 8) {
        const __m256 hit = _mm256_cmp_ps(_mm256_loadu_ps(x + i), min, _CMP_GE_OQ);
        n = _mm256_add_epi32(n, _mm256_castps_si256(hit));
    }
    __m128i m = _mm_add_epi32(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1));
    m = _mm_add_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return (uint32_t)-_mm_cvtsi128_si32(_mm_add_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}

AVX2 static uint64_t reach_avx2(const float *x, float threshold)
{
    const __m256 min = _mm256_set1_ps(threshold);
    uint64_t ids = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += 8) {
        const __m256 hit = _mm256_cmp_ps(_mm256_loadu_ps(x + i), min, _CMP_GE_OQ);
        ids |= (uint64_t)(unsigned)_mm256_movemask_ps(hit) << i;
    }
    return ids;
}

AVX2 static inline __m256 powers(__m256i n)
{
    const __m256i *table = (const __m256i *)power_bits;
    const __m256 low =
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(_mm256_loadu_si256(table), n));
    const __m256 high =
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(_mm256_loadu_si256(table + 1), n));
    const __m256i of = _mm256_castps_si256(
        _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(n, 28))));
    return _mm256_castsi256_ps(_mm256_add_epi32(of, _mm256_slli_epi32(n, 19)));
}

/* Returns the weights of the lanes where *is is set, and clears *is in lanes whose weight is 0. */
AVX2 static inline __m256 weights(__m256 x, __m256 top, __m256 scale, __m256 *is, __m256 *distance)
{
    const __m256 add = _mm256_set1_ps(rounder), one = _mm256_set1_ps(1.0f);
    const __m256 d = *distance = _mm256_mul_ps(_mm256_sub_ps(x, top), scale);
    const __m256 t = _mm256_fmadd_ps(d, _mm256_set1_ps(sixteenths), add);
    const __m256 f = _mm256_fmadd_ps(_mm256_sub_ps(t, add), _mm256_set1_ps(minus_sixteenth), d);
    const __m256 p = _mm256_fmadd_ps(f, _mm256_set1_ps(0.5f), _mm256_set1_ps(slope));
    *is = _mm256_and_ps(*is, _mm256_cmp_ps(d, _mm256_set1_ps(lowest), _CMP_GT_OQ));
    return _mm256_and_ps(_mm256_mul_ps(_mm256_fmadd_ps(p, f, one), powers(_mm256_castps_si256(t))),
                         *is);
}

AVX2 static void weigh_avx2(const float *x, float top, float scale, float min_logit, float *weight)
{
    const __m256 best = _mm256_set1_ps(top), by = _mm256_set1_ps(scale),
                 low = _mm256_set1_ps(min_logit);
    __m256 d;
    for (int i = 0; i < SAMPLE_BLOCK; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        __m256 is = _mm256_cmp_ps(v, low, _CMP_GE_OQ);
        _mm256_storeu_ps(weight + i, weights(v, best, by, &is, &d));
    }
}

/* Returns the sum of lanes 0 to 7 (lane[0]) and 8 to 15 (lane[1]). */
AVX2 static inline float fold(const __m256 lane[2])
{
    const __m256 a = _mm256_add_ps(lane[0], lane[1]);
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

/* Computes the sums over block b at x. */
AVX2 static inline void sum_avx2(const float *x, float top, float scale, float min_logit,
                                 enum sample_block_sum kind, struct sample_block_sums to,
                                 uint32_t b)
{
    const __m256 best = _mm256_set1_ps(top), by = _mm256_set1_ps(scale),
                 low = _mm256_set1_ps(min_logit);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256 second[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    uint32_t n = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        for (int k = 0; k < 2; k++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            __m256 is = _mm256_cmp_ps(v, low, _CMP_GE_OQ), d;
            n += (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_ps(is));
            if (kind == SAMPLE_MOMENTS) {
                d = _mm256_and_ps(_mm256_mul_ps(_mm256_sub_ps(v, best), by), is);
                sum[k] = _mm256_add_ps(sum[k], d);
                second[k] = _mm256_fmadd_ps(d, d, second[k]);
            } else {
                const __m256 w = weights(v, best, by, &is, &d);
                sum[k] = _mm256_add_ps(sum[k], w);
                second[k] = _mm256_add_ps(second[k], _mm256_and_ps(_mm256_mul_ps(w, d), is));
            }
        }
    to.sum[b] = fold(sum);
    if (kind == SAMPLE_WEIGHTS) return;
    to.second[b] = fold(second);
    to.n[b] = n;
}

AVX2 static void weights_avx2(const float *x, const float *top, uint32_t n, float scale,
                              float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        fetch_ahead(x);
        sum_avx2(x, top[b], scale, min_logit, SAMPLE_WEIGHTS, to, b);
    }
}

AVX2 static void entropy_avx2(const float *x, const float *top, uint32_t n, float scale,
                              float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        fetch_ahead(x);
        sum_avx2(x, top[b], scale, min_logit, SAMPLE_ENTROPY, to, b);
    }
}

AVX2 static void moments_avx2(const float *x, const float *top, uint32_t n, float scale,
                              float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        fetch_ahead(x);
        sum_avx2(x, top[b], scale, min_logit, SAMPLE_MOMENTS, to, b);
    }
}

AVX2 static float shape_avx2(const float *x, const struct sample_block_shape *s, float *weight)
{
    const __m256 best = _mm256_set1_ps(s->top), by = _mm256_set1_ps(s->scale),
                 low = _mm256_set1_ps(s->min_logit), inverse = _mm256_set1_ps(s->inverse),
                 target = _mm256_set1_ps(s->target), one = _mm256_set1_ps(1.0f);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, unused;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        for (int k = 0; k < 2; k++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            __m256 is = _mm256_cmp_ps(v, low, _CMP_GE_OQ), has = is;
            const __m256 p = _mm256_mul_ps(weights(v, best, by, &has, &unused), inverse);
            const __m256 d = _mm256_mul_ps(_mm256_andnot_ps(sign, _mm256_sub_ps(p, target)),
                                           _mm256_set1_ps(steepness));
            const __m256 e =
                _mm256_div_ps(_mm256_mul_ps(_mm256_mul_ps(d, d), _mm256_set1_ps(minus_ten)),
                              _mm256_add_ps(one, d));
            const __m256 w = weights(e, _mm256_setzero_ps(), one, &is, &unused);
            _mm256_storeu_ps(weight + i + 8 * k, w);
            sum[k] = _mm256_add_ps(sum[k], w);
        }
    return fold(sum);
}

static const struct sample_block_kernels avx2 = {keep_avx2,
                                                 bound_avx2,
                                                 bounds_avx2,
                                                 count_avx2,
                                                 reach_avx2,
                                                 weigh_avx2,
                                                 {weights_avx2, entropy_avx2, moments_avx2},
                                                 shape_avx2};

/* ---- AVX-512: one register holds the lanes ---- */

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")))

AVX512 static void keep_avx512(float *to, const float *from, float threshold)
{
    const __m512 min = _mm512_set1_ps(threshold), none = _mm512_set1_ps(-INFINITY),
                 max = _mm512_set1_ps(FLT_MAX);
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES) {
        const __m512 x = _mm512_loadu_ps(from + i);
        const __mmask16 is = _mm512_cmp_ps_mask(x, min, _CMP_GE_OQ);
        _mm512_storeu_ps(to + i, _mm512_min_ps(_mm512_mask_blend_ps(is, none, x), max));
    }
}

AVX512 static inline float max_avx512(const float *x, uint64_t allowed)
{
    __m512 lane = _mm512_set1_ps(-INFINITY);
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        lane = _mm512_mask_max_ps(lane, (__mmask16)(allowed >> i), _mm512_loadu_ps(x + i), lane);
    const __m256 a = _mm256_max_ps(_mm512_castps512_ps256(lane), _mm512_extractf32x8_ps(lane, 1));
    __m128 c = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_max_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

AVX512 static float bound_avx512(const float *x, uint64_t allowed)
{
    return max_avx512(x, allowed);
}

AVX512 static void bounds_avx512(const float *x, const uint64_t *allowed, uint32_t n, float *bound)
{
    for (uint32_t b = 0; b < n; b++)
        bound[b] = allowed && allowed[b] == 0 ? -INFINITY
                                              : max_avx512(x + (size_t)b * SAMPLE_BLOCK,
                                                           allowed ? allowed[b] : UINT64_MAX);
}

AVX512 static inline uint64_t reach_avx512(const float *x, float threshold)
{
    const __m512 min = _mm512_set1_ps(threshold);
    uint64_t ids = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        ids |= (uint64_t)_mm512_cmp_ps_mask(_mm512_loadu_ps(x + i), min, _CMP_GE_OQ) << i;
    return ids;
}

AVX512 static uint32_t count_avx512(const float *x, float threshold)
{
    return (uint32_t)__builtin_popcountll(reach_avx512(x, threshold));
}

/* Returns the weights of the lanes where *is is set, and clears *is in lanes whose weight is 0. */
AVX512 static inline __m512 weights_512(__m512 x, __m512 top, __m512 scale, __mmask16 *is,
                                        __m512 *distance)
{
    const __m512 add = _mm512_set1_ps(rounder), one = _mm512_set1_ps(1.0f);
    const __m512 d = *distance = _mm512_mul_ps(_mm512_sub_ps(x, top), scale);
    const __m512 t = _mm512_fmadd_ps(d, _mm512_set1_ps(sixteenths), add);
    const __m512 f = _mm512_fmadd_ps(_mm512_sub_ps(t, add), _mm512_set1_ps(minus_sixteenth), d);
    const __m512 p = _mm512_fmadd_ps(f, _mm512_set1_ps(0.5f), _mm512_set1_ps(slope));
    const __m512i n = _mm512_castps_si512(t), table = _mm512_loadu_si512(power_bits);
    const __m512i power =
        _mm512_add_epi32(_mm512_permutexvar_epi32(n, table), _mm512_slli_epi32(n, 19));
    *is = _mm512_mask_cmp_ps_mask(*is, d, _mm512_set1_ps(lowest), _CMP_GT_OQ);
    return _mm512_maskz_mul_ps(*is, _mm512_fmadd_ps(p, f, one), _mm512_castsi512_ps(power));
}

AVX512 static void weigh_avx512(const float *x, float top, float scale, float min_logit,
                                float *weight)
{
    const __m512 best = _mm512_set1_ps(top), by = _mm512_set1_ps(scale),
                 low = _mm512_set1_ps(min_logit);
    __m512 d;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES) {
        const __m512 v = _mm512_loadu_ps(x + i);
        __mmask16 is = _mm512_cmp_ps_mask(v, low, _CMP_GE_OQ);
        _mm512_storeu_ps(weight + i, weights_512(v, best, by, &is, &d));
    }
}

AVX512 static inline float fold_512(__m512 lane)
{
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(lane), _mm512_extractf32x8_ps(lane, 1));
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

/* Computes the sums over block b at x. `open`: every number counts and `min_logit` is ignored. */
AVX512 static inline void sum_avx512(const float *x, float top, float scale, float min_logit,
                                     bool open, enum sample_block_sum kind,
                                     struct sample_block_sums to, uint32_t b)
{
    const __m512 best = _mm512_set1_ps(top), by = _mm512_set1_ps(scale),
                 low = _mm512_set1_ps(min_logit);
    __m512 sum = _mm512_setzero_ps(), second = _mm512_setzero_ps(), d;
    uint64_t ids = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES) {
        const __m512 v = _mm512_loadu_ps(x + i);
        __mmask16 is = open ? UINT16_MAX : _mm512_cmp_ps_mask(v, low, _CMP_GE_OQ);
        ids |= (uint64_t)is << i;
        if (kind == SAMPLE_MOMENTS) {
            d = _mm512_maskz_mul_ps(is, _mm512_sub_ps(v, best), by);
            sum = _mm512_add_ps(sum, d);
            second = _mm512_fmadd_ps(d, d, second);
        } else {
            const __m512 w = weights_512(v, best, by, &is, &d);
            sum = _mm512_add_ps(sum, w);
            second = _mm512_add_ps(second, _mm512_maskz_mul_ps(is, w, d));
        }
    }
    to.sum[b] = fold_512(sum);
    if (kind == SAMPLE_WEIGHTS) return;
    to.second[b] = fold_512(second);
    to.n[b] = (uint32_t)__builtin_popcountll(ids);
}

/* Without a cut no comparison is needed: impossible ids have weight 0. */
AVX512 static void weights_avx512(const float *x, const float *top, uint32_t n, float scale,
                                  float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        fetch_ahead(x);
        if (min_logit > -FLT_MAX)
            sum_avx512(x, top[b], scale, min_logit, false, SAMPLE_WEIGHTS, to, b);
        else
            sum_avx512(x, top[b], scale, min_logit, true, SAMPLE_WEIGHTS, to, b);
    }
}

AVX512 static void entropy_avx512(const float *x, const float *top, uint32_t n, float scale,
                                  float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        fetch_ahead(x);
        sum_avx512(x, top[b], scale, min_logit, false, SAMPLE_ENTROPY, to, b);
    }
}

AVX512 static void moments_avx512(const float *x, const float *top, uint32_t n, float scale,
                                  float min_logit, struct sample_block_sums to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK) {
        fetch_ahead(x);
        sum_avx512(x, top[b], scale, min_logit, false, SAMPLE_MOMENTS, to, b);
    }
}

AVX512 static float shape_avx512(const float *x, const struct sample_block_shape *s, float *weight)
{
    const __m512 best = _mm512_set1_ps(s->top), by = _mm512_set1_ps(s->scale),
                 low = _mm512_set1_ps(s->min_logit), inverse = _mm512_set1_ps(s->inverse),
                 target = _mm512_set1_ps(s->target), one = _mm512_set1_ps(1.0f);
    __m512 sum = _mm512_setzero_ps(), unused;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES) {
        const __m512 v = _mm512_loadu_ps(x + i);
        __mmask16 is = _mm512_cmp_ps_mask(v, low, _CMP_GE_OQ), has = is;
        const __m512 p = _mm512_mul_ps(weights_512(v, best, by, &has, &unused), inverse);
        const __m512 d =
            _mm512_mul_ps(_mm512_abs_ps(_mm512_sub_ps(p, target)), _mm512_set1_ps(steepness));
        const __m512 e = _mm512_div_ps(
            _mm512_mul_ps(_mm512_mul_ps(d, d), _mm512_set1_ps(minus_ten)), _mm512_add_ps(one, d));
        const __m512 w = weights_512(e, _mm512_setzero_ps(), one, &is, &unused);
        _mm512_storeu_ps(weight + i, w);
        sum = _mm512_add_ps(sum, w);
    }
    return fold_512(sum);
}

static const struct sample_block_kernels avx512 = {keep_avx512,
                                                   bound_avx512,
                                                   bounds_avx512,
                                                   count_avx512,
                                                   reach_avx512,
                                                   weigh_avx512,
                                                   {weights_avx512, entropy_avx512, moments_avx512},
                                                   shape_avx512};
#endif

const struct sample_block_kernels *sample_block_kernels(enum cpu_level level)
{
    static const void *const rows[CPU_LEVEL_COUNT] = {
        [CPU_SCALAR] = &plain,
#if defined(__x86_64__)
        [CPU_AVX2] = &avx2,
        [CPU_AVX512] = &avx512,
#endif
    };
    return cpu_row(level, rows);
}
