/* sample/truncate.c: the rules that drop candidates: top-k, top-p, min-p, typical, top-n-sigma,
 * XTC; and temperature, which at 0 keeps one.
 *
 * Each works on a vocabulary that nothing has cut yet without sorting it: it finds a bar below
 * which nothing can stay. Sources of the formulas: docs/sampling.md. */
#include "sample/chain.h"
#include "sample/exp.h"
#include <math.h>

void sample_apply_top_k(struct sampler *s)
{
    sample_set_keep_best(&s->set, (uint32_t)s->options.top_k);
}

/* The fewest best candidates that have the probability top_p together. What the vocabulary's sum is
 * made of lies near the best logit, as a rule: so that part is looked at first. */
void sample_apply_top_p(struct sampler *s)
{
    static const double depths[] = {6.0, 9.0, 12.0, 15.0, 20.0, 32.0, INFINITY};
    struct sample_set *set = &s->set;
    const float best = sample_set_best(set).logit;
    const double bar = (double)s->options.top_p * sample_set_total(set);
    for (size_t i = 0; !set->cut; i++) {
        sample_set_list_above(set, (double)best - depths[i] * set->temp);
        set->cut = isinf(depths[i]) || sample_select_total(set, set->list, set->n, best) >= bar;
    }
    sample_set_keep_list(set, sample_select_weight(set, best, bar, NULL, NULL) + 1);
}

/* A probability of at least min_p times the best one's. */
void sample_apply_min_p(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const double best = (double)sample_set_best(set).logit;
    sample_set_keep_above(set, best + set->temp * sample_log((double)s->options.min_p));
}

/* Logits at most n standard deviations below the best. */
void sample_apply_top_n_sigma(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const double best = (double)sample_set_best(set).logit;
    const double deviation = sample_set_moments(set).deviation * set->temp;
    sample_set_keep_above(set, best - (double)s->options.top_n_sigma * deviation);
}

/* ---- Typical ---- */

/* How far a candidate's surprise is from the entropy. All in nats below the best logit: the one
 * whose surprise is the entropy would lie at `centre` <= 0. */
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
    return sample_before(a, b);
}

/* Makes the list hold every candidate that may count: those as near as `reach`, widened until they
 * have the probability together. */
static void gather_typical(struct sample_set *set, const struct typical *t, double bar)
{
    for (double reach = 1.0 - t->centre; !set->cut; reach += reach / 4) {
        const bool all = reach > 1000.0;
        sample_set_list_above(set, all ? -INFINITY : t->best + set->temp * (t->centre - reach));
        set->cut = all || sample_select_total(set, set->list, set->n, (float)t->best) > bar;
    }
}

void sample_apply_typical(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const float best = sample_set_best(set).logit;
    const struct sample_sums sums = sample_set_sums(set);
    const double bar = (double)s->options.typical_p * sums.total;
    const struct typical t = {set, (double)best, sample_log(sums.total) - sums.entropy};
    gather_typical(set, &t, bar);
    const uint32_t last = sample_select_weight(set, best, nextafter(bar, INFINITY), nearer, &t);
    sample_set_keep_list(set, last + 1);
}

/* ---- XTC ---- */

/* With the given probability: of those that are at least as likely as the threshold, all but the
 * least likely go. */
void sample_apply_xtc(struct sampler *s)
{
    struct sample_set *set = &s->set;
    if (!(sample_random_unit(&s->random) < (double)s->options.xtc_probability)) return;
    const float best = sample_set_best(set).logit;
    const double bar = (double)s->options.xtc_threshold * sample_set_total(set);
    const bool whole = !set->cut;
    /* At most 1 / threshold can be as likely as that; at threshold 0, all. */
    if (whole) sample_set_list_above(set, (double)best + set->temp * sample_log(bar) - 1e-3);
    uint32_t n = 0;
    while (n < set->n && sample_set_weight(set, sample_set_rank(set, n).logit, best) >= bar) n++;
    if (whole) set->cut = false;
    if (n < 2) return;
    if (!whole) {
        sample_set_drop_best(set, n - 1);
        return;
    }
    for (uint32_t r = 0; r < n - 1; r++)
        sample_set_change(set, set->list[set->n - 1 - r].id, -INFINITY);
}

/* ---- Temperature ---- */

/* The entropy as a share of the largest possible one, raised to the exponent, chooses between
 * temp - range and temp + range. */
static double dynamic_temperature(struct sampler *s)
{
    const struct sample_options *o = &s->options;
    const double temp = (double)o->temp, range = (double)o->dynatemp_range;
    const double low = temp > range ? temp - range : 0.0, high = temp + range;
    const struct sample_sums sums = sample_set_sums(&s->set);
    if (sums.n < 2) return temp;
    double share = sums.entropy / sample_log((double)sums.n);
    if (!(share > 1e-12)) share = 0.0; /* certain: smaller ones are rounding */
    if (share > 1.0) share = 1.0;
    return low + (high - low) * sample_pow(share, (double)o->dynatemp_exponent);
}

void sample_apply_temperature(struct sampler *s)
{
    const struct sample_options *o = &s->options;
    const double temp = o->dynatemp_range > 0.0f ? dynamic_temperature(s) : (double)o->temp;
    if (temp > 0.0)
        s->set.temp *= temp;
    else
        sample_set_keep_best(&s->set, 1);
}
