/* sample/penalty.c: the history, and the repeat, frequency and presence penalties of the tokens in
 * it. Formulas: docs/sampling.md. */
#include "sample/chain.h"
#include <stdlib.h>

/* ---- The ring ---- */

bool sample_ring_init(struct sample_ring *r, int64_t last_n, uint32_t n_ctx)
{
    *r = (struct sample_ring){.size = n_ctx};
    if (last_n >= 0 && (uint32_t)last_n < n_ctx) r->size = (uint32_t)last_n;
    if (r->size == 0) return true;
    r->id = malloc(r->size * sizeof *r->id);
    return r->id != NULL;
}

int32_t sample_ring_push(struct sample_ring *r, int32_t id)
{
    int32_t old = -1;
    if (r->used == r->size)
        old = r->id[r->next];
    else
        r->used++;
    r->id[r->next] = id;
    if (++r->next == r->size) r->next = 0;
    return old;
}

int32_t sample_ring_at(const struct sample_ring *r, uint32_t back)
{
    return r->id[r->next > back ? r->next - 1 - back : r->next + r->size - 1 - back];
}

/* ---- Penalties ---- */

static bool active(const struct sample_options *o)
{
    return o->repeat_last_n != 0 && (o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f ||
                                     o->presence_penalty != 0.0f);
}

static bool init(struct sampler *s, uint32_t n_ctx)
{
    struct sample_penalties *p = &s->penalties;
    if (!sample_ring_init(&p->ring, s->options.repeat_last_n, n_ctx)) return false;
    p->count = calloc(s->set.n_vocab, sizeof *p->count);
    p->place = malloc(s->set.n_vocab * sizeof *p->place);
    p->ids = malloc((p->ring.size + 1) * sizeof *p->ids);
    return p->count && p->place && p->ids;
}

static void free_all(struct sampler *s)
{
    struct sample_penalties *p = &s->penalties;
    free(p->ring.id);
    free(p->count);
    free(p->place);
    free(p->ids);
}

static void accept(struct sampler *s, int32_t id)
{
    struct sample_penalties *p = &s->penalties;
    if (p->ring.size == 0) return;
    const int32_t old = sample_ring_push(&p->ring, id);
    if (old >= 0 && --p->count[old] == 0) { /* the last entry of the list replaces it */
        const int32_t last = p->ids[--p->n_ids];
        p->ids[p->place[old]] = last;
        p->place[last] = p->place[old];
    }
    if (p->count[id]++ == 0) {
        p->place[id] = p->n_ids;
        p->ids[p->n_ids++] = id;
    }
}

static float penalized(const void *state, int32_t id, float logit)
{
    const struct sampler *s = state;
    const struct sample_options *o = &s->options;
    const uint32_t count = s->penalties.count[id];
    if (count == 0) return logit;
    logit = logit > 0.0f ? logit / o->repeat_penalty : logit * o->repeat_penalty;
    logit -= (float)count * o->frequency_penalty;
    logit -= o->presence_penalty;
    return sample_saturate((double)logit);
}

static void apply(struct sampler *s)
{
    const struct sample_penalties *p = &s->penalties;
    sample_set_adjust(&s->set, p->ids, p->n_ids, penalized, s);
}

const struct sample_stage sample_stage_penalties = {.name = "penalties",
                                                    .parameter = "a penalty",
                                                    .active = active,
                                                    .apply = apply,
                                                    .init = init,
                                                    .free = free_all,
                                                    .accept = accept};
