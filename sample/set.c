/* sample/set.c: the candidates of one call: their order, changes and cuts. See set.h.
 *
 * The partition has no branch on the comparison with the pivot, because the processor would
 * mispredict it: every candidate is written after those that precede the pivot, and the end of
 * these advances only if it precedes the pivot too. */
#include "sample/set.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool sample_set_init(struct sample_set *set, uint32_t n_vocab, enum cpu_level level,
                     struct base_error *err)
{
    const uint32_t n_blocks = (n_vocab + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
    const uint32_t n_groups = (n_blocks + SAMPLE_GROUP - 1) / SAMPLE_GROUP;
    const size_t whole = (size_t)n_groups * SAMPLE_GROUP;
    *set = (struct sample_set){.n_vocab = n_vocab,
                               .n_blocks = n_blocks,
                               .n_groups = n_groups,
                               .temp = 1.0,
                               .kernels = sample_block_kernels(level)};
    set->logit = malloc((size_t)n_blocks * SAMPLE_BLOCK * sizeof *set->logit);
    set->copied = malloc(n_blocks * sizeof *set->copied);
    set->block_max = malloc(whole * sizeof *set->block_max);
    set->group_max = malloc(n_groups * sizeof *set->group_max);
    set->block_sum = calloc(whole, sizeof *set->block_sum);
    set->group_share = malloc(n_groups * sizeof *set->group_share);
    set->list = malloc(n_vocab * sizeof *set->list);
    if (!set->logit || !set->copied || !set->block_max || !set->group_max || !set->block_sum ||
        !set->group_share || !set->list)
        return base_fail(err, BASE_NO_MEMORY, "no memory to sample from %u tokens", n_vocab);
    for (size_t b = n_blocks; b < whole; b++) set->block_max[b] = -INFINITY;
    return true;
}

void sample_set_free(struct sample_set *set)
{
    free(set->logit);
    free(set->copied);
    free(set->block_max);
    free(set->group_max);
    free(set->block_sum);
    free(set->group_share);
    free(set->list);
    *set = (struct sample_set){0};
}

/* ---- Blocks ---- */

float sample_saturate(double logit)
{
    if (logit > (double)FLT_MAX) return FLT_MAX;
    if (logit < (double)-FLT_MAX) return -FLT_MAX;
    return (float)logit;
}

/* Returns a copy of the block, which may change. */
static float *own_block(struct sample_set *set, uint32_t b)
{
    float *to = set->logit + (size_t)b * SAMPLE_BLOCK;
    if (set->copied[b]) return to;
    const uint32_t rest = set->n_vocab - b * SAMPLE_BLOCK;
    sample_block_read(to, set->given + (size_t)b * SAMPLE_BLOCK,
                      rest < SAMPLE_BLOCK ? rest : SAMPLE_BLOCK,
                      set->allowed ? set->allowed[b] : UINT64_MAX);
    set->copied[b] = true;
    return to;
}

const float *sample_set_block(struct sample_set *set, uint32_t b)
{
    const bool as_given = !set->copied[b] && b < set->n_vocab / SAMPLE_BLOCK &&
                          (!set->allowed || set->allowed[b] == UINT64_MAX) &&
                          set->block_max[b] < FLT_MAX; /* it may be infinity otherwise */
    return as_given ? set->given + (size_t)b * SAMPLE_BLOCK : own_block(set, b);
}

/* Computes the maximum of a block whose logits have changed. */
static void update_max(struct sample_set *set, uint32_t b)
{
    set->kernels->bounds(own_block(set, b), NULL, 1, &set->block_max[b]);
}

void sample_set_load(struct sample_set *set, const float *logits, const uint64_t *allowed)
{
    const uint32_t n_whole = set->n_vocab / SAMPLE_BLOCK;
    set->given = logits;
    set->allowed = allowed;
    set->is_list = false;
    set->temp = 1.0;
    memset(set->copied, 0, set->n_blocks * sizeof *set->copied);
    set->kernels->bounds(logits, allowed, n_whole, set->block_max);
    if (n_whole < set->n_blocks) update_max(set, n_whole);
}

float sample_set_logit(struct sample_set *set, int32_t id)
{
    const uint32_t b = (uint32_t)id / SAMPLE_BLOCK;
    if (!(set->block_max[b] > -INFINITY)) return -INFINITY;
    return sample_set_block(set, b)[id % SAMPLE_BLOCK];
}

void sample_set_change(struct sample_set *set, int32_t id, float logit)
{
    const uint32_t b = (uint32_t)id / SAMPLE_BLOCK;
    own_block(set, b)[id % SAMPLE_BLOCK] = logit;
    update_max(set, b);
}

/* Divides the logits by the temperature, for rules that change logits. */
static void apply_temp(struct sample_set *set)
{
    if (set->temp == 1.0) return;
    for (uint32_t i = 0; set->is_list && i < set->n; i++)
        set->list[i].logit = sample_saturate((double)set->list[i].logit / set->temp);
    for (uint32_t b = 0; !set->is_list && b < set->n_blocks; b++) {
        if (!(set->block_max[b] > -INFINITY)) continue;
        float *x = own_block(set, b);
        for (int i = 0; i < SAMPLE_BLOCK; i++)
            if (x[i] > -INFINITY) x[i] = sample_saturate((double)x[i] / set->temp);
        update_max(set, b);
    }
    set->temp = 1.0;
}

void sample_set_adjust(struct sample_set *set, const int32_t *ids, uint32_t n,
                       sample_change_fn *change, const void *state)
{
    apply_temp(set);
    for (uint32_t i = 0; set->is_list && i < set->n; i++)
        set->list[i].logit = change(state, set->list[i].id, set->list[i].logit);
    for (uint32_t i = 0; !set->is_list && i < n; i++) {
        const float logit = sample_set_logit(set, ids[i]);
        if (logit > -INFINITY) sample_set_change(set, ids[i], change(state, ids[i], logit));
    }
}

/* ---- Order ---- */

static struct sample_candidate best_of_list(const struct sample_candidate *list, uint32_t n)
{
    struct sample_candidate best = {-INFINITY, -1};
    for (uint32_t i = 0; i < n; i++)
        if (best.id < 0 || sample_better(list[i], best)) best = list[i];
    return best;
}

struct sample_candidate sample_set_best(struct sample_set *set)
{
    if (set->is_list) return best_of_list(set->list, set->n);
    set->kernels->bounds(set->block_max, NULL, set->n_groups, set->group_max);
    uint32_t g = 0;
    for (uint32_t i = 1; i < set->n_groups; i++)
        if (set->group_max[i] > set->group_max[g]) g = i;
    const float best = set->group_max[g];
    if (!(best > -INFINITY)) return (struct sample_candidate){-INFINITY, -1};
    uint32_t b = g * SAMPLE_GROUP;
    while (set->block_max[b] != best) b++;
    const uint64_t ids = set->kernels->reach(sample_set_block(set, b), best);
    return (struct sample_candidate){best, (int32_t)(b * SAMPLE_BLOCK) + __builtin_ctzll(ids)};
}

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

/* Inlining removes the indirect call for the usual order. */
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

uint32_t sample_set_partition(struct sample_candidate *list, uint32_t n, sample_first_fn *first,
                              const void *order)
{
    return first ? partition(list, n, first, order) : partition(list, n, better_first, NULL);
}

/* Returns the candidate of rank r < n in list[n], and reorders the list so that all better ones
 * precede it. */
static struct sample_candidate rank(struct sample_candidate *list, uint32_t n, uint32_t r)
{
    for (;;) {
        const uint32_t at = sample_set_partition(list, n, NULL, NULL);
        if (r == at) return list[at];
        if (r < at) {
            n = at;
        } else {
            list += at + 1;
            n -= at + 1;
            r -= at + 1;
        }
    }
}

static void sort(struct sample_candidate *list, uint32_t n)
{
    while (n > 1) {
        const uint32_t at = sample_set_partition(list, n, NULL, NULL), after = n - at - 1;
        sort(at < after ? list : list + at + 1, at < after ? at : after); /* the shorter part */
        if (at < after) list += at + 1;
        n = at < after ? after : at;
    }
}

void sample_set_sort(struct sample_set *set)
{
    sort(set->list, set->n);
}

/* ---- Cuts ---- */

/* Returns the smallest float that is not below the threshold, and no infinity below. */
static float float_from(double threshold)
{
    if (threshold < (double)-FLT_MAX) return -FLT_MAX;
    const float near = threshold > (double)FLT_MAX ? INFINITY : (float)threshold;
    return (double)near < threshold ? nextafterf(near, INFINITY) : near;
}

uint32_t sample_set_list(struct sample_set *set, double threshold)
{
    const float least = float_from(threshold);
    uint32_t n = 0;
    for (uint32_t i = 0; set->is_list && i < set->n; i++)
        if (set->list[i].logit >= least) swap(set->list + i, set->list + n++);
    for (uint32_t b = 0; !set->is_list && b < set->n_blocks; b++) {
        if (!(set->block_max[b] >= least)) continue;
        const float *x = sample_set_block(set, b);
        for (uint64_t ids = set->kernels->reach(x, least); ids; ids &= ids - 1) {
            const int i = __builtin_ctzll(ids);
            set->list[n++] = (struct sample_candidate){x[i], (int32_t)(b * SAMPLE_BLOCK) + i};
        }
    }
    return n;
}

void sample_set_keep_list(struct sample_set *set, uint32_t n)
{
    set->is_list = true;
    set->n = n;
}

/* Removes the candidates after `last` in the order; the set remains the vocabulary. */
static void keep_to(struct sample_set *set, struct sample_candidate last)
{
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        if (!(set->block_max[b] >= last.logit)) {
            set->block_max[b] = -INFINITY;
            continue;
        }
        float *x = own_block(set, b);
        for (int i = 0; i < SAMPLE_BLOCK; i++)
            if (sample_better(last, (struct sample_candidate){x[i], (int32_t)b * SAMPLE_BLOCK + i}))
                x[i] = -INFINITY;
        update_max(set, b);
    }
}

/* Returns a logit that at least k candidates reach, usually not many more: the maxima of more than
 * k equal parts of the vocabulary are candidates. */
static double reached_by(struct sample_set *set, uint32_t k)
{
    enum { PARTS = 8 }; /* times k */
    const uint32_t size = set->n_blocks / PARTS > k ? set->n_blocks / PARTS / k : 1;
    uint32_t n = 0;
    for (uint32_t b = 0; b < set->n_blocks; b += size, n++) {
        float max = set->block_max[b];
        for (uint32_t i = b + 1; i < b + size && i < set->n_blocks; i++)
            max = set->block_max[i] > max ? set->block_max[i] : max;
        set->list[n] = (struct sample_candidate){max, (int32_t)b};
    }
    return k > n ? -INFINITY : (double)rank(set->list, n, k - 1).logit;
}

void sample_set_keep_best(struct sample_set *set, uint32_t k)
{
    uint32_t n = set->n;
    if (!set->is_list) n = sample_set_list(set, k > 0 ? reached_by(set, k) : INFINITY);
    if (k > SAMPLE_LONG_LIST && !set->is_list) {
        if (n > k) keep_to(set, rank(set->list, n, k - 1));
        return;
    }
    if (k > 0 && k < n) rank(set->list, n, k - 1);
    sample_set_keep_list(set, k < n ? k : n);
}

void sample_set_keep_above(struct sample_set *set, double threshold)
{
    const uint32_t n = sample_set_list(set, threshold);
    if (n > SAMPLE_LONG_LIST && !set->is_list)
        keep_to(set, (struct sample_candidate){float_from(threshold), INT32_MAX});
    else
        sample_set_keep_list(set, n);
}
