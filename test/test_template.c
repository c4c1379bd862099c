/* test/test_template.c: chat templates against the results of Python's jinja2: snippets of every
 * construct, and published templates with conversations of every kind; then limits, errors and
 * messages. scripts/make-template-goldens writes the expected results. */
#include "test/support.h"

#include "test/support_files.h"
#include "test/support_random.h"
#include "text/jinja/jinja.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 26 July 2024, 15:04:05, a Friday: the time of the expected results. */
static const struct tm test_clock = {.tm_year = 124,
                                     .tm_mon = 6,
                                     .tm_mday = 26,
                                     .tm_hour = 15,
                                     .tm_min = 4,
                                     .tm_sec = 5,
                                     .tm_wday = 5,
                                     .tm_yday = 207};

static bool render(const char *source, size_t size, const json_t *context,
                   const struct jinja_template_options *options, struct base_buffer *out,
                   struct base_error *err)
{
    struct jinja_template_options o = options ? *options : jinja_template_options_default();
    struct jinja_template *t = jinja_template_parse(source, size, err);
    o.clock = &test_clock;
    const bool ok = t && jinja_template_render(t, context, &o, out, err);
    assert_int_equal(ok, err->code == BASE_OK);
    jinja_template_free(t);
    return ok;
}

static json_t *load_json(const char *path)
{
    json_error_t err;
    json_t *json = json_load_file(path, JSON_DECODE_ANY, &err);
    if (!json) fail_msg("%s: line %d: %s", path, err.line, err.text);
    return json;
}

/* ---- Snippets ---- */

static void snippets_render_as_jinja2_renders_them(void **state)
{
    (void)state;
    json_t *unit = load_json("test/data/templates/unit.json");
    const json_t *rows = json_object_get(unit, "rows");
    const json_t *contexts = json_object_get(unit, "contexts");
    size_t wrong = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *want = json_array_get(row, 2);
        const char *source = json_string_value(json_array_get(row, 0));
        const size_t context = (size_t)json_integer_value(json_array_get(row, 1));
        struct base_error err = BASE_ERROR_INIT;
        struct base_buffer out = BASE_BUFFER_INIT;
        const bool ok = render(source, json_string_length(json_array_get(row, 0)),
                               json_array_get(contexts, context), NULL, &out, &err);
        const char *text = out.data ? out.data : "";
        const bool same = ok == json_is_string(want) &&
                          (!ok || (json_string_length(want) == out.size &&
                                   memcmp(json_string_value(want), text, out.size) == 0));
        if (!same)
            print_message("snippet %zu: %s\n  expected: %s\n  found:    %s\n", i, source,
                          json_is_string(want) ? json_string_value(want) : "(an error)",
                          ok ? text : err.text);
        wrong += !same;
        base_buffer_free(&out);
    }
    print_message("%zu snippets, %zu wrong\n", json_array_size(rows), wrong);
    json_decref(unit);
    assert_int_equal(wrong, 0);
}

/* ---- Published templates ---- */

/* Case n of the conversations: see contexts() in scripts/make-template-goldens. */
static json_t *context_of(const json_t *conversations, size_t n)
{
    json_t *context = json_copy(json_object_get(conversations, "base"));
    json_object_update(context, json_array_get(json_object_get(conversations, "cases"), n / 4));
    json_object_set_new(context, "tools",
                        n & 2 ? json_deep_copy(json_object_get(conversations, "tools"))
                              : json_null());
    json_object_set_new(context, "add_generation_prompt", json_boolean(n & 1));
    return context;
}

static size_t check_template(const char *name, const struct jinja_template *t,
                             const json_t *conversations, const json_t *results,
                             const struct base_error *parse_error)
{
    size_t wrong = 0;
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *want = json_array_get(results, i);
        struct jinja_template_options options = jinja_template_options_default();
        struct base_error err = *parse_error;
        struct base_buffer out = BASE_BUFFER_INIT;
        json_t *context = context_of(conversations, i);
        char found[17];
        options.clock = &test_clock;
        const bool ok = t && jinja_template_render(t, context, &options, &out, &err);
        snprintf(found, sizeof found, "%016llx",
                 (unsigned long long)support_hash(out.data, out.size));
        const bool same =
            ok == json_is_array(want) &&
            (!ok || (json_integer_value(json_array_get(want, 0)) == (json_int_t)out.size &&
                     strcmp(json_string_value(json_array_get(want, 1)), found) == 0));
        if (!same)
            print_message("%s case %zu: %s\n", name, i,
                          ok ? json_is_array(want) ? "other text" : "no error" : err.text);
        wrong += !same;
        json_decref(context);
        base_buffer_free(&out);
    }
    return wrong;
}

static void published_templates_render_as_jinja2_renders_them(void **state)
{
    (void)state;
    char path[4096], file[4200];
    if (!support_shared_path("templates", path, sizeof path))
        support_skip("no published templates");
    json_t *golden = load_json("test/data/templates/golden.json");
    json_t *conversations = load_json("test/data/templates/conversations.json");
    const char *name;
    json_t *results;
    size_t wrong = 0, cases = 0;
    json_object_foreach(golden, name, results)
    {
        size_t size;
        struct base_error err = BASE_ERROR_INIT;
        snprintf(file, sizeof file, "%s/%s", path, name);
        char *source = support_read_file(file, &size);
        assert_non_null(source);
        struct jinja_template *t = jinja_template_parse(source, size, &err);
        wrong += check_template(name, t, conversations, results, &err);
        cases += json_array_size(results);
        jinja_template_free(t);
        free(source);
    }
    print_message("%zu templates, %zu cases, %zu wrong\n", json_object_size(golden), cases, wrong);
    json_decref(golden);
    json_decref(conversations);
    assert_int_equal(wrong, 0);
}

static void check_text(const char *source, const char *want)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    json_t *context = json_object();
    if (!render(source, strlen(source), context, NULL, &out, &err)) fail_msg("%s", err.text);
    assert_int_equal(out.size, strlen(want));
    assert_memory_equal(out.data, want, out.size);
    base_buffer_free(&out);
    json_decref(context);
}

/* `first` takes one item of a generator, which has the others left; of a list it takes none. */
static void first_takes_one_item_of_a_generator(void **state)
{
    (void)state;
    check_text("{% set g = [7, 8, 9]|map('string') %}{{ g|first }}:{{ g|join('-') }}", "7:8-9");
    check_text(
        "{% set g = [7, 8, 9]|map('string') %}{{ g|first }}{{ g|first }}:{{ g|list|length }}",
        "78:1");
    check_text("{% set l = [7, 8, 9] %}{{ l|first }}:{{ l|join('-') }}", "7:7-8-9");
}

/* Strings compare without case; of equal ones Python's min, max and sort take the first. */
static void min_and_sort_prefer_the_first_of_equal_items(void **state)
{
    (void)state;
    check_text("{{ ['b', 'A', 'a']|min }}{{ ['a', 'B', 'b']|max }}", "AB");
    check_text("{{ ['b', 'A', 'B', 'a']|sort|join }}", "AabB");
    check_text("{{ ['b', 'A', 'B', 'a']|sort(reverse=true)|join }}", "bBAa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snippets_render_as_jinja2_renders_them),
        cmocka_unit_test(published_templates_render_as_jinja2_renders_them),
        cmocka_unit_test(first_takes_one_item_of_a_generator),
        cmocka_unit_test(min_and_sort_prefer_the_first_of_equal_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
