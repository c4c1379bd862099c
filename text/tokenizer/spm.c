/* text/tokenizer/spm.c: SentencePiece's byte-pair encoding ("llama"). See text/tokenizer/vocab.h.
 *
 * Characters are merged in the order of the merged tokens' scores, over the whole text: spaces are
 * ordinary characters, written U+2581. What is no token in the end is spelled in byte tokens. A
 * byte that is not part of valid UTF-8 is a character of its own, so that it cannot swallow a part
 * of the next one. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int text_parse_byte(struct gguf_str text)
{
    if (text.size != 6 || memcmp(text.data, "<0x", 3) || text.data[5] != '>') return -1;
    int high = hex_digit(text.data[3]), low = hex_digit(text.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void text_load_byte_tokens(struct text_tokenizer *t)
{
    static const char digit[] = "0123456789ABCDEF";
    for (int b = 0; b < 256; b++) {
        const char text[] = {'<', '0', 'x', digit[b >> 4], digit[b & 15], '>'};
        t->byte_token[b] = text_find_token(t, text, sizeof text);
    }
}

bool text_escape_spaces(struct text_work *w, const char *text, size_t size, bool add_space)
{
    struct base_buffer *out = &w->text;
    base_buffer_clear(out);
    if (add_space) base_buffer_add_text(out, "\xe2\x96\x81");
    for (size_t i = 0; i < size;) {
        const char *space = memchr(text + i, ' ', size - i);
        size_t n = space ? (size_t)(space - text) - i : size - i;
        base_buffer_add(out, text + i, n);
        if (space) base_buffer_add_text(out, "\xe2\x96\x81");
        i += n + (space != NULL);
    }
    return !out->failed || base_fail(w->err, BASE_NO_MEMORY, "no memory for %zu bytes", size);
}

/* Keys ascend as scores descend: the bits of a float, made to sort like an integer, inverted. */
static bool score_key(const struct text_tokenizer *t, const char *text, size_t n_left,
                      size_t n_right, uint32_t *key)
{
    int32_t id = text_find_token(t, text, n_left + n_right);
    if (id < 0) return false;
    float score = t->scores ? (float)gguf_array_num(t->scores, (uint32_t)id) : 0;
    uint32_t bits;
    score += 0.0f; /* -0 equals 0 */
    memcpy(&bits, &score, sizeof bits);
    *key = bits >> 31 ? bits : 0x7fffffffu - bits;
    return true;
}

bool text_spm_open(struct text_tokenizer *t, struct base_error *err)
{
    static const char key[] = "tokenizer.ggml.scores";
    const struct gguf_kv *kv = gguf_kv_find(t->file, key);
    text_load_byte_tokens(t);
    if (!kv) return true; /* all equal */
    if (kv->kind != GGUF_ARRAY || (kv->item != GGUF_F32 && kv->item != GGUF_I32))
        return base_fail_at(err, BASE_MODEL, key, (int64_t)kv->offset,
                            "must be an array of f32 or i32");
    if (kv->count < t->n_tokens)
        return base_fail_at(err, BASE_MODEL, key, (int64_t)kv->offset, "%llu scores for %u tokens",
                            (unsigned long long)kv->count, t->n_tokens);
    t->scores = kv;
    return true;
}

/* A symbol that is no token: its bytes as byte tokens, else as tokens of that one byte, else as
 * the unknown token. */
static bool emit_bytes(const struct text_tokenizer *t, struct text_work *w, const char *text,
                       size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int32_t id = t->byte_token[(unsigned char)text[i]];
        if (id < 0) id = text_find_token(t, text + i, 1);
        if (id < 0) id = t->unk;
        if (id < 0)
            return base_fail(w->err, BASE_MODEL,
                             "the vocabulary has no token for byte 0x%02X, and none for unknowns",
                             (unsigned char)text[i]);
        if (!text_ids_add(w->out, id, w->err)) return false;
    }
    return true;
}

bool text_spm_encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                     size_t size, bool add_space)
{
    struct text_merger *m = &w->merger;
    if (!text_escape_spaces(w, text, size, add_space)) return false;
    text = w->text.data;
    size = w->text.size;
    m->count = 0;
    for (size_t i = 0, n; i < size; i += n) {
        int32_t code;
        n = base_utf8_decode(text + i, size - i, &code);
        if (!text_merger_add(m, i, n, w->err)) return false;
    }
    if (!text_merger_run(m, t, text, score_key, w->err)) return false;
    for (int32_t i = m->count ? 0 : -1; i >= 0; i = m->symbol[i].after) {
        const struct text_symbol *s = &m->symbol[i];
        int32_t id = text_find_token(t, text + s->start, s->size);
        bool ok =
            id >= 0 ? text_ids_add(w->out, id, w->err) : emit_bytes(t, w, text + s->start, s->size);
        if (!ok) return false;
    }
    return true;
}
