/* test/support_vocab.h: small vocabularies built by tests, valid or not. */
#pragma once

#include "text/tokenizer/tokenizer.h"

/* A vocabulary and the file that it is in. */
struct support_vocab {
    struct gguf_file *file;
    struct text_tokenizer *tokenizer; /* NULL: it cannot be opened */
    struct base_error err;
};

/* Writes the keys that `build` adds to a temporary file and opens it. */
struct support_vocab support_vocab_make(void (*build)(struct gguf_writer *w));
struct support_vocab support_vocab_open(const char *path); /* fails the test on error */
void support_vocab_free(struct support_vocab *v);

void support_put_text(struct gguf_writer *w, const char *key, const char *text);
/* tokenizer.ggml.tokens and .token_type of texts[0..count); kinds NULL: no kinds. */
void support_put_tokens(struct gguf_writer *w, const char *const *texts, const int32_t *kinds,
                        uint64_t count);
/* A "gpt2" vocabulary: the 256 letters (ids 0 to 255: '!' is 0), then ab (256), abc (257), the
 * control tokens <s> (258), </s> (259), <|im_end|> (260) and the user token <user> (261). */
void support_put_bpe(struct gguf_writer *w, const char *pre);
/* A "llama" vocabulary: <unk> <s> </s>, the 256 byte tokens (3 to 258), U+2581 (259), a b (260,
 * 261), ab (262), U+2581 ab (263), <user> (264). */
void support_put_spm(struct gguf_writer *w);

/* Fails the test unless the text has these ids. */
void support_check_ids(const struct text_tokenizer *t, const char *text, unsigned flags,
                       const int32_t *want, size_t count);
#define CHECK_IDS(t, text, flags, ...)                                                             \
    support_check_ids(t, text, flags, (const int32_t[]){__VA_ARGS__},                              \
                      sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
