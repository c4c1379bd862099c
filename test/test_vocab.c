/* test/test_vocab.c: small vocabularies, among them hostile and unusual ones, each a named case. */
#include "test/support.h"
#include "test/support_gguf.h"
#include "test/support_vocab.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Vocabularies that cannot be opened ---- */

static void build_no_model(struct gguf_writer *w)
{
    support_put_text(w, "general.name", "nothing");
}

static void build_unknown_model(struct gguf_writer *w)
{
    support_put_text(w, "tokenizer.ggml.model", "morse");
}

static void build_unknown_pre(struct gguf_writer *w)
{
    support_put_bpe(w, "marmelade");
}

static void build_model_not_text(struct gguf_writer *w)
{
    gguf_writer_u32(w, "tokenizer.ggml.model", 7);
}

static void build_no_tokens(struct gguf_writer *w)
{
    support_put_text(w, "tokenizer.ggml.model", "llama");
}

static void build_tokens_not_texts(struct gguf_writer *w)
{
    const int32_t numbers[] = {1, 2, 3};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    gguf_writer_array(w, "tokenizer.ggml.tokens", GGUF_I32, numbers, 3);
}

static void build_empty(struct gguf_writer *w)
{
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, NULL, NULL, 0);
}

static void build_scores_short(struct gguf_writer *w)
{
    const float scores[] = {0, 1};
    support_put_spm(w);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, scores, 2);
}

static void build_scores_texts(struct gguf_writer *w)
{
    const struct gguf_str scores[] = {{"1", 1}};
    support_put_spm(w);
    gguf_writer_str_array(w, "tokenizer.ggml.scores", scores, 1);
}

static void build_kinds_short(struct gguf_writer *w)
{
    const int32_t kinds[] = {1, 1};
    support_put_bpe(w, "gpt-2");
    gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, kinds, 2);
}

static void build_kind_unknown(struct gguf_writer *w)
{
    const char *const texts[] = {"a", "b"};
    const int32_t kinds[] = {1, 77};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, 2);
}

static void build_no_merges(struct gguf_writer *w)
{
    const char *const texts[] = {"a", "b"};
    support_put_text(w, "tokenizer.ggml.model", "gpt2");
    support_put_tokens(w, texts, NULL, 2);
}

static void build_merges_numbers(struct gguf_writer *w)
{
    const int32_t numbers[] = {1};
    support_put_bpe(w, "gpt-2");
    gguf_writer_array(w, "tokenizer.ggml.merges", GGUF_I32, numbers, 1);
}

static void build_merge_without_space(struct gguf_writer *w)
{
    const struct gguf_str merges[] = {{"a b", 3}, {"abc", 3}};
    support_put_bpe(w, "gpt-2");
    gguf_writer_str_array(w, "tokenizer.ggml.merges", merges, 2);
}

static void build_merge_without_half(struct gguf_writer *w)
{
    const struct gguf_str merges[] = {{"a ", 2}};
    support_put_bpe(w, "gpt-2");
    gguf_writer_str_array(w, "tokenizer.ggml.merges", merges, 1);
}

static void build_merge_empty(struct gguf_writer *w)
{
    const struct gguf_str merges[] = {{"", 0}};
    support_put_bpe(w, "gpt-2");
    gguf_writer_str_array(w, "tokenizer.ggml.merges", merges, 1);
}

static void build_eos_beyond(struct gguf_writer *w)
{
    support_put_bpe(w, "gpt-2");
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", 262);
}

static void build_bos_huge(struct gguf_writer *w)
{
    support_put_spm(w);
    gguf_writer_u64(w, "tokenizer.ggml.bos_token_id", UINT64_C(1) << 62);
}

static void build_eot_text(struct gguf_writer *w)
{
    support_put_spm(w);
    support_put_text(w, "tokenizer.ggml.eot_token_id", "two");
}

static void build_add_bos_text(struct gguf_writer *w)
{
    support_put_spm(w);
    support_put_text(w, "tokenizer.ggml.add_bos_token", "yes");
}

static void build_token_too_long(struct gguf_writer *w)
{
    static char text[60002];
    const char *const texts[] = {text};
    memset(text, 'x', sizeof text - 1);
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, NULL, 1);
}

static const struct refusal {
    const char *name;
    void (*build)(struct gguf_writer *w);
    const char *item; /* the key that the error names */
    const char *text; /* part of its text */
} refusals[] = {
    {"no tokenizer", build_no_model, "tokenizer.ggml.model", "no tokenizer"},
    {"a tokenizer of a later version", build_unknown_model, "tokenizer.ggml.model", "\"morse\""},
    {"unknown pre-tokenizer", build_unknown_pre, "tokenizer.ggml.pre", "\"marmelade\""},
    {"model name of a wrong type", build_model_not_text, "tokenizer.ggml.model", ""},
    {"no tokens", build_no_tokens, "tokenizer.ggml.tokens", "no vocabulary"},
    {"tokens that are numbers", build_tokens_not_texts, "tokenizer.ggml.tokens", "strings"},
    {"empty vocabulary", build_empty, "tokenizer.ggml.tokens", "0 tokens"},
    {"fewer scores than tokens", build_scores_short, "tokenizer.ggml.scores", "2 scores for 265"},
    {"scores that are texts", build_scores_texts, "tokenizer.ggml.scores", "f32"},
    {"fewer kinds than tokens", build_kinds_short, "tokenizer.ggml.token_type", "2 kinds for 262"},
    {"a kind that does not exist", build_kind_unknown, "tokenizer.ggml.token_type", "77"},
    {"no merges", build_no_merges, "tokenizer.ggml.merges", "no list of merges"},
    {"merges that are numbers", build_merges_numbers, "tokenizer.ggml.merges", "strings"},
    {"a merge without space", build_merge_without_space, "tokenizer.ggml.merges", "merge 1 "},
    {"a merge of one half", build_merge_without_half, "tokenizer.ggml.merges", "merge 0 "},
    {"an empty merge", build_merge_empty, "tokenizer.ggml.merges", "merge 0 "},
    {"eos one beyond", build_eos_beyond, "tokenizer.ggml.eos_token_id", "token 262"},
    {"bos of 2^62", build_bos_huge, "tokenizer.ggml.bos_token_id", "vocabulary"},
    {"eot that is a text", build_eot_text, "tokenizer.ggml.eot_token_id", ""},
    {"add_bos that is a text", build_add_bos_text, "tokenizer.ggml.add_bos_token", ""},
    {"a token of 60,001 bytes", build_token_too_long, "tokenizer.ggml.tokens", "60001 bytes"},
};

static void broken_vocabularies_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *r = &refusals[i];
        struct support_vocab v = support_vocab_make(r->build);
        if (v.tokenizer) fail_msg("%s: was accepted", r->name);
        if (v.err.code != BASE_MODEL || strcmp(v.err.item, r->item) ||
            !strstr(v.err.text, r->text) || !v.err.file[0])
            fail_msg("%s: code %d, file %s, item %s, text %s", r->name, v.err.code, v.err.file,
                     v.err.item, v.err.text);
        support_vocab_free(&v);
    }
    text_tokenizer_close(NULL);
}

/* ---- Unusual vocabularies that work ---- */

static void build_one_token(struct gguf_writer *w)
{
    const char *const texts[] = {"a"};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, NULL, 1);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", UINT32_MAX);
    gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", false);
}

/* Default ids 1 and 2 and the declared 2^32-1 are all outside this vocabulary. */
static void a_vocabulary_of_one_token_encodes_and_decodes(void **state)
{
    struct support_vocab v = support_vocab_make(build_one_token);
    (void)state;
    assert_non_null(v.tokenizer);
    assert_int_equal(text_vocab_size(v.tokenizer), 1);
    assert_int_equal(text_token_bos(v.tokenizer), -1);
    assert_int_equal(text_token_eos(v.tokenizer), -1);
    assert_int_equal(text_token_eot(v.tokenizer), -1);
    assert_false(text_adds_bos(v.tokenizer));
    assert_false(text_token_is_end(v.tokenizer, -1));
    assert_false(text_token_is_end(v.tokenizer, 1));
    assert_int_equal(text_token_raw(v.tokenizer, 1).size, 0);
    assert_int_equal(text_token_raw(v.tokenizer, INT32_MIN).size, 0);
    assert_int_equal(text_token_kind(v.tokenizer, INT32_MAX), TEXT_TOKEN_UNUSED);
    CHECK_IDS(v.tokenizer, "aa", TEXT_ADD_SPECIAL, 0, 0);
    CHECK_IDS(v.tokenizer, "ab", TEXT_ADD_SPECIAL, 0, 0); /* 0 is also the unknown token */
    support_vocab_free(&v);
}

static void build_no_unknown(struct gguf_writer *w)
{
    build_one_token(w);
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", UINT32_MAX);
}

static void a_byte_without_a_token_is_named(void **state)
{
    struct support_vocab v = support_vocab_make(build_no_unknown);
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    (void)state;
    assert_non_null(v.tokenizer);
    assert_false(text_encode(v.tokenizer, "b", 1, 0, &ids, &err));
    assert_int_equal(err.code, BASE_USAGE);
    assert_non_null(strstr(err.text, "0x62"));
    assert_int_equal(err.offset, 0);
    text_ids_free(&ids);
    support_vocab_free(&v);
}

static void build_odd_bytes(struct gguf_writer *w)
{
    const char *const texts[] = {"<unk>",   "<0x-1>", "<0x+F>", "<0xGG>", "<0x4>",
                                 "<0x041>", "<0x41>", "<0x4a>", "<"};
    const int32_t kinds[] = {2, 6, 6, 6, 6, 6, 6, 6, 1};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, 9);
    gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", false);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
}

/* Only "<0x", two hexadecimal digits, ">" is a byte; other tokens are literal. */
static void only_byte_tokens_stand_for_bytes(void **state)
{
    struct support_vocab v = support_vocab_make(build_odd_bytes);
    struct base_buffer out = BASE_BUFFER_INIT;
    (void)state;
    assert_non_null(v.tokenizer);
    for (int32_t id = 1; id <= 5; id++) {
        assert_int_equal(text_token_kind(v.tokenizer, id), TEXT_TOKEN_NORMAL);
        text_token_bytes(v.tokenizer, id, false, &out);
    }
    for (int32_t id = 6; id <= 7; id++) text_token_bytes(v.tokenizer, id, false, &out);
    assert_string_equal(out.data, "<0x-1><0x+F><0xGG><0x4><0x041>AJ");
    base_buffer_free(&out);
    CHECK_IDS(v.tokenizer, "A<", 0, 6, 8);
    support_vocab_free(&v);
}

static void build_bpe(struct gguf_writer *w)
{
    support_put_bpe(w, "llama3"); /* adds BOS */
    gguf_writer_bool(w, "tokenizer.ggml.add_eos_token", true);
}

enum { A = 'a' - '!', LETTER_SPACE = 220 };

static void bpe_merges_by_rank(void **state)
{
    struct support_vocab v = support_vocab_make(build_bpe);
    const struct text_tokenizer *t = v.tokenizer;
    (void)state;
    assert_non_null(t);
    assert_string_equal(text_tokenizer_model(t), "gpt2");
    assert_string_equal(text_tokenizer_pre(t), "llama3");
    assert_int_equal(text_token_eot(t), 260);
    assert_true(text_token_is_end(t, 259));
    assert_true(text_token_is_end(t, 260));
    assert_false(text_token_is_end(t, 258));
    assert_true(text_adds_bos(t));
    assert_true(text_adds_eos(t));
    CHECK_IDS(t, "abcab", 0, 257, 256);
    CHECK_IDS(t, " abab", 0, LETTER_SPACE, 256, 256);
    CHECK_IDS(t, "a", TEXT_ADD_SPECIAL, 258, A, 259);
    CHECK_IDS(t, "", TEXT_ADD_SPECIAL, 258, 259);
    /* Control tokens are recognized only on request, user-defined tokens always; BOS is never added
     * twice. */
    CHECK_IDS(t, "ab<user>ab", 0, 256, 261, 256);
    CHECK_IDS(t, "<s>ab</s>", TEXT_PARSE_SPECIAL, 258, 256, 259);
    CHECK_IDS(t, "<s>", TEXT_PARSE_SPECIAL | TEXT_ADD_SPECIAL, 258, 259);
    CHECK_IDS(t, "<s><s>", TEXT_PARSE_SPECIAL | TEXT_ADD_SPECIAL, 258, 258, 259);
    CHECK_IDS(t, "<s>", 0, '<' - '!', 's' - '!', '>' - '!');
    support_vocab_free(&v);
}

static void spm_merges_by_score(void **state)
{
    struct support_vocab v = support_vocab_make(support_put_spm);
    const struct text_tokenizer *t = v.tokenizer;
    (void)state;
    assert_non_null(t);
    CHECK_IDS(t, "ab", 0, 263);
    CHECK_IDS(t, "ab", TEXT_ADD_SPECIAL, 1, 263);
    CHECK_IDS(t, "aab ab", 0, 259, 260, 262, 263);
    CHECK_IDS(t, "a<user>ab", 0, 259, 260, 264, 263); /* also a space after a special token */
    CHECK_IDS(t, "ab", TEXT_CONTINUES, 262);
    CHECK_IDS(t, " ab", TEXT_CONTINUES, 263);
    CHECK_IDS(t, "a<user>ab", TEXT_CONTINUES, 260, 264, 263); /* only the start continues */
    CHECK_IDS(t, "c\xff", 0, 259, 3 + 'c', 3 + 0xff);
    CHECK_IDS(t, "<s>ab", TEXT_ADD_SPECIAL | TEXT_PARSE_SPECIAL, 1, 263);
    support_vocab_free(&v);
}

static void build_joining(struct gguf_writer *w)
{
    static const char *const texts[] = {"<unk>",   "\u2581",   "a",      "b",
                                        "a\u2581", "a\u2581b", "\u2581b"};
    static const float scores[] = {0, -5, -5, -5, -1, -2, -3};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, NULL, 7);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, scores, 7);
    gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", false);
}

static void spm_merges_across_spaces(void **state)
{
    struct support_vocab v = support_vocab_make(build_joining);
    (void)state;
    assert_non_null(v.tokenizer);
    CHECK_IDS(v.tokenizer, "a bb b", 0, 5, 3, 6); /* b before a space is not merged */
    CHECK_IDS(v.tokenizer, "ba  b", 0, 3, 4, 6);
    support_vocab_free(&v);
}

/* The ids of repeated words are copied: they equal those of the word by itself. */
static void repeated_words_give_the_same_ids(void **state)
{
    enum { WORDS = 400 };
    static const char *const words[] = {" ab", " c", " abab", " cab", " a"};
    struct support_vocab v[] = {support_vocab_make(build_bpe), support_vocab_make(support_put_spm)};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct base_error err = BASE_ERROR_INIT;
        struct text_ids all = TEXT_IDS_INIT, each = TEXT_IDS_INIT;
        struct base_buffer text = BASE_BUFFER_INIT;
        assert_non_null(v[k].tokenizer);
        for (int i = 0; i < WORDS; i++) {
            const char *word = words[i * i % 7 % 5];
            base_buffer_add_text(&text, word);
            /* SentencePiece adds the space itself. */
            assert_true(
                text_encode(v[k].tokenizer, word + k, strlen(word) - (size_t)k, 0, &each, &err));
        }
        assert_true(
            text_encode(v[k].tokenizer, text.data + k, text.size - (size_t)k, 0, &all, &err));
        assert_int_equal(all.count, each.count);
        assert_memory_equal(all.id, each.id, all.count * sizeof *all.id);
        base_buffer_free(&text);
        text_ids_free(&all);
        text_ids_free(&each);
        support_vocab_free(&v[k]);
    }
}

static void build_nested(struct gguf_writer *w)
{
    const char *const texts[] = {"<unk>",  "<s>", "</s>", "<a>", "<a><b>",
                                 "<b><c>", "<c>", "a",    "<",   ">"};
    const int32_t kinds[] = {2, 3, 3, 4, 4, 4, 4, 1, 1, 1};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, 10);
    gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", false);
}

/* The longest token wins; of equally long ones, the first in the vocabulary. */
static void the_longest_special_token_wins(void **state)
{
    struct support_vocab v = support_vocab_make(build_nested);
    (void)state;
    assert_non_null(v.tokenizer);
    CHECK_IDS(v.tokenizer, "<a><b><c>", 0, 4, 6);
    CHECK_IDS(v.tokenizer, "a<a>a<b><c><a>", 0, 7, 3, 7, 5, 3);
    support_vocab_free(&v);
}

static void build_phi3(struct gguf_writer *w)
{
    support_put_bpe(w, "gpt-2");
    support_put_text(w, "general.name", "Phi-3 mini");
}

static void tokens_strip_white_space_to_their_right(void **state)
{
    struct support_vocab v = support_vocab_make(build_phi3);
    (void)state;
    assert_non_null(v.tokenizer);
    CHECK_IDS(v.tokenizer, "<user> \n a<s> a", TEXT_PARSE_SPECIAL, 261, A, 258, LETTER_SPACE, A);
    support_vocab_free(&v);
}

static void build_wordpiece(struct gguf_writer *w)
{
    const char *const texts[] = {"[UNK]",
                                 "[CLS]",
                                 "[SEP]",
                                 "\xe2\x96\x81un",
                                 "able",
                                 "\xe2\x96\x81!",
                                 "\xe2\x96\x81\xe4\xb8\xad",
                                 "un",
                                 "\u2581e"};
    const int32_t kinds[] = {3, 3, 3, 1, 1, 1, 1, 1, 1};
    support_put_text(w, "tokenizer.ggml.model", "bert");
    support_put_tokens(w, texts, kinds, 9);
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_u32(w, "tokenizer.ggml.seperator_token_id", 2);
}

static void wordpiece_chooses_the_longest_pieces(void **state)
{
    struct support_vocab v = support_vocab_make(build_wordpiece);
    struct base_buffer out = BASE_BUFFER_INIT;
    struct text_decoder d;
    (void)state;
    assert_non_null(v.tokenizer);
    CHECK_IDS(v.tokenizer, "Unable un\xe4\xb8\xad!", TEXT_ADD_SPECIAL, 1, 3, 4, 3, 6, 5, 2);
    CHECK_IDS(v.tokenizer, "\xc3\x89 e\xcc\x81 \xff e", 0, 8, 8, 8); /* accents are removed */
    CHECK_IDS(v.tokenizer, "unx able \xc1\xa5\xed\xa0\x80 \xf4\x90\x80\x80", 0, 0, 0, 8);
    text_decoder_init(&d, v.tokenizer, false, false);
    for (int32_t id = 1; id <= 5; id++) text_decoder_add(&d, id, &out);
    assert_string_equal(out.data, "unable!");
    base_buffer_free(&out);
    support_vocab_free(&v);
}

static void build_unigram(struct gguf_writer *w)
{
    static const char *const texts[] = {"<pad>", "</s>", "<unk>",    "\u2581", "a",
                                        "b",     "ab",   "\u2581ab", "abab",   "<x>"};
    static const int32_t kinds[] = {3, 3, 2, 1, 1, 1, 1, 1, 1, 4};
    static const float scores[] = {0, 0, 0, -2, -3, -3, -4, -5, -9, 0};
    /* A map of one source: "B" becomes "b". The root's children are at 'B' ^ 0. */
    static uint8_t map[4 + 4 * 256 + 2] = {[1] = 4, [4 + 4 * 256] = 'b'};
    map[4 + 4 * 'B'] = 'B';            /* the label, */
    map[4 + 4 * 'B' + 1] = 1 | 1 << 2; /* a source ends here, and the value is at 'B' ^ 1 */
    support_put_text(w, "tokenizer.ggml.model", "t5");
    support_put_tokens(w, texts, kinds, 10);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, scores, 10);
    gguf_writer_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, map, sizeof map);
    gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", true);
    gguf_writer_bool(w, "tokenizer.ggml.remove_extra_whitespaces", true);
}

static void unigram_chooses_the_largest_sum_of_scores(void **state)
{
    struct support_vocab v = support_vocab_make(build_unigram);
    const struct text_tokenizer *t = v.tokenizer;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct text_decoder d;
    (void)state;
    assert_non_null(t);
    CHECK_IDS(t, "ab", TEXT_ADD_SPECIAL, 7, 1);
    CHECK_IDS(t, "aB", 0, 7);                /* mapped */
    CHECK_IDS(t, " abab   ab ", 0, 7, 6, 7); /* -9 beats -2 - 9 */
    CHECK_IDS(t, "b", 0, 3, 5);
    CHECK_IDS(t, "aqq\xff\xe2\x82", 0, 3, 4, 2); /* one token for all unknown ones */
    CHECK_IDS(t, "a<x>b", 0, 3, 4, 9, 3, 5);
    CHECK_IDS(t, "   ", TEXT_ADD_SPECIAL, 1);
    CHECK_IDS(t, "ab", TEXT_CONTINUES, 6);
    CHECK_IDS(t, " ab ab", TEXT_CONTINUES, 7, 7);
    CHECK_IDS(t, "a<x>b", TEXT_CONTINUES, 4, 9, 3, 5);
    text_decoder_init(&d, t, false, false);
    for (int32_t id = 7; id <= 9; id++) text_decoder_add(&d, id, &out);
    assert_string_equal(out.data, "ababab<x>");
    base_buffer_free(&out);
    support_vocab_free(&v);
}

static void build_rwkv(struct gguf_writer *w)
{
    static const char *const texts[] = {"<s>", "a",          "ab",    "abcd",
                                        "\\n", "\\xff\\x00", "\\\\'", "\\'"};
    static const int32_t kinds[] = {3, 1, 1, 1, 1, 1, 1, 1};
    support_put_text(w, "tokenizer.ggml.model", "rwkv");
    support_put_tokens(w, texts, kinds, 8);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 0);
}

static void rwkv_chooses_the_longest_token(void **state)
{
    struct support_vocab v = support_vocab_make(build_rwkv);
    const struct text_tokenizer *t = v.tokenizer;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    (void)state;
    assert_non_null(t);
    CHECK_IDS(t, "abcda", TEXT_ADD_SPECIAL, 3, 1); /* the longest token; nothing is added */
    CHECK_IDS(t, "aba\n\\''", 0, 2, 1, 4, 6, 7);
    CHECK_IDS(t, "<s>ab", TEXT_PARSE_SPECIAL, 0, 2);
    CHECK_IDS(t, "azb", TEXT_LOSSY, 1);
    assert_false(text_encode(t, "abz", 3, 0, &ids, &err));
    assert_int_equal(err.code, BASE_USAGE);
    assert_int_equal(err.offset, 2);
    for (int32_t id = 4; id <= 6; id++) text_token_bytes(t, id, false, &out);
    assert_int_equal(out.size, 5);
    assert_memory_equal(out.data, "\n\xff\0\\'", 5);
    base_buffer_free(&out);
    text_ids_free(&ids);
    support_vocab_free(&v);
}

enum { PLAMO_A = 260, PLAMO_AB, PLAMO_B, PLAMO_ABC, PLAMO_COUNT };

static void build_plamo2(struct gguf_writer *w)
{
    static const char *texts[PLAMO_COUNT] = {"<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>"};
    static char bytes[256][7];
    int32_t kinds[PLAMO_COUNT] = {2, 3, 3, 3};
    float scores[PLAMO_COUNT] = {0};
    for (int b = 0; b < 256; b++) {
        snprintf(bytes[b], sizeof bytes[b], "<0x%02X>", b);
        texts[4 + b] = bytes[b];
        kinds[4 + b] = 6;
    }
    static const char *const last[] = {"a", "ab", "b", "abc"};
    static const float costs[] = {-1, -3, -2, -9};
    for (int i = PLAMO_A; i < PLAMO_COUNT; i++) {
        texts[i] = last[i - PLAMO_A];
        kinds[i] = 1;
        scores[i] = costs[i - PLAMO_A];
    }
    support_put_text(w, "tokenizer.ggml.model", "plamo2");
    support_put_tokens(w, texts, kinds, PLAMO_COUNT);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, scores, PLAMO_COUNT);
}

static void plamo2_chooses_the_lowest_cost(void **state)
{
    struct support_vocab v = support_vocab_make(build_plamo2);
    const struct text_tokenizer *t = v.tokenizer;
    struct base_buffer out = BASE_BUFFER_INIT;
    (void)state;
    assert_non_null(t);
    CHECK_IDS(t, "ab", TEXT_ADD_SPECIAL, PLAMO_AB); /* cost of a, b: longer first token */
    CHECK_IDS(t, "ba", 0, PLAMO_B, PLAMO_A);
    CHECK_IDS(t, "abcc", 0, PLAMO_ABC, 4 + 'c'); /* high cost, but lower than that of a byte */
    CHECK_IDS(t, "\xef\xbb\xbf\xe2\x82\xac\xff", 0, 4 + 0xe2, 4 + 0x82, 4 + 0xac, 4 + 0xef,
              4 + 0xbf, 4 + 0xbd); /* no byte order mark; U+FFFD for invalid bytes */
    text_token_bytes(t, 4 + 0xe2, false, &out);
    text_token_bytes(t, PLAMO_ABC, false, &out);
    assert_string_equal(out.data, "\xe2"
                                  "abc");
    base_buffer_free(&out);
    support_vocab_free(&v);
}

static void put_merging(struct gguf_writer *w, const char *model, const char *pre,
                        const char *const *texts, uint64_t count)
{
    static const struct gguf_str merges[] = {{"a b", 3}};
    support_put_text(w, "tokenizer.ggml.model", model);
    support_put_text(w, "tokenizer.ggml.pre", pre);
    support_put_tokens(w, texts, NULL, count);
    gguf_writer_str_array(w, "tokenizer.ggml.merges", merges, 1);
}

static void build_whitespace(struct gguf_writer *w)
{
    static const char *const texts[] = {"a", "b", "ab", "\u00e9", "A"};
    put_merging(w, "whitespace", "whitespace", texts, 5);
}

static void build_whitespace_in_letters(struct gguf_writer *w)
{
    static const char *const texts[] = {"a", "b", "ab", "\u00c3", "\u00a9"}; /* for bytes c3, a9 */
    put_merging(w, "whitespace", "gpt-2", texts, 5);
}

static void whitespace_ends_words_and_is_dropped(void **state)
{
    struct support_vocab v = support_vocab_make(build_whitespace);
    (void)state;
    assert_non_null(v.tokenizer);
    CHECK_IDS(v.tokenizer, "\nab  a\u3000b \u00e9aA\xc2\x85", 0, 2, 0, 1, 3, 0, 4);
    support_vocab_free(&v);
    v = support_vocab_make(build_whitespace_in_letters); /* lower case is the default here */
    assert_non_null(v.tokenizer);
    CHECK_IDS(v.tokenizer, " AB a\u00c9", 0, 2, 0, 3, 4);
    support_vocab_free(&v);
}

static const char *const dna_texts[] = {
    "a", "b", "ab", "C", "<dna>", "</dna>", "ACGTAC\ue000", "GAAAAA\ue000", "<oov>"};

static void build_hybriddna(struct gguf_writer *w)
{
    put_merging(w, "hybriddna", "gpt-2", dna_texts, 9);
}

static void build_without_oov(struct gguf_writer *w)
{
    put_merging(w, "hybriddna", "gpt-2", dna_texts, 8);
}

static void dna_is_cut_into_six_bases(void **state)
{
    struct support_vocab v = support_vocab_make(build_hybriddna);
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    (void)state;
    assert_non_null(v.tokenizer);
    CHECK_IDS(v.tokenizer, "ab<dna>acgtACNNNNNNg</dna>b<dna></dna><dna>C", 0, 2, 4, 6, 8, 7, 5, 1,
              4, 5, 4, 8);
    assert_false(text_encode(v.tokenizer, "a<dna>C</dna>bx", 15, 0, &ids, &err));
    assert_int_equal(err.offset, 14);
    text_token_bytes(v.tokenizer, 6, false, &out);
    assert_string_equal(out.data, "ACGTAC");
    base_buffer_free(&out);
    text_ids_free(&ids);
    support_vocab_free(&v);
    v = support_vocab_make(build_without_oov); /* a text like any other */
    assert_non_null(v.tokenizer);
    CHECK_IDS(v.tokenizer, "<dna>ab</dna>C", TEXT_LOSSY, 0, 2, 0, 3);
    support_vocab_free(&v);
}

/* The reported position of a byte without a token is that in the original text. */
static void build_few_letters(struct gguf_writer *w)
{
    const char *const texts[] = {"\u2581", "a", "<user>"};
    const int32_t kinds[] = {1, 1, 4};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, 3);
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", UINT32_MAX);
}

static void the_position_of_an_unencodable_byte_is_that_in_the_text(void **state)
{
    static const char text[] = "a <user>  a b";
    struct support_vocab v = support_vocab_make(build_few_letters);
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    (void)state;
    assert_non_null(v.tokenizer);
    assert_false(text_encode(v.tokenizer, text, strlen(text), 0, &ids, &err));
    assert_int_equal(err.offset, strlen(text) - 1);
    assert_non_null(strstr(err.text, "0x62"));
    CHECK_IDS(v.tokenizer, "ba", TEXT_LOSSY, 0, 1);
    text_ids_free(&ids);
    support_vocab_free(&v);
}

static void build_harmony(struct gguf_writer *w)
{
    const char *const texts[] = {"<unk>",      "a",        "b",          "<|end|>",
                                 "<|return|>", "<|call|>", "<|channel|>"};
    const int32_t kinds[] = {2, 1, 1, 3, 3, 3, 3};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, 7);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", 4);
}

/* With "<|return|>" and "<|call|>", "<|end|>" ends a message but not the answer. */
static void ends_of_messages_and_answers_are_told_apart(void **state)
{
    struct support_vocab v = support_vocab_make(build_harmony);
    (void)state;
    assert_non_null(v.tokenizer);
    assert_false(text_token_is_end(v.tokenizer, 3));
    assert_true(text_token_is_end(v.tokenizer, 4));
    assert_true(text_token_is_end(v.tokenizer, 5));
    assert_int_equal(text_token_kind(v.tokenizer, 6), TEXT_TOKEN_USER);
    support_vocab_free(&v);
}

/* ---- Streaming ---- */

static void the_decoder_returns_complete_characters(void **state)
{
    struct support_vocab v = support_vocab_make(support_put_spm);
    struct base_buffer out = BASE_BUFFER_INIT;
    struct text_decoder d;
    (void)state;
    assert_non_null(v.tokenizer);
    text_decoder_init(&d, v.tokenizer, false, false);
    text_decoder_add(&d, 1, &out); /* control tokens produce no text */
    assert_int_equal(out.size, 0);
    text_decoder_add(&d, 263, &out); /* without the space that was added */
    assert_string_equal(out.data, "ab");
    text_decoder_add(&d, 263, &out);
    assert_string_equal(out.data, "ab ab");
    static const unsigned char euro[] = {0xe2, 0x82, 0xac};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(out.data, "ab ab");
        text_decoder_add(&d, 3 + euro[i], &out);
    }
    assert_string_equal(out.data, "ab ab\xe2\x82\xac");
    text_decoder_add(&d, 3 + 0xf0, &out);
    text_decoder_add(&d, 3 + 0x9f, &out);
    assert_string_equal(out.data, "ab ab\xe2\x82\xac");
    text_decoder_end(&d, &out);
    assert_string_equal(out.data, "ab ab\xe2\x82\xac\xef\xbf\xbd");
    base_buffer_clear(&out);
    text_decoder_init(&d, v.tokenizer, true, true); /* after a prompt, shows specials */
    text_decoder_add(&d, 263, &out);
    text_decoder_add(&d, 2, &out);
    text_decoder_add(&d, -5, &out);
    text_decoder_add(&d, 1 << 30, &out);
    text_decoder_end(&d, &out);
    assert_string_equal(out.data, " ab</s>");
    base_buffer_free(&out);
    support_vocab_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_vocabularies_are_refused),
        cmocka_unit_test(a_vocabulary_of_one_token_encodes_and_decodes),
        cmocka_unit_test(a_byte_without_a_token_is_named),
        cmocka_unit_test(only_byte_tokens_stand_for_bytes),
        cmocka_unit_test(bpe_merges_by_rank),
        cmocka_unit_test(spm_merges_by_score),
        cmocka_unit_test(the_longest_special_token_wins),
        cmocka_unit_test(tokens_strip_white_space_to_their_right),
        cmocka_unit_test(wordpiece_chooses_the_longest_pieces),
        cmocka_unit_test(spm_merges_across_spaces),
        cmocka_unit_test(repeated_words_give_the_same_ids),
        cmocka_unit_test(unigram_chooses_the_largest_sum_of_scores),
        cmocka_unit_test(rwkv_chooses_the_longest_token),
        cmocka_unit_test(plamo2_chooses_the_lowest_cost),
        cmocka_unit_test(whitespace_ends_words_and_is_dropped),
        cmocka_unit_test(dna_is_cut_into_six_bases),
        cmocka_unit_test(the_position_of_an_unencodable_byte_is_that_in_the_text),
        cmocka_unit_test(ends_of_messages_and_answers_are_told_apart),
        cmocka_unit_test(the_decoder_returns_complete_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
