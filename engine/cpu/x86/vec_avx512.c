/* engine/cpu/x86/vec_avx512.c: the sixteen-wide operations of vec_scalar.c as AVX-512 instructions,
 * with mask registers for the tails. Results have the same bits (see vec_avx2.c). Called only
 * through the table. */
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>

#define VEC_TARGET CPU_TARGET_AVX512
#define VEC_FN     static inline __attribute__((always_inline)) VEC_TARGET
#define VEC_ENTRY  static VEC_TARGET

typedef __m512 v16;
typedef __mmask16 m16;

VEC_FN __m512i int_of(v16 x)
{
    return _mm512_castps_si512(x);
}

VEC_FN v16 v_of_int(__m512i x)
{
    return _mm512_castsi512_ps(x);
}

/* ---- Memory ---- */

VEC_FN __mmask16 tail_mask(int n)
{
    return (__mmask16)((1u << n) - 1);
}

VEC_FN v16 v_set(float x)
{
    return _mm512_set1_ps(x);
}

VEC_FN v16 v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

VEC_FN v16 v_load_n(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(tail_mask(n), p);
}

VEC_FN v16 v_load_half(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

VEC_FN v16 v_load_half_n(const uint16_t *p, int n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(tail_mask(n), p));
}

VEC_FN void v_store(float *p, v16 x)
{
    _mm512_storeu_ps(p, x);
}

VEC_FN void v_store_n(float *p, v16 x, int n)
{
    _mm512_mask_storeu_ps(p, tail_mask(n), x);
}

VEC_FN void v_load_pairs(const float *p, v16 *a, v16 *b)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512 x = _mm512_loadu_ps(p), y = _mm512_loadu_ps(p + 16);
    *a = _mm512_permutex2var_ps(x, even, y);
    *b = _mm512_permutex2var_ps(x, odd, y);
}

VEC_FN void v_store_pairs(float *p, v16 a, v16 b)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    _mm512_storeu_ps(p, _mm512_permutex2var_ps(a, low, b));
    _mm512_storeu_ps(p + 16, _mm512_permutex2var_ps(a, high, b));
}

/* ---- Arithmetic ---- */

#define V_BINARY(name)                                                                             \
    VEC_FN v16 v_##name(v16 a, v16 b)                                                              \
    {                                                                                              \
        return _mm512_##name##_ps(a, b);                                                           \
    }
V_BINARY(add)
V_BINARY(sub)
V_BINARY(mul)
V_BINARY(div)
V_BINARY(max)
V_BINARY(min)

VEC_FN v16 v_sqrt(v16 a)
{
    return _mm512_sqrt_ps(a);
}

VEC_FN v16 v_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

VEC_FN m16 v_lt(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

VEC_FN v16 v_pick(m16 m, v16 yes, v16 no)
{
    return _mm512_mask_blend_ps(m, no, yes);
}

/* ---- Floats as 32-bit integers ---- */

VEC_FN v16 v_and_bits(v16 a, uint32_t bits)
{
    return v_of_int(_mm512_and_si512(int_of(a), _mm512_set1_epi32((int)bits)));
}

VEC_FN v16 v_xor_bits(v16 a, uint32_t bits)
{
    return v_of_int(_mm512_xor_si512(int_of(a), _mm512_set1_epi32((int)bits)));
}

VEC_FN v16 v_or(v16 a, v16 b)
{
    return v_of_int(_mm512_or_si512(int_of(a), int_of(b)));
}

VEC_FN v16 v_add_bits(v16 a, v16 b)
{
    return v_of_int(_mm512_add_epi32(int_of(a), int_of(b)));
}

VEC_FN v16 v_shl_bits(v16 a, int n)
{
    return v_of_int(_mm512_slli_epi32(int_of(a), (unsigned)n));
}

/* ---- Trees ---- */

VEC_FN __m256 high_half(v16 a)
{
    return _mm512_extractf32x8_ps(a, 1);
}

VEC_FN float v_sum_tree(v16 a)
{
    const __m256 x8 = _mm256_add_ps(_mm512_castps512_ps256(a), high_half(a));
    const __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    const __m128 x2 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x2, _mm_movehdup_ps(x2)));
}

VEC_FN float v_max_tree(v16 a)
{
    const __m256 x8 = _mm256_max_ps(high_half(a), _mm512_castps512_ps256(a));
    const __m128 x4 = _mm_max_ps(_mm256_extractf128_ps(x8, 1), _mm256_castps256_ps128(x8));
    const __m128 x2 = _mm_max_ps(_mm_movehl_ps(x4, x4), x4);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(x2), x2));
}

#include "engine/cpu/isa/vec_kernels.inc"

void engine_vec_fill_avx512(struct engine_vec *vec)
{
    vec_fill(vec);
}
