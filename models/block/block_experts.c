/* models/block/block_experts.c: a mixture of experts, with or without shared experts. See
 * models/block/blocks.h. */
#include "models/block/blocks.h"
#include <math.h>

struct experts {
    uint32_t n_embd, n_ff, n_expert, n_used; /* E, F of an expert, X, U */
    uint32_t n_gate, n_gate_up, n_shared;    /* F, 2 F; F of the shared experts together; 0: none */
    uint32_t n_work, n_latent;               /* E or the latent size; that size or 0 */
    uint32_t n_shared_gate_rows, n_shared_up; /* 0 and 2 n_shared if one tensor has both */
    uint32_t n_shared_gate;                   /* E if the output of the shared experts has a gate */
    uint32_t zeros; /* 1 if many inputs of down and shared_down are zero */
    uint32_t n_groups, n_groups_used;
    uint32_t n_chunk, n_chunk_ff; /* number of small experts, each of which `per_chunk` consecutive
                                     experts share, and their F; 0: none */
    uint32_t per_chunk;
    float chunk_scale;
    enum model_gating gating;
    bool normalize;                     /* scale the weights of the chosen experts to sum 1 */
    float scale;                        /* factor of these weights */
    float clamp, shared_clamp;          /* bounds of gated units; 0: none */
    struct model_linear router;         /* X x E */
    uint32_t n_plain, n_scaled;         /* E and 0; 0 and E if the router has its own input */
    struct engine_tensor *router_scale; /* [E]: scale of that input */
    uint32_t n_hash, n_choice, n_vocab; /* U, 0 and V in a layer with a table of experts; 0 and X */
    struct engine_tensor *hash;         /* I32 [V][U]: the experts of each token id */
    struct engine_tensor *bias;         /* [X]: added only for the choice of experts; or NULL */
    struct model_linear latent_down, latent_up;
    struct model_norm latent_norm;
    struct model_linear gate_up; /* X of 2F x E, or the next two */
    struct model_linear gate, up;
    struct model_linear down; /* X of E x F */
    struct model_linear chunk_gate, chunk_up, chunk_down;
    struct engine_tensor *shared_in; /* [E]: gate of the shared experts, or NULL */
    struct model_linear shared_gate, shared_up, shared_down;
};

#define AT(member) MODEL_AT(struct experts, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"ffn_gate_inp",       MODEL_LINEAR, MODEL_REQUIRED, AT(router),  .inputs = AT(n_plain), .outputs = AT(n_expert)},
    {"ffn_gate_inp",       MODEL_MATRIX, MODEL_REQUIRED, AT(router.weight), .inputs = AT(n_scaled), .outputs = AT(n_expert)},
    {"ffn_gate_inp",       MODEL_SCALE,  MODEL_REQUIRED, AT(router_scale), .inputs = AT(n_scaled)},
    {"exp_probs_b",        MODEL_BIAS,   MODEL_OPTIONAL, AT(bias),    .inputs = AT(n_choice)},
    {"ffn_gate_tid2eid",   MODEL_IDS,    MODEL_REQUIRED, AT(hash),    .inputs = AT(n_hash), .outputs = AT(n_vocab)},
    {"ffn_gate_up_exps",   MODEL_STACK,  MODEL_OPTIONAL, AT(gate_up), .inputs = AT(n_work), .outputs = AT(n_gate_up), .depth = AT(n_expert)},
    {"ffn_gate_exps",      MODEL_STACK,  MODEL_REQUIRED, AT(gate),    .inputs = AT(n_work), .outputs = AT(n_gate), .depth = AT(n_expert), .unless = AT(gate_up)},
    {"ffn_up_exps",        MODEL_STACK,  MODEL_REQUIRED, AT(up),      .inputs = AT(n_work), .outputs = AT(n_ff),   .depth = AT(n_expert), .unless = AT(gate_up)},
    {"ffn_down_exps",      MODEL_STACK,  MODEL_REQUIRED, AT(down),    .inputs = AT(n_ff),   .outputs = AT(n_work), .depth = AT(n_expert), .zeros = AT(zeros)},
    {"ffn_gate_chexps",    MODEL_STACK,  MODEL_REQUIRED, AT(chunk_gate), .inputs = AT(n_embd), .outputs = AT(n_chunk_ff), .depth = AT(n_chunk)},
    {"ffn_up_chexps",      MODEL_STACK,  MODEL_REQUIRED, AT(chunk_up),   .inputs = AT(n_embd), .outputs = AT(n_chunk_ff), .depth = AT(n_chunk)},
    {"ffn_down_chexps",    MODEL_STACK,  MODEL_REQUIRED, AT(chunk_down), .inputs = AT(n_chunk_ff), .outputs = AT(n_embd), .depth = AT(n_chunk)},
    {"ffn_latent_down",    MODEL_LINEAR, MODEL_REQUIRED, AT(latent_down), .inputs = AT(n_embd), .outputs = AT(n_latent)},
    {"ffn_latent_norm",    MODEL_NORM,   MODEL_OPTIONAL, AT(latent_norm), .inputs = AT(n_latent)},
    {"ffn_latent_up",      MODEL_LINEAR, MODEL_REQUIRED, AT(latent_up),   .inputs = AT(n_latent), .outputs = AT(n_embd)},
    {"ffn_gate_inp_shexp", MODEL_MATRIX, MODEL_REQUIRED, AT(shared_in),   .inputs = AT(n_shared_gate)},
    {"ffn_gate_shexp",     MODEL_LINEAR, MODEL_REQUIRED, AT(shared_gate), .inputs = AT(n_embd),   .outputs = AT(n_shared_gate_rows)},
    {"ffn_up_shexp",       MODEL_LINEAR, MODEL_REQUIRED, AT(shared_up),   .inputs = AT(n_embd),   .outputs = AT(n_shared_up)},
    {"ffn_down_shexp",     MODEL_LINEAR, MODEL_REQUIRED, AT(shared_down), .inputs = AT(n_shared), .outputs = AT(n_embd), .zeros = AT(zeros)},
    {.name = NULL},
};
/* clang-format on */

/* ---- Keys ---- */

/* Reads the lengths of an expert and of the shared experts. */
static bool read_lengths(struct model_reader *r, const struct model_params *p, uint32_t layer,
                         struct experts *e)
{
    const struct model_experts_row *row = &p->arch->experts;
    const bool or_count = row->shared == MODEL_SHARED_LENGTH_OR_COUNT;
    const bool counted =
        row->shared == MODEL_SHARED_COUNT || row->shared == MODEL_SHARED_LENGTH_COUNT || or_count;
    uint32_t main = 0, own = 0, shared = 0;
    uint32_t count = row->shared == MODEL_SHARED_COUNT || or_count ? row->shared_count : 1;
    if (!model_read_layer_u32(r, "feed_forward_length", MODEL_OPTIONAL, layer, 0, MODEL_MAX_DIM,
                              &main) ||
        (row->own_length && !model_read_u32(r, "expert_feed_forward_length", MODEL_OPTIONAL, 0,
                                            MODEL_MAX_DIM, &own)) ||
        (row->shared > MODEL_SHARED_COUNT &&
         !model_read_u32(r, "expert_shared_feed_forward_length", MODEL_OPTIONAL, 0, MODEL_MAX_DIM,
                         &shared)) ||
        (counted &&
         !model_read_u32(r, "expert_shared_count", MODEL_OPTIONAL, 0, MODEL_MAX_EXPERTS, &count)))
        return false;
    e->n_ff = own ? own : row->own_length && !row->main_length ? main / e->n_used : main;
    if (e->n_ff == 0) return model_reader_fail(r, "expert_feed_forward_length", "missing or 0");
    if (shared > 0 && or_count && count > 0) count = 1; /* S is their total length */
    if (shared == 0 && row->shared == MODEL_SHARED_LENGTH_OR_MAIN) shared = main;
    if (shared == 0 && (counted || row->shared == MODEL_SHARED_LENGTH_OR_OWN)) shared = e->n_ff;
    if ((uint64_t)shared * count > MODEL_MAX_DIM)
        return model_reader_fail(r, "expert_shared_count", "%u is too large", count);
    e->n_shared = shared * count;
    e->n_gate = row->plain ? 0 : e->n_ff;
    e->n_gate_up = 2 * e->n_gate;
    if (row->latent &&
        !model_read_u32(r, row->latent, MODEL_OPTIONAL, 0, MODEL_MAX_DIM, &e->n_latent))
        return false;
    e->n_work = e->n_latent ? e->n_latent : e->n_embd;
    e->n_shared_gate = row->shared_gate ? e->n_embd : 0;
    e->n_shared_gate_rows = row->shared_fused || row->plain ? 0 : e->n_shared;
    e->n_shared_up = row->shared_fused ? 2 * e->n_shared : e->n_shared;
    return true;
}

static bool read_gating(struct model_reader *r, const struct model_params *p, struct experts *e)
{
    const struct model_experts_row *row = &p->arch->experts;
    uint32_t kind = 0;
    float scale = 0.0f;
    e->normalize = row->normalize == MODEL_NORMALIZE_ALWAYS;
    e->n_groups = e->n_groups_used = 1;
    if ((row->gating_key && !model_read_u32(r, "expert_gating_func", MODEL_OPTIONAL, 0,
                                            MODEL_GATING_SQRT_SOFTPLUS, &kind)) ||
        (row->scale_key &&
         !model_read_f32(r, "expert_weights_scale", MODEL_OPTIONAL, 0.0f, &scale)) ||
        (row->normalize == MODEL_NORMALIZE_KEY &&
         !gguf_get_bool(r->file, model_reader_key(r, "expert_weights_norm"), &e->normalize,
                        r->err)) ||
        !model_read_u32(r, "expert_group_count", MODEL_OPTIONAL, 0, e->n_expert, &e->n_groups))
        return false;
    if (e->n_groups == 0) e->n_groups = 1;
    if (!model_read_u32(r, "expert_group_used_count", MODEL_OPTIONAL, 0, e->n_groups,
                        &e->n_groups_used))
        return false;
    if (e->n_groups_used == 0) e->n_groups_used = e->n_groups;
    if (e->n_expert % e->n_groups || e->n_used > e->n_expert / e->n_groups * e->n_groups_used)
        return model_reader_fail(r, "expert_group_count", "%u groups do not fit %u experts",
                                 e->n_groups, e->n_expert);
    e->gating = kind ? (enum model_gating)kind : row->gating;
    if (e->gating == MODEL_GATING_SOFTMAX_DEFAULT) e->gating = MODEL_GATING_SOFTMAX;
    e->scale = scale > 0.0f ? scale : 1.0f;
    return true;
}

/* Reads the small experts, one per group of consecutive experts. */
static bool read_chunks(struct model_reader *r, const struct model_params *p, struct experts *e)
{
    uint32_t head = p->n_head ? p->n_embd / p->n_head : 0;
    if (!p->arch->experts.chunks) return true;
    if (!model_read_u32(r, "attention.key_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM, &head))
        return false;
    e->n_chunk_ff = head;
    if (!model_read_u32(r, "expert_chunk_feed_forward_length", MODEL_OPTIONAL, 0, MODEL_MAX_DIM,
                        &e->n_chunk_ff) ||
        !model_read_u32(r, "experts_per_group", MODEL_REQUIRED, 1, e->n_expert, &e->per_chunk) ||
        !model_read_f32(r, "expert_group_scale", MODEL_REQUIRED, -INFINITY, &e->chunk_scale))
        return false;
    if (e->n_chunk_ff == 0) e->n_chunk_ff = head;
    if (e->n_expert % e->per_chunk)
        return model_reader_fail(r, "experts_per_group", "%u do not divide %u experts",
                                 e->per_chunk, e->n_expert);
    e->n_chunk = e->n_expert / e->per_chunk;
    return true;
}

/* Reads whether a table has the experts of each token id. The MTP layer has a router. */
static bool read_hash(struct model_reader *r, const struct model_params *p, uint32_t layer,
                      struct experts *e)
{
    uint32_t n = 0;
    e->n_choice = e->n_expert;
    if (!p->arch->experts.hash) return true;
    if (!model_read_u32(r, "hash_layer_count", MODEL_REQUIRED, 0, MODEL_MAX_LAYERS, &n))
        return false;
    e->n_vocab = p->n_vocab;
    if (layer < n && layer < p->n_layer) {
        e->n_hash = e->n_used;
        e->n_choice = 0;
    }
    return true;
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct experts *e = self;
    e->n_embd = p->n_embd;
    e->n_expert = p->n_expert;
    e->n_used = p->n_expert_used;
    e->n_scaled = p->arch->experts.beside == MODEL_BESIDE_NORMS ? e->n_embd : 0;
    e->n_plain = e->n_embd - e->n_scaled;
    e->zeros = !p->arch->ffn.oai && engine_unary_has_zeros(p->act);
    if (!read_lengths(r, p, l->index, e) || !read_gating(r, p, e) || !read_chunks(r, p, e) ||
        !read_hash(r, p, l->index, e) ||
        !model_read_glu_clamp(r, p, "swiglu_clamp_exp", l->index, &e->clamp))
        return false;
    if (p->arch->ffn.clamps == MODEL_CLAMPS_EXPERTS) e->shared_clamp = e->clamp;
    return model_read_glu_clamp(r, p, "swiglu_clamp_shexp", l->index, &e->shared_clamp);
}

/* ---- Graph ---- */

/* Returns the shared experts' output for x [n][E], times its gate, one number per token. */
static struct engine_tensor *build_shared(const struct model_builder *b, const struct experts *e,
                                          struct engine_tensor *x)
{
    static const struct model_linear none;
    const struct model_arch *arch = b->params->arch;
    const bool fused = e->n_shared_gate_rows == 0;
    const struct model_linear *const both[] = {fused ? &none : &e->shared_gate,
                                               fused ? &none : &e->shared_up};
    const uint32_t size[] = {e->n_shared, e->n_shared};
    struct engine_tensor *part[2], *h;
    if (arch->experts.plain) {
        h = model_linear_as(b, &e->shared_up, MODEL_IN_FFN, x);
        h = engine_unary(b->g, h, b->params->act);
        return model_linear_as(b, &e->shared_down, MODEL_IN_FFN, h);
    }
    model_linears(b, fused ? &e->shared_up : NULL, both, size, 2, x, "shared_gate_up", MODEL_IN_FFN,
                  part);
    h = model_glu(b, part[0], part[1], b->params->act, e->shared_clamp);
    h = model_linear_as(b, &e->shared_down, MODEL_IN_FFN, h);
    if (!e->shared_in) return h;
    return engine_mul(b->g, h,
                      engine_unary(b->g, model_linear_of(b, e->shared_in, x), ENGINE_SIGMOID));
}

/* Returns the router's input: x, or the residual, normalized without weights and scaled. */
static struct engine_tensor *router_input(const struct model_builder *b, const struct experts *e,
                                          struct engine_tensor *x)
{
    if (!e->router_scale) return x;
    x = engine_rms_norm(b->g, b->residual, b->params->norm_eps);
    x = engine_scale(b->g, x, 1.0f / sqrtf((float)e->n_embd), 0.0f);
    return engine_mul(b->g, x, e->router_scale);
}

/* Returns the output of the small experts of the chosen experts' groups; their input x [n][E] is
 * the chosen experts' output. As in the reference implementation the weight of group g is the
 * probability of expert g. */
static struct engine_tensor *build_chunks(const struct model_builder *b, const struct experts *e,
                                          struct engine_tensor *x, struct engine_tensor *logits,
                                          struct engine_tensor *probs)
{
    const uint32_t used = e->n_used < e->n_chunk ? e->n_used : e->n_chunk;
    struct engine_tensor *ids =
        engine_choose_expert_chunks(b->g, logits, (int)used, (int)e->per_chunk);
    struct engine_tensor *weights = engine_expert_weights(b->g, probs, ids, false, true, e->scale);
    if (!x) return NULL;
    x = engine_reshape(b->g, x, 3, (int64_t[]){e->n_embd, 1, x->ne[1]});
    struct engine_tensor *gate = model_linear_id(b, &e->chunk_gate, x, ids, NULL);
    struct engine_tensor *up = model_linear_id(b, &e->chunk_up, x, ids, NULL);
    up = model_glu(b, gate, up, b->params->act, 0.0f);
    return engine_expert_sum(b->g, model_linear_id(b, &e->chunk_down, up, ids, NULL), weights);
}

/* Returns the sum of the outputs, weighted by the router, of the U experts that the router chooses
 * for each row of x [n][E] (Mixtral: Jiang et al. 2024; groups: DeepSeek-V3, 2024). */
static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct experts *e = self;
    const int64_t n = x ? x->ne[1] : 0;
    const struct model_experts_row *row = &b->params->arch->experts;
    struct engine_tensor *in = x;
    struct engine_tensor *logits =
        model_linear(b, &e->router, row->route_by_layer ? b->layer_in : router_input(b, e, x));
    struct engine_tensor *probs = logits;
    if (e->gating == MODEL_GATING_SOFTMAX)
        probs = engine_soft_max(b->g, probs, NULL, NULL, 1.0f, 0.0f);
    if (e->gating == MODEL_GATING_SIGMOID) probs = engine_unary(b->g, probs, ENGINE_SIGMOID);
    if (e->gating == MODEL_GATING_SQRT_SOFTPLUS)
        probs = engine_unary(b->g, engine_unary(b->g, probs, ENGINE_SOFTPLUS), ENGINE_SQRT);
    probs = model_named(b, probs, "router");
    struct engine_tensor *ids =
        e->hash ? model_wanted_rows(b, engine_get_rows(b->g, e->hash, b->ids))
                : engine_choose_experts(b->g, row->choose_by_logits ? logits : probs, e->bias,
                                        (int)e->n_used, (int)e->n_groups, (int)e->n_groups_used);
    struct engine_tensor *weights = engine_expert_weights(
        b->g, probs, ids, e->gating == MODEL_GATING_SOFTMAX_CHOSEN, e->normalize, e->scale);

    if (e->n_latent) x = model_linear(b, &e->latent_down, x);
    engine_graph_set_place(b->g, e->down.weight->place); /* of all experts */
    x = engine_reshape(b->g, x, 3, (int64_t[]){e->n_work, 1, n});
    struct engine_tensor *gate = NULL, *up;
    /* Rows of up are skipped where the activated gate is zero. */
    const bool by_zeros = e->n_gate && !e->gate_up.weight && e->clamp < 1e-6f &&
                          !row->weigh_inputs && engine_unary_has_zeros(b->params->act);
    if (e->gate_up.weight) {
        x = model_linear_id(b, &e->gate_up, x, ids, NULL);
        gate = engine_cols(b->g, x, 0, e->n_ff);
        up = engine_cols(b->g, x, e->n_ff, e->n_ff);
    } else {
        if (e->n_gate) gate = model_linear_id(b, &e->gate, x, ids, NULL);
        up = model_linear_id(b, &e->up, x, ids,
                             by_zeros ? engine_unary(b->g, gate, b->params->act) : NULL);
    }
    if (row->weigh_inputs) { /* gate and up are both linear in the input */
        struct engine_tensor *factors =
            engine_reshape(b->g, weights, 3, (int64_t[]){1, e->n_used, n});
        gate = engine_mul(b->g, gate, factors);
        up = engine_mul(b->g, up, factors);
        weights = engine_scale(b->g, weights, 0.0f, 1.0f);
    }
    up = by_zeros ? engine_glu(b->g, gate, up, b->params->act)
         : gate   ? model_glu(b, gate, up, b->params->act, e->clamp)
                  : engine_unary(b->g, up, b->params->act);
    x = engine_expert_sum(b->g, model_linear_id(b, &e->down, up, ids, NULL), weights);
    if (e->n_chunk) {
        struct engine_tensor *chunks = build_chunks(b, e, x, logits, probs);
        x = engine_add(b->g, x, engine_scale(b->g, chunks, e->chunk_scale, 0.0f));
    }
    engine_graph_set_place(b->g, b->layer->place);
    if (e->latent_norm.weight) x = model_norm(b, x, &e->latent_norm);
    if (e->n_latent) x = model_linear(b, &e->latent_up, x);
    if (e->n_shared) x = engine_add(b->g, x, build_shared(b, e, in));
    if (e->n_shared && b->params->arch->experts.shared_mean) x = engine_scale(b->g, x, 0.5f, 0.0f);
    return model_named(b, x, "ffn_out");
}

MODEL_BLOCK(experts, "experts")
