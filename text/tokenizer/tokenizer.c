/* text/tokenizer/tokenizer.c: the table of algorithms; opens a vocabulary and encodes texts. See
 * text/tokenizer/tokenizer.h. */
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/vocab.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening ---- */

static const struct text_algorithm *const algorithms[] = {
    &text_bpe,       &text_bpe_gemma4, &text_bpe_whitespace, &text_bpe_hybriddna, &text_spm,
    &text_wordpiece, &text_unigram,    &text_rwkv,           &text_plamo2,
};

static const struct text_algorithm *find_algorithm(const struct gguf_file *file,
                                                   struct base_error *err)
{
    static const char key[] = "tokenizer.ggml.model";
    struct gguf_str name = {NULL, 0};
    if (!gguf_get_str(file, key, &name, err)) return NULL;
    if (!name.data)
        return base_null(base_fail_at(err, BASE_MODEL, key, -1, "the file has no tokenizer"));
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++)
        if (gguf_str_is(name, algorithms[i]->name)) return algorithms[i];
    return base_null(base_fail_at(err, BASE_MODEL, key, -1,
                                  "the tokenizer \"%.*s\" is not supported",
                                  (int)(name.size < 64 ? name.size : 64), name.data));
}

struct text_tokenizer *text_tokenizer_open(const struct gguf_file *file, struct base_error *err)
{
    const struct text_algorithm *algorithm = find_algorithm(file, err);
    struct text_tokenizer *t = NULL;
    if (!algorithm) goto fail;
    t = calloc(1, sizeof *t);
    if (!t) {
        base_fail(err, BASE_NO_MEMORY, "no memory for the tokenizer");
        goto fail;
    }
    t->file = file;
    t->algorithm = algorithm;
    t->defaults = algorithm->defaults;
    if (!text_vocab_load(t, err) || !algorithm->open(t, err) || !text_load_special_ids(t, err) ||
        !text_specials_init(t, err))
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
    if (t->algorithm->close && t->state) t->algorithm->close(t->state);
    text_table_free(&t->by_text);
    text_specials_free(&t->specials);
    free(t->kind);
    free(t->is_end);
    free(t);
}

/* ---- Encoding ---- */

void text_work_free(struct text_work *w)
{
    text_merger_free(&w->merger);
    text_cuts_free(&w->cuts);
    text_piece_cache_free(&w->pieces);
    base_buffer_free(&w->text);
    base_buffer_free(&w->word);
}

static bool encode_fragments(const struct text_tokenizer *t, struct text_work *w, const char *bytes,
                             const struct text_fragments *fragments)
{
    /* SentencePiece adds a space before the text after a special token. */
    bool after_special = !(w->flags & TEXT_CONTINUES);
    for (size_t i = 0; i < fragments->count; i++) {
        const struct text_fragment *f = &fragments->item[i];
        const char *text = bytes + f->start;
        w->source = text;
        w->source_size = f->size;
        w->source_place = f->start;
        w->escaped = false;
        const bool ok = f->id >= 0 ? text_ids_add(w->out, f->id, w->err)
                                   : t->algorithm->encode(t, w, text, f->size, after_special);
        if (!ok) return false;
        after_special = f->id >= 0;
    }
    return true;
}

/* Inserts BOS (CLS) before the ids from `first` on, unless they begin with it, and appends EOS
 * (SEP). */
static bool add_ends(const struct text_tokenizer *t, size_t first, struct text_ids *out,
                     struct base_error *err)
{
    int32_t before, after;
    t->algorithm->ends(t, &before, &after);
    if (before >= 0 && !(out->count > first && out->id[first] == before)) {
        if (!text_ids_add(out, before, err)) return false;
        memmove(out->id + first + 1, out->id + first, (out->count - 1 - first) * sizeof *out->id);
        out->id[first] = before;
    }
    return after < 0 || text_ids_add(out, after, err);
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
    struct text_work w = {.flags = flags, .out = out, .err = err};
    size_t first = out->count;
    if (size > INT_MAX / 4) /* a space may become three bytes */
        return base_fail(err, BASE_TOO_LONG, "a text of %zu bytes is longer than %d", size,
                         INT_MAX / 4);
    bool ok = text_partition(t, bytes, own, size, flags & TEXT_PARSE_SPECIAL, &fragments, err) &&
              encode_fragments(t, &w, bytes, &fragments) &&
              (!(flags & TEXT_ADD_SPECIAL) || add_ends(t, first, out, err));
    text_work_free(&w);
    text_fragments_free(&fragments);
    return ok;
}

/* ---- Queries ---- */

const char *text_tokenizer_model(const struct text_tokenizer *t)
{
    return t->algorithm->name;
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

int32_t text_token_fill(const struct text_tokenizer *t, enum text_fill part)
{
    return t->fill[part];
}

bool text_adds_bos(const struct text_tokenizer *t)
{
    int32_t before, after;
    t->algorithm->ends(t, &before, &after);
    return before >= 0;
}

bool text_adds_eos(const struct text_tokenizer *t)
{
    int32_t before, after;
    t->algorithm->ends(t, &before, &after);
    return after >= 0;
}
