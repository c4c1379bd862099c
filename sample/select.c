/* sample/select.c: weights of candidates, and selection of the first candidates of a list in some
 * order, by number or by weight, without sorting it. See set.h.
 *
 * The partition has no branch on the comparison with the pivot, because the processor would
 * mispredict it: every candidate is written after those that precede the pivot, and the end of
 * these advances only if it precedes the pivot too. */
#include "sample/exp.h"
#include "sample/set.h"
#include <float.h>
#include <math.h>

/* ---- Weights ---- */

double sample_set_weight(const struct sample_set *set, float logit, float best)
{
    return sample_exp(((double)logit - (double)best) / set->temp);
}

double sample_set_inverse(double temp)
{
    const double inverse = 1.0 / temp;
    return inverse < DBL_MAX ? inverse : DBL_MAX;
}

float sample_set_scale(double temp)
{
    return (float)fmin(sample_set_inverse(temp), (double)FLT_MAX);
}

/* ---- Partitions ---- */

static void swap(struct sample_candidate *a, struct sample_candidate *b)
{
    const struct sample_candidate c = *a;
    *a = *b;
    *b = c;
}

static bool better_first(const void *unused, struct sample_candidate a, struct sample_candidate b)
{
    (void)unused;
    return sample_better(a, b);
}

/* Moves a candidate of list[n], n > 0, to its rank, after those that precede it, and returns its
 * index. Inlining removes the indirect call for the usual order. */
static inline __attribute__((always_inline)) uint32_t
partition(struct sample_candidate *list, uint32_t n, sample_first_fn *first, const void *order)
{
    struct sample_candidate *last = list + n - 1;
    uint32_t earlier = 0;
    swap(list + n / 2, last);
    const struct sample_candidate pivot = *last;
    for (uint32_t i = 0; i + 1 < n; i++) {
        const struct sample_candidate c = list[i];
        list[i] = list[earlier];
        list[earlier] = c;
        earlier += first(order, c, pivot);
    }
    swap(list + earlier, last);
    return earlier;
}

struct sample_candidate sample_select_rank(struct sample_candidate *list, uint32_t n, uint32_t r)
{
    for (;;) {
        const uint32_t place = partition(list, n, better_first, NULL);
        if (r == place) return list[place];
        if (r < place) {
            n = place;
        } else {
            list += place + 1;
            n -= place + 1;
            r -= place + 1;
        }
    }
}

enum { SHORT_LIST = 64 }; /* lists up to this length have weights in double */

double sample_select_total(const struct sample_set *set, const struct sample_candidate *list,
                           uint32_t n, float best)
{
    double total = 0.0;
    if (n <= SHORT_LIST) {
        for (uint32_t i = 0; i < n; i++) total += sample_set_weight(set, list[i].logit, best);
        return total;
    }
    const float scale = sample_set_scale(set->temp);
    for (uint32_t first = 0; first < n; first += SAMPLE_BLOCK) {
        float x[SAMPLE_BLOCK], w[SAMPLE_BLOCK];
        for (uint32_t i = 0; i < SAMPLE_BLOCK; i++)
            x[i] = first + i < n ? list[first + i].logit : -INFINITY;
        set->kernels->weigh(x, best, scale, -FLT_MAX, w);
        double part = 0.0;
        for (int i = 0; i < SAMPLE_BLOCK; i++) part += (double)w[i];
        total += part;
    }
    return total;
}

uint32_t sample_select_weight(struct sample_set *set, float best, double threshold,
                              sample_first_fn *first, const void *order)
{
    uint32_t n = set->n, at = 0;
    double sum = 0.0;
    while (n > 1) {
        struct sample_candidate *from = set->list + at;
        const uint32_t place =
            first ? partition(from, n, first, order) : partition(from, n, better_first, NULL);
        const double before = sum + sample_select_total(set, from, place, best);
        const double with = before + sample_set_weight(set, from[place].logit, best);
        if (place > 0 && before >= threshold) {
            n = place;
        } else if (with >= threshold || place + 1 == n) {
            return at + place;
        } else {
            sum = with;
            at += place + 1;
            n -= place + 1;
        }
    }
    return at;
}
