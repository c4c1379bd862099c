/* sample/set_sums.c: weights of the candidates, sums over them, and the draw. See set.h.
 *
 * In blocks of a vocabulary weights are float (relative error below 1e-6), the sum of a block is
 * float in a fixed order, and the sum of blocks is double. In lists sums are double, and so are
 * weights unless the list is long. */
#include "base/elementary.h"
#include "sample/set.h"
#include <float.h>
#include <math.h>

/* ---- Weights in lists ---- */

double sample_set_weight(const struct sample_set *set, float logit, float best)
{
    return base_exp(((double)logit - (double)best) / set->temp);
}

/* Returns 1 / temp, finite: 0 / temp must not become NaN. */
static double inverse_of(double temp)
{
    return fmin(1.0 / temp, DBL_MAX);
}

/* Returns 1 / temp, at most FLT_MAX. */
static float scale_of(double temp)
{
    return (float)fmin(inverse_of(temp), (double)FLT_MAX);
}

static double total_of(const struct sample_set *set, const struct sample_candidate *list,
                       uint32_t n, float best)
{
    enum { SHORT_LIST = 64 }; /* lists up to this length have weights in double */
    double total = 0.0;
    if (n <= SHORT_LIST) {
        for (uint32_t i = 0; i < n; i++) total += sample_set_weight(set, list[i].logit, best);
        return total;
    }
    const float scale = scale_of(set->temp);
    for (uint32_t first = 0; first < n; first += SAMPLE_BLOCK) {
        float x[SAMPLE_BLOCK], w[SAMPLE_BLOCK];
        for (uint32_t i = 0; i < SAMPLE_BLOCK; i++)
            x[i] = first + i < n ? list[first + i].logit : -INFINITY;
        set->kernels->weigh(x, best, scale, w);
        double part = 0.0;
        for (int i = 0; i < SAMPLE_BLOCK; i++) part += (double)w[i];
        total += part;
    }
    return total;
}

double sample_set_list_total(const struct sample_set *set, uint32_t n, float best)
{
    return total_of(set, set->list, n, best);
}

uint32_t sample_set_select(struct sample_set *set, uint32_t n, float best, double threshold,
                           sample_first_fn *first, const void *order)
{
    uint32_t at = 0;
    double sum = 0.0;
    while (n > 1) {
        struct sample_candidate *from = set->list + at;
        const uint32_t earlier = sample_set_partition(from, n, first, order);
        const double before = sum + total_of(set, from, earlier, best);
        const double with = before + sample_set_weight(set, from[earlier].logit, best);
        if (earlier > 0 && before >= threshold) {
            n = earlier;
        } else if (with >= threshold || earlier + 1 == n) {
            return at + earlier;
        } else {
            sum = with;
            at += earlier + 1;
            n -= earlier + 1;
        }
    }
    return at;
}

/* ---- Sums of the vocabulary ---- */

struct exp_sums { /* as sample_block_sums, relative to some logit */
    double sum, second;
    uint64_t n;
};

/* Adds sums that are relative to another logit, which is at distance `far` from this one and has
 * the weight w relative to it. */
static void add_weights(struct exp_sums *to, struct exp_sums own, double far, double w)
{
    to->n += own.n;
    if (!(w > 0.0)) return;
    to->sum += w * own.sum;
    to->second += w * (own.second + own.sum * far);
}

static void add_distances(struct exp_sums *to, struct exp_sums own, double far)
{
    const double n = (double)own.n;
    to->n += own.n;
    to->sum += own.sum + n * far;
    to->second += own.second + far * (2.0 * own.sum + n * far);
}

/* Adds the distances of a block in double, for squares that overflow float. */
static void add_moments(struct exp_sums *to, const float *x, double top, double temp)
{
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const double d = x[i] > -INFINITY ? ((double)x[i] - top) / temp : 0.0;
        to->n += x[i] > -INFINITY;
        to->sum += d;
        to->second += d * d;
    }
}

/* Returns the sums of a group relative to its best logit, and stores those of its blocks. Weights
 * without entropy have four independent sums, for speed. */
static struct exp_sums sum_group(struct sample_set *set, uint32_t group,
                                 enum sample_block_kind kind)
{
    const float *max = set->block_max + group * SAMPLE_GROUP, top = set->group_max[group];
    const float scale = scale_of(set->temp);
    float weight[SAMPLE_GROUP];
    double lane[4] = {0};
    struct exp_sums all = {0};
    set->kernels->weigh(max, top, scale, weight);
    for (uint32_t i = 0; i < SAMPLE_GROUP; i++) {
        const uint32_t b = group * SAMPLE_GROUP + i;
        set->block_sum[b] = 0.0f;
        if (!(max[i] > -INFINITY)) continue;
        const float *x = sample_set_block(set, b);
        const struct sample_block_sums s = set->kernels->sum[kind](x, max[i], scale);
        const struct exp_sums own = {(double)s.sum, (double)s.second, s.n};
        const double far = ((double)max[i] - (double)top) * inverse_of(set->temp);
        set->block_sum[b] = s.sum;
        if (kind == SAMPLE_WEIGHTS)
            lane[i % 4] += (double)weight[i] * own.sum;
        else if (kind == SAMPLE_ENTROPY)
            add_weights(&all, own, far, (double)weight[i]);
        else if (s.second <= FLT_MAX)
            add_distances(&all, own, far);
        else
            add_moments(&all, x, (double)top, set->temp);
    }
    if (kind == SAMPLE_WEIGHTS) all.sum = lane[0] + lane[2] + (lane[1] + lane[3]);
    return all;
}

/* Returns the sums of the whole vocabulary, relative to its best logit, and stores the share of
 * each group. */
static struct exp_sums sum_vocabulary(struct sample_set *set, enum sample_block_kind kind)
{
    struct exp_sums all = {0};
    const float best = sample_set_best(set).logit;
    for (uint32_t g = 0; g < set->n_groups; g++) {
        set->group_share[g] = 0.0;
        if (!(set->group_max[g] > -INFINITY)) continue;
        const struct exp_sums own = sum_group(set, g, kind);
        const double far = ((double)set->group_max[g] - (double)best) / set->temp;
        if (kind == SAMPLE_MOMENTS) {
            add_distances(&all, own, far);
            continue;
        }
        const double w = base_exp(far);
        set->group_share[g] = w * own.sum;
        add_weights(&all, own, far, w);
    }
    return all;
}

/* Returns the sums of a cut set, relative to its best logit. */
static struct exp_sums sum_list(struct sample_set *set, enum sample_block_kind kind)
{
    struct exp_sums all = {.n = set->n};
    const double best = (double)sample_set_best(set).logit;
    for (uint32_t i = 0; i < set->n; i++) {
        const double d = ((double)set->list[i].logit - best) / set->temp;
        const double w = kind == SAMPLE_MOMENTS ? d : base_exp(d);
        all.sum += w;
        if (w != 0.0) all.second += w * d;
    }
    return all;
}

static struct exp_sums sum_all(struct sample_set *set, enum sample_block_kind kind)
{
    return set->is_list ? sum_list(set, kind) : sum_vocabulary(set, kind);
}

/* The entropy of p = w / total is log(total) - sum(w d) / total. */
struct sample_sums sample_set_sums(struct sample_set *set)
{
    const struct exp_sums all = sum_all(set, SAMPLE_ENTROPY);
    return (struct sample_sums){all.sum, base_log(all.sum) - all.second / all.sum, all.n};
}

double sample_set_total(struct sample_set *set)
{
    if (!set->is_list) return sum_vocabulary(set, SAMPLE_WEIGHTS).sum;
    return total_of(set, set->list, set->n, sample_set_best(set).logit);
}

double sample_set_deviation(struct sample_set *set)
{
    const struct exp_sums all = sum_all(set, SAMPLE_MOMENTS);
    const double mean = all.sum / (double)all.n;
    const double variance = all.second / (double)all.n - mean * mean;
    return variance > 0.0 ? sqrt(variance) * set->temp : 0.0;
}

/* ---- Drawing ---- */

/* Returns the index of the first of share[n] with which *sum exceeds the threshold; *sum becomes
 * the sum before it. If none exceeds it because of rounding, the result is the last index with a
 * share. */
static uint32_t walk(const double *share, uint32_t n, double threshold, double *sum)
{
    uint32_t at = 0;
    double before = *sum;
    for (uint32_t i = 0; i < n; i++) {
        if (!(share[i] > 0.0)) continue;
        at = i;
        before = *sum;
        *sum += share[i];
        if (*sum > threshold) break;
    }
    *sum = before;
    return at;
}

/* Draws by the shares of the groups, then of the blocks, then of the ids. */
static struct sample_candidate draw_by_id(struct sample_set *set,
                                          const struct sample_block_shape *shape, double total,
                                          double u, double *p)
{
    const float best = sample_set_best(set).logit, scale = scale_of(set->temp);
    double sum = 0.0, share[SAMPLE_BLOCK];
    float w[SAMPLE_BLOCK];
    const uint32_t first = SAMPLE_GROUP * walk(set->group_share, set->n_groups, u * total, &sum);
    set->kernels->weigh(set->block_max + first, best, scale, w);
    for (uint32_t i = 0; i < SAMPLE_GROUP; i++)
        share[i] = (shape ? 1.0 : (double)w[i]) * (double)set->block_sum[first + i];
    const uint32_t block = first + walk(share, SAMPLE_GROUP, u * total, &sum);
    const float *x = sample_set_block(set, block);
    if (shape)
        set->kernels->shape(x, shape, w);
    else
        set->kernels->weigh(x, best, scale, w);
    for (int i = 0; i < SAMPLE_BLOCK; i++) share[i] = (double)w[i];
    const uint32_t i = walk(share, SAMPLE_BLOCK, u * total, &sum);
    if (p) *p = share[i] / total;
    return (struct sample_candidate){x[i], (int32_t)(block * SAMPLE_BLOCK + i)};
}

struct sample_candidate sample_set_draw(struct sample_set *set, double u, double *p)
{
    const double total = sample_set_total(set);
    if (!set->is_list) return draw_by_id(set, NULL, total, u, p);
    const float best = sample_set_best(set).logit;
    const uint32_t at =
        sample_set_select(set, set->n, best, nextafter(u * total, INFINITY), NULL, NULL);
    if (p) *p = sample_set_weight(set, set->list[at].logit, best) / total;
    return set->list[at];
}

/* ---- Adaptive-p ---- */

/* Returns adaptive-p's weight of a candidate with the probability p. */
static double shaped(double p, double target)
{
    const double d = fabs(p - target) * (1.0 / 0.3);
    return base_exp(-10.0 * d * d / (1.0 + d));
}

static double shaped_in_list(const struct sample_set *set, const struct sample_block_shape *shape,
                             uint32_t r)
{
    const double p = sample_set_weight(set, set->list[r].logit, shape->top);
    return shaped(p * (double)shape->inverse, (double)shape->target);
}

static struct sample_candidate draw_listed_shaped(struct sample_set *set,
                                                  const struct sample_block_shape *shape, double u)
{
    double total = 0.0, sum = 0.0;
    uint32_t r = 0;
    sample_set_sort(set);
    for (uint32_t i = 0; i < set->n; i++) total += shaped_in_list(set, shape, i);
    while (r + 1 < set->n && (sum += shaped_in_list(set, shape, r)) <= u * total) r++;
    return set->list[r];
}

/* Most ids of a vocabulary have almost no probability. Below this one, adaptive-p's weight of p is
 * approximated linearly at 0; the relative error is below 500 p^2 = 2e-7. */
static const double unlikely = 0x1p-16;

/* Replaces the sums of a group's blocks by those of adaptive-p's weights. Returns their sum. */
static double shape_group(struct sample_set *set, uint32_t group,
                          const struct sample_block_shape *shape)
{
    const double d = (double)shape->target / 0.3, none = shaped(0.0, (double)shape->target);
    const double slope = none * (10.0 / 0.3) * d * (2.0 + d) / ((1.0 + d) * (1.0 + d));
    const float *max = set->block_max + group * SAMPLE_GROUP;
    float weight[SAMPLE_GROUP], unused[SAMPLE_BLOCK], *sum = set->block_sum + group * SAMPLE_GROUP;
    double all = 0.0;
    set->kernels->weigh(max, shape->top, shape->scale, weight);
    for (uint32_t i = 0; i < SAMPLE_GROUP; i++) {
        if (!(max[i] > -INFINITY)) continue;
        const double p = (double)weight[i] * (double)shape->inverse;
        const float *x = sample_set_block(set, group * SAMPLE_GROUP + i);
        if (p < unlikely)
            sum[i] = (float)(none * __builtin_popcountll(set->kernels->reach(x, -FLT_MAX)) +
                             slope * p * (double)sum[i]);
        else
            sum[i] = set->kernels->shape(x, shape, unused);
        all += (double)sum[i];
    }
    return all;
}

struct sample_candidate sample_set_draw_shaped(struct sample_set *set, float target, double u,
                                               double *p)
{
    const float best = sample_set_best(set).logit;
    const double total = sample_set_total(set);
    const struct sample_block_shape shape = {best, scale_of(set->temp), (float)(1.0 / total),
                                             target};
    struct sample_candidate c;
    if (set->is_list) {
        c = draw_listed_shaped(set, &shape, u);
    } else {
        double sum = 0.0;
        for (uint32_t g = 0; g < set->n_groups; g++)
            sum += set->group_share[g] =
                set->group_max[g] > -INFINITY ? shape_group(set, g, &shape) : 0.0;
        c = draw_by_id(set, &shape, sum, u, NULL);
    }
    *p = sample_set_weight(set, c.logit, best) / total;
    return c;
}
