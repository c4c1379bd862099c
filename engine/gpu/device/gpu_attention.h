/* engine/gpu/device/gpu_attention.h: device code: what the kernels of attention share: a query and
 * its range of keys, scores, and the merge of chunks. */
#pragma once

#include "engine/gpu/device/gpu_keys.h"

#define LOG2_E 0x1.715476p+0f
#define LN_2   0x1.62e430p-1f

/* A query row, its KV head, and the keys first <= position < end of its table. */
struct query {
    const struct engine_gpu_attention *p;
    struct engine_gpu_attention_memory *shared; /* of the kernels with a row for each block */
    bool floats;                                /* values are floats */
    const float *x;                             /* [d] */
    const char *k, *v;                          /* the KV head's first group, or row */
    const int32_t *table;                       /* slots */
    int64_t d, dv, first, end, head, token;
    int64_t self; /* the query's own position */
    bool has_table;
};

QUANT_INLINE struct query query_of(const struct engine_gpu_attention *p, bool floats, int64_t head,
                                   int64_t token)
{
    const int64_t kv = head / (p->q.ne[1] / p->k.ne[1]);
    const int32_t *range =
        (const int32_t *)(const void *)(p->ranges.data + token * p->ranges.nb[1]);
    struct query q = {
        .p = p,
        .shared = gpu_shared(),
        .floats = floats,
        .x = (const float *)(const void *)(p->q.data + token * p->q.nb[2] + head * p->q.nb[1]),
        .k = p->k.data + kv * p->k.nb[1],
        .v = p->v.data + kv * p->v.nb[1],
        .table = (const int32_t *)(const void *)(p->tables.data + range[0] * p->tables.nb[1]),
        .d = p->q.ne[0],
        .dv = p->out.ne[0] / p->q.ne[1],
        .first = range[1] < 0 ? 0 : range[1],
        .end = range[2] < p->tables.ne[0] ? range[2] : p->tables.ne[0],
        .head = head,
        .token = token,
        .has_table = range[0] >= 0 && range[0] < p->tables.ne[1],
    };
    q.self = q.end - 1 - range[3];
    if (!q.has_table || q.first >= q.end) q.end = 0; /* no chunk */
    return q;
}

QUANT_INLINE float *result_at(const struct query *q)
{
    return (float *)(void *)(q->p->out.data + q->token * q->p->out.nb[1]) + q->head * q->dv;
}

/* Where the sums of a chunk are between two kernels: m, l, and dv elements. */
QUANT_INLINE float *stored_sums(const struct query *q, int64_t chunk)
{
    const int64_t row = q->token * q->p->q.ne[1] + q->head;
    return q->p->sums + (row * q->p->n_chunks + chunk) * (q->dv + 2);
}

/* ---- Scores ---- */

/* Adds to the score of a key what its distance to the query adds. */
QUANT_INLINE float biased(const struct query *q, float s, int64_t position)
{
    const struct engine_gpu_attention *p = q->p;
    const int64_t distance = position - q->self, radius = p->relative.ne[1] / 2;
    const float slope = q->head < ENGINE_GPU_ATTENTION_SLOPES ? p->slope[q->head] : 0.0f;
    if (slope != 0.0f) s -= slope * fabsf((float)distance);
    if (p->relative.data) {
        const int64_t at = distance < -radius ? -radius : distance > radius ? radius : distance;
        const struct engine_gpu_index index = {{q->head, radius + at, 0, 0}};
        s += gpu_float(&p->relative, &index);
    }
    return s;
}

/* s bounded by softcap, times `by`. */
QUANT_INLINE float capped(const struct query *q, float s, float by)
{
    const float cap = q->p->softcap;
    return fmaf(v_tanh(fmaf(s, 1.0f / cap, 0.0f)), cap * by, 0.0f);
}

/* Changes the score of a key, and converts it to an exponent of two. */
QUANT_INLINE float exponent_of(const struct query *q, float s, int64_t position)
{
    s = biased(q, s, position);
    return q->p->softcap == 0.0f ? fmaf(s, LOG2_E, 0.0f) : capped(q, s, LOG2_E);
}

/* ---- Merges of chunks ---- */

/* Some keys' largest exponent and sum of weights, which have no meaning without a key. */
struct weight_sums {
    bool any;
    float m, l;
};

/* Of the sums of values so far, and of those that are added. */
struct merge_factors {
    float before, now;
};

/* The factor of sums whose largest exponent becomes larger by -x. */
QUANT_INLINE float factor_of(bool floats, float x)
{
    return floats ? v_exp(x) : attn_exp2(x);
}

/* Adds the weights of a later chunk to those of earlier ones. */
QUANT_INLINE struct merge_factors merge_weights(bool floats, struct weight_sums *sum,
                                                const struct weight_sums *next)
{
    const float most = sum->m > next->m ? sum->m : next->m;
    const struct merge_factors f = {factor_of(floats, sum->m - most),
                                    factor_of(floats, next->m - most)};
    sum->l = sum->l * f.before + next->l * f.now;
    sum->m = most;
    return f;
}

QUANT_INLINE float merged(float sum, float next, struct merge_factors f)
{
    return fmaf(next, f.now, sum * f.before);
}

/* What the sums of values are multiplied by at the end: first by that of a sink, which is a key
 * without a value. */
struct final_factors {
    float sink, all;
};

QUANT_INLINE struct final_factors finish_weights(const struct query *q, struct weight_sums *sum)
{
    const struct engine_gpu_attention *p = q->p;
    struct final_factors f = {.sink = 1.0f};
    /* No table, or all scores were below the range. */
    if (!q->has_table || (!q->floats && sum->m < -ENGINE_ATTN_LIMIT))
        sum->l = v_of_bits(0x7fc00000);
    if (sum->any && p->sinks.data) {
        const float sink = *(const float *)(const void *)(p->sinks.data + q->head * p->sinks.nb[0]);
        const float at = q->floats ? sink : ceilf(sink * LOG2_E), m = sum->m > at ? sum->m : at;
        f.sink = factor_of(q->floats, sum->m - m);
        sum->l = sum->l * f.sink + v_exp(sink - (q->floats ? m : m * LN_2));
    }
    f.all = 1.0f / sum->l;
    return f;
}

/* The result of a sum of values. */
QUANT_INLINE float finished(const struct query *q, const struct weight_sums *sum, float o,
                            struct final_factors f)
{
    return sum->any ? o * f.sink * f.all : q->has_table ? 0.0f : sum->l;
}
