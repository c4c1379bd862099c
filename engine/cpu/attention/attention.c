/* engine/cpu/attention/attention.c: attention over a KV cache, without a score matrix in memory.
 *
 * Sources: q, k_cache, v_cache, range, tables, sinks and relative (or NULL); parameters: scale,
 * softcap, max_alibi. Contract and arithmetic: engine/graph.h. Details of the arithmetic: softcap
 * has separate roundings (vec.scale, tanh, vec.scale); sums of weights over a chunk start at its
 * first key in the token's range; a merge is l = l0 * e0 + l1 * e1, o = fmaf(o1, e1, o0 * e0), e =
 * exp(m
 * - M), or 2^(m - M) if values are int16; the result is o * (1 / l), or zero without keys and
 * sinks. A range is clamped to its table; an invalid table or slot gives NaN.
 *
 * The query rows of a KV head are numbered token * (heads per KV head) + head and divided into
 * blocks. A block reads each chunk of keys and values once (attention_chunk.c), also chunks that
 * several sequences share. A unit of work is one block with all its chunks, or, if there are too
 * few blocks for all workers (decoding), one block with one chunk. Then partial results are stored
 * in shared scratch and merged in the same order, so that the bits do not depend on the split. */
#include "engine/cpu/attention/attention.h"
#include "base/size.h"
#include "engine/profile.h"
#include <math.h>
#include <string.h>

enum { CHUNK = ATTENTION_CHUNK, TILE = ATTENTION_TILE };
enum {
    MIN_BLOCK = 24,       /* minimum query rows of a block, if the node has that many */
    UNITS_PER_WORKER = 4, /* with fewer units, blocks are made smaller or split by chunks */
    RUNS_PER_WORKER = 12, /* runs of consecutive chunks, if blocks are split by chunks */
    MAX_RUN_CHUNKS = 8,
};
static const int64_t PARTIAL_BUDGET = 64 << 20;
static const float LN_2 = 0x1.62e430p-1f;

static void layout_scratch(struct attention_layout *l)
{
    const int64_t pad = l->d_pad > l->dv_pad ? l->d_pad : l->dv_pad;
    const int64_t groups = CHUNK / ENGINE_ATTN_GROUP, partial = l->partial_floats * 4;
    l->key_bytes = engine_attn_key_bytes(l->d);
    l->value_bytes = engine_attn_value_bytes(l->dv);
    int64_t at = 0;
    l->query_bytes = engine_round_up(l->float_keys ? l->d * 4 : (l->d + 1) / 2 * 4, 64);
    l->query_at = engine_scratch_reserve(&at, l->block_rows * l->query_bytes);
    l->query_scale_at = engine_scratch_reserve(&at, l->block_rows * 4);
    l->key_at =
        engine_scratch_reserve(&at, l->float_keys ? CHUNK * l->d_pad * 4 : groups * l->key_bytes);
    l->value_at = engine_scratch_reserve(&at, l->float_values ? CHUNK * l->dv_pad * 4
                                                              : groups * l->value_bytes);
    l->decoded_at = engine_scratch_reserve(&at, ENGINE_ATTN_GROUP * pad * 4);
    l->offset_at = engine_scratch_reserve(&at, CHUNK * 4);
    l->inverse_at = engine_scratch_reserve(&at, CHUNK * 4);
    l->tile_at = engine_scratch_reserve(&at, sizeof(struct engine_attn_tile));
    l->tile_partials_at = engine_scratch_reserve(&at, TILE * partial);
    l->sums_at = engine_scratch_reserve(&at, l->block_rows * partial);
    l->worker_bytes = at;
}

static struct attention_layout layout_of(const struct engine_tensor *dst, int n_threads)
{
    const struct engine_tensor *q = dst->src[ENGINE_ATTENTION_Q], *k = dst->src[ENGINE_ATTENTION_K];
    const struct engine_tensor *v = dst->src[ENGINE_ATTENTION_V];
    struct attention_layout l = {.n_tokens = q->ne[2], .n_heads = q->ne[1], .n_kv = k->ne[1]};
    l.per_kv = l.n_heads / l.n_kv;
    l.d = q->ne[0];
    l.dv = dst->ne[0] / l.n_heads;
    l.float_keys = engine_tensor_is(k, QUANT_F32);
    l.float_values = engine_tensor_is(v, QUANT_F32);
    l.q16_keys = engine_tensor_is(k, QUANT_I8);
    l.q16_values = engine_tensor_is(v, QUANT_I8);
    l.rows = l.n_tokens * l.per_kv;
    int64_t even = engine_round_up(l.rows * l.n_kv / ((int64_t)n_threads * UNITS_PER_WORKER), TILE);
    l.block_rows = engine_min(engine_max(even, MIN_BLOCK), ATTENTION_BLOCK);
    /* Keys that an indexer chose are gathered for each block, and are others for each token. */
    if (engine_tensor_root(dst->src[ENGINE_ATTENTION_TABLES])->op == &engine_op_choose_keys)
        l.block_rows = engine_min(l.per_kv, ATTENTION_BLOCK);
    l.n_blocks = (l.rows + l.block_rows - 1) / l.block_rows;
    l.n_positions = dst->src[ENGINE_ATTENTION_TABLES]->ne[0];
    l.max_chunks = (l.n_positions + CHUNK - 1) / CHUNK;
    l.d_pad = engine_round_up(l.d, 16);
    l.dv_pad = engine_round_up(l.dv, 16);
    l.partial_floats = ATTENTION_PARTIAL_HEAD + l.dv_pad;
    layout_scratch(&l);

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
    struct attention_layout l = layout_of(dst, n_threads);
    return l.partial_bytes + l.worker_bytes * n_threads;
}

static const int32_t *range_of(const struct attention_run *run, int64_t token)
{
    const struct engine_tensor *range = run->dst->src[ENGINE_ATTENTION_RANGE];
    return (const int32_t *)(range->data + token * range->nb[1]);
}

static struct attention_partial *partial_at(const struct attention_run *run, char *base,
                                            int64_t index)
{
    return (struct attention_partial *)(base + index * run->l.partial_floats * 4);
}

static bool table_exists(const struct attention_run *run, int64_t table)
{
    return table >= 0 && table < run->dst->src[ENGINE_ATTENTION_TABLES]->ne[1];
}

/* The longest block of rows in [first, end), from `first` on, whose tables are either all valid or
 * all invalid. */
static void block_from(const struct attention_run *run, int64_t kv, int64_t first, int64_t end,
                       struct attention_block *b)
{
    const struct attention_layout *l = &run->l;
    b->kv = kv;
    b->first = first;
    b->n = 0;
    for (int64_t row = first; row < end; row++) {
        const int32_t *range = range_of(run, row / l->per_kv);
        b->table[b->n] = range[0];
        if (table_exists(run, range[0]) != table_exists(run, b->table[0])) break;
        b->lo[b->n] = range[1] < 0 ? 0 : range[1];
        b->hi[b->n] = range[2] < l->n_positions ? range[2] : l->n_positions;
        b->self[b->n] = b->hi[b->n] - 1 - range[3];
        b->n++;
    }
}

/* ---- Merging ---- */

static float exp_of(const struct attention_run *run, float x, float m)
{
    float e;
    run->task->cpu->vec.exp_sum(1, &x, m, &e);
    return e;
}

/* The factors of n <= TILE merges: e[2i] of sum[i], e[2i + 1] of next[i]. Sets sum[i]->m to that of
 * the result. */
static void merge_factors(const struct attention_run *run, struct attention_partial *const *sum,
                          struct attention_partial *const *next, int64_t n, float *e)
{
    for (int64_t i = 0; i < n; i++) {
        e[2 * i] = e[2 * i + 1] = 0.0f;
        if (next[i]->any == 0.0f || sum[i]->any == 0.0f) continue;
        float m = sum[i]->m > next[i]->m ? sum[i]->m : next[i]->m;
        e[2 * i] = sum[i]->m - m;
        e[2 * i + 1] = next[i]->m - m;
        sum[i]->m = m;
    }
    if (run->l.float_values) {
        run->task->cpu->vec.exp_sum(2 * n, e, 0.0f, e);
        return;
    }
    for (int64_t i = 0; i < 2 * n; i++) e[i] = engine_attn_exp2(e[i]);
}

/* Merges next[i], of a later chunk, into sum[i], for n <= TILE rows. */
static void merge(const struct attention_run *run, struct attention_partial *const *sum,
                  struct attention_partial *const *next, int64_t n)
{
    const struct engine_vec *vec = &run->task->cpu->vec;
    float e[2 * TILE];
    merge_factors(run, sum, next, n, e);
    for (int64_t i = 0; i < n; i++) {
        if (next[i]->any == 0.0f) continue;
        if (sum[i]->any == 0.0f) {
            memcpy(sum[i], next[i], (size_t)run->l.partial_floats * 4);
            continue;
        }
        sum[i]->l = sum[i]->l * e[2 * i] + next[i]->l * e[2 * i + 1];
        if (e[2 * i] != 1.0f) /* a factor of 1 changes no bit */
            vec->scale_mul(run->l.dv, sum[i]->o, e[2 * i], NULL, sum[i]->o);
        vec->mad(run->l.dv, next[i]->o, e[2 * i + 1], sum[i]->o);
    }
}

static float *result_row(const struct attention_run *run, int64_t kv, int64_t row)
{
    int64_t head = kv * run->l.per_kv + row % run->l.per_kv;
    return (float *)(run->dst->data + row / run->l.per_kv * run->dst->nb[1]) + head * run->l.dv;
}

/* The sink is added to the sum as a key without a value. */
static void add_sink(const struct attention_run *run, float sink, struct attention_partial *sum)
{
    const bool base2 = !run->l.float_values; /* m is an exponent of 2, not of e */
    const float at = base2 ? ceilf(sink * ATTENTION_LOG2_E) : sink;
    const float m = sum->m > at ? sum->m : at;
    const float e = base2 ? engine_attn_exp2(sum->m - m) : exp_of(run, sum->m, m);
    sum->l = sum->l * e + exp_of(run, sink, base2 ? m * LN_2 : m);
    run->task->cpu->vec.scale_mul(run->l.dv, sum->o, e, NULL, sum->o);
}

/* Adds the sink and writes the normalized row. */
static void finish(const struct attention_run *run, int64_t kv, int64_t row,
                   struct attention_partial *sum)
{
    const struct engine_tensor *sinks = run->dst->src[ENGINE_ATTENTION_SINKS];
    float *out = result_row(run, kv, row);
    if (sum->any == 0.0f) {
        memset(out, 0, (size_t)run->l.dv * 4);
        return;
    }
    /* All scores were below the range of int16 weights. */
    if (!run->l.float_values && sum->m < -ENGINE_ATTN_LIMIT) sum->l = NAN;
    if (sinks) {
        int64_t head = kv * run->l.per_kv + row % run->l.per_kv;
        add_sink(run, *(const float *)(sinks->data + head * sinks->nb[0]), sum);
    }
    run->task->cpu->vec.scale_mul(run->l.dv, sum->o, 1.0f / sum->l, NULL, out);
}

static void fill_nan(const struct attention_run *run, const struct attention_block *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        float *out = result_row(run, b->kv, b->first + i);
        for (int64_t d = 0; d < run->l.dv; d++) out[d] = NAN;
    }
}

/* ---- Units of work ---- */

/* Computes one chunk of a block and merges it into the block's sums. */
static void add_chunk(const struct attention_run *run, struct attention_block *b, int64_t chunk)
{
    struct attention_keys keys;
    for (b->part = 0; b->part < b->n; b->part = b->part_end) {
        if (!engine_attention_chunk_load(run, b, chunk, &keys)) continue;
        for (int64_t first = b->part; first < b->part_end; first += TILE) {
            struct attention_partial *partial[TILE], *sum[TILE];
            int64_t n = engine_min(b->part_end - first, TILE);
            for (int64_t i = 0; i < n; i++) {
                partial[i] = partial_at(run, run->local + run->l.tile_partials_at, i);
                sum[i] = partial_at(run, run->local + run->l.sums_at, first + i);
            }
            engine_attention_chunk_tile(run, b, &keys, first, n, partial);
            merge(run, sum, partial, n);
        }
    }
}

/* All chunks of the rows [first, end) of a KV head. */
static void run_rows(const struct attention_run *run, int64_t kv, int64_t first, int64_t end)
{
    struct attention_block b;
    for (; first < end; first += b.n) {
        block_from(run, kv, first, end, &b);
        if (!table_exists(run, b.table[0])) {
            fill_nan(run, &b);
            continue;
        }
        char *sums = run->local + run->l.sums_at;
        int64_t lo = INT64_MAX, hi = 0;
        for (int64_t i = 0; i < b.n; i++) {
            partial_at(run, sums, i)->any = 0.0f;
            if (b.lo[i] < lo) lo = b.lo[i];
            if (b.hi[i] > hi) hi = b.hi[i];
        }
        engine_attention_convert_queries(run, &b);
        for (int64_t chunk = lo / CHUNK; chunk * CHUNK < hi; chunk++) add_chunk(run, &b, chunk);
        for (int64_t i = 0; i < b.n; i++) finish(run, kv, b.first + i, partial_at(run, sums, i));
    }
}

/* Computes one chunk of one block and stores the partial results in shared scratch. */
static void run_rows_chunk(const struct attention_run *run, int64_t kv, int64_t first, int64_t end,
                           int64_t chunk)
{
    struct attention_block b;
    for (; first < end; first += b.n) {
        struct attention_keys keys;
        block_from(run, kv, first, end, &b);
        if (!table_exists(run, b.table[0])) continue;
        engine_attention_convert_queries(run, &b);
        for (b.part = 0; b.part < b.n; b.part = b.part_end) {
            const bool any = engine_attention_chunk_load(run, &b, chunk, &keys);
            for (int64_t at = b.part; at < b.part_end; at += TILE) {
                struct attention_partial *partial[TILE];
                int64_t n = engine_min(b.part_end - at, TILE);
                for (int64_t i = 0; i < n; i++) {
                    int64_t row = kv * run->l.rows + first + at + i;
                    partial[i] =
                        partial_at(run, run->task->scratch, row * run->l.max_chunks + chunk);
                    partial[i]->any = 0.0f;
                }
                if (any) engine_attention_chunk_tile(run, &b, &keys, at, n, partial);
            }
        }
    }
}

static void merge_row(const struct attention_run *run, int64_t kv, int64_t row, int64_t lo,
                      int64_t hi)
{
    struct attention_block b;
    block_from(run, kv, row, row + 1, &b);
    if (!table_exists(run, b.table[0])) {
        fill_nan(run, &b);
        return;
    }
    struct attention_partial *sum = partial_at(run, run->local + run->l.sums_at, 0);
    sum->any = 0.0f;
    for (int64_t chunk = lo; chunk < hi; chunk++) {
        struct attention_partial *next = partial_at(
            run, run->task->scratch, (kv * run->l.rows + row) * run->l.max_chunks + chunk);
        merge(run, &sum, &next, 1);
    }
    finish(run, kv, row, sum);
}

/* The chunks [*lo, *hi) that have keys in the range of any token. */
static void chunk_range(const struct attention_run *run, int64_t *lo, int64_t *hi)
{
    *lo = run->l.max_chunks;
    *hi = 0;
    for (int64_t t = 0; t < run->l.n_tokens; t++) {
        const int32_t *range = range_of(run, t);
        int64_t first = range[1] < 0 ? 0 : range[1];
        int64_t end = range[2] < run->l.n_positions ? range[2] : run->l.n_positions;
        if (first >= end) continue;
        if (first / CHUNK < *lo) *lo = first / CHUNK;
        if ((end + CHUNK - 1) / CHUNK > *hi) *hi = (end + CHUNK - 1) / CHUNK;
    }
}

/* A unit is a run of consecutive chunks, whose keys are usually consecutive in memory. */
static void run_split(const struct attention_run *run, int64_t lo, int64_t hi)
{
    const struct engine_worker *worker = run->task->worker;
    const struct attention_layout *l = &run->l;
    const int64_t n_chunks = hi - lo, blocks = l->n_kv * l->n_blocks;
    const int64_t even = blocks * n_chunks / ((int64_t)worker->nth * RUNS_PER_WORKER);
    const int64_t length = even < 1 ? 1 : even < MAX_RUN_CHUNKS ? even : MAX_RUN_CHUNKS;
    const int64_t n_runs = (n_chunks + length - 1) / length;
    for (int64_t u; (u = engine_pool_take(worker, blocks * n_runs)) < blocks * n_runs;) {
        int64_t kv = u / n_runs / l->n_blocks, first = u / n_runs % l->n_blocks * l->block_rows;
        int64_t end = first + l->block_rows < l->rows ? first + l->block_rows : l->rows;
        int64_t chunk = lo + u % n_runs * length, last = chunk + length < hi ? chunk + length : hi;
        for (; chunk < last; chunk++) run_rows_chunk(run, kv, first, end, chunk);
    }
    engine_pool_barrier(worker);
    for (int64_t u; (u = engine_pool_claim(worker, 1)) < l->n_kv * l->rows;)
        merge_row(run, u / l->rows, u % l->rows, lo, hi);
}

static void attention_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_worker *worker = task->worker;
    struct attention_run run = {.task = task,
                                .dst = dst,
                                .l = layout_of(dst, worker->nth),
                                .tile = engine_tile_table(task->cpu->quant.level),
                                .attn = engine_attn_table(task->cpu->quant.level),
                                .scale = dst->params.attention.scale,
                                .softcap = dst->params.attention.softcap,
                                .max_alibi = dst->params.attention.max_alibi,
                                .relative = dst->src[ENGINE_ATTENTION_RELATIVE]};
    const struct attention_layout *l = &run.l;
    run.direct = !l->float_keys && !l->float_values && run.softcap == 0.0f &&
                 run.max_alibi == 0.0f && !run.relative;
    run.query_scale = run.direct ? run.scale * ATTENTION_LOG2_E : run.scale;
    run.local = task->scratch + l->partial_bytes + worker->ith * l->worker_bytes;
    if (l->may_split) {
        int64_t lo, hi;
        chunk_range(&run, &lo, &hi);
        if (hi - lo > 1) {
            run_split(&run, lo, hi);
            return;
        }
    }
    /* Later tokens have more keys. Long units are started first, so that workers finish at about
     * the same time. */
    int64_t n = l->n_blocks * l->n_kv;
    for (int64_t u; (u = engine_pool_claim(worker, 1)) < n;) {
        int64_t first = (l->n_blocks - 1 - u / l->n_kv) * l->block_rows;
        int64_t end = first + l->block_rows < l->rows ? first + l->block_rows : l->rows;
        run_rows(&run, u % l->n_kv, first, end);
    }
}

const struct engine_cpu_op engine_cpu_op_attention = {.op = &engine_op_attention,
                                                      .split = ENGINE_SPLIT_OWN,
                                                      .scratch = attention_scratch,
                                                      .run = attention_run};
