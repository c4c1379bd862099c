/* text/tokenizer/bpe.c: byte-level byte-pair encoding of GPT-2 and later models. See
 * text/tokenizer/vocab.h.
 *
 * The pre-tokenizer cuts a text into pieces, each byte of a piece becomes GPT-2's letter for it,
 * and adjacent symbols are merged in the order of the file's list. Merges are looked up by the
 * texts of their halves, because a half need not be a token; so opening a file looks up no halves.
 * Models with TEXT_PRE_RAW merge UTF-8 characters instead of letters and write other bytes as
 * <0xNN>. "whitespace" drops white space, which ends every piece; "hybriddna" has tokens of its own
 * for bases between <dna> and </dna>. */
#include "base/utf8.h"
#include "text/tokenizer/vocab.h"
#include <stdlib.h>
#include <string.h>

struct bpe {
    const struct gguf_kv *merges;
    struct text_splitter *splitter;
    struct text_table by_pair;  /* merges by the texts of their halves */
    uint32_t longest_merge;     /* bytes of both halves */
    uint16_t letter[256];       /* GPT-2's letter for each byte, below U+0144 */
    int16_t letter_byte[0x144]; /* the byte of each letter; -1: none */
    /* "whitespace" */
    struct text_step steps[TEXT_PRE_MAX_STEPS + 1]; /* words, then those of the pre-tokenizer */
    bool drops_spaces, lowercase;
    /* "hybriddna"; -1: not in the vocabulary */
    int32_t dna_begin, dna_end, dna_unknown;
};

/* ---- GPT-2's letters for bytes ---- */

/* Printable Latin-1 is its own letter; the other 68 bytes have letters from U+0100 on. */
static void make_letters(struct bpe *b)
{
    int other = 0x100;
    for (size_t i = 0; i < sizeof b->letter_byte / sizeof b->letter_byte[0]; i++)
        b->letter_byte[i] = -1;
    for (int byte = 0; byte < 256; byte++) {
        const bool itself =
            (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        const int code = itself ? byte : other++;
        b->letter[byte] = (uint16_t)code;
        b->letter_byte[code] = (int16_t)byte;
    }
}

/* Converts letters back to bytes; a character that is not such a letter is unchanged. */
static void read_letters(const struct bpe *b, struct gguf_str text, struct base_buffer *out)
{
    const int32_t n_letters = sizeof b->letter_byte / sizeof b->letter_byte[0];
    for (size_t i = 0, n; i < text.size; i += n) {
        int32_t code;
        n = base_utf8_decode(text.data + i, text.size - i, &code);
        if (code >= 0 && code < n_letters && b->letter_byte[code] >= 0) {
            char byte = (char)b->letter_byte[code];
            base_buffer_add(out, &byte, 1);
        } else {
            base_buffer_add(out, text.data + i, n);
        }
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

/* Returns the rank of a merge, or -1; *at is then its position in the table. */
static int64_t find_merge(const struct text_tokenizer *t, const struct halves *h, uint64_t hash,
                          uint32_t *at)
{
    const struct bpe *b = t->state;
    *at = (uint32_t)hash;
    for (;;) {
        int64_t rank = text_table_next(&b->by_pair, hash, at);
        struct halves there;
        if (rank < 0) return -1;
        if (split_merge(gguf_array_str(t->file, b->merges, (uint64_t)rank), &there) &&
            same_halves(&there, h))
            return rank;
    }
}

/* Adds up to TEXT_BATCH merges to the table. */
static bool load_batch(struct text_tokenizer *t, uint32_t first, struct base_error *err)
{
    struct bpe *b = t->state;
    struct halves h[TEXT_BATCH];
    uint64_t hash[TEXT_BATCH];
    uint64_t left = b->merges->count - first;
    uint32_t count = left < TEXT_BATCH ? (uint32_t)left : TEXT_BATCH;
    for (uint32_t i = 0; i < count; i++) {
        if (!split_merge(gguf_array_str(t->file, b->merges, first + i), &h[i]))
            return base_fail_at(err, BASE_MODEL, merges_key, (int64_t)b->merges->offset,
                                "merge %u is not two texts with a space between", first + i);
        if (h[i].n_left + h[i].n_right > b->longest_merge)
            b->longest_merge = h[i].n_left + h[i].n_right;
        hash[i] = hash_halves(&h[i]);
        text_table_prefetch(&b->by_pair, hash[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at;
        if (find_merge(t, &h[i], hash[i], &at) >= 0) continue; /* the first of equal ones counts */
        if (!text_table_put(&b->by_pair, hash[i], at, first + i, err)) return false;
    }
    return true;
}

static bool load_merges(struct text_tokenizer *t, struct base_error *err)
{
    struct bpe *b = t->state;
    b->merges = gguf_kv_find(t->file, merges_key);
    if (!b->merges) {
        /* Kimi's files may have no list: only whole pieces are looked up. */
        if (!strcmp(t->pre->name, "kimi-k2")) return text_table_init(&b->by_pair, 0, err);
        return base_fail_at(err, BASE_MODEL, merges_key, -1,
                            "the vocabulary has no list of merges");
    }
    if (b->merges->kind != GGUF_ARRAY || b->merges->item != GGUF_STRING ||
        b->merges->count > TEXT_MAX_TOKENS)
        return base_fail_at(err, BASE_MODEL, merges_key, (int64_t)b->merges->offset,
                            "must be an array of at most %d strings", TEXT_MAX_TOKENS);
    if (!text_table_init(&b->by_pair, (uint32_t)b->merges->count, err)) return false;
    for (uint32_t i = 0; i < b->merges->count; i += TEXT_BATCH)
        if (!base_goes_on(err) || !load_batch(t, i, err)) return false;
    return true;
}

static bool merge_rank(const struct text_tokenizer *t, const char *text, size_t n_left,
                       size_t n_right, uint32_t *key)
{
    const struct bpe *b = t->state;
    if (n_left + n_right > b->longest_merge) return false;
    const struct halves h = {text, text + n_left, (uint32_t)n_left, (uint32_t)n_right};
    uint32_t at;
    int64_t rank = find_merge(t, &h, hash_halves(&h), &at);
    *key = (uint32_t)rank;
    return rank >= 0;
}

/* A file without the key is older than the key, and means "default". */
static bool find_pre(struct text_tokenizer *t, struct base_error *err)
{
    static const char key[] = "tokenizer.ggml.pre";
    const char *implied = t->algorithm->pre;
    struct gguf_str name = {"", 0};
    if (implied) {
        name = (struct gguf_str){implied, strlen(implied)};
    } else if (!gguf_get_str(t->file, key, &name, err)) {
        return false;
    }
    if (name.size == 0) name = (struct gguf_str){"default", 7};
    t->pre = text_pre_find(name);
    return t->pre ||
           base_fail_at(err, BASE_MODEL, key, -1, "the pre-tokenizer \"%.*s\" is not known",
                        (int)(name.size < 64 ? name.size : 64), name.data);
}

/* Returns the pre-tokenizer's rules for BOS and EOS. */
static struct text_defaults defaults_of(unsigned pre_flags)
{
    if (pre_flags & TEXT_PRE_FORCE_BOS)
        return (struct text_defaults){.bos = -1, .eos = -1, .unk = -1, .sep = -1, .add_bos = true};
    return (struct text_defaults){.bos = pre_flags & TEXT_PRE_NO_BOS ? -1 : 11,
                                  .eos = 11,
                                  .unk = -1,
                                  .sep = -1,
                                  .add_bos = (pre_flags & TEXT_PRE_ADD_BOS) != 0};
}

/* Reads all but the steps of the pre-tokenizer. */
static bool open_merges(struct text_tokenizer *t, struct base_error *err)
{
    struct bpe *b = t->state = calloc(1, sizeof *b);
    if (!b) return base_fail(err, BASE_NO_MEMORY, "no memory for the tokenizer");
    if (!find_pre(t, err)) return false;
    t->defaults = defaults_of(t->pre->flags);
    make_letters(b);
    return load_merges(t, err);
}

static bool open_steps(struct bpe *b, const struct text_step *steps, struct base_error *err)
{
    b->splitter = text_splitter_open(steps, err);
    return b->splitter != NULL;
}

static bool open_bpe(struct text_tokenizer *t, struct base_error *err)
{
    return open_merges(t, err) && open_steps(t->state, t->pre->steps, err);
}

static bool open_whitespace(struct text_tokenizer *t, struct base_error *err)
{
    if (!open_merges(t, err)) return false;
    struct bpe *b = t->state;
    b->drops_spaces = true;
    b->lowercase = strcmp(t->pre->name, "whitespace") != 0;
    b->steps[0] = (struct text_step){TEXT_STEP_REGEX, "\\S+"};
    for (int i = 0; t->pre->steps[i].kind != TEXT_STEP_END; i++) b->steps[i + 1] = t->pre->steps[i];
    return gguf_get_bool(t->file, "tokenizer.ggml.normalizer.lowercase", &b->lowercase, err) &&
           open_steps(b, b->steps, err);
}

static bool open_hybriddna(struct text_tokenizer *t, struct base_error *err)
{
    if (!open_bpe(t, err)) return false;
    struct bpe *b = t->state;
    b->dna_begin = text_find_token(t, "<dna>", 5);
    b->dna_end = text_find_token(t, "</dna>", 6);
    b->dna_unknown = text_find_token(t, "<oov>", 5);
    return true;
}

static void close_bpe(void *state)
{
    struct bpe *b = state;
    text_table_free(&b->by_pair);
    text_splitter_close(b->splitter);
    free(b);
}

/* ---- Encoding ---- */

/* Appends the letters of text[0..size) to w->word, one symbol each. */
static bool add_letters(const struct text_tokenizer *t, struct text_work *w, const char *text,
                        size_t size)
{
    const struct bpe *b = t->state;
    for (size_t i = 0; i < size; i++) {
        char letter[4];
        size_t n = base_utf8_encode(b->letter[(unsigned char)text[i]], letter);
        if (!text_merger_add(&w->merger, w->word.size, n, w->err)) return false;
        base_buffer_add(&w->word, letter, n);
    }
    return true;
}

/* Returns the number of letters in word[0..size), which have one or two bytes each. */
static size_t count_letters(const char *word, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += ((unsigned char)word[i] & 0xc0) != 0x80;
    return count;
}

/* Appends the characters of text[0..size) to w->word, one symbol each; an invalid byte is a symbol
 * too. */
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

/* A part of a text that is encoded; `place` is its offset in the fragment. */
struct bpe_text {
    const char *text;
    size_t size, place;
};

/* Appends the ids of the symbol of w->word at `start`, which is not a token: those of its letters
 * or bytes. */
static bool emit_parts(const struct text_tokenizer *t, struct text_work *w,
                       const struct bpe_text *p, const struct text_symbol *s)
{
    const bool raw = t->pre->flags & TEXT_PRE_RAW;
    for (size_t i = s->start, n; i < s->start + s->size; i += n) {
        const char *part = w->word.data + i;
        int32_t code;
        n = raw ? 1 : base_utf8_decode(part, s->start + s->size - i, &code);
        const int32_t id = raw ? t->byte_token[(unsigned char)*part] : text_find_token(t, part, n);
        if (id < 0) {
            const size_t at = raw ? i : count_letters(w->word.data, i);
            if (!text_lose_byte(w, p->place + at)) return false;
        } else if (!text_ids_add(w->out, id, w->err)) {
            return false;
        }
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

static bool encode_piece(const struct text_tokenizer *t, struct text_work *w,
                         const struct bpe_text *p)
{
    struct text_merger *m = &w->merger;
    m->count = 0;
    base_buffer_clear(&w->word);
    bool ok = t->pre->flags & TEXT_PRE_RAW ? add_characters(w, p->text, p->size)
                                           : add_letters(t, w, p->text, p->size);
    if (!ok) return false;
    if (w->word.failed) return base_fail(w->err, BASE_NO_MEMORY, "no memory for a word");
    if (is_whole(t, p->text, p->size)) {
        int32_t id = text_find_token(t, w->word.data, w->word.size);
        if (id >= 0) return text_ids_add(w->out, id, w->err);
    }
    if (!text_merger_run(m, t, w->word.data, merge_rank, w->err)) return false;
    for (int32_t i = 0; i >= 0; i = m->symbol[i].after) {
        const struct text_symbol *s = &m->symbol[i];
        int32_t id = text_find_token(t, w->word.data + s->start, s->size);
        ok = id >= 0 ? text_ids_add(w->out, id, w->err) : emit_parts(t, w, p, s);
        if (!ok) return false;
    }
    return true;
}

/* Returns whether a piece of "whitespace" is white space, that is, whether its first character
 * is. */
static bool is_space(const char *piece, size_t size)
{
    int32_t code;
    base_utf8_decode(piece, size, &code);
    return text_is_space(code);
}

static bool encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first)
{
    const struct bpe *b = t->state;
    const bool escape = t->pre->flags & TEXT_PRE_ESCAPE_SPACES;
    (void)first;
    if (escape && !text_escape_spaces(w, text, size, false)) return false;
    const char *all = escape ? w->text.data : text;
    const size_t all_size = escape ? w->text.size : size;
    if (!text_split(b->splitter, all, all_size, &w->cuts, w->err) ||
        !text_piece_cache_begin(&w->pieces, all_size, w->err))
        return false;
    for (size_t k = 0, start = 0; k < w->cuts.count; start = w->cuts.end[k++]) {
        const struct bpe_text p = {all + start, w->cuts.end[k] - start, start};
        const size_t n_before = w->out->count;
        struct text_cached_piece *place;
        bool found;
        if (b->drops_spaces && is_space(p.text, p.size)) continue;
        if (!base_goes_on(w->err) || !text_piece_cache_find(w, p.text, p.size, &place, &found))
            return false;
        if (found) continue;
        if (!encode_piece(t, w, &p)) return false;
        text_piece_cache_add(w, place, p.text, p.size, n_before);
    }
    return true;
}

/* Encodes for "whitespace". The offset of a byte without a token counts in the text in lower
 * case. */
static bool encode_whitespace(const struct text_tokenizer *t, struct text_work *w, const char *text,
                              size_t size, bool first)
{
    const struct bpe *b = t->state;
    BASE_LOCAL_BUFFER lower = BASE_BUFFER_INIT;
    if (!b->lowercase) return encode(t, w, text, size, first);
    for (size_t i = 0, n; i < size; i += n) {
        int32_t code;
        char bytes[4];
        n = base_utf8_decode(text + i, size - i, &code);
        if (code < 0)
            base_buffer_add(&lower, text + i, n);
        else
            base_buffer_add(&lower, bytes, base_utf8_encode(text_lower(code), bytes));
    }
    w->source = lower.data;
    w->source_size = lower.size;
    return lower.failed ? base_fail(w->err, BASE_NO_MEMORY, "no memory for %zu bytes", size)
                        : encode(t, w, lower.data, lower.size, first);
}

/* ---- DNA ---- */

enum { BASES = 6 };                      /* bases per token */
static const char dna_mark[] = "\ue000"; /* ends the text of such a token in the file */

/* Encodes bases in either case; the last token is filled up with A, other letters are unknown
 * tokens. */
static bool encode_dna(const struct text_tokenizer *t, struct text_work *w, const char *text,
                       size_t size)
{
    const struct bpe *b = t->state;
    for (size_t at = 0; at < size; at += BASES) {
        char token[] = "AAAAAA\ue000";
        for (size_t i = 0; i < BASES && at + i < size; i++) {
            const char c = text[at + i];
            token[i] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
        }
        const int32_t id = text_find_token(t, token, sizeof token - 1);
        if (!text_ids_add(w->out, id < 0 ? b->dna_unknown : id, w->err)) return false;
    }
    return true;
}

/* Returns the number of bytes before `part` in text[0..size), or size. */
static size_t before(const char *text, size_t size, const char *part)
{
    const char *found = memmem(text, size, part, strlen(part));
    return found ? (size_t)(found - text) : size;
}

static bool encode_hybriddna(const struct text_tokenizer *t, struct text_work *w, const char *text,
                             size_t size, bool first)
{
    static const char begin[] = "<dna>", end[] = "</dna>";
    const struct bpe *b = t->state;
    if (b->dna_begin < 0 || b->dna_end < 0 || b->dna_unknown < 0)
        return encode(t, w, text, size, first);
    for (const char *const stop = text + size; text < stop;) {
        const size_t n = before(text, (size_t)(stop - text), begin);
        w->source = text;
        w->source_size = n;
        if (n && !encode(t, w, text, n, first)) return false;
        w->source_place += n;
        text += n;
        if (text == stop) break;
        text += sizeof begin - 1;
        const size_t bases = before(text, (size_t)(stop - text), end);
        if (!text_ids_add(w->out, b->dna_begin, w->err) || !encode_dna(t, w, text, bases))
            return false;
        w->source_place += sizeof begin - 1 + bases;
        text += bases;
        if (text == stop) break;
        if (!text_ids_add(w->out, b->dna_end, w->err)) return false;
        w->source_place += sizeof end - 1;
        text += sizeof end - 1;
    }
    return true;
}

static void decode(const struct text_tokenizer *t, struct gguf_str text, struct base_buffer *out)
{
    if (t->pre->flags & TEXT_PRE_ESCAPE_SPACES) {
        text_unescape(t, text, out);
    } else if (t->pre->flags & TEXT_PRE_RAW) {
        base_buffer_add(out, text.data, text.size);
    } else {
        read_letters(t->state, text, out);
    }
}

static void decode_hybriddna(const struct text_tokenizer *t, struct gguf_str text,
                             struct base_buffer *out)
{
    const size_t mark = sizeof dna_mark - 1;
    if (text.size > mark && !memcmp(text.data + text.size - mark, dna_mark, mark))
        text.size -= mark;
    decode(t, text, out);
}

#define BPE(model, ...)                                                                            \
    {                                                                                              \
        .name = (model), .close = close_bpe, .ends = text_declared_ends, __VA_ARGS__               \
    }
const struct text_algorithm text_bpe =
    BPE("gpt2", .open = open_bpe, .encode = encode, .decode = decode);
const struct text_algorithm text_bpe_gemma4 =
    BPE("gemma4", .pre = "gemma4", .open = open_bpe, .encode = encode, .decode = decode);
const struct text_algorithm text_bpe_whitespace =
    BPE("whitespace", .open = open_whitespace, .encode = encode_whitespace, .decode = decode);
const struct text_algorithm text_bpe_hybriddna = BPE(
    "hybriddna", .open = open_hybriddna, .encode = encode_hybriddna, .decode = decode_hybriddna);
