/* text/tokenizer/spm.c: SentencePiece's byte-pair encoding ("llama"). See text/tokenizer/vocab.h.
 *
 * Characters are merged in the order of the merged tokens' scores, over the whole text: spaces are
 * ordinary characters, written U+2581. What is no token in the end is spelled in byte tokens. A
 * byte that is not part of valid UTF-8 is a character of its own, so that it cannot swallow a part
 * of the next one. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <string.h>

/* Keys ascend as scores descend: the bits of a float, made to sort like an integer, inverted. */
static bool score_key(const struct text_tokenizer *t, const char *text, size_t n_left,
                      size_t n_right, uint32_t *key)
{
    int32_t id = text_find_token(t, text, n_left + n_right);
    if (id < 0) return false;
    float score = text_score(t, (uint32_t)id);
    uint32_t bits;
    score += 0.0f; /* -0 equals 0 */
    memcpy(&bits, &score, sizeof bits);
    *key = bits >> 31 ? bits : 0x7fffffffu - bits;
    return true;
}

/* A symbol of w->text that is no token: its bytes as byte tokens, else as tokens of that one byte,
 * else as the unknown token. */
static bool emit_bytes(const struct text_tokenizer *t, struct text_work *w,
                       const struct text_symbol *s)
{
    for (size_t i = s->start; i < s->start + s->size; i++) {
        const char *byte = w->text.data + i;
        int32_t id = t->byte_token[(unsigned char)*byte];
        if (id < 0) id = text_find_token(t, byte, 1);
        if (id < 0) id = t->unk;
        if (id < 0) {
            if (!text_lose_byte(w, i)) return false;
        } else if (!text_ids_add(w->out, id, w->err)) {
            return false;
        }
    }
    return true;
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    struct text_merger *m = &w->merger;
    if (!text_escape_spaces(w, text, size, t->add_space_prefix && first)) return false;
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
        bool ok = id >= 0 ? text_ids_add(w->out, id, w->err) : emit_bytes(t, w, s);
        if (!ok) return false;
    }
    return true;
}

const struct text_algorithm text_spm = {
    .name = "llama",
    .defaults =
        {.bos = 1, .eos = 2, .unk = 0, .sep = -1, .add_bos = true, .add_space_prefix = true},
    .byte_kinds = true,
    .drops_space = TEXT_DROPS_DECLARED,
    .open = text_scores_load,
    .encode = encode,
    .ends = text_declared_ends,
    .decode = text_unescape,
};
