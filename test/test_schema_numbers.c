/* test/test_schema_numbers.c: the numbers that are generated under a schema: how many digits they
 * may have, and the fewest bytes that end one. */
#include "test/support.h"

#include "sample/constrain/constraint.h"
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct constraint *compile(const char *schema)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct constrain_schema_options o = {.generate = true};
    struct constraint *c = constraint_from_schema(schema, strlen(schema), &o, &err);
    if (!c) fail_msg("%s: %s", schema, err.text);
    return c;
}

/* The number of bytes of the text that the schema accepts as the beginning of a number. */
static size_t read_of(const char *schema, const char *text)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = compile(schema);
    struct constrain_state *s = constrain_state_new(c, &err);
    size_t used;
    assert_true(constrain_state_feed(s, text, strlen(text), &used, &err));
    constrain_state_free(s);
    constraint_free(c);
    return used;
}

/* The number of digits of the longest beginning. */
static int digits_of(const char *schema, const char *text)
{
    int n = 0;
    for (size_t i = read_of(schema, text); i-- > 0;) n += text[i] >= '0' && text[i] <= '9';
    return n;
}

static void a_number_with_a_point_has_as_many_digits_as_a_double_keeps(void **state)
{
    static const char schema[] = "{\"type\":\"number\",\"minimum\":-1e9,\"maximum\":1e9}";
    (void)state;
    assert_int_equal(digits_of(schema, "123456789.123456789"), DBL_DIG);
    assert_int_equal(digits_of(schema, "1234567.123456789"), DBL_DIG);
    assert_int_equal(digits_of(schema, "-1234567.123456789"), DBL_DIG);
    assert_int_equal(digits_of(schema, "123456.123456789"), DBL_DIG); /* 6 and 9 */
    assert_int_equal(digits_of(schema, "0.1234567890"), 1 + 9); /* at most 9 after the point */
}

static void an_integer_has_at_most_as_many_digits_as_two_to_the_53(void **state)
{
    char digits[32];
    (void)state;
    const int most = snprintf(digits, sizeof digits, "%lld", 1ll << 53);
    assert_int_equal(most, read_of("{\"type\":\"integer\",\"minimum\":0}", "123456789012345678"));
    assert_int_equal(1 + most,
                     read_of("{\"type\":\"integer\",\"maximum\":0}", "-123456789012345678"));
}

static void a_free_number_has_an_exponent_of_two_digits_and_less_than_32_bytes(void **state)
{
    (void)state;
    assert_int_equal(read_of("{\"type\":\"number\"}", "1e123"), strlen("1e12"));
    assert_int_equal(read_of("{\"type\":\"number\"}", "1.5E-123"), strlen("1.5E-12"));
    assert_int_equal(read_of("{\"type\":\"number\"}", "1234567890123456789012345678901234567890"),
                     31);
    /* There is room for the digit that must follow the point. */
    assert_int_equal(read_of("{\"type\":\"number\"}", "123456789012345678901234567890.1"), 30);
}

/* ---- The fewest bytes ---- */

/* Numbers k * unit / scale of a range, as the shortest texts; 0 as "0" and "-0". */
struct set {
    const char *schema;
    int first, last, scale; /* k from first to last; scale 1, or 4 for quarters */
    int step, unlike;       /* only multiples of `step`; none of `unlike`, if not 0 */
};

static const struct set sets[] = {
    {"{\"type\":\"integer\",\"minimum\":-5,\"maximum\":-1}", -5, -1, 1, 1, 0},
    {"{\"type\":\"integer\",\"minimum\":-300,\"maximum\":-20}", -300, -20, 1, 1, 0},
    {"{\"type\":\"integer\",\"minimum\":17,\"maximum\":1234}", 17, 1234, 1, 1, 0},
    {"{\"type\":\"integer\",\"minimum\":-1200,\"maximum\":140}", -1200, 140, 1, 1, 0},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":9,\"exclusiveMaximum\":100}", 10, 99, 1, 1, 0},
    {"{\"type\":\"integer\",\"minimum\":-70,\"maximum\":140,\"multipleOf\":35}", -70, 140, 1, 35,
     0},
    {"{\"type\":\"integer\",\"minimum\":-9,\"maximum\":130,\"multipleOf\":7,\"not\":{"
     "\"multipleOf\":2}}",
     -9, 130, 1, 7, 2},
    {"{\"type\":\"integer\",\"minimum\":-7,\"maximum\":500,\"not\":{\"multipleOf\":2}}", -7, 500, 1,
     1, 2},
    {"{\"type\":\"number\",\"minimum\":-1.5,\"maximum\":12,\"multipleOf\":0.25}", -6, 48, 4, 1, 0},
    {"{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":1,\"multipleOf\":0.25}", 1,
     3, 4, 1, 0},
    {"{\"type\":\"number\",\"minimum\":-0.75,\"maximum\":-0.25,\"multipleOf\":0.25}", -3, -1, 4, 1,
     0},
};

/* Writes the number k of the set and returns whether it is one. */
static bool number_of(const struct set *s, int k, char text[32])
{
    if (k % s->step || (s->unlike && k % s->unlike == 0)) return false;
    snprintf(text, 32, "%.10g", (double)k / s->scale);
    return true;
}

/* The fewest bytes that end a number of the set with this beginning, by trying all. */
static size_t naive_rest(const struct set *s, const char *begun)
{
    const size_t n = strlen(begun);
    size_t best = SIZE_MAX;
    char text[32];
    for (int k = s->first; k <= s->last; k++) {
        if (!number_of(s, k, text)) continue;
        for (int minus = 0; minus < (k == 0 ? 2 : 1); minus++) {
            if (minus) strcpy(text, "-0");
            const size_t size = strlen(text);
            if (size >= n && memcmp(text, begun, n) == 0 && size - n < best) best = size - n;
        }
    }
    return best;
}

static void the_fewest_bytes_are_those_of_the_shortest_number_with_this_beginning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const struct set *s = &sets[i];
        struct base_error err = BASE_ERROR_INIT;
        struct constraint *c = compile(s->schema);
        struct constrain_finisher *f = constrain_finisher_new(c, NULL, &err);
        assert_non_null(f);
        for (int k = s->first; k <= s->last; k++) {
            char text[32], begun[32] = "";
            if (!number_of(s, k, text)) continue;
            for (size_t n = 0; n <= strlen(text); n++) {
                struct constrain_state *at = constrain_state_new(c, &err);
                uint64_t rest;
                size_t used;
                memcpy(begun, text, n);
                begun[n] = '\0';
                assert_true(constrain_state_feed(at, begun, n, &used, &err));
                if (used < n) fail_msg("%s: '%s' is refused", s->schema, begun);
                assert_true(constrain_finisher_after(f, at, CONSTRAIN_NOTHING, &rest, &err));
                if (rest != naive_rest(s, begun))
                    fail_msg("%s: after '%s' %d bytes, not %d", s->schema, begun, (int)rest,
                             (int)naive_rest(s, begun));
                constrain_state_free(at);
            }
        }
        constrain_finisher_free(f);
        constraint_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_with_a_point_has_as_many_digits_as_a_double_keeps),
        cmocka_unit_test(an_integer_has_at_most_as_many_digits_as_two_to_the_53),
        cmocka_unit_test(a_free_number_has_an_exponent_of_two_digits_and_less_than_32_bytes),
        cmocka_unit_test(the_fewest_bytes_are_those_of_the_shortest_number_with_this_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
