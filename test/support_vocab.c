/* test/support_vocab.c: small vocabularies. See test/support_vocab.h. */
#include "test/support_vocab.h"
#include "base/utf8.h"
#include "test/support.h"
#include "test/support_gguf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct support_vocab support_vocab_make(void (*build)(struct gguf_writer *w))
{
    char folder[] = "/tmp/test_vocab_XXXXXX", path[64];
    struct support_vocab v = {.err = BASE_ERROR_INIT};
    struct base_error err = BASE_ERROR_INIT;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/v.gguf", folder);
    struct gguf_writer *w = gguf_writer_new(&err);
    assert_non_null(w);
    build(w);
    assert_true(gguf_writer_begin(w, path, &err));
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
    v.file = gguf_open(path, &err);
    unlink(path);
    rmdir(folder);
    assert_non_null(v.file);
    v.tokenizer = text_tokenizer_open(v.file, &v.err);
    return v;
}

struct support_vocab support_vocab_open(const char *path)
{
    struct support_vocab v = {.err = BASE_ERROR_INIT};
    v.file = gguf_open(path, &v.err);
    if (v.file) v.tokenizer = text_tokenizer_open(v.file, &v.err);
    if (!v.tokenizer) fail_msg("%s: %s", path, v.err.text);
    return v;
}

void support_vocab_free(struct support_vocab *v)
{
    text_tokenizer_close(v->tokenizer);
    gguf_close(v->file);
    *v = (struct support_vocab){0};
}

void support_put_text(struct gguf_writer *w, const char *key, const char *text)
{
    gguf_writer_str(w, key, text, strlen(text));
}

void support_put_tokens(struct gguf_writer *w, const char *const *texts, const int32_t *kinds,
                        uint64_t count)
{
    struct gguf_str *items = calloc(count + 1, sizeof *items);
    assert_non_null(items);
    for (uint64_t i = 0; i < count; i++) items[i] = (struct gguf_str){texts[i], strlen(texts[i])};
    gguf_writer_str_array(w, "tokenizer.ggml.tokens", items, count);
    if (kinds) gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, kinds, count);
    free(items);
}

void support_put_bpe(struct gguf_writer *w, const char *pre)
{
    static const char *const extra[] = {"ab", "abc", "<s>", "</s>", "<|im_end|>", "<user>"};
    static const struct gguf_str merges[] = {{"a b", 3}, {"ab c", 4}};
    enum { N = 256 + 6 };
    const char *texts[N];
    char letters[256][8];
    int32_t kinds[N];
    int other = 0x100;
    /* Printable bytes first, as GPT-2 numbers them: '!' is 0, the 68 others are last. */
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int b = 0; b < 256; b++) {
            bool itself = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
            if (itself != (pass == 0)) continue;
            letters[n][base_utf8_encode(itself ? b : other++, letters[n])] = 0;
            texts[n] = letters[n];
            kinds[n++] = TEXT_TOKEN_NORMAL;
        }
    }
    for (size_t i = 0; i < 6; i++) {
        texts[n] = extra[i];
        kinds[n++] = i < 2 ? TEXT_TOKEN_NORMAL : i < 5 ? TEXT_TOKEN_CONTROL : TEXT_TOKEN_USER;
    }
    support_put_text(w, "tokenizer.ggml.model", "gpt2");
    support_put_text(w, "tokenizer.ggml.pre", pre);
    support_put_tokens(w, texts, kinds, n);
    gguf_writer_str_array(w, "tokenizer.ggml.merges", merges, 2);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 258);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", 259);
}

void support_put_spm(struct gguf_writer *w)
{
    static const char *const extra[] = {"\xe2\x96\x81", "a", "b", "ab", "\u2581ab", "<user>"};
    enum { N = 3 + 256 + 6 };
    const char *texts[N] = {"<unk>", "<s>", "</s>"};
    int32_t kinds[N] = {TEXT_TOKEN_UNKNOWN, TEXT_TOKEN_CONTROL, TEXT_TOKEN_CONTROL};
    float scores[N] = {0};
    char bytes[256][8];
    for (int b = 0; b < 256; b++) {
        snprintf(bytes[b], sizeof bytes[b], "<0x%02X>", b);
        texts[3 + b] = bytes[b];
        kinds[3 + b] = TEXT_TOKEN_BYTE;
    }
    for (int i = 0; i < 6; i++) {
        texts[259 + i] = extra[i];
        kinds[259 + i] = i < 5 ? TEXT_TOKEN_NORMAL : TEXT_TOKEN_USER;
        scores[259 + i] = (float)-i;
    }
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, N);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, scores, N);
}

void support_check_ids(const struct text_tokenizer *t, const char *text, unsigned flags,
                       const int32_t *want, size_t count)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    if (!text_encode(t, text, strlen(text), flags, &ids, &err)) fail_msg("%s: %s", text, err.text);
    bool same = ids.count == count;
    for (size_t i = 0; same && i < count; i++) same = ids.id[i] == want[i];
    if (!same) {
        for (size_t i = 0; i < ids.count; i++) print_error("%d ", (int)ids.id[i]);
        fail_msg("\"%s\" with flags %u: these %zu ids instead of %zu", text, flags, ids.count,
                 count);
    }
    text_ids_free(&ids);
}
