/* sample/draw.c: draws one id at the end of the chain: from the distribution, or by a rule that
 * changes it (mirostat 1 and 2, adaptive-p). Formulas: docs/sampling.md. */
#include "base/elementary.h"
#include "sample/chain.h"
#include <math.h>

static const double ln2 = 0x1.62e42fefa39efp-1;

int32_t sample_draw(struct sampler *s)
{
    return sample_set_draw(&s->set, sample_random_unit(&s->random), NULL).id;
}

/* ---- Mirostat ---- */

/* Version 1: returns the number of candidates whose surprise is below mu if probabilities are a
 * power of the rank (Zipf). The exponent is estimated from the best hundred candidates. */
static uint32_t zipf_count(struct sampler *s)
{
    enum { BEST = 100 };
    struct sample_set *set = &s->set;
    double sum = 0.0, squares = 0.0;
    sample_set_sort(set);
    for (uint32_t i = 0; i + 1 < BEST && i + 1 < set->n; i++) {
        const double t = base_log((double)(i + 2) / (double)(i + 1));
        const double fall = (double)set->list[i].logit - (double)set->list[i + 1].logit;
        sum += t * fall / set->temp;
        squares += t * t;
    }
    if (!(squares > 0.0)) return 1;
    const double n = (double)set->n_vocab, exponent = sum / squares, over = exponent - 1.0;
    const double power = base_exp(s->mu * ln2);
    /* The first case is the limit of the quotient for exponent 1. */
    const double base =
        fabs(over) < 1e-9 ? power / base_log(n) : over * power / (1.0 - base_pow(n, -over));
    const double k = base_exp(base_log(base) / exponent);
    if (!(k >= 1.0)) return 1;
    return k < n ? (uint32_t)k : set->n_vocab;
}

static void keep_zipf(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const bool whole = !set->is_list;
    sample_set_keep_best(set, 100);
    const uint32_t k = zipf_count(s);
    if (whole && k > set->n) set->is_list = false;
    sample_set_keep_best(set, k);
}

/* Version 2: keeps the candidates with a surprise of at most mu; the best one if there are none. */
static void keep_surprise(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const double best = (double)sample_set_best(set).logit;
    const double threshold = base_log(sample_set_total(set)) - s->mu * ln2;
    if (threshold > 0.0)
        sample_set_keep_best(set, 1);
    else
        sample_set_keep_above(set, best + set->temp * threshold);
}

int32_t sample_draw_mirostat(struct sampler *s)
{
    double p;
    if (s->options.mirostat == 1)
        keep_zipf(s);
    else
        keep_surprise(s);
    const int32_t id = sample_set_draw(&s->set, sample_random_unit(&s->random), &p).id;
    const double surprise = -base_log(p) / ln2;
    s->mu -= (double)s->options.mirostat_eta * (surprise - (double)s->options.mirostat_tau);
    return id;
}

/* ---- Adaptive-p ---- */

static bool is_adaptive(const struct sample_options *o)
{
    return o->adaptive_target >= 0.0f;
}

static bool init_adaptive(struct sampler *s, uint32_t n_ctx)
{
    (void)n_ctx;
    const double decay = (double)s->options.adaptive_decay;
    s->adaptive.weight = 1.0 / (1.0 - decay);
    s->adaptive.sum = (double)s->options.adaptive_target * s->adaptive.weight;
    s->adaptive.pending = -1;
    return true;
}

/* Moves the target in the direction opposite to the mean of recent choices. */
int32_t sample_draw_adaptive(struct sampler *s)
{
    struct sample_adaptive *a = &s->adaptive;
    double target = 2.0 * (double)s->options.adaptive_target - a->sum / a->weight;
    target = target < 0.0 ? 0.0 : target > 1.0 ? 1.0 : target;
    a->pending = sample_set_draw_shaped(&s->set, (float)target, sample_random_unit(&s->random),
                                        &a->pending_p)
                     .id;
    return a->pending;
}

static void accept_adaptive(struct sampler *s, int32_t id)
{
    struct sample_adaptive *a = &s->adaptive;
    if (a->pending == id) {
        const double decay = (double)s->options.adaptive_decay;
        a->sum = a->pending_p + decay * a->sum;
        a->weight = 1.0 + decay * a->weight;
    }
    a->pending = -1;
}

const struct sample_stage sample_stage_adaptive = {.name = "adaptive_p",
                                                   .parameter = "adaptive_target",
                                                   .active = is_adaptive,
                                                   .init = init_adaptive,
                                                   .accept = accept_adaptive,
                                                   .truncates = true};
