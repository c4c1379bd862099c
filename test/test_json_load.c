/* test/test_json_load.c: JSON is read completely or fails with an error, whichever allocation
 * fails: a single one, or all from one on. Linked with --wrap=malloc; jansson's allocations come
 * through json_load.c. */
#include "test/support.h"
#include "text/json/json_load.h"
#include "text/json/json_number.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static long until_failure = -1; /* allocations; negative: none fails */
static bool all_others_too, has_failed;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    if (until_failure < 0 || until_failure-- > 0) return __real_malloc(size);
    has_failed = true;
    if (all_others_too) until_failure = 0;
    errno = ENOMEM;
    return NULL;
}

static void check(const char *text, size_t size)
{
    json_t *whole = text_json_load(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    const bool is_json = whole != NULL;
    for (int others = 0; others < 2; others++)
        for (long at = 0;; at++) {
            all_others_too = others;
            until_failure = at;
            has_failed = false;
            json_t *value = text_json_load(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
            const int error = errno;
            until_failure = -1;
            if (!has_failed) {
                assert_int_equal(value != NULL, is_json);
                json_decref(value);
                break;
            }
            if (value && !json_equal(value, whole)) fail_msg("%.60s: other JSON", text);
            if (!value && error != ENOMEM) fail_msg("%.60s: allocation %ld: no word", text, at);
            json_decref(value);
        }
    json_decref(whole);
}

static void an_allocation_that_fails_changes_no_value(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[\"a text of more than sixteen and of more than thirty-two letters\", 1, 2.5]",
        "{\"a name longer than thirty-two letters\\u00e9\": 12345678901234567, \"b\": 1}",
        "[123456789012345]",
        "[1234567890123456, 7]",
        "[12345678901234.5, 7]",
        "12345678901234567",
        "[truetruetruetruetruetrue]",
        "[\"an end that is missing, behind sixteen",
        "{\"a\": {\"b\": {\"c\": [[], {}, null, true, false, -0.0]}}}",
        "[{\"a\": 12345678901234567890, \"b\": [1e400, 7, \"1e5\"]}, -0, 0.10]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(texts[i], strlen(texts[i]));
}

static void long_strings_and_arrays_are_read(void **state)
{
    (void)state;
    enum { SIZE = 20000 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, 'x', SIZE); /* one text */
    text[0] = text[SIZE - 1] = '"';
    check(text, SIZE);
    for (int i = 1; i < SIZE - 1; i++) text[i] = i % 2 ? '1' : ','; /* a list */
    text[0] = '[';
    text[SIZE - 2] = ' ';
    text[SIZE - 1] = ']';
    check(text, 2001);
    text[2000] = ']';
    check(text, 2001);
    free(text);
}

static void numbers_are_written_as_they_stand(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[0,-0,7,-7,0.1,0.10,1e2,1E+2,1e-2,1e400,-1e-400,100.0]",
        "[9223372036854775807,9223372036854775808,-9223372036854775808,-9223372036854775809]",
        "{\"a\":18446744073709551615,\"b\":\"1e2 \\\" 1e3\"}",
        "{\"1e4\":[{\"c\":12345678901234567890.5}]}",
        "1e2",
        "0.30000000000000004",
        "0.300000000000000040",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct base_buffer out = BASE_BUFFER_INIT;
        json_t *value = text_json_load(texts[i], strlen(texts[i]), JSON_DECODE_ANY, NULL);
        if (!value) fail_msg("%s is not read", texts[i]);
        json_t *copy = text_json_copy_deep(value);
        text_json_write(&out, copy, false);
        assert_string_equal(out.data, texts[i]);
        json_decref(copy);
        json_decref(value);
        base_buffer_free(&out);
    }
    /* the places of errors are those of the text */
    static const char wrong[] = "[1e400, 12345678901234567890, x]";
    json_error_t error;
    assert_null(text_json_load(wrong, sizeof wrong - 1, 0, &error));
    assert_int_equal(error.column, 31);
    /* a name twice: the later value, as before */
    static const char twice[] = "{\"a\": 1e2, \"b\": 2e2, \"a\": 3e2}";
    json_t *value = text_json_load(twice, sizeof twice - 1, 0, NULL);
    assert_float_equal(json_real_value(json_object_get(value, "a")), 300, 0);
    json_decref(value);
    assert_null(text_json_load(twice, sizeof twice - 1, JSON_REJECT_DUPLICATES, NULL));
}

static void a_copy_is_whole_or_none(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\": [1, {\"b\": \"c\"}, [[2.5]]], \"d\": {\"e\": null, \"f\": true}}";
    json_t *value = text_json_load(text, sizeof text - 1, 0, NULL);
    assert_non_null(value);
    for (int deep = 0; deep < 2; deep++) {
        long n_failed = 0;
        for (long at = 0;; at++) {
            until_failure = at;
            all_others_too = has_failed = false;
            json_t *copy = deep ? text_json_copy_deep(value) : text_json_copy(value);
            const int error = errno;
            until_failure = -1;
            if (copy) assert_true(json_equal(copy, value));
            if (!copy) assert_int_equal(error, ENOMEM);
            n_failed += copy == NULL;
            json_decref(copy);
            if (!has_failed) {
                assert_non_null(copy);
                break;
            }
        }
        assert_true(n_failed > 2);
    }
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_that_fails_changes_no_value),
        cmocka_unit_test(long_strings_and_arrays_are_read),
        cmocka_unit_test(numbers_are_written_as_they_stand),
        cmocka_unit_test(a_copy_is_whole_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
