/* engine/cpu/attention/choose_keys.c: the op that chooses the cached keys which a token attends to,
 * by the scores of an indexer. Contract: engine/graph.h.
 *
 * Details of the arithmetic: a product q_h . k_j is that of attention without its scale
 * (engine/cpu/isa/attn.h, or the dot of F32 weights); with weights, from +0, ascending h: score =
 * fmaf(max(q_h . k_j, 0), w_h, score). A score that is NaN, or whose slot is not in the cache, is
 * larger than any number.
 *
 * Tokens are processed in groups whose scores fit GROUP_BUDGET, each in three regions: workers
 * convert queries; compute scores of chunks of keys for a few tokens, so that the keys stay in a
 * cache; and choose. No result depends on this division. */
#include "base/size.h"
#include "engine/cpu/attention/attention.h"
#include "engine/kv.h"
#include <math.h>
#include <string.h>

enum { CHUNK = ATTENTION_CHUNK, TILE = ATTENTION_TILE, GROUP = ENGINE_ATTN_GROUP };
enum { TOKENS_AT_ONCE = 8 }; /* that share a chunk of keys */
static const int64_t GROUP_BUDGET = 16 << 20;

struct layout {
    int64_t n_tokens, n_heads, n_lists, d, d_pad, n_positions;
    int64_t group;                    /* tokens whose scores are kept at once */
    int64_t query_bytes, key_bytes;   /* of a converted query; of a group of int16 keys */
    bool coded;                       /* keys are int16-quantized, otherwise F32 */
    int64_t query_at, query_scale_at; /* offsets in shared scratch: [group][HI] */
    int64_t score_at;                 /* F32 [group][lists][positions] */
    int64_t shared_bytes;
    int64_t tile_at, key_at, rank_at, left_at; /* offsets in a worker's scratch */
    int64_t worker_bytes;
};

struct run {
    const struct engine_task *task;
    struct engine_tensor *dst;
    struct layout l;
    const struct engine_attn *attn;
    const struct engine_tile *tile;
    char *local; /* the worker's scratch */
};

static struct layout layout_of(const struct engine_tensor *dst)
{
    const struct engine_tensor *q = dst->src[ENGINE_CHOOSE_Q], *k = dst->src[ENGINE_CHOOSE_K];
    struct layout l = {.n_tokens = dst->ne[2],
                       .n_lists = dst->ne[1],
                       .group = dst->ne[2],
                       .n_positions = dst->src[ENGINE_CHOOSE_TABLES]->ne[0]};
    if (!q) return l; /* without scores */
    l.n_heads = q->ne[1];
    l.d = q->ne[0];
    l.d_pad = engine_round_up(q->ne[0], 16);
    l.coded = engine_tensor_is(k, QUANT_I8);
    l.key_bytes = engine_attn_key_bytes(q->ne[0]);
    const int64_t each = l.n_lists * l.n_positions * 4;
    l.group = engine_max(1, engine_min(l.n_tokens, GROUP_BUDGET / each));
    l.query_bytes = engine_round_up((l.d + 1) / 2 * 4, 64);
    l.query_at =
        engine_scratch_reserve(&l.shared_bytes, l.coded ? l.group * l.n_heads * l.query_bytes : 0);
    l.query_scale_at = engine_scratch_reserve(&l.shared_bytes, l.group * l.n_heads * 4);
    l.score_at = engine_scratch_reserve(&l.shared_bytes, l.group * each);
    l.tile_at = engine_scratch_reserve(&l.worker_bytes, sizeof(struct engine_attn_tile));
    l.key_at = engine_scratch_reserve(&l.worker_bytes,
                                      l.coded ? CHUNK / GROUP * l.key_bytes : CHUNK * l.d_pad * 4);
    l.rank_at = engine_scratch_reserve(&l.worker_bytes, l.n_positions * 4);
    l.left_at = engine_scratch_reserve(&l.worker_bytes, l.n_positions * 4);
    return l;
}

static int64_t choose_keys_scratch(const struct engine_tensor *dst, int n_threads)
{
    const struct layout l = layout_of(dst);
    return l.shared_bytes + l.worker_bytes * n_threads;
}

/* ---- The keys of a token ---- */

struct key_range {
    const int32_t *slots; /* by position; NULL: the token's table does not exist */
    int64_t table, lo, hi;
};

static struct key_range read_range(const struct engine_tensor *range,
                                   const struct engine_tensor *tables, int64_t token)
{
    const int32_t *v = (const int32_t *)(range->data + token * range->nb[1]);
    struct key_range r = {NULL, v[0], engine_max(v[1], 0), engine_min(v[2], tables->ne[0])};
    if (r.table < 0 || r.table >= tables->ne[1]) return r;
    r.slots = (const int32_t *)(tables->data + r.table * tables->nb[1]);
    return r;
}

static struct key_range range_of(const struct run *run, int64_t token)
{
    return read_range(run->dst->src[ENGINE_CHOOSE_RANGE], run->dst->src[ENGINE_CHOOSE_TABLES],
                      token);
}

/* The blocks that have a position of the range. */
static int64_t first_block(const struct run *run, const struct key_range *r)
{
    return r->lo / run->dst->params.choose_keys.block;
}

static int64_t n_blocks(const struct run *run, const struct key_range *r)
{
    const int64_t block = run->dst->params.choose_keys.block;
    return r->lo < r->hi ? (r->hi - 1) / block - r->lo / block + 1 : 0;
}

/* Whether all keys of the range are chosen, whatever their scores are. */
static bool takes_all(const struct run *run, const struct key_range *r)
{
    return !r->slots || !run->dst->src[ENGINE_CHOOSE_Q] ||
           n_blocks(run, r) <= run->dst->params.choose_keys.n_used;
}

static float *scores_of(const struct run *run, int64_t index, int64_t list)
{
    char *at = run->task->scratch + run->l.score_at;
    return (float *)(void *)at + (index * run->l.n_lists + list) * run->l.n_positions;
}

static char *query_of(const struct run *run, int64_t index, int64_t head)
{
    return run->task->scratch + run->l.query_at +
           (index * run->l.n_heads + head) * run->l.query_bytes;
}

static float *query_scale_of(const struct run *run, int64_t index)
{
    char *at = run->task->scratch + run->l.query_scale_at;
    return (float *)(void *)at + index * run->l.n_heads;
}

static const float *query_row(const struct run *run, int64_t token, int64_t head)
{
    const struct engine_tensor *q = run->dst->src[ENGINE_CHOOSE_Q];
    return (const float *)(q->data + token * q->nb[2] + head * q->nb[1]);
}

/* ---- Scores ---- */

/* The loaded keys of a chunk of one table: positions lo .. hi - 1 of the chunk. */
struct keys {
    const int32_t *slots; /* of the table; NULL: none are loaded */
    int64_t chunk, lo, hi;
    const char *group[CHUNK / GROUP]; /* address of each group of int16 keys */
};

static bool is_missing(const struct run *run, int32_t slot)
{
    const struct engine_tensor *k = run->dst->src[ENGINE_CHOOSE_K];
    return slot < 0 || (k && slot >= engine_kv_slots(k));
}

/* Returns the group of keys that has positions first .. end - 1 of `slots` in order: in the cache,
 * or gathered at `to`. */
static const char *load_group(const struct run *run, const int32_t *slots, int64_t first,
                              int64_t end, char *to)
{
    const struct engine_tensor *k = run->dst->src[ENGINE_CHOOSE_K];
    bool in_order = !is_missing(run, slots[first]) && slots[first] % GROUP == first % GROUP;
    for (int64_t j = first; j < end; j++) in_order &= slots[j] == slots[first] + (j - first);
    if (in_order) return k->data + slots[first] / GROUP * k->nb[2];
    for (int64_t j = first; j < end; j++)
        if (!is_missing(run, slots[j]))
            engine_attn_key_copy(run->l.d, k->data + slots[j] / GROUP * k->nb[2], slots[j] % GROUP,
                                 to, j % GROUP);
    return to;
}

static void load(const struct run *run, const struct key_range *r, int64_t chunk, int64_t lo,
                 int64_t hi, struct keys *keys)
{
    const struct layout *l = &run->l;
    const struct engine_tensor *k = run->dst->src[ENGINE_CHOOSE_K];
    char *to = run->local + l->key_at;
    if (keys->slots == r->slots && keys->chunk == chunk && keys->lo <= lo && keys->hi >= hi) return;
    keys->slots = r->slots;
    keys->chunk = chunk;
    keys->lo = lo;
    keys->hi = hi;
    const int32_t *slots = r->slots + chunk * CHUNK;
    if (l->coded) {
        for (int64_t g = lo / GROUP; g * GROUP < hi; g++)
            keys->group[g] = load_group(run, slots, engine_max(lo, g * GROUP),
                                        engine_min(hi, (g + 1) * GROUP), to + g * l->key_bytes);
        return;
    }
    for (int64_t j = lo; j < hi; j++)
        if (!is_missing(run, slots[j]))
            memcpy(to + j * l->d_pad * 4, k->data + slots[j] * k->nb[2], (size_t)l->d * 4);
}

/* Computes tile->t[i][lo .. hi - 1] for the heads first .. first + n - 1 of a token. `from_memory`:
 * the keys are not in the processor's caches yet; then those of the next chunk are prefetched. */
static void tile_products(const struct run *run, const struct keys *keys, int64_t token,
                          int64_t index, int64_t first, int64_t n, int64_t lo, int64_t hi,
                          bool from_memory, struct engine_attn_tile *tile)
{
    static const float no_offset[CHUNK];
    const struct layout *l = &run->l;
    if (!l->coded) {
        const float *q[TILE], *k = (const float *)(const void *)(run->local + l->key_at);
        float *out[TILE];
        for (int64_t i = 0; i < n; i++) {
            q[i] = query_row(run, token, first + i);
            out[i] = tile->t[i] + lo;
        }
        run->tile->f32(l->d, k + lo * l->d_pad, l->d_pad, hi - lo, q, n, out);
        return;
    }
    tile->n_rows = n;
    for (int64_t i = 0; i < n; i++) {
        tile->query[i] = (const int16_t *)(const void *)query_of(run, index, first + i);
        tile->query_scale[i] = query_scale_of(run, index)[first + i];
    }
    const int64_t end = (hi + GROUP - 1) / GROUP;
    for (int64_t g = lo / GROUP, next; g < end; g = next) {
        const char *base = keys->group[g] - g * l->key_bytes;
        for (next = g + 1; next < end && keys->group[next] == base + next * l->key_bytes;) next++;
        tile->ahead = base + CHUNK / GROUP * l->key_bytes; /* usually the next chunk */
        tile->ahead_bytes = from_memory ? (next - g) * l->key_bytes : 0;
        run->attn->scores(l->d, g, next, base, no_offset, tile);
    }
}

/* Computes the scores of the keys lo .. hi - 1 of a chunk for a token. */
static void score_token(const struct run *run, const struct key_range *r, const struct keys *keys,
                        int64_t token, int64_t index, int64_t lo, int64_t hi, bool from_memory)
{
    const struct engine_tensor *w = run->dst->src[ENGINE_CHOOSE_WEIGHTS];
    const struct engine_vec *vec = &run->task->cpu->vec;
    struct engine_attn_tile *tile = (void *)(run->local + run->l.tile_at);
    tile->to_l1 = run->task->cpu->quant.prefetch.to_l1;
    tile->streams = run->task->cpu->quant.prefetch.streams;
    const int64_t at = keys->chunk * CHUNK + lo, n = hi - lo;
    if (w) memset(scores_of(run, index, 0) + at, 0, (size_t)n * sizeof(float));
    for (int64_t first = 0; first < run->l.n_heads; first += TILE) {
        const int64_t rows = engine_min(TILE, run->l.n_heads - first);
        tile_products(run, keys, token, index, first, rows, lo, hi, from_memory && first == 0,
                      tile);
        for (int64_t i = 0; i < rows; i++) {
            float *t = tile->t[i] + lo;
            if (!w) {
                memcpy(scores_of(run, index, first + i) + at, t, (size_t)n * sizeof(float));
                continue;
            }
            const char *weight = w->data + token * w->nb[1] + (first + i) * w->nb[0];
            vec->unary[ENGINE_RELU](n, t, t);
            vec->mad(n, t, *(const float *)(const void *)weight, scores_of(run, index, 0) + at);
        }
    }
    for (int64_t j = at; j < at + n; j++)
        for (int64_t list = 0; is_missing(run, r->slots[j]) && list < run->l.n_lists; list++)
            scores_of(run, index, list)[j] = NAN;
}

/* Scores of a chunk for the tokens first + index, from <= index < to. */
static void score_chunk(const struct run *run, int64_t first, int64_t from, int64_t to,
                        int64_t chunk)
{
    struct keys keys = {0};
    for (int64_t index = to - 1; index >= from; index--) { /* later tokens have more keys */
        const struct key_range r = range_of(run, first + index);
        const int64_t lo = engine_max(r.lo - chunk * CHUNK, 0);
        const int64_t hi = engine_min(r.hi - chunk * CHUNK, CHUNK);
        if (lo >= hi || takes_all(run, &r)) continue;
        const bool from_memory = keys.slots == NULL;
        load(run, &r, chunk, lo, hi, &keys);
        score_token(run, &r, &keys, first + index, index, lo, hi, from_memory);
    }
}

static void convert_queries(const struct run *run, int64_t token, int64_t index)
{
    for (int64_t head = 0; run->l.coded && head < run->l.n_heads; head++)
        query_scale_of(run, index)[head] =
            run->attn->row(run->l.d, query_row(run, token, head), ENGINE_ATTN_QUERY,
                           (int16_t *)(void *)query_of(run, index, head));
}

/* ---- The choice ---- */

/* Returns a number that orders scores: that of a larger one is larger, and of NaN the largest. */
static uint32_t rank_of(float score)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    if (isnan(score)) return UINT32_MAX;
    return bits >> 31 ? ~bits : bits | 0x80000000U;
}

/* Returns the k-th largest of n ranks, 1 <= k <= n, and sets *n_equal to the number of ranks equal
 * to it that are among the k largest. `left` has room for n. */
static uint32_t kth_rank(const uint32_t *rank, int64_t n, int64_t k, uint32_t *left,
                         int64_t *n_equal)
{
    enum { BITS = 11, DIGITS = 1 << BITS };
    static const int shift[] = {32 - BITS, 32 - 2 * BITS, 0};
    uint32_t found = 0;
    for (int i = 0; i < 3; i++, rank = left) {
        int32_t count[DIGITS] = {0};
        uint32_t digit = DIGITS - 1;
        int64_t kept = 0;
        for (int64_t j = 0; j < n; j++) count[rank[j] >> shift[i] & (DIGITS - 1)]++;
        for (; count[digit] < k; digit--) k -= count[digit];
        /* Without a branch, which would be mispredicted. */
        for (int64_t j = 0; j < n; j++) {
            left[kept] = rank[j];
            kept += (rank[j] >> shift[i] & (DIGITS - 1)) == digit;
        }
        n = kept;
        found |= digit << shift[i];
    }
    *n_equal = k;
    return found;
}

/* Computes the ranks of blocks, numbered from the range's first. */
static void rank_blocks(const struct run *run, const struct key_range *r, const float *score,
                        uint32_t *rank)
{
    const struct engine_choose_keys *how = &run->dst->params.choose_keys;
    const int64_t first = first_block(run, r), n = n_blocks(run, r);
    if (how->block == 1) {
        for (int64_t b = 0; b < n; b++) rank[b] = rank_of(score[r->lo + b]);
    } else {
        for (int64_t b = 0; b < n; b++) {
            const int64_t lo = engine_max(r->lo, (first + b) * how->block);
            const int64_t hi = engine_min(r->hi, (first + b + 1) * how->block);
            rank[b] = 0;
            for (int64_t j = lo; j < hi; j++)
                if (rank_of(score[j]) > rank[b]) rank[b] = rank_of(score[j]);
        }
    }
    for (int64_t b = engine_max(0, n - how->n_local); b < n; b++) rank[b] = rank_of(INFINITY);
}

/* Writes the numbers of the chosen blocks, ascending from the range's first, and returns how many
 * they are. */
static int64_t choose_blocks(const struct run *run, const struct key_range *r, const float *score,
                             uint32_t *chosen)
{
    uint32_t *rank = (uint32_t *)(void *)(run->local + run->l.rank_at);
    const int64_t n = n_blocks(run, r);
    int64_t n_equal, found = 0;
    rank_blocks(run, r, score, rank);
    const uint32_t least = kth_rank(rank, n, run->dst->params.choose_keys.n_used, chosen, &n_equal);
    for (int64_t b = 0; b < n; b++) {
        const bool equal = rank[b] == least;
        chosen[found] = (uint32_t)b;
        found += (rank[b] > least) | (equal & (n_equal > 0));
        n_equal -= equal;
    }
    return found;
}

/* Returns the near positions of a token; without a table if there are none. */
static struct key_range near_of(const struct run *run, int64_t token)
{
    const struct engine_tensor *range = run->dst->src[ENGINE_CHOOSE_NEAR_RANGE];
    if (!range) return (struct key_range){0};
    return read_range(range, run->dst->src[ENGINE_CHOOSE_NEAR_TABLES], token);
}

/* Writes the slots of near positions, at most `most`, and returns their number. */
static int64_t add_near(const struct key_range *r, int64_t most, int32_t *slots)
{
    int64_t n = 0;
    for (int64_t j = r->lo; r->slots && j < r->hi && n < most; j++) slots[n++] = r->slots[j];
    return n;
}

/* Writes the slots that a chosen position j stands for, and returns their number. */
static int64_t add_chosen(const struct run *run, const struct key_range *r,
                          const struct key_range *near, int64_t j, int64_t list, int32_t *slots)
{
    const struct engine_choose_keys *how = &run->dst->params.choose_keys;
    if (how->n_each) {
        struct key_range each = *near;
        each.lo = j * how->n_each;
        each.hi = engine_min(each.hi, each.lo + how->n_each);
        return add_near(&each, how->n_each, slots);
    }
    slots[0] = is_missing(run, r->slots[j]) ? -1 : r->slots[j] + (int32_t)list * how->stride;
    return 1;
}

static void choose(const struct run *run, int64_t token, int64_t index, int64_t list)
{
    const struct engine_choose_keys *how = &run->dst->params.choose_keys;
    const int64_t row = token * run->l.n_lists + list, most = run->dst->ne[0] - ENGINE_RANGE;
    const struct key_range r = range_of(run, token);
    struct key_range near = near_of(run, token);
    int32_t *out = (int32_t *)(run->dst->data + row * run->dst->nb[1]), *slots = out + ENGINE_RANGE;
    uint32_t *chosen = (uint32_t *)(void *)(run->local + run->l.left_at);
    const bool all = takes_all(run, &r);
    const int64_t n_chosen = !r.slots ? 0
                             : all    ? n_blocks(run, &r)
                                      : choose_blocks(run, &r, scores_of(run, index, list), chosen);
    int64_t n = 0;
    for (int64_t b = 0; b < n_chosen; b++) {
        const int64_t block = first_block(run, &r) + (all ? b : chosen[b]);
        const int64_t hi = engine_min(r.hi, (block + 1) * how->block);
        for (int64_t j = engine_max(r.lo, block * how->block); j < hi; j++)
            n += add_chosen(run, &r, &near, j, list, slots + n);
    }
    near.lo = engine_max(near.lo, r.hi * how->n_each);
    n += add_near(&near, engine_min(most - n, how->n_near), slots + n);
    out[0] = r.slots ? (int32_t)row : -1;
    out[1] = out[3] = 0;
    out[2] = (int32_t)n;
    for (int64_t j = n; j < most; j++) slots[j] = -1;
}

static void choose_keys_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_worker *w = task->worker;
    struct run run = {.task = task,
                      .dst = dst,
                      .l = layout_of(dst),
                      .attn = engine_attn_table(task->cpu->quant.level),
                      .tile = engine_tile_table(task->cpu->quant.level)};
    const struct layout *l = &run.l;
    run.local = task->scratch + l->shared_bytes + w->ith * l->worker_bytes;
    for (int64_t first = 0; first < l->n_tokens; first += l->group) {
        const int64_t n = engine_min(l->group, l->n_tokens - first);
        const int64_t parts = (n + TOKENS_AT_ONCE - 1) / TOKENS_AT_ONCE;
        int64_t end = 0; /* of the positions that have scores */
        for (int64_t i = 0; i < n; i++) {
            const struct key_range r = range_of(&run, first + i);
            if (!takes_all(&run, &r)) end = engine_max(end, r.hi);
        }
        if (end > 0) {
            for (int64_t i; (i = engine_pool_claim(w, 1)) < n;) convert_queries(&run, first + i, i);
            engine_pool_barrier(w);
            const int64_t units = (end + CHUNK - 1) / CHUNK * parts;
            for (int64_t u; (u = engine_pool_take(w, units)) < units;) {
                const int64_t from = u % parts * TOKENS_AT_ONCE;
                score_chunk(&run, first, from, engine_min(n, from + TOKENS_AT_ONCE), u / parts);
            }
            engine_pool_barrier(w);
        }
        for (int64_t u; (u = engine_pool_claim(w, 1)) < n * l->n_lists;)
            choose(&run, first + u / l->n_lists, u / l->n_lists, u % l->n_lists);
        if (first + l->group < l->n_tokens) engine_pool_barrier(w);
    }
}

const struct engine_cpu_op engine_cpu_op_choose_keys = {.op = &engine_op_choose_keys,
                                                        .split = ENGINE_SPLIT_OWN,
                                                        .scratch = choose_keys_scratch,
                                                        .run = choose_keys_run};
