/* engine/cpu/x86/vec_avx2.c: the sixteen-wide operations of vec_scalar.c as pairs of AVX2
 * registers.
 *
 * Results have the same bits, because VMAXPS, VMINPS and the ordered compare have the NaN rules of
 * the scalar code, and FMA and F16C its rounding. Called only through the table. */
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <string.h>

#define VEC_TARGET CPU_TARGET_AVX2
#define VEC_FN     static inline __attribute__((always_inline)) VEC_TARGET
#define VEC_ENTRY  static VEC_TARGET

typedef struct {
    __m256 low, high; /* lanes 0-7, 8-15 */
} v16;
typedef v16 m16; /* all ones or all zeros in each lane */

/* Reinterprets integers as a v16. */
VEC_FN v16 v_of_int(__m256i low, __m256i high)
{
    return (v16){_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)};
}

VEC_FN __m256i int_of(__m256 x)
{
    return _mm256_castps_si256(x);
}

/* ---- Memory ---- */

/* Masks for the first n lanes start at entry 16 - n. */
static const int32_t first_lanes[32] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                        -1, -1, -1, -1, -1, -1, -1, -1};

VEC_FN __m256i tail_mask(int n, int half)
{
    return _mm256_loadu_si256((const __m256i *)(first_lanes + 16 - n + 8 * half));
}

VEC_FN v16 v_set(float x)
{
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

VEC_FN v16 v_load(const float *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

VEC_FN v16 v_load_n(const float *p, int n)
{
    const __m256 low = _mm256_maskload_ps(p, tail_mask(n, 0));
    return (v16){low, n > 8 ? _mm256_maskload_ps(p + 8, tail_mask(n, 1)) : _mm256_setzero_ps()};
}

VEC_FN v16 v_load_half(const uint16_t *p)
{
    const __m128i *at = (const __m128i *)(const void *)p;
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
}

VEC_FN v16 v_load_half_n(const uint16_t *p, int n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, (size_t)n * sizeof *p);
    return v_load_half(padded);
}

VEC_FN void v_store(float *p, v16 x)
{
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
}

VEC_FN void v_store_n(float *p, v16 x, int n)
{
    _mm256_maskstore_ps(p, tail_mask(n, 0), x.low);
    if (n > 8) _mm256_maskstore_ps(p + 8, tail_mask(n, 1), x.high);
}

/* Splits sixteen elements into even and odd ones, each in order. */
VEC_FN void split_pairs(const float *p, __m256 *even, __m256 *odd)
{
    const __m256 x = _mm256_loadu_ps(p), y = _mm256_loadu_ps(p + 8);
    const __m256 e = _mm256_shuffle_ps(x, y, 0x88); /* x0 x2 y0 y2 | x4 x6 y4 y6 */
    const __m256 o = _mm256_shuffle_ps(x, y, 0xdd);
    *even = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(e), 0xd8));
    *odd = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(o), 0xd8));
}

VEC_FN void v_load_pairs(const float *p, v16 *a, v16 *b)
{
    split_pairs(p, &a->low, &b->low);
    split_pairs(p + 16, &a->high, &b->high);
}

VEC_FN void join_pairs(float *p, __m256 even, __m256 odd)
{
    const __m256 x = _mm256_unpacklo_ps(even, odd); /* pairs 0 1 | 4 5 */
    const __m256 y = _mm256_unpackhi_ps(even, odd); /* pairs 2 3 | 6 7 */
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(x, y, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(x, y, 0x31));
}

VEC_FN void v_store_pairs(float *p, v16 a, v16 b)
{
    join_pairs(p, a.low, b.low);
    join_pairs(p + 16, a.high, b.high);
}

/* ---- Arithmetic ---- */

#define V_BINARY(name)                                                                             \
    VEC_FN v16 v_##name(v16 a, v16 b)                                                              \
    {                                                                                              \
        return (v16){_mm256_##name##_ps(a.low, b.low), _mm256_##name##_ps(a.high, b.high)};        \
    }
V_BINARY(add)
V_BINARY(sub)
V_BINARY(mul)
V_BINARY(div)
V_BINARY(max)
V_BINARY(min)
V_BINARY(or)

VEC_FN v16 v_sqrt(v16 a)
{
    return (v16){_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)};
}

VEC_FN v16 v_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

VEC_FN m16 v_lt(v16 a, v16 b)
{
    return (m16){_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ),
                 _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}

VEC_FN v16 v_pick(m16 m, v16 yes, v16 no)
{
    return (v16){_mm256_blendv_ps(no.low, yes.low, m.low),
                 _mm256_blendv_ps(no.high, yes.high, m.high)};
}

/* ---- Floats as 32-bit integers ---- */

VEC_FN v16 v_and_bits(v16 a, uint32_t bits)
{
    const __m256 b = _mm256_castsi256_ps(_mm256_set1_epi32((int)bits));
    return (v16){_mm256_and_ps(a.low, b), _mm256_and_ps(a.high, b)};
}

VEC_FN v16 v_xor_bits(v16 a, uint32_t bits)
{
    const __m256 b = _mm256_castsi256_ps(_mm256_set1_epi32((int)bits));
    return (v16){_mm256_xor_ps(a.low, b), _mm256_xor_ps(a.high, b)};
}

VEC_FN v16 v_add_bits(v16 a, v16 b)
{
    return v_of_int(_mm256_add_epi32(int_of(a.low), int_of(b.low)),
                    _mm256_add_epi32(int_of(a.high), int_of(b.high)));
}

VEC_FN v16 v_shl_bits(v16 a, int n)
{
    return v_of_int(_mm256_slli_epi32(int_of(a.low), n), _mm256_slli_epi32(int_of(a.high), n));
}

/* ---- Trees ---- */

VEC_FN float v_sum_tree(v16 a)
{
    const __m256 x8 = _mm256_add_ps(a.low, a.high);
    const __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    const __m128 x2 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x2, _mm_movehdup_ps(x2)));
}

/* VMAXPS returns its second operand unless the first is larger, so the lower lane is second. */
VEC_FN float v_max_tree(v16 a)
{
    const __m256 x8 = _mm256_max_ps(a.high, a.low);
    const __m128 x4 = _mm_max_ps(_mm256_extractf128_ps(x8, 1), _mm256_castps256_ps128(x8));
    const __m128 x2 = _mm_max_ps(_mm_movehl_ps(x4, x4), x4);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(x2), x2));
}

#include "engine/cpu/isa/vec_kernels.inc"

void engine_vec_fill_avx2(struct engine_vec *vec)
{
    vec_fill(vec);
}
