/* quant/x86/fit_avx512.c: the searches of quant/encode/fit.h with AVX-512; the same bits as
 * fit.c. */
#define FIT_TARGET CPU_TARGET_AVX512
#define FIT_BYTES  64
#include "quant/encode/fit_lanes.inc"
#include <immintrin.h>

/* A codebook of up to 16 values, and the midpoint between each value and the previous one; infinity
 * after the last. */
struct book {
    __m512 value, middle;
};

CPU_TARGET_AVX512 static inline struct book book_of(const int8_t codebook[16], int n)
{
    const __m512i before = _mm512_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
    const __m512 value =
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)codebook)));
    const __m512 two = _mm512_add_ps(value, _mm512_permutexvar_ps(before, value));
    return (struct book){value,
                         _mm512_mask_mul_ps(_mm512_set1_ps(INFINITY), (__mmask16)((1u << n) - 1),
                                            _mm512_set1_ps(0.5f), two)};
}

/* The nearest value of a codebook: a binary search, bit by bit, for the last midpoint below x. */
CPU_TARGET_AVX512 static inline __m512 nearest_of(const struct book *book, __m512 x)
{
    __m512i number = _mm512_setzero_si512();
    EACH (i, 4) {
        const __m512i next = _mm512_or_si512(number, _mm512_set1_epi32(8 >> i));
        const __m512 middle = _mm512_permutexvar_ps(next, book->middle);
        number = _mm512_mask_mov_epi32(number, _mm512_cmp_ps_mask(x, middle, _CMP_GT_OQ), next);
    }
    return _mm512_permutexvar_ps(number, book->value);
}

/* The nearest value of a longer codebook. */
CPU_TARGET_AVX512 static inline __m512 nearest_in(const struct quant_fit_grid *grid, __m512 x)
{
    __m512 value = _mm512_set1_ps((float)grid->low);
    for (int j = 1; j < grid->n_values; j++) {
        const __mmask16 past =
            _mm512_cmp_ps_mask(x, _mm512_set1_ps(middle_of(grid, j)), _CMP_GT_OQ);
        value = _mm512_mask_mov_ps(value, past, _mm512_set1_ps((float)grid->codebook[j]));
    }
    return value;
}

FIT_INLINE void add_sums(const struct quant_fit_grid *grid, const struct group *g, bool weighted,
                         const int8_t *codebook, const lanes *inverse, const struct origin *from,
                         struct sums *out)
{
    const __m512 low = _mm512_set1_ps((float)grid->low), high = _mm512_set1_ps((float)grid->high);
    const __m512 shift = _mm512_set1_ps(QUANT_FIT_SHIFT);
    const __m512 back = from ? _mm512_load_ps(&from->shift) : shift;
    const __m512 times = _mm512_load_ps(inverse);
    const __m512 more = from ? _mm512_load_ps(&from->add) : _mm512_setzero_ps();
    struct book book = {low, low};
    if (codebook && grid->n_values <= 16) book = book_of(codebook, grid->n_values);
    __m512 v = _mm512_setzero_ps(), vv = v, vx = v;
    for (int i = 0; i < g->depth; i++) {
        const __m512 x = _mm512_load_ps(&g->x[i]);
        const __m512 at = _mm512_mul_ps(from ? _mm512_add_ps(x, more) : x, times);
        __m512 value = low;
        if (!codebook) {
            value = _mm512_min_ps(_mm512_max_ps(at, low), high);
            value = _mm512_sub_ps(_mm512_add_ps(value, shift), back);
        }
        if (codebook) value = grid->n_values <= 16 ? nearest_of(&book, at) : nearest_in(grid, at);
        __m512 wv = value;
        if (weighted) wv = _mm512_mul_ps(_mm512_load_ps(&g->w[i]), value);
        if (from) v = _mm512_add_ps(v, wv);
        vv = _mm512_add_ps(vv, _mm512_mul_ps(wv, value));
        vx = _mm512_add_ps(vx, _mm512_mul_ps(wv, x));
    }
    _mm512_store_ps(&out->v, v);
    _mm512_store_ps(&out->vv, vv);
    _mm512_store_ps(&out->vx, vx);
}

const struct quant_fit quant_fit_avx512 = FIT_TABLE;
