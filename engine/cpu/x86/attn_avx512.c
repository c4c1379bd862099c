/* engine/cpu/x86/attn_avx512.c: integer attention with AVX-512 and VNNI. VPDPWSSD multiplies pairs
 * of codes of 16 keys (or 16 elements of values) by a broadcast pair of a query (or of its
 * weights). Functions that take constant arguments are inlined for each case. Results have the bits
 * of attn_scalar.c. */
#include "base/unroll.h"
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TARGET CPU_TARGET_AVX512
#define INLINE static inline __attribute__((always_inline))

enum { GROUP = ENGINE_ATTN_GROUP, SUB = ENGINE_ATTN_SUB, PAIRS = ENGINE_ATTN_DIMS / 2 };

/* A mask of the first n lanes, of all for n >= 16. */
TARGET INLINE __mmask16 first_lanes(int64_t n)
{
    return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1);
}

TARGET INLINE __m512i broadcast_pair(const int16_t *pair)
{
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return _mm512_set1_epi32(both);
}

/* acc + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] per lane, in the accumulator's register: with the
 * intrinsic, gcc 12 moves the 24 accumulators of a tile between registers and memory in each
 * step. */
TARGET INLINE void mad_pairs(__m512i *acc, __m512i a, __m512i b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(*acc) : "v"(a), "v"(b));
}

/* ---- Codes ---- */

TARGET INLINE __m512i magnitude(__m512 x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

/* Scales and factors (engine_attn_scale) of 16 rows, given the bits of their largest magnitudes. */
TARGET INLINE __m512 key_scales16(__m512i largest, __m512 *factor)
{
    const __mmask16 not_finite = _mm512_cmpge_epi32_mask(largest, _mm512_set1_epi32(0x7f800000));
    const __mmask16 tiny = _mm512_cmplt_epi32_mask(largest, _mm512_set1_epi32(27 << 23));
    const __mmask16 plain = (__mmask16) ~(not_finite | tiny);
    const __m512 c = _mm512_set1_ps(ENGINE_ATTN_KEY_MAX), m = _mm512_castsi512_ps(largest);
    *factor = _mm512_maskz_div_ps(plain, c, m);
    return _mm512_mask_mov_ps(_mm512_maskz_div_ps(plain, m, c), not_finite,
                              _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

TARGET INLINE __m512 value_scales16(__m512i largest, __m512 *factor)
{
    const __mmask16 not_finite = _mm512_cmpge_epi32_mask(largest, _mm512_set1_epi32(0x7f800000));
    const __mmask16 tiny = _mm512_cmplt_epi32_mask(largest, _mm512_set1_epi32(67 << 23));
    const __m512i up = _mm512_add_epi32(largest, _mm512_set1_epi32(0xfff - (11 << 23)));
    __m512i scale = _mm512_and_si512(up, _mm512_set1_epi32(0x7f800000));
    *factor = _mm512_castsi512_ps(_mm512_maskz_sub_epi32((__mmask16) ~(not_finite | tiny),
                                                         _mm512_set1_epi32(0x7f000000), scale));
    scale = _mm512_mask_mov_epi32(scale, tiny, _mm512_set1_epi32(55 << 23));
    return _mm512_castsi512_ps(
        _mm512_mask_mov_epi32(scale, not_finite, _mm512_set1_epi32(0x7fc00000)));
}

/* Codes in the lower halves of 32-bit integers. If the factor is 0, x may be infinite or NaN: then
 * the conversion gives 2^31, whose lower half is 0, the specified code. */
TARGET INLINE __m512i codes16(__m512 x, __m512 factor)
{
    return _mm512_cvtps_epi32(_mm512_mul_ps(x, factor));
}

/* The largest magnitudes of 16 vectors; lane r is that of vector r. */
TARGET INLINE __m512i reduce16(const __m512i *v)
{
    __m512i a[8], b[4], e[2];
    EACH (i, 8)
        a[i] = _mm512_max_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    EACH (i, 4)
        b[i] = _mm512_max_epi32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    EACH (i, 2)
        e[i] = _mm512_max_epi32(_mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0x88),
                                _mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0xdd));
    return _mm512_max_epi32(_mm512_shuffle_i32x4(e[0], e[1], 0x88),
                            _mm512_shuffle_i32x4(e[0], e[1], 0xdd));
}

TARGET INLINE __m512i row_largest(int64_t n, const float *x)
{
    __m512i largest = _mm512_setzero_si512();
    for (int64_t i = 0; i < n; i += 16)
        largest =
            _mm512_max_epi32(largest, magnitude(_mm512_maskz_loadu_ps(first_lanes(n - i), x + i)));
    return largest;
}

/* The largest magnitudes of a group's rows. */
TARGET INLINE __m512i group_largest(int64_t n, const float *x, int64_t pad)
{
    __m512i largest[GROUP];
    EACH (r, GROUP) largest[r] = row_largest(n, x + r * pad);
    return reduce16(largest);
}

TARGET static float row_avx512(int64_t d, const float *x, enum engine_attn_kind kind,
                               int16_t *codes)
{
    float factor, scale;
    uint32_t largest = (uint32_t)_mm512_reduce_max_epi32(row_largest(d, x));
    scale = engine_attn_scale(largest, kind, &factor);
    for (int64_t i = 0; i < d; i += 16) {
        __m512i code =
            codes16(_mm512_maskz_loadu_ps(first_lanes(d - i), x + i), _mm512_set1_ps(factor));
        _mm256_mask_storeu_epi16(codes + i, first_lanes((d + 1) / 2 * 2 - i),
                                 _mm512_cvtepi32_epi16(code));
    }
    return scale;
}

/* Transposes 16 vectors of 16 dwords. */
TARGET INLINE void transpose16(__m512i *v)
{
    __m512i a[16], b[16];
    EACH (i, 8) {
        a[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
    EACH (i, 8) { /* two of every four columns of rows from 4 * (i / 2) on */
        const int at = i / 2 * 4 + i % 2;
        b[2 * i] = _mm512_unpacklo_epi64(a[at], a[at + 2]);
        b[2 * i + 1] = _mm512_unpackhi_epi64(a[at], a[at + 2]);
    }
    /* b[4 * i + c]: 128-bit lane l has column 4 * l + c of rows 4 * i .. 4 * i + 3 */
    EACH (c, 4) {
        __m512i low01 = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88);
        __m512i high01 = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
        __m512i low23 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88);
        __m512i high23 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
        v[c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
        v[8 + c] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
        v[4 + c] = _mm512_shuffle_i32x4(high01, high23, 0x88);
        v[12 + c] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
    }
}

/* 32 elements of a row from i on as 16 pairs of codes: pair 2l + c of the first 16 elements is
 * dword 4l + c, of the second 16 dword 4l + 2 + c. */
TARGET INLINE __m512i pairs_of(int64_t d, const float *x, int64_t i, __m512 factor)
{
    __m512i low = codes16(_mm512_maskz_loadu_ps(first_lanes(d - i), x + i), factor);
    __m512i high = _mm512_setzero_si512();
    if (i + 16 < d)
        high = codes16(_mm512_maskz_loadu_ps(first_lanes(d - i - 16), x + i + 16), factor);
    return _mm512_packs_epi32(low, high);
}

TARGET static void keys_avx512(int64_t d, const float *x, int64_t pad, char *group)
{
    _Alignas(64) float factor[GROUP];
    const int64_t n_pairs = (d + 1) / 2;
    __m512 factors;
    _mm512_storeu_ps(engine_attn_scales(group), key_scales16(group_largest(d, x, pad), &factors));
    _mm512_store_ps(factor, factors);
    const __mmask16 zero = _mm512_cmp_ps_mask(factors, _mm512_setzero_ps(), _CMP_EQ_OQ);
    for (int64_t i = 0; i < d; i += 32) {
        __m512i v[GROUP];
        EACH (r, GROUP) v[r] = pairs_of(d, x + r * pad, i, _mm512_set1_ps(factor[r]));
        transpose16(v);
        EACH (j, GROUP) {
            const int64_t pair = i / 2 + j / 4 * 2 + j % 2 + (j % 4 < 2 ? 0 : 8);
            if (pair < n_pairs)
                _mm512_storeu_si512(engine_attn_codes(group) + pair * 2 * GROUP,
                                    _mm512_maskz_mov_epi32(~zero, v[j]));
        }
    }
}

TARGET static void values_avx512(int64_t dv, const float *x, int64_t pad, char *group)
{
    _Alignas(64) float factor[GROUP];
    int16_t *codes = engine_attn_codes(group);
    __m512 factors;
    _mm512_storeu_ps(engine_attn_scales(group),
                     value_scales16(group_largest(dv, x, pad), &factors));
    _mm512_store_ps(factor, factors);
    for (int r = 0; r < GROUP; r += 2) {
        const __m512 even = _mm512_set1_ps(factor[r]), odd = _mm512_set1_ps(factor[r + 1]);
        for (int64_t i = 0; i < dv; i += 16, codes += 2 * GROUP) {
            const __mmask16 mask = first_lanes(dv - i);
            __m512i a = codes16(_mm512_maskz_loadu_ps(mask, x + r * pad + i), even);
            __m512i b = codes16(_mm512_maskz_loadu_ps(mask, x + (r + 1) * pad + i), odd);
            _mm512_storeu_si512(codes,
                                _mm512_mask_mov_epi16(a, 0xaaaaaaaa, _mm512_slli_epi32(b, 16)));
        }
    }
}

/* ---- Scores ---- */

/* Adds the sums of a block of elements to the tile's scores; is_first, is_last: the first or last
 * block of a key. */
TARGET INLINE void put_scores(const char *group, int64_t bytes, const float *offset,
                              struct engine_attn_tile *tile, int64_t at,
                              __m512i sum[ENGINE_ATTN_ROWS][4], int nr, int ng, bool is_first,
                              bool is_last)
{
    EACH (g, ng) {
        const __m512 scale = _mm512_loadu_ps(engine_attn_scales(group + g * bytes));
        const __m512 add = _mm512_loadu_ps(offset + at + GROUP * g);
        EACH (r, nr) {
            float *to = tile->t[r] + at + GROUP * g;
            __m512 s = _mm512_cvtepi32_ps(sum[r][g]);
            if (!is_first) s = _mm512_add_ps(_mm512_load_ps(to), s);
            if (is_last)
                s = _mm512_fmadd_ps(_mm512_mul_ps(s, scale), _mm512_set1_ps(tile->query_scale[r]),
                                    add);
            _mm512_store_ps(to, s);
        }
    }
}

/* Scores of nr queries with ng groups of keys, from key `at` on. */
TARGET INLINE void scores_tile(int64_t n_pairs, const char *group, int64_t bytes,
                               const float *offset, struct engine_attn_tile *tile, int64_t at,
                               struct engine_attn_prefetch *prefetch, int nr, int ng)
{
    const int16_t *keys = engine_attn_codes(group), *query[ENGINE_ATTN_ROWS];
    EACH (r, nr) query[r] = tile->query[r];
    for (int64_t first = 0; first < n_pairs; first += PAIRS) {
        const int64_t end = first + PAIRS < n_pairs ? first + PAIRS : n_pairs;
        __m512i sum[ENGINE_ATTN_ROWS][4];
        EACH (r, nr)
            EACH (g, ng) sum[r][g] = _mm512_setzero_si512();
        for (int64_t i = first; i < end; i++) {
            __m512i k[4];
            if (prefetch && !tile->to_l1) engine_attn_prefetch_step(tile, prefetch, ng);
            EACH (g, ng) {
                k[g] = _mm512_loadu_si512(keys + g * (bytes / 2) + i * 2 * GROUP);
                if (prefetch && tile->to_l1) engine_attn_prefetch_step(tile, prefetch, 1);
            }
            EACH (r, nr) {
                __m512i q = broadcast_pair(query[r] + 2 * i);
                EACH (g, ng) mad_pairs(&sum[r][g], k[g], q);
            }
        }
        if (first == 0 && end == n_pairs)
            put_scores(group, bytes, offset, tile, at, sum, nr, ng, true, true);
        else if (first == 0)
            put_scores(group, bytes, offset, tile, at, sum, nr, ng, true, false);
        else
            put_scores(group, bytes, offset, tile, at, sum, nr, ng, false, end == n_pairs);
    }
}

TARGET INLINE void scores_rows(int64_t d, int64_t first, int64_t end, const char *keys,
                               const float *offset, struct engine_attn_tile *tile, bool prefetches,
                               int nr)
{
    const int64_t bytes = engine_attn_key_bytes(d), n_pairs = (d + 1) / 2;
    struct engine_attn_prefetch all = engine_attn_prefetch(tile, 0, (end - first) * n_pairs);
    struct engine_attn_prefetch *prefetch = prefetches ? &all : NULL;
    int64_t g = first;
    for (; g + 4 <= end; g += 4)
        scores_tile(n_pairs, keys + g * bytes, bytes, offset, tile, GROUP * g, prefetch, nr, 4);
    for (; g < end; g++)
        scores_tile(n_pairs, keys + g * bytes, bytes, offset, tile, GROUP * g, prefetch, nr, 1);
}

TARGET INLINE void scores_any(int64_t d, int64_t first, int64_t end, const char *keys,
                              const float *offset, struct engine_attn_tile *tile, bool prefetches)
{
    ENGINE_ATTN_BY_ROWS(tile->n_rows, scores_rows, d, first, end, keys, offset, tile, prefetches);
}

/* Loops without prefetches are separate, because the test alone takes a tenth of the time. */
TARGET static void scores_avx512(int64_t d, int64_t first, int64_t end, const char *keys,
                                 const float *offset, struct engine_attn_tile *tile)
{
    if (tile->ahead_bytes)
        scores_any(d, first, end, keys, offset, tile, true);
    else
        scores_any(d, first, end, keys, offset, tile, false);
}

/* ---- Weights ---- */

TARGET static void offsets_avx512(int64_t dv, int64_t n_groups, const char *values, float *offset,
                                  float *inverse)
{
    for (int64_t g = 0; g < n_groups; g++, values += engine_attn_value_bytes(dv)) {
        const __m512i scale = _mm512_loadu_si512(values);
        const __m512 number = _mm512_castsi512_ps(scale);
        const __mmask16 not_finite = _mm512_cmp_ps_mask(number, number, _CMP_UNORD_Q);
        const __m512 power = _mm512_cvtepi32_ps(
            _mm512_sub_epi32(_mm512_srli_epi32(scale, 23), _mm512_set1_epi32(127)));
        _mm512_storeu_ps(offset + GROUP * g, _mm512_mask_mov_ps(power, not_finite, number));
        _mm512_storeu_si512(inverse + GROUP * g,
                            _mm512_sub_epi32(_mm512_set1_epi32(0x7f000000), scale));
    }
}

/* Parameters of the weights of a query and sub-block: the lower limit of t, c - 126, and the
 * shift. */
struct exponents {
    _Alignas(64) float min_t[ENGINE_ATTN_ROWS][ENGINE_ATTN_SUBS];
    _Alignas(64) float shift[ENGINE_ATTN_ROWS][ENGINE_ATTN_SUBS];
};

/* A mask of the keys among the 16 from j on that are in the query's range. */
TARGET INLINE __mmask16 range_mask(const struct engine_attn_tile *tile, int64_t r, int64_t j)
{
    const int64_t lo = tile->lo[r] - j, hi = tile->hi[r] - j;
    const __mmask16 below = lo > 0 ? first_lanes(lo) : 0, up = hi > 0 ? first_lanes(hi) : 0;
    return (__mmask16)(up & ~below);
}

/* The largest elements of 16 vectors without NaN; lane r is that of vector r. */
TARGET INLINE __m512 largest16(const __m512 *v)
{
    __m512 a[8], b[4], e[2];
    EACH (i, 8)
        a[i] = _mm512_max_ps(_mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]),
                             _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]));
    EACH (i, 4) {
        const __m512d x = _mm512_castps_pd(a[2 * i]), y = _mm512_castps_pd(a[2 * i + 1]);
        b[i] = _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                             _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
    }
    EACH (i, 2)
        e[i] = _mm512_max_ps(_mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0x88),
                             _mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0xdd));
    return _mm512_max_ps(_mm512_shuffle_f32x4(e[0], e[1], 0x88),
                         _mm512_shuffle_f32x4(e[0], e[1], 0xdd));
}

/* The largest t, at least -ENGINE_ATTN_LIMIT, of each sub-block of rows r and r + 1; after the last
 * row it is computed twice. */
TARGET INLINE __m512 largest_of(const struct engine_attn_tile *tile, int64_t r, int64_t first,
                                int64_t end, bool all)
{
    __m512 v[2 * ENGINE_ATTN_SUBS];
    EACH (i, 2 * ENGINE_ATTN_SUBS) {
        const int64_t row = r + 1 < tile->n_rows ? r + i / ENGINE_ATTN_SUBS : r;
        const int64_t s = i % ENGINE_ATTN_SUBS;
        v[i] = _mm512_set1_ps(-ENGINE_ATTN_LIMIT);
        if (s < first || s >= end) continue;
        /* VMAXPS returns the second operand if the first is NaN. */
        UNROLL
        for (int64_t j = SUB * s; j < SUB * (s + 1); j += 16)
            v[i] = all ? _mm512_max_ps(_mm512_load_ps(tile->t[row] + j), v[i])
                       : _mm512_mask_max_ps(v[i], range_mask(tile, row, j),
                                            _mm512_load_ps(tile->t[row] + j), v[i]);
    }
    return largest16(v);
}

/* Sets the exponents of rows r and r + 1. */
TARGET INLINE void set_exponents(struct engine_attn_tile *tile, int64_t r, __m512 largest,
                                 struct exponents *exponents)
{
    const __m512 c = _mm512_roundscale_ps(largest, 0x0a); /* up */
    /* C, in all lanes of the row's half */
    __m512 max_c = _mm512_max_ps(c, _mm512_shuffle_f32x4(c, c, 0xb1));
    max_c = _mm512_max_ps(max_c, _mm512_permute_ps(max_c, 0x4e));
    max_c = _mm512_max_ps(max_c, _mm512_permute_ps(max_c, 0xb1));
    const __m512 low = _mm512_set1_ps(-127.0f), high = _mm512_set1_ps(127.0f);
    const __m512 power = _mm512_max_ps(_mm512_sub_ps(c, max_c), low);
    const __m512i scale = _mm512_slli_epi32(_mm512_cvtps_epi32(_mm512_add_ps(power, high)), 23);
    const __mmask16 not_finite =
        _mm512_cmp_ps_mask(c, _mm512_set1_ps(ENGINE_ATTN_LIMIT), _CMP_GT_OQ);
    const __m512 c_or_nan = _mm512_mask_mov_ps(c, not_finite, _mm512_set1_ps(NAN));
    const __m512 bits = _mm512_set1_ps(ENGINE_ATTN_WEIGHT_BITS);
    _mm512_storeu_si512(tile->scale[r], scale);
    _mm512_store_ps(exponents->min_t[r], _mm512_sub_ps(c_or_nan, _mm512_set1_ps(126.0f)));
    _mm512_store_ps(exponents->shift[r], _mm512_sub_ps(_mm512_set1_ps(ENGINE_ATTN_MAGIC),
                                                       _mm512_sub_ps(c_or_nan, bits)));
    const __m512 base = _mm512_sub_ps(max_c, bits);
    tile->base[r] = _mm512_cvtss_f32(base);
    tile->base[r + 1] = _mm256_cvtss_f32(_mm512_extractf32x8_ps(base, 1));
}

/* Computes the weights of n <= 2 sub-blocks of keys from SUB * s on and adds them to the row's
 * lanes. Each operation is done for all vectors before the next one, because otherwise independent
 * instructions are too far apart for the out-of-order window. */
TARGET INLINE __m512 sub_weights(struct engine_attn_tile *tile, int64_t r,
                                 const struct exponents *exponents, const float *inverse, int64_t s,
                                 int n, bool all, __m512 total)
{
    static const float powers[] = ENGINE_ATTN_POWERS;
    const int64_t at = SUB * s;
    EACH (i, n) engine_attn_weights_prefetch(tile, r, s + i);
    __m512 x[4], step[4], rest[4], w[4], lane[2];
    EACH (i, 2 * n) {
        x[i] = _mm512_loadu_ps(tile->t[r] + at + 16 * i);
        if (!all) /* any number */
            x[i] = _mm512_maskz_mov_ps(range_mask(tile, r, at + 16 * i), x[i]);
    }
    EACH (i, 2 * n) x[i] = _mm512_max_ps(_mm512_set1_ps(exponents->min_t[r][s + i / 2]), x[i]);
    EACH (i, 2 * n) step[i] = _mm512_add_ps(x[i], _mm512_set1_ps(exponents->shift[r][s + i / 2]));
    EACH (i, 2 * n)
        rest[i] = _mm512_sub_ps(step[i], _mm512_set1_ps(exponents->shift[r][s + i / 2]));
    EACH (i, 2 * n) rest[i] = _mm512_sub_ps(x[i], rest[i]);
    EACH (i, 2 * n) w[i] = _mm512_set1_ps(powers[0]);
    UNROLL
    for (int k = 1; k < 5; k++)
        EACH (i, 2 * n) w[i] = _mm512_fmadd_ps(w[i], rest[i], _mm512_set1_ps(powers[k]));
    EACH (i, 2 * n) {
        const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(step[i]), 23);
        w[i] = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(w[i]), exponent));
        if (!all) w[i] = _mm512_maskz_mov_ps(range_mask(tile, r, at + 16 * i), w[i]);
    }
    EACH (i, 2 * n) {
        const __m512i code = _mm512_cvtps_epi32(w[i]); /* 2^31 for NaN */
        _mm256_storeu_si256((__m256i *)(tile->codes[r] + at + 16 * i), _mm512_cvtepi32_epi16(code));
    }
    EACH (i, 2 * n) {
        const __mmask16 in_range = all ? 0xffff : range_mask(tile, r, at + 16 * i);
        const __m512 factor = _mm512_maskz_loadu_ps(in_range, inverse + at + 16 * i);
        lane[i / 2] =
            i % 2 ? _mm512_fmadd_ps(w[i], factor, lane[i / 2]) : _mm512_mul_ps(w[i], factor);
    }
    EACH (i, n) total = _mm512_fmadd_ps(lane[i], _mm512_set1_ps(tile->scale[r][s + i]), total);
    return total;
}

/* lane[i] += lane[i + h] for h = 8, 4, 2, 1. */
TARGET INLINE float sum_tree(__m512 v)
{
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

TARGET INLINE __m512 row_weights(struct engine_attn_tile *tile, int64_t r,
                                 const struct exponents *exponents, const float *inverse,
                                 int64_t first, int64_t end, bool all)
{
    __m512 total = _mm512_setzero_ps();
    int64_t s = first;
    for (; s + 2 <= end; s += 2) total = sub_weights(tile, r, exponents, inverse, s, 2, all, total);
    if (s < end) total = sub_weights(tile, r, exponents, inverse, s, 1, all, total);
    return total;
}

/* In one row each operation depends on the one before it, so exponents are computed for all rows
 * before the weights. */
TARGET INLINE void tile_weights(int64_t first, int64_t end, const float *inverse,
                                struct engine_attn_tile *tile, bool all)
{
    struct exponents exponents;
    for (int64_t r = 0; r < tile->n_rows; r += 2)
        set_exponents(tile, r, largest_of(tile, r, first, end, all), &exponents);
    for (int64_t r = 0; r < tile->n_rows; r++)
        tile->sum[r] = sum_tree(row_weights(tile, r, &exponents, inverse, first, end, all));
}

TARGET static void weights_avx512(int64_t first, int64_t end, const float *inverse,
                                  struct engine_attn_tile *tile)
{
    bool all = true;
    for (int64_t r = 0; r < tile->n_rows; r++)
        all &= tile->lo[r] <= SUB * first && tile->hi[r] >= SUB * end;
    if (all)
        tile_weights(first, end, inverse, tile, true);
    else
        tile_weights(first, end, inverse, tile, false);
}

/* ---- Sums ---- */

/* Sums of nr rows for nv vectors of 16 elements, from element `at` on, in registers. */
TARGET INLINE void sums_tile(int64_t dv, int64_t first, int64_t end, const char *values,
                             const struct engine_attn_tile *tile, float *const *o, int64_t at,
                             __mmask16 last, struct engine_attn_prefetch *prefetch, int nr, int nv)
{
    const int64_t pad = (dv + 15) / 16 * 16, bytes = engine_attn_value_bytes(dv);
    __m512 total[ENGINE_ATTN_ROWS][4];
    EACH (r, nr)
        EACH (d, nv)
            total[r][d] = _mm512_maskz_loadu_ps(d + 1 < nv ? 0xffff : last, o[r] + at + 16 * d);
    values += 2 * bytes * first;
    for (int64_t s = first; s < end; s++, values += 2 * bytes) {
        __m512i sum[ENGINE_ATTN_ROWS][4];
        EACH (r, nr)
            EACH (d, nv) sum[r][d] = _mm512_setzero_si512();
        for (int i = 0; i < SUB; i += 2) {
            const char *group = values + i / GROUP * bytes;
            const int16_t *v = engine_attn_codes(group) + 2 * at + i % GROUP * pad;
            __m512i row[4];
            if (prefetch && !tile->to_l1) engine_attn_prefetch_step(tile, prefetch, nv);
            EACH (d, nv) {
                row[d] = _mm512_loadu_si512(v + 32 * d);
                if (prefetch && tile->to_l1) engine_attn_prefetch_step(tile, prefetch, 1);
            }
            EACH (r, nr) {
                __m512i w = broadcast_pair(tile->codes[r] + SUB * s + i);
                EACH (d, nv) mad_pairs(&sum[r][d], row[d], w);
            }
        }
        EACH (r, nr)
            EACH (d, nv)
                total[r][d] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][d]),
                                              _mm512_set1_ps(tile->scale[r][s]), total[r][d]);
    }
    EACH (r, nr)
        EACH (d, nv)
            _mm512_mask_storeu_ps(o[r] + at + 16 * d, d + 1 < nv ? 0xffff : last, total[r][d]);
}

TARGET INLINE void sums_rows(int64_t dv, int64_t first, int64_t end, const char *values,
                             const struct engine_attn_tile *tile, float *const *o, bool prefetches,
                             int nr)
{
    struct engine_attn_prefetch all = engine_attn_prefetch(
        tile, engine_attn_weights_bytes(tile), (end - first) * ((dv + 15) / 16) * (SUB / 2));
    struct engine_attn_prefetch *prefetch = prefetches ? &all : NULL;
    int64_t d = 0;
    /* If values come from memory, rows are read 64 elements at a time, although the totals of more
     * than three queries then exceed the registers. From the cache, tiles of six queries (prompts)
     * are faster with 32. */
    for (; (prefetches || nr <= 5) && d + 64 <= dv; d += 64)
        sums_tile(dv, first, end, values, tile, o, d, 0xffff, prefetch, nr, 4);
    for (; d + 32 <= dv; d += 32)
        sums_tile(dv, first, end, values, tile, o, d, 0xffff, prefetch, nr, 2);
    for (; d < dv; d += 16)
        sums_tile(dv, first, end, values, tile, o, d, first_lanes(dv - d), prefetch, nr, 1);
}

TARGET INLINE void sums_any(int64_t dv, int64_t first, int64_t end, const char *values,
                            const struct engine_attn_tile *tile, float *const *o, bool prefetches)
{
    ENGINE_ATTN_BY_ROWS(tile->n_rows, sums_rows, dv, first, end, values, tile, o, prefetches);
}

TARGET static void sums_avx512(int64_t dv, int64_t first, int64_t end, const char *values,
                               const struct engine_attn_tile *tile, float *const *o)
{
    if (tile->ahead_bytes)
        sums_any(dv, first, end, values, tile, o, true);
    else
        sums_any(dv, first, end, values, tile, o, false);
}

/* ---- Gathering ---- */

/* The scales of a group, and each pair of elements of its keys, are a vector, in which the keys of
 * each source are permuted at once. Prefetches of the sources' next lines gain nothing. */
TARGET static void gather_keys_avx512(int64_t d, const char *cache, int64_t stride,
                                      const int32_t *slot, int64_t n, char *group, int64_t at)
{
    const char *source[GROUP];
    __mmask16 to[GROUP];
    const __mmask16 all = (__mmask16)(first_lanes(n) << at);
    const __m512i row =
        _mm512_maskz_expand_epi32(all, _mm512_maskz_loadu_epi32(first_lanes(n), slot));
    int n_sources = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && slot[end] / GROUP == slot[i] / GROUP;) end++;
        source[n_sources] = cache + slot[i] / GROUP * stride;
        to[n_sources++] = (__mmask16)((first_lanes(end - i) << i) << at);
    }
    for (int64_t i = 0; i < engine_attn_key_bytes(d); i += 64) {
        __m512i v = _mm512_loadu_si512(group + i);
        for (int s = 0; s < n_sources; s++)
            v = _mm512_mask_permutexvar_epi32(v, to[s], row, _mm512_loadu_si512(source[s] + i));
        _mm512_storeu_si512(group + i, v);
    }
}

/* Each element of two values is a lane. */
TARGET static void gather_values_avx512(int64_t dv, const char *cache, int64_t stride,
                                        const int32_t *slot, int64_t n, char *group, int64_t at)
{
    const int64_t pad = (dv + 15) / 16 * 16;
    for (int64_t k = 0; k < n; k++, at++) {
        const char *from = cache + slot[k] / GROUP * stride;
        const int row = slot[k] % GROUP;
        const int16_t *s = engine_attn_codes(from) + row / 2 * 2 * pad;
        int16_t *to = engine_attn_codes(group) + at / 2 * 2 * pad;
        const __mmask32 half = at % 2 ? 0xaaaaaaaa : 0x55555555;
        const __m512i turn = _mm512_set1_epi32((row ^ at) % 2 ? 16 : 0);
        engine_attn_scales(group)[at] = engine_attn_scales(from)[row];
        for (int64_t i = 0; i < 2 * pad; i += 32)
            _mm512_storeu_si512(
                to + i, _mm512_mask_mov_epi16(_mm512_loadu_si512(to + i), half,
                                              _mm512_rolv_epi32(_mm512_loadu_si512(s + i), turn)));
    }
}

const struct engine_attn engine_attn_avx512 = {
    .row = row_avx512,
    .keys = keys_avx512,
    .values = values_avx512,
    .offsets = offsets_avx512,
    .scores = scores_avx512,
    .weights = weights_avx512,
    .sums = sums_avx512,
    .gather_keys = gather_keys_avx512,
    .gather_values = gather_values_avx512,
};
