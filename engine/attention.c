/* engine/attention.c: attention over a cache of keys and values, without a score matrix.
 *
 * Sources: q, k_cache, v_cache, span, cells, sinks (or NULL); parameters: scale, softcap. Contract
 * and arithmetic: engine/graph.h. What is left open there: score times scale and softcap are
 * separate roundings (vec.scale, tanh, vec.scale); sums over a chunk start at the first key of it
 * that the token sees; a merge is l = l0 * e0 + l1 * e1, o = fmaf(o1, e1, o0 * e0); the result is
 * o * (1 / l), zero where there are neither keys nor sinks. A span that leaves its list is cut, a
 * list or a cell that does not exist gives NaN.
 *
 * The query rows of a KV head are numbered token * (heads per KV head) + head and taken in blocks
 * of ROWS; a block reads each chunk of keys and values once, as floats in this worker's scratch.
 * A unit of work is one block with all its chunks, or, when there are fewer blocks than workers
 * need (decoding), one block with one chunk: then partial results go through shared scratch and
 * are merged in the same order, so that the bits do not depend on the choice. */
#include "base/size.h"
#include "engine/graph_internal.h"
#include "engine/profile.h"
#include "engine/tile.h"
#include <math.h>
#include <string.h>

enum {
    CHUNK = ENGINE_ATTENTION_CHUNK,
    ROWS = 32,            /* query rows that share a chunk of keys */
    GEMV_ROWS = 1,        /* so few rows read float keys where they lie */
    DIRECT_ROWS = 4,      /* so few read F16 keys and values where they lie */
    UNITS_PER_WORKER = 4, /* fewer units than that: split by chunks */
    ROWS_AHEAD = 32,
    DECODED_BYTES = 16384,
    PARTIAL_HEAD = 16 /* floats before o in a partial result: m, l, padding */
};
static const int64_t PARTIAL_BUDGET = 64 << 20;

enum { SRC_Q, SRC_K, SRC_V, SRC_SPAN, SRC_CELLS, SRC_SINKS };
enum { PARAM_SCALE, PARAM_SOFTCAP };

/* Sizes, and where things lie; offsets in bytes. The same numbers on every worker. */
struct layout {
    int64_t n_tokens, n_heads, n_kv, per_kv, d, dv; /* per_kv: query heads per KV head */
    int64_t rows, n_blocks;                         /* query rows of a KV head, and their blocks */
    int64_t room, max_chunks;
    int64_t d_pad, dv_pad;  /* floats per row of decoded keys and values */
    int64_t k_rows, v_rows; /* that many rows are decoded at a time, to stay in the L1 cache */
    int64_t q_bytes;        /* of one converted query row */
    int64_t act_d, act_s, act_sum;
    int64_t q_at, score_at, kv_at, o_at, sum_at; /* in a worker's scratch */
    int64_t worker_bytes;
    bool may_split;
    int64_t partial_floats; /* of one (row, chunk) */
    int64_t partial_bytes;  /* of all */
};

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static void layout_query(struct layout *l, enum quant_act_kind kind)
{
    int64_t block = kind == QUANT_ACT_Q8_256 ? 256 : 32;
    if (kind == QUANT_ACT_F32) {
        l->q_bytes = l->d_pad * 4;
    } else if (kind == QUANT_ACT_BF16) {
        l->q_bytes = round_up(l->d, 32) * 2;
    } else {
        l->act_d = round_up(l->d, 64) + 64;
        l->act_s = l->act_d + round_up(l->d / block * 4, 64);
        l->act_sum = l->act_s + round_up(l->d / block * 4, 64);
        l->q_bytes = l->act_sum + round_up(l->d / (block == 32 ? 32 : 16) * 2, 64);
    }
}

static int64_t decoded_rows(int64_t pad)
{
    int64_t n = DECODED_BYTES / (4 * pad) / 4 * 4;
    return n < 16 ? 16 : n > CHUNK ? CHUNK : n;
}

static struct layout layout_of(const struct engine_tensor *dst, int n_threads)
{
    const struct engine_tensor *q = dst->src[SRC_Q], *k = dst->src[SRC_K], *v = dst->src[SRC_V];
    struct layout l = {.n_tokens = q->ne[2], .n_heads = q->ne[1], .n_kv = k->ne[1]};
    l.per_kv = l.n_heads / l.n_kv;
    l.d = k->ne[0];
    l.dv = v->ne[0];
    l.rows = l.n_tokens * l.per_kv;
    l.n_blocks = (l.rows + ROWS - 1) / ROWS;
    l.room = dst->src[SRC_CELLS]->ne[0];
    l.max_chunks = (l.room + CHUNK - 1) / CHUNK;
    l.d_pad = round_up(l.d, 16);
    l.dv_pad = round_up(l.dv, 16);
    l.k_rows = decoded_rows(l.d_pad);
    l.v_rows = decoded_rows(l.dv_pad);
    layout_query(&l, k->type->act);

    l.score_at = ROWS * l.q_bytes;
    l.kv_at = l.score_at + ROWS * CHUNK * 4;
    int64_t k_floats = l.k_rows * l.d_pad, v_floats = l.v_rows * l.dv_pad;
    l.o_at = l.kv_at + 4 * (k_floats > v_floats ? k_floats : v_floats);
    l.sum_at = l.o_at + ROWS * (PARTIAL_HEAD + l.dv_pad) * 4;
    l.worker_bytes = l.sum_at + ROWS * (PARTIAL_HEAD + l.dv_pad) * 4;

    l.partial_floats = PARTIAL_HEAD + l.dv_pad;
    uint64_t bytes = 0;
    bool fits = base_mul((uint64_t)(l.n_tokens * l.n_heads), (uint64_t)l.max_chunks, &bytes) &&
                base_mul(bytes, (uint64_t)l.partial_floats * 4, &bytes);
    l.may_split = fits && (int64_t)bytes <= PARTIAL_BUDGET && l.max_chunks > 1 &&
                  l.n_blocks * l.n_kv < (int64_t)n_threads * UNITS_PER_WORKER;
    l.partial_bytes = l.may_split ? (int64_t)bytes : 0;
    return l;
}

static int64_t attention_scratch(const struct engine_tensor *dst, int n_threads)
{
    struct layout l = layout_of(dst, n_threads);
    return l.partial_bytes + l.worker_bytes * n_threads;
}

/* ---- What a worker works with ---- */

/* A result of one query row over some keys; lies in scratch, `o` follows it in memory. */
struct partial {
    float m, l;
    float seen; /* 0: no key yet, m and l mean nothing */
    float padding[PARTIAL_HEAD - 3];
    float o[];
};

/* Query rows of one KV head that read the same list, the keys each of them sees. */
struct block {
    int64_t kv, first, n; /* rows first .. first + n - 1 */
    int64_t list;
    int64_t lo[ROWS], hi[ROWS]; /* keys lo <= j < hi; empty where lo >= hi */
};

struct run {
    const struct engine_task *task;
    struct engine_tensor *dst;
    struct layout l;
    const struct engine_tile *tile;
    char *own;
    float scale, softcap;
};

static const int32_t *span_of(const struct run *run, int64_t token)
{
    const struct engine_tensor *span = run->dst->src[SRC_SPAN];
    return (const int32_t *)(span->data + token * span->nb[1]);
}

static struct partial *partial_at(const struct run *run, char *base, int64_t index)
{
    return (struct partial *)(base + index * run->l.partial_floats * 4);
}

static float *score_row(const struct run *run, int64_t i)
{
    return (float *)(run->own + run->l.score_at) + i * CHUNK;
}

/* The longest run of rows from `first` on, at most up to `end`, that read one list. */
static struct block block_from(const struct run *run, int64_t kv, int64_t first, int64_t end)
{
    const struct layout *l = &run->l;
    struct block b = {.kv = kv, .first = first, .list = span_of(run, first / l->per_kv)[0]};
    for (int64_t row = first; row < end; row++) {
        const int32_t *span = span_of(run, row / l->per_kv);
        if (span[0] != b.list) break;
        b.lo[b.n] = span[1] < 0 ? 0 : span[1];
        b.hi[b.n] = span[2] < l->room ? span[2] : l->room;
        b.n++;
    }
    return b;
}

static bool block_list_exists(const struct run *run, const struct block *b)
{
    return b->list >= 0 && b->list < run->dst->src[SRC_CELLS]->ne[1];
}

/* ---- One chunk of keys for a block ---- */

/* The cells of a chunk's keys, those that any row of the block sees. */
struct keys {
    int64_t first, n;
    int32_t cell[CHUNK]; /* 0 for those that do not exist */
    bool missing[CHUNK], any_missing;
};

static bool chunk_keys(const struct run *run, const struct block *b, int64_t chunk,
                       struct keys *keys)
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
    const struct engine_tensor *cells = run->dst->src[SRC_CELLS];
    const int32_t *list = (const int32_t *)(cells->data + b->list * cells->nb[1]);
    int64_t n_cells = run->dst->src[SRC_K]->ne[2];
    keys->first = lo;
    keys->n = hi - lo;
    keys->any_missing = false;
    for (int64_t j = 0; j < keys->n; j++) {
        int32_t cell = list[lo + j];
        keys->missing[j] = cell < 0 || cell >= n_cells;
        keys->cell[j] = keys->missing[j] ? 0 : cell;
        keys->any_missing |= keys->missing[j];
    }
    return true;
}

/* The rows of one KV head in a cache. They lie apart by whole cells, which the processor does not
 * foresee: rows are asked for before they are read. */
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

/* Whether the block widens the rows of a cache in registers, without decoding them to scratch. */
static bool reads_direct(const struct run *run, const struct block *b,
                         const struct engine_tensor *cache)
{
    return run->tile->f16 && b->n <= DIRECT_ROWS && engine_tensor_is(cache, QUANT_F16);
}

/* Where the rows of the chunk's keys lie. */
static void direct_rows(const struct engine_tensor *cache, int64_t kv, const struct keys *keys,
                        const char **to)
{
    struct rows rows = rows_of(cache, kv);
    for (int64_t j = 0; j < keys->n; j++) to[j] = rows.first + keys->cell[j] * rows.stride;
}

/* Rows of the keys first .. first + n - 1 of the chunk as floats in this worker's scratch. While
 * they are decoded, the rows of the same cells in `next` (or NULL) are on their way. */
static const float *decode_rows(const struct run *run, const struct engine_tensor *cache,
                                const struct engine_tensor *next, int64_t kv,
                                const struct keys *keys, int64_t first, int64_t n, int64_t pad)
{
    float *to = (float *)(run->own + run->l.kv_at);
    const struct quant_kernel *kernel = &run->task->engine->quant.type[cache->type->id];
    struct rows rows = rows_of(cache, kv), later = next ? rows_of(next, kv) : (struct rows){0};
    for (int64_t j = first; j < first + n; j++) {
        if (j + ROWS_AHEAD < keys->n) prefetch_row(&rows, keys->cell[j + ROWS_AHEAD]);
        prefetch_row(&later, keys->cell[j]);
        kernel->decode(cache->ne[0], rows.first + keys->cell[j] * rows.stride,
                       to + (j - first) * pad);
    }
    return to;
}

static struct quant_act query_act(const struct run *run, enum quant_act_kind kind, int64_t i)
{
    const struct layout *l = &run->l;
    char *at = run->own + l->q_at + i * l->q_bytes;
    switch (kind) {
    case QUANT_ACT_F32:
        return (struct quant_act){.f32 = (const float *)at};
    case QUANT_ACT_BF16:
        return (struct quant_act){.bf16 = (const uint16_t *)at};
    default:
        return (struct quant_act){.q = (const int8_t *)at,
                                  .d = (const float *)(at + l->act_d),
                                  .s = (const float *)(at + l->act_s),
                                  .sum = (const int16_t *)(at + l->act_sum)};
    }
}

static void convert_queries(const struct run *run, const struct block *b)
{
    const struct layout *l = &run->l;
    const struct engine_tensor *q = run->dst->src[SRC_Q];
    const struct quant_kernels *quant = &run->task->engine->quant;
    for (int64_t i = 0; i < b->n; i++) {
        int64_t row = b->first + i, head = b->kv * l->per_kv + row % l->per_kv;
        const float *from = (const float *)(q->data + row / l->per_kv * q->nb[2] + head * q->nb[1]);
        char *to = run->own + l->q_at + i * l->q_bytes;
        switch (run->dst->src[SRC_K]->type->act) {
        case QUANT_ACT_F32:
            memcpy(to, from, (size_t)l->d * 4);
            break;
        case QUANT_ACT_BF16:
            memset(to + l->q_bytes - 64, 0, 64);
            quant->act_bf16(l->d, from, (uint16_t *)to);
            break;
        case QUANT_ACT_Q8_32:
            quant->act_q8_32(l->d, from, (int8_t *)to, (float *)(to + l->act_d),
                             (float *)(to + l->act_s), (int16_t *)(to + l->act_sum));
            break;
        default:
            quant->act_q8_256(l->d, from, (int8_t *)to, (float *)(to + l->act_d),
                              (int16_t *)(to + l->act_sum));
        }
    }
}

/* Scores through the type's gemv, over runs of keys that lie in consecutive cells. */
static void scores_by_gemv(const struct run *run, const struct block *b, const struct keys *keys)
{
    const struct engine_tensor *k = run->dst->src[SRC_K];
    const struct quant_kernel *kernel = &run->task->engine->quant.type[k->type->id];
    const char *from = k->data + b->kv * k->nb[1];
    for (int64_t j = 0, end; j < keys->n; j = end) {
        for (end = j + 1; end < keys->n && keys->cell[end] == keys->cell[end - 1] + 1;) end++;
        for (int64_t i = 0; i < b->n; i++) {
            struct quant_act q = query_act(run, k->type->act, i);
            kernel->gemv(run->l.d, from + keys->cell[j] * k->nb[2], (size_t)k->nb[2], end - j, &q,
                         score_row(run, i) + j);
        }
    }
}

static void scores_by_tile(const struct run *run, const struct block *b, const struct keys *keys)
{
    const struct engine_tensor *k = run->dst->src[SRC_K], *v = run->dst->src[SRC_V];
    const struct layout *l = &run->l;
    for (int64_t j = 0; j < keys->n; j += l->k_rows) {
        int64_t n = keys->n - j < l->k_rows ? keys->n - j : l->k_rows;
        const float *rows = decode_rows(run, k, v, b->kv, keys, j, n, l->d_pad), *q[ROWS];
        float *out[ROWS];
        for (int64_t i = 0; i < b->n; i++) {
            q[i] = query_act(run, QUANT_ACT_F32, i).f32;
            out[i] = score_row(run, i) + j;
        }
        run->tile->f32(l->d, rows, l->d_pad, n, q, b->n, out);
    }
}

/* Keys where they lie; their values, which are wanted next, are on their way meanwhile. */
static void scores_direct(const struct run *run, const struct block *b, const struct keys *keys)
{
    const struct engine_tensor *k = run->dst->src[SRC_K], *v = run->dst->src[SRC_V];
    const struct rows key_rows = rows_of(k, b->kv);
    const char *rows[2 * CHUNK];
    const float *q[DIRECT_ROWS];
    float *out[DIRECT_ROWS];
    for (int64_t i = 0; i < b->n; i++) {
        q[i] = query_act(run, QUANT_ACT_F32, i).f32;
        out[i] = score_row(run, i);
    }
    direct_rows(k, b->kv, keys, rows);
    direct_rows(v, b->kv, keys, rows + keys->n);
    for (int64_t j = 0; j < keys->n && j < ENGINE_TILE_AHEAD / key_rows.bytes; j++)
        prefetch_row(&key_rows, keys->cell[j]);
    run->tile->f16(run->l.d, rows, keys->n, 2 * keys->n, q, b->n, out);
}

static void scores(const struct run *run, const struct block *b, const struct keys *keys)
{
    if (reads_direct(run, b, run->dst->src[SRC_K]))
        scores_direct(run, b, keys);
    else if (run->dst->src[SRC_K]->type->act != QUANT_ACT_F32 || b->n <= GEMV_ROWS)
        scores_by_gemv(run, b, keys);
    else
        scores_by_tile(run, b, keys);
    for (int64_t i = 0; keys->any_missing && i < b->n; i++)
        for (int64_t j = 0; j < keys->n; j++)
            if (keys->missing[j]) score_row(run, i)[j] = NAN;
}

/* The keys of the chunk that row i sees, as [*lo, *hi) counted from keys->first. */
static bool row_keys(const struct block *b, const struct keys *keys, int64_t i, int64_t *lo,
                     int64_t *hi)
{
    *lo = b->lo[i] > keys->first ? b->lo[i] - keys->first : 0;
    *hi = b->hi[i] - keys->first < keys->n ? b->hi[i] - keys->first : keys->n;
    return *lo < *hi;
}

/* Scores of row i to weights, in place; sets m and l. */
static void soften(const struct run *run, float *s, int64_t n, struct partial *out)
{
    const struct engine_vec *vec = &run->task->engine->vec;
    vec->scale(n, s, run->scale, 0.0f, s);
    if (run->softcap != 0.0f) {
        vec->scale(n, s, 1.0f / run->softcap, 0.0f, s);
        vec->unary[ENGINE_TANH](n, s, s);
        vec->scale(n, s, run->softcap, 0.0f, s);
    }
    out->m = vec->max(n, s);
    out->l = vec->exp_sum(n, s, out->m, s);
}

/* What one row adds: its weights, the keys [lo, hi) it sees, its sum. */
struct weights {
    const float *p; /* by key of the chunk */
    int64_t lo, hi;
    float *o;
};

/* The values of some keys of the chunk: floats from the key `first` on, or else the rows of all
 * keys where they lie. */
struct values {
    const float *floats;
    int64_t first;
    const char *const *direct;
};

/* o[i] += p[i] * values of the keys [from, to). */
static void weighted_sum(const struct run *run, const struct values *v, int64_t from, int64_t to,
                         const float *const *p, int64_t n, float *const *o)
{
    const int64_t dv = run->l.dv, pad = run->l.dv_pad;
    if (from >= to) return;
    if (v->direct)
        run->tile->weighted_sum_f16(to - from, dv, v->direct + from, p, n, o);
    else
        run->tile->weighted_sum(to - from, dv, v->floats + (from - v->first) * pad, pad, p, n, o);
}

/* o += weights * values of the keys [first, end) for up to 4 rows: together where they see the same
 * keys, alone where not. Every row takes its keys in ascending order. */
static void add_values(const struct run *run, const struct values *v, int64_t first, int64_t end,
                       const struct weights *row, int64_t n)
{
    int64_t from = first, to = end, lo[4], hi[4];
    const float *p[4];
    float *o[4];
    for (int64_t i = 0; i < n; i++) {
        lo[i] = row[i].lo > first ? row[i].lo : first;
        hi[i] = row[i].hi < end ? row[i].hi : end;
        if (lo[i] > from) from = lo[i];
        if (hi[i] < to) to = hi[i];
        o[i] = row[i].o;
    }
    bool common = from < to;
    for (int64_t i = 0; i < n; i++) {
        p[i] = row[i].p + lo[i];
        weighted_sum(run, v, lo[i], common ? from : hi[i], &p[i], 1, &o[i]);
    }
    if (!common) return;
    for (int64_t i = 0; i < n; i++) p[i] = row[i].p + from;
    weighted_sum(run, v, from, to, p, n, o);
    for (int64_t i = 0; i < n; i++) {
        p[i] = row[i].p + to;
        weighted_sum(run, v, to, hi[i], &p[i], 1, &o[i]);
    }
}

/* The block's results over one chunk into out[i]; rows that see no key of it get seen = 0. */
static void chunk_partials(const struct run *run, const struct block *b, int64_t chunk,
                           struct partial *const *out)
{
    const struct layout *l = &run->l;
    const struct engine_tensor *values = run->dst->src[SRC_V];
    const char *v_rows[CHUNK];
    struct keys keys;
    struct weights row[ROWS];
    int64_t n_rows = 0;
    for (int64_t i = 0; i < b->n; i++) out[i]->seen = 0.0f;
    if (!chunk_keys(run, b, chunk, &keys)) return;
    scores(run, b, &keys);
    for (int64_t i = 0; i < b->n; i++) {
        struct weights w = {.p = score_row(run, i), .o = out[i]->o};
        if (!row_keys(b, &keys, i, &w.lo, &w.hi)) continue;
        memset(w.o, 0, (size_t)l->dv * 4);
        soften(run, score_row(run, i) + w.lo, w.hi - w.lo, out[i]);
        out[i]->seen = 1.0f;
        row[n_rows++] = w;
    }
    if (reads_direct(run, b, values)) {
        direct_rows(values, b->kv, &keys, v_rows);
        struct values v = {.direct = v_rows};
        add_values(run, &v, 0, keys.n, row, n_rows);
        return;
    }
    for (int64_t j = 0; j < keys.n; j += l->v_rows) {
        int64_t n = keys.n - j < l->v_rows ? keys.n - j : l->v_rows;
        struct values v = {.floats = decode_rows(run, values, NULL, b->kv, &keys, j, n, l->dv_pad),
                           .first = j};
        for (int64_t i = 0; i < n_rows; i += 4)
            add_values(run, &v, j, j + n, row + i, n_rows - i < 4 ? n_rows - i : 4);
    }
}

/* ---- Merging ---- */

static float exp_of(const struct run *run, float x, float m)
{
    float e;
    run->task->engine->vec.exp_sum(1, &x, m, &e);
    return e;
}

/* sum becomes sum and then the chunk `next`. */
static void merge(const struct run *run, struct partial *sum, const struct partial *next)
{
    const struct engine_vec *vec = &run->task->engine->vec;
    if (next->seen == 0.0f) return;
    if (sum->seen == 0.0f) {
        memcpy(sum, next, (size_t)run->l.partial_floats * 4);
        return;
    }
    float m = sum->m > next->m ? sum->m : next->m;
    float e0 = exp_of(run, sum->m, m), e1 = exp_of(run, next->m, m);
    sum->m = m;
    sum->l = sum->l * e0 + next->l * e1;
    vec->scale_mul(run->l.dv, sum->o, e0, NULL, sum->o);
    vec->mad(run->l.dv, next->o, e1, sum->o);
}

static float *result_row(const struct run *run, int64_t kv, int64_t row)
{
    int64_t head = kv * run->l.per_kv + row % run->l.per_kv;
    return (float *)(run->dst->data + row / run->l.per_kv * run->dst->nb[1]) + head * run->l.dv;
}

/* The sink joins the sum as a key without a value, then the row is normalized. */
static void finish(const struct run *run, int64_t kv, int64_t row, struct partial *sum)
{
    const struct engine_vec *vec = &run->task->engine->vec;
    const struct engine_tensor *sinks = run->dst->src[SRC_SINKS];
    float *out = result_row(run, kv, row);
    if (sum->seen == 0.0f) {
        memset(out, 0, (size_t)run->l.dv * 4);
        return;
    }
    if (sinks) {
        int64_t head = kv * run->l.per_kv + row % run->l.per_kv;
        float sink = *(const float *)(sinks->data + head * sinks->nb[0]);
        float m = sum->m > sink ? sum->m : sink, e0 = exp_of(run, sum->m, m);
        sum->l = sum->l * e0 + exp_of(run, sink, m);
        vec->scale_mul(run->l.dv, sum->o, e0, NULL, sum->o);
    }
    vec->scale_mul(run->l.dv, sum->o, 1.0f / sum->l, NULL, out);
}

static void fill_nan(const struct run *run, const struct block *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        float *out = result_row(run, b->kv, b->first + i);
        for (int64_t d = 0; d < run->l.dv; d++) out[d] = NAN;
    }
}

/* ---- Units of work ---- */

/* All chunks of the rows [first, end) of a KV head. */
static void run_rows(const struct run *run, int64_t kv, int64_t first, int64_t end)
{
    while (first < end) {
        struct block b = block_from(run, kv, first, end);
        first += b.n;
        if (!block_list_exists(run, &b)) {
            fill_nan(run, &b);
            continue;
        }
        struct partial *part[ROWS], *sum[ROWS];
        int64_t lo = INT64_MAX, hi = 0;
        for (int64_t i = 0; i < b.n; i++) {
            part[i] = partial_at(run, run->own + run->l.o_at, i);
            sum[i] = partial_at(run, run->own + run->l.sum_at, i);
            sum[i]->seen = 0.0f;
            if (b.lo[i] < lo) lo = b.lo[i];
            if (b.hi[i] > hi) hi = b.hi[i];
        }
        convert_queries(run, &b);
        for (int64_t chunk = lo / CHUNK; chunk * CHUNK < hi; chunk++) {
            chunk_partials(run, &b, chunk, part);
            for (int64_t i = 0; i < b.n; i++) merge(run, sum[i], part[i]);
        }
        for (int64_t i = 0; i < b.n; i++) finish(run, kv, b.first + i, sum[i]);
    }
}

/* One chunk of the rows [first, end): partial results to shared scratch. */
static void run_rows_chunk(const struct run *run, int64_t kv, int64_t first, int64_t end,
                           int64_t chunk)
{
    while (first < end) {
        struct block b = block_from(run, kv, first, end);
        struct partial *part[ROWS];
        for (int64_t i = 0; i < b.n; i++)
            part[i] = partial_at(run, run->task->scratch,
                                 (kv * run->l.rows + first + i) * run->l.max_chunks + chunk);
        first += b.n;
        if (!block_list_exists(run, &b)) continue;
        convert_queries(run, &b);
        chunk_partials(run, &b, chunk, part);
    }
}

static void merge_row(const struct run *run, int64_t kv, int64_t row, int64_t lo, int64_t hi)
{
    struct block b = block_from(run, kv, row, row + 1);
    if (!block_list_exists(run, &b)) {
        fill_nan(run, &b);
        return;
    }
    struct partial *sum = partial_at(run, run->own + run->l.sum_at, 0);
    sum->seen = 0.0f;
    for (int64_t chunk = lo; chunk < hi; chunk++)
        merge(run, sum,
              partial_at(run, run->task->scratch,
                         (kv * run->l.rows + row) * run->l.max_chunks + chunk));
    finish(run, kv, row, sum);
}

/* The chunks [*lo, *hi) that some token sees keys of. */
static void chunk_range(const struct run *run, int64_t *lo, int64_t *hi)
{
    *lo = run->l.max_chunks;
    *hi = 0;
    for (int64_t t = 0; t < run->l.n_tokens; t++) {
        const int32_t *span = span_of(run, t);
        int64_t first = span[1] < 0 ? 0 : span[1];
        int64_t end = span[2] < run->l.room ? span[2] : run->l.room;
        if (first >= end) continue;
        if (first / CHUNK < *lo) *lo = first / CHUNK;
        if ((end + CHUNK - 1) / CHUNK > *hi) *hi = (end + CHUNK - 1) / CHUNK;
    }
}

static void run_split(const struct run *run, int64_t lo, int64_t hi)
{
    const struct engine_worker *worker = run->task->worker;
    const struct layout *l = &run->l;
    int64_t n = l->n_kv * l->n_blocks * (hi - lo);
    for (int64_t u; (u = engine_pool_claim(worker, 1)) < n;) {
        int64_t chunk = lo + u % (hi - lo), block = u / (hi - lo) % l->n_blocks;
        int64_t first = block * ROWS, end = first + ROWS < l->rows ? first + ROWS : l->rows;
        run_rows_chunk(run, u / (hi - lo) / l->n_blocks, first, end, chunk);
    }
    engine_pool_barrier(worker);
    for (int64_t u; (u = engine_pool_claim(worker, 1)) < l->n_kv * l->rows;)
        merge_row(run, u / l->rows, u % l->rows, lo, hi);
}

static void attention_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_worker *worker = task->worker;
    struct run run = {.task = task,
                      .dst = dst,
                      .l = layout_of(dst, worker->nth),
                      .tile = engine_tile_table(task->engine->quant.level),
                      .scale = dst->param[PARAM_SCALE].f,
                      .softcap = dst->param[PARAM_SOFTCAP].f};
    const struct layout *l = &run.l;
    run.own = task->scratch + l->partial_bytes + worker->ith * l->worker_bytes;
    if (l->may_split) {
        int64_t lo, hi;
        chunk_range(&run, &lo, &hi);
        if (hi - lo > 1) {
            run_split(&run, lo, hi);
            return;
        }
    }
    /* Later tokens see more keys: the long units first. */
    int64_t n = l->n_blocks * l->n_kv;
    for (int64_t u; (u = engine_pool_claim(worker, 1)) < n;) {
        int64_t first = (l->n_blocks - 1 - u / l->n_kv) * ROWS;
        run_rows(&run, u % l->n_kv, first, first + ROWS < l->rows ? first + ROWS : l->rows);
    }
}

/* ---- Shape, op, builder ---- */

static const char *attention_problem(const struct engine_tensor *dst)
{
    const struct engine_tensor *q = dst->src[SRC_Q], *k = dst->src[SRC_K], *v = dst->src[SRC_V];
    const struct engine_tensor *span = dst->src[SRC_SPAN], *cells = dst->src[SRC_CELLS];
    const struct engine_tensor *sinks = dst->src[SRC_SINKS];
    if (!engine_tensor_is(q, QUANT_F32) || !engine_tensor_row_contiguous(q))
        return "q must be contiguous rows of F32";
    if (k->type->act == QUANT_ACT_NONE || v->type->act == QUANT_ACT_NONE)
        return "a cache type without arithmetic";
    if (!engine_tensor_row_contiguous(k) || !engine_tensor_row_contiguous(v))
        return "rows of the cache are not contiguous";
    if (q->ne[3] != 1 || k->ne[3] != 1 || v->ne[3] != 1) return "too many dimensions";
    if (q->ne[0] != k->ne[0] || q->ne[1] % k->ne[1]) return "q and k do not fit";
    if (k->ne[1] != v->ne[1] || k->ne[2] != v->ne[2]) return "k and v do not fit";
    if (!engine_tensor_is(span, QUANT_I32) || span->ne[0] != 4 || span->ne[1] != q->ne[2] ||
        !engine_tensor_row_contiguous(span))
        return "span must be I32 [T][4]";
    if (!engine_tensor_is(cells, QUANT_I32) || !engine_tensor_row_contiguous(cells))
        return "cells must be I32 [lists][room]";
    if (sinks && (!engine_tensor_is(sinks, QUANT_F32) || sinks->ne[0] != q->ne[1]))
        return "sinks must be F32 [H]";
    return NULL;
}

static bool attention_shape(struct engine_tensor *dst, struct base_error *err)
{
    const char *problem = attention_problem(dst);
    if (problem) return engine_shape_fail(dst, err, problem);
    const struct engine_tensor *q = dst->src[SRC_Q], *v = dst->src[SRC_V];
    engine_dst_shape(dst, QUANT_F32, q->ne[1] * v->ne[0], q->ne[2], 1, 1);
    return true;
}

/* Keys and values once per token and KV head, as generating reads them. */
static struct engine_work attention_work(const struct engine_tensor *dst)
{
    const struct engine_tensor *k = dst->src[SRC_K], *v = dst->src[SRC_V];
    const struct engine_tensor *span = dst->src[SRC_SPAN];
    double keys = 0, n_kv = (double)k->ne[1], n_heads = (double)dst->src[SRC_Q]->ne[1];
    for (int64_t t = 0; t < span->ne[1]; t++) {
        const int32_t *s = (const int32_t *)(span->data + t * span->nb[1]);
        if (s[2] > s[1]) keys += s[2] - s[1];
    }
    return (struct engine_work){.bytes = keys * n_kv * (double)(k->nb[1] + v->nb[1]),
                                .macs = keys * n_heads * (double)(k->ne[0] + v->ne[0])};
}

static const struct engine_op attention_op = {
    .name = "attention",
    .split = ENGINE_SPLIT_OWN,
    .n_src = 5,
    .shape = attention_shape,
    .scratch = attention_scratch,
    .run = attention_run,
    .work = attention_work,
};

struct engine_tensor *engine_attention(struct engine_graph *g, struct engine_tensor *q,
                                       struct engine_tensor *k_cache, struct engine_tensor *v_cache,
                                       struct engine_tensor *span, struct engine_tensor *cells,
                                       struct engine_tensor *sinks,
                                       const struct engine_attention *params)
{
    struct engine_tensor *src[] = {q, k_cache, v_cache, span, cells, sinks};
    union engine_param param[] = {{.f = params->scale}, {.f = params->softcap}};
    return engine_graph_node(g, &attention_op, src, 6, param, 2);
}
