/* test/test_stop.c: stop strings: named cases, and random text of two letters against a naive
 * search, fed at once, byte by byte and in random pieces. */
#include "generate/stop.h"
#include "sample/sample.h"
#include "test/support.h"
#include <stdlib.h>
#include <string.h>

/* Feeds text in pieces of piece(s) bytes (0: all at once); returns the match, and the released text
 * in `out`. */
static int feed(const char *const *stops, size_t count, const char *text, size_t size, size_t piece,
                struct base_buffer *out)
{
    struct base_error err = BASE_ERROR_INIT;
    struct generate_stop *s = generate_stop_new(stops, count, &err);
    assert_non_null(s);
    base_buffer_clear(out);
    int match = -1;
    if (piece == 0) piece = size;
    for (size_t at = 0; at < size && match < 0; at += piece)
        match = generate_stop_feed(s, text + at, size - at < piece ? size - at : piece, out);
    if (match < 0) generate_stop_end(s, out);
    generate_stop_free(s);
    return match;
}

/* The match that ends first; the longest of several with the same end. */
static int naive(const char *const *stops, size_t count, const char *text, size_t size,
                 size_t *shown)
{
    for (size_t end = 1; end <= size; end++) {
        int best = -1;
        size_t best_size = 0;
        for (size_t i = 0; i < count; i++) {
            size_t n = strlen(stops[i]);
            if (n > end || n <= best_size || memcmp(text + end - n, stops[i], n) != 0) continue;
            best = (int)i;
            best_size = n;
        }
        if (best >= 0) {
            *shown = end - best_size;
            return best;
        }
    }
    *shown = size;
    return -1;
}

static void texts_end_at_their_stop_texts(void **state)
{
    (void)state;
    static const struct {
        const char *stop[3];
        size_t count;
        const char *text, *shown;
        int match;
    } cases[] = {
        {{NULL}, 0, "anything", "anything", -1}, {{"END"}, 1, "the END of it", "the ", 0},
        {{"END"}, 1, "the EN", "the EN", -1},    {{"END"}, 1, "ENEND", "EN", 0},
        {{"abab", "b"}, 2, "abab", "a", 1},      {{"aab", "ab"}, 2, "aaab", "a", 0},
        {{"ab", "aab"}, 2, "aaab", "a", 1},      {{"aaaa"}, 1, "aaabaaaa", "aaab", 0},
        {{"abc", "abcd"}, 2, "xabcd", "x", 0},   {{"xyz", "zz"}, 2, "xyyzzz", "xyy", 1},
        {{"\n\n"}, 1, "a\nb\n\nc", "a\nb", 0},   {{"same", "same"}, 2, "same", "", 0},
    };
    struct base_buffer out = BASE_BUFFER_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t piece = 0; piece < 4; piece++) {
            int match = feed(cases[i].stop, cases[i].count, cases[i].text, strlen(cases[i].text),
                             piece, &out);
            assert_int_equal(match, cases[i].match);
            assert_int_equal(out.size, strlen(cases[i].shown));
            if (out.size) assert_memory_equal(out.data, cases[i].shown, out.size);
        }
    }
    base_buffer_free(&out);
}

/* Text that cannot become a stop string is released at once. */
static void only_text_that_can_become_a_stop_text_is_held_back(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct generate_stop *s = generate_stop_new((const char *const[]){"stop!"}, 1, &err);
    assert_non_null(s);
    static const struct {
        const char *in;
        size_t shown;
    } steps[] = {{"a", 1}, {"st", 1}, {"o", 1}, {"st", 4}, {"x", 7}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(generate_stop_feed(s, steps[i].in, strlen(steps[i].in), &out), -1);
        assert_int_equal(out.size, steps[i].shown);
    }
    assert_int_equal(generate_stop_feed(s, "stop!more", 9, &out), 0);
    assert_int_equal(generate_stop_feed(s, "more", 4, &out), 0); /* nothing after a match */
    generate_stop_end(s, &out);
    assert_int_equal(out.size, 7);
    generate_stop_free(s);
    base_buffer_free(&out);
}

static void random_stop_texts_equal_the_naive_search(void **state)
{
    (void)state;
    struct sample_random r;
    sample_random_seed(&r, 99);
    struct base_buffer out = BASE_BUFFER_INIT;
    for (int trial = 0; trial < 20000; trial++) {
        char stop[3][8], text[40];
        const char *stops[3] = {stop[0], stop[1], stop[2]};
        size_t count = 1 + sample_random_u32(&r) % 3;
        for (size_t i = 0; i < count; i++) {
            size_t n = 1 + sample_random_u32(&r) % 6;
            for (size_t j = 0; j < n; j++) stop[i][j] = (char)('a' + sample_random_u32(&r) % 2);
            stop[i][n] = 0;
        }
        size_t size = 1 + sample_random_u32(&r) % sizeof text;
        for (size_t j = 0; j < size; j++) text[j] = (char)('a' + sample_random_u32(&r) % 2);
        size_t shown;
        int want = naive(stops, count, text, size, &shown);
        size_t pieces[3] = {0, 1, 1 + sample_random_u32(&r) % 5};
        for (int p = 0; p < 3; p++) {
            assert_int_equal(feed(stops, count, text, size, pieces[p], &out), want);
            assert_int_equal(out.size, shown);
            if (shown) assert_memory_equal(out.data, text, shown);
        }
    }
    base_buffer_free(&out);
}

static void an_empty_string_is_refused(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    assert_null(generate_stop_new((const char *const[]){"a", ""}, 2, &err));
    assert_int_equal(err.code, BASE_USAGE);
    generate_stop_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_end_at_their_stop_texts),
        cmocka_unit_test(only_text_that_can_become_a_stop_text_is_held_back),
        cmocka_unit_test(random_stop_texts_equal_the_naive_search),
        cmocka_unit_test(an_empty_string_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
