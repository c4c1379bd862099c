/* quant/x86/grid_fit_avx2.c: the search of quant/encode/grid_fit.h with AVX2; the same bits as
 * grid_fit.c. */
#define FIT_TARGET CPU_TARGET_AVX2
#define FIT_BYTES  32
#include "quant/encode/grid_lanes.inc"
#include "quant/encode/vector_fit.h"
#include <immintrin.h>

CPU_TARGET_AVX2 static inline __m256 errors_of(const struct quant_grid_sums *t, int half, int i,
                                               __m256 ratio)
{
    return _mm256_sub_ps(_mm256_loadu_ps(t->vv[half] + i),
                         _mm256_mul_ps(ratio, _mm256_loadu_ps(t->xv[half] + i)));
}

/* One comparison with the best entry so far selects the lists to read, of eight. A list that a
 * later best entry would exclude has no better entry, so the result is the same. */
CPU_TARGET_AVX2 static float search(const struct quant_grid *grid, const struct quant_grid_sums *t,
                                    float scale, float limit, uint16_t *entry)
{
    const struct units u = units_of(scale, limit);
    const __m256 ratio = _mm256_set1_ps(u.ratio);
    float first[8], second[QUANT_GRID_HALVES];
    __m256 min = _mm256_set1_ps(INFINITY);
    for (int i = 0; i < grid->n_halves; i += 8) {
        const __m256 e = errors_of(t, 1, i, ratio);
        _mm256_storeu_ps(second + i, e);
        min = _mm256_min_ps(e, min);
    }
    min = _mm256_min_ps(min, _mm256_permute2f128_ps(min, min, 1));
    min = _mm256_min_ps(min, _mm256_shuffle_ps(min, min, 0x4e));
    min = _mm256_min_ps(min, _mm256_shuffle_ps(min, min, 0xb1));
    float best = first_best(grid, t, u, *entry);
    for (int i = 0; i < grid->n_halves; i += 8) {
        const __m256 e = errors_of(t, 0, i, ratio);
        unsigned lists = (unsigned)_mm256_movemask_ps(
            _mm256_cmp_ps(_mm256_add_ps(e, min), _mm256_set1_ps(best), _CMP_LT_OQ));
        if (!lists) continue;
        _mm256_storeu_ps(first, e);
        for (; lists; lists &= lists - 1) {
            const int l = __builtin_ctz(lists);
            search_list(grid, i + l, first[l], second, &best, entry);
        }
    }
    return error_in(u, best);
}

const struct quant_grid_level quant_grid_avx2 = GRID_LEVEL;

const struct quant_search quant_search_avx2 = {&quant_fit_avx2, &quant_grid_avx2,
                                               quant_vector_search_avx2};
