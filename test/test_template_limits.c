/* test/test_template_limits.c: hostile chat templates end after a short time, each with an error
 * that names the limit; errors name the construct and its line; the limits of the caller apply. */
#include "test/support.h"

#include "base/interrupt.h"
#include "text/jinja/jinja.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool render(const char *source, size_t size, const struct jinja_template_options *options,
                   struct base_buffer *out, struct base_error *err)
{
    json_t *context = json_pack("{s:[i,i],s:s}", "l", 1, 2, "s", "text");
    struct jinja_template *t = jinja_template_parse(source, size, err);
    assert_non_null(context);
    const bool ok = t && jinja_template_render(t, context, options, out, err);
    assert_int_equal(ok, err->code == BASE_OK);
    jinja_template_free(t);
    json_decref(context);
    return ok;
}

/* The template must fail with a message that contains `word`. */
static void expect(const char *source, const char *word)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct jinja_template_options options = jinja_template_options_default();
    options.max_steps = 2000000; /* for a fast suite; one test below uses the default */
    options.max_output = 1 << 20;
    options.max_memory = 64 << 20;
    if (render(source, strlen(source), &options, &out, &err))
        fail_msg("no error: %.200s\n%.200s", source, out.data ? out.data : "");
    if (err.code != BASE_USAGE || !strstr(err.text, word))
        fail_msg("%.200s\n  gives: %s", source, err.text);
    if (strncmp(err.text, "line ", 5) != 0 && strncmp(err.text, "the template", 12) != 0)
        fail_msg("no line: %s", err.text);
    assert_int_equal(out.size, 0);
    base_buffer_free(&out);
}

/* A template, and a word of its error. */
static const char *const hostile[][2] = {
    {"{% for i in range(10**9) %}{% endfor %}", "range: more than"},
    {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", ""},
    {"{% for i in range(1000) %}{% for j in range(1000) %}{% for k in range(1000) %}{{ i * j }}"
     "{% endfor %}{% endfor %}{% endfor %}",
     ""},
    {"{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}"
     "{% endfor %}",
     ""},
    {"{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
     "{% endfor %}",
     ""},
    {"{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}"
     "{% endfor %}",
     ""},
    {"{% set ns = namespace(l=[1]) %}{% for i in range(999) %}{% set ns.l = [ns.l, ns.l] %}"
     "{% endfor %}{{ ns.l|tojson }}",
     ""},
    {"{% set ns = namespace(l=[1]) %}{% for i in range(999) %}{% set ns.l = [ns.l, ns.l] %}"
     "{% endfor %}{{ ns.l }}",
     ""},
    {"{% set ns = namespace(l=[1]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}"
     "{% endfor %}{{ ns.l|tojson }}",
     "deep"},
    {"{% set ns = namespace(l=[1]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}"
     "{% endfor %}{{ ns.l == [ns.l] }}{{ ns.l|string }}",
     "deep"},
    {"{% set ns = namespace(l=[1]) %}{% for i in range(500) %}{% set ns.l = [ns.l, ns.l] %}"
     "{% endfor %}{% set m = namespace(l=[1]) %}{% for i in range(500) %}"
     "{% set m.l = [m.l, m.l] %}{% endfor %}{{ ns.l == m.l }}",
     ""},
    {"{{ 'x' * 10**12 }}", ""},
    {"{{ 'x' * 10**9 }}", ""},
    {"{{ [0] * 10**12 }}", ""},
    {"{{ [[]] * 10**7 }}", ""},
    {"{{ 'x' * 9223372036854775807 }}", ""},
    {"{{ 'xy' * 9223372036854775807 }}", ""},
    {"{{ [1, [2]]|tojson(indent=10**12) }}", ""},
    {"{{ [1, [2]]|tojson(indent=10**9) }}", ""},
    {"{{ 'a\\nb'|indent(10**12) }}", ""},
    {"{{ 'a'|indent(10**9, true) }}", ""},
    {"{{ ('a' * 1000000).replace('', 'x' * 1000) }}", ""},
    {"{{ ('a' * 1000000).split('a')|map('string')|join('x' * 1000) }}", ""},
    {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deep"},
    {"{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", "deep"},
    {"{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
     "{{ f(60) }}",
     ""},
    {"{% macro f() %}{{ caller() }}{% call f() %}{% endcall %}{% endmacro %}"
     "{% call f() %}{% endcall %}",
     "deep"},
    {"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "deep"},
    {"{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a|string|length }}", "deep"},
    {"{% set ns = namespace() %}{% set ns.a = {'x': ns} %}{{ ns.a == [1] }}{{ ns.a|tojson }}", ""},
    {"{% for i in range(100000) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}"
     "{% endfor %}",
     "more than"},
    {"{% set x = range(100000)|list %}{% for i in x %}{% if i in x %}{% endif %}{% endfor %}", ""},
    {"{% set x = 'a' * 100000 %}{% for i in range(100000) %}{% if 'b' in x %}{% endif %}"
     "{% endfor %}",
     ""},
    {"{{ range(100000)|map('string')|join(',')|length * 10**18 * 10**18 }}", "64 bits"},
    {"{{ raise_exception('stop here') }}", "stop here"},
};

/* Operations in a loop, with work proportional to the length of their values: the limit of steps
 * ends each soon. */
static const char *const long_values[] = {
    "set a = range(100000)|list",
    "if a == a",
    "set a = range(100000)|list",
    "if a|sort",
    "set a = ' ' * 1000000",
    "if a|trim",
    "set a = ' ' * 1000000",
    "if a.strip()",
    "set a = 'ab' * 50000",
    "if a.strip('xyzwvutsrqponmba')",
    "set a = 'ab' * 500000",
    "if a|upper",
    "set a = 'ab' * 5000000",
    "if a.startswith(a)",
    "set a = 'ab' * 5000000",
    "if a.replace(a ~ a, 'x')",
    "set a = 'ab' * 500000",
    "if 'x' in {a: 1} or a in {a: 1}",
    "set a = 'ab' * 5000000",
    "if a < a or a == a",
    "set a = 'ab' * 500000",
    "if a|title",
    "set a = '\u03a3' * 100000",
    "if a|lower",
    "set a = range(100000)|list",
    "if 'x' in a",
    "set a = 1.2345678901234567e300",
    "if a|string",
    "set a = '1.2345678901234567e300'",
    "if a|float",
};

static void work_on_long_values_is_limited(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof long_values / sizeof long_values[0]; i += 2) {
        char source[400];
        snprintf(source, sizeof source,
                 "{%% %s %%}{%% for i in range(100000) %%}{%% %s %%}{%% endif %%}{%% endfor %%}",
                 long_values[i], long_values[i + 1]);
        expect(source, "steps");
    }
}

/* Integers are distributed over the slots of a mapping: the work is linear in their number. */
static void unique_integers_take_linear_work(void **state)
{
    (void)state;
    static const char source[] = "{{ range(100000)|unique|list|length }}";
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct jinja_template_options options = jinja_template_options_default();
    options.max_steps = 2000000;
    if (!render(source, strlen(source), &options, &out, &err)) fail_msg("%s", err.text);
    assert_string_equal(out.data, "100000");
    base_buffer_free(&out);
}

static void an_interruption_ends_a_rendering(void **state)
{
    (void)state;
    static const char source[] = "{{ l }}";
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct jinja_template_options options = jinja_template_options_default();
    base_interrupt();
    assert_false(render(source, strlen(source), &options, &out, &err));
    assert_int_equal(err.code, BASE_INTERRUPTED);
    err = BASE_ERROR_INIT;
    base_interrupt_clear();
    assert_true(render(source, strlen(source), &options, &out, &err));
    base_buffer_free(&out);
}

static void hostile_templates_end_with_text_or_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++)
        expect(hostile[i][0], hostile[i][1]);
}

/* Renders n times `open`, then `middle`, then n times `close`: an error or a text, never a
 * crash. */
static void nested(const char *open, const char *middle, const char *close, size_t n)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer source = BASE_BUFFER_INIT, out = BASE_BUFFER_INIT;
    for (size_t i = 0; i < n; i++) base_buffer_add_text(&source, open);
    base_buffer_add_text(&source, middle);
    for (size_t i = 0; i < n; i++) base_buffer_add_text(&source, close);
    assert_false(source.failed);
    const bool ok = render(source.data, source.size, NULL, &out, &err);
    if (ok && n > 1000) fail_msg("%zu levels of '%s' are accepted", n, open);
    if (!ok) assert_int_equal(err.code, BASE_USAGE);
    base_buffer_free(&source);
    base_buffer_free(&out);
}

static void deep_nesting_is_an_error(void **state)
{
    (void)state;
    static const size_t levels[] = {10, 149, 150, 151, 400, 5000, 100000};
    static const char *const forms[][3] = {
        {"(", "1", ")"},        {"[", "", "]"},      {"{'a':", "1", "}"},       {"not ", "1", ""},
        {"-", "1", ""},         {"1 + (", "1", ")"}, {"1 if ", "1", " else 2"}, {"l[", "0", "]"},
        {"s.split(", "s", ")"}, {"1 ** ", "1", ""},
    };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        const size_t n = levels[i];
        for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
            struct base_buffer open = BASE_BUFFER_INIT, close = BASE_BUFFER_INIT;
            struct base_buffer out = BASE_BUFFER_INIT;
            struct base_error err = BASE_ERROR_INIT;
            base_buffer_add_text(&open, "{{ ");
            for (size_t j = 0; j < n; j++) base_buffer_add_text(&open, forms[k][0]);
            base_buffer_add_text(&open, forms[k][1]);
            for (size_t j = 0; j < n; j++) base_buffer_add_text(&open, forms[k][2]);
            base_buffer_add_text(&open, " }}");
            const bool ok = render(open.data, open.size, NULL, &out, &err);
            if (ok && n > 1000) fail_msg("%zu levels of '%s' are accepted", n, forms[k][0]);
            base_buffer_free(&open);
            base_buffer_free(&close);
            base_buffer_free(&out);
        }
        nested("{% if 1 %}", "x", "{% endif %}", n);
        nested("{% for i in l %}", "x", "{% endfor %}", n > 10 ? n : 3);
        nested("{% macro f() %}", "x", "{% endmacro %}", n);
        nested("{% filter upper %}", "x", "{% endfilter %}", n);
        nested("{% set a %}", "x", "{% endset %}", n);
        nested("{% with %}", "x", "{% endwith %}", n);
        nested("{% call f() %}", "x", "{% endcall %}", n);
    }
}

/* Long chains of one level have no nesting in the source, but deep syntax trees. */
static void long_chains_end_with_text_or_an_error(void **state)
{
    (void)state;
    static const char *const links[] = {"|upper", ".a",     "[0]",      "()",    " + 1",
                                        " ~ 1",   " and 1", " is none", " == 1", ", 1"};
    for (size_t k = 0; k < sizeof links / sizeof links[0]; k++)
        for (size_t n = 10; n < 200000; n *= 10) {
            struct base_error err = BASE_ERROR_INIT;
            struct base_buffer source = BASE_BUFFER_INIT, out = BASE_BUFFER_INIT;
            base_buffer_add_text(&source, "{{ s");
            for (size_t i = 0; i < n; i++) base_buffer_add_text(&source, links[k]);
            base_buffer_add_text(&source, " }}");
            render(source.data, source.size, NULL, &out, &err);
            base_buffer_free(&source);
            base_buffer_free(&out);
        }
}

static void what_is_not_supported_is_named_with_its_line(void **state)
{
    (void)state;
    expect("a\n{{ l|random }}", "line 2: no filter named 'random'");
    expect("a\nb\n{% include 'x' %}", "line 3: the tag 'include' is not supported");
    expect("{% import 'x' as y %}", "'import' is not supported");
    expect("{% extends 'x' %}", "'extends' is not supported");
    expect("{% block x %}{% endblock %}", "'block' is not supported");
    expect("\n{{ '\\N{BULLET}' }}", "line 2: characters by name");
    expect("{{ s|wordwrap(3) }}", "line 1: no filter named 'wordwrap'");
    expect("{% if l %}\n{{ l|groupby('a') }}{% endif %}", "line 2: no filter named 'groupby'");
    expect("{{ [s]|map('center')|list }}", "no filter named 'center'");
    expect("\n{{ 1 is odd }}", "line 2: no test named 'odd'");
    expect("{{ l|select('divisibleby', 2)|list }}", "no test named 'divisibleby'");
    expect("\n{{ cycler('a') }}", "line 2: 'cycler' is undefined");
    expect("\n{{ s.rsplit('x') }}", "line 2: the attribute 'rsplit' of 'str' is not supported");
    expect("{{ l.index(1) }}", "the attribute 'index' of 'list' is not supported");
    expect("{% for i in l %}\n{{ loop.revindex }}{% endfor %}",
           "line 2: the attribute 'revindex' of 'LoopContext' is not supported");
    expect("\n{% for i in l recursive %}{% endfor %}", "line 2: recursive loops are not supported");
    expect("{{ '%s' % s }}", "line 1: '%' of 'str' and 'str'");
    expect("{{ '{:>5}'.format(s) }}", "format: no argument for the field ':>5'");
    expect("{{ self }}", "'self' is not supported");
    expect("{{ s.encode() }}", "the attribute 'encode' of 'str' is not supported");
    expect("{{ 9223372036854775807 + 1 }}", "the result of '+' has more than 64 bits");
    expect("{{ 99999999999999999999 }}", "more than 64 bits");
    expect("{{ s.upper }}", "printing a method is not supported");
    expect("{{ nosuch.x }}", "'nosuch' is undefined");
    expect("x {# a\nb", "line 1: this comment has no end");
    expect("{% for i in l %}\n{{ i }}", "line 1: this block is not closed: no 'endfor' found");
    expect("\n\n{{ 1 + }}", "line 3: ");
    expect("{{ 'a }}", "this string has no end");
    expect("{{ s|upper.", "line 1: ");
}

/* Each limit of the options applies independently. */
/* Unlike in jinja2, where what is added to a safe string is escaped. */
static void what_is_added_to_a_safe_string_is_not_escaped(void **state)
{
    (void)state;
    expect("{{ raise_exception(('<a>'|safe) + '<b>') }}", "<a><b>");
}

static void each_limit_is_checked_alone(void **state)
{
    (void)state;
    static const char source[] = "{% for i in range(1000) %}{{ 'x' * 100 }}{% endfor %}";
    static const struct {
        uint64_t steps, output, memory;
        uint32_t depth;
        const char *word;
    } cases[] = {
        {50000000, 64 << 20, 512 << 20, 1000, NULL},
        {500, 64 << 20, 512 << 20, 1000, "steps"},
        {50000000, 5000, 512 << 20, 1000, "more than 5000 bytes"},
        {50000000, 64 << 20, 20000, 1000, "memory"},
        {50000000, 64 << 20, 512 << 20, 2, "deep"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct base_buffer out = BASE_BUFFER_INIT;
        bool exhausted = false;
        const struct jinja_template_options options = {.max_steps = cases[i].steps,
                                                       .max_output = cases[i].output,
                                                       .max_memory = cases[i].memory,
                                                       .max_depth = cases[i].depth,
                                                       .exhausted = &exhausted};
        const bool ok = render(source, strlen(source), &options, &out, &err);
        assert_int_equal(ok, cases[i].word == NULL);
        assert_int_equal(exhausted, i >= 1 && i <= 3);
        if (!ok && !strstr(err.text, cases[i].word))
            fail_msg("'%s' has no '%s'", err.text, cases[i].word);
        assert_int_equal(out.size, ok ? 100000 : 0);
        base_buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_templates_end_with_text_or_an_error),
        cmocka_unit_test(work_on_long_values_is_limited),
        cmocka_unit_test(unique_integers_take_linear_work),
        cmocka_unit_test(an_interruption_ends_a_rendering),
        cmocka_unit_test(deep_nesting_is_an_error),
        cmocka_unit_test(long_chains_end_with_text_or_an_error),
        cmocka_unit_test(what_is_not_supported_is_named_with_its_line),
        cmocka_unit_test(what_is_added_to_a_safe_string_is_not_escaped),
        cmocka_unit_test(each_limit_is_checked_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
