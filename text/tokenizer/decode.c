/* text/tokenizer/decode.c: from ids back to bytes. See text/tokenizer/tokenizer.h. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <string.h>

/* Letters back to bytes; a character that is no letter stands for itself. */
static void add_letters(const struct text_tokenizer *t, struct gguf_str text,
                        struct base_buffer *out)
{
    const int32_t n_letters = sizeof t->letter_byte / sizeof t->letter_byte[0];
    for (size_t i = 0, n; i < text.size; i += n) {
        int32_t code;
        n = base_utf8_decode(text.data + i, text.size - i, &code);
        if (code >= 0 && code < n_letters && t->letter_byte[code] >= 0) {
            char byte = (char)t->letter_byte[code];
            base_buffer_add(out, &byte, 1);
        } else {
            base_buffer_add(out, text.data + i, n);
        }
    }
}

static void add_unescaped(struct gguf_str text, struct base_buffer *out)
{
    static const char low_line[3] = "\xe2\x96\x81";
    while (text.size) {
        const char *found = memmem(text.data, text.size, low_line, sizeof low_line);
        size_t n = found ? (size_t)(found - text.data) : text.size;
        base_buffer_add(out, text.data, n);
        if (found) {
            base_buffer_add(out, " ", 1);
            n += sizeof low_line;
        }
        text = (struct gguf_str){text.data + n, text.size - n};
    }
}

void text_token_bytes(const struct text_tokenizer *t, int32_t id, bool show_special,
                      struct base_buffer *out)
{
    struct gguf_str text = text_token_raw(t, id);
    char byte;
    switch (text_token_kind(t, id)) {
    case TEXT_TOKEN_CONTROL:
    case TEXT_TOKEN_UNKNOWN:
        if (show_special) base_buffer_add(out, text.data, text.size);
        break;
    case TEXT_TOKEN_USER:
        base_buffer_add(out, text.data, text.size);
        break;
    case TEXT_TOKEN_BYTE:
        byte = (char)text_parse_byte(text);
        base_buffer_add(out, &byte, 1);
        break;
    case TEXT_TOKEN_NORMAL:
        if (t->model != TEXT_BPE || t->pre->flags & TEXT_PRE_ESCAPE_SPACES) {
            add_unescaped(text, out);
        } else if (t->pre->flags & TEXT_PRE_RAW) {
            base_buffer_add(out, text.data, text.size);
        } else {
            add_letters(t, text, out);
        }
        break;
    case TEXT_TOKEN_UNUSED:
        break;
    }
}

/* ---- Streaming ---- */

void text_decoder_init(struct text_decoder *d, const struct text_tokenizer *t, bool continues,
                       bool show_special)
{
    bool space_added = t->model == TEXT_WORDPIECE || (t->model == TEXT_SPM && t->add_space_prefix);
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
