/* test/test_vocab_policy.c: choices that vocabularies leave to the program: where a space is added,
 * which tokens stand for bytes, which ones end a text. */
#include "test/support.h"
#include "test/support_gguf.h"
#include "test/support_vocab.h"
#include <string.h>

static void a_text_that_continues_another_gets_no_space(void **state)
{
    struct support_vocab v = support_vocab_make(support_put_spm);
    (void)state;
    CHECK_IDS(v.tokenizer, "ab", 0, 263);
    CHECK_IDS(v.tokenizer, "ab", TEXT_CONTINUES, 262);
    CHECK_IDS(v.tokenizer, "ab<user>ab", TEXT_CONTINUES, 262, 264, 263); /* after a special token */
    support_vocab_free(&v);
}

static void build_halves(struct gguf_writer *w)
{
    static const char *const texts[] = {"<unk>", "a", "\xc3", "\xa9"};
    static const int32_t kinds[] = {2, 1, 1, 1};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, 4);
    gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", false);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
}

/* Without byte tokens, the bytes of a character that is no token may be tokens themselves. */
static void tokens_of_one_byte_stand_for_byte_tokens(void **state)
{
    struct support_vocab v = support_vocab_make(build_halves);
    (void)state;
    CHECK_IDS(v.tokenizer, "a\xc3\xa9", 0, 1, 2, 3);
    CHECK_IDS(v.tokenizer, "\xc3\xaa", 0, 2, 0); /* one of the bytes has none: unknown */
    support_vocab_free(&v);
}

static void build_fims(struct gguf_writer *w)
{
    static const char *const texts[] = {
        "<unk>",          "<s>",         "</s>",          "<|fim_prefix|>", "<|fim_middle|>",
        "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"};
    static const int32_t kinds[] = {2, 3, 3, 3, 3, 3, 3, 3, 3};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, 9);
}

/* A model that fills a middle ends with a token for padding or the next file, not with the tokens
 * that frame its prompt. */
static void only_fim_tokens_that_follow_a_middle_end_a_text(void **state)
{
    struct support_vocab v = support_vocab_make(build_fims);
    (void)state;
    for (int32_t id = 3; id < 9; id++)
        assert_int_equal(text_token_is_end(v.tokenizer, id), id >= 6);
    support_vocab_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_that_continues_another_gets_no_space),
        cmocka_unit_test(tokens_of_one_byte_stand_for_byte_tokens),
        cmocka_unit_test(only_fim_tokens_that_follow_a_middle_end_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
