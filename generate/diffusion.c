/* generate/diffusion.c: see generate/diffusion.h. */
#include "generate/diffusion.h"
#include "base/elementary.h"
#include <math.h>
#include <stdlib.h>

struct candidate {
    size_t position;
    int32_t id;
    double confidence;
};

struct diffusion_writer {
    const struct generate_diffusion *d;
    struct model_session *session;
    const struct model_facts *facts;
    struct sampler *sampler;
    struct sample_random random;
    struct model_token *token;   /* [ids] */
    struct candidate *candidate; /* [n_candidates]: the masks of the block */
    size_t n_candidates, n_taken;
};

static double confidence_of(struct diffusion_writer *w, const float *logits, int32_t id)
{
    const enum cpu_level level = w->d->sample.level;
    struct sample_logprob best[2] = {{0, -INFINITY}, {0, -INFINITY}};
    double logprob;
    switch (w->d->confidence) {
    case GENERATE_BY_ENTROPY:
        return -sample_entropy(level, logits, w->facts->n_vocab);
    case GENERATE_BY_MARGIN:
        sample_logprobs(level, logits, w->facts->n_vocab, 2, best, -1, NULL);
        return base_exp(best[0].logprob) - base_exp(best[1].logprob);
    case GENERATE_BY_CHANCE:
        return sample_random_unit(&w->random);
    default:
        sample_logprobs(level, logits, w->facts->n_vocab, 0, NULL, id, &logprob);
        return logprob;
    }
}

/* The sink of a step: rows come in the order of the candidates. */
static bool take_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct diffusion_writer *w = user;
    (void)first;
    for (uint64_t i = 0; i < rows; i++, logits += w->facts->n_vocab) {
        struct candidate *c = &w->candidate[w->n_taken++];
        c->id = sample_next(w->sampler, logits, err);
        if (c->id < 0) return false;
        c->confidence = confidence_of(w, logits, c->id);
    }
    return true;
}

static int by_confidence(const void *a, const void *b)
{
    const struct candidate *p = a, *q = b;
    if (p->confidence != q->confidence) return p->confidence > q->confidence ? -1 : 1;
    return (p->position > q->position) - (p->position < q->position);
}

/* Evaluates all of ids[n] and replaces the best `count` masks of ids[first .. end). */
static bool step(struct diffusion_writer *w, int32_t *ids, size_t n, size_t first, size_t end,
                 size_t count, struct base_error *err)
{
    const size_t shift = w->facts->shifted ? 1 : 0;
    w->n_candidates = w->n_taken = 0;
    for (size_t i = 0; i < n; i++) w->token[i] = (struct model_token){.id = ids[i]};
    for (size_t i = first; i < end; i++) {
        if (ids[i] != w->facts->mask_id) continue;
        w->candidate[w->n_candidates++].position = i;
        w->token[i - shift].wants_logits = true;
    }
    model_session_truncate(w->session, 0);
    if (!model_eval_batch(w->session, w->token, n, take_rows, w, err)) return false;
    qsort(w->candidate, w->n_candidates, sizeof *w->candidate, by_confidence);
    for (size_t i = 0; i < count && i < w->n_candidates; i++)
        ids[w->candidate[i].position] = w->candidate[i].id;
    return true;
}

/* Returns the number of tokens before the first mask, or up to the first end if there is one among
 * these; then *ended. */
static uint32_t count_written(const struct diffusion_writer *w, const int32_t *ids, uint32_t n,
                              bool *ended)
{
    for (uint32_t i = 0; i < n; i++) {
        if (ids[i] == w->facts->mask_id) return i;
        *ended = w->d->is_end && w->d->is_end(w->d->user, ids[i]);
        if (*ended) return i + 1;
    }
    return n;
}

static bool write_blocks(struct diffusion_writer *w, int32_t *ids, size_t n_prompt,
                         uint32_t *n_written, struct base_error *err)
{
    const struct generate_diffusion *d = w->d;
    const uint32_t block = d->n_block && d->n_block < d->n_tokens ? d->n_block : d->n_tokens;
    const uint32_t steps = d->n_steps ? d->n_steps : d->n_tokens;
    const size_t n = n_prompt + d->n_tokens;
    bool ended = false;
    for (uint32_t done = 0; done < d->n_tokens && !ended; done += block) {
        const uint32_t m = d->n_tokens - done < block ? d->n_tokens - done : block;
        const uint64_t share = (uint64_t)steps * m / d->n_tokens;
        const uint32_t of = share < 1 ? 1 : share > m ? m : (uint32_t)share;
        for (uint32_t s = 0; s < of && !ended; s++) {
            const size_t first = n_prompt + done;
            if (!step(w, ids, n, first, first + m, m / of + (s < m % of), err)) return false;
            *n_written = count_written(w, ids + n_prompt, d->n_tokens, &ended);
        }
    }
    return true;
}

bool generate_diffuse(struct model_session *s, const struct generate_diffusion *d, int32_t *ids,
                      size_t n_prompt, uint32_t *n, struct base_error *err)
{
    struct diffusion_writer w = {
        .d = d, .session = s, .facts = model_facts(model_session_model(s))};
    const size_t total = n_prompt + d->n_tokens;
    if (w.facts->mask_id < 0)
        return base_fail(err, BASE_MODEL,
                         "the file has no mask token (tokenizer.ggml.mask_token_id)");
    if (total > model_session_n_ctx(s))
        return base_fail(err, BASE_TOO_LONG, "%zu tokens and %u new ones exceed the context of %u",
                         n_prompt, d->n_tokens, model_session_n_ctx(s));
    w.sampler = sample_new(&d->sample, w.facts->n_vocab, (uint32_t)total, err);
    w.token = calloc(total, sizeof *w.token);
    w.candidate = calloc(d->n_tokens, sizeof *w.candidate);
    bool ok = w.sampler != NULL;
    if (ok && (!w.token || !w.candidate))
        ok = base_fail(err, BASE_NO_MEMORY, "not enough memory for %zu tokens", total);
    if (ok) {
        sample_forbid(w.sampler, w.facts->mask_id);
        sample_random_seed(&w.random, d->sample.seed);
        for (size_t i = n_prompt; i < total; i++) ids[i] = w.facts->mask_id;
        ok = write_blocks(&w, ids, n_prompt, n, err);
    }
    sample_free(w.sampler);
    free(w.token);
    free(w.candidate);
    return ok;
}
