/* generate/statistics.c: statistics of predictions. See generate/statistics.h. */
#include "generate/statistics.h"
#include "base/size.h"
#include <math.h>
#include <stdlib.h>

/* ---- Means ---- */

void generate_moments_add(struct generate_moments *m, double x)
{
    m->sum += x;
    m->squares += x * x;
    m->count++;
}

double generate_moments_mean(const struct generate_moments *m)
{
    return m->sum / (double)m->count;
}

double generate_moments_error(const struct generate_moments *m)
{
    if (m->count < 2) return 0;
    const double mean = generate_moments_mean(m);
    const double variance = m->squares / (double)m->count - mean * mean;
    return variance > 0 ? sqrt(variance / (double)(m->count - 1)) : 0;
}

double generate_share_error(double share, uint64_t n)
{
    return n < 2 ? 0 : sqrt(share * (1 - share) / (double)(n - 1));
}

double generate_quantile(const double *sorted, uint64_t n, double fraction)
{
    if (fraction <= 0) return sorted[0];
    if (fraction >= 1) return sorted[n - 1];
    const double place = fraction * (double)(n - 1);
    const uint64_t i = (uint64_t)place;
    const double part = place - (double)i;
    return i + 1 < n ? (1 - part) * sorted[i] + part * sorted[i + 1] : sorted[n - 1];
}

/* ---- Rows of logits ---- */

static uint32_t best_of(const float *value, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (value[i] > value[best]) best = i;
    return best;
}

double generate_row_log_sum(const float *logits, uint32_t n, uint32_t *best)
{
    *best = best_of(logits, n);
    const double highest = (double)logits[*best];
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)logits[i] - highest);
    return highest + log(sum);
}

/* Saved probabilities of 16 bits do not represent logarithms below this. */
static const double least_log = -16;

struct generate_row_score generate_row_compare(const float *logits, struct generate_base_row base,
                                               uint32_t n_vocab, int32_t target)
{
    uint32_t top, base_top;
    const double total = generate_row_log_sum(logits, n_vocab, &top);
    struct generate_row_score s = {.nll = total - (double)logits[target]};
    if (!base.value) return s;
    double base_total = 0;
    if (base.is_log)
        base_top = best_of(base.value, n_vocab);
    else
        base_total = generate_row_log_sum(base.value, n_vocab, &base_top);
    for (uint32_t i = 0; i < n_vocab; i++) {
        const double log_p = (double)base.value[i] - base_total;
        if (base.is_log && log_p <= least_log) continue;
        const double p = exp(log_p);
        if (p > 0) s.kl += p * (log_p - ((double)logits[i] - total));
    }
    s.base_nll = base_total - (double)base.value[target];
    s.shift = exp(-s.nll) - exp(-s.base_nll);
    s.same_top = top == base_top;
    return s;
}

/* ---- All positions ---- */

bool generate_statistics_begin(struct generate_statistics *s, uint64_t positions,
                               struct base_error *err)
{
    uint64_t bytes;
    *s = (struct generate_statistics){.room = positions};
    if (base_mul(positions, sizeof *s->kl_value, &bytes)) {
        s->kl_value = malloc(bytes + 1);
        s->shift_value = malloc(bytes + 1);
    }
    return (s->kl_value && s->shift_value) ||
           base_fail(err, BASE_NO_MEMORY, "not enough memory to compare %llu positions",
                     (unsigned long long)positions);
}

void generate_statistics_free(struct generate_statistics *s)
{
    free(s->kl_value);
    free(s->shift_value);
    *s = (struct generate_statistics){0};
}

void generate_statistics_add(struct generate_statistics *s, const struct generate_row_score *score)
{
    const uint64_t i = s->nll.count;
    s->kl_value[i] = score->kl;
    s->shift_value[i] = score->shift;
    generate_moments_add(&s->nll, score->nll);
    generate_moments_add(&s->base_nll, score->base_nll);
    generate_moments_add(&s->kl, score->kl);
    generate_moments_add(&s->shift, score->shift);
    generate_moments_add(&s->shift_square, score->shift * score->shift);
    s->nll_product += score->nll * score->base_nll;
    s->n_same += score->same_top;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void generate_statistics_end(struct generate_statistics *s)
{
    qsort(s->kl_value, s->nll.count, sizeof *s->kl_value, by_value);
    qsort(s->shift_value, s->nll.count, sizeof *s->shift_value, by_value);
}

static struct generate_estimate perplexity_of(const struct generate_moments *nll)
{
    const double ppl = exp(generate_moments_mean(nll));
    return (struct generate_estimate){ppl, ppl * generate_moments_error(nll)};
}

struct generate_estimate generate_statistics_perplexity(const struct generate_statistics *s)
{
    return perplexity_of(&s->nll);
}

struct generate_estimate generate_statistics_base_perplexity(const struct generate_statistics *s)
{
    return perplexity_of(&s->base_nll);
}

/* Returns the covariance of the means of both nll. */
static double covariance(const struct generate_statistics *s)
{
    const double n = (double)s->nll.count;
    if (s->nll.count < 2) return 0;
    return (s->nll_product / n - (s->nll.sum / n) * (s->base_nll.sum / n)) / (n - 1);
}

/* Returns the standard error of the difference of two values with the standard errors a and b. */
static double difference_error(double a, double b, double covariance)
{
    const double variance = a * a + b * b - 2 * covariance;
    return variance > 0 ? sqrt(variance) : 0;
}

struct generate_estimate generate_statistics_log_ratio(const struct generate_statistics *s)
{
    return (struct generate_estimate){
        generate_moments_mean(&s->nll) - generate_moments_mean(&s->base_nll),
        difference_error(generate_moments_error(&s->nll), generate_moments_error(&s->base_nll),
                         covariance(s))};
}

struct generate_estimate generate_statistics_difference(const struct generate_statistics *s)
{
    const struct generate_estimate a = generate_statistics_perplexity(s);
    const struct generate_estimate b = generate_statistics_base_perplexity(s);
    return (struct generate_estimate){
        a.value - b.value, difference_error(a.error, b.error, a.value * b.value * covariance(s))};
}

double generate_statistics_correlation(const struct generate_statistics *s)
{
    return covariance(s) / (generate_moments_error(&s->nll) * generate_moments_error(&s->base_nll));
}

struct generate_estimate generate_statistics_rms_shift(const struct generate_statistics *s)
{
    const double rms = sqrt(generate_moments_mean(&s->shift_square));
    return (struct generate_estimate){
        rms, rms > 0 ? generate_moments_error(&s->shift_square) / (2 * rms) : 0};
}

struct generate_estimate generate_statistics_same_top(const struct generate_statistics *s)
{
    const double share = (double)s->n_same / (double)s->nll.count;
    return (struct generate_estimate){share, generate_share_error(share, s->nll.count)};
}
