/* sample/select.c: the first candidates of a list in some order, by number or by weight, without
 * sorting it. See set.h.
 *
 * Nobody can guess where a candidate belongs: so each is put to those that come first, and stays
 * there if it is one of them. */
#include "sample/set.h"
#include <float.h>
#include <math.h>

static void swap(struct sample_candidate *a, struct sample_candidate *b)
{
    const struct sample_candidate c = *a;
    *a = *b;
    *b = c;
}

struct sample_candidate sample_select_rank(struct sample_candidate *list, uint32_t n, uint32_t r)
{
    for (;;) {
        struct sample_candidate *last = list + n - 1;
        uint32_t better = 0;
        swap(list + n / 2, last);
        const struct sample_candidate pivot = *last;
        for (uint32_t i = 0; i + 1 < n; i++) {
            const struct sample_candidate c = list[i];
            list[i] = list[better];
            list[better] = c;
            better += sample_before(c, pivot);
        }
        swap(list + better, last);
        if (r == better) return pivot;
        if (r < better) {
            n = better;
        } else {
            list += better + 1;
            n -= better + 1;
            r -= better + 1;
        }
    }
}

enum { SHORT_LIST = 64 }; /* candidates whose weights are double */

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

static bool better_first(const void *unused, struct sample_candidate a, struct sample_candidate b)
{
    (void)unused;
    return sample_before(a, b);
}

uint32_t sample_select_weight(struct sample_set *set, float best, double bar,
                              sample_first_fn *first, const void *order)
{
    struct sample_candidate *list = set->list;
    uint32_t n = set->n, at = 0;
    double sum = 0.0;
    if (!first) first = better_first;
    while (n > 1) {
        struct sample_candidate *from = list + at, *last = from + n - 1;
        uint32_t earlier = 0;
        swap(from + n / 2, last);
        const struct sample_candidate pivot = *last;
        for (uint32_t i = 0; i + 1 < n; i++) {
            const struct sample_candidate c = from[i];
            from[i] = from[earlier];
            from[earlier] = c;
            earlier += first(order, c, pivot);
        }
        swap(from + earlier, last);
        const double before = sum + sample_select_total(set, from, earlier, best);
        const double with = before + sample_set_weight(set, pivot.logit, best);
        if (earlier > 0 && before >= bar) {
            n = earlier;
        } else if (with >= bar || earlier + 1 == n) {
            return at + earlier;
        } else {
            sum = with;
            at += earlier + 1;
            n -= earlier + 1;
        }
    }
    return at;
}
