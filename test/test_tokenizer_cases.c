/* test/test_tokenizer_cases.c: the ids of the texts of test/data/tokenizer/texts.txt against those
 * of the reference programs (tokenizers, SentencePiece, rwkv, llama.cpp), stored by
 * scripts/make-tokenizer-cases: six small vocabularies in the repository, one of them with each
 * pre-tokenizer that has stored ids, and the vocabularies of the two test models if available. */
#include "test/support.h"

#include "base/utf8.h"
#include "test/support_files.h"
#include "test/support_folder.h"
#include "test/support_vocab.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char folder[] = "test/data/tokenizer";

/* ---- The texts: one per line, with \n \r \t \\ \uXXXX and \UXXXXXXXX ---- */

static void add_unescaped(const char *line, size_t size, struct base_buffer *out)
{
    for (size_t i = 0; i < size; i++) {
        static const char simple[] = "n\nr\rt\t\\\\";
        char digits[9] = {0}, bytes[4];
        if (line[i] != '\\') {
            base_buffer_add(out, line + i, 1);
            continue;
        }
        const char kind = line[++i], *found = strchr(simple, kind);
        if (found) {
            base_buffer_add(out, found + 1, 1);
            continue;
        }
        const size_t n = kind == 'U' ? 8 : 4;
        assert_true((kind == 'u' || kind == 'U') && i + n < size);
        memcpy(digits, line + i + 1, n);
        base_buffer_add(out, bytes, base_utf8_encode((int32_t)strtol(digits, NULL, 16), bytes));
        i += n;
    }
}

/* Reads the numbers of one line of ids; false for "-", a text without stored ids. */
static bool read_ids(const char *line, size_t size, struct text_ids *ids)
{
    struct base_error err = BASE_ERROR_INIT;
    if (size == 1 && *line == '-') return false;
    for (const char *at = line; at < line + size;) {
        char *end;
        long id = strtol(at, &end, 10);
        assert_true(end != at && end <= line + size);
        assert_true(text_ids_add(ids, (int32_t)id, &err));
        at = end + (end < line + size && *end == ' ');
    }
    return true;
}

static char *read_data(const char *name, const char *suffix)
{
    char path[256];
    size_t size;
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    char *text = support_read_file(path, &size);
    if (!text) fail_msg("%s is missing (run from the project's root)", path);
    return text;
}

static void check_text(const struct text_tokenizer *t, const char *name, int line, unsigned flags,
                       const struct base_buffer *text, const struct text_ids *want)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids got = TEXT_IDS_INIT;
    if (!text_encode(t, text->data, text->size, flags, &got, &err))
        fail_msg("%s, line %d: %s", name, line, err.text);
    for (size_t i = 0; i < got.count && i < want->count; i++)
        if (got.id[i] != want->id[i])
            fail_msg("%s, line %d: id %zu is %d, not %d", name, line, i, got.id[i], want->id[i]);
    if (got.count != want->count)
        fail_msg("%s, line %d: %zu ids, not %zu", name, line, got.count, want->count);
    text_ids_free(&got);
}

/* All texts against NAME.ids. */
static void check_ids(const struct text_tokenizer *t, const char *name, unsigned flags)
{
    char *texts = read_data("texts", ".txt"), *answers = read_data(name, ".ids");
    const char *line = texts, *answer = answers;
    int n = 0, checked = 0;
    while (*line) {
        const size_t size = strcspn(line, "\n"), answer_size = strcspn(answer, "\n");
        struct base_buffer text = BASE_BUFFER_INIT;
        struct text_ids want = TEXT_IDS_INIT;
        n++;
        if (answer[answer_size] != '\n') fail_msg("%s.ids ends before line %d", name, n);
        add_unescaped(line, size, &text);
        if (read_ids(answer, answer_size, &want)) {
            check_text(t, name, n, flags, &text, &want);
            checked++;
        }
        base_buffer_free(&text);
        text_ids_free(&want);
        line += size + (line[size] == '\n');
        answer += answer_size + 1;
    }
    if (*answer) fail_msg("%s.ids has more lines than texts.txt", name);
    if (checked < n - 12 || n < 90) fail_msg("%s: only %d of %d texts have ids", name, checked, n);
    free(texts);
    free(answers);
}

/* ---- The small vocabularies ---- */

static struct support_vocab open_small(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    return support_vocab_open(path);
}

/* Whether a text is part of the long text: not if libraries interpret its bytes differently. */
static bool is_part(const struct base_buffer *text)
{
    static const char *const left_out[] = {"\xe2\x96\x81", "\xc2\x85"};
    if (!text->size) return true; /* without bytes `data` is NULL */
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (memmem(text->data, text->size, left_out[i], strlen(left_out[i]))) return false;
    return !memchr(text->data, 0, text->size);
}

/* Text i * i % 97 of texts.txt for each i, separated by spaces: longer than any tokenizer encodes
 * as a whole, with most words repeated. */
static struct base_buffer make_long_text(void)
{
    enum { PARTS = 97, TIMES = 900 };
    struct base_buffer part[PARTS] = {BASE_BUFFER_INIT}, all = BASE_BUFFER_INIT;
    char *texts = read_data("texts", ".txt");
    const char *line = texts;
    for (int i = 0; i < PARTS; i++, line += strcspn(line, "\n") + 1)
        add_unescaped(line, strcspn(line, "\n"), &part[i]);
    for (int i = 0; i < TIMES; i++) {
        const struct base_buffer *p = &part[i * i % PARTS];
        if (!is_part(p)) continue;
        if (i) base_buffer_add_text(&all, " ");
        base_buffer_add(&all, p->data, p->size);
    }
    for (int i = 0; i < PARTS; i++) base_buffer_free(&part[i]);
    free(texts);
    assert_false(all.failed);
    return all;
}

/* Compares number and FNV-1a of the ids of the long text with NAME's line of long.sums. */
static void check_long(const struct text_tokenizer *t, const char *name)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    struct base_buffer text = make_long_text();
    char want[64], *sums = read_data("long", ".sums");
    uint64_t hash = 0xcbf29ce484222325u;
    if (!text_encode(t, text.data, text.size, 0, &ids, &err)) fail_msg("%s: %s", name, err.text);
    for (size_t i = 0; i < ids.count; i++)
        for (int shift = 0; shift < 32; shift += 8)
            hash = (hash ^ ((uint32_t)ids.id[i] >> shift & 0xff)) * 0x100000001b3u;
    snprintf(want, sizeof want, "%s %zu %016llx\n", name, ids.count, (unsigned long long)hash);
    if (!strstr(sums, want)) fail_msg("the ids of the long text differ: %s", want);
    base_buffer_free(&text);
    text_ids_free(&ids);
    free(sums);
}

static void check_small(const char *name)
{
    struct support_vocab v = open_small(name);
    check_ids(v.tokenizer, name, 0);
    check_long(v.tokenizer, name);
    support_vocab_free(&v);
}

static void spm_gives_the_reference_ids(void **state)
{
    (void)state;
    check_small("spm");
}

static void unigram_gives_the_reference_ids(void **state)
{
    (void)state;
    check_small("unigram");
}

static void rwkv_gives_the_reference_ids(void **state)
{
    (void)state;
    check_small("rwkv");
}

static void plamo2_gives_the_reference_ids(void **state)
{
    (void)state;
    check_small("plamo2");
}

static void wordpiece_gives_the_reference_ids(void **state)
{
    (void)state;
    check_small("wordpiece");
    struct support_vocab v = open_small("wordpiece");
    check_ids(v.tokenizer, "wordpiece.special", TEXT_PARSE_SPECIAL);
    support_vocab_free(&v);
}

/* bpe.gguf with another tokenizer.ggml.pre. */
static struct support_vocab open_bpe(const char *pre)
{
    char path[128], source[256];
    struct base_error err = BASE_ERROR_INIT;
    snprintf(source, sizeof source, "%s/bpe.gguf", folder);
    struct gguf_file *file = support_open_gguf(source);
    struct gguf_writer *w = gguf_writer_new(&err);
    assert_non_null(w);
    const struct gguf_str key = support_str("tokenizer.ggml.pre");
    for (uint64_t i = 0; i < gguf_kv_count(file); i++) {
        const struct gguf_kv *kv = gguf_kv_at(file, i);
        if (kv->key.size == key.size && memcmp(kv->key.data, key.data, key.size) == 0)
            gguf_writer_str(w, key.data, pre, strlen(pre));
        else
            gguf_writer_copy_kv(w, kv);
    }
    support_folder_path(pre, path);
    if (!gguf_writer_begin(w, path, &err) || !gguf_writer_end(w, &err)) fail_msg("%s", err.text);
    gguf_writer_free(w);
    gguf_close(file);
    struct support_vocab v = support_vocab_open(path);
    assert_string_equal(text_tokenizer_pre(v.tokenizer), pre);
    return v;
}

static void pre_tokenizers_give_the_reference_ids(void **state)
{
    /* Each is an example of all names with the same patterns. */
    static const char *const names[] = {"gpt-2",       "smollm",     "llama-bpe", "qwen2",
                                        "qwen35",      "gpt-4o",     "tekken",    "bloom",
                                        "deepseek-v3", "seed-coder", "minicpm5"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char ids[64];
        struct support_vocab v = open_bpe(names[i]);
        snprintf(ids, sizeof ids, "bpe.%s", names[i]);
        check_ids(v.tokenizer, ids, 0);
        if (i == 0) check_ids(v.tokenizer, "bpe.gpt-2.special", TEXT_PARSE_SPECIAL);
        if (i == 0) check_long(v.tokenizer, "bpe");
        support_vocab_free(&v);
    }
}

/* ---- The vocabularies of the test models ---- */

static struct support_vocab open_model(const char *file)
{
    char path[1024];
    if (!support_model_path(file, path, sizeof path)) support_skip(file);
    return support_vocab_open(path);
}

static void smollm2_gives_the_reference_ids_of_our_texts(void **state)
{
    (void)state;
    struct support_vocab v = open_model(SUPPORT_SMOLLM2);
    check_ids(v.tokenizer, "smollm2", 0);
    check_ids(v.tokenizer, "smollm2.special", TEXT_PARSE_SPECIAL);
    support_vocab_free(&v);
}

static void gemma3_gives_the_reference_ids_of_our_texts(void **state)
{
    (void)state;
    struct support_vocab v = open_model(SUPPORT_GEMMA3);
    check_ids(v.tokenizer, "gemma3", 0);
    support_vocab_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spm_gives_the_reference_ids),
        cmocka_unit_test(wordpiece_gives_the_reference_ids),
        cmocka_unit_test(unigram_gives_the_reference_ids),
        cmocka_unit_test(rwkv_gives_the_reference_ids),
        cmocka_unit_test(plamo2_gives_the_reference_ids),
        cmocka_unit_test(smollm2_gives_the_reference_ids_of_our_texts),
        cmocka_unit_test(pre_tokenizers_give_the_reference_ids),
        cmocka_unit_test(gemma3_gives_the_reference_ids_of_our_texts),
    };
    return cmocka_run_group_tests(tests, support_folder_make, support_folder_remove);
}
