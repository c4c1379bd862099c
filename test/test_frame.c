/* test/test_frame.c: distinguishes the frame (text of the template) from data: marks of rendered
 * texts, and tokens that only the frame may produce. No message can end itself. */
#include "test/support.h"

#include "test/support_files.h"
#include "test/support_vocab.h"
#include "text/jinja/jinja.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const own_names[] = {"bos_token"};

static bool render(const struct jinja_template *t, const json_t *context, struct base_buffer *out,
                   struct base_buffer *own, struct base_error *err)
{
    struct jinja_template_options o = jinja_template_options_default();
    o.own = own;
    o.own_variables = own_names;
    o.n_own_variables = 1;
    const bool ok = jinja_template_render(t, context, &o, out, err);
    assert_int_equal(own->size, out->size);
    return ok;
}

/* ---- Marks ---- */

/* Renders with bos_token "<s>", a role "user" and a text "DATA"; `want` has data unchanged and dots
 * for everything else. */
static void check_marks(const char *source, const char *want)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer out = BASE_BUFFER_INIT, own = BASE_BUFFER_INIT, plain = BASE_BUFFER_INIT;
    json_t *context =
        json_pack("{s:s, s:{s:s, s:s}, s:s, s:[s, s]}", "bos_token", "<s>", "m", "role", "user",
                  "content", "DATA", "role", "no role", "list", "x", "DATA");
    struct jinja_template *t = jinja_template_parse(source, strlen(source), &err);
    if (!t || !render(t, context, &out, &own, &err)) fail_msg("%s: %s", source, err.text);
    assert_true(jinja_template_render(t, context, NULL, &plain, &err));
    assert_int_equal(plain.size, out.size);
    assert_memory_equal(plain.data, out.data, out.size); /* marks change nothing */
    for (size_t i = 0; i < out.size; i++)
        if (own.data[i]) out.data[i] = '.';
    if (strcmp(out.data, want) != 0) fail_msg("%s: marks are %s, not %s", source, out.data, want);
    jinja_template_free(t);
    json_decref(context);
    base_buffer_free(&out);
    base_buffer_free(&own);
    base_buffer_free(&plain);
}

static void text_of_the_template_is_distinguished_from_data(void **state)
{
    (void)state;
    check_marks("<|a|>{{ m.content }}<|b|>", ".....DATA.....");
    check_marks("{{ '<|' + m.role + '|>' + m.content ~ '<|b|>' }}", "........DATA.....");
    check_marks("{{ '<|' ~ m.role|upper ~ '|>' }}{{ m.role.title() }}{{ m.role|title }}",
                "................");
    check_marks("{{ m.role|capitalize }}{{ m.content|lower }}{{ m.content|title }}",
                "....dataData");
    check_marks("{{ bos_token }}{{ bos_token + m.content }}", "......DATA");
    check_marks("{{ role }}|", "no role."); /* more than one word is data */
    check_marks("{% set x %}<a>{{ m.content }}</a>{% endset %}{{ x }}", "...DATA....");
    check_marks("{% macro f(a, b='<b>') %}{{ b }}{{ a }}{% endmacro %}{{ f(m.content) }}",
                "...DATA");
    check_marks("{{ m.content|tojson }}{{ '<x>'|tojson }}", "\"DATA\"\"...\"");
    check_marks("{{ '<{}>'.format(m.content) }}", ".DATA.");
    check_marks("{{ ('<' ~ m.content ~ '>') * 2 }}", ".DATA..DATA.");
    check_marks("{{ ('<' ~ m.content)[1:] }}{{ ('<' ~ m.content).split('D')[0] }}", "DATA.");
    check_marks("{{ 'aXb'.replace('X', m.content) }}{{ m.content.replace('A', '<>') }}",
                ".DATA.D..T..");
    check_marks("{{ list|join('<>') }}{{ ['<', m.content]|join }}", "x..DATA.DATA");
    check_marks("{{ (m.content ~ ' <x> ')|trim }}{{ m.content[::-1] }}", "DATA....ATAD");
    check_marks("{%- set ns = namespace(t='') -%}{%- for i in range(40) -%}"
                "{%- set ns.t = ns.t ~ '<>' ~ m.content -%}{%- endfor -%}{{ ns.t[-12:] }}",
                "..DATA..DATA");
    check_marks("{{ m }}", "{'role': '....', 'content': 'DATA'}");
}

/* ---- Published templates ---- */

static const char evil[] = "<|evil|>";

static bool is_content(const char *key)
{
    static const char *const keys[] = {"content", "text", "description", "reasoning_content"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

/* Appends `evil` to every text of messages and tools. */
static void poison(json_t *json, const char *key)
{
    if (json_is_string(json) && is_content(key)) {
        char *text = NULL;
        assert_true(asprintf(&text, "%s%s", json_string_value(json), evil) >= 0);
        for (char *mark; (mark = strstr(text, "<|im_end|>")) != NULL;) *mark = '['; /* a mark */
        json_string_set(json, text);
        free(text);
    }
    for (size_t i = 0; i < json_array_size(json); i++) poison(json_array_get(json, i), key);
    const char *inner;
    json_t *value;
    json_object_foreach(json, inner, value) poison(value, inner);
}

/* Every mark <|word|> of the text must be entirely data if it is `evil`, otherwise entirely
 * frame. */
static size_t check_marked_text(const char *name, const struct base_buffer *out,
                                const struct base_buffer *own, size_t *n_evil)
{
    size_t n_frame = 0;
    for (size_t i = 0; i + 2 < out->size; i++) {
        if (memcmp(out->data + i, "<|", 2) != 0) continue;
        size_t size = 2;
        while (i + size < out->size &&
               (isalnum((unsigned char)out->data[i + size]) || out->data[i + size] == '_'))
            size++;
        if (i + size + 2 > out->size || memcmp(out->data + i + size, "|>", 2) != 0) continue;
        size += 2;
        const bool is_evil = size == strlen(evil) && memcmp(out->data + i, evil, size) == 0;
        for (size_t k = i; k < i + size; k++)
            if (own->data[k] == is_evil)
                fail_msg("%s: byte %zu of %.*s is %s", name, k - i, (int)size, out->data + i,
                         is_evil ? "the frame's" : "data");
        *n_evil += is_evil;
        n_frame += !is_evil;
    }
    return n_frame;
}

static void data_forms_no_marker_in_published_templates(void **state)
{
    (void)state;
    char path[4096], file[4200];
    size_t n_frame = 0, n_evil = 0;
    json_error_t error;
    if (!support_shared_path("templates", path, sizeof path))
        support_skip("no published templates");
    json_t *golden = json_load_file("test/data/templates/golden.json", 0, &error);
    json_t *talks = json_load_file("test/data/templates/conversations.json", 0, &error);
    json_t *cases = json_object_get(talks, "cases"), *results;
    const char *name;
    assert_non_null(cases);
    poison(talks, "");
    json_object_foreach(golden, name, results)
    {
        struct base_error err = BASE_ERROR_INIT;
        size_t size;
        snprintf(file, sizeof file, "%s/%s", path, name);
        char *source = support_read_file(file, &size);
        struct jinja_template *t = jinja_template_parse(source, size, &err);
        assert_non_null(t);
        for (size_t i = 0; i < json_array_size(cases); i++) {
            struct base_buffer out = BASE_BUFFER_INIT, own = BASE_BUFFER_INIT;
            struct base_error ignored = BASE_ERROR_INIT; /* some refuse some of them */
            json_t *context = json_copy(json_object_get(talks, "base"));
            json_object_update(context, json_array_get(cases, i));
            json_object_set(context, "tools", json_object_get(talks, "tools"));
            if (render(t, context, &out, &own, &ignored))
                n_frame += check_marked_text(name, &out, &own, &n_evil);
            json_decref(context);
            base_buffer_free(&out);
            base_buffer_free(&own);
        }
        jinja_template_free(t);
        free(source);
    }
    print_message("%zu marks of templates, %zu of data\n", n_frame, n_evil);
    assert_true(n_frame > 1000 && n_evil > 1000);
    json_decref(golden);
    json_decref(talks);
}

/* ---- Tokens ---- */

static void build_bpe(struct gguf_writer *w)
{
    support_put_bpe(w, "gpt-2");
}

/* `own` has a letter for each byte of the text: F frame, d data. Ids below 256 are letters. */
static void check_ids(const struct support_vocab *v, const char *text, const char *own,
                      const int32_t *want, size_t n)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    char marks[64];
    const size_t size = strlen(text);
    assert_int_equal(strlen(own), size);
    for (size_t i = 0; i < size; i++) marks[i] = own[i] == 'F';
    assert_true(
        text_encode_framed(v->tokenizer, text, marks, size, TEXT_PARSE_SPECIAL, &ids, &err));
    size_t at = 0;
    for (size_t i = 0; i < ids.count; i++) {
        if (ids.id[i] < 256) continue; /* a letter */
        if (at >= n || want[at] != ids.id[i]) fail_msg("%s %s: id %d", text, own, (int)ids.id[i]);
        at++;
    }
    if (at != n) fail_msg("%s %s: %zu tokens, not %zu", text, own, at, n);
    text_ids_free(&ids);
}
#define CHECK(text, own, ...)                                                                      \
    check_ids(&v, text, own, (const int32_t[]){__VA_ARGS__},                                       \
              sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void data_becomes_no_control_token(void **state)
{
    (void)state;
    struct support_vocab v = support_vocab_make(build_bpe);
    assert_non_null(v.tokenizer);
    CHECK("<s>x</s>", "FFFFFFFF", 258, 259);
    check_ids(&v, "<s>x</s>", "dddddddd", NULL, 0);
    CHECK("<s>x</s>", "FFFddddd", 258);
    CHECK("<s>x</s>", "FFFdFFdF", 258); /* one byte of data is enough */
    CHECK("<s><s><s>", "FFFdddFFF", 258, 258);
    /* User-defined tokens are recognized in data, unless the frame has the same token. */
    CHECK("<user>", "dddddd", 261);
    CHECK("<user><user>", "FFFFFFdddddd", 261);
    CHECK("<user><user>", "ddddddFFFFFF", 261);
    /* Words extend across the boundary of data. */
    CHECK("abc", "FdF", 257);
    CHECK("<s>ab", "dddFF", 256);
    support_vocab_free(&v);
}

/* ---- Long tokens ---- */

enum { LONG_A = 2000, LONG = 3, SHORT = 4 };

/* "a" * n_long + "b" is a control token, "a" * 65 + "c" a user-defined one. */
static void put_long(struct gguf_writer *w, size_t n_long)
{
    static const struct gguf_str merges[] = {{"a b", 3}};
    static const int32_t kinds[] = {TEXT_TOKEN_NORMAL, TEXT_TOKEN_NORMAL, TEXT_TOKEN_NORMAL,
                                    TEXT_TOKEN_CONTROL, TEXT_TOKEN_USER};
    static char longer[LONG_A + 2], shorter[67];
    memset(longer, 'a', n_long);
    memcpy(longer + n_long, "b", 2);
    memset(shorter, 'a', 65);
    memcpy(shorter + 65, "c", 2);
    const char *const texts[] = {"a", "b", "c", longer, shorter};
    support_put_text(w, "tokenizer.ggml.model", "gpt2");
    support_put_text(w, "tokenizer.ggml.pre", "gpt-2");
    support_put_tokens(w, texts, kinds, 5);
    gguf_writer_str_array(w, "tokenizer.ggml.merges", merges, 1);
}

static void build_long(struct gguf_writer *w)
{
    put_long(w, LONG_A);
}

static void build_ten(struct gguf_writer *w)
{
    put_long(w, 10);
}

/* Counts occurrences of the long and the short token; returns the processor time. */
static double count_long(const struct support_vocab *v, const char *text, const char *own,
                         size_t size, size_t count[2])
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    const clock_t start = clock();
    assert_true(text_encode_framed(v->tokenizer, text, own, size, TEXT_PARSE_SPECIAL, &ids, &err));
    const clock_t end = clock();
    count[0] = count[1] = 0;
    for (size_t i = 0; i < ids.count; i++)
        if (ids.id[i] >= LONG) count[ids.id[i] - LONG]++;
    text_ids_free(&ids);
    return (double)(end - start) / CLOCKS_PER_SEC;
}

/* Tokens of any length are found in time linear in the text, independent of the token's length. */
static void long_control_tokens_are_found_in_linear_time(void **state)
{
    (void)state;
    enum { SIZE = 40 * LONG_A };
    struct support_vocab v = support_vocab_make(build_long), ten = support_vocab_make(build_ten);
    static char text[SIZE], own[SIZE];
    size_t n[2];
    assert_non_null(v.tokenizer);
    assert_non_null(ten.tokenizer);
    memset(text, 'a', SIZE);
    memset(own, 1, SIZE);
    double longest = 1e9, shortest = 1e9;
    for (int i = 0; i < 3; i++) { /* no token ends here, but one could begin at each position */
        const double a = count_long(&v, text, NULL, SIZE, n);
        assert_int_equal(n[0] + n[1], 0);
        const double b = count_long(&ten, text, NULL, SIZE, n);
        if (a < longest) longest = a;
        if (b < shortest) shortest = b;
    }
    if (longest > 20 * shortest + 0.1) fail_msg("%g s, and %g s with ten", longest, shortest);
    text[LONG_A + 7] = 'b';
    text[LONG_A + 200] = 'c';
    text[3 * LONG_A + 300] = 'b';
    count_long(&v, text, NULL, SIZE, n);
    assert_int_equal(n[0], 2);
    assert_int_equal(n[1], 1);
    count_long(&v, text, own, SIZE, n);
    assert_int_equal(n[0], 2);
    own[LONG_A] = 0; /* one byte of data is enough for a control token */
    count_long(&v, text, own, SIZE, n);
    assert_int_equal(n[0], 1);
    own[3 * LONG_A] = 0;
    count_long(&v, text, own, SIZE, n);
    assert_int_equal(n[0], 0);
    assert_int_equal(n[1], 1);
    own[LONG_A + 180] = 0; /* user-defined: recognized in data if the frame lacks it */
    count_long(&v, text, own, SIZE, n);
    assert_int_equal(n[1], 1);
    support_vocab_free(&v);
    support_vocab_free(&ten);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_the_template_is_distinguished_from_data),
        cmocka_unit_test(data_forms_no_marker_in_published_templates),
        cmocka_unit_test(data_becomes_no_control_token),
        cmocka_unit_test(long_control_tokens_are_found_in_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
