/* sample/set.c: the candidates of one call. See set.h. */
#include "sample/set.h"
#include "base/size.h"
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
    set->place = calloc(n_blocks, sizeof *set->place);
    set->block_max = malloc(whole * sizeof *set->block_max);
    set->group_max = malloc(n_groups * sizeof *set->group_max);
    set->sums.sum = calloc(whole, sizeof *set->sums.sum);
    set->sums.second = calloc(whole, sizeof *set->sums.second);
    set->sums.n = calloc(whole, sizeof *set->sums.n);
    set->stale = calloc(n_groups, sizeof *set->stale);
    set->group = calloc(n_groups, sizeof *set->group);
    set->group_weight = malloc(n_groups * sizeof *set->group_weight);
    set->room = malloc(n_vocab * sizeof *set->room);
    if (!set->logit || !set->place || !set->block_max || !set->group_max || !set->sums.sum ||
        !set->sums.second || !set->sums.n || !set->stale || !set->group || !set->group_weight ||
        !set->room)
        return base_fail(err, BASE_NO_MEMORY, "no memory to sample from %u tokens", n_vocab);
    for (size_t b = n_blocks; b < whole; b++) set->block_max[b] = -INFINITY;
    return true;
}

void sample_set_free(struct sample_set *set)
{
    free(set->logit);
    free(set->place);
    free(set->block_max);
    free(set->group_max);
    free(set->sums.sum);
    free(set->sums.second);
    free(set->sums.n);
    free(set->stale);
    free(set->group);
    free(set->group_weight);
    free(set->room);
    *set = (struct sample_set){0};
}

/* ---- Blocks ---- */

float sample_saturate(double logit)
{
    if (logit > (double)FLT_MAX) return FLT_MAX;
    if (logit < (double)-FLT_MAX) return -FLT_MAX;
    return (float)logit;
}

/* Returns a copy of the block that may change, without impossible ids. */
static float *own_block(struct sample_set *set, uint32_t b)
{
    float *to = set->logit + (size_t)b * SAMPLE_BLOCK, last[SAMPLE_BLOCK];
    const float *from = set->given + (size_t)b * SAMPLE_BLOCK;
    const uint32_t n = set->n_vocab - b * SAMPLE_BLOCK;
    if (set->place[b] == SAMPLE_BLOCK_COPIED) return to;
    if (n < SAMPLE_BLOCK) {
        for (int i = 0; i < SAMPLE_BLOCK; i++) last[i] = -INFINITY;
        memcpy(last, from, n * sizeof *from);
        from = last;
    }
    set->kernels->keep(to, from, set->min_logit);
    for (uint64_t holes = set->allowed ? ~set->allowed[b] : 0; holes; holes &= holes - 1)
        to[__builtin_ctzll(holes)] = -INFINITY;
    set->place[b] = SAMPLE_BLOCK_COPIED;
    return to;
}

const float *sample_set_block(struct sample_set *set, uint32_t b)
{
    if (set->place[b] == SAMPLE_BLOCK_GIVEN) return set->given + (size_t)b * SAMPLE_BLOCK;
    return own_block(set, b);
}

static void update_group_max(struct sample_set *set, uint32_t group)
{
    set->group_max[group] =
        set->kernels->bound(set->block_max + (size_t)group * SAMPLE_GROUP, UINT64_MAX);
}

static void update_block_max(struct sample_set *set, uint32_t b)
{
    set->block_max[b] = set->kernels->bound(own_block(set, b), UINT64_MAX);
}

/* Copies only the last block and blocks with an infinity. Computes the maximum of every block: it
 * decides which blocks must be read. */
static void read_group(struct sample_set *set, uint32_t g)
{
    const uint32_t first = sample_set_group_first(g), end = sample_set_group_end(set, g);
    const uint32_t n_whole = set->n_vocab / SAMPLE_BLOCK, whole = end < n_whole ? end : n_whole;
    const uint64_t *allowed = set->allowed;
    if (first < whole)
        set->kernels->bounds(set->given + (size_t)first * SAMPLE_BLOCK,
                             allowed ? allowed + first : NULL, whole - first,
                             set->block_max + first);
    for (uint32_t b = first; b < end; b++) {
        const bool given = !allowed || allowed[b] == UINT64_MAX;
        set->place[b] = given ? SAMPLE_BLOCK_GIVEN : SAMPLE_BLOCK_TO_COPY;
        if (b < n_whole && !(set->block_max[b] > FLT_MAX)) continue;
        set->place[b] = SAMPLE_BLOCK_TO_COPY;
        update_block_max(set, b);
    }
    update_group_max(set, g);
}

void sample_set_load(struct sample_set *set, const float *logits, const uint64_t *allowed)
{
    set->min_logit = -FLT_MAX;
    set->given = logits;
    set->allowed = allowed;
    set->is_list = false;
    set->temp = 1.0;
    set->sum_temp = 0.0;
    for (uint32_t g = 0; g < set->n_groups; g++) read_group(set, g);
}

float sample_set_logit(struct sample_set *set, int32_t id)
{
    return sample_set_block(set, (uint32_t)id / SAMPLE_BLOCK)[id % SAMPLE_BLOCK];
}

void sample_set_change(struct sample_set *set, int32_t id, float logit)
{
    const uint32_t b = (uint32_t)id / SAMPLE_BLOCK;
    float *x = own_block(set, b), old = x[id % SAMPLE_BLOCK];
    x[id % SAMPLE_BLOCK] = logit;
    set->stale[b / SAMPLE_GROUP] |= 1ull << b % SAMPLE_GROUP;
    if (logit < set->block_max[b] && old < set->block_max[b]) return;
    update_block_max(set, b);
    update_group_max(set, b / SAMPLE_GROUP);
}

/* ---- Order ---- */

/* Restores a heap below index i; its root is the best candidate (best_first) or the worst. */
static void sift(struct sample_candidate *heap, uint32_t n, uint32_t i, bool best_first)
{
    struct sample_candidate moving = heap[i];
    for (;;) {
        uint64_t child = 2 * (uint64_t)i + 1;
        if (child >= n) break;
        if (child + 1 < n && sample_better(heap[child + 1], heap[child]) == best_first) child++;
        if (sample_better(heap[child], moving) != best_first) break;
        heap[i] = heap[child];
        i = (uint32_t)child;
    }
    heap[i] = moving;
}

static void heapify(struct sample_candidate *heap, uint32_t n, bool best_first)
{
    for (uint32_t i = n / 2; i-- > 0;) sift(heap, n, i, best_first);
}

/* Turns the set into the list [0, n), in no order. */
static void begin_list(struct sample_set *set, uint32_t n)
{
    set->is_list = true;
    set->n = n;
    set->n_ranked = 0;
    heapify(set->list, n, true);
}

void sample_set_keep_list(struct sample_set *set, uint32_t n)
{
    begin_list(set, n);
}

/* Sorts only as far as needed: the root of the heap moves to the place after its end, so rank r is
 * at list[n - 1 - r]. */
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

/* Returns the candidate with the largest logit, the one with the lowest id among equal ones. */
static struct sample_candidate best_of_vocabulary(struct sample_set *set)
{
    uint32_t g = 0;
    for (uint32_t i = 1; i < set->n_groups; i++)
        if (set->group_max[i] > set->group_max[g]) g = i;
    const float best = set->group_max[g];
    if (!(best > -INFINITY)) return (struct sample_candidate){-INFINITY, -1};
    uint32_t b = g * SAMPLE_GROUP;
    while (set->block_max[b] != best) b++;
    const float *x = sample_set_block(set, b);
    int i = 0;
    while (x[i] != best) i++;
    return (struct sample_candidate){best, (int32_t)(b * SAMPLE_BLOCK) + i};
}

struct sample_candidate sample_set_best(struct sample_set *set)
{
    if (!set->is_list) return best_of_vocabulary(set);
    if (set->n == 0) return (struct sample_candidate){-INFINITY, -1};
    return sample_set_rank(set, 0);
}

/* ---- Cuts ---- */

/* Keeps the best n of a cut set, whose first n ranks must be sorted. */
static void keep_ranks(struct sample_set *set, uint32_t n)
{
    set->list += set->n - n;
    set->n = n;
    if (set->n_ranked > n) set->n_ranked = n;
}

/* Returns the smallest float that is not below the threshold. */
static float float_from(double threshold)
{
    const float near = threshold > (double)FLT_MAX ? INFINITY : (float)threshold;
    return (double)near < threshold ? nextafterf(near, INFINITY) : near;
}

/* Removes from a block the candidates after `last` in the order. The threshold, which is set
 * before, removes smaller logits; equal logits with a larger id are removed one by one. */
static void remove_after(struct sample_set *set, uint32_t b, struct sample_candidate last)
{
    if (set->block_max[b] < last.logit) {
        set->block_max[b] = -INFINITY;
        return;
    }
    const int32_t at = last.id - (int32_t)(b * SAMPLE_BLOCK);
    if (at >= SAMPLE_BLOCK - 1) return;
    const float *x = sample_set_block(set, b);
    uint64_t tied = set->kernels->reach(x, last.logit) &
                    ~set->kernels->reach(x, nextafterf(last.logit, INFINITY));
    if (at >= 0) tied &= UINT64_MAX << (at + 1);
    if (!tied) return;
    float *own = own_block(set, b);
    for (; tied; tied &= tied - 1) own[__builtin_ctzll(tied)] = -INFINITY;
    update_block_max(set, b);
}

/* Removes the candidates after `last`; the set remains blocks of the vocabulary. */
static void keep_to(struct sample_set *set, struct sample_candidate last)
{
    set->min_logit = last.logit;
    memset(set->stale, 0xff, set->n_groups * sizeof *set->stale);
    for (uint32_t b = 0; b < set->n_blocks; b++)
        if (set->block_max[b] > -INFINITY) remove_after(set, b, last);
    for (uint32_t g = 0; g < set->n_groups; g++) update_group_max(set, g);
}

/* Counts the candidates at or above a threshold in every `stride`th block; may stop above
 * `limit`. */
static uint32_t count_above(struct sample_set *set, float threshold, uint32_t stride,
                            uint32_t limit)
{
    uint32_t n = 0;
    if (threshold < set->min_logit) threshold = set->min_logit;
    for (uint32_t b = 0; b < set->n_blocks && n <= limit; b += stride)
        if (set->block_max[b] >= threshold)
            n += set->kernels->count(sample_set_block(set, b), threshold);
    return n;
}

static uint32_t count_blocks_above(struct sample_set *set, float threshold)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < set->n_groups; g++)
        if (set->group_max[g] >= threshold)
            n += set->kernels->count(set->block_max + sample_set_group_first(g), threshold);
    return n;
}

/* Returns a threshold that `want` candidates, or a few more, reach in every `stride`th block; with
 * `blocks` it counts blocks with such a candidate. Returns -FLT_MAX or less if there are fewer. */
static float find_threshold(struct sample_set *set, uint32_t want, uint32_t stride, bool blocks)
{
    const float best = sample_set_best(set).logit;
    float low = best, high = best;
    uint32_t n = 0;
    for (float depth = 1.0f; n < want && low >= set->min_logit; depth *= 2.0f) {
        high = low;
        low = best - depth;
        n = blocks ? count_blocks_above(set, low) : count_above(set, low, stride, UINT32_MAX);
    }
    for (int i = 0; i < 12 && n > want + want / 32; i++) {
        const float middle = low + (high - low) * 0.5f;
        const uint32_t above =
            blocks ? count_blocks_above(set, middle) : count_above(set, middle, stride, UINT32_MAX);
        if (above < want) {
            high = middle;
        } else {
            low = middle;
            n = above;
        }
    }
    return low;
}

/* Estimates thresholds around the logit of rank k: about k candidates reach `low`, usually a few
 * more, and fewer than k reach `high`. If k is small compared to the number of blocks, the blocks
 * that reach `low` are counted, because each has at least one candidate. Otherwise the candidates
 * in a sample of the blocks are counted; this number has a statistical error of a few square
 * roots. */
static void guess_band(struct sample_set *set, uint32_t k, float *low, float *high)
{
    *high = INFINITY;
    if (k < set->n_blocks / 2) {
        *low = find_threshold(set, k, 1, true);
        return;
    }
    const uint32_t stride = set->n_blocks / 128 + 1, part = k / stride, margin = part / 16 + 64;
    *low = find_threshold(set, part + margin, stride, false);
    if (part > 2 * margin) *high = find_threshold(set, part - margin - part / 16, stride, false);
}

/* Lists in room[] the candidates of the vocabulary with logits in [threshold, high) and sets *n to
 * their number. Returns the number of candidates >= high. */
static uint32_t list_between(struct sample_set *set, float threshold, float high, uint32_t *n)
{
    uint32_t above = 0;
    *n = 0;
    if (threshold < set->min_logit) threshold = set->min_logit;
    for (uint32_t g = 0; g < set->n_groups; g++) {
        if (!(set->group_max[g] >= threshold)) continue;
        const uint32_t first = sample_set_group_first(g);
        uint64_t blocks = set->kernels->reach(set->block_max + first, threshold);
        for (; blocks; blocks &= blocks - 1) {
            const uint32_t b = first + (uint32_t)__builtin_ctzll(blocks);
            const float *x = sample_set_block(set, b);
            uint64_t ids = set->kernels->reach(x, threshold);
            if (set->block_max[b] >= high) {
                const uint64_t over = set->kernels->reach(x, high);
                above += (uint32_t)__builtin_popcountll(over);
                ids &= ~over;
            }
            for (; ids; ids &= ids - 1) {
                const int i = __builtin_ctzll(ids);
                set->room[(*n)++] =
                    (struct sample_candidate){x[i], (int32_t)(b * SAMPLE_BLOCK) + i};
            }
        }
    }
    return above;
}

static uint32_t list_above(struct sample_set *set, float threshold)
{
    uint32_t n;
    list_between(set, threshold, INFINITY, &n);
    return n;
}

void sample_set_keep_best(struct sample_set *set, uint32_t k)
{
    if (k == 0) {
        begin_list(set, 0);
        return;
    }
    if (set->is_list) {
        if (k >= set->n) return;
        sample_set_rank(set, k - 1);
        keep_ranks(set, k);
        return;
    }
    float low, high;
    uint32_t n, above;
    guess_band(set, k, &low, &high);
    if (k <= SAMPLE_LONG_LIST) high = INFINITY;
    above = list_between(set, low, high, &n);
    if (above >= k || above + n < k) above = list_between(set, -INFINITY, INFINITY, &n);
    struct sample_candidate last = {-INFINITY, 0};
    if (above + n > k) last = sample_select_rank(set->room, n, k - 1 - above);
    if (k > SAMPLE_LONG_LIST) {
        if (above + n > k) keep_to(set, last);
        return;
    }
    set->list = set->room;
    begin_list(set, n < k ? n : k);
}

void sample_set_list_above(struct sample_set *set, double threshold)
{
    if (set->is_list) {
        uint32_t r = 0;
        while (r < set->n && (double)sample_set_rank(set, r).logit >= threshold) r++;
        keep_ranks(set, r);
        return;
    }
    const uint32_t n = list_above(set, float_from(threshold));
    set->list = set->room;
    begin_list(set, n);
}

void sample_set_keep_above(struct sample_set *set, double threshold)
{
    const float min_logit = float_from(threshold);
    if (set->is_list || count_above(set, min_logit, 1, SAMPLE_LONG_LIST) <= SAMPLE_LONG_LIST)
        sample_set_list_above(set, threshold);
    else
        keep_to(set, (struct sample_candidate){min_logit, INT32_MAX});
}

void sample_set_remove_best(struct sample_set *set, uint32_t n)
{
    if (n > 0) sample_set_rank(set, n - 1);
    set->n -= n;
    set->n_ranked -= n;
}

/* ---- Changes ---- */

void sample_set_adjust(struct sample_set *set, const int32_t *ids, uint32_t n,
                       sample_change_fn *change, const void *state)
{
    sample_set_apply_temp(set);
    if (!set->is_list) {
        for (uint32_t i = 0; i < n; i++) {
            const float logit = sample_set_logit(set, ids[i]);
            if (logit > -INFINITY) sample_set_change(set, ids[i], change(state, ids[i], logit));
        }
        return;
    }
    for (uint32_t i = 0; i < set->n; i++)
        set->list[i].logit = change(state, set->list[i].id, set->list[i].logit);
    begin_list(set, set->n);
}

static void apply_to_block(struct sample_set *set, uint32_t b)
{
    float *x = own_block(set, b);
    for (int i = 0; i < SAMPLE_BLOCK; i++)
        x[i] = x[i] >= set->min_logit ? sample_saturate((double)x[i] / set->temp) : -INFINITY;
    update_block_max(set, b);
}

void sample_set_apply_temp(struct sample_set *set)
{
    if (set->temp == 1.0 && set->min_logit == -FLT_MAX) return;
    if (set->is_list) {
        for (uint32_t i = 0; i < set->n; i++)
            set->list[i].logit = sample_saturate((double)set->list[i].logit / set->temp);
        begin_list(set, set->n);
    } else {
        for (uint32_t b = 0; b < set->n_blocks; b++) apply_to_block(set, b);
        for (uint32_t g = 0; g < set->n_groups; g++) update_group_max(set, g);
        set->min_logit = -FLT_MAX;
        memset(set->stale, 0xff, set->n_groups * sizeof *set->stale);
    }
    set->temp = 1.0;
}
