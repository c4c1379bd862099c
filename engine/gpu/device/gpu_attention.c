/* engine/gpu/device/gpu_attention.c: device code: keys and values of int16 groups, and attention
 * over them. The arithmetic is that of engine/cpu/isa/attn_terms.h, inlined.
 *
 * A block computes a query row, or every n-th chunk of its keys, whose sums another kernel merges;
 * its thread j has key j of a chunk, its warp s the sub-block of keys 32 s .. 32 s + 31, and later
 * thread e has elements e, e + 256 .. of the result:
 *
 *     t of each key                   thread j
 *     c, sums of weights              warp s, by exchanges
 *     sums of values                  thread e: sub-blocks in ascending order
 *     merge of chunks                 thread e: chunks in ascending order
 *
 * The kernel for caches of floats differs in scores, weights, and factors of merges; its warp 0
 * adds weights, and thread e adds values key by key. */
#include "engine/gpu/device/gpu_attention.h"
#include "engine/gpu/device/gpu_convert.h"
#include "engine/gpu/device/gpu_row.h"

/* ---- Storing ---- */

GPU_KERNEL(engine_gpu_set_kv, engine_gpu_set_kv)
{
    const int64_t row = gpu_warp_of_grid(), d = p.x.ne[0];
    if (row >= engine_gpu_rows(&p.x)) return;
    const struct engine_gpu_index at = gpu_index(&p.x, row * d);
    const int32_t slot = *(const int32_t *)(const void *)(p.slots.data + at.i[1] * p.slots.nb[0]);
    gpu_store_row(gpu_at(&p.x, &at), p.x.nb[0], d, p.cache.data + at.i[2] * p.cache.nb[2],
                  p.cache.nb[1], p.cache.ne[1] * ENGINE_ATTN_GROUP, slot, p.values, p.bfloat);
}

/* ---- Attention ---- */

/* Writes the codes of the query; by warp 0. */
static void convert_query(const struct query *q)
{
    if (gpu_warp() != 0) return;
    const float scale = gpu_query_codes(q->d, q->x, q->shared->query);
    if (gpu_lane() == 0) q->shared->query_scale = scale * q->p->scale;
}

static const char *value_group(const struct query *q, int32_t slot)
{
    return q->v + slot / ENGINE_ATTN_GROUP * q->p->v.nb[2];
}

/* The score of the key in a slot, without biases, plus `more`, which is 0 for keys of floats. */
QUANT_INLINE float score_of(const struct query *q, int32_t slot, float more)
{
    const struct engine_gpu_attention *p = q->p;
    const int64_t r = slot % ENGINE_ATTN_GROUP;
    if (p->float_keys) {
        const char *key = q->k + slot * p->k.nb[2];
        return fmaf(gpu_float_score(q->d, (const float *)(const void *)key, q->x), p->scale, 0.0f);
    }
    const char *group = q->k + slot / ENGINE_ATTN_GROUP * p->k.nb[2];
    const float acc = gpu_key_score(q->d, group, r, q->shared->query);
    return fmaf(acc * engine_attn_scales(group)[r], q->shared->query_scale, more);
}

/* Computes the code of this thread's key, and c and the sums of its sub-block. */
static void weigh(const struct query *q, int64_t chunk)
{
    struct engine_gpu_attention_memory *s = q->shared;
    const int64_t position = chunk * ENGINE_ATTN_KEYS + gpu_thread();
    const bool is_in = position >= q->first && position < q->end;
    int32_t slot = is_in ? q->table[position] : 0;
    const bool is_missing = slot < 0 || slot >= q->p->n_slots;
    if (is_missing) slot = 0;
    const float value_scale = engine_attn_scales(value_group(q, slot))[slot % ENGINE_ATTN_GROUP];
    float t = -ENGINE_ATTN_LIMIT;
    if (is_in) {
        const float offset = attn_offset(value_scale);
        t = score_of(q, slot, q->p->direct ? offset : 0.0f);
        if (!q->p->direct) t = exponent_of(q, t, position) + offset;
    }
    if (is_missing) t = v_of_bits(0x7fc00000);
    float largest = t > -ENGINE_ATTN_LIMIT ? t : -ENGINE_ATTN_LIMIT;
    for (int mask = GPU_WARP / 2; mask; mask /= 2) {
        const float other = v_of_bits(gpu_shuffle_xor(v_bits(largest), mask));
        largest = other > largest ? other : largest;
    }
    const float c = ceilf(largest);
    const float w =
        is_in ? attn_weight(t, c > ENGINE_ATTN_LIMIT ? v_of_bits(0x7fc00000) : c) : 0.0f;
    const float inverse = attn_inverse(value_scale);
    s->value_at[gpu_thread()] = slot / ENGINE_ATTN_GROUP * q->p->v.nb[2] +
                                ENGINE_ATTN_GROUP * (int64_t)sizeof(float) +
                                attn_value_at(q->dv, slot % ENGINE_ATTN_GROUP, 0);
    s->code[gpu_thread()] = attn_weight_code(w);
    /* Lane i < 16: keys i and i + 16 of the sub-block, of those in the range. */
    const float next_w = v_of_bits(gpu_shuffle_xor(v_bits(w), 16));
    const float next_inverse = v_of_bits(gpu_shuffle_xor(v_bits(inverse), 16));
    const bool next_is_in = gpu_shuffle_xor(is_in, 16);
    float sum = is_in ? fmaf(w, inverse, 0.0f) : 0.0f;
    if (next_is_in) sum = fmaf(next_w, next_inverse, sum);
    if (gpu_lane() < 16) s->lane[gpu_warp()][gpu_lane()] = sum;
    if (gpu_lane() == 0) s->c[gpu_warp()] = c;
}

/* The sum of weights of a chunk, whose sub-blocks have factors `scale`; by all lanes of warp 0. */
static float sum_of_weights(const struct engine_gpu_attention_memory *s, const float *scale)
{
    float total = 0.0f;
    for (int i = 0; i < ENGINE_ATTN_SUBS; i++)
        total = fmaf(s->lane[i][gpu_lane() % 16], scale[i], total);
    for (int h = 8; h; h /= 2) total += v_of_bits(gpu_shuffle_xor(v_bits(total), h));
    return total;
}

/* Sums the codes of the chunk's values times those of their weights: element e of sub-block i by
 * thread i * dv + e, and so on; 0 for sub-blocks that are outside of the range. */
static void sum_values(const struct query *q, int64_t chunk)
{
    struct engine_gpu_attention_memory *s = q->shared;
    const int64_t before = q->first - chunk * ENGINE_ATTN_KEYS,
                  end = q->end - chunk * ENGINE_ATTN_KEYS;
    const int dv = (int)q->dv;
    for (int n = gpu_thread(); n < ENGINE_ATTN_SUBS * dv; n += ENGINE_GPU_ATTENTION_THREADS) {
        const int i = n / dv, e = n % dv, j = i * ENGINE_ATTN_SUB;
        const char *v = q->v + (int64_t)e * ATTN_UNIT_BYTES;
        int32_t sum = 0;
        if (j + ENGINE_ATTN_SUB > before && j < end) {
            int16_t codes[ENGINE_ATTN_SUB];
            GPU_EACH (k, ENGINE_ATTN_SUB)
                codes[k] = attn_load(v + s->value_at[j + k], attn_value_low(q->dv));
            GPU_EACH (k, ENGINE_ATTN_SUB) sum += codes[k] * s->code[j + k];
        }
        s->value[n] = sum;
    }
}

/* Element e of the chunk's values, times their weights. */
static float value_of(const struct query *q, const float *scale, int64_t e)
{
    float o = 0.0f;
    for (int i = 0; i < ENGINE_ATTN_SUBS; i++)
        o = fmaf((float)q->shared->value[i * q->dv + e], scale[i], o);
    return o;
}

enum { PARTS = ENGINE_GPU_ATTENTION_SIZE / ENGINE_GPU_ATTENTION_THREADS };

/* Element e of part i of this thread. */
static int64_t element_of(int i)
{
    return i * ENGINE_GPU_ATTENTION_THREADS + gpu_thread();
}

/* The sums of some keys, and this thread's of values. */
struct key_sums {
    struct weight_sums weights;
    float o[PARTS];
};

/* Adds the sums of a later chunk, for the first `parts` elements of this thread. */
QUANT_INLINE void merge(const struct query *q, struct key_sums *sum, const struct key_sums *next,
                        int parts)
{
    if (!sum->weights.any) {
        *sum = *next;
        return;
    }
    const struct merge_factors f = merge_weights(q->floats, &sum->weights, &next->weights);
    for (int i = 0; i < parts; i++) sum->o[i] = merged(sum->o[i], next->o[i], f);
}

/* Replaces the sums of all keys by the results. */
QUANT_INLINE void finish(const struct query *q, struct key_sums *sum, int parts)
{
    const struct final_factors f = finish_weights(q, &sum->weights);
    for (int i = 0; i < parts; i++) sum->o[i] = finished(q, &sum->weights, sum->o[i], f);
}

/* ---- Floats ---- */

/* The score of a key at a position. */
static float float_score(const struct query *q, int64_t position)
{
    int32_t slot = q->table[position];
    const bool is_missing = slot < 0 || slot >= q->p->n_slots;
    if (is_missing) slot = 0;
    q->shared->value_at[gpu_thread()] = slot * q->p->v.nb[2];
    const float s =
        biased(q, is_missing ? v_of_bits(0x7fc00000) : score_of(q, slot, 0.0f), position);
    return q->p->softcap == 0.0f ? s : capped(q, s, 1.0f);
}

/* Replaces the scores of the keys lo .. hi - 1 of the chunk by weights; by warp 0, which returns
 * their sum. */
static float float_weights(float *weight, int64_t lo, int64_t hi, float *largest)
{
    float m = -INFINITY, sum = 0.0f;
    for (int64_t j = lo + gpu_lane() % 16; j < hi; j += 16) m = weight[j] > m ? weight[j] : m;
    m = gpu_max_tree(m);
    for (int64_t j = lo + gpu_lane(); j < hi; j += GPU_WARP) weight[j] = v_exp(weight[j] - m);
    gpu_sync_warp(); /* weights are written */
    for (int64_t j = lo + gpu_lane() % 16; j < hi; j += 16) sum += weight[j];
    *largest = m;
    return gpu_sum_tree(sum);
}

/* The sums of one chunk; all threads of the block call it. */
static struct key_sums float_sums(const struct query *q, int64_t chunk)
{
    struct engine_gpu_attention_memory *s = q->shared;
    struct key_sums next = {.weights.any = true};
    const int64_t first = chunk * ENGINE_ATTN_KEYS, j = gpu_thread();
    const int64_t lo = q->first > first ? q->first - first : 0,
                  hi = q->end - first < ENGINE_ATTN_KEYS ? q->end - first : ENGINE_ATTN_KEYS;
    if (j >= lo && j < hi) s->weight[j] = float_score(q, first + j);
    gpu_sync(); /* scores are written */
    if (gpu_warp() == 0) {
        float m;
        const float sum = float_weights(s->weight, lo, hi, &m);
        if (gpu_lane() == 0) s->c[0] = m, s->sum = sum;
    }
    gpu_sync(); /* weights and sums are written */
    next.weights.m = s->c[0];
    next.weights.l = s->sum;
    for (int i = 0; i < PARTS; i++)
        for (int64_t k = lo; element_of(i) < q->dv && k < hi; k++)
            next.o[i] = fmaf(((const float *)(const void *)(q->v + s->value_at[k]))[element_of(i)],
                             s->weight[k], next.o[i]);
    gpu_sync(); /* weights and sums are read */
    return next;
}

/* ---- Chunks ---- */

/* The sums of one chunk; all threads of the block call it. */
static struct key_sums code_sums(const struct query *q, int64_t chunk)
{
    struct engine_gpu_attention_memory *s = q->shared;
    struct key_sums next = {.weights.any = true};
    weigh(q, chunk);
    gpu_sync(); /* codes, c and lanes of all sub-blocks are written */
    float largest = -ENGINE_ATTN_LIMIT, scale[ENGINE_ATTN_SUBS];
    for (int i = 0; i < ENGINE_ATTN_SUBS; i++) largest = s->c[i] > largest ? s->c[i] : largest;
    for (int i = 0; i < ENGINE_ATTN_SUBS; i++) scale[i] = attn_exp2(s->c[i] - largest);
    if (gpu_warp() == 0) {
        const float total = sum_of_weights(s, scale);
        if (gpu_lane() == 0) s->sum = total;
    }
    sum_values(q, chunk);
    gpu_sync(); /* sums are written; codes, c and lanes are read */
    for (int i = 0; i < PARTS; i++)
        if (element_of(i) < q->dv) next.o[i] = value_of(q, scale, element_of(i));
    next.weights.m = largest - ENGINE_ATTN_WEIGHT_BITS;
    next.weights.l = s->sum;
    return next;
}

static void store(const struct query *q, int64_t chunk, const struct key_sums *next)
{
    float *to = stored_sums(q, chunk);
    if (gpu_thread() == 0) {
        to[0] = next->weights.m;
        to[1] = next->weights.l;
    }
    for (int i = 0; i < PARTS; i++)
        if (element_of(i) < q->dv) to[2 + element_of(i)] = next->o[i];
}

QUANT_INLINE void attend(const struct engine_gpu_attention *p, bool floats)
{
    const struct query q = query_of(p, floats, gpu_block(), gpu_block_y() / p->n_parts);
    int64_t chunk = q.first / ENGINE_ATTN_KEYS + gpu_block_y() % p->n_parts;
    struct key_sums sum = {0};
    if (!p->float_keys && chunk * ENGINE_ATTN_KEYS < q.end) {
        convert_query(&q);
        gpu_sync(); /* the query is written */
    }
    for (; chunk * ENGINE_ATTN_KEYS < q.end; chunk += p->n_parts) {
        const struct key_sums next = floats ? float_sums(&q, chunk) : code_sums(&q, chunk);
        if (p->sums)
            store(&q, chunk, &next);
        else
            merge(&q, &sum, &next, PARTS);
    }
    if (p->sums) return;
    finish(&q, &sum, PARTS);
    for (int i = 0; i < PARTS; i++)
        if (element_of(i) < q.dv) result_at(&q)[element_of(i)] = sum.o[i];
}

/* An element of a row of results for each thread. */
QUANT_INLINE void merge_chunks(const struct engine_gpu_attention *p, bool floats)
{
    if (gpu_loads_ahead(&p->ahead, ENGINE_GPU_ATTENTION_THREADS)) return;
    const int64_t n = p->out.ne[0], dv = n / p->q.ne[1], token = gpu_block_y();
    const int64_t first = (int64_t)gpu_block() * ENGINE_GPU_ATTENTION_THREADS,
                  i = first + gpu_thread();
    if (i < n) {
        const struct query q = query_of(p, floats, (uint32_t)i / (uint32_t)dv, token);
        const int64_t e = (uint32_t)i % (uint32_t)dv;
        struct key_sums sum = {0};
        for (int64_t chunk = q.first / ENGINE_ATTN_KEYS; chunk * ENGINE_ATTN_KEYS < q.end;
             chunk++) {
            const float *from = stored_sums(&q, chunk);
            const struct key_sums next = {{true, from[0], from[1]}, {from[2 + e]}};
            merge(&q, &sum, &next, 1);
        }
        finish(&q, &sum, 1);
        result_at(&q)[e] = sum.o[0];
    }
    if (!p->to.block) return;
    gpu_sync(); /* the results are written */
    gpu_convert(&p->to, (const float *)(const void *)(p->out.data + token * p->out.nb[1]),
                (int)token, first / p->to.block + gpu_warp(),
                ENGINE_GPU_ATTENTION_THREADS / GPU_WARP, first + ENGINE_GPU_ATTENTION_THREADS);
}

GPU_KERNEL(engine_gpu_attention, engine_gpu_attention)
{
    attend(&p, false);
}

GPU_KERNEL(engine_gpu_attention_merge, engine_gpu_attention)
{
    merge_chunks(&p, false);
}

GPU_KERNEL(engine_gpu_attention_floats, engine_gpu_attention)
{
    attend(&p, true);
}

GPU_KERNEL(engine_gpu_attention_floats_merge, engine_gpu_attention)
{
    merge_chunks(&p, true);
}
