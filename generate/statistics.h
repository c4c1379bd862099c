/* generate/statistics.h: statistics of a model's predictions: how well they fit a text, and their
 * distance from those of another model.
 *
 * Contains the probability of a token from a row of logits, the divergence of two rows, means with
 * their standard errors, and quantiles; no evaluation, files or printing. All sums are in double
 * precision and in the order of the calls, so that results do not depend on threads. */
#pragma once

#include "base/error.h"

/* ---- Means ---- */

struct generate_moments { /* all zeros: no values */
    double sum, squares;
    uint64_t count;
};
void generate_moments_add(struct generate_moments *m, double x);
double generate_moments_mean(const struct generate_moments *m); /* NaN if there are no values */
/* Returns the standard error of the mean, from the sample variance; 0 for fewer than two values. */
double generate_moments_error(const struct generate_moments *m);

/* Returns the standard error of the mean of n values, of which a share `share` are 1 and the others
 * 0. */
double generate_share_error(double share, uint64_t n);

/* Returns the quantile `fraction` (0 to 1) of sorted[n], ascending, n > 0; interpolates linearly
 * between adjacent values. */
double generate_quantile(const double *sorted, uint64_t n, double fraction);

/* ---- Rows of logits ---- */

/* Returns the logarithm of the sum of exp(logits[n]), n > 0; *best is the index of the largest
 * logit, the first of equal ones. */
double generate_row_log_sum(const float *logits, uint32_t n, uint32_t *best);

/* A row of another model, with which a position is compared. */
struct generate_base_row {
    const float *value; /* [n_vocab]; NULL: no comparison */
    bool is_log; /* log-probabilities, of which those of 2^-23 and less were cut off at about -16
                  * and are left out; otherwise logits */
};

struct generate_row_score {
    double nll;      /* negative logarithm of the target's probability */
    double base_nll; /* the same of the base row; this and the following are 0 without one */
    double kl;       /* divergence from the base: sum of p_base (log p_base - log p) */
    double shift;    /* the target's probability minus its probability in the base */
    bool same_top;   /* both have the same best token */
};
struct generate_row_score generate_row_compare(const float *logits, struct generate_base_row base,
                                               uint32_t n_vocab, int32_t target);

/* ---- All positions ---- */

struct generate_statistics {
    struct generate_moments nll, base_nll, kl, shift, shift_square;
    double nll_product; /* sum of nll x base_nll */
    uint64_t n_same;
    double *kl_value,
        *shift_value; /* [room]: of each position; sorted by generate_statistics_end */
    uint64_t room;
};

/* Allocates room for `positions` comparisons. Fails with BASE_NO_MEMORY. The caller frees it, after
 * a failure too. */
bool generate_statistics_begin(struct generate_statistics *s, uint64_t positions,
                               struct base_error *err);
void generate_statistics_free(struct generate_statistics *s); /* may be all zeros */
/* Adds a position; at most `positions` calls. */
void generate_statistics_add(struct generate_statistics *s, const struct generate_row_score *score);
void generate_statistics_end(
    struct generate_statistics *s); /* sorts, so that quantiles can be read */

struct generate_estimate {
    double value, error; /* error: its standard error */
};
struct generate_estimate generate_statistics_perplexity(const struct generate_statistics *s);
struct generate_estimate generate_statistics_base_perplexity(const struct generate_statistics *s);
/* Return the logarithm of the ratio of the two perplexities, and their difference; the errors take
 * into account that both are correlated. */
struct generate_estimate generate_statistics_log_ratio(const struct generate_statistics *s);
struct generate_estimate generate_statistics_difference(const struct generate_statistics *s);
double generate_statistics_correlation(
    const struct generate_statistics *s); /* of both nll; NaN: undefined */
struct generate_estimate generate_statistics_rms_shift(const struct generate_statistics *s);
struct generate_estimate
generate_statistics_same_top(const struct generate_statistics *s); /* a share */
