/* sample/infill.c: sampling for fill-in-the-middle: prefers end tokens, and merges candidates if
 * one is a prefix of the other. Formula: docs/sampling.md. It works on a list, so chain.c requires
 * a cut before it. */
#include "sample/chain.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool active(const struct sample_options *o)
{
    return o->samplers != NULL; /* active only if the order names it */
}

static bool init(struct sampler *s, uint32_t n_ctx)
{
    (void)n_ctx;
    struct sample_infill *f = &s->infill;
    const size_t n = (size_t)s->options.top_k + 1;
    f->p = malloc(n * sizeof *f->p);
    f->at = malloc(n * sizeof *f->at);
    return f->p && f->at;
}

static void free_all(struct sampler *s)
{
    struct sample_infill *f = &s->infill;
    free(f->p);
    free(f->at);
    base_buffer_free(&f->text);
}

static bool is_end(const struct sampler *s, int32_t id)
{
    for (size_t i = 0; i < s->options.n_ends; i++)
        if (s->end_id[i] == id) return true;
    return false;
}

/* Reads the candidates' probabilities and bytes, and returns the probability of all end tokens.
 * Sorts the list by rank. */
static double read_candidates(struct sampler *s)
{
    struct sample_infill *f = &s->infill;
    struct sample_set *set = &s->set;
    const float best = sample_set_best(set).logit;
    const double total = sample_set_total(set);
    double ends = 0.0;
    base_buffer_clear(&f->text);
    sample_set_sort(set);
    for (uint32_t r = 0; r < set->n; r++) {
        const struct sample_candidate c = set->list[r];
        f->p[r] = sample_set_weight(set, c.logit, best) / total;
        f->at[r] = f->text.size;
        if (is_end(s, c.id))
            ends += f->p[r];
        else if (s->options.token_bytes)
            s->options.token_bytes(s->options.token_context, c.id, &f->text);
    }
    f->at[set->n] = f->text.size;
    return ends;
}

static bool is_prefix(const struct sample_infill *f, uint32_t a, uint32_t b)
{
    const size_t size = f->at[a + 1] - f->at[a];
    return size > 0 && size <= f->at[b + 1] - f->at[b] &&
           memcmp(f->text.data + f->at[a], f->text.data + f->at[b], size) == 0;
}

/* If one candidate is a prefix of another, the likelier one gets the probability of both; the other
 * is marked by -1. */
static void merge_prefixes(struct sample_infill *f, uint32_t n)
{
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n && f->p[a] >= 0.0; b++) {
            if (a == b || f->p[b] < 0.0 || !is_prefix(f, a, b)) continue;
            const uint32_t to = f->p[b] > f->p[a] ? b : a, from = to == a ? b : a;
            f->p[to] += f->p[from];
            f->p[from] = -1.0;
        }
}

/* Keeps the end tokens and the candidates with p >= threshold, in their order. Returns how many of
 * them are not end tokens. */
static uint32_t keep_likely(struct sampler *s, double threshold)
{
    struct sample_infill *f = &s->infill;
    struct sample_set *set = &s->set;
    uint32_t n = 0, n_text = 0;
    double sum = 0.0;
    for (uint32_t r = 0; r < set->n; r++) {
        const bool end = is_end(s, set->list[r].id);
        if (!end && f->p[r] < threshold) continue;
        n_text += !end;
        set->list[n] = set->list[r];
        f->p[n++] = f->p[r];
        sum += f->p[n - 1];
    }
    for (uint32_t r = 0; r < n; r++) f->p[r] /= sum;
    set->n = n;
    return n_text;
}

/* Returns whether an id was possible before rules removed candidates. */
static bool is_possible(const struct sampler *s, int32_t id)
{
    const uint64_t *allowed = s->set.allowed;
    for (size_t i = 0; i < s->n_biases; i++)
        if (s->bias[i].id == id && s->bias[i].bias == -INFINITY) return false;
    return s->set.given[id] > -INFINITY && (!allowed || allowed[id / 64] >> id % 64 & 1);
}

/* Returns the first possible end token; `other` if there is none. */
static struct sample_candidate pick_end(const struct sampler *s, struct sample_candidate other)
{
    for (size_t i = 0; i < s->options.n_ends; i++)
        if (is_possible(s, s->end_id[i]))
            return (struct sample_candidate){other.logit, s->end_id[i]};
    return other;
}

static void apply(struct sampler *s)
{
    struct sample_infill *f = &s->infill;
    struct sample_set *set = &s->set;
    const double ends = read_candidates(s);
    const struct sample_candidate best = sample_set_best(set);
    if (3.0 * ends * (double)set->n > 1.0 - ends) {
        keep_likely(s, INFINITY); /* only end tokens */
        return;
    }
    merge_prefixes(f, set->n);
    const uint32_t n_text = keep_likely(s, 0.2);
    if (n_text > 0) {
        keep_likely(s, 1.0 / (n_text + 1));
        if (set->n > 0) return;
    }
    set->list[0] = pick_end(s, best);
    sample_set_keep_list(set, 1);
}

const struct sample_stage sample_stage_infill = {.name = "infill",
                                                 .parameter = "samplers",
                                                 .active = active,
                                                 .apply = apply,
                                                 .init = init,
                                                 .free = free_all,
                                                 .truncates = true,
                                                 .only_named = true,
                                                 .usually_on = true};
