/* quant/x86/fit_avx2.c: the searches of quant/encode/fit.h with AVX2; the same bits as fit.c. */
#define FIT_TARGET CPU_TARGET_AVX2
#define FIT_BYTES  32
#include "quant/encode/fit_lanes.inc"
#include <immintrin.h>

FIT_INLINE void add_sums(const struct quant_fit_grid *grid, const struct group *g, bool weighted,
                         const int8_t *codebook, const lanes *inverse, const struct origin *from,
                         struct sums *out)
{
    const __m256 low = _mm256_set1_ps((float)grid->low), high = _mm256_set1_ps((float)grid->high);
    const __m256 shift = _mm256_set1_ps(QUANT_FIT_SHIFT);
    for (int h = 0; h < 2; h++) {
        const __m256 times = ((const __m256 *)inverse)[h];
        const __m256 more = from ? ((const __m256 *)&from->add)[h] : _mm256_setzero_ps();
        const __m256 back = from ? ((const __m256 *)&from->shift)[h] : shift;
        __m256 v = _mm256_setzero_ps(), vv = v, vx = v;
        for (int i = 0; i < g->depth; i++) {
            const __m256 x = ((const __m256 *)&g->x[i])[h];
            const __m256 at = _mm256_mul_ps(from ? _mm256_add_ps(x, more) : x, times);
            __m256 value = low;
            if (!codebook) {
                value = _mm256_min_ps(_mm256_max_ps(at, low), high);
                value = _mm256_sub_ps(_mm256_add_ps(value, shift), back);
            }
            for (int j = 1; codebook && j < grid->n_values; j++) {
                const __m256 past =
                    _mm256_cmp_ps(at, _mm256_set1_ps(middle_of(grid, j)), _CMP_GT_OQ);
                value = _mm256_blendv_ps(value, _mm256_set1_ps(codebook[j]), past);
            }
            __m256 wv = value;
            if (weighted) wv = _mm256_mul_ps(((const __m256 *)&g->w[i])[h], value);
            if (from) v = _mm256_add_ps(v, wv);
            vv = _mm256_add_ps(vv, _mm256_mul_ps(wv, value));
            vx = _mm256_add_ps(vx, _mm256_mul_ps(wv, x));
        }
        ((__m256 *)&out->v)[h] = v;
        ((__m256 *)&out->vv)[h] = vv;
        ((__m256 *)&out->vx)[h] = vx;
    }
}

const struct quant_fit quant_fit_avx2 = FIT_TABLE;
