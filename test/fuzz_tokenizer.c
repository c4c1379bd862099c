/* test/fuzz_tokenizer.c: a fuzz target: any bytes as a vocabulary. It is an error, or encodes and
 * decodes two texts: a fixed one and the end of the file. */
#include "test/fuzz.h"
#include "text/tokenizer/tokenizer.h"

static void use(const struct text_tokenizer *t, const char *text, size_t size, unsigned flags)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    struct base_buffer out = BASE_BUFFER_INIT;
    struct text_decoder d;
    bool ok = text_encode(t, text, size, flags, &ids, &err);
    if (ok != (err.code == BASE_OK)) abort();
    text_decoder_init(&d, t, false, flags & TEXT_PARSE_SPECIAL);
    for (size_t i = 0; i < ids.count; i++) {
        if (ids.id[i] < 0 || (uint32_t)ids.id[i] >= text_vocab_size(t)) abort();
        text_decoder_add(&d, ids.id[i], &out);
    }
    text_decoder_end(&d, &out);
    base_buffer_free(&out);
    text_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char sample[] =
        "ab It's <s> 12345\n\n \xe4\xb8\xad\xe6\x96\x87 \xff<user> e\xcc\x81";
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open_memory(bytes, size, "fuzz", &err);
    if (!file) return 0;
    struct text_tokenizer *t = text_tokenizer_open(file, &err);
    if ((t != NULL) != (err.code == BASE_OK)) abort();
    if (t) {
        size_t tail = size < 500 ? size : 500;
        use(t, sample, sizeof sample - 1, 0);
        use(t, sample, sizeof sample - 1, TEXT_ADD_SPECIAL | TEXT_PARSE_SPECIAL);
        use(t, (const char *)bytes + size - tail, tail, TEXT_PARSE_SPECIAL);
        for (int32_t id = -2; id < 300; id++) {
            struct base_buffer out = BASE_BUFFER_INIT;
            text_token_bytes(t, id, true, &out);
            base_buffer_free(&out);
        }
    }
    text_tokenizer_close(t);
    gguf_close(file);
    return 0;
}
