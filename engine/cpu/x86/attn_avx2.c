/* engine/cpu/x86/attn_avx2.c: integer attention with AVX2: VPMADDWD and an addition instead of the
 * one instruction of AVX-512. Scalar functions process rows whose length is not a multiple of 16.
 * Results have the bits of attn_scalar.c. */
#include "base/unroll.h"
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TARGET CPU_TARGET_AVX2
#define INLINE static inline __attribute__((always_inline))

enum { GROUP = ENGINE_ATTN_GROUP, SUB = ENGINE_ATTN_SUB, PAIRS = ENGINE_ATTN_DIMS / 2 };

TARGET INLINE __m256i load(const int16_t *codes)
{
    return _mm256_loadu_si256((const __m256i *)codes);
}

/* acc[j] + v[j][2i] * pair[0] + v[j][2i + 1] * pair[1] per lane i. One asm block, because gcc would
 * schedule all multiplications first and run out of registers for the products. */
TARGET INLINE void mad_pairs(__m256i *acc, __m256i low, __m256i high, const int16_t *pair)
{
    __m256i both, products;
    __asm__("vpbroadcastd %6, %2\n\t"
            "vpmaddwd %2, %4, %3\n\tvpaddd %3, %0, %0\n\t"
            "vpmaddwd %2, %5, %3\n\tvpaddd %3, %1, %1"
            : "+x"(acc[0]), "+x"(acc[1]), "=&x"(both), "=&x"(products)
            : "x"(low), "x"(high), "m"(*(const int16_t(*)[2])pair));
}

/* ---- Codes ---- */

TARGET INLINE __m256i magnitude(__m256 x)
{
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
}

TARGET INLINE uint32_t reduce(__m256i v)
{
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* The factor of a row of n elements, n a multiple of 16. */
TARGET INLINE float factor_of(int64_t n, const float *x, enum engine_attn_kind kind, float *scale)
{
    __m256i largest = _mm256_setzero_si256();
    float factor;
    for (int64_t i = 0; i < n; i += 8)
        largest = _mm256_max_epi32(largest, magnitude(_mm256_loadu_ps(x + i)));
    *scale = engine_attn_scale(reduce(largest), kind, &factor);
    return factor;
}

/* Codes of 8 elements; 0 if the factor is 0, because then elements may be infinite. */
TARGET INLINE __m256i codes8(__m256 x, float factor)
{
    __m256i code = _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(factor)));
    return factor == 0.0f ? _mm256_setzero_si256() : code;
}

/* 16 elements as 16-bit codes in their order. */
TARGET INLINE __m256i codes16(const float *x, float factor)
{
    __m256i code = _mm256_packs_epi32(codes8(_mm256_loadu_ps(x), factor),
                                      codes8(_mm256_loadu_ps(x + 8), factor));
    return _mm256_permute4x64_epi64(code, 0xd8);
}

TARGET static float row_avx2(int64_t d, const float *x, enum engine_attn_kind kind, int16_t *codes)
{
    float scale;
    if (d % 16) return engine_attn_scalar.row(d, x, kind, codes);
    float factor = factor_of(d, x, kind, &scale);
    for (int64_t i = 0; i < d; i += 16)
        _mm256_storeu_si256((__m256i *)(codes + i), codes16(x + i, factor));
    return scale;
}

/* Transposes 8 vectors of 8 dwords. */
TARGET INLINE void transpose8(__m256i *v)
{
    __m256i a[8], b[8];
    EACH (i, 4) {
        a[2 * i] = _mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
    EACH (i, 4) {
        const int at = i / 2 * 4 + i % 2;
        b[2 * i] = _mm256_unpacklo_epi64(a[at], a[at + 2]);
        b[2 * i + 1] = _mm256_unpackhi_epi64(a[at], a[at + 2]);
    }
    EACH (c, 4) {
        v[c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x20);
        v[4 + c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x31);
    }
}

TARGET static void keys_avx2(int64_t d, const float *x, int64_t pad, char *group)
{
    float *scale = engine_attn_scales(group), factor[GROUP];
    int16_t *codes = engine_attn_codes(group);
    if (d % 16) {
        engine_attn_scalar.keys(d, x, pad, group);
        return;
    }
    for (int r = 0; r < GROUP; r++)
        factor[r] = factor_of(d, x + r * pad, ENGINE_ATTN_KEY, &scale[r]);
    for (int first = 0; first < GROUP; first += 8) {
        for (int64_t i = 0; i < d; i += 16) {
            __m256i v[8];
            EACH (r, 8) v[r] = codes16(x + (first + r) * pad + i, factor[first + r]);
            transpose8(v);
            EACH (j, 8)
                _mm256_storeu_si256((__m256i *)(codes + ((i / 2 + j) * GROUP + first) * 2), v[j]);
        }
    }
}

TARGET static void values_avx2(int64_t dv, const float *x, int64_t pad, char *group)
{
    float *scale = engine_attn_scales(group);
    int16_t *codes = engine_attn_codes(group);
    if (dv % 16) {
        engine_attn_scalar.values(dv, x, pad, group);
        return;
    }
    for (int r = 0; r < GROUP; r += 2, x += 2 * pad) {
        float even = factor_of(dv, x, ENGINE_ATTN_VALUE, &scale[r]);
        float odd = factor_of(dv, x + pad, ENGINE_ATTN_VALUE, &scale[r + 1]);
        for (int64_t i = 0; i < dv; i += 8, codes += 16) {
            __m256i a = codes8(_mm256_loadu_ps(x + i), even);
            __m256i b = codes8(_mm256_loadu_ps(x + pad + i), odd);
            _mm256_storeu_si256((__m256i *)codes,
                                _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa));
        }
    }
}

/* ---- Scores ---- */

/* Scores of nr queries with one group of keys, from key `at` on. */
TARGET INLINE void scores_tile(int64_t d, const char *group, const float *offset,
                               struct engine_attn_tile *tile, int64_t at,
                               struct engine_attn_prefetch *prefetch, int nr)
{
    const int64_t n_pairs = (d + 1) / 2;
    const int16_t *keys = engine_attn_codes(group);
    const float *key_scale = engine_attn_scales(group);
    for (int64_t first = 0; first < n_pairs; first += PAIRS) {
        const int64_t end = first + PAIRS < n_pairs ? first + PAIRS : n_pairs;
        __m256i sum[ENGINE_ATTN_ROWS][2];
        EACH (r, nr) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
        for (int64_t i = first; i < end; i++) {
            __m256i low = load(keys + i * 2 * GROUP), high = load(keys + i * 2 * GROUP + GROUP);
            if (prefetch) engine_attn_prefetch_step(tile, prefetch, 1);
            EACH (r, nr) mad_pairs(sum[r], low, high, tile->query[r] + 2 * i);
        }
        __m256 s[2 * ENGINE_ATTN_ROWS];
        EACH (i, 2 * nr) s[i] = _mm256_cvtepi32_ps(sum[i / 2][i % 2]);
        if (first) {
            EACH (i, 2 * nr)
                s[i] = _mm256_add_ps(_mm256_loadu_ps(tile->t[i / 2] + at + i % 2 * 8), s[i]);
        }
        if (end == n_pairs) {
            EACH (i, 2 * nr)
                s[i] = _mm256_fmadd_ps(_mm256_mul_ps(s[i], _mm256_loadu_ps(key_scale + i % 2 * 8)),
                                       _mm256_set1_ps(tile->query_scale[i / 2]),
                                       _mm256_loadu_ps(offset + at + i % 2 * 8));
        }
        EACH (i, 2 * nr) _mm256_storeu_ps(tile->t[i / 2] + at + i % 2 * 8, s[i]);
    }
}

TARGET INLINE void scores_any(int64_t d, int64_t first, int64_t end, const char *keys,
                              const float *offset, struct engine_attn_tile *tile, bool prefetches)
{
    const int64_t bytes = engine_attn_key_bytes(d);
    struct engine_attn_prefetch all = engine_attn_prefetch(tile, 0, (end - first) * ((d + 1) / 2));
    struct engine_attn_prefetch *prefetch = prefetches ? &all : NULL;
    for (int64_t g = first; g < end; g++) {
        const char *group = keys + g * bytes;
        ENGINE_ATTN_BY_ROWS(tile->n_rows, scores_tile, d, group, offset, tile, GROUP * g, prefetch);
    }
}

/* Loops without prefetches are separate, as in attn_avx512.c. */
TARGET static void scores_avx2(int64_t d, int64_t first, int64_t end, const char *keys,
                               const float *offset, struct engine_attn_tile *tile)
{
    if (tile->ahead_bytes)
        scores_any(d, first, end, keys, offset, tile, true);
    else
        scores_any(d, first, end, keys, offset, tile, false);
}

/* ---- Weights ---- */

TARGET static void offsets_avx2(int64_t dv, int64_t n_groups, const char *values, float *offset,
                                float *inverse)
{
    for (int64_t g = 0; g < n_groups; g++, values += engine_attn_value_bytes(dv))
        for (int i = 0; i < GROUP; i += 8, offset += 8, inverse += 8) {
            const __m256 number = _mm256_loadu_ps(engine_attn_scales(values) + i);
            const __m256i scale = _mm256_castps_si256(number);
            const __m256 power = _mm256_cvtepi32_ps(
                _mm256_sub_epi32(_mm256_srli_epi32(scale, 23), _mm256_set1_epi32(127)));
            const __m256 not_finite = _mm256_cmp_ps(number, number, _CMP_UNORD_Q);
            const __m256i inverted = _mm256_sub_epi32(_mm256_set1_epi32(0x7f000000), scale);
            _mm256_storeu_ps(offset, _mm256_blendv_ps(power, number, not_finite));
            _mm256_storeu_ps(inverse, _mm256_castsi256_ps(inverted));
        }
}

/* A mask of the keys among the 8 from j on that are in the query's range. */
TARGET INLINE __m256 range_mask(const struct engine_attn_tile *tile, int64_t r, int64_t j)
{
    const __m256i key =
        _mm256_add_epi32(_mm256_set1_epi32((int)j), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)tile->lo[r]), key);
    const __m256i up = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)tile->hi[r]), key);
    return _mm256_castsi256_ps(_mm256_andnot_si256(below, up));
}

TARGET INLINE float largest8(__m256 v)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/* Lane i is the largest of v[i], which has no NaN. */
TARGET INLINE __m256 largest_of_each(const __m256 *v)
{
    __m256 a[4], b[2];
    EACH (i, 4)
        a[i] = _mm256_max_ps(_mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]),
                             _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]));
    EACH (i, 2) {
        const __m256d even = _mm256_castps_pd(a[2 * i]), odd = _mm256_castps_pd(a[2 * i + 1]);
        b[i] = _mm256_max_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(even, odd)),
                             _mm256_castpd_ps(_mm256_unpackhi_pd(even, odd)));
    }
    return _mm256_max_ps(_mm256_permute2f128_ps(b[0], b[1], 0x20),
                         _mm256_permute2f128_ps(b[0], b[1], 0x31));
}

/* c of sub-blocks [first, end), and the lower limit for the others. `all`: all their keys are in
 * the query's range. */
TARGET INLINE __m256 max_exponents(const struct engine_attn_tile *tile, int64_t r, int64_t first,
                                   int64_t end, bool all)
{
    _Static_assert(ENGINE_ATTN_SUBS == 8, "a vector has a lane for each sub-block");
    const __m256 low = _mm256_set1_ps(-ENGINE_ATTN_LIMIT);
    __m256 max_t[ENGINE_ATTN_SUBS] = {low, low, low, low, low, low, low, low};
    for (int64_t s = first; s < end; s++) {
        for (int64_t j = SUB * s; j < SUB * (s + 1); j += 8) {
            __m256 t = _mm256_loadu_ps(tile->t[r] + j);
            if (!all) t = _mm256_blendv_ps(low, t, range_mask(tile, r, j));
            /* VMAXPS returns the second operand if the first is NaN. */
            max_t[s] = _mm256_max_ps(t, max_t[s]);
        }
    }
    return _mm256_ceil_ps(largest_of_each(max_t));
}

/* engine_attn_exp2. */
TARGET INLINE __m256 exp2_8(__m256 x)
{
    const __m256 shifted = _mm256_add_ps(x, _mm256_set1_ps(127.0f));
    const __m256i bits = _mm256_slli_epi32(_mm256_cvttps_epi32(shifted), 23);
    return _mm256_and_ps(_mm256_castsi256_ps(bits),
                         _mm256_cmp_ps(x, _mm256_set1_ps(-127.0f), _CMP_GT_OQ));
}

/* The weights of 8 keys from j on; those of keys outside the range are arbitrary. */
TARGET INLINE __m256 weights8(const float *t, __m256 min_t, __m256 shift)
{
    static const float powers[] = ENGINE_ATTN_POWERS;
    const __m256 x = _mm256_max_ps(min_t, _mm256_loadu_ps(t));
    const __m256 step = _mm256_add_ps(x, shift);
    const __m256 rest = _mm256_sub_ps(x, _mm256_sub_ps(step, shift));
    __m256 w = _mm256_set1_ps(powers[0]);
    UNROLL
    for (int k = 1; k < 5; k++) w = _mm256_fmadd_ps(w, rest, _mm256_set1_ps(powers[k]));
    const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(step), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(w), exponent));
}

/* Computes a sub-block's codes and adds its weights to the row's lanes. `all`: all its keys are in
 * the query's range. */
TARGET INLINE void sub_weights(struct engine_attn_tile *tile, int64_t r, int64_t s, float c,
                               const float *inverse, __m256 *total, bool all)
{
    const __m256 min_t = _mm256_set1_ps(c - 126.0f), shift = _mm256_set1_ps(engine_attn_shift(c));
    const __m256 scale = _mm256_set1_ps(tile->scale[r][s]);
    __m256 lane[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int64_t j = SUB * s; j < SUB * (s + 1); j += 16) {
        __m256i code[2];
        EACH (i, 2) {
            __m256 w = weights8(tile->t[r] + j + 8 * i, min_t, shift);
            __m256 factor = _mm256_loadu_ps(inverse + j + 8 * i);
            if (!all) {
                const __m256 in_range = range_mask(tile, r, j + 8 * i);
                w = _mm256_and_ps(w, in_range);
                factor = _mm256_and_ps(factor, in_range);
            }
            lane[i] = _mm256_fmadd_ps(w, factor, lane[i]);
            code[i] = _mm256_cvtps_epi32(w); /* -2^31 for NaN, which becomes 0 below */
        }
        const __m256i both = _mm256_packus_epi32(code[0], code[1]);
        _mm256_storeu_si256((__m256i *)(tile->codes[r] + j), _mm256_permute4x64_epi64(both, 0xd8));
    }
    EACH (i, 2) total[i] = _mm256_fmadd_ps(lane[i], scale, total[i]);
}

TARGET INLINE void row_weights(struct engine_attn_tile *tile, int64_t r, int64_t first, int64_t end,
                               const float *inverse, bool all)
{
    float c[ENGINE_ATTN_SUBS];
    const __m256 max_t = max_exponents(tile, r, first, end, all);
    const __m256 not_finite = _mm256_cmp_ps(max_t, _mm256_set1_ps(ENGINE_ATTN_LIMIT), _CMP_GT_OQ);
    const float max_c = largest8(max_t);
    __m256 total[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    _mm256_storeu_ps(tile->scale[r], exp2_8(_mm256_sub_ps(max_t, _mm256_set1_ps(max_c))));
    _mm256_storeu_ps(c, _mm256_blendv_ps(max_t, _mm256_set1_ps(NAN), not_finite));
    for (int64_t s = first; s < end; s++) {
        engine_attn_weights_prefetch(tile, r, s);
        sub_weights(tile, r, s, c[s], inverse, total, all);
    }
    const __m256 a = _mm256_add_ps(total[0], total[1]);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    tile->sum[r] = _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
    tile->base[r] = max_c - ENGINE_ATTN_WEIGHT_BITS;
}

TARGET static void weights_avx2(int64_t first, int64_t end, const float *inverse,
                                struct engine_attn_tile *tile)
{
    for (int64_t r = 0; r < tile->n_rows; r++)
        if (tile->lo[r] <= SUB * first && tile->hi[r] >= SUB * end)
            row_weights(tile, r, first, end, inverse, true);
        else
            row_weights(tile, r, first, end, inverse, false);
}

/* ---- Sums ---- */

/* Sums of nr rows for the n <= 16 elements from element `at` on. */
TARGET INLINE void sums_tile(int64_t dv, int64_t first, int64_t end, const char *values,
                             const struct engine_attn_tile *tile, float *const *o, int64_t at,
                             int64_t n, struct engine_attn_prefetch *prefetch, int nr)
{
    const int64_t pad = (dv + 15) / 16 * 16, bytes = engine_attn_value_bytes(dv);
    __m256 total[ENGINE_ATTN_ROWS][2];
    EACH (r, nr) {
        __m256 from[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
        memcpy(from, o[r] + at, (size_t)n * sizeof **o);
        total[r][0] = from[0];
        total[r][1] = from[1];
    }
    values += 2 * bytes * first;
    for (int64_t s = first; s < end; s++, values += 2 * bytes) {
        __m256i sum[ENGINE_ATTN_ROWS][2];
        EACH (r, nr) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
        for (int g = 0; g < SUB / GROUP; g++) {
            const int16_t *v = engine_attn_codes(values + g * bytes) + 2 * at;
            for (int i = 0; i < GROUP; i += 2, v += 2 * pad) {
                if (prefetch) engine_attn_prefetch_step(tile, prefetch, 1);
                __m256i low = load(v), high = load(v + 16);
                EACH (r, nr) mad_pairs(sum[r], low, high, tile->codes[r] + SUB * s + GROUP * g + i);
            }
        }
        EACH (i, 2 * nr) {
            __m256 *to = &total[i / 2][i % 2];
            const __m256 scale = _mm256_set1_ps(tile->scale[i / 2][s]);
            *to = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i / 2][i % 2]), scale, *to);
        }
    }
    EACH (r, nr) {
        if (n == 16) {
            _mm256_storeu_ps(o[r] + at, total[r][0]);
            _mm256_storeu_ps(o[r] + at + 8, total[r][1]);
        } else {
            const __m256 rest[2] = {total[r][0], total[r][1]};
            memcpy(o[r] + at, rest, (size_t)n * sizeof **o);
        }
    }
}

TARGET INLINE void sums_any(int64_t dv, int64_t first, int64_t end, const char *values,
                            const struct engine_attn_tile *tile, float *const *o, bool prefetches)
{
    struct engine_attn_prefetch all = engine_attn_prefetch(
        tile, engine_attn_weights_bytes(tile), (end - first) * ((dv + 15) / 16) * (SUB / 2));
    struct engine_attn_prefetch *prefetch = prefetches ? &all : NULL;
    for (int64_t d = 0; d < dv; d += 16) {
        const int64_t n = dv - d < 16 ? dv - d : 16;
        ENGINE_ATTN_BY_ROWS(tile->n_rows, sums_tile, dv, first, end, values, tile, o, d, n,
                            prefetch);
    }
}

TARGET static void sums_avx2(int64_t dv, int64_t first, int64_t end, const char *values,
                             const struct engine_attn_tile *tile, float *const *o)
{
    if (tile->ahead_bytes)
        sums_any(dv, first, end, values, tile, o, true);
    else
        sums_any(dv, first, end, values, tile, o, false);
}

const struct engine_attn engine_attn_avx2 = {
    .row = row_avx2,
    .keys = keys_avx2,
    .values = values_avx2,
    .offsets = offsets_avx2,
    .scores = scores_avx2,
    .weights = weights_avx2,
    .sums = sums_avx2,
    .gather_keys = engine_attn_keys_gather,
    .gather_values = engine_attn_values_gather,
};
