/* engine/cpu/attention/attention_chunk.c: one chunk of keys and values for a block of query rows.
 *
 * A chunk is read once for each block: its keys and values are converted to int16
 * (engine/cpu/isa/attn.h), or to floats if the cache is F32, in the worker's scratch. The scores,
 * weights and weighted sums of all tiles of query rows then read them from the L2 cache. An
 * int16-quantized cache is read in place. A row's place is its position in the chunk, so that the
 * keys that share a scale of weights do not depend on the batch. */
#include "engine/alibi.h"
#include "engine/cpu/attention/attention.h"
#include "quant/stream.h"
#include <math.h>
#include <string.h>

enum { CHUNK = ATTENTION_CHUNK, GROUP = ENGINE_ATTN_GROUP, SUB = ENGINE_ATTN_SUB };
_Static_assert((int)CHUNK == (int)ENGINE_ATTN_KEYS, "a tile has the keys of a chunk");
enum { ROWS_AHEAD = 32 }; /* prefetch distance in rows */

static void *scratch(const struct attention_run *run, int64_t at)
{
    return run->local + at;
}

void engine_attention_convert_queries(const struct attention_run *run,
                                      const struct attention_block *b)
{
    const struct attention_layout *l = &run->l;
    const struct engine_tensor *q = run->dst->src[ENGINE_ATTENTION_Q];
    float *scale = scratch(run, l->query_scale_at);
    for (int64_t i = 0; i < b->n; i++) {
        int64_t row = b->first + i, head = b->kv * l->per_kv + row % l->per_kv;
        const float *from = (const float *)(q->data + row / l->per_kv * q->nb[2] + head * q->nb[1]);
        void *to = scratch(run, l->query_at + i * l->query_bytes);
        if (l->float_keys)
            memcpy(to, from, (size_t)l->d * 4);
        else
            scale[i] = run->attn->row(l->d, from, ENGINE_ATTN_QUERY, to) * run->query_scale;
    }
}

/* ---- Reading the cache ---- */

/* The rows of one KV head in a cache. The slots of a sequence are usually consecutive, but the rows
 * of a group are 16 address streams, which exceed the hardware prefetchers, so they are prefetched
 * by software. A distance above ROWS_AHEAD is slower. */
struct cache_rows {
    const char *first;
    int64_t stride, bytes;
};

static struct cache_rows rows_of(const struct engine_tensor *cache, int64_t kv)
{
    return (struct cache_rows){.first = cache->data + kv * cache->nb[1],
                               .stride = cache->nb[2],
                               .bytes = quant_row_size(cache->type, cache->ne[0])};
}

PREFETCH_INLINE void prefetch_row(const struct cache_rows *rows, int64_t slot)
{
    quant_prefetch(rows->first + slot * rows->stride, (size_t)rows->bytes);
}

/* Sets the pieces in which an int16 cache has the chunk's keys in the layout of scratch. Returns
 * false if some keys are in another order or not aligned. */
static bool in_place(const int32_t *table, int64_t n_slots, struct attention_keys *keys)
{
    keys->n_pieces = 0;
    for (int64_t j = keys->lo; j < keys->hi;) {
        struct attention_piece *piece = &keys->piece[keys->n_pieces];
        const int64_t first = table[j], lo = j;
        if (first < 0 || first + keys->hi - j > n_slots) return false;
        while (j < keys->hi && table[j] - first == j - lo) j++;
        *piece = (struct attention_piece){.lo = lo, .hi = j, .base = first - lo};
        if (piece->base % ENGINE_KV_Q16_ALIGN || (j < keys->hi && j % SUB)) return false;
        keys->n_pieces++;
    }
    return true;
}

static const int32_t *table_at(const struct attention_run *run, int64_t table, int64_t position)
{
    const struct engine_tensor *tables = run->dst->src[ENGINE_ATTENTION_TABLES];
    return (const int32_t *)(tables->data + table * tables->nb[1]) + position;
}

/* Whether row i of the block reads the slots of row k in a chunk. */
static bool same_slots(const struct attention_run *run, const struct attention_block *b, int64_t i,
                       int64_t k, int64_t chunk)
{
    const int64_t lo = chunk * CHUNK, hi = lo + CHUNK;
    if (b->table[i] == b->table[k]) return true;
    if (b->lo[i] > lo || b->lo[k] > lo || b->hi[i] < hi || b->hi[k] < hi) return false;
    return memcmp(table_at(run, b->table[i], lo), table_at(run, b->table[k], lo),
                  CHUNK * sizeof(int32_t)) == 0;
}

static bool chunk_keys(const struct attention_run *run, const struct attention_block *b,
                       int64_t chunk, struct attention_keys *keys)
{
    int64_t lo = INT64_MAX, hi = 0, chunk_lo = chunk * CHUNK, chunk_hi = chunk_lo + CHUNK;
    int64_t last = chunk_hi;
    for (int64_t i = b->part; i < b->part_end; i++) {
        if (b->hi[i] > last) last = b->hi[i];
        int64_t row_lo = b->lo[i] > chunk_lo ? b->lo[i] : chunk_lo;
        int64_t row_hi = b->hi[i] < chunk_hi ? b->hi[i] : chunk_hi;
        if (row_lo >= row_hi) continue;
        if (row_lo < lo) lo = row_lo;
        if (row_hi > hi) hi = row_hi;
    }
    if (lo >= hi) return false;
    const int32_t *table = table_at(run, b->table[b->part], chunk_lo);
    const int64_t n_slots = engine_kv_slots(run->dst->src[ENGINE_ATTENTION_K]);
    keys->chunk_lo = chunk_lo;
    keys->lo = lo - chunk_lo;
    keys->hi = hi - chunk_lo;
    keys->next = engine_min(last - chunk_hi + GROUP - 1, CHUNK) / GROUP;
    keys->any_missing = false;
    keys->in_place = in_place(table, n_slots, keys);
    if (keys->in_place && run->l.q16_keys && run->l.q16_values) return true;
    keys->in_place &= keys->n_pieces == 1;
    keys->n_pieces = 1;
    keys->piece[0].lo = keys->lo;
    keys->piece[0].hi = keys->hi;
    for (int64_t j = keys->lo; j < keys->hi; j++) {
        int32_t slot = table[j];
        keys->missing[j] = slot < 0 || slot >= n_slots;
        keys->slot[j] = keys->missing[j] ? 0 : slot;
        keys->any_missing |= keys->missing[j];
    }
    return true;
}

PREFETCH_INLINE void prefetch_rows(struct cache_rows rows, const struct attention_keys *keys,
                                   int64_t from, int64_t to)
{
    for (int64_t j = from; j < to; j++) prefetch_row(&rows, keys->slot[j]);
}

/* Decodes the rows of keys [from, to) to floats; key `from` goes to out[0]. */
static void load_floats(const struct attention_run *run, const struct engine_tensor *cache,
                        struct cache_rows rows, const struct attention_keys *keys, int64_t from,
                        int64_t to, int64_t pad, float *out)
{
    const struct quant_kernel *kernel = &run->task->cpu->quant.type[cache->type->id];
    for (int64_t j = from; j < to; j++) {
        if (j + ROWS_AHEAD < keys->hi)
            prefetch_rows(rows, keys, j + ROWS_AHEAD, j + ROWS_AHEAD + 1);
        kernel->decode(0, cache->ne[0], rows.first + keys->slot[j] * rows.stride,
                       out + (j - from) * pad);
    }
}

/* Quantizes keys or values of a cache of another type to int16 groups. */
static void load_as_q16(const struct attention_run *run, const struct engine_tensor *cache,
                        struct cache_rows rows, const struct attention_keys *keys, bool values,
                        char *to)
{
    const struct attention_layout *l = &run->l;
    const int64_t n = values ? l->dv : l->d, bytes = values ? l->value_bytes : l->key_bytes;
    const int64_t pad = values ? l->dv_pad : l->d_pad;
    float *decoded = scratch(run, l->decoded_at);
    for (int64_t g = keys->lo / GROUP; g * GROUP < keys->hi; g++) {
        const int64_t first = g * GROUP < keys->lo ? keys->lo : g * GROUP;
        const int64_t end = (g + 1) * GROUP < keys->hi ? (g + 1) * GROUP : keys->hi;
        /* Keys of the group that are in no row's range are zeros. */
        if (end - first < GROUP) memset(decoded, 0, (size_t)(GROUP * pad) * sizeof *decoded);
        load_floats(run, cache, rows, keys, first, end, pad, decoded + (first - g * GROUP) * pad);
        (values ? run->attn->values : run->attn->keys)(n, decoded, pad, to + g * bytes);
    }
}

/* Whether keys [j, j + GROUP) are a group of the cache in the same order. */
static bool is_group(const struct attention_keys *keys, int64_t j)
{
    if (j % GROUP || j + GROUP > keys->hi || keys->slot[j] % GROUP) return false;
    int32_t differ = 0;
    for (int32_t k = 0; k < GROUP; k++) differ |= (keys->slot[j + k] - keys->slot[j]) ^ k;
    return differ == 0;
}

/* Prefetches values of keys [from, to). */
static void prefetch_values(const struct attention_run *run, const struct cache_rows *rows,
                            const struct attention_keys *keys, int64_t from, int64_t to)
{
    for (int64_t j = from; j < to && j < keys->hi; j++)
        engine_attn_value_prefetch(run->l.dv, rows->first + keys->slot[j] / GROUP * rows->stride,
                                   keys->slot[j] % GROUP);
}

/* Gathers keys or values of an int16 cache: whole groups at once if their slots are consecutive,
 * which is true except for the group in which a sequence was forked and for keys that an indexer
 * chose. */
static void gather_q16(const struct attention_run *run, struct cache_rows rows,
                       const struct attention_keys *keys, bool values, char *to)
{
    const struct attention_layout *l = &run->l;
    const int64_t bytes = values ? l->value_bytes : l->key_bytes;
    for (int64_t j = keys->lo, end; j < keys->hi; j = end) {
        char *group = to + j / GROUP * bytes;
        end = engine_min((j / GROUP + 1) * GROUP, keys->hi);
        if (is_group(keys, j)) {
            memcpy(group, rows.first + keys->slot[j] / GROUP * rows.stride, (size_t)bytes);
        } else if (values) {
            prefetch_values(run, &rows, keys, end, end + GROUP);
            run->attn->gather_values(l->dv, rows.first, rows.stride, keys->slot + j, end - j, group,
                                     j % GROUP);
        } else {
            run->attn->gather_keys(l->d, rows.first, rows.stride, keys->slot + j, end - j, group,
                                   j % GROUP);
        }
    }
}

/* Loads the chunk's keys (or values) if they are not used in place; sets the pieces' addresses. */
static void load(const struct attention_run *run, const struct attention_block *b,
                 struct attention_keys *keys, bool values)
{
    const struct attention_layout *l = &run->l;
    const struct engine_tensor *cache =
        run->dst->src[values ? ENGINE_ATTENTION_V : ENGINE_ATTENTION_K];
    const struct cache_rows rows = rows_of(cache, b->kv);
    char *to = scratch(run, values ? l->value_at : l->key_at);
    const bool q16 = values ? l->q16_values : l->q16_keys;
    for (int i = 0; i < keys->n_pieces; i++)
        *(values ? &keys->piece[i].value : &keys->piece[i].key) =
            q16 && keys->in_place ? rows.first + keys->piece[i].base / GROUP * rows.stride : to;
    if (q16) {
        if (!keys->in_place) gather_q16(run, rows, keys, values, to);
    } else if (values ? l->float_values : l->float_keys) {
        const int64_t pad = values ? l->dv_pad : l->d_pad;
        load_floats(run, cache, rows, keys, keys->lo, keys->hi, pad, (float *)to + keys->lo * pad);
    } else {
        load_as_q16(run, cache, rows, keys, values, to);
    }
}

bool engine_attention_chunk_load(const struct attention_run *run, struct attention_block *b,
                                 int64_t chunk, struct attention_keys *keys)
{
    b->part_end = b->part + 1;
    while (b->part_end < b->n && same_slots(run, b, b->part_end, b->part_end - 1, chunk))
        b->part_end++;
    if (!chunk_keys(run, b, chunk, keys)) return false;
    load(run, b, keys, false);
    load(run, b, keys, true);
    for (int i = 0; !run->l.float_values && i < keys->n_pieces; i++) {
        const struct attention_piece *piece = &keys->piece[i];
        const int64_t first = piece->lo / GROUP, end = (piece->hi + GROUP - 1) / GROUP;
        float *offset = scratch(run, run->l.offset_at), *inverse = scratch(run, run->l.inverse_at);
        run->attn->offsets(run->l.dv, end - first, piece->value + first * run->l.value_bytes,
                           offset + first * GROUP, inverse + first * GROUP);
    }
    return true;
}

/* ---- A tile of query rows ---- */

/* Rows of a tile and their ranges [lo, hi) of keys, relative to the chunk's first key. */
struct tile {
    int64_t n, lo[ATTENTION_TILE], hi[ATTENTION_TILE];
    int64_t min_lo, max_hi;        /* over all rows */
    int64_t index[ATTENTION_TILE]; /* of the row in the block */
    float slope[ATTENTION_TILE];   /* ALiBi: slope of the row's head, and the query's position, */
    int64_t self[ATTENTION_TILE];  /* relative to the chunk's first key */
    int64_t head[ATTENTION_TILE];  /* of the row */
    struct engine_attn_tile *tile; /* for the kernels; t: scores, then weights, of float values */
    struct attention_partial *out[ATTENTION_TILE];
};

/* Offsets of zero, for scores that do not include the exponents of value scales. */
static const float no_offset[CHUNK];

/* Sets the prefetch of the next step to n groups of `bytes` each. */
static void set_prefetch(struct engine_attn_tile *tile, const char *groups, int64_t n,
                         int64_t bytes)
{
    tile->ahead = groups;
    tile->ahead_bytes = n * bytes;
}

/* Computes scores or, if run->direct, the exponents t_j of the weights 2^t_j
 * (engine/cpu/isa/attn.h). `from_memory`: keys and values are not in the processor's caches yet;
 * then values are prefetched, and later the keys of the next chunk, which is usually next in
 * memory. */
static void tile_scores(const struct attention_run *run, const struct attention_keys *keys,
                        const struct tile *t, bool from_memory)
{
    const struct attention_layout *l = &run->l;
    const char *query = scratch(run, l->query_at);
    if (l->float_keys) {
        float *out[ATTENTION_TILE];
        const float *k = (const float *)(const void *)keys->piece[0].key, *q[ATTENTION_TILE];
        for (int64_t i = 0; i < t->n; i++) {
            q[i] = (const float *)(query + t->index[i] * l->query_bytes);
            out[i] = t->tile->t[i] + t->min_lo;
        }
        run->tile->f32(l->d, k + t->min_lo * l->d_pad, l->d_pad, t->max_hi - t->min_lo, q, t->n,
                       out);
        for (int64_t i = 0; i < t->n; i++)
            run->task->cpu->vec.scale(t->max_hi - t->min_lo, out[i], run->scale, 0.0f, out[i]);
    } else {
        const float *all = scratch(run, l->query_scale_at);
        for (int64_t i = 0; i < t->n; i++) {
            t->tile->query[i] = (const int16_t *)(query + t->index[i] * l->query_bytes);
            t->tile->query_scale[i] = all[t->index[i]];
        }
        for (int i = 0; i < keys->n_pieces; i++) {
            const struct attention_piece *piece = &keys->piece[i];
            const int64_t first = engine_max(t->min_lo, piece->lo) / GROUP;
            const int64_t end = (engine_min(t->max_hi, piece->hi) + GROUP - 1) / GROUP;
            if (first >= end) continue;
            set_prefetch(t->tile, piece->value + first * l->value_bytes,
                         from_memory ? end - first : 0, l->value_bytes);
            run->attn->scores(l->d, first, end, piece->key,
                              run->direct ? scratch(run, l->offset_at) : no_offset, t->tile);
        }
    }
    for (int64_t j = t->min_lo; keys->any_missing && j < t->max_hi; j++)
        for (int64_t i = 0; keys->missing[j] && i < t->n; i++) t->tile->t[i][j] = NAN;
}

/* s = softcap * tanh(s / softcap) * by */
static void cap(const struct attention_run *run, float *s, int64_t n, float by)
{
    const struct engine_vec *vec = &run->task->cpu->vec;
    vec->scale(n, s, 1.0f / run->softcap, 0.0f, s);
    vec->unary[ENGINE_TANH](n, s, s);
    vec->scale(n, s, run->softcap * by, 0.0f, s);
}

/* Adds the ALiBi bias, by the distance to query i, to the scores of n keys from `lo` on. */
static void add_alibi(const struct tile *t, int64_t i, float *s, int64_t lo, int64_t n)
{
    for (int64_t j = 0; j < n; j++) s[j] -= t->slope[i] * fabsf((float)(lo + j - t->self[i]));
}

/* Adds the biases by relative position to the scores of n keys from `lo` on. */
static void add_relative(const struct attention_run *run, const struct tile *t, int64_t i, float *s,
                         int64_t lo, int64_t n)
{
    const struct engine_tensor *table = run->relative;
    const int64_t radius = table->ne[1] / 2;
    const char *own = table->data + radius * table->nb[1] + t->head[i] * table->nb[0];
    for (int64_t j = 0; j < n; j++) {
        const int64_t distance = lo + j - t->self[i];
        const int64_t at = engine_max(-radius, engine_min(radius, distance));
        s[j] += *(const float *)(own + at * table->nb[1]);
    }
}

/* Replaces scores by weights; sets m and l. */
static void softmax_row(const struct attention_run *run, float *s, int64_t n,
                        struct attention_partial *out)
{
    const struct engine_vec *vec = &run->task->cpu->vec;
    if (run->softcap != 0.0f) cap(run, s, n, 1.0f);
    out->m = vec->max(n, s);
    out->l = vec->exp_sum(n, s, out->m, s);
    out->any = 1.0f;
}

/* o += weights of rows [i, i + n) * values of the keys [from, to). */
static void sum_floats(const struct attention_run *run, const struct attention_keys *keys,
                       const struct tile *t, int64_t i, int64_t n, int64_t from, int64_t to)
{
    const struct attention_layout *l = &run->l;
    const float *v = (const float *)(const void *)keys->piece[0].value + from * l->dv_pad;
    const float *p[ATTENTION_TILE];
    float *o[ATTENTION_TILE];
    if (from >= to) return;
    for (int64_t r = 0; r < n; r++) {
        p[r] = t->tile->t[i + r] + from;
        o[r] = t->out[i + r]->o;
    }
    run->tile->weighted_sum(to - from, l->dv, v, l->dv_pad, p, n, o);
}

/* Sums all rows at once over the keys that are in all ranges, and row by row over the others; each
 * row in ascending order of keys. */
static void tile_float_sums(const struct attention_run *run, const struct attention_keys *keys,
                            const struct tile *t)
{
    int64_t from = 0, to = CHUNK;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->lo[i] > from) from = t->lo[i];
        if (t->hi[i] < to) to = t->hi[i];
    }
    const bool common = from < to;
    for (int64_t i = 0; i < t->n; i++)
        sum_floats(run, keys, t, i, 1, t->lo[i], common ? from : t->hi[i]);
    if (!common) return;
    sum_floats(run, keys, t, 0, t->n, from, to);
    for (int64_t i = 0; i < t->n; i++) sum_floats(run, keys, t, i, 1, to, t->hi[i]);
}

/* Converts scores of row i to exponents t_j of weights, unless the kernel has computed
 * exponents. */
static void exponents(const struct attention_run *run, const struct tile *t, int64_t i)
{
    const struct engine_vec *vec = &run->task->cpu->vec;
    const float *offset = scratch(run, run->l.offset_at);
    const int64_t lo = t->tile->lo[i], n = t->tile->hi[i] - lo;
    float *s = t->tile->t[i] + lo;
    if (run->max_alibi != 0.0f) add_alibi(t, i, s, lo, n);
    if (run->relative) add_relative(run, t, i, s, lo, n);
    if (run->softcap != 0.0f)
        cap(run, s, n, ATTENTION_LOG2_E);
    else
        vec->scale(n, s, ATTENTION_LOG2_E, 0.0f, s);
    vec->add(n, s, offset + lo, s);
}

/* Prefetches the scales of n groups of values, which `offsets` reads first. */
PREFETCH_INLINE void prefetch_scales(const char *group, int64_t n, int64_t bytes)
{
    for (int64_t i = 0; i < n; i++) quant_prefetch(group + i * bytes, 4 * GROUP);
}

/* Computes weights and sums if values are int16. */
static void tile_sums(const struct attention_run *run, const struct attention_keys *keys,
                      const struct tile *t, bool from_memory)
{
    const struct attention_layout *l = &run->l;
    const int64_t first = t->min_lo / SUB, end = (t->max_hi + SUB - 1) / SUB;
    float *o[ATTENTION_TILE];
    memcpy(t->tile->lo, t->lo, sizeof t->lo);
    memcpy(t->tile->hi, t->hi, sizeof t->hi);
    for (int64_t i = 0; i < t->n; i++) {
        o[i] = t->out[i]->o;
        memset(o[i], 0, (size_t)l->dv * sizeof **o);
        if (!run->direct) exponents(run, t, i);
    }
    const struct attention_piece *last = &keys->piece[keys->n_pieces - 1];
    if (from_memory)
        prefetch_scales(last->value + CHUNK / GROUP * l->value_bytes, keys->next, l->value_bytes);
    const int64_t ahead = from_memory ? keys->next : 0;
    set_prefetch(t->tile, last->key + CHUNK / GROUP * l->key_bytes, ahead, l->key_bytes);
    run->attn->weights(first, end, scratch(run, l->inverse_at), t->tile);
    for (const struct attention_piece *piece = keys->piece; piece <= last; piece++) {
        const int64_t from = engine_max(t->min_lo, piece->lo) / SUB;
        const int64_t to = (engine_min(t->max_hi, piece->hi) + SUB - 1) / SUB;
        t->tile->ahead_bytes = piece == last ? ahead * l->key_bytes : 0;
        if (from < to) run->attn->sums(l->dv, from, to, piece->value, t->tile, o);
    }
    for (int64_t i = 0; i < t->n; i++) {
        t->out[i]->m = t->tile->base[i];
        t->out[i]->l = t->tile->sum[i];
        t->out[i]->any = 1.0f;
    }
}

void engine_attention_chunk_tile(const struct attention_run *run, const struct attention_block *b,
                                 const struct attention_keys *keys, int64_t first, int64_t n,
                                 struct attention_partial *const *out)
{
    const struct attention_layout *l = &run->l;
    struct tile t = {.min_lo = CHUNK, .tile = scratch(run, l->tile_at)};
    for (int64_t i = 0; i < n; i++) {
        int64_t lo = b->lo[first + i] - keys->chunk_lo, hi = b->hi[first + i] - keys->chunk_lo;
        if (lo < 0) lo = 0;
        if (hi > CHUNK) hi = CHUNK;
        out[i]->any = 0.0f;
        if (lo >= hi) continue;
        t.lo[t.n] = lo;
        t.hi[t.n] = hi;
        t.index[t.n] = first + i;
        t.head[t.n] = b->kv * l->per_kv + (b->first + first + i) % l->per_kv;
        t.slope[t.n] = run->max_alibi == 0.0f
                           ? 0.0f
                           : engine_alibi_slope(run->max_alibi, t.head[t.n], l->n_heads);
        t.self[t.n] = b->self[first + i] - keys->chunk_lo;
        t.out[t.n++] = out[i];
        if (lo < t.min_lo) t.min_lo = lo;
        if (hi > t.max_hi) t.max_hi = hi;
    }
    if (t.n == 0) return;
    t.tile->n_rows = t.n;
    t.tile->to_l1 = run->task->cpu->quant.prefetch.to_l1;
    t.tile->streams = run->task->cpu->quant.prefetch.streams;
    const bool from_memory = first == b->part && keys->in_place;
    tile_scores(run, keys, &t, from_memory);
    if (!l->float_values) {
        tile_sums(run, keys, &t, from_memory);
        return;
    }
    for (int64_t i = 0; i < t.n; i++) {
        if (run->max_alibi != 0.0f)
            add_alibi(&t, i, t.tile->t[i] + t.lo[i], t.lo[i], t.hi[i] - t.lo[i]);
        if (run->relative)
            add_relative(run, &t, i, t.tile->t[i] + t.lo[i], t.lo[i], t.hi[i] - t.lo[i]);
        softmax_row(run, t.tile->t[i] + t.lo[i], t.hi[i] - t.lo[i], t.out[i]);
        memset(t.out[i]->o, 0, (size_t)l->dv * sizeof(float));
    }
    tile_float_sums(run, keys, &t);
}
