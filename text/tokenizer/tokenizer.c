/* text/tokenizer/tokenizer.c: opening a vocabulary and encoding a text. See
 * text/tokenizer/tokenizer.h. */
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/vocab.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lists of ids ---- */

bool text_ids_add(struct text_ids *ids, int32_t id, struct base_error *err)
{
    if (ids->count == ids->room) {
        size_t room = ids->room ? 2 * ids->room : 64;
        int32_t *grown = realloc(ids->id, room * sizeof *grown);
        if (!grown) return base_fail(err, BASE_NO_MEMORY, "no memory for %zu ids", room);
        ids->id = grown;
        ids->room = room;
    }
    ids->id[ids->count++] = id;
    return true;
}

void text_ids_free(struct text_ids *ids)
{
    free(ids->id);
    *ids = TEXT_IDS_INIT;
}

/* ---- Tokens ---- */

static const char tokens_key[] = "tokenizer.ggml.tokens";

struct gguf_str text_token(const struct text_tokenizer *t, uint32_t id)
{
    return gguf_array_str(t->file, t->tokens, id);
}

/* The token of this text, or -1; *at is then where it belongs in the table. */
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

/* Enters up to TEXT_BATCH tokens into the table. */
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
        if (text.size == 0) continue; /* a place without a token */
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
        if (!load_batch(t, id, err)) return false;
    return true;
}

/* Without a list of kinds every token is a normal one, but SentencePiece's bytes are bytes. */
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
            bool byte = t->model == TEXT_SPM && text_parse_byte(text_token(t, id)) >= 0;
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
        if (kind == 0) kind = TEXT_TOKEN_UNUSED; /* "undefined" */
        /* A byte token whose text is not <0xNN> is an ordinary one. */
        if (kind == TEXT_TOKEN_BYTE && text_parse_byte(text_token(t, id)) < 0)
            kind = TEXT_TOKEN_NORMAL;
        t->kind[id] = (uint8_t)kind;
    }
    return true;
}

/* ---- Opening ---- */

struct model_row {
    const char *name; /* tokenizer.ggml.model */
    enum text_model model;
    bool (*open)(struct text_tokenizer *t, struct base_error *err);
    const char *pre; /* a pre-tokenizer that the model implies, or NULL */
};

static const struct model_row models[] = {
    {"gpt2", TEXT_BPE, text_bpe_open, NULL},
    {"gemma4", TEXT_BPE, text_bpe_open, "gemma4"},
    {"llama", TEXT_SPM, text_spm_open, NULL},
    {"bert", TEXT_WORDPIECE, text_wordpiece_open, NULL},
};

static const struct model_row *find_model(const struct gguf_file *file, struct base_error *err)
{
    static const char key[] = "tokenizer.ggml.model";
    struct gguf_str name = {NULL, 0};
    if (!gguf_get_str(file, key, &name, err)) return NULL;
    if (!name.data) {
        base_fail_at(err, BASE_MODEL, key, -1, "the file has no tokenizer");
        return NULL;
    }
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (strlen(models[i].name) == name.size && !memcmp(models[i].name, name.data, name.size))
            return &models[i];
    base_fail_at(err, BASE_MODEL, key, -1, "the tokenizer \"%.*s\" is not supported yet",
                 (int)(name.size < 64 ? name.size : 64), name.data);
    return NULL;
}

/* A file without the key comes from the time before it, and means "default". */
static bool find_pre(struct text_tokenizer *t, const char *implied, struct base_error *err)
{
    static const char key[] = "tokenizer.ggml.pre";
    struct gguf_str name = {"", 0};
    if (implied) {
        name = (struct gguf_str){implied, strlen(implied)};
    } else if (!gguf_get_str(t->file, key, &name, err)) {
        return false;
    }
    if (name.size == 0) name = (struct gguf_str){"default", 7};
    t->pre = text_pre_find(name);
    if (t->pre) return true;
    return base_fail_at(err, BASE_MODEL, key, -1, "the pre-tokenizer \"%.*s\" is not known",
                        (int)(name.size < 64 ? name.size : 64), name.data);
}

struct text_tokenizer *text_tokenizer_open(const struct gguf_file *file, struct base_error *err)
{
    const struct model_row *row = find_model(file, err);
    struct text_tokenizer *t = NULL;
    if (!row) goto fail;
    t = calloc(1, sizeof *t);
    if (!t) {
        base_fail(err, BASE_NO_MEMORY, "no memory for the tokenizer");
        goto fail;
    }
    t->file = file;
    t->model = row->model;
    t->model_name = row->name;
    if (row->model == TEXT_BPE && !find_pre(t, row->pre, err)) goto fail;
    if (!load_tokens(t, err) || !load_kinds(t, err) || !row->open(t, err) ||
        !text_load_special_ids(t, err) || !text_specials_init(t, err))
        goto fail;
    return t;
fail:
    base_error_set_file(err, gguf_path(file));
    text_tokenizer_close(t);
    return NULL;
}

void text_tokenizer_close(struct text_tokenizer *t)
{
    if (!t) return;
    text_table_free(&t->by_text);
    text_table_free(&t->by_pair);
    text_specials_free(&t->specials);
    text_prefix_free(&t->words);
    text_splitter_close(t->splitter);
    free(t->kind);
    free(t->is_end);
    free(t);
}

/* ---- Encoding ---- */

void text_work_free(struct text_work *w)
{
    text_merger_free(&w->merger);
    text_cuts_free(&w->cuts);
    base_buffer_free(&w->text);
    base_buffer_free(&w->word);
}

static bool encode_fragments(const struct text_tokenizer *t, struct text_work *w, const char *bytes,
                             const struct text_fragments *fragments)
{
    bool after_special = true; /* SentencePiece puts a space before the text that follows */
    for (size_t i = 0; i < fragments->count; i++) {
        const struct text_fragment *f = &fragments->item[i];
        const char *text = bytes + f->start;
        bool ok;
        if (f->id >= 0) {
            ok = text_ids_add(w->out, f->id, w->err);
        } else if (t->model == TEXT_BPE) {
            ok = text_bpe_encode(t, w, text, f->size);
        } else if (t->model == TEXT_SPM) {
            ok = text_spm_encode(t, w, text, f->size, t->add_space_prefix && after_special);
        } else {
            ok = text_wordpiece_encode(t, w, text, f->size);
        }
        if (!ok) return false;
        after_special = f->id >= 0;
    }
    return true;
}

/* Puts BOS (CLS) before the ids from `first` on, unless they begin with it, and EOS (SEP) after. */
static bool add_special(const struct text_tokenizer *t, size_t first, struct text_ids *out,
                        struct base_error *err)
{
    bool wordpiece = t->model == TEXT_WORDPIECE;
    int32_t last = wordpiece ? t->sep : t->add_eos ? t->eos : -1;
    bool has_bos = out->count > first && out->id[first] == t->bos;
    if (text_adds_bos(t) && !has_bos) {
        if (!text_ids_add(out, t->bos, err)) return false;
        memmove(out->id + first + 1, out->id + first, (out->count - 1 - first) * sizeof *out->id);
        out->id[first] = t->bos;
    }
    return last < 0 || text_ids_add(out, last, err);
}

bool text_encode(const struct text_tokenizer *t, const char *bytes, size_t size, unsigned flags,
                 struct text_ids *out, struct base_error *err)
{
    return text_encode_framed(t, bytes, NULL, size, flags, out, err);
}

bool text_encode_framed(const struct text_tokenizer *t, const char *bytes, const char *own,
                        size_t size, unsigned flags, struct text_ids *out, struct base_error *err)
{
    struct text_fragments fragments = {0};
    struct text_work w = {.out = out, .err = err};
    size_t first = out->count;
    if (size > INT_MAX / 4) /* spaces may triple */
        return base_fail(err, BASE_TOO_LONG, "a text of %zu bytes is longer than %d", size,
                         INT_MAX / 4);
    bool ok = text_partition(t, bytes, own, size, flags & TEXT_PARSE_SPECIAL, &fragments, err) &&
              encode_fragments(t, &w, bytes, &fragments) &&
              (!(flags & TEXT_ADD_SPECIAL) || add_special(t, first, out, err));
    text_work_free(&w);
    text_fragments_free(&fragments);
    return ok;
}

/* ---- Questions ---- */

const char *text_tokenizer_model(const struct text_tokenizer *t)
{
    return t->model_name;
}

const char *text_tokenizer_pre(const struct text_tokenizer *t)
{
    return t->pre ? t->pre->name : "";
}

static bool is_token(const struct text_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->n_tokens;
}

uint32_t text_vocab_size(const struct text_tokenizer *t)
{
    return t->n_tokens;
}

enum text_token_kind text_token_kind(const struct text_tokenizer *t, int32_t id)
{
    return is_token(t, id) ? t->kind[id] : TEXT_TOKEN_UNUSED;
}

struct gguf_str text_token_raw(const struct text_tokenizer *t, int32_t id)
{
    return is_token(t, id) ? text_token(t, (uint32_t)id) : (struct gguf_str){"", 0};
}

bool text_token_is_end(const struct text_tokenizer *t, int32_t id)
{
    return is_token(t, id) && t->is_end[id];
}

int32_t text_token_bos(const struct text_tokenizer *t)
{
    return t->bos;
}

int32_t text_token_eos(const struct text_tokenizer *t)
{
    return t->eos;
}

int32_t text_token_eot(const struct text_tokenizer *t)
{
    return t->eot;
}

/* BERT's CLS and SEP come whatever the file says, as in the reference. */
bool text_adds_bos(const struct text_tokenizer *t)
{
    return t->bos >= 0 && (t->add_bos || t->model == TEXT_WORDPIECE);
}

bool text_adds_eos(const struct text_tokenizer *t)
{
    return t->model == TEXT_WORDPIECE ? t->sep >= 0 : t->add_eos && t->eos >= 0;
}
