/* test/test_charsmap.c: SentencePiece's character map in hostile files. */
#include "test/support.h"
#include "test/support_gguf.h"
#include "test/support_vocab.h"
#include <string.h>

/* A map that points past its end is an error of the file. */
static void build_bad_map(struct gguf_writer *w)
{
    static const char *const texts[] = {"<pad>", "</s>", "<unk>"};
    static const uint8_t map[] = {4, 0, 0, 0, 0, 0xff, 0xff, 0x7f, 'b', 0};
    support_put_text(w, "tokenizer.ggml.model", "t5");
    support_put_tokens(w, texts, NULL, 3);
    gguf_writer_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_I8, map, sizeof map);
}

static void a_damaged_character_map_is_an_error(void **state)
{
    struct support_vocab v = support_vocab_make(build_bad_map);
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    (void)state;
    assert_non_null(v.tokenizer);
    assert_false(text_encode(v.tokenizer, "b", 1, 0, &ids, &err));
    assert_int_equal(err.code, BASE_MODEL);
    text_ids_free(&ids);
    support_vocab_free(&v);
}

/* A map whose root is a child of itself, by the byte 0x80: its sources have no end. */
static void build_cyclic_map(struct gguf_writer *w)
{
    static const char *const texts[] = {"<pad>", "</s>", "<unk>"};
    static uint8_t map[4 + 4 * 256 + 2] = {[1] = 4};
    map[4 + 4 * 0x80] = 0x80;  /* the label; no source ends here; */
    map[4 + 4 * 0x80 + 2] = 2; /* the children are at 0x80 ^ 0x80, as the root's */
    support_put_text(w, "tokenizer.ggml.model", "t5");
    support_put_tokens(w, texts, NULL, 3);
    gguf_writer_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, map, sizeof map);
}

/* "B" becomes a text of `n` bytes. */
static void put_long_replacement(struct gguf_writer *w, uint32_t n)
{
    static const char *const texts[] = {"<pad>", "</s>", "<unk>", "b"};
    static uint8_t map[4 + 4 * 256 + 600] = {[1] = 4};
    map[4 + 4 * 'B'] = 'B';
    map[4 + 4 * 'B' + 1] = 1 | 1 << 2;
    memset(map + 4 + 4 * 256, 0, 600);
    memset(map + 4 + 4 * 256, 'b', n);
    support_put_text(w, "tokenizer.ggml.model", "t5");
    support_put_tokens(w, texts, NULL, 4);
    gguf_writer_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, map, sizeof map);
}

static void build_long_replacement(struct gguf_writer *w)
{
    put_long_replacement(w, 256);
}

static void build_longer_replacement(struct gguf_writer *w)
{
    put_long_replacement(w, 257);
}

static void the_growth_by_a_character_map_is_bounded(void **state)
{
    static const struct {
        void (*build)(struct gguf_writer *w);
        char byte;
        const char *problem; /* NULL: none */
    } cases[] = {{build_cyclic_map, (char)0x80, "a source longer than 256 bytes"},
                 {build_long_replacement, 'B', NULL},
                 {build_longer_replacement, 'B', "a replacement longer than 256 bytes"}};
    char text[1000];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct support_vocab v = support_vocab_make(cases[i].build);
        struct base_error err = BASE_ERROR_INIT;
        struct text_ids ids = TEXT_IDS_INIT;
        assert_non_null(v.tokenizer);
        memset(text, cases[i].byte, sizeof text);
        const bool ok = text_encode(v.tokenizer, text, sizeof text, 0, &ids, &err);
        assert_int_equal(ok, !cases[i].problem);
        if (!ok) assert_int_equal(err.code, BASE_MODEL);
        if (!ok) assert_non_null(strstr(err.text, cases[i].problem));
        text_ids_free(&ids);
        support_vocab_free(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_character_map_is_an_error),
        cmocka_unit_test(the_growth_by_a_character_map_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
