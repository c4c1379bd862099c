/* text/tokenizer/spm.c: SentencePiece's byte-pair encoding ("llama"). See text/tokenizer/vocab.h.
 *
 * Characters are merged in the order of the merged tokens' scores. Spaces are ordinary characters,
 * written U+2581, so merges cross them. After merging, symbols that are not tokens become byte
 * tokens. A byte that is not part of valid UTF-8 is a character of its own, so that it never
 * absorbs a part of the next one. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <string.h>

/* Computes a key that ascends as the score descends: the bits of the float, mapped so that they
 * sort as an integer, inverted. */
static bool score_key(const struct text_tokenizer *t, const char *text, size_t n_left,
                      size_t n_right, uint32_t *key)
{
    int32_t id = text_find_token(t, text, n_left + n_right);
    if (id < 0) return false;
    float score = text_score(t, (uint32_t)id);
    uint32_t bits;
    score += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &score, sizeof bits);
    *key = bits >> 31 ? bits : 0x7fffffffu - bits;
    return true;
}

/* Appends the ids of a symbol of w->text that is not a token: byte tokens, or tokens of one byte,
 * or the unknown token. */
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

/* Merges text[start..end) of w->text and appends the ids. */
static bool encode_part(const struct text_tokenizer *t, struct text_work *w, size_t start,
                        size_t end)
{
    struct text_merger *m = &w->merger;
    const char *text = w->text.data;
    m->count = 0;
    for (size_t i = start, n; i < end; i += n) {
        int32_t code;
        n = base_utf8_decode(text + i, end - i, &code);
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

/* Returns the end of the part that begins at `start`: before the next U+2581 that no token joins to
 * the character before it. No merge crosses such an offset, so the parts have the ids of the
 * whole. */
static size_t part_end(const bool joins[256], const struct base_buffer *text, size_t start)
{
    for (size_t i = start + 1; i < text->size; i++) {
        const char *next = memchr(text->data + i, 0xe2, text->size - i);
        if (!next) break;
        i = (size_t)(next - text->data);
        if (text_is_mark(next, text->size - i) && !joins[(unsigned char)next[-1]]) return i;
    }
    return text->size;
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    if (!text_escape_spaces(w, text, size, t->add_space_prefix && first) ||
        !text_piece_cache_begin(&w->pieces, w->text.size, w->err))
        return false;
    const bool parted = w->text.size > TEXT_WHOLE;
    bool joins[256] = {false};
    if (parted && !text_find_joins(t, joins, w->err)) return false;
    for (size_t start = 0, end; start < w->text.size; start = end) {
        const size_t n_before = w->out->count;
        struct text_cached_piece *place;
        bool found;
        end = parted ? part_end(joins, &w->text, start) : w->text.size;
        const char *part = w->text.data + start;
        if (!text_piece_cache_find(w, part, end - start, &place, &found)) return false;
        if (found) continue;
        if (!encode_part(t, w, start, end)) return false;
        text_piece_cache_add(w, place, part, end - start, n_before);
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
