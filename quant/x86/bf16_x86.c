/* quant/x86/bf16_x86.c: the kernels of BF16 (quant/float/bf16.c) for x86-64. */
#include "quant/x86/lanes_x86.h"
#include "quant/x86/types_x86.h"

static const struct quant_lanes_form lanes_form = {.step = 32, .w_bytes = 2, .x_bytes = 2};

/* ---- With ordinary fma ----
 *
 * The tree that adds the lanes is ordinary float arithmetic with subnormals, so MXCSR is changed
 * only while the lanes are summed. These loops store the lanes to memory and are not inlined,
 * because compilers do not model MXCSR and might move arithmetic across its change. */

/* The lanes of four rows. */
typedef void lanes_of_four(int64_t k, const struct quant_row_group *group, const uint8_t *row,
                           const uint8_t *x, float lanes[4][16]);

CPU_TARGET_AVX2 QUANT_INLINE __m256 pairs_avx2(__m256 lanes, const uint8_t *w, const uint8_t *x)
{
    const __m256i odd = _mm256_set1_epi32((int)0xffff0000);
    __m256i wv = _mm256_loadu_si256((const __m256i *)w),
            xv = _mm256_loadu_si256((const __m256i *)x);
    lanes = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(wv, odd)),
                            _mm256_castsi256_ps(_mm256_and_si256(xv, odd)), lanes);
    return _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(wv, 16)),
                           _mm256_castsi256_ps(_mm256_slli_epi32(xv, 16)), lanes);
}

CPU_TARGET_AVX2 QUANT_INLINE void four_avx2(int64_t k, const struct quant_row_group *group,
                                            const uint8_t *row, const uint8_t *x,
                                            float lanes[4][16])
{
    __m256 low[4], high[4];
    for (int r = 0; r < 4; r++) low[r] = high[r] = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 32 <= k; i += 32) {
        quant_group_prefetch_adjacent(group, row + 2 * i, (size_t)i * 2, 64);
        for (size_t r = 0; r < 4; r++) {
            const uint8_t *w = quant_group_row(group, row + 2 * i, r, (size_t)i * 2);
            quant_group_prefetch_strided(group, w, 64);
            quant_group_prefetch_listed(group, r, (size_t)i * 2, 64);
            low[r] = pairs_avx2(low[r], w, x + 2 * i);
            high[r] = pairs_avx2(high[r], w + 32, x + 2 * i + 32);
        }
    }
    if (i < k) {
        uint16_t w_tail[32], x_tail[32] = {0};
        memcpy(x_tail, x + 2 * i, (size_t)(k - i) * 2);
        for (size_t r = 0; r < 4; r++) {
            memset(w_tail, 0, sizeof w_tail);
            memcpy(w_tail, quant_group_row(group, row + 2 * i, r, (size_t)i * 2),
                   (size_t)(k - i) * 2);
            low[r] = pairs_avx2(low[r], (uint8_t *)w_tail, (uint8_t *)x_tail);
            high[r] = pairs_avx2(high[r], (uint8_t *)(w_tail + 16), (uint8_t *)(x_tail + 16));
        }
    }
    for (int r = 0; r < 4; r++) {
        _mm256_storeu_ps(lanes[r], low[r]);
        _mm256_storeu_ps(lanes[r] + 8, high[r]);
    }
}

CPU_TARGET_AVX512 QUANT_INLINE void four_avx512(int64_t k, const struct quant_row_group *group,
                                                const uint8_t *row, const uint8_t *x,
                                                float lanes[4][16])
{
    const __m512i odd = _mm512_set1_epi32((int)0xffff0000);
    __m512 sum[4];
    for (int r = 0; r < 4; r++) sum[r] = _mm512_setzero_ps();
    for (int64_t i = 0; i < k; i += 32) {
        __mmask32 live = k - i >= 32 ? 0xffffffff : (1u << (k - i)) - 1;
        __m512i xv = _mm512_maskz_loadu_epi16(live, x + 2 * i);
        __m512 x_odd = _mm512_castsi512_ps(_mm512_and_si512(xv, odd));
        __m512 x_even = _mm512_castsi512_ps(_mm512_slli_epi32(xv, 16));
        quant_group_prefetch_adjacent(group, row + 2 * i, (size_t)i * 2, 64);
        for (size_t r = 0; r < 4; r++) {
            const uint8_t *w = quant_group_row(group, row + 2 * i, r, (size_t)i * 2);
            quant_group_prefetch_strided(group, w, 64);
            quant_group_prefetch_listed(group, r, (size_t)i * 2, 64);
            __m512i wv = _mm512_maskz_loadu_epi16(live, w);
            sum[r] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(wv, odd)), x_odd, sum[r]);
            sum[r] =
                _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(wv, 16)), x_even, sum[r]);
        }
    }
    for (int r = 0; r < 4; r++) _mm512_storeu_ps(lanes[r], sum[r]);
}

/* lanes_LEVEL has four_LEVEL inlined for each way in which rows follow each other. */
#define LANES_OF_FOUR(LEVEL, TARGET)                                                               \
    TARGET __attribute__((noinline)) static void lanes_##LEVEL(                                    \
        int64_t k, const struct quant_row_group *group, const uint8_t *row, const uint8_t *x,      \
        float lanes[4][16])                                                                        \
    {                                                                                              \
        const struct quant_row_group listed = {.n = 4, .list = group->list, .next = group->next},  \
                                     adjacent = {.n = 4,                                           \
                                                 .adjacent_rows = true,                            \
                                                 .row_stride = group->row_stride},                 \
                                     strided = {.n = 4,                                            \
                                                .row_stride = group->row_stride,                   \
                                                .distance = group->distance};                      \
        if (group->list)                                                                           \
            four_##LEVEL(k, &listed, row, x, lanes);                                               \
        else if (group->adjacent_rows)                                                             \
            four_##LEVEL(k, &adjacent, row, x, lanes);                                             \
        else                                                                                       \
            four_##LEVEL(k, &strided, row, x, lanes);                                              \
    }
LANES_OF_FOUR(avx2, CPU_TARGET_AVX2)
LANES_OF_FOUR(avx512, CPU_TARGET_AVX512)

/* Constants of a gemv, for all groups of rows. */
struct product {
    lanes_of_four *lanes;
    int64_t k;
    const uint8_t *x;
};

static void four_rows(const void *product, const struct quant_row_group *group, const uint8_t *row,
                      float *sum)
{
    const struct product *p = product;
    const unsigned saved = _mm_getcsr();
    float lanes[4][16];
    _mm_setcsr(QUANT_BF16_MXCSR);
    p->lanes(p->k, group, row, p->x, lanes);
    _mm_setcsr(saved);
    for (int i = 0; i < 4; i++) sum[i] = quant_lanes_tree(lanes[i]);
}

static void gemv_by_fma(lanes_of_four *lanes, int64_t k, const struct quant_rows *rows,
                        const struct quant_act *a, float *out)
{
    const struct product product = {lanes, k, (const uint8_t *)a->bf16};
    quant_gemv_by_groups(QUANT_LANES_ROWS, rows->order == QUANT_ROWS_LISTED, four_rows, &product,
                         rows, out);
}

static void gemv_avx2(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                      float *out)
{
    gemv_by_fma(lanes_avx2, k, rows, a, out);
}

static void gemv_avx512(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                        float *out)
{
    gemv_by_fma(lanes_avx512, k, rows, a, out);
}

/* ---- With the instruction ---- */

CPU_TARGET_AVX512BF16 QUANT_INLINE __m512 step_avx512bf16(__m512 lanes, const uint8_t *w,
                                                          const uint8_t *x, int n)
{
    __mmask32 live = n >= 32 ? 0xffffffff : (1u << n) - 1;
    return _mm512_dpbf16_ps(lanes, (__m512bh)_mm512_maskz_loadu_epi16(live, w),
                            (__m512bh)_mm512_maskz_loadu_epi16(live, x));
}

CPU_TARGET_AVX512BF16 static void gemv_avx512bf16(int64_t k, const struct quant_rows *rows,
                                                  const struct quant_act *a, float *out)
{
    const void *column = a->bf16;
    quant_lanes_gemv_avx512(lanes_form, step_avx512bf16, k, rows, 1, &column, &out);
}

CPU_TARGET_AVX512BF16 static void gemv_few_avx512bf16(int64_t k, const struct quant_rows *rows,
                                                      int n_columns, const struct quant_act *a,
                                                      float *const *out)
{
    const void *column[QUANT_FEW_COLUMNS] = {0};
    for (int c = 0; c < n_columns; c++) column[c] = a[c].bf16;
    quant_lanes_gemv_few_avx512(lanes_form, step_avx512bf16, k, rows, n_columns, column, out);
}

const struct quant_kernel quant_x86_bf16[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {.gemv = gemv_avx2, .reads_lists = true, .rows_per_step = QUANT_LANES_ROWS},
    [CPU_AVX512] = {.gemv = gemv_avx512, .reads_lists = true, .rows_per_step = QUANT_LANES_ROWS},
    [CPU_AVX512BF16] = {.gemv = gemv_avx512bf16,
                        .reads_lists = true,
                        .gemv_few = gemv_few_avx512bf16,
                        .few_columns = QUANT_FEW_COLUMNS,
                        .rows_per_step = QUANT_LANES_ROWS},
};
