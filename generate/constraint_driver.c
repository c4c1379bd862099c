/* generate/constraint_driver.c: tokens under a constraint. See generate/constraint_driver.h. */
#include "generate/constraint_driver.h"
#include <stdlib.h>
#include <string.h>

enum {
    CACHE_BYTES = 64 << 20,
    MAX_COMPLETION = 1 << 14, /* bytes; the largest completion that is searched for */
    MAX_ONLY = 1 << 10,       /* bytes; the largest determined text that is searched for */
    FAR = MAX_COMPLETION * 2, /* with this many tokens left, any completion fits */
    TOKEN_BYTES = 1 << 12,    /* bytes of one token that are allocated in advance */
    TRIES = 16                /* tokens that are drawn before the completion is used */
};

/* The context of functions that return the bytes of tokens. */
struct token_texts {
    const struct text_tokenizer *tokenizer;
    const char *marks; /* control tokens have text if it occurs here; NULL: none has */
};

struct generate_driver {
    const struct constraint *constraint;
    const struct text_tokenizer *tokenizer;
    struct token_texts texts;
    struct constrain_names names; /* of the tokens that a grammar names */
    int32_t *named;               /* ids of the names */
    uint64_t *any;                /* [words]: mask of the tokens that negated names denote */
    uint32_t n_vocab, words;
    struct constrain_token_trie *own_trie; /* NULL: the caller's trie is used */
    struct constrain_masker *masker;
    struct constrain_retokenizer *retokenizer;
    struct constrain_finisher *finisher;
    struct constrain_state *state; /* state of the generated text */
    struct constrain_state *shown; /* state of the shown text */
    bool shown_refused;
    bool bytewise; /* completions consist of single-byte tokens: n bytes are at most n tokens */
    bool unsatisfiable;   /* the text cannot be completed in time: masks are unchanged */
    uint64_t completable; /* number of tokens that complete the text; UINT64_MAX: unknown */
    struct base_buffer completion; /* the bytes that would complete the text */
    int32_t *plan;                 /* [MAX_COMPLETION] tokens of the completion in use */
    size_t n_plan, plan_at;
    size_t n_only;  /* number of determined bytes, up to a place with a choice */
    uint64_t *mask; /* [words]: for the next token */
    int32_t *end;   /* end-of-text tokens; empty if they may not be chosen */
    uint32_t n_end;
    bool at_start; /* the tokenizer drops a space before the first token */
    struct base_buffer bytes;
};

/* -- opening -- */

static bool is_mark(const struct token_texts *s, int32_t id)
{
    if (!s->marks || text_token_kind(s->tokenizer, id) != TEXT_TOKEN_CONTROL) return false;
    const struct gguf_str raw = text_token_raw(s->tokenizer, id);
    return raw.size && memmem(s->marks, strlen(s->marks), raw.data, raw.size);
}

/* Appends the bytes of a token; none for end-of-text tokens and tokens without text. */
static void token_bytes(void *context, int32_t id, struct base_buffer *out)
{
    const struct token_texts *s = context;
    if (!text_token_is_end(s->tokenizer, id))
        text_token_bytes(s->tokenizer, id, is_mark(s, id), out);
}

/* Appends the bytes of a token at the beginning of a text. */
static void first_token_bytes(void *context, int32_t id, struct base_buffer *out)
{
    const struct token_texts *s = context;
    struct text_decoder d;
    text_decoder_init(&d, s->tokenizer, false, false);
    size_t from = out->size;
    token_bytes(context, id, out);
    if (out->failed || !d.at_start || out->size == from || out->data[from] != ' ' ||
        text_token_kind(s->tokenizer, id) == TEXT_TOKEN_USER)
        return;
    memmove(out->data + from, out->data + from + 1, out->size - from - 1);
    out->size--;
}

static bool find_ends(struct generate_driver *d, struct base_error *err)
{
    d->end = calloc((size_t)d->n_vocab + 1, sizeof *d->end);
    if (!d->end) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a constraint");
    for (uint32_t id = 0; id < d->n_vocab; id++)
        if (text_token_is_end(d->tokenizer, (int32_t)id)) d->end[d->n_end++] = (int32_t)id;
    return true;
}

/* Finds the token that a grammar names. */
static bool find_token(const struct generate_driver *d, const struct constrain_token *name,
                       int32_t *id, struct base_error *err)
{
    TEXT_LOCAL_IDS ids = TEXT_IDS_INIT;
    const bool is_id = name->text[1] == '[';
    const char *wrong = NULL;
    *id = -1;
    if (is_id)
        *id = (int32_t)strtol(name->text + 2, NULL, 10);
    else if (!text_encode(d->tokenizer, name->text, strlen(name->text),
                          TEXT_PARSE_SPECIAL | TEXT_CONTINUES, &ids, err))
        return text_ids_free(&ids), false;
    else if (ids.count == 1 && text_token_kind(d->tokenizer, ids.id[0]) != TEXT_TOKEN_UNKNOWN)
        *id = ids.id[0];
    if (*id < 0 || (uint32_t)*id >= text_vocab_size(d->tokenizer))
        wrong = "is no token of this model";
    else if (text_token_is_end(d->tokenizer, *id))
        wrong = "ends a text of this model: leave it out, the end of `root` allows it";
    return !wrong || base_fail(err, BASE_USAGE, "grammar, line %u, column %u: %.100s %s",
                               name->line, name->column, name->text, wrong);
}

/* Finds the tokens that names in a grammar denote. A negated name denotes any other token except
 * those that end a text. */
static bool find_names(struct generate_driver *d, struct base_error *err)
{
    const uint32_t n = constraint_token_count(d->constraint), n_own = text_vocab_size(d->tokenizer);
    if (n == 0) return true;
    d->named = calloc(n, sizeof *d->named);
    d->any = calloc((size_t)d->words + 1, sizeof *d->any);
    if (!d->named || !d->any)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for a constraint");
    d->names = (struct constrain_names){d->named, d->any, {-1, -1}};
    for (uint32_t i = 0; i < n; i++) {
        const struct constrain_token *name = constraint_token(d->constraint, i);
        if (name && !find_token(d, name, &d->named[i], err)) return false;
    }
    for (uint32_t id = 0, k = 0; id < d->n_vocab && id < n_own; id++) {
        if (text_token_is_end(d->tokenizer, (int32_t)id)) continue;
        d->any[id >> 6] |= 1ull << (id & 63);
        if (k < 2 && text_token_kind(d->tokenizer, (int32_t)id) == TEXT_TOKEN_NORMAL)
            d->names.two[k++] = (int32_t)id;
    }
    return true;
}

static struct constrain_state *new_state(const struct generate_driver *d, struct base_error *err)
{
    struct constrain_state *s = constrain_state_new(d->constraint, err);
    if (s && d->named) constrain_state_name(s, &d->names);
    return s;
}

/* Prefers completions of single-byte tokens, because their size bounds the number of tokens. If a
 * vocabulary has too few of these, or the constraint needs others, completions may have any
 * bytes. */
static bool open_finisher(struct generate_driver *d, struct base_error *err)
{
    bool usable[256];
    uint64_t rest = UINT64_MAX;
    d->bytewise = true;
    for (int b = 0; b < 256; b++) {
        const char byte = (char)b;
        int32_t id;
        size_t count;
        if (!constrain_retokenize(d->retokenizer, &byte, 1, &id, &count, err)) return false;
        usable[b] = count == 1;
        if (b >= ' ' && b < 0x7f && !usable[b]) d->bytewise = false;
    }
    struct constrain_state *s = d->bytewise ? constrain_state_new(d->constraint, err) : NULL;
    if (d->bytewise && !s) return false;
    if (s) d->finisher = constrain_finisher_new(d->constraint, usable, err);
    const bool ok = !s || (d->finisher &&
                           constrain_finisher_after(d->finisher, s, CONSTRAIN_NOTHING, &rest, err));
    constrain_state_free(s);
    if (!ok || rest != UINT64_MAX) return ok;
    d->bytewise = false;
    constrain_finisher_free(d->finisher);
    d->finisher = constrain_finisher_new(d->constraint, NULL, err);
    return d->finisher != NULL;
}

struct constrain_token_trie *generate_trie_new(const struct text_tokenizer *tokenizer,
                                               uint32_t n_vocab, struct base_error *err)
{
    struct token_texts plain = {.tokenizer = tokenizer};
    return constrain_token_trie_new(n_vocab, token_bytes, &plain, err);
}

struct generate_driver *generate_driver_new(const struct constraint *constraint,
                                            const struct text_tokenizer *tokenizer,
                                            const struct constrain_token_trie *trie,
                                            uint32_t n_vocab, const char *marks, bool ends,
                                            struct base_error *err)
{
    struct generate_driver *d = calloc(1, sizeof *d);
    if (!d) goto no_memory;
    d->constraint = constraint;
    d->tokenizer = tokenizer;
    d->texts = (struct token_texts){tokenizer, marks};
    d->n_vocab = n_vocab;
    d->words = (n_vocab + 63) / 64;
    d->mask = calloc((size_t)d->words + 1, sizeof *d->mask);
    d->plan = calloc(MAX_COMPLETION, sizeof *d->plan);
    base_buffer_reserve(&d->bytes, TOKEN_BYTES);
    base_buffer_reserve(&d->completion, MAX_COMPLETION);
    if (!d->mask || !d->plan || d->bytes.failed || d->completion.failed) goto no_memory;
    if ((ends && !find_ends(d, err)) || !find_names(d, err)) goto fail;
    if (!trie || marks)
        trie = d->own_trie = constrain_token_trie_new(n_vocab, token_bytes, &d->texts, err);
    if (!trie) goto fail;
    d->masker = constrain_masker_new(constraint, trie, CACHE_BYTES, err);
    d->retokenizer = d->masker ? constrain_retokenizer_new(trie, err) : NULL;
    if (d->retokenizer && open_finisher(d, err)) return d;
    goto fail;
no_memory:
    base_fail(err, BASE_NO_MEMORY, "not enough memory for a constraint");
fail:
    generate_driver_free(d);
    return NULL;
}

void generate_driver_free(struct generate_driver *d)
{
    if (!d) return;
    constrain_state_free(d->state);
    constrain_state_free(d->shown);
    constrain_finisher_free(d->finisher);
    constrain_retokenizer_free(d->retokenizer);
    constrain_masker_free(d->masker);
    constrain_token_trie_free(d->own_trie);
    base_buffer_free(&d->bytes);
    base_buffer_free(&d->completion);
    free(d->mask), free(d->end), free(d->plan), free(d->named), free(d->any);
    free(d);
}

bool generate_driver_begin(struct generate_driver *d, bool continues, struct base_error *err)
{
    struct text_decoder decoder;
    text_decoder_init(&decoder, d->tokenizer, continues, false);
    d->at_start = decoder.at_start;
    d->unsatisfiable = d->shown_refused = false;
    d->completable = UINT64_MAX;
    d->n_plan = d->plan_at = d->n_only = 0;
    constrain_state_free(d->state);
    constrain_state_free(d->shown);
    d->state = new_state(d, err);
    d->shown = d->state ? constrain_state_new(d->constraint, err) : NULL;
    return d->shown != NULL;
}

bool generate_driver_read(struct generate_driver *d, const char *bytes, size_t size,
                          struct base_error *err)
{
    size_t used = 0;
    d->at_start = false;
    if (!constrain_state_feed(d->state, bytes, size, &used, err)) return false;
    if (used < size)
        return base_fail(err, BASE_USAGE,
                         "the constraint does not allow the beginning of the answer from byte %zu "
                         "on",
                         used);
    return generate_driver_show(d, bytes, size, err);
}

/* -- choosing -- */

/* Makes the mask of the first token of a text without a prompt. It loses its leading space, so the
 * constraint reads other bytes, which need a token trie of their own. */
static bool make_first_mask(struct generate_driver *d, struct base_error *err)
{
    struct constrain_token_trie *v =
        constrain_token_trie_new(d->n_vocab, first_token_bytes, &d->texts, err);
    struct constrain_masker *m = v ? constrain_masker_new(d->constraint, v, 1 << 20, err) : NULL;
    const uint64_t *mask = m ? constrain_masker_mask(m, d->state, err) : NULL;
    if (mask) memcpy(d->mask, mask, d->words * sizeof *mask);
    /* A token that is one space has no text here, so it may precede any text that begins with a
     * space. */
    for (uint32_t id = 0; mask && id < d->n_vocab; id++) {
        base_buffer_clear(&d->bytes);
        token_bytes(&d->texts, (int32_t)id, &d->bytes);
        if (d->bytes.size == 1 && d->bytes.data[0] == ' ' &&
            text_token_kind(d->tokenizer, (int32_t)id) != TEXT_TOKEN_USER)
            d->mask[id >> 6] |= 1ull << (id & 63);
    }
    constrain_masker_free(m);
    constrain_token_trie_free(v);
    return mask != NULL;
}

static bool has_any(const struct generate_driver *d)
{
    for (uint32_t w = 0; w < d->words; w++)
        if (d->mask[w]) return true;
    return false;
}

/* Makes the mask of the next token. *any: some token is allowed; end-of-text tokens and `extra`
 * count. */
static bool make_mask(struct generate_driver *d, int32_t extra, bool *any, struct base_error *err)
{
    if (d->at_start) {
        if (!make_first_mask(d, err)) return false;
    } else {
        const uint64_t *mask = constrain_masker_mask(d->masker, d->state, err);
        if (!mask) return false;
        memcpy(d->mask, mask, d->words * sizeof *mask);
    }
    if (constrain_state_may_end(d->state))
        for (uint32_t i = 0; i < d->n_end; i++)
            d->mask[(uint32_t)d->end[i] >> 6] |= 1ull << (d->end[i] & 63);
    if (extra >= 0) d->mask[(uint32_t)extra >> 6] |= 1ull << (extra & 63);
    *any = has_any(d);
    return true;
}

/* Sets d->bytes to the token's bytes at this place of the text, and *token to the token. */
static bool read_token(struct generate_driver *d, int32_t id, struct constrain_next *token,
                       struct base_error *err)
{
    base_buffer_clear(&d->bytes);
    base_buffer_add(&d->bytes, "", 0);
    if (d->at_start)
        first_token_bytes(&d->texts, id, &d->bytes);
    else
        token_bytes(&d->texts, id, &d->bytes);
    *token = (struct constrain_next){id, d->bytes.data, d->bytes.size};
    return !d->bytes.failed || base_fail(err, BASE_NO_MEMORY, "not enough memory");
}

bool generate_driver_follow(struct generate_driver *d, int32_t id, bool *accepted,
                            struct base_error *err)
{
    struct constrain_next token;
    if (!read_token(d, id, &token, err)) return false;
    d->at_start = false;
    return constrain_state_take(d->state, token, accepted, err);
}

static bool take(struct generate_driver *d, int32_t id, struct base_error *err)
{
    bool accepted;
    return text_token_is_end(d->tokenizer, id) || generate_driver_follow(d, id, &accepted, err);
}

/* -- completing a text in time -- */

/* Splits the completion into tokens; *possible false if tokens cannot form it. */
static bool split_completion(struct generate_driver *d, bool *possible, struct base_error *err)
{
    const char *at = d->completion.data, *const end = at + d->completion.size;
    while (*possible && at < end) {
        const char *named = d->named ? memchr(at, CONSTRAIN_TOKEN_BYTE, (size_t)(end - at)) : NULL;
        const size_t size = (size_t)((named ? named : end) - at);
        size_t n = 0;
        if (size && !constrain_retokenize(d->retokenizer, at, size, d->plan + d->n_plan, &n, err))
            return false;
        *possible = n > 0 || size == 0;
        d->n_plan += n;
        at += size;
        if (!named) continue;
        memcpy(&d->plan[d->n_plan++], at + 1, sizeof *d->plan);
        at += 1 + sizeof *d->plan;
    }
    return true;
}

/* Plans the shortest known completion after a token, or after CONSTRAIN_NOTHING. *fits: it has
 * at most `left` tokens. */
static bool plan_completion(struct generate_driver *d, struct constrain_next token, uint64_t left,
                            bool *fits, struct base_error *err)
{
    base_buffer_clear(&d->completion);
    d->n_plan = d->plan_at = 0;
    if (!constrain_finisher_text(d->finisher, d->state, token, MAX_COMPLETION - 1, &d->completion,
                                 fits, err))
        return false;
    if (*fits && d->completion.size >= MAX_COMPLETION) *fits = false;
    if (*fits && !split_completion(d, fits, err)) return false;
    *fits = *fits && d->n_plan <= left;
    return true;
}

/* Returns the number of tokens of a completion of `rest` bytes; an upper bound if bytes are not
 * tokens. */
static uint64_t count_tokens(const struct generate_driver *d, uint64_t rest)
{
    return d->bytewise || rest == UINT64_MAX ? rest : 4 * rest + TRIES;
}

/* Returns in *fits whether at most `left` tokens can complete the text after a token, or after
 * CONSTRAIN_NOTHING. */
static bool can_complete(struct generate_driver *d, struct constrain_next token, uint64_t left,
                         bool *fits, struct base_error *err)
{
    uint64_t rest;
    if (!constrain_finisher_after(d->finisher, d->state, token, &rest, err)) return false;
    rest = count_tokens(d, rest);
    *fits = rest != UINT64_MAX && rest <= left;
    if (*fits) return true;
    bool ok = plan_completion(d, token, left, fits, err);
    d->n_plan = 0;
    return ok;
}

/* Draws a token after which the text can be completed in time; *id -1 if there is none. */
static bool draw_in_time(struct generate_driver *d, struct sampler *sampler, const float *logits,
                         uint64_t left, int32_t extra, int32_t *id, struct base_error *err)
{
    for (int i = 0; i < TRIES && has_any(d); i++) {
        struct constrain_next token;
        bool fits = false;
        sample_restrict(sampler, d->mask);
        *id = sample_next(sampler, logits, err);
        if (*id < 0) return false;
        if (*id == extra) return true;
        if (!read_token(d, *id, &token, err) || !can_complete(d, token, left - 1, &fits, err))
            return false;
        if (fits) {
            d->completable = left - 1;
            return true;
        }
        d->mask[(uint32_t)*id >> 6] &= ~(1ull << (*id & 63));
    }
    *id = -1;
    return true;
}

/* Starts the planned completion; *id is its first token. */
static bool begin_completion(struct generate_driver *d, uint64_t left, int32_t *id,
                             struct base_error *err)
{
    bool fits = false;
    if (!d->at_start && !plan_completion(d, CONSTRAIN_NOTHING, left, &fits, err)) return false;
    if (fits && d->n_plan) *id = d->plan[d->plan_at++];
    return true;
}

/* Chooses a token within the limit; *id -1 if the text cannot be completed in time. */
static bool choose_in_time(struct generate_driver *d, struct sampler *sampler, const float *logits,
                           uint64_t left, int32_t extra, int32_t *id, struct base_error *err)
{
    bool fits = true, any;
    if (d->completable != left && !can_complete(d, CONSTRAIN_NOTHING, left, &fits, err))
        return false;
    d->unsatisfiable = !fits;
    if (fits && !draw_in_time(d, sampler, logits, left, extra, id, err)) return false;
    if (fits && *id < 0 && !begin_completion(d, left, id, err)) return false;
    return *id >= 0 || make_mask(d, extra, &any, err); /* drawing has removed tokens */
}

/* Plans the rest of a text that can continue in only one way up to its end: its bytes do not depend
 * on chosen tokens, so no logits are needed. If a choice comes first, nothing is planned, because
 * the choice depends on the tokens before it. */
static bool plan_only(struct generate_driver *d, uint64_t left, struct base_error *err)
{
    bool ends = false;
    if (d->n_only > d->bytes.size) {
        d->n_only -= d->bytes.size;
        return true;
    }
    base_buffer_clear(&d->completion);
    if (!constrain_state_only_text(d->state, MAX_ONLY, &d->completion, &ends, err)) return false;
    d->n_only = d->completion.size;
    if (!ends || d->n_only == 0) return true;
    d->plan_at = 0;
    if (!constrain_retokenize(d->retokenizer, d->completion.data, d->n_only, d->plan, &d->n_plan,
                              err))
        return false;
    if (d->n_plan > left) d->n_plan = 0;
    return true;
}

bool generate_driver_choose(struct generate_driver *d, struct sampler *sampler, const float *logits,
                            uint64_t left, int32_t extra, int32_t *id, struct base_error *err)
{
    bool any;
    *id = -1;
    if (generate_driver_has_plan(d)) {
        *id = d->plan[d->plan_at++];
        return take(d, *id, err);
    }
    if (!make_mask(d, extra, &any, err)) return false;
    if (!any && constrain_state_may_end(d->state)) return true;
    if (!any)
        return base_fail(err, BASE_FAILED,
                         "no token of this model can continue the text as the constraint demands");
    if (left < FAR && !d->unsatisfiable &&
        !choose_in_time(d, sampler, logits, left, extra, id, err))
        return false;
    if (*id < 0) {
        sample_restrict(sampler, d->mask);
        *id = sample_next(sampler, logits, err);
    }
    if (*id < 0) return false;
    if (*id == extra) return true;
    return take(d, *id, err) && (d->plan_at < d->n_plan || text_token_is_end(d->tokenizer, *id) ||
                                 plan_only(d, left - 1, err));
}

bool generate_driver_has_plan(const struct generate_driver *d)
{
    return d->plan_at < d->n_plan;
}

/* -- state of the text -- */

bool generate_driver_min_tokens(struct generate_driver *d, uint64_t *n, struct base_error *err)
{
    if (!constrain_finisher_after(d->finisher, d->state, CONSTRAIN_NOTHING, n, err)) return false;
    *n = count_tokens(d, *n);
    return true;
}

bool generate_driver_is_over(const struct generate_driver *d)
{
    return constrain_state_may_end(d->state) && !constrain_state_may_continue(d->state);
}

bool generate_driver_is_complete(const struct generate_driver *d)
{
    return constrain_state_may_end(d->state);
}

bool generate_driver_show(struct generate_driver *d, const char *bytes, size_t size,
                          struct base_error *err)
{
    size_t used = 0;
    if (d->shown_refused) return true;
    if (!constrain_state_feed(d->shown, bytes, size, &used, err)) return false;
    d->shown_refused = used < size;
    return true;
}

bool generate_driver_shown_complete(const struct generate_driver *d)
{
    return !d->shown_refused && constrain_state_may_end(d->shown);
}

bool generate_driver_tokenize(struct generate_driver *d, const char *bytes, size_t size,
                              int32_t *ids, size_t *n, struct base_error *err)
{
    return constrain_retokenize(d->retokenizer, bytes, size, ids, n, err);
}
