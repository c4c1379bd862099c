/* sample/truncate.c: rules that remove candidates: top-k, top-p, min-p, typical, top-n-sigma, XTC;
 * and temperature, which keeps one candidate at 0.
 *
 * Each rule works on an uncut vocabulary without sorting it: it finds a threshold and removes the
 * candidates below. Sources of the formulas: docs/sampling.md. */
#include "base/elementary.h"
#include "sample/chain.h"
#include <math.h>
#include <string.h>

/* Defines the row of a stage from apply_ID; ON: whether the options `o` switch it on. */
#define STAGE(ID, NAME, PARAMETER, ON, ...)                                                        \
    static bool has_##ID(const struct sample_options *o)                                           \
    {                                                                                              \
        return ON;                                                                                 \
    }                                                                                              \
    const struct sample_stage sample_stage_##ID = {.name = #NAME,                                  \
                                                   .parameter = #PARAMETER,                        \
                                                   .active = has_##ID,                             \
                                                   .apply = apply_##ID,                            \
                                                   __VA_ARGS__};

static void apply_top_k(struct sampler *s)
{
    sample_set_keep_best(&s->set, (uint32_t)s->options.top_k);
}

STAGE(top_k, top_k, top_k, o->top_k > 0, .truncates = true, .keeps_best = true, .usually_on = true)

/* Keeps the fewest best candidates whose total probability is at least top_p. Logits near the best
 * one usually make up nearly all of the vocabulary's sum, so they are summed first. */
static void apply_top_p(struct sampler *s)
{
    static const double depths[] = {6.0, 9.0, 12.0, 15.0, 20.0, 32.0, INFINITY};
    struct sample_set *set = &s->set;
    const float best = sample_set_best(set).logit;
    const double threshold = (double)s->options.top_p * sample_set_total(set);
    uint32_t n = set->n;
    for (size_t i = 0; !set->is_list; i++) {
        n = sample_set_list(set, (double)best - depths[i] * set->temp);
        if (isinf(depths[i]) || sample_set_list_total(set, n, best) >= threshold) break;
    }
    sample_set_keep_list(set, sample_set_select(set, n, best, threshold, NULL, NULL) + 1);
}

STAGE(top_p, top_p, top_p, o->top_p < 1.0f, .truncates = true, .keeps_best = true,
      .usually_on = true)

/* Keeps the candidates with at least min_p times the probability of the best one. */
static void apply_min_p(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const double best = (double)sample_set_best(set).logit;
    sample_set_keep_above(set, best + set->temp * base_log((double)s->options.min_p));
}

STAGE(min_p, min_p, min_p, o->min_p > 0.0f, .truncates = true, .keeps_best = true,
      .usually_on = true)

/* Keeps the logits at most n standard deviations below the best one. */
static void apply_top_n_sigma(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const double best = (double)sample_set_best(set).logit;
    sample_set_keep_above(set, best - (double)s->options.top_n_sigma * sample_set_deviation(set));
}

STAGE(top_n_sigma, top_n_sigma, top_n_sigma, o->top_n_sigma > 0.0f, .truncates = true,
      .keeps_best = true)

/* ---- Typical ---- */

/* Measures how far the surprise of a candidate is from the entropy, as logits in nats below the
 * best one: a candidate whose surprise equals the entropy is at `centre` <= 0. */
struct typical {
    const struct sample_set *set;
    double best, centre;
};

static double distance(const struct typical *t, float logit)
{
    return fabs(((double)logit - t->best) / t->set->temp - t->centre);
}

static bool nearer(const void *typical, struct sample_candidate a, struct sample_candidate b)
{
    const struct typical *t = typical;
    const double x = distance(t, a.logit), y = distance(t, b.logit);
    if (x != y) return x < y;
    return sample_better(a, b);
}

/* Lists every candidate that may be kept: those within `reach` of the centre, and returns their
 * number. `reach` grows until their total probability is at least the threshold. */
static uint32_t list_typical(struct sample_set *set, const struct typical *t, double threshold)
{
    if (set->is_list) return set->n;
    for (double reach = 1.0 - t->centre;; reach += reach / 4) {
        const bool all = reach > 1000.0;
        const uint32_t n =
            sample_set_list(set, all ? -INFINITY : t->best + set->temp * (t->centre - reach));
        if (all || sample_set_list_total(set, n, (float)t->best) > threshold) return n;
    }
}

static void apply_typical(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const float best = sample_set_best(set).logit;
    const struct sample_sums sums = sample_set_sums(set);
    const double threshold = (double)s->options.typical_p * sums.total;
    const struct typical t = {set, (double)best, base_log(sums.total) - sums.entropy};
    const uint32_t n = list_typical(set, &t, threshold);
    const double more = nextafter(threshold, INFINITY);
    sample_set_keep_list(set, sample_set_select(set, n, best, more, nearer, &t) + 1);
}

STAGE(typical, typ_p, typical_p, o->typical_p < 1.0f, .truncates = true)

/* ---- XTC ---- */

/* Puts the candidates at least as likely as the threshold at the beginning of the list, the least
 * likely of them last. Returns their number. */
static uint32_t list_likely(struct sample_set *set, double threshold)
{
    const float best = sample_set_best(set).logit;
    const double least = threshold * sample_set_total(set);
    const uint32_t n_near = sample_set_list(set, (double)best + set->temp * base_log(least) - 1e-3);
    struct sample_candidate *list = set->list;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_near; i++) {
        const struct sample_candidate c = list[i];
        if (sample_set_weight(set, c.logit, best) < least) continue;
        list[i] = list[n];
        list[n] = c;
        if (n > 0 && sample_better(c, list[n - 1])) {
            list[n] = list[n - 1];
            list[n - 1] = c;
        }
        n++;
    }
    return n;
}

/* With the given probability, removes all candidates that are at least as likely as the threshold,
 * except the least likely of them. */
static void apply_xtc(struct sampler *s)
{
    struct sample_set *set = &s->set;
    if (!(sample_random_unit(&s->random) < (double)s->options.xtc_probability)) return;
    const uint32_t n = list_likely(set, (double)s->options.xtc_threshold);
    if (n < 2) return;
    for (uint32_t i = 0; !set->is_list && i + 1 < n; i++)
        sample_set_change(set, set->list[i].id, -INFINITY);
    if (!set->is_list) return;
    set->n -= n - 1;
    memmove(set->list, set->list + n - 1, set->n * sizeof *set->list);
}

STAGE(xtc, xtc, xtc_probability, o->xtc_probability > 0.0f && o->xtc_threshold <= 0.5f,
      .truncates = true)

/* ---- Temperature ---- */

/* Returns a temperature between temp - range and temp + range: the entropy's share of the largest
 * possible entropy, raised to the exponent, is its position between the two. */
static double dynamic_temperature(struct sampler *s)
{
    const struct sample_options *o = &s->options;
    const double temp = (double)o->temp, range = (double)o->dynatemp_range;
    const double low = temp > range ? temp - range : 0.0, high = temp + range;
    const struct sample_sums sums = sample_set_sums(&s->set);
    if (sums.n < 2) return temp;
    double share = sums.entropy / base_log((double)sums.n);
    if (!(share > 1e-12)) share = 0.0; /* a share near 0 is only rounding error */
    if (share > 1.0) share = 1.0;
    return low + (high - low) * base_pow(share, (double)o->dynatemp_exponent);
}

static void apply_temperature(struct sampler *s)
{
    const struct sample_options *o = &s->options;
    const double temp = o->dynatemp_range > 0.0f ? dynamic_temperature(s) : (double)o->temp;
    if (temp > 0.0)
        s->set.temp *= temp;
    else
        sample_set_keep_best(&s->set, 1);
}

STAGE(temperature, temperature, temp, o->temp != 1.0f || o->dynatemp_range > 0.0f,
      .usually_on = true)
