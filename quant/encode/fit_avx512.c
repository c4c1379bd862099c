/* quant/encode/fit_avx512.c: the searches of quant/encode/fit.h with AVX-512; the same bits as
 * fit.c. */
#define FIT_TARGET CPU_TARGET_AVX512
#define FIT_BYTES  64
#include "quant/encode/fit_lanes.inc"
#include <immintrin.h>

CPU_TARGET_AVX512 static void fit_sums(const struct quant_fit_grid *grid, const struct group *g,
                                       const lanes *inverse, const lanes *from, struct sums *out)
{
    const __m512 low = _mm512_set1_ps((float)grid->low), high = _mm512_set1_ps((float)grid->high);
    const __m512 shift = _mm512_set1_ps(QUANT_FIT_SHIFT);
    const __m512 times = _mm512_load_ps(inverse), more = _mm512_load_ps(from);
    __m512 v = _mm512_setzero_ps(), vv = v, vx = v;
    for (int i = 0; i < WIDTH; i++) {
        const __m512 x = _mm512_load_ps(&g->x[i]);
        const __m512 at = _mm512_mul_ps(_mm512_add_ps(x, more), times);
        __m512 value = low;
        if (!grid->codebook) {
            value = _mm512_min_ps(_mm512_max_ps(at, low), high);
            value = _mm512_sub_ps(_mm512_add_ps(value, shift), shift);
        }
        for (int j = 1; grid->codebook && j < 16; j++) {
            const __mmask16 past =
                _mm512_cmp_ps_mask(at, _mm512_set1_ps(middle_of(grid, j)), _CMP_GT_OQ);
            value = _mm512_mask_mov_ps(value, past, _mm512_set1_ps(grid->codebook[j]));
        }
        const __m512 wv = _mm512_mul_ps(_mm512_load_ps(&g->w[i]), value);
        v = _mm512_add_ps(v, wv);
        vv = _mm512_add_ps(vv, _mm512_mul_ps(wv, value));
        vx = _mm512_add_ps(vx, _mm512_mul_ps(wv, x));
    }
    _mm512_store_ps(&out->v, v);
    _mm512_store_ps(&out->vv, vv);
    _mm512_store_ps(&out->vx, vx);
}

const struct quant_fit quant_fit_avx512 = FIT_TABLE;
