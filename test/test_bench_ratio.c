/* test/test_bench_ratio.c: the estimate by which `infer bench --compare` says whether a difference
 * is more than noise (cli/out/bench.h). */
#include "test/support.h"

#include "cli/out/bench.h"
#include <stdlib.h>

static struct cli_bench_ratio ratio(const double *a, size_t n_a, const double *b, size_t n_b)
{
    struct cli_bench_ratio r = {0};
    struct base_error err = BASE_ERROR_INIT;
    assert_true(cli_bench_ratio_of(a, n_a, b, n_b, &r, &err));
    assert_true(r.known);
    return r;
}

static void equal_samples_have_ratio_one(void **state)
{
    (void)state;
    const double a[] = {98, 99, 100, 101, 102};
    const struct cli_bench_ratio r = ratio(a, 5, a, 5);
    assert_float_equal(r.before, 100, 1e-9);
    assert_float_equal(r.ratio, 1, 1e-9);
    assert_true(r.low < 1 && r.high > 1);
}

/* For 5 and 5 samples the third smallest and largest of the 25 ratios, as in tables of the test. */
static void the_interval_is_made_of_order_statistics(void **state)
{
    (void)state;
    const double a[] = {1, 1, 1, 1, 1}, b[] = {2, 3, 4, 5, 6};
    const struct cli_bench_ratio r = ratio(a, 5, b, 5);
    assert_float_equal(r.ratio, 4, 1e-9);
    assert_float_equal(r.low, 2, 1e-9); /* each ratio occurs five times */
    assert_float_equal(r.high, 6, 1e-9);
    const double c[] = {1, 2, 4, 8, 16}, d[] = {1e10};
    const struct cli_bench_ratio few = ratio(c, 5, d, 1); /* all ratios */
    assert_float_equal(few.low, 1e10 / 16, 1e-3);
    assert_float_equal(few.high, 1e10, 1e-3);
}

static void a_difference_above_the_noise_is_reported(void **state)
{
    (void)state;
    const double a[] = {98, 99, 100, 101, 102}, b[] = {118, 119, 120, 121, 122};
    const struct cli_bench_ratio r = ratio(a, 5, b, 5);
    assert_float_equal(r.ratio, 1.2, 1e-3);
    assert_true(r.low > 1.15 && r.high < 1.25);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of samples of one distribution about 5 % of the intervals lie beside 1; of 7 and 7 the order
 * statistics give at most 6 %. */
static void a_difference_within_the_noise_is_reported_as_noise(void **state)
{
    (void)state;
    enum { TRIES = 4000, N = 7 };
    uint64_t random = 1;
    int beside = 0;
    for (int t = 0; t < TRIES; t++) {
        double x[2][N];
        for (int i = 0; i < 2 * N; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const double u = (double)(random >> 11) * 0x1p-53;
            x[i / N][i % N] = 100 + 20 * u * u * u; /* skewed, as times are */
        }
        qsort(x[0], N, sizeof x[0][0], by_size);
        qsort(x[1], N, sizeof x[0][0], by_size);
        const struct cli_bench_ratio r = ratio(x[0], N, x[1], N);
        beside += r.low > 1 || r.high < 1;
    }
    assert_true(beside > TRIES * 2 / 100 && beside < TRIES * 7 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_samples_have_ratio_one),
        cmocka_unit_test(the_interval_is_made_of_order_statistics),
        cmocka_unit_test(a_difference_above_the_noise_is_reported),
        cmocka_unit_test(a_difference_within_the_noise_is_reported_as_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
