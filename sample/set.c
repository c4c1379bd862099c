/* sample/set.c: the candidates of one call. See set.h.
 *
 * What looks at the whole vocabulary goes by groups of blocks, shared out among threads: no group
 * needs another, so the parts do not show in the result. */
#include "sample/set.h"
#include "base/size.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool sample_set_init(struct sample_set *set, uint32_t n_vocab, struct base_error *err)
{
    const uint32_t n_blocks = (n_vocab + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
    const uint32_t n_groups = (n_blocks + SAMPLE_GROUP - 1) / SAMPLE_GROUP;
    const size_t whole = (size_t)n_groups * SAMPLE_GROUP;
    *set = (struct sample_set){.n_vocab = n_vocab,
                               .n_blocks = n_blocks,
                               .n_groups = n_groups,
                               .temp = 1.0,
                               .kernels = sample_block_kernels(cpu_level_best())};
    set->logit = malloc((size_t)n_blocks * SAMPLE_BLOCK * sizeof *set->logit);
    set->place = calloc(n_blocks, sizeof *set->place);
    set->bound = malloc(whole * sizeof *set->bound);
    set->top = malloc(n_groups * sizeof *set->top);
    set->sums.sum = calloc(whole, sizeof *set->sums.sum);
    set->sums.second = calloc(whole, sizeof *set->sums.second);
    set->sums.n = calloc(whole, sizeof *set->sums.n);
    set->summed = calloc(n_blocks, sizeof *set->summed);
    set->group = calloc(n_groups, sizeof *set->group);
    set->share = malloc(n_groups * sizeof *set->share);
    set->tally = malloc(n_groups * sizeof *set->tally);
    set->room = malloc(n_vocab * sizeof *set->room);
    if (!set->logit || !set->place || !set->bound || !set->top || !set->sums.sum ||
        !set->sums.second || !set->sums.n || !set->summed || !set->group || !set->share ||
        !set->tally || !set->room)
        return base_fail(err, BASE_NO_MEMORY, "no memory to sample from %u tokens", n_vocab);
    for (size_t b = n_blocks; b < whole; b++) set->bound[b] = -INFINITY;
    return true;
}

void sample_set_free(struct sample_set *set)
{
    free(set->logit);
    free(set->place);
    free(set->bound);
    free(set->top);
    free(set->sums.sum);
    free(set->sums.second);
    free(set->sums.n);
    free(set->summed);
    free(set->group);
    free(set->share);
    free(set->tally);
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
    set->kernels->keep(to, from, set->least);
    for (uint64_t holes = set->allowed ? ~set->allowed[b] : 0; holes; holes &= holes - 1)
        to[__builtin_ctzll(holes)] = -INFINITY;
    set->place[b] = SAMPLE_OWN;
    return to;
}

const float *sample_set_block(struct sample_set *set, uint32_t b)
{
    if (set->place[b] == SAMPLE_AS_GIVEN) return set->given + (size_t)b * SAMPLE_BLOCK;
    return own_block(set, b);
}

static void bind_group(struct sample_set *set, uint32_t group)
{
    set->top[group] = set->kernels->bound(set->bound + (size_t)group * SAMPLE_GROUP, UINT64_MAX);
}

static void bind_block(struct sample_set *set, uint32_t b)
{
    set->bound[b] = set->kernels->bound(own_block(set, b), UINT64_MAX);
    set->summed[b] = 0;
}

struct groups_call {
    struct sample_set *set;
    sample_groups_fn *part;
    void *data;
};

static void groups_part(void *data, int i, int n_parts)
{
    const struct groups_call *call = data;
    const uint64_t n = call->set->n_groups;
    call->part(call->set, (uint32_t)(n * (uint32_t)i / (uint32_t)n_parts),
               (uint32_t)(n * ((uint32_t)i + 1) / (uint32_t)n_parts), call->data);
}

enum { SHARED_GROUPS = 16 }; /* fewer are not worth a meeting of threads */

/* The logits of a large vocabulary are half in the caches of another thread, which wrote them and
 * has about the same part here. */
void sample_set_share_out(struct sample_set *set, sample_groups_fn *part, void *data)
{
    struct groups_call call = {set, part, data};
    if (set->together && set->n_groups >= SHARED_GROUPS)
        set->together(set->together_context, groups_part, &call);
    else
        groups_part(&call, 0, 1);
}

/* Nothing is copied but the last block, and where infinity stands: a bound of every block tells
 * which ones are worth a look. */
static void read_group(struct sample_set *set, uint32_t g)
{
    const uint32_t first = sample_set_group_first(g), end = sample_set_group_end(set, g);
    const uint32_t n_whole = set->n_vocab / SAMPLE_BLOCK, whole = end < n_whole ? end : n_whole;
    const uint64_t *allowed = set->allowed;
    if (first < whole)
        set->kernels->bounds(set->given + (size_t)first * SAMPLE_BLOCK,
                             allowed ? allowed + first : NULL, whole - first, set->bound + first);
    for (uint32_t b = first; b < end; b++) {
        const bool given = !allowed || allowed[b] == UINT64_MAX;
        set->place[b] = given ? SAMPLE_AS_GIVEN : SAMPLE_TO_MAKE;
        set->summed[b] = 0;
        if (b < n_whole && !(set->bound[b] > FLT_MAX)) continue;
        set->place[b] = SAMPLE_TO_MAKE;
        bind_block(set, b);
    }
    bind_group(set, g);
}

static void read_part(struct sample_set *set, uint32_t first, uint32_t end, void *unused)
{
    (void)unused;
    for (uint32_t g = first; g < end; g++) read_group(set, g);
}

void sample_set_load(struct sample_set *set, const float *logits, const uint64_t *allowed)
{
    set->least = -FLT_MAX;
    set->given = logits;
    set->allowed = allowed;
    set->cut = false;
    set->temp = 1.0;
    set->sum_temp = 0.0;
    sample_set_share_out(set, read_part, NULL);
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
    set->summed[b] = 0;
    if (logit < set->bound[b] && old < set->bound[b]) return;
    bind_block(set, b);
    bind_group(set, b / SAMPLE_GROUP);
}

/* ---- Order ---- */

/* Restores a heap below index i; the root is the best candidate, or the worst. */
static void sift(struct sample_candidate *heap, uint32_t n, uint32_t i, bool best_first)
{
    struct sample_candidate moving = heap[i];
    for (;;) {
        uint64_t child = 2 * (uint64_t)i + 1;
        if (child >= n) break;
        if (child + 1 < n && sample_before(heap[child + 1], heap[child]) == best_first) child++;
        if (sample_before(heap[child], moving) != best_first) break;
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
    uint32_t g = 0;
    for (uint32_t i = 1; i < set->n_groups; i++)
        if (set->top[i] > set->top[g]) g = i;
    const float best = set->top[g];
    if (!(best > -INFINITY)) return (struct sample_candidate){-INFINITY, -1};
    uint32_t b = g * SAMPLE_GROUP;
    while (set->bound[b] != best) b++;
    const float *x = sample_set_block(set, b);
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

/* What comes behind a candidate in the order goes: by a bar, and of those at the bar itself the
 * ones with a larger id, one by one. */
struct drop {
    struct sample_candidate last;
    float over, before; /* the bar of this drop and the one before it */
};

/* A block of which nothing goes keeps its sums. */
static void drop_from_block(struct sample_set *set, uint32_t b, const struct drop *drop)
{
    if (set->bound[b] < drop->last.logit) {
        set->bound[b] = -INFINITY;
        set->summed[b] = 0;
        return;
    }
    const float *x = sample_set_block(set, b);
    const uint64_t kept = set->kernels->reach(x, drop->last.logit);
    if (kept != set->kernels->reach(x, drop->before)) set->summed[b] = 0;
    const int32_t within = drop->last.id - (int32_t)(b * SAMPLE_BLOCK);
    if (within >= SAMPLE_BLOCK - 1) return;
    uint64_t tied = kept & ~set->kernels->reach(x, drop->over);
    if (within >= 0) tied &= UINT64_MAX << (within + 1);
    if (!tied) return;
    float *own = own_block(set, b);
    for (; tied; tied &= tied - 1) own[__builtin_ctzll(tied)] = -INFINITY;
    bind_block(set, b);
}

static void drop_part(struct sample_set *set, uint32_t first, uint32_t end, void *data)
{
    for (uint32_t g = first; g < end; g++) {
        if (!(set->top[g] > -INFINITY)) continue;
        const uint32_t last = sample_set_group_end(set, g);
        for (uint32_t b = sample_set_group_first(g); b < last; b++)
            if (set->bound[b] > -INFINITY) drop_from_block(set, b, data);
        bind_group(set, g);
        if (set->sum_temp == set->temp) sample_set_sum_group(set, g);
    }
}

static void drop_behind(struct sample_set *set, struct sample_candidate last)
{
    struct drop drop = {last, nextafterf(last.logit, INFINITY), set->least};
    set->least = last.logit;
    sample_set_share_out(set, drop_part, &drop);
}

/* Whether more than `most` are at or above a bar. */
static bool more_above(struct sample_set *set, float bar, uint32_t most)
{
    uint32_t n = 0;
    if (bar < set->least) bar = set->least;
    for (uint32_t b = 0; b < set->n_blocks && n <= most; b++) {
        if (set->top[b / SAMPLE_GROUP] < bar)
            b |= SAMPLE_GROUP - 1;
        else if (set->bound[b] >= bar)
            n += set->kernels->count(sample_set_block(set, b), bar);
    }
    return n > most;
}

/* How many of every `stride`th block are at or above a bar. */
static uint32_t count_above(struct sample_set *set, float bar, uint32_t stride)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < set->n_blocks; b += stride)
        if (set->bound[b] >= bar) n += set->kernels->count(sample_set_block(set, b), bar);
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

/* The blocks of a group that have candidates at or above a bar. */
static uint64_t blocks_above(const struct sample_set *set, uint32_t group, float bar)
{
    if (bar < set->least) bar = set->least;
    return set->kernels->reach(set->bound + sample_set_group_first(group), bar);
}

/* The candidates of a block in [low, high). */
static uint64_t between(struct sample_set *set, const float *x, float low, float high)
{
    const uint64_t ids = set->kernels->reach(x, low < set->least ? set->least : low);
    return ids & ~set->kernels->reach(x, high);
}

static uint32_t list_group(struct sample_set *set, uint32_t group, float low, float high,
                           struct sample_candidate *list)
{
    const uint32_t first = sample_set_group_first(group);
    uint32_t n = 0;
    for (uint64_t in = blocks_above(set, group, low); in; in &= in - 1) {
        const uint32_t b = first + (uint32_t)__builtin_ctzll(in);
        const float *x = sample_set_block(set, b);
        for (uint64_t ids = between(set, x, low, high); ids; ids &= ids - 1) {
            const int i = __builtin_ctzll(ids);
            list[n++] = (struct sample_candidate){x[i], (int32_t)(b * SAMPLE_BLOCK) + i};
        }
    }
    return n;
}

struct span {
    float low, high;
};

/* How many of each group are in the span, and above it. */
static void tally_part(struct sample_set *set, uint32_t first, uint32_t end, void *data)
{
    const struct span *span = data;
    for (uint32_t g = first; g < end; g++) {
        const uint32_t last = sample_set_group_end(set, g);
        uint32_t in = 0, above = 0;
        for (uint32_t b = sample_set_group_first(g); b < last; b++) {
            if (!(set->bound[b] >= span->low)) continue;
            const float *x = sample_set_block(set, b);
            above += set->kernels->count(x, span->high);
            in += set->kernels->count(x, span->low);
        }
        set->tally[g] = (struct sample_tally){in - above, above};
    }
}

/* Group by group behind what the groups before have. */
static void list_part(struct sample_set *set, uint32_t first, uint32_t end, void *data)
{
    const struct span *span = data;
    uint32_t at = 0;
    for (uint32_t g = 0; g < end; g++) {
        if (g >= first && set->tally[g].in)
            list_group(set, g, span->low, span->high, set->room + at);
        at += set->tally[g].in;
    }
}

/* Lists the candidates in [low, high), low being above what was dropped; how many are above stands
 * in *above. */
static uint32_t list_between(struct sample_set *set, float low, float high, uint32_t *above)
{
    struct span span = {low, high};
    sample_set_share_out(set, tally_part, &span);
    uint32_t n = 0;
    *above = 0;
    for (uint32_t g = 0; g < set->n_groups; g++) {
        n += set->tally[g].in;
        *above += set->tally[g].above;
    }
    sample_set_share_out(set, list_part, &span);
    return n;
}

/* A part of the vocabulary tells between which bars the logit of rank k is likely to lie. */
static struct span guess_span(struct sample_set *set, uint32_t k)
{
    const uint32_t stride = set->n_blocks / 256 + 1;
    const float best = sample_set_best(set).logit;
    const float least = best - 60.0f > set->least ? best - 60.0f : set->least;
    const uint32_t part = k / stride, slack = part / 16 + 64;
    const float low = guess_bar(set, least, best, part + slack, stride);
    const float high = part > slack ? guess_bar(set, low, best, part - slack, stride) : INFINITY;
    return (struct span){low, high};
}

/* Many of a vocabulary: only what lies near the last one is put in order. The set stays whole. */
static void keep_many(struct sample_set *set, uint32_t k)
{
    const struct span span = guess_span(set, k);
    uint32_t above, n = list_between(set, span.low, span.high, &above);
    if (above >= k || above + n < k) n = list_between(set, set->least, INFINITY, &above);
    if (above + n > k) drop_behind(set, sample_select_rank(set->room, n, k - 1 - above));
}

/* Asks for a block's logits, which another thread may have read. */
static void fetch_block(const struct sample_set *set, uint32_t b)
{
    const float *x =
        (set->place[b] == SAMPLE_AS_GIVEN ? set->given : set->logit) + (size_t)b * SAMPLE_BLOCK;
    for (int i = 0; i < SAMPLE_BLOCK; i += 16) __builtin_prefetch(x + i);
}

static uint32_t count_blocks_above(const struct sample_set *set, float bar)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < set->n_groups; g++)
        if (set->top[g] >= bar)
            n += set->kernels->count(set->bound + sample_set_group_first(g), bar);
    return n;
}

/* A bar that at least k blocks reach, and few more; -infinity when there are fewer. */
static float bar_of_blocks(struct sample_set *set, uint32_t k)
{
    const float best = sample_set_best(set).logit;
    float low = best, high = best;
    uint32_t n = 0;
    for (float depth = 1.0f; n < k && low > -INFINITY; depth *= 2.0f) {
        high = low;
        low = best - depth;
        n = count_blocks_above(set, low);
    }
    for (int i = 0; i < 10 && n > k + k / 8; i++) {
        const float middle = low + (high - low) * 0.5f;
        const uint32_t above = count_blocks_above(set, middle);
        if (above < k) {
            high = middle;
        } else {
            low = middle;
            n = above;
        }
    }
    return low;
}

/* What k blocks reach, k candidates reach: the best are among those. */
static void list_best(struct sample_set *set, uint32_t k)
{
    const bool by_blocks = k < set->n_blocks / 2;
    const float bar = by_blocks ? bar_of_blocks(set, k) : guess_span(set, k).low;
    for (uint32_t g = 0; by_blocks && g < set->n_groups; g++)
        for (uint64_t in = blocks_above(set, g, bar); in; in &= in - 1)
            fetch_block(set, sample_set_group_first(g) + (uint32_t)__builtin_ctzll(in));
    sample_set_list_above(set, (double)bar);
    if (set->n < k) {
        set->cut = false;
        sample_set_list_above(set, -INFINITY);
    }
    if (set->n <= k) return;
    sample_select_rank(set->list, set->n, k - 1);
    sample_set_keep_list(set, k);
}

void sample_set_keep_best(struct sample_set *set, uint32_t k)
{
    if (k == 0) {
        sample_set_keep_list(set, 0);
    } else if (!set->cut && k > SAMPLE_LONG_LIST) {
        if (k < set->n_vocab) keep_many(set, k);
    } else if (!set->cut) {
        list_best(set, k);
    } else if (k < set->n) {
        sample_set_rank(set, k - 1);
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
    const float low = bar_of(bar);
    uint32_t n = 0;
    for (uint32_t g = 0; g < set->n_groups; g++)
        if (set->top[g] >= low) n += list_group(set, g, low, INFINITY, set->room + n);
    set->list = set->room;
    begin_list(set, n);
}

void sample_set_keep_above(struct sample_set *set, double bar)
{
    const float least = bar_of(bar);
    if (set->cut || !more_above(set, least, SAMPLE_LONG_LIST))
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

static void settle_part(struct sample_set *set, uint32_t first, uint32_t end, void *unused)
{
    (void)unused;
    for (uint32_t g = first; g < end; g++) {
        const uint32_t last = sample_set_group_end(set, g);
        for (uint32_t b = sample_set_group_first(g); b < last; b++) {
            float *x = own_block(set, b);
            for (int i = 0; i < SAMPLE_BLOCK; i++)
                x[i] = x[i] >= set->least ? sample_saturate((double)x[i] / set->temp) : -INFINITY;
            bind_block(set, b);
        }
        bind_group(set, g);
    }
}

void sample_set_settle(struct sample_set *set)
{
    if (set->temp == 1.0 && set->least == -FLT_MAX) return;
    if (set->cut) {
        for (uint32_t i = 0; i < set->n; i++)
            set->list[i].logit = sample_saturate((double)set->list[i].logit / set->temp);
        begin_list(set, set->n);
    } else {
        sample_set_share_out(set, settle_part, NULL);
        set->least = -FLT_MAX;
    }
    set->temp = 1.0;
}
