/* text/tokenizer/vocab.c: tokens by id and by text, their kinds and scores, for all algorithms. See
 * text/tokenizer/vocab.h. */
#include "text/tokenizer/vocab.h"
#include "base/list.h"
#include "base/utf8.h"
#include <stdlib.h>
#include <string.h>

/* ---- Lists of ids ---- */

bool text_ids_add(struct text_ids *ids, int32_t id, struct base_error *err)
{
    if (!BASE_LIST_ROOM(ids->id, ids->count, ids->room))
        return base_fail(err, BASE_NO_MEMORY, "no memory for %zu ids", ids->count + 1);
    ids->id[ids->count++] = id;
    return true;
}

void text_ids_free(struct text_ids *ids)
{
    free(ids->id);
    *ids = TEXT_IDS_INIT;
}

/* ---- Bytes and spaces ---- */

int text_parse_byte(struct gguf_str text)
{
    if (text.size != 6 || memcmp(text.data, "<0x", 3) || text.data[5] != '>') return -1;
    int high = base_hex_digit(text.data[3]), low = base_hex_digit(text.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static void load_byte_tokens(struct text_tokenizer *t)
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
    w->escaped = true;
    w->space_added = add_space;
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

/* Returns the offset in the fragment of the byte at offset `escaped` of w->text. */
static size_t unescaped_place(const struct text_work *w, size_t escaped)
{
    size_t place = 0;
    for (size_t at = w->space_added ? 3 : 0; place + 1 < w->source_size; place++) {
        at += w->source[place] == ' ' ? 3 : 1;
        if (at > escaped) break;
    }
    return place;
}

bool text_lose_byte(const struct text_work *w, size_t at)
{
    if (w->flags & TEXT_LOSSY) return true;
    if (w->escaped) at = unescaped_place(w, at);
    return base_fail_at(w->err, BASE_USAGE, NULL, (int64_t)(w->source_place + at),
                        "the vocabulary has no token for byte 0x%02X",
                        (unsigned char)w->source[at]);
}

void text_unescape(const struct text_tokenizer *t, struct gguf_str text, struct base_buffer *out)
{
    (void)t;
    static const char low_line[] = "\xe2\x96\x81";
    while (text.size) {
        const char *found = memmem(text.data, text.size, low_line, sizeof low_line - 1);
        size_t n = found ? (size_t)(found - text.data) : text.size;
        base_buffer_add(out, text.data, n);
        if (found) {
            base_buffer_add(out, " ", 1);
            n += sizeof low_line - 1;
        }
        text = (struct gguf_str){text.data + n, text.size - n};
    }
}

size_t text_decode_loose(const char *bytes, size_t size, int32_t *code)
{
    const unsigned char *u = (const unsigned char *)bytes;
    const size_t n = text_lead_size(u[0]);
    *code = u[0] < 0x80 ? u[0] : -1;
    if (u[0] < 0xc0 || u[0] >= 0xf8 || n > size) return 1;
    int32_t bits = u[0] & (0x7f >> n);
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80) return 1;
        bits = bits << 6 | (u[i] & 0x3f);
    }
    *code = bits;
    return n;
}

size_t text_encode_loose(int32_t code, char out[4])
{
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(n == 1 ? code : (0xf00 >> n & 0xff) | code);
    return n;
}

/* ---- Tokens ---- */

static const char tokens_key[] = "tokenizer.ggml.tokens";

struct gguf_str text_token(const struct text_tokenizer *t, uint32_t id)
{
    return gguf_array_str(t->file, t->tokens, id);
}

/* Returns the token of this text, or -1; *at is then its position in the table. */
static int64_t find_token(const struct text_tokenizer *t, const char *bytes, size_t size,
                          uint64_t hash, uint32_t *at)
{
    *at = (uint32_t)hash;
    for (;;) {
        int64_t id = text_table_next(&t->by_text, hash, at);
        if (id < 0) return -1;
        struct gguf_str text = text_token(t, (uint32_t)id);
        if (text.size == size && !memcmp(text.data, bytes, size)) return id;
    }
}

int32_t text_find_token(const struct text_tokenizer *t, const char *bytes, size_t size)
{
    uint32_t at;
    if (size > t->longest) return -1;
    return (int32_t)find_token(t, bytes, size, text_hash(bytes, size), &at);
}

/* Adds up to TEXT_BATCH tokens to the table. */
static bool load_batch(struct text_tokenizer *t, uint32_t first, struct base_error *err)
{
    uint64_t hash[TEXT_BATCH];
    uint32_t count = t->n_tokens - first < TEXT_BATCH ? t->n_tokens - first : TEXT_BATCH;
    for (uint32_t i = 0; i < count; i++) {
        struct gguf_str text = text_token(t, first + i);
        if (text.size > TEXT_MAX_TOKEN_SIZE)
            return base_fail_at(err, BASE_MODEL, tokens_key, (int64_t)t->tokens->offset,
                                "token %u has %llu bytes, not at most %d", first + i,
                                (unsigned long long)text.size, TEXT_MAX_TOKEN_SIZE);
        if (text.size > t->longest) t->longest = (uint32_t)text.size;
        hash[i] = text_hash(text.data, text.size);
        text_table_prefetch(&t->by_text, hash[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct gguf_str text = text_token(t, first + i);
        uint32_t at;
        if (text.size == 0) continue; /* an id without a token */
        if (find_token(t, text.data, text.size, hash[i], &at) >= 0) {
            text_table_replace(&t->by_text, hash[i], at, first + i); /* the last of equals counts */
        } else if (!text_table_put(&t->by_text, hash[i], at, first + i, err)) {
            return false;
        }
    }
    return true;
}

static bool load_tokens(struct text_tokenizer *t, struct base_error *err)
{
    t->tokens = gguf_kv_find(t->file, tokens_key);
    if (!t->tokens)
        return base_fail_at(err, BASE_MODEL, tokens_key, -1, "the file has no vocabulary");
    int64_t offset = (int64_t)t->tokens->offset;
    if (t->tokens->kind != GGUF_ARRAY || t->tokens->item != GGUF_STRING)
        return base_fail_at(err, BASE_MODEL, tokens_key, offset, "must be an array of strings");
    if (t->tokens->count == 0 || t->tokens->count > TEXT_MAX_TOKENS)
        return base_fail_at(err, BASE_MODEL, tokens_key, offset, "%llu tokens, not 1 to %d",
                            (unsigned long long)t->tokens->count, TEXT_MAX_TOKENS);
    t->n_tokens = (uint32_t)t->tokens->count;
    if (!text_table_init(&t->by_text, t->n_tokens, err)) return false;
    for (uint32_t id = 0; id < t->n_tokens; id += TEXT_BATCH)
        if (!base_goes_on(err) || !load_batch(t, id, err)) return false;
    return true;
}

/* Without a list of kinds every token is a normal one, except SentencePiece's byte tokens. */
static bool load_kinds(struct text_tokenizer *t, struct base_error *err)
{
    static const char key[] = "tokenizer.ggml.token_type";
    const struct gguf_kv *kv = t->kinds = gguf_kv_find(t->file, key);
    t->kind = malloc(t->n_tokens);
    t->is_end = calloc(t->n_tokens, 1);
    if (!t->kind || !t->is_end)
        return base_fail(err, BASE_NO_MEMORY, "no memory for %u tokens", t->n_tokens);
    if (!kv) {
        for (uint32_t id = 0; id < t->n_tokens; id++) {
            bool byte = t->algorithm->byte_kinds && text_parse_byte(text_token(t, id)) >= 0;
            t->kind[id] = byte ? TEXT_TOKEN_BYTE : TEXT_TOKEN_NORMAL;
        }
        return true;
    }
    if (kv->kind != GGUF_ARRAY || (kv->item != GGUF_I32 && kv->item != GGUF_U32))
        return base_fail_at(err, BASE_MODEL, key, (int64_t)kv->offset, "must be an array of i32");
    if (kv->count < t->n_tokens)
        return base_fail_at(err, BASE_MODEL, key, (int64_t)kv->offset, "%llu kinds for %u tokens",
                            (unsigned long long)kv->count, t->n_tokens);
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        int64_t kind = gguf_array_int(kv, id);
        if (kind < 0 || kind > TEXT_TOKEN_BYTE)
            return base_fail_at(err, BASE_MODEL, key, (int64_t)kv->offset,
                                "token %u is of the unknown kind %lld", id, (long long)kind);
        if (kind == 0) kind = TEXT_TOKEN_UNUSED; /* 0 means "undefined" */
        /* A byte token whose text is not <0xNN> is an ordinary one. */
        if (kind == TEXT_TOKEN_BYTE && text_parse_byte(text_token(t, id)) < 0)
            kind = TEXT_TOKEN_NORMAL;
        t->kind[id] = (uint8_t)kind;
    }
    return true;
}

bool text_scores_load(struct text_tokenizer *t, struct base_error *err)
{
    static const char key[] = "tokenizer.ggml.scores";
    const struct gguf_kv *kv = gguf_kv_find(t->file, key);
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

float text_score(const struct text_tokenizer *t, uint32_t id)
{
    return t->scores ? (float)gguf_array_num(t->scores, id) : 0;
}

bool text_vocab_load(struct text_tokenizer *t, struct base_error *err)
{
    if (!load_tokens(t, err) || !load_kinds(t, err)) return false;
    load_byte_tokens(t);
    return true;
}

/* In the file the texts are consecutive, each after its length, so one search finds the U+2581 of
 * all. Before a text that begins with U+2581 it finds the last byte of the length, which is 0. A
 * text is then not cut between a zero and U+2581 either; this does not change ids. */
bool text_find_joins(const struct text_tokenizer *t, bool joins[256], struct base_error *err)
{
    const struct gguf_str first = text_token(t, 0), last = text_token(t, t->n_tokens - 1);
    const char *const end = last.data + last.size;
    for (const char *at = first.data; (at = memchr(at, 0xe2, (size_t)(end - at))); at++) {
        if (!base_goes_on(err)) return false;
        if (text_is_mark(at, (size_t)(end - at))) joins[(unsigned char)at[-1]] = true;
    }
    return true;
}

void text_declared_ends(const struct text_tokenizer *t, int32_t *before, int32_t *after)
{
    *before = t->add_bos ? t->bos : -1;
    *after = t->add_eos ? t->eos : -1;
}

void text_no_ends(const struct text_tokenizer *t, int32_t *before, int32_t *after)
{
    (void)t;
    *before = *after = -1;
}
