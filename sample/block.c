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

/* exp(d) for d <= 0: d = n ln(2)/8 + f with |f| <= ln(2)/16, so that it is 2^(n/8) times a
 * polynomial of degree 3. A large addend rounds d * 8 log2(e) to n, which its low bits then are;
 * the product of n and ln(2)/8 is exact inside the fused operation. */
static const float rounder = 0x1.8p23f, eights = 0x1.715476p+3f, minus_eighth = -0x1.62e430p-4f,
                   third = 1.0f / 6, lowest = -87.0f;
/* The bits of 2^(j/8), less what n << 20 has of j. */
static const uint32_t power_bits[8] = {0x3f800000,
                                       0x3f8b95c2 - 0x100000,
                                       0x3f9837f0 - 0x200000,
                                       0x3fa5fed7 - 0x300000,
                                       0x3fb504f3 - 0x400000,
                                       0x3fc5672a - 0x500000,
                                       0x3fd744fd - 0x600000,
                                       0x3feac0c7 - 0x700000};

/* ---- For any machine ---- */

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

static void keep_plain(float *to, const float *from, float bar)
{
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const float x = from[i] >= bar ? from[i] : -INFINITY;
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

static uint32_t count_plain(const float *x, float bar)
{
    uint32_t n = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i++) n += x[i] >= bar;
    return n;
}

static float weight_of(float x, float best, float scale, float *distance)
{
    const float exact = (x - best) * scale, d = larger(exact, lowest);
    const float t = fmaf(d, eights, rounder), f = fmaf(t - rounder, minus_eighth, d);
    const float p = fmaf(fmaf(fmaf(f, third, 0.5f), f, 1.0f), f, 1.0f);
    uint32_t n;
    memcpy(&n, &t, sizeof n);
    n = power_bits[n & 7] + (n << 20);
    float power;
    memcpy(&power, &n, sizeof power);
    *distance = d;
    return exact > lowest ? p * power : 0.0f;
}

static void weigh_plain(const float *x, float best, float scale, float *weight)
{
    float d;
    for (int i = 0; i < SAMPLE_BLOCK; i++) weight[i] = weight_of(x[i], best, scale, &d);
}

static struct sample_block_sums sums_plain(const float *x, float best, float scale)
{
    float total[LANES] = {0}, moment[LANES] = {0}, d;
    uint32_t n = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const float w = weight_of(x[i], best, scale, &d);
        total[i % LANES] += w;
        moment[i % LANES] += w * d;
        n += x[i] > -INFINITY;
    }
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            total[l] += total[l + half];
            moment[l] += moment[l + half];
        }
    return (struct sample_block_sums){total[0], moment[0], n};
}

static float total_plain(const float *x, float best, float scale)
{
    return sums_plain(x, best, scale).total;
}

static struct sample_block_moments moments_plain(const float *x, float centre)
{
    float sum[LANES] = {0}, squares[LANES] = {0};
    uint32_t n = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const float d = x[i] > -INFINITY ? x[i] - centre : 0.0f;
        sum[i % LANES] += d;
        squares[i % LANES] = fmaf(d, d, squares[i % LANES]);
        n += x[i] > -INFINITY;
    }
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            sum[l] += sum[l + half];
            squares[l] += squares[l + half];
        }
    return (struct sample_block_moments){sum[0], squares[0], n};
}

static const struct sample_block_kernels plain = {keep_plain,  bound_plain,  bounds_plain,
                                                  count_plain, weigh_plain,  sums_plain,
                                                  total_plain, moments_plain};

/* ---- AVX2 ---- */

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma,popcnt")))

AVX2 static inline __m256 bits_of(uint64_t allowed, int i)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i all = _mm256_set1_epi32((int)(allowed >> i & 255));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, bit), bit));
}

AVX2 static void keep_avx2(float *to, const float *from, float bar)
{
    const __m256 least = _mm256_set1_ps(bar), none = _mm256_set1_ps(-INFINITY),
                 most = _mm256_set1_ps(FLT_MAX);
    for (int i = 0; i < SAMPLE_BLOCK; i += 8) {
        const __m256 x = _mm256_loadu_ps(from + i), is = _mm256_cmp_ps(x, least, _CMP_GE_OQ);
        _mm256_storeu_ps(to + i, _mm256_min_ps(_mm256_blendv_ps(none, x, is), most));
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
        a = _mm256_max_ps(low, a); /* of NaN and another the second */
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

AVX2 static uint32_t count_avx2(const float *x, float bar)
{
    const __m256 least = _mm256_set1_ps(bar);
    __m256i n = _mm256_setzero_si256(); /* less one in each lane for each hit */
    for (int i = 0; i < SAMPLE_BLOCK; i += 8) {
        const __m256 hit = _mm256_cmp_ps(_mm256_loadu_ps(x + i), least, _CMP_GE_OQ);
        n = _mm256_add_epi32(n, _mm256_castps_si256(hit));
    }
    __m128i m = _mm_add_epi32(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1));
    m = _mm_add_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return (uint32_t)-_mm_cvtsi128_si32(_mm_add_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}

AVX2 static inline __m256 weights(__m256 x, __m256 best, __m256 scale, __m256 *distance)
{
    const __m256 low = _mm256_set1_ps(lowest), add = _mm256_set1_ps(rounder),
                 one = _mm256_set1_ps(1.0f);
    const __m256 exact = _mm256_mul_ps(_mm256_sub_ps(x, best), scale);
    const __m256 d = _mm256_max_ps(exact, low);
    const __m256 t = _mm256_fmadd_ps(d, _mm256_set1_ps(eights), add);
    const __m256 f = _mm256_fmadd_ps(_mm256_sub_ps(t, add), _mm256_set1_ps(minus_eighth), d);
    __m256 p = _mm256_fmadd_ps(f, _mm256_set1_ps(third), _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(_mm256_fmadd_ps(p, f, one), f, one);
    const __m256i n = _mm256_castps_si256(t);
    const __m256i table = _mm256_loadu_si256((const __m256i *)power_bits);
    const __m256i power =
        _mm256_add_epi32(_mm256_permutevar8x32_epi32(table, n), _mm256_slli_epi32(n, 20));
    *distance = d;
    return _mm256_and_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(power)),
                         _mm256_cmp_ps(exact, low, _CMP_GT_OQ));
}

AVX2 static void weigh_avx2(const float *x, float best, float scale, float *weight)
{
    const __m256 top = _mm256_set1_ps(best), by = _mm256_set1_ps(scale);
    __m256 d;
    for (int i = 0; i < SAMPLE_BLOCK; i += 8)
        _mm256_storeu_ps(weight + i, weights(_mm256_loadu_ps(x + i), top, by, &d));
}

AVX2 static inline uint32_t count_possible(__m256 x)
{
    const __m256 is = _mm256_cmp_ps(x, _mm256_set1_ps(-INFINITY), _CMP_GT_OQ);
    return (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_ps(is));
}

/* Lanes 0 to 7 and 8 to 15. */
AVX2 static inline float fold(__m256 a, __m256 b)
{
    a = _mm256_add_ps(a, b);
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

AVX2 static struct sample_block_sums sums_avx2(const float *x, float best, float scale)
{
    const __m256 top = _mm256_set1_ps(best), by = _mm256_set1_ps(scale);
    __m256 total[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256 moment[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    uint32_t n = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        for (int k = 0; k < 2; k++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            __m256 d;
            const __m256 w = weights(v, top, by, &d);
            total[k] = _mm256_add_ps(total[k], w);
            moment[k] = _mm256_add_ps(moment[k], _mm256_mul_ps(w, d));
            n += count_possible(v);
        }
    return (struct sample_block_sums){fold(total[0], total[1]), fold(moment[0], moment[1]), n};
}

AVX2 static float total_avx2(const float *x, float best, float scale)
{
    const __m256 top = _mm256_set1_ps(best), by = _mm256_set1_ps(scale);
    __m256 total[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, d;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        for (int k = 0; k < 2; k++)
            total[k] =
                _mm256_add_ps(total[k], weights(_mm256_loadu_ps(x + i + 8 * k), top, by, &d));
    return fold(total[0], total[1]);
}

AVX2 static struct sample_block_moments moments_avx2(const float *x, float centre)
{
    const __m256 from = _mm256_set1_ps(centre), none = _mm256_set1_ps(-INFINITY);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256 squares[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    uint32_t n = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        for (int k = 0; k < 2; k++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            const __m256 is = _mm256_cmp_ps(v, none, _CMP_GT_OQ);
            const __m256 d = _mm256_and_ps(_mm256_sub_ps(v, from), is);
            sum[k] = _mm256_add_ps(sum[k], d);
            squares[k] = _mm256_fmadd_ps(d, d, squares[k]);
            n += (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_ps(is));
        }
    return (struct sample_block_moments){fold(sum[0], sum[1]), fold(squares[0], squares[1]), n};
}

static const struct sample_block_kernels avx2 = {keep_avx2,  bound_avx2, bounds_avx2, count_avx2,
                                                 weigh_avx2, sums_avx2,  total_avx2,  moments_avx2};

/* ---- AVX-512: one register holds the lanes ---- */

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")))

AVX512 static void keep_avx512(float *to, const float *from, float bar)
{
    const __m512 least = _mm512_set1_ps(bar), none = _mm512_set1_ps(-INFINITY),
                 most = _mm512_set1_ps(FLT_MAX);
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES) {
        const __m512 x = _mm512_loadu_ps(from + i);
        const __mmask16 is = _mm512_cmp_ps_mask(x, least, _CMP_GE_OQ);
        _mm512_storeu_ps(to + i, _mm512_min_ps(_mm512_mask_blend_ps(is, none, x), most));
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

AVX512 static uint32_t count_avx512(const float *x, float bar)
{
    const __m512 least = _mm512_set1_ps(bar);
    uint64_t hits = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        hits |= (uint64_t)_mm512_cmp_ps_mask(_mm512_loadu_ps(x + i), least, _CMP_GE_OQ) << i;
    return (uint32_t)__builtin_popcountll(hits);
}

AVX512 static inline __m512 weights_512(__m512 x, __m512 best, __m512 scale, __m512 *distance)
{
    const __m512 low = _mm512_set1_ps(lowest), add = _mm512_set1_ps(rounder),
                 one = _mm512_set1_ps(1.0f);
    const __m512 exact = _mm512_mul_ps(_mm512_sub_ps(x, best), scale);
    const __m512 d = _mm512_max_ps(exact, low);
    const __m512 t = _mm512_fmadd_ps(d, _mm512_set1_ps(eights), add);
    const __m512 f = _mm512_fmadd_ps(_mm512_sub_ps(t, add), _mm512_set1_ps(minus_eighth), d);
    __m512 p = _mm512_fmadd_ps(f, _mm512_set1_ps(third), _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(_mm512_fmadd_ps(p, f, one), f, one);
    const __m512i n = _mm512_castps_si512(t);
    const __m512i table = _mm512_broadcast_i32x8(_mm256_loadu_si256((const __m256i *)power_bits));
    const __m512i power =
        _mm512_add_epi32(_mm512_permutexvar_epi32(n, table), _mm512_slli_epi32(n, 20));
    *distance = d;
    return _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(exact, low, _CMP_GT_OQ), p,
                               _mm512_castsi512_ps(power));
}

AVX512 static void weigh_avx512(const float *x, float best, float scale, float *weight)
{
    const __m512 top = _mm512_set1_ps(best), by = _mm512_set1_ps(scale);
    __m512 d;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        _mm512_storeu_ps(weight + i, weights_512(_mm512_loadu_ps(x + i), top, by, &d));
}

AVX512 static inline float fold_512(__m512 lane)
{
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(lane), _mm512_extractf32x8_ps(lane, 1));
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

AVX512 static struct sample_block_sums sums_avx512(const float *x, float best, float scale)
{
    const __m512 top = _mm512_set1_ps(best), by = _mm512_set1_ps(scale),
                 none = _mm512_set1_ps(-INFINITY);
    __m512 total = _mm512_setzero_ps(), moment = _mm512_setzero_ps(), d;
    uint64_t possible = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES) {
        const __m512 v = _mm512_loadu_ps(x + i), w = weights_512(v, top, by, &d);
        total = _mm512_add_ps(total, w);
        moment = _mm512_add_ps(moment, _mm512_mul_ps(w, d));
        possible |= (uint64_t)_mm512_cmp_ps_mask(v, none, _CMP_GT_OQ) << i;
    }
    return (struct sample_block_sums){fold_512(total), fold_512(moment),
                                      (uint32_t)__builtin_popcountll(possible)};
}

AVX512 static float total_avx512(const float *x, float best, float scale)
{
    const __m512 top = _mm512_set1_ps(best), by = _mm512_set1_ps(scale);
    __m512 total = _mm512_setzero_ps(), d;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        total = _mm512_add_ps(total, weights_512(_mm512_loadu_ps(x + i), top, by, &d));
    return fold_512(total);
}

AVX512 static struct sample_block_moments moments_avx512(const float *x, float centre)
{
    const __m512 from = _mm512_set1_ps(centre), none = _mm512_set1_ps(-INFINITY);
    __m512 sum = _mm512_setzero_ps(), squares = _mm512_setzero_ps();
    uint64_t possible = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES) {
        const __m512 v = _mm512_loadu_ps(x + i);
        const __mmask16 is = _mm512_cmp_ps_mask(v, none, _CMP_GT_OQ);
        const __m512 d = _mm512_maskz_sub_ps(is, v, from);
        sum = _mm512_add_ps(sum, d);
        squares = _mm512_fmadd_ps(d, d, squares);
        possible |= (uint64_t)is << i;
    }
    return (struct sample_block_moments){fold_512(sum), fold_512(squares),
                                         (uint32_t)__builtin_popcountll(possible)};
}

static const struct sample_block_kernels avx512 = {keep_avx512,  bound_avx512,  bounds_avx512,
                                                   count_avx512, weigh_avx512,  sums_avx512,
                                                   total_avx512, moments_avx512};
#endif

const struct sample_block_kernels *sample_block_kernels(enum quant_level most)
{
    const enum quant_level level = quant_level_best() < most ? quant_level_best() : most;
#if defined(__x86_64__)
    if (level >= QUANT_AVX512) return &avx512;
    if (level >= QUANT_AVX2) return &avx2;
#endif
    (void)level;
    return &plain;
}
