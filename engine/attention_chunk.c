/* engine/attention_chunk.c: one chunk of keys and values for a block of query rows.
 *
 * A chunk is read once per block: its keys and values become codes (engine/attend.h), or floats
 * where the cache is F32, in this worker's scratch, which stay in the L2 cache while tiles of query
 * rows go over them: scores, weights, weighted sums. Codes lie by position in the chunk, so that
 * scales of weights belong to the same keys whatever the batch. */
#include "engine/attention.h"
#include <math.h>
#include <string.h>

enum { CHUNK = ATTENTION_CHUNK, GROUP = ENGINE_ATTEND_GROUP, SUB = ENGINE_ATTEND_SUB };
enum { ROWS_AHEAD = 32 }; /* rows are asked for so long before they are read */

static void *scratch(const struct attention_run *run, int64_t at)
{
    return run->own + at;
}

void engine_attention_convert_queries(const struct attention_run *run,
                                      const struct attention_block *b)
{
    const struct attention_layout *l = &run->l;
    const struct engine_tensor *q = run->dst->src[ATTENTION_Q];
    float *scale = scratch(run, l->query_scale_at);
    for (int64_t i = 0; i < b->n; i++) {
        int64_t row = b->first + i, head = b->kv * l->per_kv + row % l->per_kv;
        const float *from = (const float *)(q->data + row / l->per_kv * q->nb[2] + head * q->nb[1]);
        void *to = scratch(run, l->query_at + i * l->query_bytes);
        if (l->float_keys)
            memcpy(to, from, (size_t)l->d * 4);
        else
            scale[i] = run->attend->query(l->d, from, to) * run->scale;
    }
}

/* ---- Reading the cache ---- */

/* The rows of one KV head in a cache. The cells of a sequence mostly follow one another, but the
 * processor sees 16 streams in a group: rows are asked for before they are read. Further ahead than
 * this is slower. */
struct rows {
    const char *first;
    int64_t stride, bytes;
};

static struct rows rows_of(const struct engine_tensor *cache, int64_t kv)
{
    return (struct rows){.first = cache->data + kv * cache->nb[1],
                         .stride = cache->nb[2],
                         .bytes = cache->ne[0] / cache->type->block_len * cache->type->block_bytes};
}

static inline void prefetch_row(const struct rows *rows, int64_t cell)
{
    const char *row = rows->first + cell * rows->stride;
    for (int64_t i = 0; i < rows->bytes; i += 64) __builtin_prefetch(row + i, 0, 2);
}

static bool chunk_keys(const struct attention_run *run, const struct attention_block *b,
                       int64_t chunk, struct attention_keys *keys)
{
    int64_t lo = INT64_MAX, hi = 0, chunk_lo = chunk * CHUNK, chunk_hi = chunk_lo + CHUNK;
    for (int64_t i = 0; i < b->n; i++) {
        int64_t row_lo = b->lo[i] > chunk_lo ? b->lo[i] : chunk_lo;
        int64_t row_hi = b->hi[i] < chunk_hi ? b->hi[i] : chunk_hi;
        if (row_lo >= row_hi) continue;
        if (row_lo < lo) lo = row_lo;
        if (row_hi > hi) hi = row_hi;
    }
    if (lo >= hi) return false;
    const struct engine_tensor *cells = run->dst->src[ATTENTION_CELLS];
    const int32_t *list = (const int32_t *)(cells->data + b->list * cells->nb[1]) + chunk_lo;
    int64_t n_cells = run->dst->src[ATTENTION_K]->ne[2];
    keys->chunk_lo = chunk_lo;
    keys->lo = lo - chunk_lo;
    keys->hi = hi - chunk_lo;
    keys->any_missing = false;
    for (int64_t j = keys->lo; j < keys->hi; j++) {
        int32_t cell = list[j];
        keys->missing[j] = cell < 0 || cell >= n_cells;
        keys->cell[j] = keys->missing[j] ? 0 : cell;
        keys->any_missing |= keys->missing[j];
    }
    return true;
}

/* Keys or values of one KV head on their way into scratch. */
struct load {
    const struct engine_tensor *cache;
    struct rows rows;
    void *to;
    float *scale;
};

/* Asks for the rows of the keys [from, to). */
static void prefetch_rows(struct rows rows, const struct attention_keys *keys, int64_t from,
                          int64_t to)
{
    for (int64_t j = from; j < to; j++) prefetch_row(&rows, keys->cell[j]);
}

static void load_floats(const struct attention_run *run, const struct load *load, int64_t pad,
                        const struct attention_keys *keys)
{
    const struct quant_kernel *kernel = &run->task->engine->quant.type[load->cache->type->id];
    for (int64_t j = keys->lo; j < keys->hi; j++) {
        if (j + ROWS_AHEAD < keys->hi)
            prefetch_rows(load->rows, keys, j + ROWS_AHEAD, j + ROWS_AHEAD + 1);
        kernel->decode(load->cache->ne[0], load->rows.first + keys->cell[j] * load->rows.stride,
                       (float *)load->to + j * pad);
    }
}

/* The 16 rows from key j on; in the place of keys that nobody sees, one that somebody does. Types
 * other than F16 are decoded. */
static void group_rows(const struct attention_run *run, const struct load *load,
                       const struct attention_keys *keys, int64_t j, const char **row)
{
    const struct rows rows = load->rows;
    const int64_t lo = keys->lo, hi = keys->hi, later = j + ROWS_AHEAD;
    prefetch_rows(rows, keys, later > lo ? later : lo, later + GROUP < hi ? later + GROUP : hi);
    for (int64_t i = 0; i < GROUP; i++) {
        int64_t key = j + i < lo ? lo : j + i < hi ? j + i : hi - 1;
        row[i] = rows.first + keys->cell[key] * rows.stride;
    }
    if (engine_tensor_is(load->cache, QUANT_F16)) return;
    const struct quant_kernel *kernel = &run->task->engine->quant.type[load->cache->type->id];
    const int64_t n = load->cache->ne[0], pad = (n + 15) / 16 * 16;
    for (int64_t i = 0; i < GROUP; i++) {
        float *decoded = (float *)scratch(run, run->l.decoded_at) + i * pad;
        kernel->decode(n, row[i], decoded);
        row[i] = (const char *)decoded;
    }
}

bool engine_attention_chunk_load(const struct attention_run *run, const struct attention_block *b,
                                 int64_t chunk, struct attention_keys *keys)
{
    const struct attention_layout *l = &run->l;
    const struct engine_tensor *k = run->dst->src[ATTENTION_K], *v = run->dst->src[ATTENTION_V];
    if (!chunk_keys(run, b, chunk, keys)) return false;
    const int64_t first = keys->lo / SUB * SUB;
    struct load load = {.cache = k,
                        .rows = rows_of(k, b->kv),
                        .to = scratch(run, l->key_at),
                        .scale = scratch(run, l->key_scale_at)};
    const char *row[GROUP];
    if (l->float_keys) load_floats(run, &load, l->d_pad, keys);
    for (int64_t j = first; !l->float_keys && j < keys->hi; j += GROUP) {
        group_rows(run, &load, keys, j, row);
        run->attend->keys(l->d, engine_tensor_is(k, QUANT_F16), row,
                          (int16_t *)load.to + j / GROUP * engine_attend_key_codes(l->d),
                          load.scale + j);
    }
    load = (struct load){.cache = v,
                         .rows = rows_of(v, b->kv),
                         .to = scratch(run, l->value_at),
                         .scale = scratch(run, l->value_scale_at)};
    if (l->float_values) load_floats(run, &load, l->dv_pad, keys);
    const int64_t end = (keys->hi + SUB - 1) / SUB * SUB;
    for (int64_t j = first; !l->float_values && j < end; j += GROUP) {
        group_rows(run, &load, keys, j, row);
        run->attend->values(l->dv, engine_tensor_is(v, QUANT_F16), row,
                            (int16_t *)load.to + j / GROUP * engine_attend_value_codes(l->dv),
                            load.scale + j);
    }
    return true;
}

/* ---- A tile of query rows ---- */

/* Rows of a tile that see keys of the chunk: those [lo, hi), counted from the chunk's first. */
struct tile {
    int64_t n, lo[ATTENTION_TILE], hi[ATTENTION_TILE];
    int64_t least, most;           /* over all rows */
    int64_t index[ATTENTION_TILE]; /* of the row in the block */
    float *p[ATTENTION_TILE];      /* scores, then weights, by key of the chunk */
    struct attention_partial *out[ATTENTION_TILE];
};

static void tile_scores(const struct attention_run *run, const struct attention_keys *keys,
                        const struct tile *t)
{
    const struct attention_layout *l = &run->l;
    const char *query = scratch(run, l->query_at);
    float *out[ATTENTION_TILE];
    if (l->float_keys) {
        const float *k = scratch(run, l->key_at), *q[ATTENTION_TILE];
        for (int64_t i = 0; i < t->n; i++) {
            q[i] = (const float *)(query + t->index[i] * l->query_bytes);
            out[i] = t->p[i] + t->least;
        }
        run->tile->f32(l->d, k + t->least * l->d_pad, l->d_pad, t->most - t->least, q, t->n, out);
        for (int64_t i = 0; i < t->n; i++)
            run->task->engine->vec.scale(t->most - t->least, out[i], run->scale, 0.0f, out[i]);
    } else {
        const int64_t first = t->least / GROUP, end = (t->most + GROUP - 1) / GROUP;
        const int16_t *k = scratch(run, l->key_at), *q[ATTENTION_TILE];
        const float *k_scale = scratch(run, l->key_scale_at),
                    *all = scratch(run, l->query_scale_at);
        float scale[ATTENTION_TILE];
        for (int64_t i = 0; i < t->n; i++) {
            q[i] = (const int16_t *)(query + t->index[i] * l->query_bytes);
            scale[i] = all[t->index[i]];
            out[i] = t->p[i] + first * GROUP;
        }
        run->attend->scores(l->d, end - first, k + first * engine_attend_key_codes(l->d),
                            k_scale + first * GROUP, (int)t->n, q, scale, out);
    }
    for (int64_t j = t->least; keys->any_missing && j < t->most; j++)
        for (int64_t i = 0; keys->missing[j] && i < t->n; i++) t->p[i][j] = NAN;
}

/* Scores to weights, in place; sets m and l. */
static void soften(const struct attention_run *run, float *s, int64_t n,
                   struct attention_partial *out)
{
    const struct engine_vec *vec = &run->task->engine->vec;
    if (run->softcap != 0.0f) {
        vec->scale(n, s, 1.0f / run->softcap, 0.0f, s);
        vec->unary[ENGINE_TANH](n, s, s);
        vec->scale(n, s, run->softcap, 0.0f, s);
    }
    out->m = vec->max(n, s);
    out->l = vec->exp_sum(n, s, out->m, s);
    out->seen = 1.0f;
}

/* o += weights of row i * values of the keys [from, to). */
static void sum_floats(const struct attention_run *run, const struct tile *t, int64_t i, int64_t n,
                       int64_t from, int64_t to)
{
    const struct attention_layout *l = &run->l;
    const float *v = (const float *)scratch(run, l->value_at) + from * l->dv_pad;
    const float *p[ATTENTION_TILE];
    float *o[ATTENTION_TILE];
    if (from >= to) return;
    for (int64_t r = 0; r < n; r++) {
        p[r] = t->p[i + r] + from;
        o[r] = t->out[i + r]->o;
    }
    run->tile->weighted_sum(to - from, l->dv, v, l->dv_pad, p, n, o);
}

/* Together where all rows see the same keys, alone where not; every row in ascending order. */
static void tile_float_sums(const struct attention_run *run, const struct tile *t)
{
    int64_t from = 0, to = CHUNK;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->lo[i] > from) from = t->lo[i];
        if (t->hi[i] < to) to = t->hi[i];
    }
    const bool common = from < to;
    for (int64_t i = 0; i < t->n; i++) sum_floats(run, t, i, 1, t->lo[i], common ? from : t->hi[i]);
    if (!common) return;
    sum_floats(run, t, 0, t->n, from, to);
    for (int64_t i = 0; i < t->n; i++) sum_floats(run, t, i, 1, to, t->hi[i]);
}

static void tile_sums(const struct attention_run *run, const struct tile *t)
{
    const struct attention_layout *l = &run->l;
    const int64_t first = t->least / SUB, n_sub = (t->most + SUB - 1) / SUB - first;
    const float *v_scale = (const float *)scratch(run, l->value_scale_at) + first * SUB;
    const int16_t *v = (const int16_t *)scratch(run, l->value_at) +
                       first * (SUB / GROUP) * engine_attend_value_codes(l->dv);
    int16_t *codes[ATTENTION_TILE];
    float *scale[ATTENTION_TILE], *o[ATTENTION_TILE];
    for (int64_t i = 0; i < t->n; i++) {
        float *p = t->p[i];
        codes[i] = (int16_t *)scratch(run, l->weight_at) + i * CHUNK;
        scale[i] = (float *)scratch(run, l->weight_scale_at) + i * (CHUNK / SUB);
        o[i] = t->out[i]->o;
        memset(p + first * SUB, 0, (size_t)(t->lo[i] - first * SUB) * sizeof *p);
        memset(p + t->hi[i], 0, (size_t)((first + n_sub) * SUB - t->hi[i]) * sizeof *p);
        run->attend->weights(n_sub, p + first * SUB, v_scale, codes[i], scale[i]);
    }
    run->attend->sums(l->dv, n_sub, v, (int)t->n, (const int16_t *const *)codes,
                      (const float *const *)scale, o);
    /* Keys of other rows have added +0, which matters to -0 only: no row may keep one. */
    for (int64_t i = 0; i < t->n; i++) run->task->engine->vec.scale(l->dv, o[i], 1.0f, 0.0f, o[i]);
}

void engine_attention_chunk_tile(const struct attention_run *run, const struct attention_block *b,
                                 const struct attention_keys *keys, int64_t first, int64_t n,
                                 struct attention_partial *const *out)
{
    const struct attention_layout *l = &run->l;
    struct tile t = {.least = CHUNK};
    for (int64_t i = 0; i < n; i++) {
        int64_t lo = b->lo[first + i] - keys->chunk_lo, hi = b->hi[first + i] - keys->chunk_lo;
        if (lo < 0) lo = 0;
        if (hi > CHUNK) hi = CHUNK;
        out[i]->seen = 0.0f;
        if (lo >= hi) continue;
        t.lo[t.n] = lo;
        t.hi[t.n] = hi;
        t.index[t.n] = first + i;
        t.p[t.n] = (float *)scratch(run, l->score_at) + t.n * CHUNK;
        t.out[t.n++] = out[i];
        if (lo < t.least) t.least = lo;
        if (hi > t.most) t.most = hi;
    }
    if (t.n == 0) return;
    tile_scores(run, keys, &t);
    for (int64_t i = 0; i < t.n; i++) {
        soften(run, t.p[i] + t.lo[i], t.hi[i] - t.lo[i], t.out[i]);
        memset(t.out[i]->o, 0, (size_t)l->dv * sizeof(float));
    }
    if (l->float_values)
        tile_float_sums(run, &t);
    else
        tile_sums(run, &t);
}
