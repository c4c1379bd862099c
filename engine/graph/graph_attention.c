/* engine/graph/graph_attention.c: attention over a KV cache and the choice of its keys: rows, shape
 * rules, builders. Contract and arithmetic: engine/graph.h; on the CPU: engine/cpu/attention/. */
#include "engine/graph_internal.h"
#include "engine/kv.h"
#include "engine/op_sources.h"
#include "engine/ops.h"

static const char *attention_problem(const struct engine_tensor *dst)
{
    const struct engine_tensor *q = dst->src[ENGINE_ATTENTION_Q], *k = dst->src[ENGINE_ATTENTION_K],
                               *v = dst->src[ENGINE_ATTENTION_V];
    const struct engine_tensor *range = dst->src[ENGINE_ATTENTION_RANGE],
                               *tables = dst->src[ENGINE_ATTENTION_TABLES];
    const struct engine_tensor *sinks = dst->src[ENGINE_ATTENTION_SINKS];
    if (!engine_tensor_is(q, QUANT_F32) || !engine_tensor_row_contiguous(q))
        return "q must be contiguous rows of F32";
    const bool q16_k = engine_tensor_is(k, QUANT_I8), q16_v = engine_tensor_is(v, QUANT_I8);
    if ((!q16_k && !k->type->act) || (!q16_v && !v->type->act))
        return "a cache type without arithmetic";
    if (q16_v && v->ne[0] != engine_kv_coded_elements(v->place, ENGINE_KV_Q16_VALUES,
                                                      dst->params.attention.dv))
        return "not an int16 cache of such values";
    if (!engine_tensor_row_contiguous(k) || !engine_tensor_row_contiguous(v))
        return "rows of the cache are not contiguous";
    if (q->ne[3] != 1 || k->ne[3] != 1 || v->ne[3] != 1) return "too many dimensions";
    if (k->ne[0] !=
            (q16_k ? engine_kv_coded_elements(k->place, ENGINE_KV_Q16_KEYS, q->ne[0]) : q->ne[0]) ||
        q->ne[1] % k->ne[1])
        return "q and k do not fit";
    if (k->ne[1] != v->ne[1] || engine_kv_slots(k) != engine_kv_slots(v))
        return "k and v do not fit";
    if (!engine_tensor_is(range, QUANT_I32) || range->ne[0] != 4 || range->ne[1] != q->ne[2] ||
        !engine_tensor_row_contiguous(range))
        return "ranges must be I32 [T][4]";
    if (!engine_tensor_is(tables, QUANT_I32) || !engine_tensor_row_contiguous(tables))
        return "tables must be I32 [tables][positions]";
    if (sinks && (!engine_tensor_is(sinks, QUANT_F32) || sinks->ne[0] != q->ne[1]))
        return "sinks must be F32 [H]";
    const struct engine_tensor *relative = dst->src[ENGINE_ATTENTION_RELATIVE];
    if (relative && (!engine_tensor_is(relative, QUANT_F32) || relative->ne[0] != q->ne[1] ||
                     relative->ne[1] % 2 == 0 || engine_tensor_rows(relative) != relative->ne[1]))
        return "relative must be F32 [2 R + 1][H]";
    return NULL;
}

static bool attention_shape(struct engine_tensor *dst, struct base_error *err)
{
    const char *problem = attention_problem(dst);
    if (problem) return engine_shape_fail(dst, err, problem);
    const struct engine_tensor *q = dst->src[ENGINE_ATTENTION_Q], *v = dst->src[ENGINE_ATTENTION_V];
    const int64_t dv = engine_tensor_is(v, QUANT_I8) ? dst->params.attention.dv : v->ne[0];
    engine_dst_shape(dst, QUANT_F32, q->ne[1] * dv, q->ne[2], 1, 1);
    return true;
}

static double row_bytes(const struct engine_tensor *cache)
{
    double row = (double)quant_row_size(cache->type, cache->ne[0]);
    return engine_tensor_is(cache, QUANT_I8) ? row / ENGINE_KV_Q16_GROUP : row;
}

/* Counts keys and values once for each token and KV head, as decoding reads them. */
static struct engine_work attention_work(const struct engine_tensor *dst)
{
    const struct engine_tensor *k = dst->src[ENGINE_ATTENTION_K], *v = dst->src[ENGINE_ATTENTION_V];
    const struct engine_tensor *range = dst->src[ENGINE_ATTENTION_RANGE];
    double keys = 0, n_kv = (double)k->ne[1], n_heads = (double)dst->src[ENGINE_ATTENTION_Q]->ne[1];
    for (int64_t t = 0; t < range->ne[1]; t++) {
        const int32_t *s = (const int32_t *)(range->data + t * range->nb[1]);
        if (s[2] > s[1]) keys += s[2] - s[1];
    }
    return (struct engine_work){
        .bytes = keys * n_kv * (row_bytes(k) + row_bytes(v)),
        .macs =
            keys * ((double)dst->src[ENGINE_ATTENTION_Q]->ne[0] * n_heads + (double)dst->ne[0])};
}

const struct engine_op engine_op_attention = {
    .name = "attention", .n_src = 5, .shape = attention_shape, .work = attention_work};

struct engine_tensor *engine_attention(struct engine_graph *g, struct engine_tensor *q,
                                       struct engine_tensor *k_cache, struct engine_tensor *v_cache,
                                       struct engine_tensor *range, struct engine_tensor *tables,
                                       struct engine_tensor *sinks, struct engine_tensor *relative,
                                       const struct engine_attention *params)
{
    struct engine_tensor *src[] = {q, k_cache, v_cache, range, tables, sinks, relative};
    return engine_graph_node(g, &engine_op_attention, src, 7,
                             &(union engine_params){.attention = *params});
}

/* ---- choose_keys ---- */

/* Whether ranges and tables are such of n tokens. */
static bool is_ranges(const struct engine_tensor *range, const struct engine_tensor *tables,
                      int64_t n)
{
    return engine_tensor_is(range, QUANT_I32) && range->ne[0] == ENGINE_RANGE &&
           range->ne[1] == n && engine_tensor_row_contiguous(range) &&
           engine_tensor_is(tables, QUANT_I32) && engine_tensor_row_contiguous(tables);
}

static const char *choose_keys_problem(const struct engine_tensor *dst)
{
    const struct engine_tensor *q = dst->src[ENGINE_CHOOSE_Q], *k = dst->src[ENGINE_CHOOSE_K],
                               *range = dst->src[ENGINE_CHOOSE_RANGE],
                               *tables = dst->src[ENGINE_CHOOSE_TABLES],
                               *near_range = dst->src[ENGINE_CHOOSE_NEAR_RANGE],
                               *w = dst->src[ENGINE_CHOOSE_WEIGHTS];
    const struct engine_choose_keys *how = &dst->params.choose_keys;
    const bool coded = k && engine_tensor_is(k, QUANT_I8);
    if (!q != !k || (near_range && !q != !w)) return "q, k and weights must be given together";
    if (q && (!engine_tensor_is(q, QUANT_F32) || !engine_tensor_row_contiguous(q) || q->ne[3] != 1))
        return "q must be contiguous rows of F32";
    if (k && !coded && !engine_tensor_is(k, QUANT_F32))
        return "keys must be F32 or int16-quantized";
    if (k && (k->ne[1] != 1 || !engine_tensor_row_contiguous(k) ||
              k->ne[0] != (coded ? engine_kv_coded_elements(k->place, ENGINE_KV_Q16_KEYS, q->ne[0])
                                 : q->ne[0])))
        return "q and k do not fit";
    if (!is_ranges(range, tables, q ? q->ne[2] : range->ne[1]))
        return "ranges must be I32 [T][4], tables I32 [tables][positions]";
    if (near_range && !is_ranges(near_range, dst->src[ENGINE_CHOOSE_NEAR_TABLES], range->ne[1]))
        return "near ranges must be I32 [T][4], their tables I32 [tables][positions]";
    if (w && (!engine_tensor_is(w, QUANT_F32) || w->ne[0] != q->ne[1] || w->ne[1] != q->ne[2]))
        return "weights must be F32 [T][heads]";
    if (how->n_used < 1 || how->block < 1 || how->n_local < 0 || how->n_local > how->n_used ||
        how->n_near < 0 || how->n_each < 0 || (how->n_each && !near_range))
        return "numbers of blocks";
    return NULL;
}

static bool choose_keys_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_choose_keys *how = &dst->params.choose_keys;
    const struct engine_tensor *q = dst->src[ENGINE_CHOOSE_Q];
    const int64_t all = dst->src[ENGINE_CHOOSE_TABLES]->ne[0],
                  most = (int64_t)how->n_used * how->block;
    const char *problem = choose_keys_problem(dst);
    if (problem) return engine_shape_fail(dst, err, problem);
    engine_dst_shape(dst, QUANT_I32,
                     ENGINE_RANGE + (most < all ? most : all) * (how->n_each ? how->n_each : 1) +
                         how->n_near,
                     dst->src[ENGINE_CHOOSE_WEIGHTS] || !q ? 1 : q->ne[1],
                     dst->src[ENGINE_CHOOSE_RANGE]->ne[1], 1);
    return true;
}

static struct engine_work choose_keys_work(const struct engine_tensor *dst)
{
    const struct engine_tensor *q = dst->src[ENGINE_CHOOSE_Q], *k = dst->src[ENGINE_CHOOSE_K];
    const struct engine_tensor *range = dst->src[ENGINE_CHOOSE_RANGE];
    const struct engine_choose_keys *how = &dst->params.choose_keys;
    double keys = 0;
    for (int64_t t = 0; q && t < range->ne[1]; t++) {
        const int32_t *s = (const int32_t *)(range->data + t * range->nb[1]);
        const int64_t n = (int64_t)s[2] - s[1];
        if (n > (int64_t)how->n_used * how->block) keys += (double)n;
    }
    if (!q) return (struct engine_work){.bytes = (double)engine_tensor_bytes(dst)};
    return (struct engine_work){.bytes = keys * row_bytes(k),
                                .macs = keys * (double)(q->ne[0] * q->ne[1])};
}

const struct engine_op engine_op_choose_keys = {
    .name = "choose_keys", .shape = choose_keys_shape, .work = choose_keys_work};

static struct engine_tensor *choose(struct engine_graph *g, struct engine_tensor *const src[7],
                                    const struct engine_choose_keys *params)
{
    struct engine_tensor *all[7];
    for (int i = 0; i < 7; i++) all[i] = src[i];
    if (!all[ENGINE_CHOOSE_RANGE] || !all[ENGINE_CHOOSE_TABLES])
        return engine_graph_fail(g, "choose_keys: a source is missing");
    return engine_graph_node(g, &engine_op_choose_keys, all, 7,
                             &(union engine_params){.choose_keys = *params});
}

struct engine_tensor *engine_choose_keys(struct engine_graph *g, struct engine_tensor *q,
                                         struct engine_tensor *k_cache, struct engine_tensor *range,
                                         struct engine_tensor *tables,
                                         struct engine_tensor *weights,
                                         const struct engine_choose_keys *params)
{
    struct engine_tensor *const src[] = {q, k_cache, range, tables, weights, NULL, NULL};
    return q && k_cache ? choose(g, src, params)
                        : engine_graph_fail(g, "choose_keys: a source is missing");
}

struct engine_tensor *
engine_choose_far_keys(struct engine_graph *g, struct engine_tensor *q,
                       struct engine_tensor *k_cache, struct engine_tensor *range,
                       struct engine_tensor *tables, struct engine_tensor *weights,
                       struct engine_tensor *near_range, struct engine_tensor *near_tables,
                       const struct engine_choose_keys *params)
{
    struct engine_tensor *const src[] = {q,       k_cache,    range,      tables,
                                         weights, near_range, near_tables};
    return near_range && near_tables ? choose(g, src, params)
                                     : engine_graph_fail(g, "choose_keys: a source is missing");
}

/* ---- compress_keys ---- */

static const char *compress_problem(const struct engine_tensor *dst)
{
    const struct engine_compress_keys *how = &dst->params.compress_keys;
    const struct engine_tensor *rows = dst->src[ENGINE_COMPRESS_ROWS],
                               *range = dst->src[ENGINE_COMPRESS_RANGE],
                               *ape = dst->src[ENGINE_COMPRESS_APE];
    const int64_t width = (int64_t)how->size * (how->overlaps ? 2 : 1);
    if (how->ratio < 1 || how->size < 1 || how->value_at < 0 || (how->score_at < 0) != !ape)
        return "sizes of a block";
    if (!engine_tensor_is(rows, QUANT_F32) || !engine_tensor_row_contiguous(rows) ||
        rows->ne[1] != 1 || rows->ne[3] != 1 || how->value_at + width > rows->ne[0] ||
        how->score_at + width > rows->ne[0])
        return "rows must be F32 [slots][1][N]";
    if (!is_ranges(range, dst->src[ENGINE_COMPRESS_TABLES], range->ne[1]))
        return "ranges must be I32 [T][4], tables I32 [tables][positions]";
    if (ape &&
        (!engine_tensor_is(ape, QUANT_F32) || !engine_tensor_row_contiguous(ape) ||
         ape->ne[0] != width || ape->ne[1] != how->ratio || engine_tensor_rows(ape) != how->ratio))
        return "ape must be F32 [ratio][W]";
    return NULL;
}

static bool compress_shape(struct engine_tensor *dst, struct base_error *err)
{
    const char *problem = compress_problem(dst);
    if (problem) return engine_shape_fail(dst, err, problem);
    engine_dst_shape(dst, QUANT_F32, dst->params.compress_keys.size,
                     dst->src[ENGINE_COMPRESS_RANGE]->ne[1], 1, 1);
    return true;
}

static struct engine_work compress_work(const struct engine_tensor *dst)
{
    return (struct engine_work){.bytes = (double)engine_tensor_bytes(dst)};
}

const struct engine_op engine_op_compress_keys = {
    .name = "compress_keys", .n_src = 3, .shape = compress_shape, .work = compress_work};

struct engine_tensor *engine_compress_keys(struct engine_graph *g, struct engine_tensor *rows,
                                           struct engine_tensor *ranges,
                                           struct engine_tensor *tables, struct engine_tensor *ape,
                                           const struct engine_compress_keys *params)
{
    struct engine_tensor *src[] = {rows, ranges, tables, ape};
    return engine_graph_node(g, &engine_op_compress_keys, src, 4,
                             &(union engine_params){.compress_keys = *params});
}

/* ---- sinkhorn ---- */

static bool sinkhorn_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *x = dst->src[0];
    if (!engine_tensor_is(x, QUANT_F32) || !engine_tensor_contiguous(x) || x->ne[0] != x->ne[1])
        return engine_shape_fail(dst, err, "x must be contiguous square matrices of F32");
    if (dst->params.sinkhorn.iterations < 1)
        return engine_shape_fail(dst, err, "there must be an iteration");
    engine_dst_like(dst, QUANT_F32, x);
    return true;
}

const struct engine_op engine_op_sinkhorn = {
    .name = "sinkhorn", .n_src = 1, .shape = sinkhorn_shape};

struct engine_tensor *engine_sinkhorn(struct engine_graph *g, struct engine_tensor *x,
                                      int iterations, float eps)
{
    struct engine_tensor *src[] = {x};
    return engine_graph_node(g, &engine_op_sinkhorn, src, 1,
                             &(union engine_params){.sinkhorn = {iterations, eps}});
}
