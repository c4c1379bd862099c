/* sample/sample.c: the chain penalties, top-k, top-p, min-p, temperature, draw (or, at temperature
 * 0, penalties and the best id).
 *
 * Owns the chain and its work arrays. Refuses grammars and text. Called by cli/ through sample.h.
 *
 * Candidates have a total order, logit descending and then id ascending, so every rule has one
 * answer and any selection algorithm gives it. They are kept as a binary heap whose sorted part
 * grows on demand: a vocabulary of 262,144 tokens is almost never sorted beyond its first hundred.
 * All probabilities are double, from an exp of our own, so that no C library takes part. */
#include "sample/sample.h"
#include "base/size.h"
#include "sample/exp.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
    float logit; /* finite */
    int32_t id;
};

struct sampler {
    struct sample_options options;
    struct sample_random random;
    uint32_t n_vocab;

    float *logit;           /* [n_vocab] a copy with penalties applied */
    struct candidate *cand; /* [n_vocab] heap in front, sorted from the back: see ranked() */
    uint32_t n_cand;
    uint32_t n_ranked;

    int32_t *ring;      /* [ring_size] the history that penalties see, oldest overwritten first */
    uint32_t ring_size; /* 0 when penalties see nothing */
    uint32_t ring_used, ring_next;
    uint32_t *count; /* [n_vocab] occurrences in the ring */

    int32_t *forbidden; /* [n_vocab] list of ids */
    uint32_t n_forbidden;

    const uint64_t *allowed; /* for the next id only; the caller's */
};

/* ---- Random numbers: PCG32, XSH-RR output, one fixed stream ---- */

void sample_random_seed(struct sample_random *r, uint64_t seed)
{
    const uint64_t stream = 54;
    r->state = 0;
    r->step = stream << 1 | 1;
    sample_random_u32(r);
    r->state += seed;
    sample_random_u32(r);
}

uint32_t sample_random_u32(struct sample_random *r)
{
    uint64_t old = r->state;
    r->state = old * 6364136223846793005u + r->step;
    uint32_t mixed = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return mixed >> turn | mixed << (-turn & 31);
}

double sample_random_unit(struct sample_random *r)
{
    return sample_random_u32(r) * 0x1p-32;
}

/* ---- Life ---- */

struct sample_options sample_options_default(void)
{
    return (struct sample_options){.temp = 0.8f,
                                   .top_k = 40,
                                   .top_p = 0.95f,
                                   .min_p = 0.05f,
                                   .repeat_penalty = 1.0f,
                                   .repeat_last_n = 64};
}

static bool options_check(const struct sample_options *o, struct base_error *err)
{
    /* Written so that NaN fails each of them. */
    if (!(o->temp >= 0.0f && o->temp <= FLT_MAX))
        return base_fail_at(err, BASE_USAGE, "--temp", -1, "must be 0 or more");
    if (o->top_k < 0) return base_fail_at(err, BASE_USAGE, "--top-k", -1, "must be 0 or more");
    if (!(o->top_p >= 0.0f && o->top_p <= 1.0f))
        return base_fail_at(err, BASE_USAGE, "--top-p", -1, "must be from 0 to 1");
    if (!(o->min_p >= 0.0f && o->min_p <= 1.0f))
        return base_fail_at(err, BASE_USAGE, "--min-p", -1, "must be from 0 to 1");
    if (!(o->repeat_penalty > 0.0f && o->repeat_penalty <= FLT_MAX))
        return base_fail_at(err, BASE_USAGE, "--repeat-penalty", -1, "must be above 0");
    if (!(fabsf(o->frequency_penalty) <= FLT_MAX))
        return base_fail_at(err, BASE_USAGE, "--frequency-penalty", -1, "must be a number");
    if (!(fabsf(o->presence_penalty) <= FLT_MAX))
        return base_fail_at(err, BASE_USAGE, "--presence-penalty", -1, "must be a number");
    if (o->repeat_last_n < -1)
        return base_fail_at(err, BASE_USAGE, "--repeat-last-n", -1, "must be -1 or more");
    return true;
}

static bool has_penalty(const struct sample_options *o)
{
    return o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f || o->presence_penalty != 0.0f;
}

struct sampler *sample_new(const struct sample_options *options, uint32_t n_vocab, uint32_t n_ctx,
                           struct base_error *err)
{
    if (!options_check(options, err)) return NULL;
    if (n_vocab == 0 || n_vocab > INT32_MAX) {
        base_fail(err, BASE_MODEL, "a vocabulary of %u tokens cannot be sampled from", n_vocab);
        return NULL;
    }
    struct sampler *s = calloc(1, sizeof *s);
    if (!s) goto no_memory;
    s->options = *options;
    s->n_vocab = n_vocab;
    sample_random_seed(&s->random, options->seed);
    if (has_penalty(options) && options->repeat_last_n != 0) {
        s->ring_size = n_ctx;
        if (options->repeat_last_n > 0 && (uint32_t)options->repeat_last_n < n_ctx)
            s->ring_size = (uint32_t)options->repeat_last_n;
    }
    s->logit = malloc(n_vocab * sizeof *s->logit);
    s->cand = malloc(n_vocab * sizeof *s->cand);
    s->count = calloc(n_vocab, sizeof *s->count);
    s->forbidden = malloc(n_vocab * sizeof *s->forbidden);
    if (!s->logit || !s->cand || !s->count || !s->forbidden) goto no_memory;
    if (s->ring_size > 0) {
        s->ring = malloc(s->ring_size * sizeof *s->ring);
        if (!s->ring) goto no_memory;
    }
    return s;

no_memory:
    sample_free(s);
    base_fail(err, BASE_NO_MEMORY, "no memory to sample from %u tokens", n_vocab);
    return NULL;
}

void sample_free(struct sampler *s)
{
    if (!s) return;
    free(s->logit);
    free(s->cand);
    free(s->count);
    free(s->forbidden);
    free(s->ring);
    free(s);
}

void sample_accept(struct sampler *s, int32_t id)
{
    if (id < 0 || (uint32_t)id >= s->n_vocab || s->ring_size == 0) return;
    if (s->ring_used == s->ring_size)
        s->count[s->ring[s->ring_next]]--;
    else
        s->ring_used++;
    s->ring[s->ring_next] = id;
    s->count[id]++;
    if (++s->ring_next == s->ring_size) s->ring_next = 0;
}

void sample_forbid(struct sampler *s, int32_t id)
{
    if (id < 0 || (uint32_t)id >= s->n_vocab) return;
    for (uint32_t i = 0; i < s->n_forbidden; i++)
        if (s->forbidden[i] == id) return;
    s->forbidden[s->n_forbidden++] = id;
}

void sample_restrict(struct sampler *s, const uint64_t *allowed)
{
    s->allowed = allowed;
}

/* ---- Penalties ---- */

/* A number stays a number: overflow saturates, so that it is not taken for "impossible". */
static float saturate(float x)
{
    if (x > FLT_MAX) return FLT_MAX;
    if (x < -FLT_MAX) return -FLT_MAX;
    return x;
}

static float penalized(const struct sample_options *o, float logit, uint32_t count)
{
    if (!(logit > -INFINITY)) return logit;
    logit = logit > 0.0f ? logit / o->repeat_penalty : logit * o->repeat_penalty;
    logit -= (float)count * o->frequency_penalty;
    logit -= o->presence_penalty;
    return saturate(logit);
}

/* Copies the logits. Each id of the history is computed from the caller's value, so ids that
 * occur several times need no special care. */
static void apply_history(struct sampler *s, const float *logits)
{
    memcpy(s->logit, logits, s->n_vocab * sizeof *logits);
    for (uint32_t i = 0; i < s->ring_used; i++) {
        int32_t id = s->ring[i];
        s->logit[id] = penalized(&s->options, logits[id], s->count[id]);
    }
    for (uint32_t i = 0; i < s->n_forbidden; i++) s->logit[s->forbidden[i]] = -INFINITY;
    for (uint32_t id = 0; s->allowed && id < s->n_vocab; id++)
        if (!(s->allowed[id / 64] >> id % 64 & 1)) s->logit[id] = -INFINITY;
}

/* ---- Selection ---- */

enum { BLOCK = 64, LANES = 16 };

/* The largest number in x[n], NaN skipped, -infinity for none. The lanes let the compiler use
 * vector registers; a maximum has no rounding, so its order is free. */
static float largest(const float *x, uint32_t n)
{
    float lane[LANES];
    for (int l = 0; l < LANES; l++) lane[l] = -INFINITY;
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    for (; i < n; i++) lane[0] = x[i] > lane[0] ? x[i] : lane[0];
    for (int l = 1; l < LANES; l++) lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    return lane[0];
}

static int32_t best_id(const struct sampler *s, float best)
{
    uint32_t id = 0;
    while (s->logit[id] != best) id++;
    return (int32_t)id;
}

/* The total order of candidates. */
static bool before(struct candidate a, struct candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Restores a heap below index i; the root is the best candidate, or the worst. */
static void sift(struct candidate *heap, uint32_t n, uint32_t i, bool best_first)
{
    struct candidate moving = heap[i];
    for (;;) {
        uint64_t child = 2 * (uint64_t)i + 1;
        if (child >= n) break;
        if (child + 1 < n && before(heap[child + 1], heap[child]) == best_first) child++;
        if (before(heap[child], moving) != best_first) break;
        heap[i] = heap[child];
        i = (uint32_t)child;
    }
    heap[i] = moving;
}

static void heapify(struct candidate *heap, uint32_t n, bool best_first)
{
    for (uint32_t i = n / 2; i-- > 0;) sift(heap, n, i, best_first);
}

/* Fills cand with the k best ids (all that are possible when k is 0). A worst-first heap of k keeps
 * the bar; blocks whose largest logit is not above it cannot hold a better one, because of equal
 * logits the earlier id is better. */
static void select_candidates(struct sampler *s, uint32_t k)
{
    if (k == 0 || k > s->n_vocab) k = s->n_vocab;
    uint32_t n = 0;
    for (uint32_t first = 0; first < s->n_vocab; first += BLOCK) {
        uint32_t end = s->n_vocab - first < BLOCK ? s->n_vocab : first + BLOCK;
        float bar = n == k ? s->cand[0].logit : -INFINITY;
        if (!(largest(s->logit + first, end - first) > bar)) continue;
        for (uint32_t id = first; id < end; id++) {
            if (!(s->logit[id] > -INFINITY)) continue;
            struct candidate c = {saturate(s->logit[id]), (int32_t)id};
            if (n < k) {
                s->cand[n++] = c;
                if (n == k) heapify(s->cand, n, false);
            } else if (before(c, s->cand[0])) {
                s->cand[0] = c;
                sift(s->cand, n, 0, false);
            }
        }
    }
    heapify(s->cand, n, true);
    s->n_cand = n;
    s->n_ranked = 0;
}

/* The candidate of rank r < n_cand, 0 the best. Sorts as far as asked: the heap gives its root to
 * the place behind its end, so rank r lies at cand[n_cand - 1 - r]. */
static struct candidate ranked(struct sampler *s, uint32_t r)
{
    while (s->n_ranked <= r) {
        uint32_t last = s->n_cand - 1 - s->n_ranked;
        struct candidate best = s->cand[0];
        s->cand[0] = s->cand[last];
        s->cand[last] = best;
        sift(s->cand, last, 0, true);
        s->n_ranked++;
    }
    return s->cand[s->n_cand - 1 - r];
}

/* ---- The chain after the penalties ---- */

static double weight(struct candidate c, float best, double temp)
{
    return sample_exp(((double)c.logit - (double)best) / temp);
}

/* Of the `keep` best candidates; when that is all of them, sorting is not needed. */
static double weight_sum(const struct sampler *s, uint32_t keep, float best, double temp)
{
    double sum = 0.0;
    for (uint32_t r = 0; r < keep; r++) sum += weight(s->cand[s->n_cand - 1 - r], best, temp);
    return sum;
}

/* How many of the best candidates reach the probability top_p together. */
static uint32_t keep_top_p(struct sampler *s, float best)
{
    double bar = (double)s->options.top_p * weight_sum(s, s->n_cand, best, 1.0);
    double sum = 0.0;
    for (uint32_t r = 0; r < s->n_cand; r++) {
        sum += weight(ranked(s, r), best, 1.0);
        if (sum >= bar) return r + 1;
    }
    return s->n_cand;
}

/* How many of `keep` have at least min_p times the best one's probability. */
static uint32_t keep_min_p(struct sampler *s, uint32_t keep, float best)
{
    uint32_t r = 1; /* the best one itself has 1 */
    while (r < keep && weight(ranked(s, r), best, 1.0) >= (double)s->options.min_p) r++;
    return r;
}

static int32_t draw(struct sampler *s, uint32_t keep, float best)
{
    double temp = (double)s->options.temp;
    double bar = sample_random_unit(&s->random) * weight_sum(s, keep, best, temp);
    double sum = 0.0;
    for (uint32_t r = 0; r + 1 < keep; r++) {
        struct candidate c = ranked(s, r);
        sum += weight(c, best, temp);
        if (sum > bar) return c.id;
    }
    return ranked(s, keep - 1).id;
}

int32_t sample_next(struct sampler *s, const float *logits, struct base_error *err)
{
    apply_history(s, logits);
    const bool restricted = s->allowed != NULL;
    s->allowed = NULL;
    float best = largest(s->logit, s->n_vocab);
    if (!(best > -INFINITY)) {
        if (restricted)
            base_fail_at(err, BASE_FAILED, "constraint", -1,
                         "no token is possible: every one that it allows is excluded or has a "
                         "logit of -infinity or NaN");
        else
            base_fail(err, BASE_FAILED, "no token is possible: every logit is -infinity or NaN");
        return -1;
    }
    if (s->options.temp == 0.0f) return best_id(s, best);

    select_candidates(s, (uint32_t)s->options.top_k);
    best = saturate(best);
    uint32_t keep = s->n_cand;
    if (s->options.top_p < 1.0f) keep = keep_top_p(s, best);
    if (s->options.min_p > 0.0f) keep = keep_min_p(s, keep, best);
    return draw(s, keep, best);
}
