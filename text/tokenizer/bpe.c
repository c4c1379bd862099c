/* text/tokenizer/bpe.c: byte-level byte-pair encoding, GPT-2's and its heirs'. See
 * text/tokenizer/vocab.h.
 *
 * A text is cut into pieces by the pre-tokenizer, each byte of a piece becomes the letter that
 * GPT-2 writes for it, and neighbours are merged in the order of the file's list. Merges are looked
 * up by the texts of their halves, so a half need not be a token and opening looks up none. Models
 * marked TEXT_PRE_RAW merge UTF-8 characters instead of letters and spell the rest as <0xNN>. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <string.h>

/* ---- GPT-2's letters for bytes ---- */

/* Printable Latin-1 stands for itself; the other 68 bytes are numbered from U+0100. */
static void make_letters(struct text_tokenizer *t)
{
    int other = 0x100;
    for (size_t i = 0; i < sizeof t->letter_byte / sizeof t->letter_byte[0]; i++)
        t->letter_byte[i] = -1;
    for (int b = 0; b < 256; b++) {
        bool itself = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        int code = itself ? b : other++;
        t->letter[b] = (uint16_t)code;
        t->letter_byte[code] = (int16_t)b;
    }
}

/* ---- Merges ---- */

static const char merges_key[] = "tokenizer.ggml.merges";

struct halves {
    const char *left, *right;
    uint32_t n_left, n_right;
};

/* "LEFT RIGHT": the space is the first one after the first byte. */
static bool split_merge(struct gguf_str text, struct halves *h)
{
    const char *space = text.size < 3 ? NULL : memchr(text.data + 1, ' ', text.size - 2);
    if (!space || text.size > 2 * TEXT_MAX_TOKEN_SIZE) return false;
    h->left = text.data;
    h->n_left = (uint32_t)(space - text.data);
    h->right = space + 1;
    h->n_right = (uint32_t)(text.size - h->n_left - 1);
    return true;
}

static uint64_t hash_halves(const struct halves *h)
{
    return text_hash_pair(text_hash(h->left, h->n_left), text_hash(h->right, h->n_right));
}

static bool same_halves(const struct halves *a, const struct halves *b)
{
    return a->n_left == b->n_left && a->n_right == b->n_right &&
           !memcmp(a->left, b->left, a->n_left) && !memcmp(a->right, b->right, a->n_right);
}

/* The rank of a merge, or -1; *at is then where it belongs. */
static int64_t find_merge(const struct text_tokenizer *t, const struct halves *h, uint64_t hash,
                          uint32_t *at)
{
    *at = (uint32_t)hash;
    for (;;) {
        int64_t rank = text_table_next(&t->by_pair, hash, at);
        struct halves there;
        if (rank < 0) return -1;
        if (split_merge(gguf_array_str(t->file, t->merges, (uint64_t)rank), &there) &&
            same_halves(&there, h))
            return rank;
    }
}

/* Enters up to TEXT_BATCH merges into the table. */
static bool load_batch(struct text_tokenizer *t, uint32_t first, struct base_error *err)
{
    struct halves h[TEXT_BATCH];
    uint64_t hash[TEXT_BATCH];
    uint64_t left = t->merges->count - first;
    uint32_t count = left < TEXT_BATCH ? (uint32_t)left : TEXT_BATCH;
    for (uint32_t i = 0; i < count; i++) {
        if (!split_merge(gguf_array_str(t->file, t->merges, first + i), &h[i]))
            return base_fail_at(err, BASE_MODEL, merges_key, (int64_t)t->merges->offset,
                                "merge %u is not two texts with a space between", first + i);
        if (h[i].n_left + h[i].n_right > t->longest_merge)
            t->longest_merge = h[i].n_left + h[i].n_right;
        hash[i] = hash_halves(&h[i]);
        text_table_prefetch(&t->by_pair, hash[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at;
        if (find_merge(t, &h[i], hash[i], &at) >= 0) continue; /* the first of equals counts */
        if (!text_table_put(&t->by_pair, hash[i], at, first + i, err)) return false;
    }
    return true;
}

static bool load_merges(struct text_tokenizer *t, struct base_error *err)
{
    t->merges = gguf_kv_find(t->file, merges_key);
    if (!t->merges) {
        /* Kimi's files may leave the list out: their pieces are looked up whole. */
        if (!strcmp(t->pre->name, "kimi-k2")) return text_table_init(&t->by_pair, 0, err);
        return base_fail_at(err, BASE_MODEL, merges_key, -1,
                            "the vocabulary has no list of merges");
    }
    if (t->merges->kind != GGUF_ARRAY || t->merges->item != GGUF_STRING ||
        t->merges->count > TEXT_MAX_TOKENS)
        return base_fail_at(err, BASE_MODEL, merges_key, (int64_t)t->merges->offset,
                            "must be an array of at most %d strings", TEXT_MAX_TOKENS);
    if (!text_table_init(&t->by_pair, (uint32_t)t->merges->count, err)) return false;
    for (uint32_t i = 0; i < t->merges->count; i += TEXT_BATCH)
        if (!load_batch(t, i, err)) return false;
    return true;
}

static bool merge_rank(const struct text_tokenizer *t, const char *text, size_t n_left,
                       size_t n_right, uint32_t *key)
{
    if (n_left + n_right > t->longest_merge) return false;
    const struct halves h = {text, text + n_left, (uint32_t)n_left, (uint32_t)n_right};
    uint32_t at;
    int64_t rank = find_merge(t, &h, hash_halves(&h), &at);
    *key = (uint32_t)rank;
    return rank >= 0;
}

bool text_bpe_open(struct text_tokenizer *t, struct base_error *err)
{
    make_letters(t);
    text_load_byte_tokens(t);
    t->splitter = text_splitter_open(t->pre->steps, err);
    return t->splitter && load_merges(t, err);
}

/* ---- Encoding ---- */

/* Letters of text[0..size) into w->word, one symbol each. */
static bool add_letters(const struct text_tokenizer *t, struct text_work *w, const char *text,
                        size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char letter[4];
        size_t n = base_utf8_encode(t->letter[(unsigned char)text[i]], letter);
        if (!text_merger_add(&w->merger, w->word.size, n, w->err)) return false;
        base_buffer_add(&w->word, letter, n);
    }
    return true;
}

/* The characters of text[0..size) into w->word, one symbol each; an invalid byte is one too. */
static bool add_characters(struct text_work *w, const char *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n) {
        int32_t code;
        n = base_utf8_decode(text + i, size - i, &code);
        if (!text_merger_add(&w->merger, i, n, w->err)) return false;
    }
    base_buffer_add(&w->word, text, size);
    return true;
}

/* A symbol that is no token: letter by letter, or byte by byte; what has no token is left out, as
 * the reference tokenizers do. */
static bool emit_parts(const struct text_tokenizer *t, struct text_work *w, const char *text,
                       size_t size)
{
    bool raw = t->pre->flags & TEXT_PRE_RAW;
    for (size_t i = 0, n; i < size; i += n) {
        int32_t code;
        n = raw ? 1 : base_utf8_decode(text + i, size - i, &code);
        int32_t id = raw ? t->byte_token[(unsigned char)text[i]] : text_find_token(t, text + i, n);
        if (id >= 0 && !text_ids_add(w->out, id, w->err)) return false;
    }
    return true;
}

static bool is_whole(const struct text_tokenizer *t, const char *piece, size_t size)
{
    if (t->pre->flags & TEXT_PRE_IGNORE_MERGES) return true;
    if (!(t->pre->flags & TEXT_PRE_WHOLE_NEWLINES)) return false;
    for (size_t i = 0; i < size; i++)
        if (piece[i] != '\n') return false;
    return true;
}

static bool encode_piece(const struct text_tokenizer *t, struct text_work *w, const char *piece,
                         size_t size)
{
    struct text_merger *m = &w->merger;
    m->count = 0;
    base_buffer_clear(&w->word);
    bool ok = t->pre->flags & TEXT_PRE_RAW ? add_characters(w, piece, size)
                                           : add_letters(t, w, piece, size);
    if (!ok) return false;
    if (w->word.failed) return base_fail(w->err, BASE_NO_MEMORY, "no memory for a word");
    if (is_whole(t, piece, size)) {
        int32_t id = text_find_token(t, w->word.data, w->word.size);
        if (id >= 0) return text_ids_add(w->out, id, w->err);
    }
    if (!text_merger_run(m, t, w->word.data, merge_rank, w->err)) return false;
    for (int32_t i = 0; i >= 0; i = m->symbol[i].after) {
        const char *text = w->word.data + m->symbol[i].start;
        int32_t id = text_find_token(t, text, m->symbol[i].size);
        ok = id >= 0 ? text_ids_add(w->out, id, w->err) : emit_parts(t, w, text, m->symbol[i].size);
        if (!ok) return false;
    }
    return true;
}

bool text_bpe_encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                     size_t size)
{
    if (t->pre->flags & TEXT_PRE_ESCAPE_SPACES) {
        if (!text_escape_spaces(w, text, size, false)) return false;
        text = w->text.data;
        size = w->text.size;
    }
    if (!text_split(t->splitter, text, size, &w->cuts, w->err)) return false;
    for (size_t k = 0, start = 0; k < w->cuts.count; start = w->cuts.end[k++])
        if (!base_goes_on(w->err) || !encode_piece(t, w, text + start, w->cuts.end[k] - start))
            return false;
    return true;
}
