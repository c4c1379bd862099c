/* models/build.c: the graph of a decoder-only transformer, from features. See models/internal.h.
 *
 * Shapes: T tokens, E embedding, H query heads, KH key heads, D and DV head sizes, F feed-forward
 * length, V vocabulary. Every intermediate has a name, so that any can be dumped. */
#include "models/internal.h"
#include <math.h>

enum { NODES_PER_LAYER = 96, NODES_AROUND = 32 };

struct builder {
    struct engine_graph *g;
    struct model *m;
    struct model_cache *cache;
    struct model_graph *out;
    uint32_t layer;
    struct engine_tensor *k_written, *v_written; /* the latest layer's cache after its writes */
};

static const struct model_layer_params *layer_params(const struct builder *b)
{
    return &b->m->params.layer[b->layer];
}

static const struct model_layer_weights *layer_weights(const struct builder *b)
{
    return &b->m->weights.layer[b->layer];
}

static struct engine_tensor *named(const struct builder *b, struct engine_tensor *t,
                                   const char *name)
{
    return engine_name(t, "%s-%u", name, b->layer);
}

static struct engine_tensor *rms_norm(const struct builder *b, struct engine_tensor *x,
                                      struct engine_tensor *weight)
{
    return engine_mul(b->g, engine_rms_norm(b->g, x, b->m->params.norm_eps), weight);
}

static struct engine_tensor *add_bias(const struct builder *b, const struct model_linear *l,
                                      struct engine_tensor *x)
{
    return l->bias ? engine_add(b->g, x, l->bias) : x;
}

static struct engine_tensor *apply_scale(const struct builder *b, const struct model_linear *l,
                                         struct engine_tensor *x)
{
    return l->scale ? engine_mul(b->g, x, l->scale) : x;
}

/* Scale and bias of a product that is there already. */
static struct engine_tensor *finish(const struct builder *b, const struct model_linear *l,
                                    struct engine_tensor *product)
{
    return add_bias(b, l, apply_scale(b, l, product));
}

/* The same inside a feed-forward network, where files that have both scale what the bias was added
 * to (as the reference implementation does). */
static struct engine_tensor *finish_ffn(const struct builder *b, const struct model_linear *l,
                                        struct engine_tensor *product)
{
    return apply_scale(b, l, add_bias(b, l, product));
}

static struct engine_tensor *linear(const struct builder *b, const struct model_linear *l,
                                    struct engine_tensor *x)
{
    return finish(b, l, engine_mul_mat(b->g, l->weight, x));
}

/* x [T][heads * size] as [T][heads][size]. */
static struct engine_tensor *split_heads(const struct builder *b, struct engine_tensor *x,
                                         int64_t heads, int64_t size)
{
    return engine_reshape(b->g, x, 3, (int64_t[]){size, heads, b->out->n_tokens});
}

/* Q, K and V of x [T][E], as column views of one product. */
static void build_qkv(const struct builder *b, struct engine_tensor *x, struct engine_tensor **q,
                      struct engine_tensor **k, struct engine_tensor **v)
{
    const struct model_layer_params *p = layer_params(b);
    const struct model_layer_weights *w = layer_weights(b);
    const int64_t d = b->m->params.n_embd_head_k, dv = b->m->params.n_embd_head_v;
    const int64_t n_q = p->n_head * d, n_k = p->n_head_kv * d, n_v = p->n_head_kv * dv;
    struct engine_tensor *const apart[] = {w->attn_q.weight, w->attn_k.weight, w->attn_v.weight};
    struct engine_tensor *qkv =
        w->attn_qkv.weight ? linear(b, &w->attn_qkv, x) : engine_mul_mat_cat(b->g, apart, 3, x);
    qkv = named(b, qkv, "qkv");
    *q = finish(b, &w->attn_q, engine_cols(b->g, qkv, 0, n_q));
    *k = finish(b, &w->attn_k, engine_cols(b->g, qkv, n_q, n_k));
    *v = finish(b, &w->attn_v, engine_cols(b->g, qkv, n_q + n_k, n_v));
}

/* Normalizes (where the architecture does) and rotates the heads of x [T][heads][D]. */
static struct engine_tensor *build_positions(const struct builder *b, struct engine_tensor *x,
                                             struct engine_tensor *norm)
{
    if (norm) x = rms_norm(b, x, norm);
    return engine_rope(b->g, x, b->out->positions, b->m->weights.rope_freqs,
                       &layer_params(b)->rope);
}

/* [A][B][size] as [B][A][size], by strides alone: a cache keeps each head's cells together, the
 * tokens of a batch and the attention op have heads inside. */
static struct engine_tensor *swap_heads(const struct builder *b, struct engine_tensor *x)
{
    return engine_permute(b->g, x, 0, 2, 1, 3);
}

/* Rows x [T][KH][size] into the latest layer's keys or values. */
static struct engine_tensor *write_rows(const struct builder *b, enum engine_kv_q16 what,
                                        struct engine_tensor *cache, enum quant_id type,
                                        struct engine_tensor *x)
{
    struct engine_tensor *cells = b->out->cell[b->cache->layer[b->layer].span];
    x = swap_heads(b, x);
    return cache->type->id == QUANT_I8 ? engine_set_kv_q16(b->g, what, cache, x, cells, type)
                                       : engine_set_rows(b->g, cache, x, cells);
}

/* x [T][E] (normalized) to attention's output [T][E]. */
static struct engine_tensor *build_attention(struct builder *b, struct engine_tensor *x)
{
    const struct model_params *m = &b->m->params;
    const struct model_layer_params *p = layer_params(b);
    const struct model_layer_weights *w = layer_weights(b);
    struct model_cache_layer *cache = &b->cache->layer[b->layer];
    const enum model_span span = cache->span;
    const int64_t kh = p->n_head_kv, d = m->n_embd_head_k, dv = m->n_embd_head_v;
    struct engine_tensor *q, *k, *v;

    build_qkv(b, x, &q, &k, &v);
    q = named(b, build_positions(b, split_heads(b, q, p->n_head, d), w->attn_q_norm), "q");
    k = named(b, build_positions(b, split_heads(b, k, kh, d), w->attn_k_norm), "k");
    v = split_heads(b, v, kh, dv);
    b->k_written = write_rows(b, ENGINE_KV_Q16_KEYS, &cache->k, b->cache->type_k, k);
    b->v_written = write_rows(b, ENGINE_KV_Q16_VALUES, &cache->v, b->cache->type_v, v);
    const struct engine_attention how = {.scale = m->attention_scale, .dv = (int)dv};
    x = engine_attention(b->g, q, swap_heads(b, b->k_written), swap_heads(b, b->v_written),
                         b->out->span[span], &b->cache->cells[span].view, NULL, &how);
    return named(b, linear(b, &w->attn_out, named(b, x, "attention")), "attn_out");
}

/* x [n][E] (normalized) through the gated feed-forward network. */
static struct engine_tensor *build_ffn(const struct builder *b, struct engine_tensor *x)
{
    const struct model_layer_weights *w = layer_weights(b);
    const int64_t n_ff = layer_params(b)->n_ff;
    struct engine_tensor *const both[] = {w->ffn_gate.weight, w->ffn_up.weight};
    x = named(b, engine_mul_mat_cat(b->g, both, 2, x), "ffn_gate_up");
    struct engine_tensor *gate = finish_ffn(b, &w->ffn_gate, engine_cols(b->g, x, 0, n_ff));
    struct engine_tensor *up = finish_ffn(b, &w->ffn_up, engine_cols(b->g, x, n_ff, n_ff));
    x = named(b, engine_glu(b->g, gate, up, b->m->params.arch->activation), "ffn_gated");
    x = engine_mul_mat(b->g, w->ffn_down.weight, x);
    return named(b, finish_ffn(b, &w->ffn_down, x), "ffn_out");
}

/* Row (t, u) of x [n][1 or U][..] times expert ids[t][u], as [n][U][outputs]. */
static struct engine_tensor *linear_id(const struct builder *b, const struct model_linear *l,
                                       struct engine_tensor *x, struct engine_tensor *ids)
{
    x = engine_mul_mat_id(b->g, l->weight, x, ids);
    if (!l->scale || !ids) return x;
    /* The scale of each chosen expert: rows of one number by the flat list of ids. */
    const int64_t used = ids->ne[0], n = ids->ne[1];
    struct engine_tensor *list =
        engine_reshape(b->g, engine_cont(b->g, ids), 1, (int64_t[]){used * n});
    struct engine_tensor *scale =
        engine_reshape(b->g, l->scale, 2, (int64_t[]){1, l->scale->ne[0]});
    scale = engine_get_rows(b->g, scale, list);
    return engine_mul(b->g, x, engine_reshape(b->g, scale, 3, (int64_t[]){1, used, n}));
}

/* x [n][E] (normalized) through the U experts that the router chooses for each row: their outputs,
 * weighted by the router's probabilities normalized over the chosen (Mixtral: Jiang et al. 2024).
 */
static struct engine_tensor *build_experts(const struct builder *b, struct engine_tensor *x,
                                           int64_t n)
{
    const struct model_params *p = &b->m->params;
    const struct model_layer_weights *w = layer_weights(b);
    const int64_t used = p->n_expert_used, n_embd = p->n_embd;
    struct engine_tensor *probs =
        engine_soft_max(b->g, linear(b, &w->ffn_router, x), NULL, NULL, 1.0f, 0.0f);
    struct engine_tensor *ids = engine_top_k(b->g, named(b, probs, "router"), (int)used);
    probs = engine_reshape(b->g, probs, 3, (int64_t[]){1, p->n_expert, n});
    struct engine_tensor *share = engine_get_rows(b->g, probs, ids); /* [n][U][1] */
    share = engine_reshape(b->g, share, 2, (int64_t[]){used, n});
    /* The sum is kept above the smallest normal half-precision number, as in training. */
    struct engine_tensor *sum =
        engine_clamp(b->g, engine_sum_rows(b->g, share), 0x1p-14f, INFINITY);
    share = engine_div(b->g, share, sum);
    share = engine_reshape(b->g, share, 3, (int64_t[]){1, used, n});

    x = engine_reshape(b->g, x, 3, (int64_t[]){n_embd, 1, n});
    struct engine_tensor *gate = linear_id(b, &w->ffn_gate_exps, x, ids);
    struct engine_tensor *up = linear_id(b, &w->ffn_up_exps, x, ids);
    x = engine_glu(b->g, gate, up, p->arch->activation); /* [n][U][F] */
    x = engine_mul(b->g, linear_id(b, &w->ffn_down_exps, x, ids), share);
    struct engine_tensor *total = NULL;
    for (int64_t u = 0; x && u < used; u++) {
        struct engine_tensor *one = engine_view(b->g, x, 2, (int64_t[]){n_embd, n},
                                                (int64_t[]){x->nb[0], x->nb[2]}, u * x->nb[1]);
        total = total ? engine_add(b->g, total, one) : one;
    }
    return named(b, total, "ffn_out");
}

/* One layer: x [T][E] to [T][E]; in the last layer only the wanted rows go on after attention. */
static struct engine_tensor *build_layer(struct builder *b, struct engine_tensor *x)
{
    const struct model_layer_weights *w = layer_weights(b);
    struct engine_tensor *in = x;
    x = build_attention(b, rms_norm(b, x, w->attn_norm));
    if (b->layer == b->m->params.n_layer - 1 && b->out->out_rows) {
        x = engine_get_rows(b->g, x, b->out->out_rows);
        in = engine_get_rows(b->g, in, b->out->out_rows);
    }
    if (w->attn_post_norm) x = rms_norm(b, x, w->attn_post_norm);
    in = named(b, engine_add(b->g, x, in), "ffn_in");
    x = rms_norm(b, in, w->ffn_norm);
    x = w->ffn_router.weight ? build_experts(b, x, in ? in->ne[1] : 0) : build_ffn(b, x);
    if (w->ffn_post_norm) x = rms_norm(b, x, w->ffn_post_norm);
    return named(b, engine_add(b->g, x, in), "layer_out");
}

static void add_inputs(const struct builder *b)
{
    struct model_graph *out = b->out;
    const int64_t n[2] = {out->n_tokens, 1}, quads[2] = {4, out->n_tokens};
    out->ids = engine_input(b->g, QUANT_I32, 1, n, "ids");
    out->positions = engine_input(b->g, QUANT_I32, 1, n, "positions");
    for (int span = 0; span < MODEL_SPAN_COUNT; span++) {
        if (b->cache->cells[span].count == 0) continue;
        out->cell[span] = engine_input(b->g, QUANT_I32, 1, n, "cell");
        out->span[span] = engine_input(b->g, QUANT_I32, 2, quads, "span");
    }
    if (out->n_out > 0 && out->n_out < out->n_tokens)
        out->out_rows = engine_input(b->g, QUANT_I32, 1, (int64_t[]){out->n_out}, "out_rows");
}

bool model_graph_build(struct model_graph *out, struct model *m, struct model_cache *cache,
                       uint32_t n_tokens, uint32_t n_out, struct base_error *err)
{
    const struct model_params *p = &m->params;
    *out = (struct model_graph){.n_tokens = n_tokens, .n_out = n_out};
    out->graph = engine_graph_new(
        m->engine, (int)(p->n_layer * (NODES_PER_LAYER + 2 * p->n_expert_used) + NODES_AROUND),
        err);
    if (!out->graph) return false;
    struct builder b = {.g = out->graph, .m = m, .cache = cache, .out = out};
    add_inputs(&b);
    struct engine_tensor *x = engine_get_rows(b.g, m->weights.token_embd, out->ids);
    if (p->features & MODEL_EMBD_SCALE) x = engine_scale(b.g, x, sqrtf((float)p->n_embd), 0.0f);
    x = engine_name(x, "embedding");
    for (b.layer = 0; b.layer < p->n_layer; b.layer++) x = build_layer(&b, x);
    x = engine_name(rms_norm(&b, x, m->weights.output_norm), "hidden");
    if (n_out > 0) {
        out->hidden = x;
        engine_output(b.g, x);
    } else { /* only the cache matters: the last layer's writes need all that was before */
        engine_output(b.g, b.k_written);
        engine_output(b.g, b.v_written);
    }
    if (engine_graph_plan(b.g, true, err)) return true;
    engine_graph_free(out->graph);
    *out = (struct model_graph){0};
    return false;
}

bool model_head_build(struct model_head *h, struct model *m, uint32_t n_rows,
                      struct base_error *err)
{
    const struct model_params *p = &m->params;
    *h = (struct model_head){.n_rows = n_rows};
    h->graph = engine_graph_new(m->engine, NODES_AROUND, err);
    if (!h->graph) return false;
    h->hidden = engine_input(h->graph, QUANT_F32, 2, (int64_t[]){p->n_embd, n_rows}, "hidden");
    const struct builder b = {.g = h->graph, .m = m};
    struct engine_tensor *x = linear(&b, &m->weights.output, h->hidden);
    if (p->logit_softcap > 0.0f) x = engine_softcap(h->graph, x, p->logit_softcap);
    h->logits = engine_name(x, "logits");
    engine_output(h->graph, x);
    if (engine_graph_plan(h->graph, true, err)) return true;
    engine_graph_free(h->graph);
    *h = (struct model_head){0};
    return false;
}
