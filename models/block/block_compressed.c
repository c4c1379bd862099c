/* models/block/block_compressed.c: attention to a window and to compressed keys of the blocks
 * before it (DeepSeek-V4, 2026). See models/block/blocks.h.
 *
 *     c = N(W_qa x),  q_h = N0(W_qb c)_h       H heads of D elements; N0 has no weights
 *     k = N(W_kv x)                            one head, which is also the value
 *     o_h = attention(q_h, keys)               with sinks
 *     y = W_ob [W_oa_1 o_1 | W_oa_2 o_2 ..]    groups of consecutive heads, each to O numbers
 *
 * The last R elements of q and k rotate, and those of o_h rotate back by the query's position. Keys
 * are those of the window, and of the complete blocks of attention.compress_ratios positions; with
 * a ratio of 0 there are no blocks. The positions j of a block have values v_j = W_c x_j and scores
 * s_j = W_g x_j + ape_j, and the key of the block is
 *
 *     N(sum over j of softmax(s)_j v_j)        channel by channel, rotated at the first position
 *
 * With a ratio of 4 v and s have 2 D numbers and blocks overlap (engine_compress_keys), and an
 * indexer chooses the blocks, as block_mla.c describes: its queries are W_iqb c, its keys are
 * compressed keys of DI elements. Layers with blocks have a RoPE base of their own. */
#include "base/elementary.h"
#include "models/block/blocks.h"
#include <math.h>

enum { OVERLAPPING = 4 }; /* the ratio of blocks that overlap and have an indexer */

struct compressed {
    uint32_t n_embd, n_head, d, n_rot;   /* E, H, D, R */
    uint32_t n_q_latent, n_heads;        /* of c; H D */
    uint32_t n_groups, n_group, n_o;     /* G, H D / G, O */
    uint32_t n_o_rows, n_o_depth, n_out; /* O and G, or G O and 1, by the file's tensor; G O */
    uint32_t ratio, n_open;              /* 0: no blocks; numbers of v_j, or of s_j */
    uint32_t n_comp;                     /* D, or 0 without blocks */
    uint32_t n_index, d_index;           /* HI, DI; 0: no indexer */
    uint32_t n_index_q, n_index_open;    /* HI DI, 2 DI */
    uint32_t n_used;                     /* blocks that the indexer chooses */
    struct engine_rope rope;
    struct engine_tensor *sinks; /* [H] */
    struct model_linear q_a, q_b, kv, out;
    struct engine_tensor *out_a; /* [G][O][H D / G] */
    struct model_norm q_a_norm, kv_norm;
    struct compressor {
        struct model_linear value, score;
        struct engine_tensor *ape; /* [ratio][numbers] */
        struct model_norm norm;
    } keys, index;
    struct model_linear index_q, index_w;
};

#define AT(member) MODEL_AT(struct compressed, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"attn_q_a",       MODEL_LINEAR, MODEL_REQUIRED, AT(q_a),      .inputs = AT(n_embd),     .outputs = AT(n_q_latent)},
    {"attn_q_a_norm",  MODEL_NORM,   MODEL_REQUIRED, AT(q_a_norm), .inputs = AT(n_q_latent)},
    {"attn_q_b",       MODEL_LINEAR, MODEL_REQUIRED, AT(q_b),      .inputs = AT(n_q_latent), .outputs = AT(n_heads)},
    {"attn_kv",        MODEL_LINEAR, MODEL_REQUIRED, AT(kv),       .inputs = AT(n_embd),     .outputs = AT(d)},
    {"attn_kv_a_norm", MODEL_NORM,   MODEL_REQUIRED, AT(kv_norm),  .inputs = AT(d)},
    {"attn_sinks",     MODEL_VECTOR, MODEL_REQUIRED, AT(sinks),    .inputs = AT(n_head)},
    {"attn_output_a",  MODEL_MATRIX, MODEL_REQUIRED, AT(out_a),    .inputs = AT(n_group),    .outputs = AT(n_o_rows), .depth = AT(n_o_depth)},
    {"attn_output_b",  MODEL_LINEAR, MODEL_REQUIRED, AT(out),      .inputs = AT(n_out),      .outputs = AT(n_embd)},
    {"attn_compressor_kv",   MODEL_LINEAR, MODEL_REQUIRED, AT(keys.value), .inputs = AT(n_embd), .outputs = AT(n_open)},
    {"attn_compressor_gate", MODEL_LINEAR, MODEL_REQUIRED, AT(keys.score), .inputs = AT(n_embd), .outputs = AT(n_open)},
    {"attn_compressor_ape",  MODEL_VECTOR, MODEL_REQUIRED, AT(keys.ape),   .inputs = AT(n_open), .outputs = AT(ratio)},
    {"attn_compressor_norm", MODEL_NORM,   MODEL_REQUIRED, AT(keys.norm),  .inputs = AT(n_comp)},
    {"indexer.proj",     MODEL_LINEAR, MODEL_REQUIRED, AT(index_w), .inputs = AT(n_embd),     .outputs = AT(n_index)},
    {"indexer.attn_q_b", MODEL_LINEAR, MODEL_REQUIRED, AT(index_q), .inputs = AT(n_q_latent), .outputs = AT(n_index_q)},
    {"indexer_compressor_kv",   MODEL_LINEAR, MODEL_REQUIRED, AT(index.value), .inputs = AT(n_embd),       .outputs = AT(n_index_open)},
    {"indexer_compressor_gate", MODEL_LINEAR, MODEL_REQUIRED, AT(index.score), .inputs = AT(n_embd),       .outputs = AT(n_index_open)},
    {"indexer_compressor_ape",  MODEL_VECTOR, MODEL_REQUIRED, AT(index.ape),   .inputs = AT(n_index_open), .outputs = AT(ratio)},
    {"indexer_compressor_norm", MODEL_NORM,   MODEL_REQUIRED, AT(index.norm),  .inputs = AT(d_index)},
    {.name = NULL},
};
/* clang-format on */

/* ---- Keys ---- */

static bool read_sizes(struct model_reader *r, const struct model_params *p, struct compressed *a)
{
    if (!model_read_u32(r, "attention.head_count", MODEL_REQUIRED, 1, MODEL_MAX_HEADS, &a->n_head))
        return false;
    a->n_embd = p->n_embd;
    a->d = p->n_embd / a->n_head;
    if (!model_read_u32(r, "attention.key_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &a->d) ||
        !model_read_u32(r, "attention.q_lora_rank", MODEL_REQUIRED, 1, MODEL_MAX_DIM,
                        &a->n_q_latent) ||
        !model_read_u32(r, "attention.output_group_count", MODEL_REQUIRED, 1, a->n_head,
                        &a->n_groups) ||
        !model_read_u32(r, "attention.output_lora_rank", MODEL_REQUIRED, 1, MODEL_MAX_DIM, &a->n_o))
        return false;
    if ((uint64_t)a->n_head * a->d > INT32_MAX)
        return model_reader_fail(r, "attention.head_count", "%u heads are too many", a->n_head);
    if (a->n_head % a->n_groups || (uint64_t)a->n_groups * a->n_o > INT32_MAX)
        return model_reader_fail(r, "attention.output_group_count", "%u groups of %u heads",
                                 a->n_groups, a->n_head);
    a->n_heads = a->n_head * a->d;
    a->n_group = a->n_heads / a->n_groups;
    a->n_out = a->n_groups * a->n_o;
    return true;
}

/* Reads the positions of a block, and the numbers of the indexer of blocks that overlap. */
static bool read_blocks(struct model_reader *r, const struct model_params *p, uint32_t layer,
                        struct compressed *a)
{
    if (layer < p->n_layer && !model_read_layer_u32(r, "attention.compress_ratios", MODEL_REQUIRED,
                                                    layer, 0, MODEL_MAX_CTX, &a->ratio))
        return false;
    if (a->ratio && a->ratio != OVERLAPPING && a->ratio != 128)
        return model_reader_fail(r, "attention.compress_ratios", "%u is none of 0, 4 and 128",
                                 a->ratio);
    a->n_used = INT32_MAX;
    a->n_comp = a->ratio ? a->d : 0;
    a->n_open = a->ratio == OVERLAPPING ? 2 * a->d : a->n_comp;
    if (a->ratio != OVERLAPPING) return true;
    if (!model_read_u32(r, "attention.indexer.head_count", MODEL_REQUIRED, 1, MODEL_MAX_HEADS,
                        &a->n_index) ||
        !model_read_u32(r, "attention.indexer.key_length", MODEL_REQUIRED, 1, MODEL_MAX_DIM,
                        &a->d_index) ||
        !model_read_u32(r, "attention.indexer.top_k", MODEL_REQUIRED, 1, INT32_MAX, &a->n_used))
        return false;
    if ((uint64_t)a->n_index * a->d_index > MODEL_MAX_DIM)
        return model_reader_fail(r, "attention.indexer.head_count", "%u heads are too many",
                                 a->n_index);
    a->n_index_q = a->n_index * a->d_index;
    a->n_index_open = 2 * a->d_index;
    return true;
}

/* Reads the RoPE: that of layers with blocks has a base of its own, and its magnitude is 1. */
static bool read_rotation(struct model_reader *r, struct model_params *p, uint32_t layer,
                          struct compressed *a)
{
    bool rotates;
    if (!model_read_rope(r, p, a->ratio == 0, a->d, layer, &a->rope, &rotates)) return false;
    a->n_rot = (uint32_t)a->rope.n_rot;
    if (a->ratio == 0) return true;
    a->rope.attn_factor = a->rope.ext_factor != 0.0f
                              ? 1.0f / (1.0f - 0.1f * (float)base_log(a->rope.freq_scale))
                              : 1.0f;
    return model_read_f32(r, "attention.compress_rope_freq_base", MODEL_REQUIRED, 1.0f,
                          &a->rope.freq_base);
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct compressed *a = self;
    uint32_t window = 0;
    if (!read_sizes(r, p, a) || !read_blocks(r, p, l->index, a) ||
        !read_rotation(r, p, l->index, a) || !model_read_window(r, p, l->index, &window))
        return false;
    if (window == 0) return model_reader_fail(r, "attention.sliding_window", "missing or 0");
    if (a->n_index && a->d_index < a->n_rot)
        return model_reader_fail(r, "attention.indexer.key_length", "fewer than rotate");
    const struct gguf_tensor *t = model_reader_tensor(r, l->index, "attn_output_a.weight");
    const bool apart = t && t->ne[2] > 1;
    a->n_o_rows = apart ? a->n_o : a->n_out;
    a->n_o_depth = apart ? a->n_groups : 1;
    l->kv = (struct model_kv_shape){.n_head = 1,
                                    .size_k = a->d,
                                    .size_v = a->d,
                                    .window = window,
                                    .size_index = a->d_index,
                                    .ratio = a->ratio,
                                    .overlaps = a->ratio == OVERLAPPING,
                                    .size_open = 2 * (a->n_open + a->n_index_open)};
    if (p->n_head == 0) {
        p->n_head = a->n_head;
        p->n_head_kv = 1;
    }
    return true;
}

/* ---- Graph ---- */

/* Returns x [T][heads][size] with the last R elements of each head rotated, or rotated back. */
static struct engine_tensor *rotated(const struct model_builder *b, const struct compressed *a,
                                     struct engine_tensor *x, struct engine_tensor *positions,
                                     bool back)
{
    struct engine_rope rope = a->rope;
    if (!x) return NULL;
    const int64_t rest = x->ne[0] - a->n_rot;
    rope.inverse = back;
    struct engine_tensor *last = engine_cols(b->g, x, rest, a->n_rot);
    last = engine_rope(b->g, last, positions, NULL, &rope);
    return rest ? engine_concat(b->g, engine_cols(b->g, x, 0, rest), last, 0) : last;
}

/* Returns the keys [T][1][size] of the blocks that tokens end; `at`: where the compressor's numbers
 * begin in the rows. */
static struct engine_tensor *build_block_keys(const struct model_builder *b,
                                              const struct compressed *a,
                                              const struct compressor *c,
                                              struct engine_tensor *rows, uint32_t size,
                                              uint32_t at, const char *name)
{
    const struct model_kv_layer *layer = &b->state->kv.layer[b->kv_layer];
    const struct model_kv_inputs *in = &b->inputs.kv;
    const bool overlaps = a->ratio == OVERLAPPING;
    const struct engine_compress_keys how = {.ratio = (int)a->ratio,
                                             .size = (int)size,
                                             .value_at = (int)at,
                                             .score_at = (int)(at + size * (overlaps ? 2 : 1)),
                                             .overlaps = overlaps};
    model_adapters_refuse(b, c->ape);
    struct engine_tensor *k = engine_compress_keys(
        b->g, rows, in->ended[layer->blocks], &b->state->kv.slots[layer->kind].view, c->ape, &how);
    k = model_norm_as(b, k, &c->norm, MODEL_RMS_NORM);
    k = model_split_heads(b, k, 1, size);
    return model_named(b, rotated(b, a, k, in->start[layer->blocks], false), name);
}

/* Builds attention to the window and to blocks. x [T][E], c the latents of queries. */
static struct engine_tensor *build_blocks(struct model_builder *b, const struct compressed *a,
                                          struct engine_tensor *x, struct engine_tensor *c,
                                          struct engine_tensor *q, struct engine_tensor *k,
                                          const struct engine_attention *how)
{
    const struct model_linear *const all[] = {&a->keys.value, &a->keys.score, &a->index.value,
                                              &a->index.score};
    const uint32_t size[] = {a->n_open, a->n_open, a->n_index_open, a->n_index_open};
    const int n = a->n_index ? 4 : 2;
    struct model_block_choice choice = {.n_used = a->n_used};
    struct engine_tensor *part[4];
    model_linears(b, NULL, all, size, n, x, "open", MODEL_IN_MIXER, part);
    for (int i = 1; i < n; i++) part[0] = engine_concat(b->g, part[0], part[i], 0);
    struct engine_tensor *rows = model_keep_open(b, part[0]);
    struct engine_tensor *blocks = build_block_keys(b, a, &a->keys, rows, a->d, 0, "block_k");
    if (a->n_index) {
        choice.k = build_block_keys(b, a, &a->index, rows, a->d_index, 2 * a->n_open, "index_k");
        choice.q = model_split_heads(b, model_linear(b, &a->index_q, c), a->n_index, a->d_index);
        choice.q = model_named(b, rotated(b, a, choice.q, b->positions, false), "index_q");
        choice.weights = engine_scale(b->g, model_linear(b, &a->index_w, x),
                                      1.0f / sqrtf((float)(a->d_index * a->n_index)), 0.0f);
    }
    return model_attend_blocks(b, q, k, blocks, &choice, a->sinks, how);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    static const struct model_norm none;
    const struct compressed *a = self;
    const struct model_linear *const all[] = {&a->q_a, &a->kv};
    const uint32_t size[] = {a->n_q_latent, a->d};
    const struct engine_attention how = {.scale = 1.0f / sqrtf((float)a->d), .dv = (int)a->d};
    struct engine_tensor *part[2];
    model_linears(b, NULL, all, size, 2, x, "q_kv", MODEL_IN_MIXER, part);
    struct engine_tensor *c = model_norm_as(b, part[0], &a->q_a_norm, MODEL_RMS_NORM);
    struct engine_tensor *k = model_norm_as(b, part[1], &a->kv_norm, MODEL_RMS_NORM);
    struct engine_tensor *q = model_split_heads(b, model_linear(b, &a->q_b, c), a->n_head, a->d);
    q = rotated(b, a, model_norm_as(b, q, &none, MODEL_RMS_NORM), b->positions, false);
    k = model_split_heads(b, k, 1, a->d);
    k = model_named(b, rotated(b, a, k, b->positions, false), "k");
    x = a->ratio
            ? build_blocks(b, a, x, c, q, k, &how)
            : model_attend(b, b->state->kv.layer[b->kv_layer].kind, q, k, k, a->sinks, NULL, &how);
    x = model_split_heads(b, model_named(b, x, "attention"), a->n_head, a->d);
    x = model_split_heads(b, rotated(b, a, x, b->positions, true), a->n_groups, a->n_group);
    struct engine_tensor *w =
        engine_reshape(b->g, a->out_a, 3, (int64_t[]){a->n_group, a->n_o, a->n_groups});
    x = engine_cont(b->g, model_swap_heads(b, model_linear_of(b, w, model_swap_heads(b, x))));
    x = engine_reshape(b->g, x, 2, (int64_t[]){a->n_out, b->n_tokens});
    return model_named(b, model_linear(b, &a->out, x), "attn_out");
}

MODEL_BLOCK(compressed, "compressed attention")
