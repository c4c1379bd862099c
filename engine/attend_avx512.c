/* engine/attend_avx512.c: attention in integers with AVX-512 and VNNI. VPDPWSSD multiplies pairs of
 * codes of 16 keys (or 16 elements of values) by one pair of a query (or of its weights), which is
 * broadcast. The functions that take constant arguments are inlined once per case. Twin of
 * attend_scalar.c, bit for bit. */
#include "engine/attend.h"
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,avx2,f16c")))
#define INLINE static inline __attribute__((always_inline))
/* Accumulators become registers only where every loop over them is unrolled. */
#define UNROLL _Pragma("GCC unroll 16")

enum { GROUP = ENGINE_ATTEND_GROUP, PAIRS = ENGINE_ATTEND_DIMS / 2 };

TARGET INLINE __mmask16 live_of(int64_t n)
{
    return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1);
}

TARGET INLINE __m512i broadcast_pair(const int16_t *pair)
{
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return _mm512_set1_epi32(both);
}

/* acc + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] per lane, in the accumulator's own register: through
 * the intrinsic, gcc 12 moves the 24 accumulators of a tile about, and to memory, at every step. */
TARGET INLINE void mad_pairs(__m512i *acc, __m512i a, __m512i b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(*acc) : "v"(a), "v"(b));
}

/* ---- Codes ---- */

TARGET INLINE __m512i magnitude(__m512 x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

/* Scales of 16 rows by the bits of their largest magnitudes, and their factors. */
TARGET INLINE __m512 scales16(__m512i largest, int most, __m512 *factor)
{
    const __mmask16 wild = _mm512_cmpge_epi32_mask(largest, _mm512_set1_epi32(0x7f800000));
    const __mmask16 tiny = _mm512_cmplt_epi32_mask(largest, _mm512_set1_epi32(27 << 23));
    const __mmask16 plain = (__mmask16) ~(wild | tiny);
    const __m512 c = _mm512_set1_ps((float)most), m = _mm512_castsi512_ps(largest);
    *factor = _mm512_maskz_div_ps(plain, c, m);
    return _mm512_mask_mov_ps(_mm512_maskz_div_ps(plain, m, c), wild,
                              _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

/* Codes in the lower halves of 32-bit integers. Where the factor is 0, x may be infinite or NaN:
 * then the conversion gives 2^31, whose lower half is the 0 that is wanted. */
TARGET INLINE __m512i codes16(__m512 x, __m512 factor)
{
    return _mm512_cvtps_epi32(_mm512_mul_ps(x, factor));
}

/* The largest magnitudes of 16 vectors, vector r's in lane r. */
TARGET INLINE __m512i reduce16(const __m512i *v)
{
    __m512i a[8], b[4], e[2];
    UNROLL
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_max_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    UNROLL
    for (int i = 0; i < 4; i++)
        b[i] = _mm512_max_epi32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    UNROLL
    for (int i = 0; i < 2; i++)
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
            _mm512_max_epi32(largest, magnitude(_mm512_maskz_loadu_ps(live_of(n - i), x + i)));
    return largest;
}

/* Scales of a group's rows to *scale, their factors to factor[16]; returns the rows whose codes
 * must be 0. */
TARGET INLINE __mmask16 group_factors(int64_t n, const float *x, int64_t pad, float *scale,
                                      float *factor)
{
    __m512i largest[GROUP];
    __m512 factors;
    UNROLL
    for (int r = 0; r < GROUP; r++) largest[r] = row_largest(n, x + r * pad);
    _mm512_storeu_ps(scale, scales16(reduce16(largest), ENGINE_ATTEND_CACHE_MAX, &factors));
    _mm512_storeu_ps(factor, factors);
    return _mm512_cmp_ps_mask(factors, _mm512_setzero_ps(), _CMP_EQ_OQ);
}

TARGET static float row_avx512(int64_t d, const float *x, int most, int16_t *codes)
{
    float factor, scale;
    uint32_t largest = (uint32_t)_mm512_reduce_max_epi32(row_largest(d, x));
    scale = engine_attend_scale(largest, most, &factor);
    for (int64_t i = 0; i < d; i += 16) {
        __m512i code =
            codes16(_mm512_maskz_loadu_ps(live_of(d - i), x + i), _mm512_set1_ps(factor));
        _mm256_mask_storeu_epi16(codes + i, live_of((d + 1) / 2 * 2 - i),
                                 _mm512_cvtepi32_epi16(code));
    }
    return scale;
}

/* 16 vectors of 16 dwords become their columns. */
TARGET INLINE void transpose16(__m512i *v)
{
    __m512i a[16], b[16];
    UNROLL
    for (int i = 0; i < 8; i++) {
        a[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 8; i++) { /* of rows 4 * (i / 2) and on: two columns of each four */
        const int at = i / 2 * 4 + i % 2;
        b[2 * i] = _mm512_unpacklo_epi64(a[at], a[at + 2]);
        b[2 * i + 1] = _mm512_unpackhi_epi64(a[at], a[at + 2]);
    }
    /* b[4 * i + c]: column c of each four, those of 128-bit lane l, of rows 4 * i .. 4 * i + 3 */
    UNROLL
    for (int c = 0; c < 4; c++) {
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

/* 32 elements of a row from i on as 16 pairs of codes: pair 2l + c of either 16 elements is dword
 * 4l + c, that of the second ones 4l + 2 + c. */
TARGET INLINE __m512i pairs_of(int64_t d, const float *x, int64_t i, __m512 factor)
{
    __m512i low = codes16(_mm512_maskz_loadu_ps(live_of(d - i), x + i), factor);
    __m512i high = _mm512_setzero_si512();
    if (i + 16 < d) high = codes16(_mm512_maskz_loadu_ps(live_of(d - i - 16), x + i + 16), factor);
    return _mm512_packs_epi32(low, high);
}

TARGET static void keys_avx512(int64_t d, const float *x, int64_t pad, char *group)
{
    _Alignas(64) float factor[GROUP];
    const int64_t n_pairs = (d + 1) / 2;
    const __mmask16 zero = group_factors(d, x, pad, engine_attend_scales(group), factor);
    for (int64_t i = 0; i < d; i += 32) {
        __m512i v[GROUP];
        UNROLL
        for (int r = 0; r < GROUP; r++)
            v[r] = pairs_of(d, x + r * pad, i, _mm512_set1_ps(factor[r]));
        transpose16(v);
        UNROLL
        for (int j = 0; j < GROUP; j++) {
            const int64_t pair = i / 2 + j / 4 * 2 + j % 2 + (j % 4 < 2 ? 0 : 8);
            if (pair < n_pairs)
                _mm512_storeu_si512(engine_attend_codes(group) + pair * 2 * GROUP,
                                    _mm512_maskz_mov_epi32(~zero, v[j]));
        }
    }
}

TARGET static void values_avx512(int64_t dv, const float *x, int64_t pad, char *group)
{
    _Alignas(64) float factor[GROUP];
    int16_t *codes = engine_attend_codes(group);
    (void)group_factors(dv, x, pad, engine_attend_scales(group), factor);
    for (int r = 0; r < GROUP; r += 2) {
        const __m512 even = _mm512_set1_ps(factor[r]), odd = _mm512_set1_ps(factor[r + 1]);
        for (int64_t i = 0; i < dv; i += 16, codes += 2 * GROUP) {
            const __mmask16 live = live_of(dv - i);
            __m512i a = codes16(_mm512_maskz_loadu_ps(live, x + r * pad + i), even);
            __m512i b = codes16(_mm512_maskz_loadu_ps(live, x + (r + 1) * pad + i), odd);
            _mm512_storeu_si512(codes,
                                _mm512_mask_mov_epi16(a, 0xaaaaaaaa, _mm512_slli_epi32(b, 16)));
        }
    }
}

/* ---- Scores ---- */

/* nr queries by ng groups of keys. */
TARGET INLINE void scores_tile(int64_t d, const char *group, const int16_t *const *query,
                               const float *query_scale, float *const *out, int64_t at, int nr,
                               int ng)
{
    const int64_t n_pairs = (d + 1) / 2, bytes = engine_attend_key_bytes(d);
    const int16_t *keys = engine_attend_codes(group);
    for (int64_t first = 0; first < n_pairs; first += PAIRS) {
        const int64_t end = first + PAIRS < n_pairs ? first + PAIRS : n_pairs;
        __m512i sum[ENGINE_ATTEND_ROWS][4];
        UNROLL
        for (int r = 0; r < nr; r++) UNROLL
        for (int g = 0; g < ng; g++) sum[r][g] = _mm512_setzero_si512();
        for (int64_t i = first; i < end; i++) {
            __m512i k[4];
            UNROLL
            for (int g = 0; g < ng; g++)
                k[g] = _mm512_loadu_si512(keys + g * (bytes / 2) + i * 2 * GROUP);
            UNROLL
            for (int r = 0; r < nr; r++) {
                __m512i q = broadcast_pair(query[r] + 2 * i);
                UNROLL
                for (int g = 0; g < ng; g++) mad_pairs(&sum[r][g], k[g], q);
            }
        }
        UNROLL
        for (int r = 0; r < nr; r++) UNROLL
        for (int g = 0; g < ng; g++) {
            float *to = out[r] + at + GROUP * g;
            __m512 s = _mm512_cvtepi32_ps(sum[r][g]);
            if (first) s = _mm512_add_ps(_mm512_loadu_ps(to), s);
            if (end == n_pairs)
                s = _mm512_mul_ps(
                    _mm512_mul_ps(s, _mm512_loadu_ps(engine_attend_scales(group + g * bytes))),
                    _mm512_set1_ps(query_scale[r]));
            _mm512_storeu_ps(to, s);
        }
    }
}

TARGET INLINE void scores_rows(int64_t d, int64_t n_groups, const char *keys,
                               const int16_t *const *query, const float *query_scale,
                               float *const *out, int nr)
{
    const int64_t bytes = engine_attend_key_bytes(d);
    int64_t g = 0;
    for (; g + 4 <= n_groups; g += 4)
        scores_tile(d, keys + g * bytes, query, query_scale, out, GROUP * g, nr, 4);
    for (; g < n_groups; g++)
        scores_tile(d, keys + g * bytes, query, query_scale, out, GROUP * g, nr, 1);
}

TARGET static void scores_avx512(int64_t d, int64_t n_groups, const char *keys, int n_rows,
                                 const int16_t *const *query, const float *query_scale,
                                 float *const *out)
{
    if (n_rows == 6) scores_rows(d, n_groups, keys, query, query_scale, out, 6);
    if (n_rows == 5) scores_rows(d, n_groups, keys, query, query_scale, out, 5);
    if (n_rows == 4) scores_rows(d, n_groups, keys, query, query_scale, out, 4);
    if (n_rows == 3) scores_rows(d, n_groups, keys, query, query_scale, out, 3);
    if (n_rows == 2) scores_rows(d, n_groups, keys, query, query_scale, out, 2);
    if (n_rows == 1) scores_rows(d, n_groups, keys, query, query_scale, out, 1);
}

/* ---- Weights and sums ---- */

TARGET INLINE __m512 weight16(const float *p, const float *value_scale)
{
    const __m512 x = _mm512_loadu_ps(p);
    const __mmask16 some = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    return _mm512_maskz_mul_ps(some, x, _mm512_loadu_ps(value_scale));
}

TARGET static void weights_avx512(int64_t dv, int64_t n_sub, const char *values, const float *p,
                                  int16_t *codes, float *scale)
{
    const int64_t bytes = engine_attend_value_bytes(dv);
    for (int64_t first = 0; first < n_sub; first += 16) {
        const int64_t n = n_sub - first < 16 ? n_sub - first : 16;
        _Alignas(64) float factor[16];
        __m512i largest[16];
        __m512 factors;
        for (int64_t s = 0; s < n; s++) {
            const float *own = p + ENGINE_ATTEND_SUB * (first + s);
            const char *v = values + 2 * (first + s) * bytes;
            largest[s] =
                _mm512_max_epi32(magnitude(weight16(own, engine_attend_scales(v))),
                                 magnitude(weight16(own + 16, engine_attend_scales(v + bytes))));
        }
        for (int64_t s = n; s < 16; s++) largest[s] = _mm512_setzero_si512();
        _mm512_mask_storeu_ps(scale + first, live_of(n),
                              scales16(reduce16(largest), ENGINE_ATTEND_WEIGHT_MAX, &factors));
        _mm512_store_ps(factor, factors);
        for (int64_t s = 0; s < n; s++)
            for (int i = 0; i < ENGINE_ATTEND_SUB; i += 16) {
                const int64_t at = ENGINE_ATTEND_SUB * (first + s) + i;
                const float *value_scale = engine_attend_scales(values + at / GROUP * bytes);
                __m512i code = codes16(weight16(p + at, value_scale), _mm512_set1_ps(factor[s]));
                _mm256_storeu_si256((__m256i *)(codes + at), _mm512_cvtepi32_epi16(code));
            }
    }
}

/* nr rows by nv vectors of 16 elements, from the element `at` on. */
TARGET INLINE void sums_tile(int64_t dv, int64_t n_sub, const char *values,
                             const int16_t *const *codes, const float *const *scale,
                             float *const *o, int64_t at, __mmask16 last, int nr, int nv)
{
    const int64_t pad = (dv + 15) / 16 * 16, bytes = engine_attend_value_bytes(dv);
    for (int64_t s = 0; s < n_sub; s++, values += 2 * bytes) {
        __m512i sum[ENGINE_ATTEND_ROWS][4];
        UNROLL
        for (int r = 0; r < nr; r++) UNROLL
        for (int d = 0; d < nv; d++) sum[r][d] = _mm512_setzero_si512();
        for (int i = 0; i < ENGINE_ATTEND_SUB; i += 2) {
            const char *group = values + i / GROUP * bytes;
            const int16_t *v = engine_attend_codes(group) + 2 * at + i % GROUP * pad;
            __m512i row[4];
            UNROLL
            for (int d = 0; d < nv; d++) row[d] = _mm512_loadu_si512(v + 32 * d);
            UNROLL
            for (int r = 0; r < nr; r++) {
                __m512i w = broadcast_pair(codes[r] + ENGINE_ATTEND_SUB * s + i);
                UNROLL
                for (int d = 0; d < nv; d++) mad_pairs(&sum[r][d], row[d], w);
            }
        }
        UNROLL
        for (int r = 0; r < nr; r++) UNROLL
        for (int d = 0; d < nv; d++) {
            const __mmask16 live = d + 1 < nv ? 0xffff : last;
            float *to = o[r] + at + 16 * d;
            __m512 old = _mm512_maskz_loadu_ps(live, to);
            _mm512_mask_storeu_ps(
                to, live,
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][d]), _mm512_set1_ps(scale[r][s]), old));
        }
    }
}

TARGET INLINE void sums_rows(int64_t dv, int64_t n_sub, const char *values,
                             const int16_t *const *codes, const float *const *scale,
                             float *const *o, int nr)
{
    int64_t d = 0;
    for (; d + 64 <= dv; d += 64) sums_tile(dv, n_sub, values, codes, scale, o, d, 0xffff, nr, 4);
    for (; d < dv; d += 16)
        sums_tile(dv, n_sub, values, codes, scale, o, d, live_of(dv - d), nr, 1);
}

TARGET static void sums_avx512(int64_t dv, int64_t n_sub, const char *values, int n_rows,
                               const int16_t *const *codes, const float *const *scale,
                               float *const *o)
{
    if (n_rows == 6) sums_rows(dv, n_sub, values, codes, scale, o, 6);
    if (n_rows == 5) sums_rows(dv, n_sub, values, codes, scale, o, 5);
    if (n_rows == 4) sums_rows(dv, n_sub, values, codes, scale, o, 4);
    if (n_rows == 3) sums_rows(dv, n_sub, values, codes, scale, o, 3);
    if (n_rows == 2) sums_rows(dv, n_sub, values, codes, scale, o, 2);
    if (n_rows == 1) sums_rows(dv, n_sub, values, codes, scale, o, 1);
}

const struct engine_attend engine_attend_avx512 = {
    .row = row_avx512,
    .keys = keys_avx512,
    .values = values_avx512,
    .scores = scores_avx512,
    .weights = weights_avx512,
    .sums = sums_avx512,
};
#endif
