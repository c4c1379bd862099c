/* models/block/block_attention.c: grouped-query attention. See models/block/blocks.h.
 *
 * MiniMax-M3 (2026): an indexer chooses, for each key head h, the blocks of keys that its queries
 * attend to: the latest ones, and those with the largest scores of a key in them,
 *
 *     iq_h . ik_j,  iq = N(W_iq x) of KH heads, ik = N(W_ik x) of one, DI elements each, rotated
 *
 * Qwen 4 (2026): HI heads choose blocks of r positions for all key heads, by the sum over h of
 * max(iq_h . ik_j, 0) for the key ik of a complete block, N(mean of W_ik x), rotated at its first
 * position; the positions after the last complete block are attended to in any case. */
#include "base/elementary.h"
#include "models/block/blocks.h"
#include <math.h>

struct attention {
    uint32_t n_embd, n_q, n_k, n_v, n_qkv, n_out; /* E, H D, KH D, KH DV, those three, H DV */
    uint32_t n_in;               /* E or 2 E: of the rows that Q, K and V multiply */
    uint32_t n_q_all;            /* rows of attn_q: n_q, or 2 n_q if it has a gate */
    uint32_t n_q_norm, n_k_norm; /* sizes of norms: 0, D, or that of all heads */
    uint32_t n_q_norm_optional, n_k_norm_optional;
    uint32_t q_norm_rows, k_norm_rows; /* H and KH if each head has its own weights */
    /* Rows of K and V: required, or optional (in a layer that reads the keys and values of
     * another). */
    uint32_t n_k_must, n_v_must, n_k_may, n_v_may;
    uint32_t n_head, n_head_kv, d, dv;
    enum model_kv_kind kind;
    bool shared; /* the layer reads keys and values that an earlier one has written */
    struct engine_rope rope;
    bool rotates;
    float scale, softcap, alibi, clamp; /* of scores; clamp: of Q, K and V; 0: none */
    float norm_eps;                     /* of the norms of queries and keys */
    struct model_linear qkv;            /* Q, K and V in one tensor; or the next three */
    struct model_linear q, k, v;
    struct model_norm q_norm, k_norm;
    struct engine_tensor *sinks;              /* [H], or NULL */
    uint32_t n_relative_must, n_relative_may; /* buckets of relative positions, or 0 */
    struct engine_tensor *relative;           /* [buckets][H]; NULL: none, or the first layer's */
    uint32_t n_gate, n_gate_optional;         /* E if the output has a gate */
    uint32_t gate_rows;                       /* H, or H DV */
    struct model_linear gate;
    float value_scale;          /* factor of the output; 0: none */
    struct model_norm sub_norm; /* applied before the output projection */
    struct model_linear out;
    uint32_t d_index, n_index,
        n_index_q; /* DI, its heads, their elements; 0: there is no indexer */
    bool indexed;  /* only keys that it chooses are attended to; otherwise all in the range */
    uint32_t ratio, n_pools; /* r, blocks that are chosen; 0: each position has a key */
    struct engine_choose_keys choice;
    struct model_linear index_q, index_k;
    struct model_norm index_q_norm, index_k_norm;
    uint32_t n_lora, n_slots; /* of adapters that ids choose: rank, number and one; or 0 */
    struct model_switched switched[3], switched_out; /* of Q, K, V; of the output */
};

#define AT(member) MODEL_AT(struct attention, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"attn_qkv",      MODEL_LINEAR, MODEL_OPTIONAL, AT(qkv),    .inputs = AT(n_in), .outputs = AT(n_qkv)},
    {"attn_q",        MODEL_LINEAR, MODEL_REQUIRED, AT(q),      .inputs = AT(n_in), .outputs = AT(n_q_all), .unless = AT(qkv)},
    {"attn_k",        MODEL_LINEAR, MODEL_REQUIRED, AT(k),      .inputs = AT(n_in), .outputs = AT(n_k_must), .unless = AT(qkv)},
    {"attn_v",        MODEL_LINEAR, MODEL_REQUIRED, AT(v),      .inputs = AT(n_in), .outputs = AT(n_v_must), .unless = AT(qkv)},
    {"attn_k",        MODEL_LINEAR, MODEL_OPTIONAL, AT(k),      .inputs = AT(n_in), .outputs = AT(n_k_may)},
    {"attn_v",        MODEL_LINEAR, MODEL_OPTIONAL, AT(v),      .inputs = AT(n_in), .outputs = AT(n_v_may)},
    {"attn_q_norm",   MODEL_NORM,   MODEL_REQUIRED, AT(q_norm), .inputs = AT(n_q_norm), .outputs = AT(q_norm_rows)},
    {"attn_k_norm",   MODEL_NORM,   MODEL_REQUIRED, AT(k_norm), .inputs = AT(n_k_norm), .outputs = AT(k_norm_rows)},
    {"attn_q_norm",   MODEL_NORM,   MODEL_OPTIONAL, AT(q_norm), .inputs = AT(n_q_norm_optional), .outputs = AT(q_norm_rows)},
    {"attn_k_norm",   MODEL_NORM,   MODEL_OPTIONAL, AT(k_norm), .inputs = AT(n_k_norm_optional), .outputs = AT(k_norm_rows)},
    {"attn_sinks",    MODEL_VECTOR, MODEL_OPTIONAL, AT(sinks),  .inputs = AT(n_head)},
    {"attn_rel_b",    MODEL_MATRIX, MODEL_REQUIRED, AT(relative), .inputs = AT(n_head), .outputs = AT(n_relative_must)},
    {"attn_rel_b",    MODEL_MATRIX, MODEL_OPTIONAL, AT(relative), .inputs = AT(n_head), .outputs = AT(n_relative_may)},
    {"attn_gate",     MODEL_BARE,   MODEL_REQUIRED, AT(gate),   .inputs = AT(n_gate), .outputs = AT(gate_rows)},
    {"attn_gate",     MODEL_BARE,   MODEL_OPTIONAL, AT(gate),   .inputs = AT(n_gate_optional), .outputs = AT(gate_rows)},
    {"attn_sub_norm", MODEL_NORM,   MODEL_OPTIONAL, AT(sub_norm), .inputs = AT(n_out)},
    {"attn_output",   MODEL_LINEAR, MODEL_REQUIRED, AT(out),    .inputs = AT(n_out), .outputs = AT(n_embd)},
    {"indexer.q_proj", MODEL_LINEAR, MODEL_REQUIRED, AT(index_q), .inputs = AT(n_embd), .outputs = AT(n_index_q)},
    {"indexer.k_proj", MODEL_LINEAR, MODEL_REQUIRED, AT(index_k), .inputs = AT(n_embd), .outputs = AT(d_index)},
    {"indexer.q_norm", MODEL_NORM,   MODEL_REQUIRED, AT(index_q_norm), .inputs = AT(d_index)},
    {"indexer.k_norm", MODEL_NORM,   MODEL_REQUIRED, AT(index_k_norm), .inputs = AT(d_index)},
    {"attn_q_switch_a", MODEL_STACK, MODEL_REQUIRED, AT(switched[0].a), .inputs = AT(n_embd), .outputs = AT(n_lora), .depth = AT(n_slots)},
    {"attn_q_switch_b", MODEL_STACK, MODEL_REQUIRED, AT(switched[0].b), .inputs = AT(n_lora), .outputs = AT(n_q), .depth = AT(n_slots)},
    {"attn_k_switch_a", MODEL_STACK, MODEL_REQUIRED, AT(switched[1].a), .inputs = AT(n_embd), .outputs = AT(n_lora), .depth = AT(n_slots)},
    {"attn_k_switch_b", MODEL_STACK, MODEL_REQUIRED, AT(switched[1].b), .inputs = AT(n_lora), .outputs = AT(n_k), .depth = AT(n_slots)},
    {"attn_v_switch_a", MODEL_STACK, MODEL_REQUIRED, AT(switched[2].a), .inputs = AT(n_embd), .outputs = AT(n_lora), .depth = AT(n_slots)},
    {"attn_v_switch_b", MODEL_STACK, MODEL_REQUIRED, AT(switched[2].b), .inputs = AT(n_lora), .outputs = AT(n_v), .depth = AT(n_slots)},
    {"attn_output_switch_a", MODEL_STACK, MODEL_REQUIRED, AT(switched_out.a), .inputs = AT(n_out), .outputs = AT(n_lora), .depth = AT(n_slots)},
    {"attn_output_switch_b", MODEL_STACK, MODEL_REQUIRED, AT(switched_out.b), .inputs = AT(n_lora), .outputs = AT(n_embd), .depth = AT(n_slots)},
    {.name = NULL},
};
/* clang-format on */

/* ---- Keys ---- */

/* Reads the layer's numbers of heads and their sizes, which may differ from E / H. */
static bool read_heads(struct model_reader *r, const struct model_params *p, uint32_t layer,
                       bool windowed, struct attention *a)
{
    uint32_t first = 0;
    if (!model_read_layer_u32(r, "attention.head_count", MODEL_REQUIRED, layer, 1, MODEL_MAX_HEADS,
                              &a->n_head))
        return false;
    a->n_head_kv = a->n_head;
    if (!model_read_layer_u32(r, "attention.head_count_kv", MODEL_OPTIONAL, layer, 1,
                              MODEL_MAX_HEADS, &a->n_head_kv) ||
        !model_read_layer_u32(r, "attention.head_count", MODEL_REQUIRED, 0, 0, MODEL_MAX_HEADS,
                              &first))
        return false;
    if (a->n_head % a->n_head_kv)
        return model_reader_fail(r, "attention.head_count_kv", "%u heads cannot share %u key heads",
                                 a->n_head, a->n_head_kv);
    a->d = a->dv = p->n_embd / (first ? first : a->n_head);
    if (p->arch->attn.head_by_rot) {
        if (!model_read_u32(r, "rope.dimension_count", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->d))
            return false;
        a->dv = a->d;
    }
    if (!model_read_u32(r, "attention.key_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->d) ||
        !model_read_u32(r, "attention.value_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->dv))
        return false;
    if (windowed && p->arch->attn.window.own_heads &&
        (!model_read_u32(r, "attention.key_length_swa", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->d) ||
         !model_read_u32(r, "attention.value_length_swa", MODEL_OPTIONAL, 1, MODEL_MAX_DIM,
                         &a->dv)))
        return false;
    if (p->arch->attn.q_gate && a->d != a->dv)
        return model_reader_fail(r, "attention.value_length", "%u, but keys have %u", a->dv, a->d);
    if (a->d == 0 || a->dv == 0)
        return model_reader_fail(r, "attention.head_count", "%u heads of an embedding of %u",
                                 a->n_head, p->n_embd);
    return true;
}

static bool read_scores(struct model_reader *r, const struct model_params *p, struct attention *a)
{
    const struct model_attention_row *row = &p->arch->attn;
    float scale = 0.0f;
    if ((row->scale == MODEL_SCALE_KEY &&
         !model_read_f32(r, "attention.scale", MODEL_OPTIONAL, 0.0f, &scale)) ||
        (row->softcap != 0.0f &&
         !model_read_f32(r, "attn_logit_softcapping", MODEL_OPTIONAL, 0.0f, &a->softcap)) ||
        !model_read_f32(r, "attention.max_alibi_bias", MODEL_OPTIONAL, 0.0f, &a->alibi) ||
        !model_read_f32(r, "attention.clamp_kqv", MODEL_OPTIONAL, 0.0f, &a->clamp) ||
        !model_read_f32(r, "attention.value_scale", MODEL_OPTIONAL, -INFINITY, &a->value_scale))
        return false;
    a->scale = row->scale == MODEL_SCALE_ONE        ? 1.0f
               : row->scale == MODEL_SCALE_BY_SIZE  ? 1.0f / (float)a->d
               : row->scale == MODEL_SCALE_BY_VALUE ? 1.0f / sqrtf((float)a->dv)
               : row->scale == MODEL_SCALE_BY_EMBD  ? 1.0f / sqrtf((float)(p->n_embd / a->n_head))
                                                    : 1.0f / sqrtf((float)a->d);
    if (scale > 0.0f) a->scale = scale;
    if (row->scale == MODEL_SCALE_OUTPUT) {
        a->scale = 1.0f / sqrtf(128.0f);
        return model_read_f32(r, "attention.output_scale", MODEL_OPTIONAL, 0.0f, &a->scale);
    }
    return true;
}

/* Sets the sizes of the norms of queries and keys. */
static void size_qk_norms(const struct model_attention_row *row, struct attention *a)
{
    const enum model_qk_norm kind = row->qk_norm;
    const bool full = kind == MODEL_QK_NORM_FULL || kind == MODEL_QK_NORM_FULL_LAYER;
    const bool gain = kind == MODEL_QK_NORM_GAIN;
    const bool none = kind == MODEL_QK_NORM_NONE || kind == MODEL_QK_NORM_PLAIN;
    const bool each = kind == MODEL_QK_NORM_HEAD_LAYER || kind == MODEL_QK_NORM_HEAD_EACH || gain;
    const uint32_t q = none ? 0 : full ? a->n_q : gain ? 1 : a->d;
    const uint32_t k = none || gain ? 0 : full ? a->n_k : a->d;
    a->q_norm_rows = each ? a->n_head : 1;
    a->k_norm_rows = each ? a->n_head_kv : 1;
    *(row->qk_norm_optional ? &a->n_q_norm_optional : &a->n_q_norm) = q;
    *(row->qk_norm_optional || a->shared ? &a->n_k_norm_optional : &a->n_k_norm) = k;
}

/* Reads whether the layer uses the keys and values of an earlier one, which must have the same
 * shape. */
static bool read_sharing(struct model_reader *r, const struct model_params *p, uint32_t layer,
                         struct attention *a)
{
    uint32_t n_shared = 0;
    if (p->arch->attn.sharing == MODEL_KV_OWN) return true;
    if (p->arch->attn.sharing == MODEL_KV_SHARED_FROM_20)
        n_shared = p->n_layer > 20 ? p->n_layer - 20 : 0;
    else if (!model_read_u32(r, "attention.shared_kv_layers", MODEL_OPTIONAL, 0, p->n_layer - 1,
                             &n_shared))
        return false;
    a->shared = layer >= p->n_layer - n_shared;
    for (uint32_t i = layer; a->shared && i > 0; i--) {
        const struct model_kv_shape *kv = &p->layer[i - 1].kv;
        if (kv->n_head == 0 || (kv->window > 0) != (a->kind == MODEL_KV_SLIDING)) continue;
        if (kv->n_head == a->n_head_kv && kv->size_k == a->d && kv->size_v == a->dv) return true;
        return model_reader_fail(r, "attention.shared_kv_layers",
                                 "keys of layer %u have another shape than those of layer %u",
                                 i - 1, layer);
    }
    return !a->shared || model_reader_fail(r, "attention.shared_kv_layers",
                                           "no layer before %u has keys of its kind", layer);
}

/* Sets the rows of the gate: one for each head or for each element of the output, by the tensor's
 * shape. */
static void size_gate(struct model_reader *r, const struct model_params *p, uint32_t layer,
                      struct attention *a)
{
    const enum model_gate kind = p->arch->attn.gate;
    if (kind == MODEL_GATE_NONE) return;
    const struct gguf_tensor *t = model_reader_tensor(r, layer, "attn_gate.weight");
    a->gate_rows = t && t->ne[1] == a->n_head ? a->n_head : a->n_out;
    *(kind == MODEL_GATE_SIGMOID_OPTIONAL ? &a->n_gate_optional : &a->n_gate) = p->n_embd;
}

/* Reads the number of buckets of relative positions, whose biases the first layer must have. */
static bool read_relative(struct model_reader *r, struct model_params *p, uint32_t layer,
                          struct attention *a)
{
    if (!p->arch->attn.relative) return true;
    if (!model_read_u32(r, "attention.relative_buckets_count", MODEL_REQUIRED, 4,
                        2 * MODEL_RELATIVE_RADIUS, &p->n_buckets))
        return false;
    *(layer == 0 ? &a->n_relative_must : &a->n_relative_may) = p->n_buckets;
    return true;
}

/* Reads the keys of an indexer of blocks that have keys of their own. */
static bool read_pools(struct model_reader *r, uint32_t layer, struct attention *a)
{
    uint32_t n_used = 0;
    if (!model_read_u32(r, "attention.indexer.head_count", MODEL_REQUIRED, 1, MODEL_MAX_HEADS,
                        &a->n_index) ||
        !model_read_u32(r, "attention.indexer.key_length", MODEL_REQUIRED, (uint32_t)a->rope.n_rot,
                        MODEL_MAX_DIM / a->n_index, &a->d_index) ||
        !model_read_layer_u32(r, "attention.compress_ratios", MODEL_OPTIONAL, layer, 0, 1024,
                              &a->ratio) ||
        !model_read_u32(r, "attention.indexer.top_k", MODEL_REQUIRED, a->ratio ? a->ratio : 1,
                        INT32_MAX, &n_used))
        return false;
    a->n_index_q = a->n_index * a->d_index;
    a->indexed = a->ratio > 0;
    a->n_pools = a->ratio ? n_used / a->ratio : 0;
    return true;
}

/* Reads the keys of a layer's indexer. */
static bool read_indexer(struct model_reader *r, const struct model_params *p, uint32_t layer,
                         struct attention *a)
{
    uint32_t leading = 0, n_head = 0, n_used = 0, block = 0, n_local = 0, d = 0;
    const uint32_t n_rot = (uint32_t)a->rope.n_rot;
    if (p->arch->attn.indexed == MODEL_INDEXED_MEANS) return read_pools(r, layer, a);
    if (p->arch->attn.indexed != MODEL_INDEXED_BLOCKS) return true;
    if (!model_read_u32(r, "leading_dense_block_count", MODEL_OPTIONAL, 0, MODEL_MAX_LAYERS,
                        &leading) ||
        !model_read_u32(r, "attention.indexer.key_length", MODEL_REQUIRED, n_rot,
                        MODEL_MAX_DIM / a->n_head_kv, &d) ||
        !model_read_u32(r, "attention.indexer.block_size", MODEL_REQUIRED, 1, MODEL_MAX_CTX,
                        &block) ||
        !model_read_u32(r, "attention.indexer.top_k", MODEL_REQUIRED, 1, MODEL_MAX_CTX, &n_used) ||
        !model_read_u32(r, "attention.indexer.local_blocks", MODEL_REQUIRED, 0, n_used, &n_local) ||
        !model_read_u32(r, "attention.indexer.head_count", MODEL_REQUIRED, 1, MODEL_MAX_HEADS,
                        &n_head))
        return false;
    if (n_head != a->n_head_kv)
        return model_reader_fail(r, "attention.indexer.head_count",
                                 "%u, but there are %u key heads", n_head, a->n_head_kv);
    if (layer < leading) return true;
    a->indexed = true;
    a->d_index = d;
    a->n_index = n_head;
    a->n_index_q = n_head * d;
    a->choice = (struct engine_choose_keys){
        .n_used = (int)n_used, .block = (int)block, .n_local = (int)n_local};
    return true;
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct attention *a = self;
    const struct model_attention_row *row = &p->arch->attn;
    uint32_t window;
    a->softcap = row->softcap;
    a->alibi = row->alibi;
    a->norm_eps = row->qk_norm_eps > 0.0f ? row->qk_norm_eps : p->norm_eps;
    if (!model_read_window(r, p, l->index, &window) || !read_heads(r, p, l->index, window > 0, a) ||
        !model_read_rope(r, p, window > 0, a->d, l->index, &a->rope, &a->rotates) ||
        !read_scores(r, p, a) || !read_relative(r, p, l->index, a) ||
        !read_indexer(r, p, l->index, a))
        return false;
    if (p->arch->drafter) { /* its layers share the slots of another model's */
        l->near = window;
        window = 0;
    }
    a->kind = window ? MODEL_KV_SLIDING : MODEL_KV_FULL;
    if (!read_sharing(r, p, l->index, a)) return false;
    a->n_embd = p->n_embd;
    a->n_in = row->pairs ? 2 * p->n_embd : p->n_embd;
    a->n_q = a->n_head * a->d;
    a->n_k = a->n_head_kv * a->d;
    a->n_v = a->n_head_kv * a->dv;
    a->n_q_all = row->q_gate ? 2 * a->n_q : a->n_q;
    a->n_qkv = a->n_q_all + a->n_k + a->n_v;
    a->n_out = a->n_head * a->dv;
    *(a->shared ? &a->n_k_may : &a->n_k_must) = a->n_k;
    *(a->shared || row->k_as_v ? &a->n_v_may : &a->n_v_must) = a->n_v;
    a->n_lora = p->adapters.rank;
    a->n_slots = p->adapters.n ? p->adapters.n + 1 : 0;
    size_qk_norms(row, a);
    size_gate(r, p, l->index, a);
    l->kv = (struct model_kv_shape){.n_head = a->shared ? 0 : a->n_head_kv,
                                    .size_k = a->d,
                                    .size_v = a->dv,
                                    .window = window,
                                    .chunked = row->window.chunked,
                                    .size_index = a->indexed ? a->d_index : 0,
                                    .ratio = a->ratio,
                                    .size_open = a->ratio ? a->d_index : 0};
    if (p->n_head == 0) {
        p->n_head = a->n_head;
        p->n_head_kv = a->n_head_kv;
    }
    return true;
}

/* ---- Graph ---- */

/* Builds Q, K and V of x [T][E], and the gate if there is one, as column views of one product; only
 * Q if the layer reads the keys and values of another. */
static void build_qkv(const struct model_builder *b, const struct attention *a,
                      struct engine_tensor *x, struct engine_tensor *qkv[3],
                      struct engine_tensor **gate)
{
    const struct model_linear *linear[] = {&a->q, &a->k, &a->v, &a->gate};
    uint32_t size[] = {a->n_q_all, a->n_k, a->n_v, a->gate_rows};
    const int n = a->shared ? 1 : a->v.weight || a->qkv.weight ? 3 : 2;
    const bool fused = a->qkv.weight, joins_gate = a->gate.weight && !fused;
    struct engine_tensor *part[4];
    linear[n] = &a->gate;
    size[n] = a->gate_rows;
    model_linears(b, &a->qkv, linear, size, n + joins_gate, x, "qkv", MODEL_IN_MIXER, part);
    for (int i = 0; i < n; i++) part[i] = model_switched_add(b, &a->switched[i], x, part[i]);
    for (int i = 0; i < n; i++)
        qkv[i] = a->clamp > 0.0f ? engine_clamp(b->g, part[i], -a->clamp, a->clamp) : part[i];
    *gate = joins_gate ? part[n] : a->gate.weight ? model_linear(b, &a->gate, x) : NULL;
    if (n == 2) qkv[2] = qkv[1];
}

/* Splits *q [T][H][query, gate]: *q becomes the queries, the result is the gates; NULL if there are
 * none. */
static struct engine_tensor *take_gate(const struct model_builder *b, const struct attention *a,
                                       struct engine_tensor **q)
{
    if (a->n_q_all == a->n_q) return NULL;
    struct engine_tensor *both = model_split_heads(b, *q, a->n_head, 2 * a->d);
    *q = engine_cols(b->g, both, 0, a->d);
    return engine_unary(b->g, engine_cols(b->g, both, a->d, a->d), ENGINE_SIGMOID);
}

/* Returns the queries or keys x [T][heads * D] as [T][heads][D], normalized and rotated. */
static struct engine_tensor *build_positions(const struct model_builder *b,
                                             const struct attention *a, struct engine_tensor *x,
                                             uint32_t heads, const struct model_norm *norm)
{
    const enum model_qk_norm kind = b->params->arch->attn.qk_norm;
    const bool full = kind == MODEL_QK_NORM_FULL || kind == MODEL_QK_NORM_FULL_LAYER;
    const bool layer = kind == MODEL_QK_NORM_HEAD_LAYER || kind == MODEL_QK_NORM_FULL_LAYER;
    const bool after = kind == MODEL_QK_NORM_AFTER || kind == MODEL_QK_NORM_GAIN ||
                       (kind == MODEL_QK_NORM_PLAIN && a->rotates);
    const enum model_norm_kind as = layer ? MODEL_LAYER_NORM : MODEL_RMS_NORM;
    if (full && norm->weight) x = model_norm_with(b, x, norm, as, a->norm_eps);
    x = model_split_heads(b, x, heads, a->d);
    if (!full && !after && norm->weight) x = model_norm_with(b, x, norm, as, a->norm_eps);
    if (a->rotates)
        x = engine_rope(b->g, x, b->positions, model_rope_factors(b, &a->rope), &a->rope);
    return after ? model_norm_with(b, x, norm, as, a->norm_eps) : x;
}

/* Half of the buckets of a direction are for one distance each; further distances share the others
 * by their logarithm. */
int32_t model_relative_bucket(int32_t distance, uint32_t n, bool both)
{
    const int32_t half = (int32_t)(both ? n / 2 : n), m = half / 2;
    const int32_t r = distance < 0 ? -distance : both ? distance : 0;
    const double scale = base_log((double)MODEL_RELATIVE_RADIUS / m);
    int32_t bucket = r;
    if (r >= m)
        bucket = m + (int32_t)((double)((float)base_log((float)r / (float)m) * (float)(half - m)) /
                               scale);
    if (bucket > half - 1) bucket = half - 1;
    return both && distance > 0 ? half + bucket : bucket;
}

/* Builds the biases by relative position [2 R + 1][H]: the layer's own, or those of the first. */
static struct engine_tensor *build_relative(struct model_builder *b, const struct attention *a)
{
    if (!a->relative) return b->relative;
    model_adapters_refuse(b, a->relative);
    struct engine_tensor *own = engine_get_rows(b->g, a->relative, b->buckets);
    if (b->layer->index == 0) b->relative = own;
    return own;
}

/* Returns queries or keys of an indexer, x [T][heads DI], as [T][heads][DI], normalized and
 * rotated. */
static struct engine_tensor *build_index(const struct model_builder *b, const struct attention *a,
                                         struct engine_tensor *x, uint32_t n_head,
                                         const struct model_norm *norm,
                                         struct engine_tensor *positions)
{
    x = model_norm(b, model_split_heads(b, x, n_head, a->d_index), norm);
    return engine_rope(b->g, x, positions, model_rope_factors(b, &a->rope), &a->rope);
}

/* Lets the indexer choose keys for the queries of x [T][E]. */
static void choose(struct model_builder *b, const struct attention *a, struct engine_tensor *x)
{
    struct engine_tensor *part[2];
    const struct model_linear *const both[] = {&a->index_q, &a->index_k};
    const uint32_t size[] = {a->n_index_q, a->d_index};
    model_linears(b, NULL, both, size, 2, x, "index_qk", MODEL_IN_MIXER, part);
    struct engine_tensor *q =
        build_index(b, a, part[0], a->n_index, &a->index_q_norm, b->positions);
    if (a->ratio) {
        struct engine_tensor *ones = engine_cont(b->g, engine_cols(b->g, q, 0, 1));
        ones = engine_clamp(b->g, ones, 1.0f, 1.0f);
        ones = engine_reshape(b->g, ones, 2, (int64_t[]){a->n_index, b->n_tokens});
        struct engine_tensor *k = model_pool_keys(b, part[1], NULL, a->d_index);
        const enum model_kv_kind blocks = b->state->kv.layer[b->kv_layer].blocks;
        k = build_index(b, a, k, 1, &a->index_k_norm, b->inputs.kv.start[blocks]);
        b->chosen = model_choose_pools(b, q, k, ones, a->n_pools);
    } else {
        struct engine_tensor *k = build_index(b, a, part[1], 1, &a->index_k_norm, b->positions);
        b->chosen = model_choose_keys(b, q, k, NULL, &a->choice);
    }
    model_named(b, b->chosen, "chosen");
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct attention *a = self;
    const bool unrotated_only = b->params->arch->attn.temperature == MODEL_TEMPERATURE_UNROTATED;
    struct engine_tensor *qkv[3], *gate;

    build_qkv(b, a, x, qkv, &gate);
    struct engine_tensor *q_gate = take_gate(b, a, &qkv[0]);
    struct engine_tensor *q =
        model_named(b, build_positions(b, a, qkv[0], a->n_head, &a->q_norm), "q");
    if (b->q_scale && !(a->rotates && unrotated_only)) q = engine_mul(b->g, q, b->q_scale);
    struct engine_tensor *k = NULL, *v = NULL;
    if (!a->shared) {
        k = model_named(b, build_positions(b, a, qkv[1], a->n_head_kv, &a->k_norm), "k");
        v = model_split_heads(b, qkv[2], a->n_head_kv, a->dv);
        if (b->params->arch->attn.v_norm) v = engine_rms_norm(b->g, v, b->params->norm_eps);
    }
    const struct engine_attention how = {
        .scale = a->scale, .softcap = a->softcap, .max_alibi = a->alibi, .dv = (int)a->dv};
    if (a->indexed) choose(b, a, x);
    x = a->indexed ? model_attend_chosen(b, b->chosen, q, k, v, NULL, &how)
                   : model_attend(b, a->kind, q, k, v, a->sinks, build_relative(b, a), &how);
    x = model_named(b, x, "attention");
    if (q_gate)
        x = engine_mul(b->g, x, engine_reshape(b->g, q_gate, 2, (int64_t[]){a->n_q, b->n_tokens}));
    if (gate) x = model_apply_gate(b, x, gate, a->n_out, a->gate_rows);
    if (a->sub_norm.weight) x = model_norm(b, x, &a->sub_norm);
    x = model_switched_add(b, &a->switched_out, x, model_linear(b, &a->out, x));
    if (a->value_scale != 0.0f) x = engine_scale(b->g, x, a->value_scale, 0.0f);
    return model_named(b, x, "attn_out");
}

MODEL_BLOCK(attention, "attention")
