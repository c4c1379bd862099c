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
    const size_t whole = ((size_t)n_blocks + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK * SAMPLE_BLOCK;
    *set = (struct sample_set){.n_vocab = n_vocab,
                               .n_blocks = n_blocks,
                               .temp = 1.0,
                               .kernels = sample_block_kernels(QUANT_LEVEL_COUNT)};
    set->logit = malloc((size_t)n_blocks * SAMPLE_BLOCK * sizeof *set->logit);
    set->place = calloc(n_blocks, sizeof *set->place);
    set->bound = malloc(whole * sizeof *set->bound);
    set->sums = malloc(n_blocks * sizeof *set->sums);
    set->summed = calloc(n_blocks, sizeof *set->summed);
    set->share = malloc(n_blocks * sizeof *set->share);
    set->room = malloc(n_vocab * sizeof *set->room);
    if (!set->logit || !set->place || !set->bound || !set->sums || !set->summed || !set->share ||
        !set->room)
        return base_fail(err, BASE_NO_MEMORY, "no memory to sample from %u tokens", n_vocab);
    for (size_t b = n_blocks; b < whole; b++) set->bound[b] = -INFINITY;
    return true;
}

void sample_set_free(struct sample_set *set)
{
    free(set->logit);
    free(set->place);
    free(set->bound);
    free(set->sums);
    free(set->summed);
    free(set->share);
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

/* A copy of the block without what may not be, for changing it. */
static float *own_block(struct sample_set *set, uint32_t b)
{
    float *to = set->logit + (size_t)b * SAMPLE_BLOCK, last[SAMPLE_BLOCK];
    const float *from = set->given + (size_t)b * SAMPLE_BLOCK;
    const uint32_t n = set->n_vocab - b * SAMPLE_BLOCK;
    if (set->place[b] == SAMPLE_OWN) return to;
    if (n < SAMPLE_BLOCK) {
        for (int i = 0; i < SAMPLE_BLOCK; i++) last[i] = -INFINITY;
        memcpy(last, from, n * sizeof *from);
        from = last;
    }
    set->kernels->keep(to, from, -FLT_MAX);
    for (uint64_t holes = set->allowed ? ~set->allowed[b] : 0; holes; holes &= holes - 1)
        to[__builtin_ctzll(holes)] = -INFINITY;
    set->place[b] = SAMPLE_OWN;
    return to;
}

/* The logits of a block, NaN and -infinity where an id is impossible. */
static inline const float *block_of(struct sample_set *set, uint32_t b)
{
    if (set->place[b] == SAMPLE_AS_GIVEN) return set->given + (size_t)b * SAMPLE_BLOCK;
    return own_block(set, b);
}

enum { SHARED_BLOCKS = 1024 }; /* fewer are not worth a meeting of threads */

/* The logits of a large vocabulary are half in the caches of another thread, which wrote them and
 * has about the same part here. */
static void in_parts(const struct sample_set *set, sample_part_fn *part, void *data)
{
    if (set->together && set->n_blocks >= SHARED_BLOCKS)
        set->together(set->together_context, part, data);
    else
        part(data, 0, 1);
}

/* Of n blocks those of part i of n_parts. */
static void part_of(uint32_t n, int i, int n_parts, uint32_t *first, uint32_t *end)
{
    *first = (uint32_t)((uint64_t)n * (uint32_t)i / (uint32_t)n_parts);
    *end = (uint32_t)((uint64_t)n * ((uint32_t)i + 1) / (uint32_t)n_parts);
}

static void bounds_part(void *data, int i, int n_parts)
{
    const struct sample_set *set = data;
    uint32_t first, end;
    part_of(set->n_vocab / SAMPLE_BLOCK, i, n_parts, &first, &end);
    set->kernels->bounds(set->given + (size_t)first * SAMPLE_BLOCK,
                         set->allowed ? set->allowed + first : NULL, end - first,
                         set->bound + first);
}

/* Nothing is copied but the last block, and where infinity stands: a bound of every block tells
 * which ones are worth a look. */
void sample_set_load(struct sample_set *set, const float *logits, const uint64_t *allowed)
{
    set->cut = false;
    set->temp = 1.0;
    set->scale = -1.0f; /* no sums */
    set->given = logits;
    set->allowed = allowed;
    const uint32_t n_given = set->n_vocab / SAMPLE_BLOCK;
    in_parts(set, bounds_part, set);
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        set->place[b] = allowed && allowed[b] != UINT64_MAX ? SAMPLE_TO_MAKE : SAMPLE_AS_GIVEN;
        if (b < n_given && !(set->bound[b] > FLT_MAX)) continue;
        set->place[b] = SAMPLE_TO_MAKE;
        set->bound[b] = set->kernels->bound(own_block(set, b), UINT64_MAX);
    }
}

float sample_set_logit(struct sample_set *set, int32_t id)
{
    return block_of(set, (uint32_t)id / SAMPLE_BLOCK)[id % SAMPLE_BLOCK];
}

void sample_set_replace_block(struct sample_set *set, uint32_t block,
                              const float logit[SAMPLE_BLOCK])
{
    float *x = own_block(set, block);
    for (int i = 0; i < SAMPLE_BLOCK; i++) x[i] = x[i] > -INFINITY ? logit[i] : -INFINITY;
    set->bound[block] = set->kernels->bound(x, UINT64_MAX);
    set->summed[block] = 0;
}

void sample_set_change(struct sample_set *set, int32_t id, float logit)
{
    const uint32_t b = (uint32_t)id / SAMPLE_BLOCK;
    float *x = own_block(set, b), old = x[id % SAMPLE_BLOCK];
    x[id % SAMPLE_BLOCK] = logit;
    set->summed[b] = 0;
    if (logit >= set->bound[b])
        set->bound[b] = logit;
    else if (old == set->bound[b])
        set->bound[b] = set->kernels->bound(x, UINT64_MAX);
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

/* The first of the largest, of ids as of bounds. */
static struct sample_candidate best_of_vocabulary(struct sample_set *set)
{
    uint32_t b = 0;
    for (uint32_t i = 1; i < set->n_blocks; i++)
        if (set->bound[i] > set->bound[b]) b = i;
    const float best = set->bound[b], *x = block_of(set, b);
    if (!(best > -INFINITY)) return (struct sample_candidate){-INFINITY, -1};
    int i = 0;
    while (x[i] != best) i++;
    return (struct sample_candidate){best, (int32_t)(b * SAMPLE_BLOCK) + i};
}

struct sample_candidate sample_set_best(struct sample_set *set)
{
    if (!set->cut) return best_of_vocabulary(set);
    if (set->n == 0) return (struct sample_candidate){-INFINITY, -1};
    return sample_set_rank(set, 0);
}

/* ---- Cuts ---- */

/* Of a cut set: the best n, which must be ranked. */
static void keep_ranks(struct sample_set *set, uint32_t n)
{
    set->list += set->n - n;
    set->n = n;
    if (set->n_ranked > n) set->n_ranked = n;
}

/* The smallest float that is not below the bar. */
static float bar_of(double bar)
{
    const float near = bar > (double)FLT_MAX ? INFINITY : (float)bar;
    return (double)near < bar ? nextafterf(near, INFINITY) : near;
}

/* -infinity in place of what comes behind `last` in the order. */
static void drop_behind(struct sample_set *set, struct sample_candidate last)
{
    const float over = nextafterf(last.logit, INFINITY);
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        float *x = set->logit + (size_t)b * SAMPLE_BLOCK;
        const int32_t first = (int32_t)(b * SAMPLE_BLOCK);
        set->summed[b] = 0;
        if (set->place[b] == SAMPLE_AS_GIVEN)
            set->kernels->keep(x, set->given + first, last.logit);
        else
            set->kernels->keep(x, own_block(set, b), last.logit);
        set->place[b] = SAMPLE_OWN;
        if (set->bound[b] < last.logit) set->bound[b] = -INFINITY;
        if (first + SAMPLE_BLOCK - 1 <= last.id ||
            set->kernels->count(x, last.logit) == set->kernels->count(x, over))
            continue;
        for (int i = 0; i < SAMPLE_BLOCK; i++)
            if (x[i] == last.logit && first + i > last.id) x[i] = -INFINITY;
        set->bound[b] = set->kernels->bound(x, UINT64_MAX);
    }
}

/* How many of every `stride`th block are at or above a bar. */
static uint32_t count_above(struct sample_set *set, float bar, uint32_t stride)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < set->n_blocks; b += stride)
        if (set->bound[b] >= bar) n += set->kernels->count(block_of(set, b), bar);
    return n;
}

/* A bar above which about `n` of every `stride`th block's logits lie, between two others. */
static float guess_bar(struct sample_set *set, float low, float high, uint32_t n, uint32_t stride)
{
    for (int i = 0; i < 10; i++) {
        const float middle = low + (high - low) * 0.5f;
        const uint32_t above = count_above(set, middle, stride);
        if (above == n) return middle;
        if (above > n)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The candidate of rank r among list[0..n), which changes its order. */
static struct sample_candidate select_rank(struct sample_candidate *list, uint32_t n, uint32_t r)
{
    while (n > 1) {
        const struct sample_candidate pivot = list[n / 2];
        uint32_t i = 0, k = n - 1;
        for (;;) {
            while (before(list[i], pivot)) i++;
            while (before(pivot, list[k])) k--;
            if (i >= k) break;
            const struct sample_candidate c = list[i];
            list[i++] = list[k];
            list[k--] = c;
        }
        const uint32_t left =
            i; /* those before i are no worse than the pivot, the others no better */
        if (r < left) {
            n = left;
        } else {
            list += left;
            n -= left;
            r -= left;
        }
    }
    return list[0];
}

/* Lists the candidates in [low, high); how many are above stands in *above. */
static uint32_t list_between(struct sample_set *set, float low, float high, uint32_t *above)
{
    uint32_t n = 0;
    *above = 0;
    for (uint32_t b = 0; b < set->n_blocks; b++) {
        if (!(set->bound[b] >= low)) continue;
        const float *x = block_of(set, b);
        const uint32_t over = set->kernels->count(x, high);
        *above += over;
        if (set->kernels->count(x, low) == over) continue;
        for (uint32_t i = 0; i < SAMPLE_BLOCK; i++)
            if (x[i] >= low && x[i] < high && x[i] > -INFINITY)
                set->room[n++] = (struct sample_candidate){x[i], (int32_t)(b * SAMPLE_BLOCK + i)};
    }
    return n;
}

/* Many of a vocabulary: a part of it tells between which bars the last one is likely to lie, and
 * only what lies there is put in order. The set stays whole. */
static void keep_many(struct sample_set *set, uint32_t k)
{
    const uint32_t stride = set->n_blocks / 256 + 1;
    const float best = sample_set_best(set).logit, least = best - 60.0f;
    const uint32_t part = k / stride, slack = part / 16 + 64;
    float low = guess_bar(set, least, best, part + slack, stride);
    float high = part > slack ? guess_bar(set, low, best, part - slack, stride) : INFINITY;
    uint32_t above, n = list_between(set, low, high, &above);
    if (above >= k || above + n < k) n = list_between(set, -INFINITY, INFINITY, &above);
    if (above + n > k) drop_behind(set, select_rank(set->room, n, k - 1 - above));
}

/* Offers a candidate to the best k so far, a heap with the worst first; returns how many there are.
 */
static uint32_t offer(struct sample_candidate *heap, uint32_t n, uint32_t k,
                      struct sample_candidate c)
{
    if (n < k) {
        heap[n++] = c;
        if (n == k) heapify(heap, n, false);
    } else if (before(c, heap[0])) {
        heap[0] = c;
        sift(heap, n, 0, false);
    }
    return n;
}

/* The best k lie in the k blocks with the largest bounds, of equal bounds the first. */
static void list_best(struct sample_set *set, uint32_t k)
{
    struct sample_candidate *heap = set->list = set->room, *block = set->room + k;
    const bool all = set->n_blocks <= k;
    uint32_t n = 0, n_block = all ? set->n_blocks : 0;
    for (uint32_t b = 0; !all && k > 0 && b < set->n_blocks; b++)
        if (n_block < k || set->bound[b] > block[0].logit)
            n_block =
                offer(block, n_block, k, (struct sample_candidate){set->bound[b], (int32_t)b});
    for (uint32_t i = 0; i < n_block; i++) {
        const uint32_t b = all ? i : (uint32_t)block[i].id;
        if (!(set->bound[b] > -INFINITY) || (n == k && set->bound[b] < heap[0].logit)) continue;
        const float *x = block_of(set, b);
        for (uint32_t l = 0; l < SAMPLE_BLOCK; l++)
            if (x[l] > -INFINITY && (n < k || x[l] >= heap[0].logit))
                n = offer(heap, n, k,
                          (struct sample_candidate){x[l], (int32_t)(b * SAMPLE_BLOCK + l)});
    }
    begin_list(set, n);
}

void sample_set_keep_best(struct sample_set *set, uint32_t k)
{
    if (!set->cut && k > SAMPLE_LONG_LIST) {
        if (k < set->n_vocab) keep_many(set, k);
    } else if (!set->cut) {
        list_best(set, k);
    } else if (k < set->n) {
        if (k > 0) sample_set_rank(set, k - 1);
        keep_ranks(set, k);
    }
}

void sample_set_list_above(struct sample_set *set, double bar)
{
    if (set->cut) {
        uint32_t r = 0;
        while (r < set->n && (double)sample_set_rank(set, r).logit >= bar) r++;
        keep_ranks(set, r);
        return;
    }
    uint32_t above;
    set->list = set->room;
    begin_list(set, list_between(set, bar_of(bar), INFINITY, &above));
}

void sample_set_keep_above(struct sample_set *set, double bar)
{
    const float least = bar_of(bar);
    if (set->cut || count_above(set, least, 1) <= SAMPLE_LONG_LIST)
        sample_set_list_above(set, bar);
    else
        drop_behind(set, (struct sample_candidate){least, INT32_MAX});
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

void sample_set_settle(struct sample_set *set)
{
    if (set->temp == 1.0) return;
    if (set->cut) {
        for (uint32_t i = 0; i < set->n; i++)
            set->list[i].logit = sample_saturate((double)set->list[i].logit / set->temp);
        begin_list(set, set->n);
    } else {
        for (uint32_t b = 0; b < set->n_blocks; b++) {
            float *x = own_block(set, b);
            for (int i = 0; i < SAMPLE_BLOCK; i++)
                if (x[i] > -INFINITY) x[i] = sample_saturate((double)x[i] / set->temp);
            set->bound[b] = set->kernels->bound(x, UINT64_MAX);
            set->summed[b] = 0;
        }
    }
    set->temp = 1.0;
}

/* ---- Sums ---- */

double sample_set_weight(const struct sample_set *set, float logit, float best)
{
    return sample_exp(((double)logit - (double)best) / set->temp);
}

/* A tiny temperature must not turn 0 / temp into NaN. */
static float scale_of(const struct sample_set *set)
{
    const double inverse = 1.0 / set->temp;
    return inverse < (double)FLT_MAX ? (float)inverse : FLT_MAX;
}

void sample_set_weigh_block(struct sample_set *set, uint32_t block, float best,
                            float weight[SAMPLE_BLOCK])
{
    set->kernels->weigh(block_of(set, block), best, scale_of(set), weight);
}

struct sum_blocks {
    struct sample_set *set;
    float scale;
    bool all, whole;
};

static void sum_part(void *data, int i, int n_parts)
{
    const struct sum_blocks *job = data;
    struct sample_set *set = job->set;
    uint32_t b, end;
    for (part_of(set->n_blocks, i, n_parts, &b, &end); b < end; b++) {
        if (!job->all && set->summed[b]) continue;
        set->sums[b] = (struct sample_block_sums){0};
        set->summed[b] = 1;
        if (!(set->bound[b] > -INFINITY)) continue;
        const float *x = block_of(set, b);
        if (job->whole)
            set->sums[b] = set->kernels->sums(x, set->bound[b], job->scale);
        else
            set->sums[b].total = set->kernels->total(x, set->bound[b], job->scale);
    }
}

/* Sums of what has changed, relative to the bounds. */
static void sum_blocks(struct sample_set *set, bool whole)
{
    struct sum_blocks job = {.set = set, .scale = scale_of(set), .whole = whole};
    job.all = job.scale != set->scale || (whole && !set->whole);
    in_parts(set, sum_part, &job);
    set->scale = job.scale;
    set->whole = whole;
}

/* The weights of a block are those relative to its bound times the bound's. */
static struct sample_sums sum_vocabulary(struct sample_set *set, bool whole)
{
    double total = 0.0, moment = 0.0;
    uint64_t n = 0;
    sum_blocks(set, whole);
    const float best = sample_set_best(set).logit;
    for (uint32_t first = 0; first < set->n_blocks; first += SAMPLE_BLOCK) {
        float of_bound[SAMPLE_BLOCK];
        set->kernels->weigh(set->bound + first, best, set->scale, of_bound);
        for (uint32_t b = first; b < set->n_blocks && b < first + SAMPLE_BLOCK; b++) {
            const double w = (double)of_bound[b - first];
            const struct sample_block_sums *own = &set->sums[b];
            set->share[b] = w * (double)own->total;
            total += set->share[b];
            n += own->n;
            if (!whole || !(w > 0.0)) continue;
            const double d = ((double)set->bound[b] - (double)best) / set->temp;
            moment += w * (double)own->moment + set->share[b] * d;
        }
    }
    return (struct sample_sums){total, sample_log(total) - moment / total, n};
}

/* The entropy of p = w / total is log(total) - sum(w d) / total. */
struct sample_sums sample_set_sums(struct sample_set *set)
{
    if (!set->cut) return sum_vocabulary(set, true);
    const float best = sample_set_best(set).logit;
    double total = 0.0, moment = 0.0;
    for (uint32_t r = 0; r < set->n; r++) {
        const double d = ((double)set->list[set->n - 1 - r].logit - (double)best) / set->temp;
        const double w = sample_exp(d);
        total += w;
        if (w > 0.0) moment += w * d;
    }
    return (struct sample_sums){total, sample_log(total) - moment / total, set->n};
}

double sample_set_total(struct sample_set *set)
{
    return set->cut ? sample_set_sums(set).total : sum_vocabulary(set, false).total;
}

/* The same where floats are too small for the squares. */
static void add_moments(const float *x, double centre, double *sum, double *squares)
{
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const double d = x[i] > -INFINITY ? (double)x[i] - centre : 0.0;
        *sum += d;
        *squares += d * d;
    }
}

/* Blocks are measured from their own bounds, which lie close, and moved to the best one's place. */
struct sample_moments sample_set_moments(struct sample_set *set)
{
    const float best = sample_set_best(set).logit;
    double n = 0.0, sum = 0.0, squares = 0.0;
    for (uint32_t b = 0; !set->cut && b < set->n_blocks; b++) {
        if (!(set->bound[b] > -INFINITY)) continue;
        const float *x = block_of(set, b);
        const struct sample_block_moments own = set->kernels->moments(x, set->bound[b]);
        const double count = (double)own.n, far = (double)set->bound[b] - (double)best;
        n += count;
        if (own.squares <= FLT_MAX) {
            sum += (double)own.sum + count * far;
            squares += (double)own.squares + far * (2.0 * (double)own.sum + count * far);
        } else {
            add_moments(x, (double)best, &sum, &squares);
        }
    }
    for (uint32_t i = 0; set->cut && i < set->n; i++) {
        const double d = (double)set->list[i].logit - (double)best;
        n += 1.0;
        sum += d;
        squares += d * d;
    }
    const double mean = sum / n, variance = squares / n - mean * mean;
    return (struct sample_moments){mean / set->temp,
                                   variance > 0.0 ? sqrt(variance) / set->temp : 0.0};
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
    const double total = sample_set_total(set), bar = u * total;
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
