/* quant/x86/super_sum_x86.c: adds the values of super-blocks to the sums of their rows, for the
 * AVX-512 gemv of super-blocks (quant/x86/super_gemv.h). */
#include "quant/x86/super_gemv.h"

/* Four rows, one in each lane. */
SUPER_AVX512 void super_sum_four(int64_t n, const float *value, float *out)
{
    __m128 acc = _mm_loadu_ps(out);
    for (int64_t j = 0; j < n; j += SUPER_STEP) {
        const float *v = value + j;
        __m128 a = _mm_loadu_ps(v), b = _mm_loadu_ps(v + n);
        __m128 c = _mm_loadu_ps(v + 2 * n), d = _mm_loadu_ps(v + 3 * n);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        acc = _mm_add_ps(acc, a);
        if (j + 1 < n) acc = _mm_add_ps(acc, b);
        if (j + 2 < n) acc = _mm_add_ps(acc, c);
        if (j + 3 < n) acc = _mm_add_ps(acc, d);
    }
    _mm_storeu_ps(out, acc);
}

CPU_TARGET_AVX512 void quant_x86_super_sum(int64_t n, int64_t n_rows, const float *value,
                                           float *out)
{
    int64_t r = 0;
    for (; r + SUPER_STEP <= n_rows; r += SUPER_STEP) super_sum_four(n, value + r * n, out + r);
    for (; r < n_rows; r++)
        for (int64_t j = 0; j < n; j++) out[r] += value[r * n + j];
}
