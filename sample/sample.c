/* sample/sample.c: creates samplers and samples one id from logits: the interface of sample.h.
 * set.c has the set of candidates, the stages (listed in chain.c) have the rules. */
#include "sample/chain.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Creation ---- */

/* Checks that the options contain only ids of the vocabulary. */
static bool ids_check(const struct sample_options *o, uint32_t n_vocab, struct base_error *err)
{
    for (size_t i = 0; i < o->n_biases; i++)
        if (o->bias[i].id < 0 || (uint32_t)o->bias[i].id >= n_vocab)
            return base_fail_at(err, BASE_USAGE, sample_name(o, "bias").text, -1,
                                "the model has no token %d: its vocabulary has %u",
                                (int)o->bias[i].id, n_vocab);
    for (size_t i = 0; i < o->n_ends; i++)
        if (o->end_id[i] < 0 || (uint32_t)o->end_id[i] >= n_vocab)
            return base_fail(err, BASE_MODEL, "the end-of-text token %d is not in the vocabulary",
                             (int)o->end_id[i]);
    return true;
}

static bool allocate(struct sampler *s)
{
    const struct sample_options *o = &s->options;
    s->max_biases = o->n_biases + s->set.n_vocab;
    s->bias = malloc(s->max_biases * sizeof *s->bias);
    s->end_id = malloc((o->n_ends + 1) * sizeof *s->end_id);
    if (!s->bias || !s->end_id) return false;
    if (o->n_biases) memcpy(s->bias, o->bias, o->n_biases * sizeof *s->bias);
    if (o->n_ends) memcpy(s->end_id, o->end_id, o->n_ends * sizeof *s->end_id);
    s->n_biases = o->n_biases;
    return true;
}

struct sampler *sample_new(const struct sample_options *options, uint32_t n_vocab, uint32_t n_ctx,
                           struct base_error *err)
{
    if (!sample_options_check(options, err)) return NULL;
    if (n_vocab == 0 || n_vocab > INT32_MAX)
        return base_null(base_fail(err, BASE_MODEL,
                                   "a vocabulary of %u tokens cannot be sampled from", n_vocab));
    if (!ids_check(options, n_vocab, err)) return NULL;
    struct sampler *s = calloc(1, sizeof *s);
    if (!s || !sample_set_init(&s->set, n_vocab, cpu_level_cap(options->level), err))
        goto no_memory;
    s->options = *options;
    s->mu = 2.0 * (double)options->mirostat_tau;
    sample_random_seed(&s->random, options->seed);
    if (!allocate(s) || !sample_chain_init(s, n_ctx, err)) goto no_memory;
    /* The copy of the options must not point to the caller's arrays. */
    s->options.bias = NULL;
    s->options.end_id = NULL;
    s->options.dry_breaker = NULL;
    s->options.samplers = NULL;
    return s;

no_memory:
    sample_free(s);
    return base_null(base_fail(err, BASE_NO_MEMORY, "no memory to sample from %u tokens", n_vocab));
}

void sample_free(struct sampler *s)
{
    if (!s) return;
    sample_set_free(&s->set);
    sample_chain_free(s);
    free(s->bias);
    free(s->end_id);
    free(s);
}

void sample_accept(struct sampler *s, int32_t id)
{
    if (id < 0 || (uint32_t)id >= s->set.n_vocab) return;
    for (int i = 0; i < s->n_stages; i++)
        if (s->stage[i]->accept) s->stage[i]->accept(s, id);
}

void sample_forbid(struct sampler *s, int32_t id)
{
    if (id < 0 || (uint32_t)id >= s->set.n_vocab) return;
    for (size_t i = 0; i < s->n_biases; i++)
        if (s->bias[i].id == id && s->bias[i].bias == -INFINITY) return;
    s->bias[s->n_biases++] = (struct sample_bias){id, -INFINITY};
}

void sample_restrict(struct sampler *s, const uint64_t *allowed)
{
    s->allowed = allowed;
}

/* ---- One call ---- */

static void apply_biases(struct sampler *s)
{
    for (size_t i = 0; i < s->n_biases; i++) {
        const struct sample_bias *b = &s->bias[i];
        const float logit = sample_set_logit(&s->set, b->id);
        if (!(logit > -INFINITY)) continue;
        sample_set_change(&s->set, b->id,
                          b->bias > -INFINITY ? sample_saturate((double)logit + (double)b->bias)
                                              : -INFINITY);
    }
}

int32_t sample_next(struct sampler *s, const float *logits, struct base_error *err)
{
    const bool restricted = s->allowed != NULL;
    sample_set_load(&s->set, logits, s->allowed);
    s->allowed = NULL;
    apply_biases(s);
    if (sample_set_best(&s->set).id < 0) {
        if (restricted)
            base_fail_at(err, BASE_FAILED, "constraint", -1,
                         "no token is possible: every one that it allows is excluded or has a "
                         "logit of -infinity or NaN");
        else
            base_fail(err, BASE_FAILED, "no token is possible: every logit is -infinity or NaN");
        return -1;
    }
    for (int i = 0; i < s->n_stages; i++)
        if (s->stage[i]->apply) s->stage[i]->apply(s);
    if (s->options.mirostat != 0) return sample_draw_mirostat(s);
    if (s->options.adaptive_target >= 0.0f) return sample_draw_adaptive(s);
    return sample_draw(s);
}
