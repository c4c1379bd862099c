/* sample/set_sums.c: sums over the candidates, and the draw. See set.h.
 *
 * In blocks of a vocabulary weights are float (relative error below 1e-6), the sum of a block is
 * float in a fixed order, and the sum of blocks is double. In lists sums are double, and so are
 * weights unless the list is long (select.c). */
#include "sample/exp.h"
#include "sample/set.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Blocks ---- */

/* Computes the weights of the maxima of a group's blocks. */
static void weigh_block_maxima(const struct sample_set *set, uint32_t group, float best,
                               float weight[SAMPLE_GROUP])
{
    set->kernels->weigh(set->block_max + (size_t)group * SAMPLE_GROUP, best, set->scale, -FLT_MAX,
                        weight);
}

static struct sample_block_sums sums_at(const struct sample_set *set, uint32_t b)
{
    return (struct sample_block_sums){set->sums.sum + b, set->sums.second + b, set->sums.n + b};
}

/* Sums consecutive blocks in one call, from `first` to at most `end`, and returns the first block
 * that is not summed. Skips blocks without candidates. */
static uint32_t sum_run(struct sample_set *set, uint32_t first, uint32_t end)
{
    uint32_t b = first + 1;
    if (!(set->block_max[first] > -INFINITY)) {
        set->sums.sum[first] = set->sums.second[first] = 0.0f;
        set->sums.n[first] = 0;
        return b;
    }
    const float *x = sample_set_block(set, first);
    const uint8_t place = set->place[first];
    while (b < end && set->place[b] == place && set->block_max[b] > -INFINITY) b++;
    set->kernels->sum[set->kind](x, set->block_max + first, b - first, set->scale, set->min_logit,
                                 sums_at(set, first));
    return b;
}

/* Adds the sums of a block in double, because squares may overflow float. */
static void add_moments(struct sample_set *set, uint32_t b, double top,
                        struct sample_group_sums *to)
{
    const float *x = sample_set_block(set, b);
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const double d = x[i] >= set->min_logit ? ((double)x[i] - top) / set->sum_temp : 0.0;
        to->n += x[i] >= set->min_logit;
        to->sum += d;
        to->second += d * d;
    }
}

/* Adds sums that are relative to another point, which is at distance `far` from this one and has
 * the weight w relative to it. */
static void add_weights(struct sample_group_sums *to, struct sample_group_sums own, double far,
                        double w)
{
    to->n += own.n;
    if (!(w > 0.0)) return;
    to->sum += w * own.sum;
    to->second += w * (own.second + own.sum * far);
}

static void add_distances(struct sample_group_sums *to, struct sample_group_sums own, double far)
{
    const double n = (double)own.n;
    to->n += own.n;
    to->sum += own.sum + n * far;
    to->second += own.second + far * (2.0 * own.sum + n * far);
}

/* Returns the sum of the weights of a group, as four independent sums for speed. */
static double total_of_group(const struct sample_set *set, uint32_t group,
                             const float weight[SAMPLE_GROUP])
{
    const float *sum = set->sums.sum + sample_set_group_first(group);
    double lane[4] = {0};
    for (int b = 0; b < SAMPLE_GROUP; b++) lane[b % 4] += (double)weight[b] * (double)sum[b];
    return lane[0] + lane[2] + (lane[1] + lane[3]);
}

/* Computes the sums of a group from those of its blocks. */
static void add_group(struct sample_set *set, uint32_t group)
{
    const uint32_t first = sample_set_group_first(group), end = sample_set_group_end(set, group);
    const double top = (double)set->group_max[group], inverse = sample_set_inverse(set->sum_temp);
    struct sample_group_sums to = {0};
    float weight[SAMPLE_GROUP];
    weigh_block_maxima(set, group, set->group_max[group], weight);
    if (set->kind == SAMPLE_WEIGHTS) {
        set->group[group] = (struct sample_group_sums){.sum = total_of_group(set, group, weight)};
        return;
    }
    for (uint32_t b = first; b < end; b++) {
        if (!(set->block_max[b] > -INFINITY)) continue;
        const struct sample_group_sums own = {(double)set->sums.sum[b], (double)set->sums.second[b],
                                              set->sums.n[b]};
        const double far = ((double)set->block_max[b] - top) * inverse;
        if (set->kind == SAMPLE_ENTROPY)
            add_weights(&to, own, far, (double)weight[b - first]);
        else if (set->sums.second[b] <= FLT_MAX)
            add_distances(&to, own, far);
        else
            add_moments(set, b, top, &to);
    }
    set->group[group] = to;
}

/* Updates the sums of blocks and groups. The sums for the entropy include those of the weights. */
static void sum_groups(struct sample_set *set, enum sample_block_sum kind)
{
    const bool other =
        set->temp != set->sum_temp ||
        (kind != set->kind && !(kind == SAMPLE_WEIGHTS && set->kind == SAMPLE_ENTROPY));
    if (other) {
        set->kind = kind;
        set->sum_temp = set->temp;
        set->scale = sample_set_scale(set->temp);
    }
    for (uint32_t g = 0; g < set->n_groups; g++) {
        const uint32_t first = sample_set_group_first(g), end = sample_set_group_end(set, g);
        const uint64_t stale = other ? UINT64_MAX : set->stale[g];
        if (!stale) continue;
        for (uint32_t b = first; b < end;) {
            const uint64_t rest = stale >> (b - first);
            const uint32_t skip = rest ? (uint32_t)__builtin_ctzll(rest) : SAMPLE_GROUP;
            b += skip;
            if (b >= end) break;
            const uint64_t fresh = ~(stale >> (b - first));
            const uint32_t run = fresh ? (uint32_t)__builtin_ctzll(fresh) : SAMPLE_GROUP;
            b = sum_run(set, b, b + run < end ? b + run : end);
        }
        add_group(set, g);
        set->stale[g] = 0;
    }
}

/* ---- Sums ---- */

/* Converts the sums of a distribution, relative to its best logit: the entropy of p = w / total is
 * log(total) - sum(w d) / total. */
static struct sample_sums sums_of(double total, double moment, uint64_t n)
{
    return (struct sample_sums){total, sample_log(total) - moment / total, n};
}

/* Computes the sums of the whole vocabulary, relative to its best logit, and the share of each
 * group. */
static struct sample_group_sums sum_vocabulary(struct sample_set *set, enum sample_block_sum kind)
{
    struct sample_group_sums all = {0};
    sum_groups(set, kind);
    const float best = sample_set_best(set).logit;
    for (uint32_t g = 0; g < set->n_groups; g++) {
        set->group_weight[g] = 0.0;
        if (!(set->group_max[g] > -INFINITY)) continue;
        const double far = ((double)set->group_max[g] - (double)best) / set->temp;
        if (kind == SAMPLE_MOMENTS) {
            add_distances(&all, set->group[g], far);
            continue;
        }
        const double w = sample_exp(far);
        set->group_weight[g] = w * set->group[g].sum;
        add_weights(&all, set->group[g], far, w);
    }
    return all;
}

struct sample_sums sample_set_sums(struct sample_set *set)
{
    if (!set->is_list) {
        const struct sample_group_sums all = sum_vocabulary(set, SAMPLE_ENTROPY);
        return sums_of(all.sum, all.second, all.n);
    }
    const float best = sample_set_best(set).logit;
    double total = 0.0, moment = 0.0;
    for (uint32_t r = 0; r < set->n; r++) {
        const double d = ((double)set->list[set->n - 1 - r].logit - (double)best) / set->temp;
        const double w = sample_exp(d);
        total += w;
        if (w > 0.0) moment += w * d;
    }
    return sums_of(total, moment, set->n);
}

double sample_set_total(struct sample_set *set)
{
    if (!set->is_list) return sum_vocabulary(set, SAMPLE_WEIGHTS).sum;
    return sample_select_total(set, set->list, set->n, sample_set_best(set).logit);
}

void sample_set_total_bounds(struct sample_set *set, double depth, double *low, double *high)
{
    const float best = sample_set_best(set).logit, scale = sample_set_scale(set->temp);
    const double near = sample_exp(-depth);
    double sum = 0.0, rest = 0.0;
    for (uint32_t g = 0; g < set->n_groups; g++) {
        const uint32_t first = sample_set_group_first(g), end = sample_set_group_end(set, g);
        float weight[SAMPLE_GROUP], own;
        if (!(set->group_max[g] > -INFINITY)) continue;
        set->kernels->weigh(set->block_max + first, best, scale, -FLT_MAX, weight);
        for (uint32_t b = first; b < end; b++) {
            const double w = (double)weight[b - first];
            if (w < near) {
                rest += w;
                continue;
            }
            set->kernels->sum[SAMPLE_WEIGHTS](sample_set_block(set, b), set->block_max + b, 1,
                                              scale, set->min_logit,
                                              (struct sample_block_sums){.sum = &own});
            sum += w * (double)own;
        }
    }
    *low = sum + rest; /* a block has at least one candidate and at most all of its ids */
    *high = sum + (double)SAMPLE_BLOCK * rest;
}

struct sample_moments sample_set_moments(struct sample_set *set)
{
    struct sample_group_sums all = {0};
    if (!set->is_list) all = sum_vocabulary(set, SAMPLE_MOMENTS);
    const double best = (double)sample_set_best(set).logit;
    for (uint32_t i = 0; set->is_list && i < set->n; i++) {
        const double d = ((double)set->list[i].logit - best) / set->temp;
        all.n++;
        all.sum += d;
        all.second += d * d;
    }
    const double mean = all.sum / (double)all.n;
    const double variance = all.second / (double)all.n - mean * mean;
    return (struct sample_moments){mean, variance > 0.0 ? sqrt(variance) : 0.0};
}

/* ---- Drawing ---- */

/* Returns adaptive-p's weight of a candidate with the probability p. */
static double shaped(double p, double target)
{
    const double d = fabs(p - target) * (1.0 / 0.3);
    return sample_exp(-10.0 * d * d / (1.0 + d));
}

/* Returns the weight of a candidate in a draw: adaptive-p's if there is a shape, otherwise the
 * plain one. */
static double weight_in_list(const struct sample_set *set, const struct sample_block_shape *shape,
                             float logit, float best)
{
    const double p = sample_set_weight(set, logit, best) * (double)shape->inverse;
    return shaped(p, (double)shape->target);
}

static struct sample_candidate draw_listed(struct sample_set *set, double u, double *p)
{
    const float best = sample_set_best(set).logit;
    const double total = sample_set_total(set);
    const uint32_t at = sample_select_weight(set, best, nextafter(u * total, INFINITY), NULL, NULL);
    const struct sample_candidate c = set->list[at];
    if (p) *p = sample_set_weight(set, c.logit, best) / total;
    return c;
}

static struct sample_candidate draw_listed_shaped(struct sample_set *set,
                                                  const struct sample_block_shape *shape, double u)
{
    const float best = sample_set_best(set).logit;
    double total = 0.0, sum = 0.0;
    for (uint32_t r = 0; r < set->n; r++)
        total += weight_in_list(set, shape, set->list[set->n - 1 - r].logit, best);
    uint32_t r = 0;
    for (; r + 1 < set->n; r++) {
        sum += weight_in_list(set, shape, sample_set_rank(set, r).logit, best);
        if (sum > u * total) break;
    }
    return sample_set_rank(set, r);
}

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

/* Computes the share of each block of a group. */
static void weights_of_blocks(const struct sample_set *set, const struct sample_block_shape *shape,
                              uint32_t group, float best, double share[SAMPLE_GROUP])
{
    const uint32_t first = sample_set_group_first(group), end = sample_set_group_end(set, group);
    float weight[SAMPLE_GROUP];
    weigh_block_maxima(set, group, best, weight);
    for (uint32_t b = first; b < end; b++)
        share[b - first] = (shape ? 1.0 : (double)weight[b - first]) * (double)set->sums.sum[b];
}

static struct sample_candidate draw_by_id(struct sample_set *set,
                                          const struct sample_block_shape *shape, double total,
                                          double u, double *p)
{
    const float best = sample_set_best(set).logit;
    const double threshold = u * total;
    double sum = 0.0, share[SAMPLE_BLOCK];
    float w[SAMPLE_BLOCK];
    const uint32_t group = walk(set->group_weight, set->n_groups, threshold, &sum);
    const uint32_t first = sample_set_group_first(group), end = sample_set_group_end(set, group);
    weights_of_blocks(set, shape, group, best, share);
    const uint32_t block = first + walk(share, end - first, threshold, &sum);
    const float *x = sample_set_block(set, block);
    if (shape)
        set->kernels->shape(x, shape, w);
    else
        set->kernels->weigh(x, best, set->scale, set->min_logit, w);
    for (int i = 0; i < SAMPLE_BLOCK; i++) share[i] = (double)w[i];
    const uint32_t i = walk(share, SAMPLE_BLOCK, threshold, &sum);
    if (p) *p = share[i] / total;
    return (struct sample_candidate){x[i], (int32_t)(block * SAMPLE_BLOCK + i)};
}

struct sample_candidate sample_set_draw(struct sample_set *set, double u, double *p)
{
    if (set->is_list) return draw_listed(set, u, p);
    return draw_by_id(set, NULL, sample_set_total(set), u, p);
}

/* ---- Adaptive-p ---- */

/* Most ids of a vocabulary have almost no probability. Below this one, adaptive-p's weight of p is
 * approximated linearly at 0; the relative error is below 500 p^2 = 2e-7. */
static const double unlikely = 0x1p-16;

static void shape_group(struct sample_set *set, uint32_t group,
                        const struct sample_block_shape *shape)
{
    const double d = (double)shape->target / 0.3, none = shaped(0.0, (double)shape->target);
    const double slope = none * (10.0 / 0.3) * d * (2.0 + d) / ((1.0 + d) * (1.0 + d));
    float weight[SAMPLE_GROUP], unused[SAMPLE_BLOCK];
    weigh_block_maxima(set, group, shape->top, weight);
    for (uint32_t b = sample_set_group_first(group); b < sample_set_group_end(set, group); b++) {
        const double p = (double)weight[b % SAMPLE_GROUP] * (double)shape->inverse;
        float *sum = &set->sums.sum[b];
        if (!(set->block_max[b] > -INFINITY)) continue;
        const float *x = sample_set_block(set, b);
        if (p < unlikely)
            *sum =
                (float)(none * set->kernels->count(x, set->min_logit) + slope * p * (double)*sum);
        else
            *sum = set->kernels->shape(x, shape, unused);
        set->group_weight[group] += (double)*sum;
    }
}

struct sample_candidate sample_set_draw_shaped(struct sample_set *set, float target, double u,
                                               double *p)
{
    const float best = sample_set_best(set).logit;
    const double total = sample_set_total(set);
    struct sample_block_shape shape = {best, sample_set_scale(set->temp), set->min_logit,
                                       (float)(1.0 / total), target};
    struct sample_candidate c;
    if (set->is_list) {
        c = draw_listed_shaped(set, &shape, u);
    } else {
        set->sum_temp = 0.0; /* these sums replace the cached ones of another kind */
        double sum = 0.0;
        for (uint32_t g = 0; g < set->n_groups; g++) {
            set->group_weight[g] = 0.0;
            if (set->group_max[g] > -INFINITY) shape_group(set, g, &shape);
            sum += set->group_weight[g];
        }
        c = draw_by_id(set, &shape, sum, u, NULL);
    }
    *p = sample_set_weight(set, c.logit, best) / total;
    return c;
}
