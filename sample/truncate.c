/* sample/truncate.c: rules that remove candidates: top-k, top-p, min-p, typical, top-n-sigma, XTC;
 * and temperature, which keeps one candidate at 0.
 *
 * Each rule works on an uncut vocabulary without sorting it: it finds a threshold and removes the
 * candidates below. Sources of the formulas: docs/sampling.md. */
#include "sample/chain.h"
#include "sample/exp.h"
#include <math.h>

static void apply_top_k(struct sampler *s)
{
    sample_set_keep_best(&s->set, (uint32_t)s->options.top_k);
}

static bool has_top_k(const struct sample_options *o)
{
    return o->top_k > 0;
}

const struct sample_stage sample_stage_top_k = {.name = "top_k",
                                                .parameter = "top_k",
                                                .active = has_top_k,
                                                .apply = apply_top_k,
                                                .truncates = true,
                                                .keeps_best = true,
                                                .usually_on = true};

/* Keeps the fewest best candidates whose total probability is at least top_p. Logits near the best
 * one usually make up nearly all of the vocabulary's sum, so they are summed first. */
static void apply_top_p(struct sampler *s)
{
    static const double depths[] = {6.0, 9.0, 12.0, 15.0, 20.0, 32.0, INFINITY};
    struct sample_set *set = &s->set;
    const float best = sample_set_best(set).logit;
    const double threshold = (double)s->options.top_p * sample_set_total(set);
    for (size_t i = 0; !set->is_list; i++) {
        sample_set_list_above(set, (double)best - depths[i] * set->temp);
        set->is_list =
            isinf(depths[i]) || sample_select_total(set, set->list, set->n, best) >= threshold;
    }
    sample_set_keep_list(set, sample_select_weight(set, best, threshold, NULL, NULL) + 1);
}

static bool has_top_p(const struct sample_options *o)
{
    return o->top_p < 1.0f;
}

const struct sample_stage sample_stage_top_p = {.name = "top_p",
                                                .parameter = "top_p",
                                                .active = has_top_p,
                                                .apply = apply_top_p,
                                                .truncates = true,
                                                .keeps_best = true,
                                                .usually_on = true};

/* Keeps the candidates with at least min_p times the probability of the best one. */
static void apply_min_p(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const double best = (double)sample_set_best(set).logit;
    sample_set_keep_above(set, best + set->temp * sample_log((double)s->options.min_p));
}

static bool has_min_p(const struct sample_options *o)
{
    return o->min_p > 0.0f;
}

const struct sample_stage sample_stage_min_p = {.name = "min_p",
                                                .parameter = "min_p",
                                                .active = has_min_p,
                                                .apply = apply_min_p,
                                                .truncates = true,
                                                .keeps_best = true,
                                                .usually_on = true};

/* Keeps the logits at most n standard deviations below the best one. */
static void apply_top_n_sigma(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const double best = (double)sample_set_best(set).logit;
    const double deviation = sample_set_moments(set).deviation * set->temp;
    sample_set_keep_above(set, best - (double)s->options.top_n_sigma * deviation);
}

static bool has_top_n_sigma(const struct sample_options *o)
{
    return o->top_n_sigma > 0.0f;
}

const struct sample_stage sample_stage_top_n_sigma = {.name = "top_n_sigma",
                                                      .parameter = "top_n_sigma",
                                                      .active = has_top_n_sigma,
                                                      .apply = apply_top_n_sigma,
                                                      .truncates = true,
                                                      .keeps_best = true};

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

/* Lists every candidate that may be kept: those within `reach` of the centre. `reach` grows until
 * their total probability is at least the threshold. */
static void gather_typical(struct sample_set *set, const struct typical *t, double threshold)
{
    for (double reach = 1.0 - t->centre; !set->is_list; reach += reach / 4) {
        const bool all = reach > 1000.0;
        sample_set_list_above(set, all ? -INFINITY : t->best + set->temp * (t->centre - reach));
        set->is_list =
            all || sample_select_total(set, set->list, set->n, (float)t->best) > threshold;
    }
}

static void apply_typical(struct sampler *s)
{
    struct sample_set *set = &s->set;
    const float best = sample_set_best(set).logit;
    const struct sample_sums sums = sample_set_sums(set);
    const double threshold = (double)s->options.typical_p * sums.total;
    const struct typical t = {set, (double)best, sample_log(sums.total) - sums.entropy};
    gather_typical(set, &t, threshold);
    const uint32_t last =
        sample_select_weight(set, best, nextafter(threshold, INFINITY), nearer, &t);
    sample_set_keep_list(set, last + 1);
}

static bool has_typical(const struct sample_options *o)
{
    return o->typical_p < 1.0f;
}

const struct sample_stage sample_stage_typical = {.name = "typ_p",
                                                  .parameter = "typical_p",
                                                  .active = has_typical,
                                                  .apply = apply_typical,
                                                  .truncates = true};

/* ---- XTC ---- */

/* Lists the candidates whose weight is at least `low` and returns their number; *n_high is the
 * number of those with at least `high`. */
static uint32_t list_likely(struct sample_set *set, double low, double high, uint32_t *n_high)
{
    const float best = sample_set_best(set).logit;
    uint32_t n = 0;
    *n_high = 0;
    /* At most 1 / threshold candidates can be this likely; all can if the threshold is 0. */
    if (!set->is_list)
        sample_set_list_above(set, (double)best + set->temp * sample_log(low) - 1e-3);
    for (; n < set->n; n++) {
        const double weight = sample_set_weight(set, sample_set_rank(set, n).logit, best);
        if (weight < low) break;
        *n_high += weight >= high;
    }
    return n;
}

/* Returns the number of candidates at least as likely as the threshold; lists them if the set is
 * uncut. Computes the total only as precisely as the result requires. */
static uint32_t count_likely(struct sample_set *set, double threshold)
{
    static const double depths[] = {5.0, 9.0};
    const double rounding = 1e-5; /* more than the error of sums of weights */
    uint32_t n, n_high;
    double low, high;
    for (size_t i = 0; !set->is_list && i < sizeof depths / sizeof depths[0]; i++) {
        sample_set_total_bounds(set, depths[i], &low, &high);
        n = list_likely(set, threshold * low * (1.0 - rounding),
                        threshold * high * (1.0 + rounding), &n_high);
        if (n == n_high || n < 2) return n;
        set->is_list = false;
    }
    low = threshold * sample_set_total(set);
    return list_likely(set, low, low, &n_high);
}

/* With the given probability, removes all candidates that are at least as likely as the threshold,
 * except the least likely of them. */
static void apply_xtc(struct sampler *s)
{
    struct sample_set *set = &s->set;
    if (!(sample_random_unit(&s->random) < (double)s->options.xtc_probability)) return;
    const bool whole = !set->is_list;
    const uint32_t n = count_likely(set, (double)s->options.xtc_threshold);
    if (whole) set->is_list = false;
    if (n < 2) return;
    if (!whole) {
        sample_set_remove_best(set, n - 1);
        return;
    }
    for (uint32_t r = 0; r < n - 1; r++)
        sample_set_change(set, set->list[set->n - 1 - r].id, -INFINITY);
}

static bool has_xtc(const struct sample_options *o)
{
    return o->xtc_probability > 0.0f && o->xtc_threshold <= 0.5f;
}

const struct sample_stage sample_stage_xtc = {.name = "xtc",
                                              .parameter = "xtc_probability",
                                              .active = has_xtc,
                                              .apply = apply_xtc,
                                              .truncates = true};

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
    double share = sums.entropy / sample_log((double)sums.n);
    if (!(share > 1e-12)) share = 0.0; /* a share near 0 is only rounding error */
    if (share > 1.0) share = 1.0;
    return low + (high - low) * sample_pow(share, (double)o->dynatemp_exponent);
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

static bool has_temperature(const struct sample_options *o)
{
    return o->temp != 1.0f || o->dynatemp_range > 0.0f;
}

const struct sample_stage sample_stage_temperature = {.name = "temperature",
                                                      .parameter = "temp",
                                                      .active = has_temperature,
                                                      .apply = apply_temperature,
                                                      .usually_on = true};
