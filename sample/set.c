/* sample/set.c: the candidates of one call. See set.h.
 *
 * Passes over the vocabulary are plain loops in blocks with a fixed order of additions: compilers
 * make vectors of them and every machine gets the same bits. There weights are float (relative
 * error below 1e-6, sums of blocks double); in lists they are double. */
#include "sample/set.h"
#include "base/size.h"
#include "sample/exp.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool sample_set_init(struct sample_set *set, uint32_t n_vocab, struct base_error *err)
{
    const uint32_t n_blocks = (n_vocab + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
    *set = (struct sample_set){.n_vocab = n_vocab,
                               .n_blocks = n_blocks,
                               .temp = 1.0,
                               .kernels = sample_block_kernels(false)};
    set->logit = malloc((size_t)n_blocks * SAMPLE_BLOCK * sizeof *set->logit);
    set->bound = malloc(n_blocks * sizeof *set->bound);
    set->share = malloc(n_blocks * sizeof *set->share);
    set->room = malloc(n_vocab * sizeof *set->room);
    if (!set->logit || !set->bound || !set->share || !set->room)
        return base_fail(err, BASE_NO_MEMORY, "no memory to sample from %u tokens", n_vocab);
    return true;
}

void sample_set_free(struct sample_set *set)
{
    free(set->logit);
    free(set->bound);
    free(set->share);
    free(set->room);
    *set = (struct sample_set){0};
}

/* ---- Filling ---- */

float sample_saturate(double logit)
{
    if (logit > (double)FLT_MAX) return FLT_MAX;
    if (logit < (double)-FLT_MAX) return -FLT_MAX;
    return (float)logit;
}

/* Makes the ids impossible whose bit is not set, and returns a bound of the others. A few holes,
 * the usual case, are made one by one under the bound that was; more of them cost a pass. */
static float mask_block(float *x, uint64_t allowed, float bound)
{
    uint64_t holes = ~allowed;
    for (int i = 0; i < 4; i++, holes &= holes - 1) {
        if (holes == 0) return bound;
        x[__builtin_ctzll(holes)] = -INFINITY;
    }
    if (holes == 0) return bound;
    for (int half = 0; half < SAMPLE_BLOCK; half += 32) {
        const uint32_t bits = (uint32_t)(allowed >> half);
        for (int i = 0; i < 32; i++) x[half + i] = bits & 1u << i ? x[half + i] : -INFINITY;
    }
    return sample_block_largest(x);
}

static float empty_block(float *x)
{
    for (int i = 0; i < SAMPLE_BLOCK; i++) x[i] = -INFINITY;
    return -INFINITY;
}

void sample_set_load(struct sample_set *set, const float *logits, const uint64_t *allowed)
{
    set->cut = false;
    set->temp = 1.0;
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        float *to = set->logit + (size_t)b * SAMPLE_BLOCK, last[SAMPLE_BLOCK];
        const float *from = logits + (size_t)b * SAMPLE_BLOCK;
        const uint32_t n = set->n_vocab - b * SAMPLE_BLOCK;
        if (allowed && allowed[b] == 0) {
            set->bound[b] = empty_block(to);
            continue;
        }
        if (n < SAMPLE_BLOCK) {
            for (int i = 0; i < SAMPLE_BLOCK; i++) last[i] = -INFINITY;
            memcpy(last, from, n * sizeof *from);
            from = last;
        }
        set->bound[b] = sample_block_copy(to, from);
        if (allowed && allowed[b] != UINT64_MAX)
            set->bound[b] = mask_block(to, allowed[b], set->bound[b]);
    }
}

void sample_set_change(struct sample_set *set, int32_t id, float logit)
{
    float *bound = &set->bound[(uint32_t)id / SAMPLE_BLOCK];
    set->logit[id] = logit;
    if (logit > *bound) *bound = logit;
}

/* ---- Order ---- */

static bool before(struct sample_candidate a, struct sample_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Restores a heap below index i; the root is the best candidate, or the worst. */
static void sift(struct sample_candidate *heap, uint32_t n, uint32_t i, bool best_first)
{
    struct sample_candidate moving = heap[i];
    for (;;) {
        uint64_t child = 2 * (uint64_t)i + 1;
        if (child >= n) break;
        if (child + 1 < n && before(heap[child + 1], heap[child]) == best_first) child++;
        if (before(heap[child], moving) != best_first) break;
        heap[i] = heap[child];
        i = (uint32_t)child;
    }
    heap[i] = moving;
}

static void heapify(struct sample_candidate *heap, uint32_t n, bool best_first)
{
    for (uint32_t i = n / 2; i-- > 0;) sift(heap, n, i, best_first);
}

/* list[0..n) is the set from now on, in no order. */
static void begin_list(struct sample_set *set, uint32_t n)
{
    set->cut = true;
    set->n = n;
    set->n_ranked = 0;
    heapify(set->list, n, true);
}

void sample_set_keep_list(struct sample_set *set, uint32_t n)
{
    begin_list(set, n);
}

/* Sorts as far as asked: the heap gives its root to the place behind its end, so rank r lies at
 * list[n - 1 - r]. */
struct sample_candidate sample_set_rank(struct sample_set *set, uint32_t r)
{
    while (set->n_ranked <= r) {
        uint32_t last = set->n - 1 - set->n_ranked;
        struct sample_candidate best = set->list[0];
        set->list[0] = set->list[last];
        set->list[last] = best;
        sift(set->list, last, 0, true);
        set->n_ranked++;
    }
    return set->list[set->n - 1 - r];
}

/* Bounds may be too large where logits were lowered: then a block is looked at in vain. */
struct sample_candidate sample_set_best(struct sample_set *set)
{
    if (set->cut && set->n == 0) return (struct sample_candidate){-INFINITY, -1};
    if (set->cut) return sample_set_rank(set, 0);
    float best = -INFINITY;
    int32_t id = -1;
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        if (!(set->bound[b] > best)) continue;
        const float *x = set->logit + (size_t)b * SAMPLE_BLOCK;
        const float own = sample_block_largest(x);
        if (!(own > best)) continue;
        int i = 0;
        while (x[i] != own) i++;
        best = own;
        id = (int32_t)(b * SAMPLE_BLOCK) + i;
    }
    return (struct sample_candidate){best, id};
}

/* ---- Cuts ---- */

/* Of a cut set: the best n, which must be ranked. */
static void keep_ranks(struct sample_set *set, uint32_t n)
{
    set->list += set->n - n;
    set->n = n;
    if (set->n_ranked > n) set->n_ranked = n;
}

/* A worst-first heap of k keeps the bar; blocks whose largest logit is not above it cannot hold a
 * better one, because of equal logits the earlier id is better. */
void sample_set_keep_best(struct sample_set *set, uint32_t k)
{
    if (set->cut) {
        if (k >= set->n) return;
        if (k > 0) sample_set_rank(set, k - 1);
        keep_ranks(set, k);
        return;
    }
    struct sample_candidate *heap = set->list = set->room;
    uint32_t n = 0;
    for (uint32_t b = 0; k > 0 && b < set->n_blocks; b++) {
        const float bar = n == k ? heap[0].logit : -INFINITY;
        if (!(set->bound[b] > bar)) continue;
        for (uint32_t id = b * SAMPLE_BLOCK; id < (b + 1) * SAMPLE_BLOCK; id++) {
            if (!(set->logit[id] > -INFINITY)) continue;
            struct sample_candidate c = {set->logit[id], (int32_t)id};
            if (n < k) {
                heap[n++] = c;
                if (n == k) heapify(heap, n, false);
            } else if (before(c, heap[0])) {
                heap[0] = c;
                sift(heap, n, 0, false);
            }
        }
    }
    begin_list(set, n);
}

void sample_set_list_above(struct sample_set *set, double bar)
{
    if (set->cut) {
        uint32_t r = 0;
        while (r < set->n && (double)sample_set_rank(set, r).logit >= bar) r++;
        keep_ranks(set, r);
        return;
    }
    set->list = set->room;
    uint32_t n = 0;
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        if (!((double)set->bound[b] >= bar)) continue;
        for (uint32_t id = b * SAMPLE_BLOCK; id < (b + 1) * SAMPLE_BLOCK; id++)
            if ((double)set->logit[id] >= bar && set->logit[id] > -INFINITY)
                set->list[n++] = (struct sample_candidate){set->logit[id], (int32_t)id};
    }
    begin_list(set, n);
}

static uint32_t count_above(const struct sample_set *set, double bar)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        const float *x = set->logit + (size_t)b * SAMPLE_BLOCK;
        if (!((double)set->bound[b] >= bar)) continue;
        for (int i = 0; i < SAMPLE_BLOCK; i++) n += x[i] > -INFINITY && (double)x[i] >= bar;
    }
    return n;
}

void sample_set_keep_above(struct sample_set *set, double bar)
{
    if (set->cut || count_above(set, bar) <= SAMPLE_LONG_LIST) {
        sample_set_list_above(set, bar);
        return;
    }
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        float *x = set->logit + (size_t)b * SAMPLE_BLOCK;
        for (int i = 0; i < SAMPLE_BLOCK; i++) x[i] = (double)x[i] >= bar ? x[i] : -INFINITY;
        if (!((double)set->bound[b] >= bar)) set->bound[b] = -INFINITY;
    }
}

void sample_set_drop_best(struct sample_set *set, uint32_t n)
{
    if (n > 0) sample_set_rank(set, n - 1);
    set->n -= n;
    set->n_ranked -= n;
}

/* ---- Changes ---- */

void sample_set_adjust(struct sample_set *set, const int32_t *ids, uint32_t n,
                       sample_change_fn *change, const void *state)
{
    sample_set_settle(set);
    if (!set->cut) {
        for (uint32_t i = 0; i < n; i++)
            if (set->logit[ids[i]] > -INFINITY)
                sample_set_change(set, ids[i], change(state, ids[i], set->logit[ids[i]]));
        return;
    }
    for (uint32_t i = 0; i < set->n; i++)
        set->list[i].logit = change(state, set->list[i].id, set->list[i].logit);
    begin_list(set, set->n);
}

void sample_set_settle(struct sample_set *set)
{
    if (set->temp == 1.0) return;
    if (set->cut) {
        for (uint32_t i = 0; i < set->n; i++)
            set->list[i].logit = sample_saturate((double)set->list[i].logit / set->temp);
        begin_list(set, set->n);
    } else {
        for (uint32_t i = 0; i < set->n_vocab; i++)
            if (set->logit[i] > -INFINITY)
                set->logit[i] = sample_saturate((double)set->logit[i] / set->temp);
        for (uint32_t b = 0; b < set->n_blocks; b++)
            set->bound[b] = sample_block_largest(set->logit + (size_t)b * SAMPLE_BLOCK);
    }
    set->temp = 1.0;
}

/* ---- Sums ---- */

double sample_set_weight(const struct sample_set *set, float logit, float best)
{
    return sample_exp(((double)logit - (double)best) / set->temp);
}

/* A tiny temperature must not turn 0 / temp into NaN. */
struct sample_block_sums sample_set_weigh_block(const struct sample_set *set, uint32_t block,
                                                float best, float weight[SAMPLE_BLOCK])
{
    const double inverse = 1.0 / set->temp;
    const float scale = inverse < (double)FLT_MAX ? (float)inverse : FLT_MAX;
    return set->kernels->weigh(set->logit + (size_t)block * SAMPLE_BLOCK, best, scale, weight);
}

/* The entropy of p = w / total is log(total) - sum(w d) / total. */
struct sample_sums sample_set_sums(struct sample_set *set)
{
    const float best = sample_set_best(set).logit;
    double total = 0.0, moment = 0.0;
    for (uint32_t r = 0; set->cut && r < set->n; r++) {
        const double d = ((double)set->list[set->n - 1 - r].logit - (double)best) / set->temp;
        const double w = sample_exp(d);
        total += w;
        if (w > 0.0) moment += w * d;
    }
    for (uint32_t b = 0; !set->cut && b < set->n_blocks; b++) {
        float w[SAMPLE_BLOCK];
        const struct sample_block_sums own = sample_set_weigh_block(set, b, best, w);
        total += set->share[b] = (double)own.total;
        moment += (double)own.moment;
    }
    return (struct sample_sums){total, sample_log(total) - moment / total};
}

struct sample_moments sample_set_moments(struct sample_set *set)
{
    const double best = (double)sample_set_best(set).logit;
    double n = 0.0, sum = 0.0, squares = 0.0;
    for (uint32_t b = 0; !set->cut && b < set->n_blocks; b++) {
        const struct sample_block_moments own =
            set->kernels->moments(set->logit + (size_t)b * SAMPLE_BLOCK, best);
        n += own.n;
        sum += own.sum;
        squares += own.squares;
    }
    for (uint32_t i = 0; set->cut && i < set->n; i++) {
        const double d = (double)set->list[i].logit - best;
        n += 1.0;
        sum += d;
        squares += d * d;
    }
    const double mean = sum / n, variance = squares / n - mean * mean;
    return (struct sample_moments){mean / set->temp,
                                   variance > 0.0 ? sqrt(variance) / set->temp : 0.0, (uint64_t)n};
}

/* ---- Drawing ---- */

static int32_t draw_ranked(struct sample_set *set, double u, double *p)
{
    const float best = sample_set_best(set).logit;
    double total = 0.0, sum = 0.0;
    for (uint32_t r = 0; r < set->n; r++)
        total += sample_set_weight(set, set->list[set->n - 1 - r].logit, best);
    uint32_t r = 0;
    for (; r + 1 < set->n; r++) {
        sum += sample_set_weight(set, sample_set_rank(set, r).logit, best);
        if (sum > u * total) break;
    }
    const struct sample_candidate c = sample_set_rank(set, r);
    if (p) *p = sample_set_weight(set, c.logit, best) / total;
    return c.id;
}

/* Rounding may leave u beyond the last block, or beyond the last id of one: the last with a share
 * is taken. */
static int32_t draw_by_id(struct sample_set *set, double u, double *p)
{
    const float best = sample_set_best(set).logit;
    const double total = sample_set_sums(set).total, bar = u * total;
    double sum = 0.0;
    uint32_t block = 0;
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        if (!(set->share[b] > 0.0)) continue;
        block = b;
        if (sum + set->share[b] > bar) break;
        sum += set->share[b];
    }
    float w[SAMPLE_BLOCK];
    sample_set_weigh_block(set, block, best, w);
    int chosen = 0;
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        if (!(w[i] > 0.0f)) continue;
        chosen = i;
        sum += (double)w[i];
        if (sum > bar) break;
    }
    if (p) *p = (double)w[chosen] / total;
    return (int32_t)(block * SAMPLE_BLOCK) + chosen;
}

int32_t sample_set_draw(struct sample_set *set, double u, double *p)
{
    return set->cut ? draw_ranked(set, u, p) : draw_by_id(set, u, p);
}
