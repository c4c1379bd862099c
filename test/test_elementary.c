/* test/test_elementary.c: the functions of base/elementary.h are exact nearly to the last bit, and
 * have the same bits everywhere. */
#include "test/support.h"

#include "base/elementary.h"
#include "test/support_random.h"
#include <math.h>
#include <string.h>

static double between(uint64_t *state, double low, double high)
{
    return low + (high - low) * ((double)(support_random(state) >> 11) * 0x1p-53);
}

/* |got - exact| in units in the last place of `exact`. */
static double units(double got, long double exact)
{
    const double near = fabs((double)exact);
    return (double)fabsl((long double)got - exact) / (nextafter(near, INFINITY) - near);
}

static void results_are_exact_to_the_last_place(void **state)
{
    (void)state;
    uint64_t seed = 1;
    double exp_error = 0, log_error = 0, pow_error = 0, sin_error = 0, cos_error = 0;
    for (int i = 0; i < 50000; i++) {
        const double x = between(&seed, -700, 700), y = between(&seed, 0, 1) * exp2(i % 40 - 20);
        exp_error = fmax(exp_error, units(base_exp(x), expl(x)));
        if (fabs(y - 1) > 0.1) log_error = fmax(log_error, units(base_log(y), logl(y)));
        const double base = between(&seed, 1, 1e7), power = between(&seed, -4, 4);
        pow_error = fmax(pow_error, units(base_pow(base, power), powl(base, power)));
        const double angle = between(&seed, -1, 1) * exp2(i % 29);
        sin_error = fmax(sin_error, units(base_sin(angle), sinl(angle)));
        cos_error = fmax(cos_error, units(base_cos(angle), cosl(angle)));
    }
    assert_true(exp_error < 4 && log_error < 4);
    assert_true(pow_error < 2 && sin_error < 1 && cos_error < 1);
}

static void limits_are_those_of_the_header(void **state)
{
    (void)state;
    assert_true(base_exp(-708) == 0 && base_exp(710) == INFINITY && base_exp(0) == 1);
    assert_true(base_log(0) == -INFINITY && base_log(1) == 0 && base_log(INFINITY) == INFINITY);
    assert_true(base_pow(0, 0) == 1 && base_pow(0, 2) == 0 && base_pow(10, 400) == INFINITY);
    for (int i = -1000; i <= 1000; i++) assert_true(base_pow(2, i) == exp2(i));
    assert_true(base_sin(0) == 0 && base_cos(0) == 1);
    assert_true(isnan(base_sin(INFINITY)) && isnan(base_cos(NAN)));
    assert_true(fabs(base_sin(1e300)) <= 1);
}

/* A sum of the bits of results; scripts/check-arm runs it on 64-bit ARM. */
static void bits_are_those_of_other_systems(void **state)
{
    (void)state;
    uint64_t seed = 2, sum = 0;
    for (int i = 0; i < 1000; i++) {
        const double x = between(&seed, -500, 500), y = between(&seed, 0, 1000);
        const double all[] = {base_exp(x), base_log(y), base_pow(y, x / 100), base_sin(x * y),
                              base_cos(x * y)};
        for (int j = 0; j < 5; j++) {
            uint64_t bits;
            memcpy(&bits, &all[j], sizeof bits);
            sum = sum * 31 + bits;
        }
    }
    assert_true(sum == UINT64_C(0x981cd603bc4d8694));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_exact_to_the_last_place),
        cmocka_unit_test(limits_are_those_of_the_header),
        cmocka_unit_test(bits_are_those_of_other_systems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
