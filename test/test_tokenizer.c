/* test/test_tokenizer.c: real vocabularies against stored ids, round trips, long texts. Small and
 * hostile vocabularies are in test_vocab.c, pre-tokenizers in test_pre.c. */
#include "base/interrupt.h"
#include "base/utf8.h"
#include "test/support.h"
#include "test/support_files.h"
#include "test/support_gguf.h"
#include "test/support_random.h"
#include "test/support_vocab.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Stored ids ---- */

static void check_ids(const char *what, const struct text_ids *ids, const int32_t *want,
                      size_t count)
{
    for (size_t i = 0; i < ids->count && i < count; i++)
        if (ids->id[i] != want[i])
            fail_msg("%s: id %zu is %d, not %d", what, i, (int)ids->id[i], (int)want[i]);
    if (ids->count != count) fail_msg("%s: %zu ids, not %zu", what, ids->count, count);
}

static struct text_ids encode(const struct text_tokenizer *t, const char *text, size_t size,
                              unsigned flags)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    if (!text_encode(t, text, size, flags, &ids, &err)) fail_msg("encoding: %s", err.text);
    return ids;
}

/* Reads the numbers of one line; returns the start of the next line. */
static const char *read_line(const char *at, struct text_ids *ids)
{
    struct base_error err = BASE_ERROR_INIT;
    while (*at && *at != '\n') {
        char *end;
        long id = strtol(at, &end, 10);
        if (end == at) break;
        assert_true(text_ids_add(ids, (int32_t)id, &err));
        at = end + strspn(end, " ");
    }
    return at + strspn(at, " ") + 1;
}

/* Checks NAME.gguf with NAME.gguf.inp and NAME.gguf.out; returns the number of cases. */
static int check_vocab_file(const char *name)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char path[1024], part[256];
    size_t n_in, n_out;
    int count = 0;
    snprintf(part, sizeof part, "vocab/%s.gguf", name);
    if (!support_shared_path(part, path, sizeof path)) return 0;
    struct support_vocab v = support_vocab_open(path);
    snprintf(part, sizeof part, "vocab/%s.gguf.inp", name);
    assert_true(support_shared_path(part, path, sizeof path));
    char *in = support_read_file(path, &n_in);
    snprintf(part, sizeof part, "vocab/%s.gguf.out", name);
    assert_true(support_shared_path(part, path, sizeof path));
    char *out = support_read_file(path, &n_out);
    assert_true(in && out);
    const char *line = out;
    for (char *at = in, *next; at; at = next, count++) {
        struct text_ids want = TEXT_IDS_INIT;
        char *end = strstr(at, separator);
        next = end ? end + strlen(separator) : NULL;
        size_t size = end ? (size_t)(end - at) : (size_t)(in + n_in - at);
        if (!next && size == 0) break;
        assert_true(line < out + n_out);
        line = read_line(line, &want);
        struct text_ids ids = encode(v.tokenizer, at, size, 0);
        snprintf(part, sizeof part, "%s, case %d", name, count);
        check_ids(part, &ids, want.id, want.count);
        text_ids_free(&ids);
        text_ids_free(&want);
    }
    free(in);
    free(out);
    support_vocab_free(&v);
    return count;
}

static void stored_vocabularies_give_the_reference_ids(void **state)
{
    static const char *const names[] = {"ggml-vocab-bert-bge", "ggml-vocab-gpt-2",
                                        "ggml-vocab-llama-spm", "ggml-vocab-phi-3",
                                        "ggml-vocab-starcoder"};
    int count = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) count += check_vocab_file(names[i]);
    if (count == 0) support_skip("no vocabulary files");
    assert_true(count > 100);
}

static void check_golden(const char *json, const char *model)
{
    char path[1024];
    if (!support_model_path(model, path, sizeof path)) support_skip(model);
    json_t *root = json_load_file(json, 0, NULL), *prompt;
    if (!root) fail_msg("%s is missing (run from the project's root)", json);
    assert_int_equal(json_object_size(json_object_get(root, "prompts")), 4);
    struct support_vocab v = support_vocab_open(path);
    const char *name;
    json_object_foreach(json_object_get(root, "prompts"), name, prompt)
    {
        const char *text = json_string_value(json_object_get(prompt, "text"));
        const json_t *want = json_object_get(prompt, "ids");
        struct text_ids ids = encode(v.tokenizer, text, strlen(text), TEXT_ADD_SPECIAL);
        assert_int_equal(ids.count, json_array_size(want));
        for (size_t i = 0; i < ids.count; i++)
            if (ids.id[i] != json_integer_value(json_array_get(want, i)))
                fail_msg("prompt %s, id %zu: %d", name, i, (int)ids.id[i]);
        text_ids_free(&ids);
    }
    support_vocab_free(&v);
    json_decref(root);
}

static void smollm2_gives_the_reference_ids(void **state)
{
    (void)state;
    check_golden("test/data/golden/smollm2-135m.json", SUPPORT_SMOLLM2);
}

static void gemma3_gives_the_reference_ids(void **state)
{
    (void)state;
    check_golden("test/data/golden/gemma3-270m.json", SUPPORT_GEMMA3);
}

/* ---- Round trips ---- */

/* Random bytes, or characters of a few Unicode blocks, or both. */
static size_t random_text(uint64_t *seed, char *out, size_t room)
{
    static const int32_t blocks[][2] = {{0x20, 0x7e},     {0x20, 0x7e},      {9, 13},
                                        {0x80, 0x24f},    {0x300, 0x36f},    {0x400, 0x4ff},
                                        {0x900, 0x97f},   {0x2000, 0x206f},  {0x4e00, 0x4fff},
                                        {0xac00, 0xacff}, {0x1f300, 0x1f64f}};
    size_t want = support_random(seed) % room, n = 0;
    unsigned dirt = support_random(seed) % 3; /* 0: none, 1: some bytes, 2: only bytes */
    while (n + 4 < want) {
        if (dirt == 2 || (dirt == 1 && support_random(seed) % 8 == 0)) {
            out[n++] = (char)support_random(seed);
            continue;
        }
        const int32_t *b = blocks[support_random(seed) % (sizeof blocks / sizeof blocks[0])];
        n += base_utf8_encode(b[0] + (int32_t)(support_random(seed) % (uint64_t)(b[1] - b[0] + 1)),
                              out + n);
    }
    return n;
}

static bool is_valid(const char *text, size_t size)
{
    int32_t code = 0;
    for (size_t i = 0; i < size && code >= 0;) i += base_utf8_decode(text + i, size - i, &code);
    return code >= 0;
}

/* Decodes the ids by the stream; valid text must be whole sequences at every step. */
static void decode(const struct text_tokenizer *t, const struct text_ids *ids, bool valid,
                   struct base_buffer *out)
{
    struct text_decoder d;
    base_buffer_clear(out);
    text_decoder_init(&d, t, false, false);
    for (size_t i = 0; i < ids->count; i++) {
        text_decoder_add(&d, ids->id[i], out);
        if (valid && out->size) assert_int_equal(base_utf8_open_tail(out->data, out->size), 0);
    }
    assert_true(!valid || d.n_held == 0);
    base_buffer_add(out, d.held, d.n_held); /* bytes that text_decoder_end would replace */
}

static void check_round_trips(const struct text_tokenizer *t, uint64_t seed)
{
    struct base_buffer out = BASE_BUFFER_INIT;
    char text[400];
    for (int i = 0; i < 600; i++) {
        uint64_t before = seed;
        size_t size = random_text(&seed, text, sizeof text);
        struct text_ids ids = encode(t, text, size, i % 2 ? TEXT_ADD_SPECIAL : 0);
        decode(t, &ids, is_valid(text, size), &out);
        if (out.size != size || (size && memcmp(out.data, text, size)))
            fail_msg("seed %llu: %zu bytes came back as %zu", (unsigned long long)before, size,
                     out.size);
        text_ids_free(&ids);
    }
    base_buffer_free(&out);
}

static void decoding_gives_the_encoded_text(void **state)
{
    static const char *const names[] = {"vocab/ggml-vocab-gpt-2.gguf",
                                        "vocab/ggml-vocab-llama-spm.gguf"};
    int count = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        if (!support_shared_path(names[i], path, sizeof path)) continue;
        struct support_vocab v = support_vocab_open(path);
        check_round_trips(v.tokenizer, 1000 + i);
        support_vocab_free(&v);
        count++;
    }
    if (count == 0) support_skip("no vocabulary files");
}

static void build_small(struct gguf_writer *w)
{
    support_put_bpe(w, "gpt-4o");
}

static void decoding_gives_the_encoded_text_with_small_vocabularies(void **state)
{
    struct support_vocab bpe = support_vocab_make(build_small);
    struct support_vocab spm = support_vocab_make(support_put_spm);
    (void)state;
    assert_true(bpe.tokenizer && spm.tokenizer);
    check_round_trips(bpe.tokenizer, 1);
    check_round_trips(spm.tokenizer, 2);
    support_vocab_free(&bpe);
    support_vocab_free(&spm);
}

/* ---- Long texts ---- */

/* 1 MB of one unit must finish; with quadratic time it would not. */
static void check_long(const struct text_tokenizer *t, const char *unit)
{
    size_t n = strlen(unit), size = (support_quick() ? 100000 : 1000000) / n * n;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < size; i += n) memcpy(text + i, unit, n);
    struct text_ids ids = encode(t, text, size, TEXT_PARSE_SPECIAL);
    assert_true(ids.count > 0);
    text_ids_free(&ids);
    free(text);
}

static void long_texts_take_linear_time(void **state)
{
    static const char *const names[] = {"vocab/ggml-vocab-gpt-2.gguf",
                                        "vocab/ggml-vocab-llama-spm.gguf",
                                        "vocab/ggml-vocab-bert-bge.gguf"};
    static const char *const units[] = {"A", "\n", "ab "};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        if (!support_shared_path(names[i], path, sizeof path)) support_skip("no vocabulary files");
        struct support_vocab v = support_vocab_open(path);
        for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
            if (i == 2 && *units[u] == '\n') continue; /* text of only white space has no ids */
            check_long(v.tokenizer, units[u]);
        }
        support_vocab_free(&v);
    }
}

static void long_texts_with_small_vocabularies_take_linear_time(void **state)
{
    struct support_vocab bpe = support_vocab_make(build_small);
    struct support_vocab spm = support_vocab_make(support_put_spm);
    (void)state;
    assert_true(bpe.tokenizer && spm.tokenizer);
    check_long(bpe.tokenizer, "ab");
    check_long(spm.tokenizer, "ab");
    check_long(spm.tokenizer, "<user>");
    support_vocab_free(&bpe);
    support_vocab_free(&spm);
}

/* ---- Texts that are split into parts ---- */

static void build_joining(struct gguf_writer *w)
{
    static const char *const texts[] = {"<unk>", "<s>", "</s>",    "\u2581",
                                        "a",     "b",   "b\u2581", "b\u2581a"};
    static const int32_t kinds[] = {TEXT_TOKEN_UNKNOWN, TEXT_TOKEN_CONTROL, TEXT_TOKEN_CONTROL,
                                    TEXT_TOKEN_NORMAL,  TEXT_TOKEN_NORMAL,  TEXT_TOKEN_NORMAL,
                                    TEXT_TOKEN_NORMAL,  TEXT_TOKEN_NORMAL};
    static const float scores[] = {0, 0, 0, -4, -3, -2, -1, 0};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, 8);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, scores, 8);
}

/* "ab ab .. ab" has a token across each space at any length. */
static void tokens_across_spaces_do_not_depend_on_the_length_of_the_text(void **state)
{
    struct support_vocab v = support_vocab_make(build_joining);
    struct text_ids ids = TEXT_IDS_INIT;
    struct base_error err = BASE_ERROR_INIT;
    enum { MOST = 40000 };
    char *text = malloc(3 * MOST);
    (void)state;
    assert_non_null(text);
    if (!v.tokenizer) fail_msg("%s", v.err.text);
    for (int i = 0; i < MOST; i++) memcpy(text + 3 * i, "ab ", 3);
    for (int words = 4; words <= MOST; words *= 10) {
        ids.count = 0;
        assert_true(text_encode(v.tokenizer, text, (size_t)(3 * words - 1), 0, &ids, &err));
        assert_int_equal(ids.count, words + 2); /* U+2581 a, then b_a for each space, and b */
        for (int i = 0; i < words - 1; i++) assert_int_equal(ids.id[2 + i], 7);
    }
    text_ids_free(&ids);
    support_vocab_free(&v);
    free(text);
}

/* ---- Ctrl-C ---- */

static void build_words(struct gguf_writer *w)
{
    static const char *const texts[] = {"[UNK]", "[CLS]", "[SEP]", "\u2581a"};
    support_put_text(w, "tokenizer.ggml.model", "bert");
    support_put_tokens(w, texts, NULL, sizeof texts / sizeof *texts);
}

static void check_interruption(void (*build)(struct gguf_writer *w), const char *text)
{
    struct support_vocab v = support_vocab_make(build);
    struct text_ids ids = TEXT_IDS_INIT;
    struct base_error err = BASE_ERROR_INIT;
    if (!v.tokenizer) fail_msg("%s", v.err.text);
    assert_true(text_encode(v.tokenizer, text, strlen(text), TEXT_PARSE_SPECIAL, &ids, &err));
    assert_true(ids.count > 0);
    base_interrupt();
    assert_false(text_encode(v.tokenizer, text, strlen(text), TEXT_PARSE_SPECIAL, &ids, &err));
    base_interrupt_clear();
    assert_int_equal(err.code, BASE_INTERRUPTED);
    text_ids_free(&ids);
    support_vocab_free(&v);
}

static void an_interruption_ends_encoding(void **state)
{
    (void)state;
    check_interruption(build_small, "ab ab");
    check_interruption(support_put_spm, "ab");
    check_interruption(build_words, "a a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_vocabularies_give_the_reference_ids),
        cmocka_unit_test(smollm2_gives_the_reference_ids),
        cmocka_unit_test(gemma3_gives_the_reference_ids),
        cmocka_unit_test(decoding_gives_the_encoded_text),
        cmocka_unit_test(decoding_gives_the_encoded_text_with_small_vocabularies),
        cmocka_unit_test(long_texts_take_linear_time),
        cmocka_unit_test(long_texts_with_small_vocabularies_take_linear_time),
        cmocka_unit_test(tokens_across_spaces_do_not_depend_on_the_length_of_the_text),
        cmocka_unit_test(an_interruption_ends_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
