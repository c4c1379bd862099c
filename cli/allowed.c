/* cli/allowed.c: tokens under a constraint. See cli/allowed.h. */
#include "cli/allowed.h"
#include <stdlib.h>
#include <string.h>

enum {
    CACHE_BYTES = 64 << 20,
    MAX_ENDING = 1 << 14, /* bytes of an ending: longer ones are not looked for */
    FAR = MAX_ENDING * 2, /* tokens left: no ending can be missed yet */
    TRIES = 16            /* tokens that are drawn before the ending is written out */
};

struct cli_allowed {
    const struct constraint *constraint;
    const struct text_tokenizer *tokenizer;
    uint32_t n_vocab, words;
    struct constrain_token_trie *vocab;
    struct constrain_masker *masker;
    struct constrain_retokenizer *splitter;
    struct constrain_state *state;
    struct constrain_finisher *finisher;
    bool bytewise; /* ends are made of bytes that are tokens: n bytes take at most n of them */
    bool hopeless; /* the text cannot be completed in time: it goes on as it likes */
    uint64_t sure; /* tokens in which the text is known to have an end; UINT64_MAX: not known */
    struct base_buffer ending; /* the bytes that would complete the text */
    int32_t *plan;             /* [MAX_ENDING] tokens of the ending that is being written */
    size_t n_plan, plan_at;
    uint64_t *mask; /* [words] of the token that is being chosen */
    int32_t *end;   /* end-of-text tokens; none when they may not be chosen */
    uint32_t n_end;
    bool at_start; /* the tokenizer drops a space before the first token */
    struct base_buffer bytes;
};

/* -- opening -- */

/* End-of-text tokens and whatever has no text of its own stay out. */
static void token_bytes(void *context, int32_t id, struct base_buffer *out)
{
    const struct text_tokenizer *t = context;
    if (!text_token_is_end(t, id)) text_token_bytes(t, id, false, out);
}

/* As the text's first token. */
static void first_token_bytes(void *context, int32_t id, struct base_buffer *out)
{
    struct text_decoder d;
    text_decoder_init(&d, context, false, false);
    size_t from = out->size;
    token_bytes(context, id, out);
    if (out->failed || !d.at_start || out->size == from || out->data[from] != ' ' ||
        text_token_kind(context, id) == TEXT_TOKEN_USER)
        return;
    memmove(out->data + from, out->data + from + 1, out->size - from - 1);
    out->size--;
}

static bool find_ends(struct cli_allowed *a, struct base_error *err)
{
    a->end = calloc((size_t)a->n_vocab + 1, sizeof *a->end);
    if (!a->end) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a constraint");
    for (uint32_t id = 0; id < a->n_vocab; id++)
        if (text_token_is_end(a->tokenizer, (int32_t)id)) a->end[a->n_end++] = (int32_t)id;
    return true;
}

/* Ends of single-byte tokens are the easy ones: their bytes count their tokens. Where a vocabulary
 * has too few of those, or the constraint asks for others, ends are made of any bytes. */
static bool open_finisher(struct cli_allowed *a, struct base_error *err)
{
    bool usable[256];
    uint64_t rest = UINT64_MAX;
    a->bytewise = true;
    for (int b = 0; b < 256; b++) {
        const char byte = (char)b;
        int32_t id;
        size_t count;
        if (!constrain_retokenize(a->splitter, &byte, 1, &id, &count, err)) return false;
        usable[b] = count == 1;
        if (b >= ' ' && b < 0x7f && !usable[b]) a->bytewise = false;
    }
    struct constrain_state *s = a->bytewise ? constrain_state_new(a->constraint, err) : NULL;
    if (a->bytewise && !s) return false;
    if (s) a->finisher = constrain_finisher_new(a->constraint, usable, err);
    const bool ok =
        !s || (a->finisher && constrain_finisher_after(a->finisher, s, "", 0, &rest, err));
    constrain_state_free(s);
    if (!ok || rest != UINT64_MAX) return ok;
    a->bytewise = false;
    constrain_finisher_free(a->finisher);
    a->finisher = constrain_finisher_new(a->constraint, NULL, err);
    return a->finisher != NULL;
}

struct cli_allowed *cli_allowed_open(const struct constraint *constraint,
                                     const struct cli_model *model, bool ends,
                                     struct base_error *err)
{
    struct cli_allowed *a = calloc(1, sizeof *a);
    if (!a) goto no_memory;
    a->constraint = constraint;
    a->tokenizer = model->tokenizer;
    a->n_vocab = model_facts(model->model)->n_vocab;
    a->words = (a->n_vocab + 63) / 64;
    a->mask = calloc((size_t)a->words + 1, sizeof *a->mask);
    a->plan = calloc(MAX_ENDING, sizeof *a->plan);
    if (!a->mask || !a->plan) goto no_memory;
    if (ends && !find_ends(a, err)) goto fail;
    a->vocab = constrain_token_trie_new(a->n_vocab, token_bytes, model->tokenizer, err);
    if (!a->vocab) goto fail;
    a->masker = constrain_masker_new(constraint, a->vocab, CACHE_BYTES, err);
    a->splitter = a->masker ? constrain_retokenizer_new(a->vocab, err) : NULL;
    if (a->splitter && open_finisher(a, err)) return a;
    goto fail;
no_memory:
    base_fail(err, BASE_NO_MEMORY, "not enough memory for a constraint");
fail:
    cli_allowed_close(a);
    return NULL;
}

void cli_allowed_close(struct cli_allowed *a)
{
    if (!a) return;
    constrain_state_free(a->state);
    constrain_finisher_free(a->finisher);
    constrain_retokenizer_free(a->splitter);
    constrain_masker_free(a->masker);
    constrain_token_trie_free(a->vocab);
    base_buffer_free(&a->bytes);
    base_buffer_free(&a->ending);
    free(a->mask), free(a->end), free(a->plan);
    free(a);
}

bool cli_allowed_begin(struct cli_allowed *a, bool continues, struct base_error *err)
{
    struct text_decoder d;
    text_decoder_init(&d, a->tokenizer, continues, false);
    a->at_start = d.at_start;
    a->hopeless = false;
    a->sure = UINT64_MAX;
    a->n_plan = a->plan_at = 0;
    constrain_state_free(a->state);
    a->state = constrain_state_new(a->constraint, err);
    return a->state != NULL;
}

/* -- choosing -- */

/* The first token of a text without a prompt loses its space, which makes it another token to the
 * constraint: such a text pays for a vocabulary of its own. */
static bool make_first_mask(struct cli_allowed *a, struct base_error *err)
{
    struct constrain_token_trie *v =
        constrain_token_trie_new(a->n_vocab, first_token_bytes, (void *)a->tokenizer, err);
    struct constrain_masker *m = v ? constrain_masker_new(a->constraint, v, 1 << 20, err) : NULL;
    const uint64_t *mask = m ? constrain_masker_mask(m, a->state, err) : NULL;
    if (mask) memcpy(a->mask, mask, a->words * sizeof *mask);
    /* A lone space vanishes: it is how a text that begins with a space can begin. */
    for (uint32_t id = 0; mask && id < a->n_vocab; id++) {
        base_buffer_clear(&a->bytes);
        token_bytes((void *)a->tokenizer, (int32_t)id, &a->bytes);
        if (a->bytes.size == 1 && a->bytes.data[0] == ' ' &&
            text_token_kind(a->tokenizer, (int32_t)id) != TEXT_TOKEN_USER)
            a->mask[id >> 6] |= 1ull << (id & 63);
    }
    constrain_masker_free(m);
    constrain_token_trie_free(v);
    return mask != NULL;
}

/* *any: some token may come next; end-of-text tokens count. */
static bool make_mask(struct cli_allowed *a, bool *any, struct base_error *err)
{
    if (a->at_start) {
        if (!make_first_mask(a, err)) return false;
    } else {
        const uint64_t *mask = constrain_masker_mask(a->masker, a->state, err);
        if (!mask) return false;
        memcpy(a->mask, mask, a->words * sizeof *mask);
    }
    if (constrain_state_may_end(a->state))
        for (uint32_t i = 0; i < a->n_end; i++)
            a->mask[(uint32_t)a->end[i] >> 6] |= 1ull << (a->end[i] & 63);
    *any = false;
    for (uint32_t w = 0; w < a->words && !*any; w++) *any = a->mask[w] != 0;
    return true;
}

/* The token's bytes at this place of the text into a->bytes. */
static bool read_token(struct cli_allowed *a, int32_t id, struct base_error *err)
{
    base_buffer_clear(&a->bytes);
    base_buffer_add(&a->bytes, "", 0);
    if (a->at_start)
        first_token_bytes((void *)a->tokenizer, id, &a->bytes);
    else
        token_bytes((void *)a->tokenizer, id, &a->bytes);
    return !a->bytes.failed || base_fail(err, BASE_NO_MEMORY, "not enough memory");
}

static bool take(struct cli_allowed *a, int32_t id, struct base_error *err)
{
    size_t used;
    if (!read_token(a, id, err)) return false;
    if (text_token_is_end(a->tokenizer, id)) return true;
    a->at_start = false;
    return constrain_state_feed(a->state, a->bytes.data, a->bytes.size, &used, err);
}

/* -- coming to an end in time -- */

/* Plans the shortest ending that is known after bytes[0..size); *fits: it takes at most `left`
 * tokens. */
static bool plan_ending(struct cli_allowed *a, const char *bytes, size_t size, uint64_t left,
                        bool *fits, struct base_error *err)
{
    base_buffer_clear(&a->ending);
    a->n_plan = a->plan_at = 0;
    if (!constrain_finisher_text(a->finisher, a->state, bytes, size, MAX_ENDING - 1, &a->ending,
                                 fits, err))
        return false;
    if (*fits && a->ending.size >= MAX_ENDING) *fits = false;
    if (*fits && a->ending.size &&
        !constrain_retokenize(a->splitter, a->ending.data, a->ending.size, a->plan, &a->n_plan,
                              err))
        return false;
    *fits = *fits && a->n_plan <= left && (a->n_plan || a->ending.size == 0);
    return true;
}

/* Whether the text can be completed by `left` tokens after bytes[0..size). */
static bool can_end(struct cli_allowed *a, const char *bytes, size_t size, uint64_t left,
                    bool *fits, struct base_error *err)
{
    uint64_t rest;
    if (!constrain_finisher_after(a->finisher, a->state, bytes, size, &rest, err)) return false;
    /* Where bytes are no tokens, a generous guess stands for the count until it gets close. */
    *fits = rest != UINT64_MAX && (a->bytewise ? rest <= left : 4 * rest + TRIES <= left);
    if (*fits) return true;
    bool ok = plan_ending(a, bytes, size, left, fits, err);
    a->n_plan = 0;
    return ok;
}

/* A token after which the text can be completed in time. *id -1: none was drawn. */
static bool draw_in_time(struct cli_allowed *a, struct sampler *sampler, const float *logits,
                         uint64_t left, int32_t *id, struct base_error *err)
{
    bool fits = false, any = true;
    for (int i = 0; i < TRIES && any; i++) {
        sample_restrict(sampler, a->mask);
        *id = sample_next(sampler, logits, err);
        if (*id < 0 || !read_token(a, *id, err) ||
            !can_end(a, a->bytes.data, a->bytes.size, left - 1, &fits, err))
            return false;
        if (fits) {
            a->sure = left - 1;
            return true;
        }
        a->mask[(uint32_t)*id >> 6] &= ~(1ull << (*id & 63));
        any = false;
        for (uint32_t w = 0; w < a->words && !any; w++) any = a->mask[w] != 0;
    }
    *id = -1;
    return true;
}

/* The first token of the ending, which is written out from here on. */
static bool begin_ending(struct cli_allowed *a, uint64_t left, int32_t *id, struct base_error *err)
{
    bool fits = false;
    if (!a->at_start && !plan_ending(a, "", 0, left, &fits, err)) return false;
    if (fits && a->n_plan) *id = a->plan[a->plan_at++];
    return true;
}

bool cli_allowed_pick(struct cli_allowed *a, struct sampler *sampler, const float *logits,
                      uint64_t left, int32_t *id, struct base_error *err)
{
    bool any, fits = true;
    *id = -1;
    if (a->plan_at < a->n_plan) {
        *id = a->plan[a->plan_at++];
        return take(a, *id, err);
    }
    if (!make_mask(a, &any, err)) return false;
    if (!any && constrain_state_may_end(a->state)) return true;
    if (!any)
        return base_fail(err, BASE_FAILED,
                         "no token of this model can continue the text as the constraint demands");
    if (left < FAR && !a->hopeless) {
        if (a->sure != left && !can_end(a, "", 0, left, &fits, err)) return false;
        a->hopeless = !fits;
        if (fits && !draw_in_time(a, sampler, logits, left, id, err)) return false;
        if (fits && *id < 0 && !begin_ending(a, left, id, err)) return false;
        if (*id >= 0) return take(a, *id, err);
        if (!make_mask(a, &any, err)) return false; /* tries have cut it */
    }
    sample_restrict(sampler, a->mask);
    *id = sample_next(sampler, logits, err);
    return *id >= 0 && take(a, *id, err);
}

bool cli_allowed_is_over(const struct cli_allowed *a)
{
    return constrain_state_may_end(a->state) && !constrain_state_may_continue(a->state);
}

bool cli_allowed_is_complete(const struct cli_allowed *a)
{
    return constrain_state_may_end(a->state);
}

bool cli_allowed_accepts(const struct cli_allowed *a, const char *text, size_t size, bool *accepted,
                         struct base_error *err)
{
    struct constrain_state *s = constrain_state_new(a->constraint, err);
    size_t used = 0;
    const bool ok = s && constrain_state_feed(s, text, size, &used, err);
    *accepted = ok && used == size && constrain_state_may_end(s);
    constrain_state_free(s);
    return ok;
}
