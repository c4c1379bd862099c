/* text/tokenizer/decode.c: converts ids to bytes. See text/tokenizer/tokenizer.h. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <string.h>

void text_token_bytes(const struct text_tokenizer *t, int32_t id, bool show_special,
                      struct base_buffer *out)
{
    const struct text_algorithm *a = t->algorithm;
    const enum text_token_kind kind = text_token_kind(t, id);
    const bool special = kind == TEXT_TOKEN_CONTROL || kind == TEXT_TOKEN_UNKNOWN;
    struct gguf_str text = text_token_raw(t, id);
    if (special && !show_special) return;
    if (kind == TEXT_TOKEN_BYTE) {
        const char byte = (char)text_parse_byte(text);
        base_buffer_add(out, &byte, 1);
    } else if (kind == TEXT_TOKEN_NORMAL || a->all_kinds) {
        a->decode(t, text, out);
    } else if (kind != TEXT_TOKEN_UNUSED) {
        base_buffer_add(out, text.data, text.size);
    }
}

/* ---- Streaming ---- */

void text_decoder_init(struct text_decoder *d, const struct text_tokenizer *t, bool continues,
                       bool show_special)
{
    const bool space_added =
        t->algorithm->drops_space == TEXT_DROPS_ALWAYS ||
        (t->algorithm->drops_space == TEXT_DROPS_DECLARED && t->add_space_prefix);
    *d = (struct text_decoder){
        .tokenizer = t, .show_special = show_special, .at_start = space_added && !continues};
}

void text_decoder_add(struct text_decoder *d, int32_t id, struct base_buffer *out)
{
    size_t start = out->size;
    base_buffer_add(out, d->held, d->n_held);
    size_t token = out->size;
    text_token_bytes(d->tokenizer, id, d->show_special, out);
    if (out->failed || out->size == start) return;
    if (d->at_start && out->size > token) {
        enum text_token_kind kind = text_token_kind(d->tokenizer, id);
        bool shown_special = kind == TEXT_TOKEN_CONTROL || kind == TEXT_TOKEN_UNKNOWN;
        if (!shown_special) d->at_start = false;
        if (!shown_special && kind != TEXT_TOKEN_USER && out->data[token] == ' ') {
            memmove(out->data + token, out->data + token + 1, out->size - token - 1);
            out->size--;
        }
    }
    d->n_held = base_utf8_open_tail(out->data + start, out->size - start);
    out->size -= d->n_held;
    memcpy(d->held, out->data + out->size, d->n_held);
    out->data[out->size] = 0;
}

void text_decoder_end(struct text_decoder *d, struct base_buffer *out)
{
    if (d->n_held) base_buffer_add_text(out, "\xef\xbf\xbd");
    d->n_held = 0;
}
