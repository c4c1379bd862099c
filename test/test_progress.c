/* test/test_progress.c: the text of the progress line (cli/progress.h): amounts, rate, remaining
 * time, the bar, and what is left out on a narrow terminal. */
#include "test/support.h"

#include "cli/progress.h"
#include <string.h>

static const char *format(const struct cli_progress_view *view, size_t width)
{
    static char line[CLI_PROGRESS_LINE + 1];
    size_t columns;
    line[cli_progress_format(view, width, line, &columns)] = '\0';
    size_t count = 0;
    for (const char *c = line; *c; c++) count += ((unsigned char)*c & 0xc0) != 0x80;
    assert_int_equal(columns, count);
    if (width > 0) assert_true(columns < width);
    return line;
}

static struct cli_progress_view view_of(uint64_t done, uint64_t total, uint64_t ms_done,
                                        uint64_t ms)
{
    return (struct cli_progress_view){.what = "evaluating",
                                      .unit = "tokens",
                                      .note = "",
                                      .done = done,
                                      .total = total,
                                      .ms = ms,
                                      .ms_done = ms_done};
}

static void the_line_has_rate_and_remaining_time(void **state)
{
    (void)state;
    struct cli_progress_view v = view_of(500, 2000, 2000, 2000);
    assert_string_equal(format(&v, 60), "evaluating: 500 of 2000 tokens, 250/s, 0:06 left");
    v.ms = 5000; /* the remaining time goes down also while no unit is completed */
    assert_string_equal(format(&v, 60), "evaluating: 500 of 2000 tokens, 250/s, 0:03 left");
    v.ms = 60000; /* and never below zero */
    assert_string_equal(format(&v, 60), "evaluating: 500 of 2000 tokens, 250/s, 0:00 left");
    v = view_of(1, 4, 8000, 8000);
    assert_string_equal(format(&v, 50), "evaluating: 1 of 4 tokens, 7.5/min, 0:24 left");
    v = view_of(20, 100000, 1000, 1000);
    assert_string_equal(format(&v, 60), "evaluating: 20 of 100000 tokens, 20.0/s, 1:23:19 left");
    v = view_of(1, 1000000, 1000, 1000); /* a guess of 277 hours is not shown */
    assert_string_equal(format(&v, 53), "evaluating: 1 of 1000000 tokens, 1.0/s  |          |");
}

static void skipped_units_do_not_count_in_the_rate(void **state)
{
    (void)state;
    struct cli_progress_view v = view_of(1010, 1100, 2000, 2000);
    v.first = 1000;
    assert_string_equal(format(&v, 60), "evaluating: 1010 of 1100 tokens, 5.0/s, 0:18 left");
    v.done = 1000;
    assert_string_equal(format(&v, 42), "evaluating: 1000 of 1100 tokens");
}

static void totals_that_are_unknown_or_exceeded_have_no_remaining_time(void **state)
{
    (void)state;
    struct cli_progress_view v = view_of(0, 0, 0, 1000);
    assert_string_equal(format(&v, 80), "evaluating: 0 tokens");
    v = view_of(300, 0, 2000, 3000);
    assert_string_equal(format(&v, 80), "evaluating: 300 tokens, 150/s");
    v = view_of(205, 200, 1000, 1000); /* more than expected */
    assert_string_equal(format(&v, 48), "evaluating: 200 of 200 tokens, 205/s");
    v = view_of(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    assert_true(strlen(format(&v, 200)) > 0);
}

static void bytes_are_shown_in_megabytes(void **state)
{
    (void)state;
    struct cli_progress_view v = view_of(150000000, 600000000, 2000, 2000);
    v.what = "writing";
    v.unit = "bytes";
    assert_string_equal(format(&v, 60), "writing: 150.0 of 600.0 MB, 75.0 MB/s, 0:06 left");
}

static void a_narrow_terminal_shows_the_most_important_fields(void **state)
{
    (void)state;
    struct cli_progress_view v = view_of(500, 2000, 2000, 2000);
    v.note = "perplexity 12.5";
    assert_string_equal(format(&v, 80),
                        "evaluating: 500 of 2000 tokens, 250/s, 0:06 left, perplexity 12.5"
                        "  |██▌       |");
    assert_string_equal(format(&v, 66),
                        "evaluating: 500 of 2000 tokens, 250/s, 0:06 left, perplexity 12.5");
    assert_string_equal(format(&v, 65), "evaluating: 500 of 2000 tokens, 250/s, 0:06 left");
    assert_string_equal(format(&v, 48), "evaluating: 500 of 2000 tokens, 0:06 left");
    assert_string_equal(format(&v, 41), "evaluating: 500 of 2000 tokens");
    assert_string_equal(format(&v, 30), "evaluating: 500 of 2000");
    assert_string_equal(format(&v, 23), "");
    assert_string_equal(format(&v, 0), "");
}

static void the_bar_is_filled_by_eighths(void **state)
{
    (void)state;
    struct cli_progress_view v = view_of(0, 192, 0, 0);
    const char *const start = "evaluating: 0 of 192 tokens  |";
    assert_memory_equal(format(&v, 80), start, strlen(start));
    v = view_of(1, 192, 1, 1); /* 24 cells */
    assert_non_null(strstr(format(&v, 100), "|▏                       |"));
    v.done = 12;
    assert_non_null(strstr(format(&v, 100), "|█▌                      |"));
    v.done = 192;
    assert_non_null(strstr(format(&v, 100), "|████████████████████████|"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_has_rate_and_remaining_time),
        cmocka_unit_test(skipped_units_do_not_count_in_the_rate),
        cmocka_unit_test(totals_that_are_unknown_or_exceeded_have_no_remaining_time),
        cmocka_unit_test(bytes_are_shown_in_megabytes),
        cmocka_unit_test(a_narrow_terminal_shows_the_most_important_fields),
        cmocka_unit_test(the_bar_is_filled_by_eighths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
