/* test/test_half.c: binary16 and bfloat16, all 65,536 values both ways, and the rounding between
 * them, against arithmetic in double and against the compiler's own half type. */
#include "test/support.h"

#include "quant/quant.h"
#include <math.h>
#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* The value of a binary16 by its definition; not for infinity and NaN. */
static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    double magnitude = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void every_half_decodes_to_its_value(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = quant_f16_to_f32((uint16_t)h);
        uint32_t mantissa = h & 0x3ff;
        if ((h & 0x7c00) != 0x7c00) {
            assert_true((double)f == half_value((uint16_t)h));
            assert_int_equal(signbit(f) != 0, h >> 15);
        } else {
            uint32_t quiet = mantissa ? 0x400000 : 0;
            assert_int_equal(bits_of(f), (h & 0x8000) << 16 | 0x7f800000 | mantissa << 13 | quiet);
        }
    }
}

static void every_half_survives_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        bool is_nan = (h & 0x7fff) > 0x7c00;
        uint16_t back = quant_f32_to_f16(quant_f16_to_f32((uint16_t)h));
        assert_int_equal(back, is_nan ? h | 0x200 : h);
    }
}

/* Between two consecutive halves: the midpoint (a tie, rounded to even), and the floats next to
 * it. */
static void ties_round_to_the_even_half(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        /* The successor of the largest finite value would be 65536. */
        double low = half_value((uint16_t)h);
        double high = h == 0x7bff ? 65536.0 : half_value((uint16_t)(h + 1));
        float middle = (float)((low + high) / 2); /* exact */
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);
        for (uint32_t sign = 0; sign <= 1; sign++) {
            uint32_t bits = bits_of(middle) | sign << 31;
            uint16_t s = (uint16_t)(sign << 15);
            assert_int_equal(quant_f32_to_f16(float_of(bits)), even | s);
            assert_int_equal(quant_f32_to_f16(float_of(bits - 1)), h | s);
            assert_int_equal(quant_f32_to_f16(float_of(bits + 1)), (h + 1) | s);
        }
    }
    assert_int_equal(quant_f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(quant_f32_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(quant_f32_to_f16(float_of(0x7f800001)), 0x7e00);
    assert_int_equal(quant_f32_to_f16(float_of(0x00000001)), 0);
    assert_int_equal(quant_f32_to_f16(float_of(0x80000001)), 0x8000);
}

/* Tests every 997th float. */
static void rounding_to_half_equals_the_compilers(void **state)
{
    (void)state;
#if defined(__FLT16_MANT_DIG__)
    for (uint64_t u = 0; u <= UINT32_MAX; u += 997) {
        float f = float_of((uint32_t)u);
        _Float16 half = (_Float16)f;
        uint16_t expected;
        memcpy(&expected, &half, sizeof expected);
        if (isnan(f))
            assert_true((quant_f32_to_f16(f) & 0x7e00) == 0x7e00);
        else
            assert_int_equal(quant_f32_to_f16(f), expected);
    }
#else
    skip(); /* this compiler has no half type */
#endif
}

static void bfloats_survive_a_round_trip_and_ties_go_to_even(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 0x10000; b++) {
        bool is_nan = (b & 0x7fff) > 0x7f80;
        assert_int_equal(bits_of(quant_bf16_to_f32((uint16_t)b)), b << 16);
        assert_int_equal(quant_f32_to_bf16(float_of(b << 16)), is_nan ? b | 0x40 : b);
        if ((b & 0x7f80) == 0x7f80) continue;
        /* The tie above b, and the floats next to it. */
        uint32_t tie = b << 16 | 0x8000;
        assert_int_equal(quant_f32_to_bf16(float_of(tie)), b + (b & 1));
        assert_int_equal(quant_f32_to_bf16(float_of(tie - 1)), b);
        assert_int_equal(quant_f32_to_bf16(float_of(tie + 1)), b + 1);
    }
    assert_int_equal(quant_f32_to_bf16(float_of(0x7f800001)), 0x7fc0);
    assert_int_equal(quant_f32_to_bf16(float_of(0x7fffffff)), 0x7fff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_decodes_to_its_value),
        cmocka_unit_test(every_half_survives_a_round_trip),
        cmocka_unit_test(ties_round_to_the_even_half),
        cmocka_unit_test(rounding_to_half_equals_the_compilers),
        cmocka_unit_test(bfloats_survive_a_round_trip_and_ties_go_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
