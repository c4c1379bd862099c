/* test/test_pre.c: the pre-tokenizers: every name can be opened, and known families split a text as
 * their reference implementations do. The expected pieces are those of the patterns in each
 * family's tokenizer.json, run by the Hugging Face tokenizers library 0.23. */
#include "base/buffer.h"
#include "base/utf8.h"
#include "test/support.h"
#include "text/tokenizer/pre.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const char sample[] =
    "It's WE'LL getHTTPUrl  12345 x1234567\n\n \tif(a!=½) «ДомДом» 日本語、한국 e\xcc\x81""a\xe3\x80\x80""/\r\n  z ";

static const struct row {
    const char *name;
    const char *pieces; /* separated by bars */
} rows[] = {
    {"bailingmoe",
     "It|'s| WE|'LL| getHTTPUrl| | |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| 日本語|、한국| e|\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"cohere2moe",
     "It's| WE'LL| get|HTTPUrl|  |12|345| x|1|234|567|\n\n| |\tif|(a|!=|½|)| «|Дом|Дом|»| 日本語|、한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"deepseek-coder",
     "It|'|s| WE|'|LL| getHTTPUrl|  |1|2|3|4|5| x|1|2|3|4|5|6|7|\n|\n| |\tif|(|a|!|=|½|)| «|ДомДом|»| |日本語|、|한국| e|\xcc\x81""|a|\xe3\x80\x80""|/|\r|\n| | z| "},
    {"deepseek-llm",
     "It|'|s| WE|'|LL| getHTTPUrl|  |12345| x|1234567|\n|\n| |\tif|(|a|!=|½|)| «|ДомДом|» |日本語|、|한국| e|\xcc\x81""|a|\xe3\x80\x80""|/|\r|\n| | z| "},
    {"deepseek-v3",
     "It|'s| WE|'LL| getHTTPUrl|  |123|45| x|123|456|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| |日本語|、|한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"exaone-moe",
     "It|'s| WE|'LL| getHTTPUrl| | |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| 日本語|、한국 e\xcc\x81""a|\xe3\x80\x80""|/\r|\n| | z| "},
    {"falcon",
     "It|'|s| WE|'|LL| getHTTPUrl| | |123|45| x|123|456|7|\n\n |\t|if|(|a|!=|½|)| |«|ДомДом|»| 日本語|、|한국| e|\xcc\x81""|a|\xe3\x80\x80""|/|\r\n | z| "},
    {"gpt-2",
     "It|'s| WE|'|LL| getHTTPUrl| | 12345| x|1234567|\n\n |\t|if|(|a|!=|½|)| «|ДомДом|»| 日本語|、|한국| e|\xcc\x81""|a|\xe3\x80\x80""|/|\r\n | z| "},
    {"gpt-4o",
     "It's| WE'LL| get|HTTPUrl| | |123|45| x|123|456|7|\n\n| |\tif|(a|!=|½|)| «|Дом|Дом|»| 日本語|、한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"granite-embed-multi-97m",
     "It's| WE'LL| get|HTTPUrl| | |123|45| x|123|456|7|\n\n| |\tif|(a|!=|½|)| «|Дом|Дом|»| 日本語|、한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"jais-2",
     "It|'s| WE|'LL| getHTTPUrl| | |123|45| x|123|456|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| 日本語|、한국| e|\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"kimi-k2",
     "It's| WE'LL| get|HTTPUrl| | |123|45| x|123|456|7|\n\n| |\tif|(a|!=|½|)| «|Дом|Дом|»| |日本語|、한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"llama-bpe",
     "It|'s| WE|'LL| getHTTPUrl| | |123|45| x|123|456|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| 日本語|、한국| e|\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"minicpm5",
     "It|'s| WE|'LL| getHTTPUrl|  |123|45| x|123|456|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| 日本語|、한국| e|\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"minimax-m2",
     "It's| WE'LL| get|HTTPUrl| | |123|45| x|123|456|7|\n\n| |\tif|(a|!=|½|)| «|Дом|Дом|»| 日本語|、한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"poro-chat",
     "It's| WE'LL| getHTTPUrl| | 12345| x1234567|\n\n \t|if|(|a|!|=½|)| «ДомДом»| 日本語|、|한국| e\xcc\x81""a|\xe3\x80\x80""|/|\r\n | z| "},
    {"qwen2",
     "It|'s| WE|'LL| getHTTPUrl| | |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| 日本語|、한국| e|\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"qwen35",
     "It|'s| WE|'LL| getHTTPUrl| | |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| 日本語|、한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"seed-coder",
     "It|'s| WE|'LL| getHTTPUrl| | |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n| |\tif|(a|!=|½|)| «|ДомДом|»| 日本語|、한국| e|\xcc\x81""a|\xe3\x80\x80""|/|\r\n| | z| "},
    {"smollm",
     "It|'s| WE|'|LL| getHTTPUrl|  |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n |\t|if|(|a|!=|½|)| «|ДомДом|»| 日本語|、|한국| e|\xcc\x81""|a|\xe3\x80\x80""|/|\r\n | z| "},
    {"superbpe",
     "It's WE'LL getHTTPUrl  |12|345| x|1|234|567|\n\n \tif(a!=|½|) «ДомДом» 日本語、한국 e\xcc\x81""a\xe3\x80\x80""/\r\n  z "},
    {"tekken",
     "It|'s| WE|'LL| get|HTTPUrl| | |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n| |\tif|(a|!=|½|)| «|Дом|Дом|»| 日本語|、한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"tiny_aya",
     "It's| WE'LL| get|HTTPUrl|  |12|345| x|1|234|567|\n\n| |\tif|(a|!=|½|)| «|Дом|Дом|»| 日本語|、한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
    {"viking",
     "It's| WE'LL| getHTTPUrl| | |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n \t|if|(|a|!|=|½|)| «ДомДом»| 日本語|、|한국| e\xcc\x81""a|\xe3\x80\x80""|/|\r\n | z| "},
    {"youtu",
     "It's| WE'LL| get|HTTPUrl| | |1|2|3|4|5| x|1|2|3|4|5|6|7|\n\n| |\tif|(a|!=|½|)| «|Дом|Дом|»| |日本語|、|한국| e\xcc\x81""a|\xe3\x80\x80""|/\r\n| | z| "},
};
/* clang-format on */

static struct text_splitter *open_pre(const char *name)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct text_pre *pre = text_pre_find((struct gguf_str){name, strlen(name)});
    assert_non_null(pre);
    struct text_splitter *s = text_splitter_open(pre->steps, &err);
    if (!s) fail_msg("%s: %s", name, err.text);
    return s;
}

/* The pieces, separated by bars; the caller frees them. */
static char *cut(const char *name, const char *text, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_splitter *s = open_pre(name);
    struct text_cuts cuts = {0};
    char *out = malloc(2 * size + 1), *at = out;
    assert_non_null(out);
    if (!text_split(s, text, size, &cuts, &err)) fail_msg("%s: %s", name, err.text);
    for (size_t k = 0, start = 0; k < cuts.count; start = cuts.end[k++]) {
        if (k) *at++ = '|';
        memcpy(at, text + start, cuts.end[k] - start);
        at += cuts.end[k] - start;
    }
    *at = 0;
    text_cuts_free(&cuts);
    text_splitter_close(s);
    return out;
}

static void expect(const char *name, const char *text, const char *pieces)
{
    char *got = cut(name, text, strlen(text));
    if (strcmp(got, pieces)) fail_msg("%s:\n  got  %s\n  want %s", name, got, pieces);
    free(got);
}

static void each_family_divides_as_its_pattern_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect(rows[i].name, sample, rows[i].pieces);
}

static void digits_are_cut_as_each_family_does(void **state)
{
    (void)state;
    expect("superbpe", "a123456 1234", "a|123|456| |1|234");
    expect("superbpe",
           "\xc2\xbd"
           "12345",
           "\xc2\xbd"
           "12|345");
    /* A run before a letter does not end at a word boundary, so the second pattern splits it. */
    expect("tiny_aya", "12345 12345x", "12|345| |123|45|x");
    expect("tiny_aya", "1234", "1|234");
    expect("afmoe", "12345x123456", "12|345|x|123|456");
    expect("llama3", "12345", "123|45");
    expect("smollm", "1234", "1|2|3|4");
}

static void aliases_name_the_same_patterns(void **state)
{
    (void)state;
    expect("laguna", "a b\n\nc", "a| b|\n\n|c");
    expect("gemma4", "a b\n\nc", "a b|\n\n|c");
    expect("chameleon", "IMGIMGABCZ <sentinel:12>    x", "IMGIMGABCZ| |<|sentinel|:|1|2|>|    |x");
    expect("default", "a$ 12 <b>", "a|$| |12| |<|b|>");
    expect("whitespace", " a  b ", " |a|  |b| ");
    assert_null(text_pre_find((struct gguf_str){"no-such-name", 12}));
}

/* U+180E is not white space, U+0085 is. */
static void white_space_is_that_of_unicode(void **state)
{
    (void)state;
    expect("gpt-2", "a\xe1\xa0\x8e!", "a|\xe1\xa0\x8e!");
    expect("gpt-2",
           "a\xc2\x85"
           "b",
           "a|\xc2\x85|b");
}

/* ---- Classes ---- */

/* Every code point, each after U+0001, which is in no class that a pattern names. */
static struct base_buffer make_all_characters(void)
{
    struct base_buffer text = BASE_BUFFER_INIT;
    for (int32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[4];
        if (code >= 0xd800 && code <= 0xdfff) continue;
        base_buffer_add(&text, "\1", 1);
        base_buffer_add(&text, bytes, base_utf8_encode(code, bytes));
    }
    assert_false(text.failed);
    return text;
}

/* Number and FNV-1a (over code points) of the characters of each class in Unicode 15.1, by another
 * implementation (llama.cpp's table). */
static void classes_are_those_of_one_version_of_unicode(void **state)
{
    static const struct {
        const char *pattern;
        size_t count;
        uint64_t hash;
    } class[] = {
        {"\\p{L}", 136726, 0xd48c26e1c59c9b26u}, {"\\p{N}", 1831, 0xf907fd5a29046af0u},
        {"\\p{M}", 2450, 0x21ce5644b8624f80u},   {"\\p{P}", 842, 0x471cef440d124e56u},
        {"\\p{S}", 7775, 0x970cc677ee93541bu},   {"\\p{Z}", 19, 0x836ce65e972de2b9u},
    };
    struct base_buffer text = make_all_characters();
    (void)state;
    for (size_t i = 0; i < sizeof class / sizeof class[0]; i++) {
        const struct text_step steps[] = {{TEXT_STEP_REGEX, class[i].pattern},
                                          {TEXT_STEP_END, NULL}};
        struct base_error err = BASE_ERROR_INIT;
        struct text_splitter *s = text_splitter_open(steps, &err);
        struct text_cuts cuts = {0};
        uint64_t hash = 0xcbf29ce484222325u;
        size_t count = 0;
        assert_non_null(s);
        assert_true(text_split(s, text.data, text.size, &cuts, &err));
        for (size_t k = 0, start = 0; k < cuts.count; start = cuts.end[k++]) {
            int32_t code;
            base_utf8_decode(text.data + start, cuts.end[k] - start, &code);
            if (code == 1) continue; /* between two matches */
            hash = (hash ^ (uint32_t)code) * 0x100000001b3u;
            count++;
        }
        if (count != class[i].count || hash != class[i].hash)
            fail_msg("%s: %zu characters, hash %016llx", class[i].pattern, count,
                     (unsigned long long)hash);
        text_cuts_free(&cuts);
        text_splitter_close(s);
    }
    base_buffer_free(&text);
}

/* A pattern that names a character matches it, whatever its version of Unicode: U+31350 of Unicode
 * 15 is a Chinese character to kimi-k2; U+20C1 of Unicode 17 is neither a letter nor a symbol, but
 * it is between U+0800 and U+4E00, which deepseek-llm cuts out. */
static void listed_characters_do_not_depend_on_classes(void **state)
{
    (void)state;
    expect("kimi-k2", "a\U00031350\u4e2db", "a|\U00031350\u4e2d|b");
    expect("deepseek-llm", "a\u20c1", "a|\u20c1");
    expect("deepseek-v3", "$\u20c1$", "$|\u20c1|$");
}

/* Newlines end a piece anywhere in a run; the rest is cut into powers of two. */
static void runs_of_white_space_are_cut_as_jais_2_does(void **state)
{
    char spaces[600 + 1] = {0}, text[700], pieces[700];
    memset(spaces, ' ', sizeof spaces - 1);
    (void)state;
    expect("jais-2", "!\n  \n     \n \t \nx", "!\n|  \n     \n \t \n|x");
    expect("jais-2", "           y", "        |  | y");
    snprintf(text, sizeof text, "a%s\r\n  ", spaces);
    snprintf(pieces, sizeof pieces, "a|%s\r\n|  ", spaces);
    expect("jais-2", text, pieces);
    snprintf(text, sizeof text, "a%s", spaces);
    snprintf(pieces, sizeof pieces, "a|%.512s|%.64s|%.16s|%.8s", spaces, spaces, spaces, spaces);
    expect("jais-2", text, pieces);
}

/* Every invalid byte counts as one symbol, and all bytes are kept. */
static void every_invalid_byte_is_one_symbol(void **state)
{
    (void)state;
    expect("gpt-2",
           "a\xff\xfe"
           "b \xc3(",
           "a|\xff\xfe|b| \xc3(");
    expect("gpt-2", "\xe4\xb8 \xb8\xad", "\xe4\xb8| \xb8\xad");
    expect("gpt-2", "\xed\xa0\x80x", "\xed\xa0\x80|x"); /* a surrogate */
}

/* Every name can be opened, splits long repetitive texts without reaching a limit, and keeps every
 * byte. */
static void long_texts_are_divided_without_losing_a_byte(void **state)
{
    static const char *const units[] = {"A", " ",   "\n",        "1",    "Aa", "\xe4\xb8\xad",
                                        "!", "1a ", "e\xcc\x81", "\xff", " x"};
    enum { SIZE = 60000 };
    (void)state;
    for (size_t i = 0; text_pre_at(i); i++) {
        struct text_splitter *s = open_pre(text_pre_at(i)->name);
        for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
            struct base_error err = BASE_ERROR_INIT;
            struct text_cuts cuts = {0};
            size_t unit = strlen(units[u]), size = SIZE / unit * unit;
            char *text = malloc(size);
            assert_non_null(text);
            for (size_t k = 0; k < size; k += unit) memcpy(text + k, units[u], unit);
            if (!text_split(s, text, size, &cuts, &err))
                fail_msg("%s on %s: %s", text_pre_at(i)->name, units[u], err.text);
            for (size_t k = 1; k < cuts.count; k++) assert_true(cuts.end[k] > cuts.end[k - 1]);
            assert_int_equal(cuts.end[cuts.count - 1], size);
            text_cuts_free(&cuts);
            free(text);
        }
        text_splitter_close(s);
    }
    assert_null(text_pre_at(1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_divides_as_its_pattern_says),
        cmocka_unit_test(digits_are_cut_as_each_family_does),
        cmocka_unit_test(aliases_name_the_same_patterns),
        cmocka_unit_test(white_space_is_that_of_unicode),
        cmocka_unit_test(classes_are_those_of_one_version_of_unicode),
        cmocka_unit_test(listed_characters_do_not_depend_on_classes),
        cmocka_unit_test(runs_of_white_space_are_cut_as_jais_2_does),
        cmocka_unit_test(every_invalid_byte_is_one_symbol),
        cmocka_unit_test(long_texts_are_divided_without_losing_a_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
