/* quant/x86/grid_fit_avx512.c: the search of quant/encode/grid_fit.h with AVX-512; the same bits
 * as grid_fit.c. */
#define FIT_TARGET CPU_TARGET_AVX512
#define FIT_BYTES  64
#include "quant/encode/grid_lanes.inc"
#include "quant/encode/vector_fit.h"
#include <immintrin.h>

/* The elements of table[16 * n] at `place`, n 4 or 6. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 look_up(const __m512 *table, int n, __m512i place)
{
    const __m512 a = _mm512_permutex2var_ps(table[0], place, table[1]);
    const __m512 b = _mm512_permutex2var_ps(table[2], place, table[3]);
    const __mmask16 past_a = _mm512_cmpgt_epi32_mask(place, _mm512_set1_epi32(31));
    const __m512 ab = _mm512_mask_mov_ps(a, past_a, b);
    if (n == 4) return ab;
    const __m512 c = _mm512_permutex2var_ps(table[4], place, table[5]);
    return _mm512_mask_mov_ps(ab, _mm512_cmpgt_epi32_mask(place, _mm512_set1_epi32(63)), c);
}

/* Sets a bit for each of 16 * n first halves that, with the best second half (`min`), have a
 * smaller error than `best`. */
CPU_TARGET_AVX512 QUANT_INLINE void mark_lists(const __m512 *first, int n, __m512 min, float best,
                                               uint64_t marked[2])
{
    marked[0] = marked[1] = 0;
    EACH (i, n)
        marked[i / 4] |= (uint64_t)_mm512_cmp_ps_mask(_mm512_add_ps(first[i], min),
                                                      _mm512_set1_ps(best), _CMP_LT_OQ)
                         << i % 4 * 16;
}

/* Reads lists 16 entries at a time; among equally good entries the first is selected, as in the
 * scalar search. */
CPU_TARGET_AVX512 QUANT_INLINE float search_n(const struct quant_grid *grid, int n,
                                              const struct quant_grid_sums *t, float scale,
                                              float limit, uint16_t *entry)
{
    const struct units u = units_of(scale, limit);
    const __m512 ratio = _mm512_set1_ps(u.ratio);
    __m512 first[6], second[6], min = _mm512_set1_ps(INFINITY);
    float one[QUANT_GRID_HALVES];
    EACH (i, n) {
        second[i] = _mm512_sub_ps(_mm512_loadu_ps(t->vv[1] + 16 * i),
                                  _mm512_mul_ps(ratio, _mm512_loadu_ps(t->xv[1] + 16 * i)));
        first[i] = _mm512_sub_ps(_mm512_loadu_ps(t->vv[0] + 16 * i),
                                 _mm512_mul_ps(ratio, _mm512_loadu_ps(t->xv[0] + 16 * i)));
        _mm512_storeu_ps(one + 16 * i, first[i]);
        min = _mm512_min_ps(second[i], min);
    }
    min = _mm512_set1_ps(_mm512_reduce_min_ps(min));
    float best = first_best(grid, t, u, *entry);
    uint64_t marked[2], still[2];
    mark_lists(first, n, min, best, marked);
    EACH (half, (n + 3) / 4)
        while (marked[half]) {
            const int l = 64 * half + __builtin_ctzll(marked[half]), end = grid->first[l + 1];
            marked[half] &= marked[half] - 1;
            for (int at = grid->first[l]; at < end; at += 16) {
                const __m512i place =
                    _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(grid->second + at)));
                const __mmask16 some = (__mmask16)(end - at >= 16 ? 0xffff : (1 << (end - at)) - 1);
                const __m512 sum = _mm512_add_ps(_mm512_set1_ps(one[l]), look_up(second, n, place));
                const __mmask16 better =
                    _mm512_mask_cmp_ps_mask(some, sum, _mm512_set1_ps(best), _CMP_LT_OQ);
                if (!better) continue;
                best = _mm512_mask_reduce_min_ps(better, sum);
                const __mmask16 found =
                    _mm512_mask_cmp_ps_mask(better, sum, _mm512_set1_ps(best), _CMP_EQ_OQ);
                *entry = grid->listed[at + __builtin_ctz(found)];
                mark_lists(first, n, min, best, still);
                EACH (i, 2) marked[i] &= still[i];
            }
        }
    return error_in(u, best);
}

CPU_TARGET_AVX512 static float search(const struct quant_grid *grid,
                                      const struct quant_grid_sums *t, float scale, float limit,
                                      uint16_t *entry)
{
    return grid->n_halves <= 64 ? search_n(grid, 4, t, scale, limit, entry)
                                : search_n(grid, 6, t, scale, limit, entry);
}

const struct quant_grid_level quant_grid_avx512 = GRID_LEVEL;

const struct quant_search quant_search_avx512 = {&quant_fit_avx512, &quant_grid_avx512,
                                                 quant_vector_search_avx512};
