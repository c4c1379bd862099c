/* engine/gpu/device/gpu_choose.c: device code: the choice of the cached keys that a token attends
 * to. The arithmetic and the order are those of engine/cpu/attention/choose_keys.c.
 *
 * Scores: a block of threads has 256 positions of a token, a thread each; it computes the heads in
 * ascending order. The choice: a block has a list of a token; it finds the least score that is
 * chosen bit by bit, and writes the slots of 256 blocks of positions at once. */
#include "engine/gpu/device/gpu_groups.h"
#include "engine/gpu/device/gpu_keys.h"

enum { THREADS = ENGINE_GPU_THREADS, HEAD = 4 /* numbers of a row before its slots */ };
_Static_assert((int)THREADS == (int)ENGINE_GPU_ATTENTION_THREADS, "both kernels have as many");

/* ---- The keys of a token ---- */

struct gpu_key_range {
    const int32_t *slots; /* by position; NULL: the token's table does not exist */
    int64_t lo, hi;
};

static struct gpu_key_range range_of(const struct engine_gpu_tensor *ranges,
                                     const struct engine_gpu_tensor *tables, int64_t token)
{
    const int32_t *v = (const int32_t *)(const void *)(ranges->data + token * ranges->nb[1]);
    struct gpu_key_range r = {NULL, v[1] > 0 ? v[1] : 0,
                              v[2] < tables->ne[0] ? v[2] : tables->ne[0]};
    if (v[0] >= 0 && v[0] < tables->ne[1])
        r.slots = (const int32_t *)(const void *)(tables->data + v[0] * tables->nb[1]);
    return r;
}

/* The blocks that have a position of the range. */
static int64_t n_blocks(const struct engine_gpu_choose_keys *p, const struct gpu_key_range *r)
{
    return r->lo < r->hi ? (r->hi - 1) / p->how.block - r->lo / p->how.block + 1 : 0;
}

/* Whether all keys of the range are chosen, whatever their scores are. */
static bool takes_all(const struct engine_gpu_choose_keys *p, const struct gpu_key_range *r)
{
    return !r->slots || !p->q.data || n_blocks(p, r) <= p->how.n_used;
}

static bool is_missing(const struct engine_gpu_choose_keys *p, int32_t slot)
{
    return slot < 0 || slot >= p->n_slots;
}

static float *scores_of(const struct engine_gpu_choose_keys *p, int64_t list)
{
    return p->scores + (gpu_block_y() * p->out.ne[1] + list) * p->tables.ne[0];
}

/* ---- Scores ---- */

/* q . k of a head's query; all threads of the block call it, and those without a key get 0. */
static float product(const struct engine_gpu_choose_keys *p, const float *query, bool has_key,
                     int32_t slot)
{
    struct engine_gpu_choose_memory *s = gpu_shared();
    const int64_t d = p->q.ne[0];
    if (p->coded) {
        gpu_sync(); /* the query before is read */
        if (gpu_warp() == 0) {
            const float scale = gpu_query_codes(d, query, s->query);
            if (gpu_lane() == 0) s->scale = scale;
        }
        gpu_sync(); /* the query is written */
    }
    if (!has_key) return 0.0f;
    if (!p->coded)
        return gpu_float_score(d, (const float *)(const void *)(p->k.data + slot * p->k.nb[2]),
                               query);
    const char *group = p->k.data + slot / ENGINE_ATTN_GROUP * p->k.nb[2];
    const int64_t r = slot % ENGINE_ATTN_GROUP;
    const float acc = gpu_key_score(d, group, r, s->query);
    return fmaf(acc * engine_attn_scales(group)[r], s->scale, 0.0f);
}

GPU_KERNEL(engine_gpu_choose_scores, engine_gpu_choose_keys)
{
    const int64_t token = p.first + gpu_block_y(),
                  j = (int64_t)gpu_block() * THREADS + gpu_thread();
    const struct gpu_key_range r = range_of(&p.ranges, &p.tables, token);
    if (takes_all(&p, &r)) return;
    const bool is_in = j >= r.lo && j < r.hi;
    const int32_t slot = is_in ? r.slots[j] : 0;
    const bool missing = is_missing(&p, slot);
    float sum = 0.0f;
    for (int64_t h = 0; h < p.q.ne[1]; h++) {
        const struct engine_gpu_index weight = {{h, token, 0, 0}};
        const char *query = p.q.data + token * p.q.nb[2] + h * p.q.nb[1];
        const float t = product(&p, (const float *)(const void *)query, is_in && !missing, slot);
        if (p.weights.data)
            sum = fmaf(v_unary(ENGINE_RELU, t), gpu_float(&p.weights, &weight), sum);
        else if (is_in)
            scores_of(&p, h)[j] = missing ? v_of_bits(0x7fc00000) : t;
    }
    if (is_in && p.weights.data) scores_of(&p, 0)[j] = missing ? v_of_bits(0x7fc00000) : sum;
}

/* ---- The choice ---- */

/* A number that is larger for a larger score, and the largest for NaN. */
static uint32_t rank_of(float score)
{
    const uint32_t bits = v_bits(score);
    if (isnan(score)) return UINT32_MAX;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The rank of the k-th largest of n scores, 1 <= *k <= n; *k becomes the number of scores of this
 * rank that are among the k largest. */
static uint32_t kth_rank(const float *score, int64_t n, int32_t *k)
{
    uint32_t rank = 0;
    for (int bit = 31; bit >= 0; bit--) {
        const uint32_t mask = ~0u << bit, next = rank | 1u << bit;
        int32_t count = 0, all;
        for (int64_t i = gpu_thread(); i < n; i += THREADS)
            count += (rank_of(score[i]) & mask) == next;
        (void)gpu_sum_before(count, &all);
        if (all >= *k)
            rank = next;
        else
            *k -= all;
    }
    return rank;
}

/* The positions of block b of a range, whose blocks are numbered from its first on. */
static struct gpu_key_range positions_of(const struct engine_gpu_choose_keys *p,
                                         const struct gpu_key_range *r, int64_t b)
{
    const int64_t block = p->how.block, first = (r->lo / block + b) * block;
    return (struct gpu_key_range){r->slots, first > r->lo ? first : r->lo,
                                  first + block < r->hi ? first + block : r->hi};
}

/* Replaces the scores of positions by those of their blocks, which only the thread that writes them
 * reads. */
static void score_blocks(const struct engine_gpu_choose_keys *p, const struct gpu_key_range *r,
                         float *score)
{
    const int64_t n = n_blocks(p, r);
    for (int64_t first = 0; first < n; first += THREADS) {
        const int64_t b = first + gpu_thread();
        const struct gpu_key_range at = positions_of(p, r, b);
        float best = b < n ? score[at.lo] : 0.0f;
        for (int64_t j = at.lo + 1; j < at.hi; j++)
            if (rank_of(score[j]) > rank_of(best)) best = score[j];
        gpu_sync(); /* these blocks' positions are read; those of later ones are not below b */
        if (b < n) score[b] = n - b <= p->how.n_local ? INFINITY : best;
    }
}

/* The near positions of a token; without a table if there are none. */
static struct gpu_key_range near_of(const struct engine_gpu_choose_keys *p, int64_t token)
{
    if (!p->near_ranges.data) return (struct gpu_key_range){0};
    return range_of(&p->near_ranges, &p->near_tables, token);
}

/* The near positions that the chosen ones of `at` stand for. */
static struct gpu_key_range each_of(const struct engine_gpu_choose_keys *p,
                                    const struct gpu_key_range *near,
                                    const struct gpu_key_range *at)
{
    const int64_t n = p->how.n_each, hi = at->hi * n < near->hi ? at->hi * n : near->hi;
    return (struct gpu_key_range){near->slots, at->lo * n,
                                  near->slots && hi > at->lo * n ? hi : at->lo * n};
}

/* Writes the slots of the chosen blocks, and returns their number. */
static int32_t write_chosen(const struct engine_gpu_choose_keys *p, const struct gpu_key_range *r,
                            const struct gpu_key_range *near, const float *score, int32_t *slots)
{
    const int64_t n = r->slots ? n_blocks(p, r) : 0;
    const bool all = takes_all(p, r);
    int32_t n_equal = p->how.n_used, n_before = 0, n_slots = 0, sum;
    const uint32_t least = all ? 0 : kth_rank(score, n, &n_equal);
    for (int64_t first = 0; first < n; first += THREADS) {
        const int64_t b = first + gpu_thread();
        const uint32_t rank = b < n && !all ? rank_of(score[b]) : 0;
        const bool equal = b < n && !all && rank == least;
        const int32_t number = n_before + gpu_sum_before(equal, &sum);
        n_before += sum;
        const bool chosen = b < n && (all || rank > least || (equal && number < n_equal));
        struct gpu_key_range at = positions_of(p, r, b);
        if (p->how.n_each) at = each_of(p, near, &at);
        int32_t to = n_slots + gpu_sum_before(chosen ? (int32_t)(at.hi - at.lo) : 0, &sum);
        n_slots += sum;
        for (int64_t j = at.lo; chosen && j < at.hi; j++) {
            const int32_t slot = at.slots[j];
            slots[to++] = p->how.n_each         ? slot
                          : is_missing(p, slot) ? -1
                                                : slot + gpu_block() * p->how.stride;
        }
    }
    return n_slots;
}

GPU_KERNEL(engine_gpu_choose_keys, engine_gpu_choose_keys)
{
    const int64_t token = p.first + gpu_block_y(), row = token * p.out.ne[1] + gpu_block();
    const int64_t most = p.out.ne[0] - HEAD;
    const struct gpu_key_range r = range_of(&p.ranges, &p.tables, token), near = near_of(&p, token);
    int32_t *out = (int32_t *)(void *)(p.out.data + row * p.out.nb[1]), *slots = out + HEAD;
    float *score = takes_all(&p, &r) ? NULL : scores_of(&p, gpu_block());
    if (score) score_blocks(&p, &r, score);
    const int64_t n = write_chosen(&p, &r, &near, score, slots);
    const int64_t after = r.hi * p.how.n_each, lo = near.lo > after ? near.lo : after;
    int64_t n_near = near.slots && near.hi > lo ? near.hi - lo : 0;
    if (n_near > p.how.n_near) n_near = p.how.n_near;
    if (n_near > most - n) n_near = most - n;
    for (int64_t j = n + gpu_thread(); j < most; j += THREADS)
        slots[j] = j < n + n_near ? near.slots[lo + j - n] : -1;
    if (gpu_thread() == 0) {
        out[0] = r.slots ? (int32_t)row : -1;
        out[1] = out[3] = 0;
        out[2] = (int32_t)(n + n_near);
    }
}
