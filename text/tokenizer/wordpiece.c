/* text/tokenizer/wordpiece.c: BERT's WordPiece. See text/tokenizer/vocab.h.
 *
 * In GGUF files a token that begins a word carries U+2581 before it, and one that continues a word
 * has lost its "##", so a word is looked up as U+2581 and its normalized letters, longest token
 * first; a word that cannot be built is the unknown token. Normalizing is that of BERT: canonical
 * decomposition without the nonspacing marks, lower case, punctuation and CJK characters as words
 * of their own, control characters dropped. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <stdlib.h>
#include <utf8proc.h>

enum { MAX_DECOMPOSED = 32 }; /* the longest canonical decomposition has 4 characters */

static const char low_line[] = "\xe2\x96\x81";

bool text_wordpiece_open(struct text_tokenizer *t, struct base_error *err)
{
    t->lowercase = true;
    if (!gguf_get_bool(t->file, "tokenizer.ggml.normalizer.lowercase", &t->lowercase, err))
        return false;
    t->strip_accents = t->lowercase;
    if (!gguf_get_bool(t->file, "tokenizer.ggml.normalizer.strip_accents", &t->strip_accents, err))
        return false;
    int32_t *ids = malloc((size_t)t->n_tokens * sizeof *ids);
    if (!ids) return base_fail(err, BASE_NO_MEMORY, "no memory for %u tokens", t->n_tokens);
    for (uint32_t i = 0; i < t->n_tokens; i++) ids[i] = (int32_t)i;
    text_prefix_init(&t->words, t, ids, t->n_tokens);
    return true;
}

/* ---- Words ---- */

/* The longest token at the start of text[0..size): its place in the index, and its size. */
static int64_t longest_token(const struct text_prefix_index *index, const char *text, size_t size,
                             size_t *token_size)
{
    struct text_prefix_walk walk;
    int64_t best = TEXT_NO_VALUE;
    bool more = text_prefix_begin(index, text[0], &walk);
    for (size_t n = 1; more; n++) {
        int64_t found = text_prefix_found(index, &walk);
        if (found >= 0) {
            best = found;
            *token_size = n;
        }
        more = n < size && text_prefix_step(index, text[n], &walk);
    }
    return best;
}

static bool emit_unknown(const struct text_tokenizer *t, struct text_work *w)
{
    if (t->unk < 0)
        return base_fail(w->err, BASE_MODEL, "the vocabulary has no token for unknown words");
    return text_ids_add(w->out, t->unk, w->err);
}

/* Ends the word in w->word, if any, and starts the next one. */
static bool end_word(const struct text_tokenizer *t, struct text_work *w)
{
    struct base_buffer *word = &w->word;
    const size_t mark = sizeof low_line - 1, n_before = w->out->count;
    if (word->failed) return base_fail(w->err, BASE_NO_MEMORY, "no memory for a word");
    if (!base_goes_on(w->err)) return false;
    if (word->size > mark) {
        for (size_t at = 0, n = 0; at < word->size; at += n) {
            int64_t place = longest_token(&t->words, word->data + at, word->size - at, &n);
            if (place < 0) {
                w->out->count = n_before;
                if (!emit_unknown(t, w)) return false;
                break;
            }
            if (!text_ids_add(w->out, t->words.id[place], w->err)) return false;
        }
    }
    base_buffer_clear(word);
    base_buffer_add(word, low_line, mark);
    return true;
}

/* ---- Characters ---- */

static bool is_space(int32_t code, utf8proc_category_t category)
{
    return (code >= '\t' && code <= '\r') || code == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

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
        {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, /* from 0x2b920: so in the reference */
        {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++)
        if (code >= range[i][0] && code <= range[i][1]) return true;
    return false;
}

static bool add_character(const struct text_tokenizer *t, struct text_work *w, int32_t code)
{
    utf8proc_category_t category = utf8proc_category(code);
    char bytes[4];
    if (is_space(code, category)) return end_word(t, w);
    if (is_control(code, category)) return true;
    if (t->strip_accents && category == UTF8PROC_CATEGORY_MN) return true;
    bool alone = is_punctuation(code, category) || is_cjk(code);
    if (alone && !end_word(t, w)) return false;
    base_buffer_add(&w->word, bytes,
                    base_utf8_encode(t->lowercase ? utf8proc_tolower(code) : code, bytes));
    return !alone || end_word(t, w);
}

bool text_wordpiece_encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                           size_t size)
{
    base_buffer_clear(&w->word);
    if (!end_word(t, w)) return false;
    for (size_t i = 0; i < size;) {
        int32_t code, parts[MAX_DECOMPOSED];
        utf8proc_ssize_t n = 1;
        i += base_utf8_decode(text + i, size - i, &code);
        if (code < 0) continue; /* U+FFFD, which is dropped */
        parts[0] = code;
        if (t->strip_accents)
            n = utf8proc_decompose_char(code, parts, MAX_DECOMPOSED, UTF8PROC_DECOMPOSE, NULL);
        if (n < 0 || n > MAX_DECOMPOSED)
            return base_fail(w->err, BASE_FAILED, "decomposing U+%04X: %s", (unsigned)code,
                             n < 0 ? utf8proc_errmsg(n) : "too long");
        for (utf8proc_ssize_t k = 0; k < n; k++)
            if (!add_character(t, w, parts[k])) return false;
    }
    return end_word(t, w);
}
