/* text/tokenizer/wordpiece.c: BERT's WordPiece. See text/tokenizer/vocab.h.
 *
 * In GGUF files a token that begins a word has U+2581 before it, and one that continues a word has
 * lost its "##". So a word is looked up as U+2581 and its normalized letters, longest token first;
 * a word that tokens cannot form is the unknown token. Normalization is that of BERT: canonical
 * decomposition without the nonspacing marks, lower case, punctuation and CJK characters as words
 * of their own, control characters dropped. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <stdlib.h>
#include <utf8proc.h>

enum { MAX_DECOMPOSED = 32 }; /* the longest canonical decomposition has 4 characters */

static const char low_line[] = "\xe2\x96\x81";

struct wordpiece {
    struct text_trie words;
    bool lowercase, strip_accents;
};

static bool open_wordpiece(struct text_tokenizer *t, struct base_error *err)
{
    struct wordpiece *p = t->state = calloc(1, sizeof *p);
    struct text_key *keys = malloc((size_t)t->n_tokens * sizeof *keys);
    bool ok = (p && keys) || base_fail(err, BASE_NO_MEMORY, "no memory for %u tokens", t->n_tokens);
    for (uint32_t id = 0; ok && id < t->n_tokens; id++) {
        const struct gguf_str text = text_token(t, id);
        keys[id] = (struct text_key){text.data, (uint32_t)text.size, (int32_t)id};
    }
    ok = ok && text_trie_init(&p->words, keys, t->n_tokens, err);
    free(keys);
    if (!ok) return false;
    p->lowercase = true;
    if (!gguf_get_bool(t->file, "tokenizer.ggml.normalizer.lowercase", &p->lowercase, err))
        return false;
    p->strip_accents = p->lowercase;
    return gguf_get_bool(t->file, "tokenizer.ggml.normalizer.strip_accents", &p->strip_accents,
                         err);
}

static void close_wordpiece(void *state)
{
    struct wordpiece *p = state;
    text_trie_free(&p->words);
    free(p);
}

/* ---- Words ---- */

static bool emit_unknown(const struct text_tokenizer *t, struct text_work *w)
{
    if (t->unk < 0)
        return base_fail(w->err, BASE_MODEL, "the vocabulary has no token for unknown words");
    return text_ids_add(w->out, t->unk, w->err);
}

/* Ends the word in w->word, if there is one, and starts the next one. */
static bool end_word(const struct text_tokenizer *t, struct text_work *w)
{
    const struct wordpiece *p = t->state;
    struct base_buffer *word = &w->word;
    const size_t mark = sizeof low_line - 1, n_before = w->out->count;
    if (word->failed) return base_fail(w->err, BASE_NO_MEMORY, "no memory for a word");
    if (!base_goes_on(w->err)) return false;
    if (word->size > mark) {
        for (size_t at = 0, n = 0; at < word->size; at += n) {
            const int32_t id = text_trie_longest(&p->words, word->data + at, word->size - at, &n);
            if (id < 0) {
                w->out->count = n_before;
                if (!emit_unknown(t, w)) return false;
                break;
            }
            if (!text_ids_add(w->out, id, w->err)) return false;
        }
    }
    base_buffer_clear(word);
    base_buffer_add(word, low_line, mark);
    return true;
}

/* ---- Characters ---- */

static bool is_control(int32_t code, utf8proc_category_t category)
{
    return code == 0 || code == 0xfffd ||
           (category >= UTF8PROC_CATEGORY_CC && category <= UTF8PROC_CATEGORY_CO);
}

static bool is_punctuation(int32_t code, utf8proc_category_t category)
{
    if (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO) return true;
    return code < 0x7f && category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
}

static bool is_cjk(int32_t code)
{
    static const int32_t range[][2] = {
        {0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
        {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, /* from 0x2b920, as in the reference */
        {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++)
        if (code >= range[i][0] && code <= range[i][1]) return true;
    return false;
}

static bool add_character(const struct text_tokenizer *t, struct text_work *w, int32_t code)
{
    const struct wordpiece *p = t->state;
    const utf8proc_category_t category = utf8proc_category(text_pin_unicode(code));
    char bytes[4];
    if (text_is_space(code)) return end_word(t, w);
    if (is_control(code, category)) return true;
    if (p->strip_accents && category == UTF8PROC_CATEGORY_MN) return true;
    bool alone = is_punctuation(code, category) || is_cjk(code);
    if (alone && !end_word(t, w)) return false;
    base_buffer_add(&w->word, bytes,
                    base_utf8_encode(p->lowercase ? text_lower(code) : code, bytes));
    return !alone || end_word(t, w);
}

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Adds ASCII letters and digits, which only need lower case. */
static void add_ascii(const struct wordpiece *p, struct base_buffer *word, const char *text,
                      size_t size)
{
    base_buffer_add(word, text, size);
    if (p->lowercase && !word->failed)
        for (char *c = word->data + word->size - size; *c; c++)
            *c |= *c <= 'Z' && *c >= 'A' ? 0x20 : 0;
}

/* Returns whether no word continues across this byte: ASCII that is neither plain nor a control
 * character. */
static bool ends_word(char c)
{
    return (c >= ' ' && c < 0x7f && !is_plain(c)) || (c >= '\t' && c <= '\r');
}

/* Reads the run of ASCII letters and digits at the start; *n is its size. If it is a complete word
 * that was encoded before, its ids are copied. */
static bool read_ascii(const struct text_tokenizer *t, struct text_work *w, const char *text,
                       size_t size, size_t *n)
{
    const size_t n_before = w->out->count;
    struct text_cached_piece *place;
    bool found;
    *n = 0;
    while (*n < size && is_plain(text[*n])) ++*n;
    if (*n == 0) return true;
    const bool whole = w->word.size == sizeof low_line - 1 && (*n == size || ends_word(text[*n]));
    if (whole && !text_piece_cache_find(w, text, *n, &place, &found)) return false;
    if (whole && found) return true;
    add_ascii(t->state, &w->word, text, *n);
    if (!whole) return true;
    if (!end_word(t, w)) return false;
    text_piece_cache_add(w, place, text, *n, n_before);
    return true;
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    const struct wordpiece *p = t->state;
    (void)first;
    base_buffer_clear(&w->word);
    if (!end_word(t, w) || !text_piece_cache_begin(&w->pieces, size, w->err)) return false;
    for (size_t i = 0, n_ascii; i < size;) {
        if (!read_ascii(t, w, text + i, size - i, &n_ascii)) return false;
        i += n_ascii;
        if (i == size) break;
        int32_t code, parts[MAX_DECOMPOSED];
        utf8proc_ssize_t n = 1;
        i += text_decode_loose(text + i, size - i, &code);
        if (code < 0 || code > 0x10ffff) continue; /* U+FFFD, which is dropped */
        parts[0] = code;
        if (p->strip_accents && code >= 0x80 && text_pin_unicode(code) == code)
            n = utf8proc_decompose_char(code, parts, MAX_DECOMPOSED, UTF8PROC_DECOMPOSE, NULL);
        if (n < 0 || n > MAX_DECOMPOSED)
            return base_fail(w->err, BASE_FAILED, "decomposing U+%04X: %s", (unsigned)code,
                             n < 0 ? utf8proc_errmsg(n) : "too long");
        for (utf8proc_ssize_t k = 0; k < n; k++)
            if (!add_character(t, w, parts[k])) return false;
    }
    return end_word(t, w);
}

/* CLS and SEP are added whatever the file specifies, as in the reference implementation. */
static void ends(const struct text_tokenizer *t, int32_t *before, int32_t *after)
{
    *before = t->bos;
    *after = t->sep;
}

/* Appends the bytes of a token; a word of punctuation is joined to the word before it. */
static void decode(const struct text_tokenizer *t, struct gguf_str text, struct base_buffer *out)
{
    const size_t mark = sizeof low_line - 1;
    if (text.size > mark && !memcmp(text.data, low_line, mark) &&
        memchr(".?!,", text.data[mark], 4))
        text = (struct gguf_str){text.data + mark, text.size - mark};
    text_unescape(t, text, out);
}

const struct text_algorithm text_wordpiece = {
    .name = "bert",
    .defaults = {.bos = 101, .eos = -1, .unk = 100, .sep = 102, .add_bos = true},
    .drops_space = TEXT_DROPS_ALWAYS,
    .open = open_wordpiece,
    .close = close_wordpiece,
    .encode = encode,
    .ends = ends,
    .decode = decode,
};
