/* cli/out/bench_ratio.c: the statistics of `infer bench`: medians, and the ratio of two samples. */
#include "cli/out/bench.h"
#include <math.h>
#include <stdlib.h>

double cli_bench_median(const double *sorted, size_t n)
{
    return n ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 : 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void cli_bench_sort(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
}

bool cli_bench_ratio_of(const double *a, size_t n_a, const double *b, size_t n_b,
                        struct cli_bench_ratio *out, struct base_error *err)
{
    const size_t n = n_a * n_b;
    double *all = calloc(n ? n : 1, sizeof *all);
    if (!all) return base_fail(err, BASE_NO_MEMORY, "not enough memory to compare");
    for (size_t i = 0; i < n_a; i++)
        for (size_t k = 0; k < n_b; k++) all[i * n_b + k] = b[k] / a[i];
    cli_bench_sort(all, n);
    /* The k-th smallest and largest ratio, k by the normal approximation of the U statistic. */
    const double middle = (double)n / 2;
    const double spread = 1.96 * sqrt((double)n * (double)(n_a + n_b + 1) / 12);
    const size_t k = middle - spread >= 1 ? (size_t)(middle - spread) : 1;
    out->known = n > 0;
    if (n > 0) {
        out->before = cli_bench_median(a, n_a);
        out->ratio = cli_bench_median(all, n);
        out->low = all[k - 1];
        out->high = all[n - k];
    }
    free(all);
    return true;
}
