/* models/block/block_mla.c: multi-head latent attention. See models/block/blocks.h.
 *
 * DeepSeek-V2 (2024): keys and values of all heads are products of one latent c [C] for each token;
 * the last R elements of a head are rotated, and all heads share the rotated part of the keys:
 *
 *     q = W_q x, or W_qb N(W_qa x)           heads of [N | R] elements
 *     c, p = W_kva x;  c = N(c)              [C], [R]; p and the R of q are rotated (not in Kimi's)
 *     k_h = [W_kb_h c | p],  v_h = W_vb_h c  heads of N + R and DV
 *
 * If a file has W_kb and W_vb separately, W_kb is absorbed into the queries, and keys and values
 * are one head for all query heads: q_h' = [W_kb_h^T q_h | rotated q_h] attends to keys [c | p]
 * with the values c, and W_vb_h is applied to the result; the cache keeps C + R numbers per token.
 * If a file has both in one tensor, keys and values are computed and cached for each head.
 *
 * DeepSeek-V3.2 (2025): an indexer chooses the keys that all heads of a query attend to, those with
 * the largest scores. I has HI heads of DI elements, the first R of which are rotated:
 *
 *     iq = W_iqb N(W_qa x),  ik = LN(W_ik x),  w = W_iw x / sqrt(HI DI)
 *     score of key j = sum over h of w_h max(iq_h . ik_j, 0)
 *
 * The cache keeps DI more numbers per token in layers with an indexer.
 *
 * GLM-5 Next (2026): no element rotates (R = 0), and the keys of the indexer are those of complete
 * blocks of attention.indexer.kpool positions: sum over j of softmax(W_g x_j + ape_j) ik_j, channel
 * by channel. The positions after the last complete block are attended to in any case. */
#include "base/elementary.h"
#include "models/block/blocks.h"
#include <math.h>

struct mla {
    uint32_t n_embd, n_head, d, dv;   /* E, H, N + R, DV */
    uint32_t n_latent, n_nope, n_rot; /* C, N, R */
    uint32_t n_q, n_q_optional;       /* H D; the first is 0 if queries have a latent too */
    uint32_t n_q_latent;              /* 0: queries have no latent */
    uint32_t n_q_heads, n_kv_a;       /* H D, C + R */
    uint32_t n_key_in, n_value_in;    /* N and C if the file has the two separately, else 0 */
    uint32_t n_both;                  /* H (N + DV) if they are one tensor, else 0 */
    uint32_t n_out;                   /* H DV */
    bool rotates;
    uint32_t n_gate, n_gate_may; /* E if the output has, or may have, a gate */
    uint32_t gate_rows;          /* H, or H DV */
    struct model_linear gate;
    struct engine_tensor *sinks; /* [H], or NULL */
    struct engine_rope rope;
    float scale;           /* factor of scores */
    struct model_linear q; /* or the next two, with a norm between them */
    struct model_linear q_a, q_b;
    struct model_norm q_a_norm, kv_a_norm;
    uint32_t n_k_norm; /* R if p has a norm, else 0 */
    struct model_norm k_norm;
    struct model_linear kv_a;
    struct engine_tensor *key, *value; /* [H][C][N], [H][DV][C]; or */
    struct model_linear both;          /* N, then DV rows per head */
    struct model_linear out;
    bool indexed;                  /* attends to keys that an indexer has chosen; */
    bool has_indexer;              /* the layer's own, otherwise the latest one before it */
    uint32_t n_index, d_index;     /* HI, DI */
    struct engine_choose_keys how; /* the choice */
    struct engine_rope index_rope;
    struct model_index_sizes {
        uint32_t q, k, w, pool; /* HI DI, DI, HI, DI if blocks have keys; or 0 */
    } must, may;                /* of an indexer that the layer needs, or that a file may have */
    struct model_linear index_q, index_k, index_w;
    struct model_norm index_norm;
    float index_eps;                /* of this norm */
    uint32_t kpool;                 /* positions of a block that has a key; 0: each has one */
    struct model_linear pool_score; /* W_g */
    struct engine_tensor *pool_ape; /* [kpool][DI] */
};

#define AT(member) MODEL_AT(struct mla, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"attn_q",         MODEL_LINEAR, MODEL_REQUIRED, AT(q),         .inputs = AT(n_embd),     .outputs = AT(n_q)},
    {"attn_q",         MODEL_LINEAR, MODEL_OPTIONAL, AT(q),         .inputs = AT(n_embd),     .outputs = AT(n_q_optional)},
    {"attn_q_a",       MODEL_LINEAR, MODEL_REQUIRED, AT(q_a),       .inputs = AT(n_embd),     .outputs = AT(n_q_latent), .unless = AT(q)},
    {"attn_q_a_norm",  MODEL_NORM,   MODEL_REQUIRED, AT(q_a_norm),  .inputs = AT(n_q_latent), .unless = AT(q)},
    {"attn_q_b",       MODEL_LINEAR, MODEL_REQUIRED, AT(q_b),       .inputs = AT(n_q_latent), .outputs = AT(n_q_heads), .unless = AT(q)},
    {"attn_kv_a_mqa",  MODEL_LINEAR, MODEL_REQUIRED, AT(kv_a),      .inputs = AT(n_embd),     .outputs = AT(n_kv_a)},
    {"attn_kv_a_norm", MODEL_NORM,   MODEL_REQUIRED, AT(kv_a_norm), .inputs = AT(n_latent)},
    {"attn_k_norm",    MODEL_NORM,   MODEL_REQUIRED, AT(k_norm),    .inputs = AT(n_k_norm)},
    {"attn_k_b",       MODEL_MATRIX, MODEL_REQUIRED, AT(key),       .inputs = AT(n_key_in),   .outputs = AT(n_latent), .depth = AT(n_head)},
    {"attn_v_b",       MODEL_MATRIX, MODEL_REQUIRED, AT(value),     .inputs = AT(n_value_in), .outputs = AT(dv),       .depth = AT(n_head)},
    {"attn_kv_b",      MODEL_LINEAR, MODEL_REQUIRED, AT(both),      .inputs = AT(n_latent),   .outputs = AT(n_both)},
    {"attn_output",    MODEL_LINEAR, MODEL_REQUIRED, AT(out),       .inputs = AT(n_out),      .outputs = AT(n_embd)},
    {"attn_sinks",     MODEL_VECTOR, MODEL_OPTIONAL, AT(sinks),     .inputs = AT(n_head)},
    {"attn_gate",      MODEL_BARE,   MODEL_REQUIRED, AT(gate),      .inputs = AT(n_gate),     .outputs = AT(gate_rows)},
    {"attn_gate",      MODEL_BARE,   MODEL_OPTIONAL, AT(gate),      .inputs = AT(n_gate_may), .outputs = AT(gate_rows)},
#define INDEXER(need, size)                                                                                            \
    {"indexer.attn_q_b", MODEL_LINEAR, need, AT(index_q), .inputs = AT(n_q_latent), .outputs = AT(size.q)},            \
    {"indexer.attn_k",   MODEL_LINEAR, need, AT(index_k), .inputs = AT(n_embd),     .outputs = AT(size.k)},            \
    {"indexer.proj",     MODEL_LINEAR, need, AT(index_w), .inputs = AT(n_embd),     .outputs = AT(size.w)},            \
    {"indexer.k_norm",   MODEL_NORM,   need, AT(index_norm), .inputs = AT(size.k)},                                    \
    {"indexer_compressor_gate", MODEL_LINEAR, need, AT(pool_score), .inputs = AT(n_embd), .outputs = AT(size.pool)},   \
    {"indexer_compressor_ape",  MODEL_VECTOR, need, AT(pool_ape), .inputs = AT(size.pool), .outputs = AT(kpool)}
    INDEXER(MODEL_REQUIRED, must),
    INDEXER(MODEL_OPTIONAL, may),
    {.name = NULL},
};
/* clang-format on */

/* ---- Keys ---- */

/* Reads the sizes of heads. A file with separate W_kb and W_vb (*apart) has keys ending in _mla for
 * these, because its key_length and value_length describe the one shared head. Layers with a window
 * may have sizes of their own. */
static bool read_heads(struct model_reader *r, const struct model_params *p, uint32_t layer,
                       bool windowed, struct mla *a, bool *apart)
{
    const bool own = windowed && model_reader_has(r, "attention.kv_lora_rank_swa");
    uint32_t d = 0, dv = 0;
    if (!model_read_layer_u32(r, "attention.head_count", MODEL_REQUIRED, layer, 1, MODEL_MAX_HEADS,
                              &a->n_head) ||
        !model_read_u32(r, own ? "attention.kv_lora_rank_swa" : "attention.kv_lora_rank",
                        MODEL_REQUIRED, 1, MODEL_MAX_DIM, &a->n_latent) ||
        !model_read_u32(r, "attention.q_lora_rank", MODEL_OPTIONAL, 0, MODEL_MAX_DIM,
                        &a->n_q_latent) ||
        !model_read_u32(r, own ? "attention.key_length_mla_swa" : "attention.key_length_mla",
                        MODEL_OPTIONAL, 0, MODEL_MAX_DIM, &d) ||
        !model_read_u32(r, own ? "attention.value_length_mla_swa" : "attention.value_length_mla",
                        MODEL_OPTIONAL, 0, MODEL_MAX_DIM, &dv))
        return false;
    *apart = d > 0 && dv > 0;
    a->d = *apart ? d : p->n_embd / a->n_head;
    a->dv = *apart ? dv : p->n_embd / a->n_head;
    if (*apart) return true;
    if (!model_read_u32(r, "attention.key_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->d) ||
        !model_read_u32(r, "attention.value_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->dv))
        return false;
    if (a->d == 0 || a->dv == 0)
        return model_reader_fail(r, "attention.head_count", "%u heads of an embedding of %u",
                                 a->n_head, p->n_embd);
    return true;
}

/* YaRN's m(x) = 1 + 0.1 x ln(factor). */
static float magnitude(float x, float log_factor)
{
    return 1.0f + 0.1f * x * log_factor;
}

/* Sets the scale of scores and, with a log multiplier a, the magnitude M of the rotation: m(1) /
 * m(a) or 1. The op itself multiplies by m(1). The scale includes M. */
static bool read_scale(struct model_reader *r, const struct model_params *p, struct mla *a)
{
    const enum model_yarn_log kind = p->arch->attn.yarn_log;
    const float log_factor = -(float)base_log(a->rope.freq_scale);
    float multiplier = 0.0f;
    a->scale = 1.0f / sqrtf((float)a->d);
    if (kind == MODEL_YARN_LOG_NONE) return true;
    if (!model_read_f32(r, "rope.scaling.yarn_log_multiplier", MODEL_OPTIONAL, 0.0f, &multiplier))
        return false;
    multiplier /= 0.1f; /* files store 0.1 times the value */
    if (a->rope.ext_factor != 0.0f && log_factor > 0.0f && multiplier != 0.0f)
        a->rope.attn_factor /=
            magnitude(kind == MODEL_YARN_LOG_EQUAL ? 1.0f : multiplier, log_factor);
    const float s =
        a->rope.attn_factor * magnitude(1.0f, log_factor) * magnitude(multiplier, log_factor);
    a->scale *= s * s;
    return true;
}

/* Returns whether a layer has an indexer of its own, by a rule. */
static bool has_indexer(struct model_reader *r, const struct model_params *p, uint32_t layer,
                        bool *has)
{
    const bool by_default = p->arch->attn.indexed == MODEL_INDEXED_POOLS ||
                            p->n_ctx_train < 1 << 20 || layer < 3 || layer % 4 == 2;
    bool is_array, earlier = false;
    *has = p->arch->attn.indexed == MODEL_INDEXED_ALL;
    if (*has) return true;
    if (!model_read_layer_flag(r, "attention.indexer.types", layer, &is_array, has)) return false;
    if (!is_array) *has = by_default;
    for (uint32_t i = 0; i < layer; i++) earlier = earlier || p->layer[i].kv.size_index > 0;
    return earlier || *has ||
           model_reader_fail(r, "attention.indexer.types", "no layer up to %u has an indexer",
                             layer);
}

/* Reads the numbers of blocks that have keys of the indexer. */
static bool read_pools(struct model_reader *r, const struct model_params *p, uint32_t n_used,
                       struct mla *a)
{
    bool tail = true;
    a->index_eps = p->arch->attn.index_as_heads ? p->norm_eps : 1e-6f;
    if (p->arch->attn.indexed != MODEL_INDEXED_POOLS) return true;
    if (!model_read_u32(r, "attention.indexer.kpool", MODEL_REQUIRED, 2, 1024, &a->kpool) ||
        !model_read_f32(r, "attention.layer_norm_epsilon", MODEL_OPTIONAL, 0.0f, &a->index_eps) ||
        !gguf_get_bool(r->file, model_reader_key(r, "attention.indexer.kpool_select_tail"), &tail,
                       r->err))
        return false;
    if (!tail)
        return model_reader_fail(r, "attention.indexer.kpool_select_tail",
                                 "false: the first positions would attend to nothing");
    return n_used >= a->kpool || model_reader_fail(r, "attention.indexer.top_k", "no whole block");
}

/* Reads the keys of indexers. The MTP layer attends to all keys, a layer with a window to those in
 * it. */
static bool read_indexer(struct model_reader *r, const struct model_params *p, uint32_t layer,
                         bool windowed, struct mla *a)
{
    uint32_t n_used = 0;
    const enum model_indexed rule = p->arch->attn.indexed;
    if (rule == MODEL_INDEXED_NONE) return true;
    if (rule == MODEL_INDEXED_OPTIONAL) {
        if (!model_read_u32(r, "attention.indexer.top_k", MODEL_OPTIONAL, 0, INT32_MAX, &n_used))
            return false;
        if (n_used == 0) return true;
    }
    if (!model_read_u32(r, "attention.indexer.head_count", MODEL_REQUIRED, 1, MODEL_MAX_HEADS,
                        &a->n_index) ||
        !model_read_u32(r, "attention.indexer.key_length", MODEL_REQUIRED, a->n_rot ? a->n_rot : 1,
                        MODEL_MAX_DIM, &a->d_index) ||
        !model_read_u32(r, "attention.indexer.top_k", MODEL_REQUIRED, 1, INT32_MAX, &n_used) ||
        !has_indexer(r, p, layer, &a->has_indexer) || !read_pools(r, p, n_used, a))
        return false;
    if ((uint64_t)a->n_index * a->d_index > MODEL_MAX_DIM)
        return model_reader_fail(r, "attention.indexer.head_count", "%u heads are too many",
                                 a->n_index);
    a->indexed = layer < p->n_layer && !windowed;
    a->has_indexer = a->has_indexer && a->indexed;
    a->how = (struct engine_choose_keys){.n_used = (int)n_used, .block = 1};
    a->index_rope = a->rope;
    a->index_rope.kind =
        p->arch->attn.index_rope == MODEL_ROPE_NEOX ? ENGINE_ROPE_NEOX : ENGINE_ROPE_NORMAL;
    *(a->has_indexer ? &a->must : &a->may) = (struct model_index_sizes){
        a->n_index * a->d_index, a->d_index, a->n_index, a->kpool ? a->d_index : 0};
    return true;
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct mla *a = self;
    const enum model_gate gate = p->arch->attn.gate;
    bool apart;
    uint32_t window = 0;
    if ((l->index < p->n_layer && !model_read_window(r, p, l->index, &window)) ||
        !read_heads(r, p, l->index, window > 0, a, &apart) ||
        !model_read_rope(r, p, window > 0, a->d, l->index, &a->rope, &a->rotates) ||
        !read_scale(r, p, a))
        return false;
    uint32_t n_rot = (uint32_t)a->rope.n_rot;
    if (!a->rotates && !model_read_u32(r, "rope.dimension_count", MODEL_REQUIRED, 0, a->d, &n_rot))
        return false;
    a->n_embd = p->n_embd;
    a->n_rot = n_rot;
    a->n_k_norm = p->arch->attn.latent_k_norm ? n_rot : 0;
    a->n_nope = a->d - a->n_rot;
    if (!apart && a->n_rot == 0)
        return model_reader_fail(r, "rope.dimension_count", "0 with keys and values of each head");
    if (apart && a->n_nope == 0)
        return model_reader_fail(r, "attention.key_length_mla", "all of its elements are rotated");
    if ((uint64_t)a->n_head * (a->d + a->dv) > INT32_MAX)
        return model_reader_fail(r, "attention.head_count", "%u heads are too many", a->n_head);
    a->n_q_heads = a->n_head * a->d;
    *(a->n_q_latent ? &a->n_q_optional : &a->n_q) = a->n_q_heads;
    a->n_kv_a = a->n_latent + a->n_rot;
    a->n_key_in = apart ? a->n_nope : 0;
    a->n_value_in = apart ? a->n_latent : 0;
    a->n_both = apart ? 0 : a->n_head * (a->n_nope + a->dv);
    a->n_out = a->n_head * a->dv;
    const struct gguf_tensor *t = model_reader_tensor(r, l->index, "attn_gate.weight");
    a->gate_rows = t && t->ne[1] == a->n_head ? a->n_head : a->n_out;
    if (gate != MODEL_GATE_NONE)
        *(gate == MODEL_GATE_SIGMOID_OPTIONAL ? &a->n_gate_may : &a->n_gate) = p->n_embd;
    l->kv = apart ? (struct model_kv_shape){.n_head = 1, .size_k = a->n_kv_a, .size_v = a->n_latent}
                  : (struct model_kv_shape){.n_head = a->n_head, .size_k = a->d, .size_v = a->dv};
    l->kv.window = window;
    if (!read_indexer(r, p, l->index, window > 0, a)) return false;
    if (a->indexed && !apart)
        return model_reader_fail(
            r, "attention.key_length_mla",
            "an indexer needs latent keys: this and attention.value_length_mla");
    if (a->indexed && a->n_q_latent == 0)
        return model_reader_fail(r, "attention.q_lora_rank", "an indexer needs latent queries");
    if (a->has_indexer) {
        l->kv.size_index = a->d_index;
        l->kv.ratio = a->kpool;
        l->kv.size_open = a->kpool ? 2 * a->d_index : 0;
    }
    if (p->n_head == 0) {
        p->n_head = a->n_head;
        p->n_head_kv = l->kv.n_head;
    }
    return true;
}

/* ---- Graph ---- */

/* Returns the last R elements of each row of x [T][n][size], with the norm if it has a weight, and
 * rotated if the layer has RoPE. */
static struct engine_tensor *rotated(const struct model_builder *b, const struct mla *a,
                                     struct engine_tensor *x, const struct model_norm *norm)
{
    x = x ? engine_cols(b->g, x, x->ne[0] - a->n_rot, a->n_rot) : NULL;
    if (norm && norm->weight) x = model_norm_as(b, x, norm, MODEL_RMS_NORM);
    if (!a->rotates) return x;
    return engine_rope(b->g, x, b->positions, model_rope_factors(b, &a->rope), &a->rope);
}

/* Returns c beside the rotated part p, if there is one. */
static struct engine_tensor *beside(const struct model_builder *b, const struct mla *a,
                                    struct engine_tensor *c, struct engine_tensor *p)
{
    return a->n_rot ? engine_concat(b->g, c, p, 0) : c;
}

/* Returns x [T][heads][DI] of the indexer with its first, or last, R elements rotated. */
static struct engine_tensor *rotate_index(const struct model_builder *b, const struct mla *a,
                                          struct engine_tensor *x)
{
    struct engine_tensor *factors = model_rope_factors(b, &a->rope);
    const int64_t rest = a->d_index - a->n_rot;
    if (!a->rotates) return x;
    if (!b->params->arch->attn.index_as_heads || rest == 0)
        return engine_rope(b->g, x, b->positions, factors, &a->index_rope);
    struct engine_tensor *last = engine_cols(b->g, x, rest, a->n_rot);
    last = engine_rope(b->g, last, b->positions, factors, &a->index_rope);
    return engine_concat(b->g, engine_cols(b->g, x, 0, rest), last, 0);
}

/* Lets the layer's indexer choose keys for x [T][E]: k [T][DI], w [T][HI], latents of queries c
 * [T][..]. */
static void build_indexer(struct model_builder *b, const struct mla *a, struct engine_tensor *x,
                          struct engine_tensor *c, struct engine_tensor *k, struct engine_tensor *w)
{
    struct engine_tensor *q =
        model_split_heads(b, model_linear(b, &a->index_q, c), a->n_index, a->d_index);
    q = model_named(b, rotate_index(b, a, q), "index_q");
    k = model_norm_with(b, k, &a->index_norm, MODEL_LAYER_NORM, a->index_eps);
    k = rotate_index(b, a, model_split_heads(b, k, 1, a->d_index));
    model_named(b, k, "index_k");
    w = engine_scale(b->g, w, 1.0f / sqrtf((float)(a->d_index * a->n_index)), 0.0f);
    model_named(b, w, "index_w");
    if (a->kpool) {
        k = engine_reshape(b->g, k, 2, (int64_t[]){a->d_index, b->n_tokens});
        k = engine_concat(b->g, k, model_linear(b, &a->pool_score, x), 0);
        model_adapters_refuse(b, a->pool_ape);
        k = model_named(b, model_pool_keys(b, k, a->pool_ape, a->d_index), "pool_k");
        b->chosen = model_choose_pools(b, q, k, w, (uint32_t)a->how.n_used / a->kpool);
    } else {
        b->chosen = model_choose_keys(b, q, k, w, &a->how);
    }
    model_named(b, b->chosen, "chosen");
}

/* Computes the queries [T][H][D] and the latents with the rotated part [T][1][C + R] of x
 * [T][E]. */
static void build_down(struct model_builder *b, const struct mla *a, struct engine_tensor *x,
                       struct engine_tensor **q, struct engine_tensor **kv)
{
    const struct model_linear *first = a->q.weight ? &a->q : &a->q_a;
    const struct model_linear *const all[] = {first, &a->kv_a, &a->index_k, &a->index_w};
    const uint32_t size[] = {a->q.weight ? a->n_q_heads : a->n_q_latent, a->n_kv_a, a->must.k,
                             a->must.w};
    struct engine_tensor *part[4];
    model_linears(b, NULL, all, size, a->has_indexer ? 4 : 2, x, "q_kv", MODEL_IN_MIXER, part);
    *q = part[0];
    *kv = part[1];
    if (first == &a->q_a) *q = model_norm_as(b, *q, &a->q_a_norm, MODEL_RMS_NORM);
    if (a->has_indexer) build_indexer(b, a, x, *q, part[2], part[3]);
    if (first == &a->q_a) *q = model_linear(b, &a->q_b, *q);
    *q = model_split_heads(b, *q, a->n_head, a->d);
    *kv = model_split_heads(b, *kv, 1, a->n_kv_a);
}

/* Multiplies x [T][H][k] by one matrix per head, w[H][n][k]: [T][H][n]. */
static struct engine_tensor *by_head(const struct model_builder *b, struct engine_tensor *w,
                                     struct engine_tensor *x)
{
    return model_swap_heads(b, model_linear_of(b, w, model_swap_heads(b, x)));
}

/* Builds attention with the latent as the one head of keys and values: [T][H * DV]. */
static struct engine_tensor *build_latent(struct model_builder *b, const struct mla *a,
                                          struct engine_tensor *q, struct engine_tensor *c,
                                          struct engine_tensor *p)
{
    const struct engine_attention how = {.scale = a->scale, .dv = (int)a->n_latent};
    struct engine_tensor *nope = by_head(b, a->key, engine_cols(b->g, q, 0, a->n_nope));
    q = model_named(b, beside(b, a, nope, a->n_rot ? rotated(b, a, q, NULL) : NULL), "q");
    if (b->q_scale) q = engine_mul(b->g, q, b->q_scale);
    struct engine_tensor *k = model_named(b, beside(b, a, c, p), "k");
    struct engine_tensor *x =
        a->indexed
            ? model_attend_chosen(b, b->chosen, q, k, c, a->sinks, &how)
            : model_attend(b, b->state->kv.layer[b->kv_layer].kind, q, k, c, a->sinks, NULL, &how);
    x = model_named(b, x, "attention");
    x = model_split_heads(b, x, a->n_head, a->n_latent);
    x = engine_cont(b->g, by_head(b, a->value, x));
    return engine_reshape(b->g, x, 2, (int64_t[]){a->n_out, b->n_tokens});
}

/* Builds attention with keys and values for each head: [T][H * DV]. */
static struct engine_tensor *build_heads(struct model_builder *b, const struct mla *a,
                                         struct engine_tensor *q, struct engine_tensor *c,
                                         struct engine_tensor *p)
{
    const struct engine_attention how = {.scale = a->scale, .dv = (int)a->dv};
    struct engine_tensor *both =
        model_split_heads(b, model_linear(b, &a->both, c), a->n_head, a->n_nope + a->dv);
    struct engine_tensor *pq = rotated(b, a, q, NULL), *k = engine_repeat(b->g, p, pq);
    if (a->n_nope) {
        pq = engine_concat(b->g, engine_cols(b->g, q, 0, a->n_nope), pq, 0);
        k = engine_concat(b->g, engine_cols(b->g, both, 0, a->n_nope), k, 0);
    }
    q = model_named(b, pq, "q");
    if (b->q_scale) q = engine_mul(b->g, q, b->q_scale);
    struct engine_tensor *v = engine_cols(b->g, both, a->n_nope, a->dv);
    return model_named(b,
                       model_attend(b, b->state->kv.layer[b->kv_layer].kind, q,
                                    model_named(b, k, "k"), v, a->sinks, NULL, &how),
                       "attention");
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct mla *a = self;
    struct engine_tensor *q, *kv, *gate = a->gate.weight ? model_linear(b, &a->gate, x) : NULL;
    build_down(b, a, x, &q, &kv);
    struct engine_tensor *c =
        model_norm_as(b, engine_cols(b->g, kv, 0, a->n_latent), &a->kv_a_norm, MODEL_RMS_NORM);
    struct engine_tensor *p = a->n_rot ? rotated(b, a, kv, &a->k_norm) : NULL;
    c = model_named(b, c, "latent");
    x = a->n_both ? build_heads(b, a, q, c, p) : build_latent(b, a, q, c, p);
    if (gate) x = model_apply_gate(b, x, gate, a->n_out, a->gate_rows);
    return model_named(b, model_linear(b, &a->out, x), "attn_out");
}

MODEL_BLOCK(mla, "latent attention")
