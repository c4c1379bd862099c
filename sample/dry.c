/* sample/dry.c: DRY, "don't repeat yourself": penalizes a token by the length of the repetition
 * that it would continue.
 *
 * If the last m tokens of the history also occur earlier in it, followed by token t, then t
 * continues a repetition of length m. If m is at least the allowed length, the stage subtracts
 * multiplier * base^(m - allowed) from the logit of t. A repetition never extends across a sequence
 * breaker in the text; breakers are byte strings that may begin and end inside tokens. A token that
 * contains a whole breaker has no penalty.
 *
 * The Z-algorithm over the reversed history computes the lengths in linear time. */
#include "base/elementary.h"
#include "sample/chain.h"
#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_ROOM = 1 << 12 }; /* bytes; only a longer token makes sample_accept allocate */

static bool copy_breakers(struct sample_dry *d, const struct sample_options *o)
{
    size_t total = 1;
    for (size_t i = 0; i < o->n_dry_breakers; i++) total += o->dry_breaker[i].size;
    d->breaker = malloc(total);
    d->size = malloc((o->n_dry_breakers + 1) * sizeof *d->size);
    if (!d->breaker || !d->size) return false;
    char *to = d->breaker;
    for (size_t i = 0; i < o->n_dry_breakers; i++) {
        memcpy(to, o->dry_breaker[i].data, o->dry_breaker[i].size);
        to += o->dry_breaker[i].size;
        d->size[d->n_breakers++] = (uint32_t)o->dry_breaker[i].size;
    }
    static const char zeros[TEXT_ROOM];
    base_buffer_add(&d->text, zeros, sizeof zeros);
    const bool ok = !d->text.failed;
    base_buffer_clear(&d->text);
    return ok;
}

/* Computes the penalty for each length of a repetition, at most the largest float. */
static bool make_penalties(struct sample_dry *d, const struct sample_options *o)
{
    d->penalty = malloc((d->ring.size + 1) * sizeof *d->penalty);
    if (!d->penalty) return false;
    for (uint32_t m = 0; m <= d->ring.size; m++) {
        const double over = (double)m - (double)o->dry_allowed_length;
        const double p = (double)o->dry_multiplier * base_pow((double)o->dry_base, over);
        d->penalty[m] = over < 0.0 ? 0.0 : p < (double)FLT_MAX ? p : (double)FLT_MAX;
    }
    return true;
}

static bool active(const struct sample_options *o)
{
    return o->dry_multiplier > 0.0f && o->dry_last_n != 0;
}

static bool init(struct sampler *s, uint32_t n_ctx)
{
    struct sample_dry *d = &s->dry;
    if (!sample_ring_init(&d->ring, s->options.dry_last_n, n_ctx)) return false;
    d->same = malloc((d->ring.size + 1) * sizeof *d->same);
    d->ids = malloc((d->ring.size + 1) * sizeof *d->ids);
    d->repeat = calloc(s->set.n_vocab, sizeof *d->repeat);
    return d->same && d->ids && d->repeat && copy_breakers(d, &s->options) &&
           make_penalties(d, &s->options);
}

static void free_all(struct sampler *s)
{
    struct sample_dry *d = &s->dry;
    free(d->ring.id);
    free(d->same);
    free(d->ids);
    free(d->repeat);
    free(d->penalty);
    free(d->breaker);
    free(d->size);
    base_buffer_free(&d->text);
}

/* ---- Breakers ---- */

/* Returns whether some breaker ends in the text after its first `before` bytes. */
static bool breaker_ends(const struct sample_dry *d, const struct base_buffer *text, size_t before)
{
    const char *breaker = d->breaker;
    for (size_t i = 0; i < d->n_breakers; breaker += d->size[i], i++) {
        const size_t size = d->size[i], from = before >= size ? before - size + 1 : 0;
        if (text->size >= from + size &&
            memmem(text->data + from, text->size - from, breaker, size))
            return true;
    }
    return false;
}

static void accept(struct sampler *s, int32_t id)
{
    struct sample_dry *d = &s->dry;
    if (d->ring.size == 0) return;
    sample_ring_push(&d->ring, id);
    if (d->since < UINT32_MAX) d->since++;
    if (d->n_breakers == 0 || !s->options.token_bytes) return;
    const size_t before = d->text.size;
    s->options.token_bytes(s->options.token_context, id, &d->text);
    if (breaker_ends(d, &d->text, before)) d->since = 0;
    if (d->text.size < SAMPLE_MAX_BREAKER) return;
    const size_t cut = d->text.size - (SAMPLE_MAX_BREAKER - 1); /* no breaker begins earlier */
    memmove(d->text.data, d->text.data + cut, SAMPLE_MAX_BREAKER - 1);
    d->text.size = SAMPLE_MAX_BREAKER - 1;
}

/* ---- Repetitions ---- */

/* Computes same[k], the length of the longest common suffix of the history and the history without
 * its last k tokens. [left, right) is the match found so far that extends furthest back. */
static void find_repetitions(struct sample_dry *d)
{
    const uint32_t n = d->ring.used;
    uint32_t left = 0, right = 0;
    for (uint32_t k = 1; k < n; k++) {
        uint32_t length = 0;
        if (k < right) length = d->same[k - left] < right - k ? d->same[k - left] : right - k;
        while (k + length < n &&
               sample_ring_at(&d->ring, length) == sample_ring_at(&d->ring, k + length))
            length++;
        d->same[k] = length;
        if (k + length > right) {
            left = k;
            right = k + length;
        }
    }
}

static float punished(const void *state, int32_t id, float logit)
{
    const struct sample_dry *d = state;
    if (d->repeat[id] == 0) return logit;
    return sample_saturate((double)logit - d->penalty[d->repeat[id] - 1]);
}

static void apply(struct sampler *s)
{
    struct sample_dry *d = &s->dry;
    const uint32_t allowed = (uint32_t)s->options.dry_allowed_length;
    const uint32_t limit = d->since < d->ring.used ? d->since : d->ring.used;
    if (limit < allowed) return;
    find_repetitions(d);
    uint32_t n = 0;
    for (uint32_t k = 1; k < d->ring.used; k++) {
        const uint32_t length = d->same[k] < limit ? d->same[k] : limit;
        if (length < allowed) continue;
        const int32_t id = sample_ring_at(&d->ring, k - 1); /* the token after the repeated part */
        if (d->repeat[id] == 0) d->ids[n++] = id;
        if (length + 1 > d->repeat[id]) d->repeat[id] = length + 1;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        const size_t before = d->text.size;
        if (d->n_breakers > 0 && s->options.token_bytes)
            s->options.token_bytes(s->options.token_context, d->ids[i], &d->text);
        const struct base_buffer own = {.data = d->text.data + before,
                                        .size = d->text.size - before};
        if (d->text.size > before && breaker_ends(d, &own, 0))
            d->repeat[d->ids[i]] = 0;
        else
            d->ids[kept++] = d->ids[i];
        d->text.size = before;
    }
    sample_set_adjust(&s->set, d->ids, kept, punished, d);
    for (uint32_t i = 0; i < kept; i++) d->repeat[d->ids[i]] = 0;
}

const struct sample_stage sample_stage_dry = {.name = "dry",
                                              .parameter = "dry_multiplier",
                                              .active = active,
                                              .apply = apply,
                                              .init = init,
                                              .free = free_all,
                                              .accept = accept};
