/* models/params.c: reads a model's numbers from its metadata and chooses the blocks of its layers.
 * See models/params.h. */
#include "models/params.h"
#include "models/block/blocks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Architecture ---- */

enum { N_NEAREST = 3, MAX_COMPARED = 32 };

/* Returns the number of insertions, deletions and exchanges of characters that turn a into b
 * (Levenshtein 1966). */
static unsigned edit_distance(struct gguf_str a, const char *b)
{
    unsigned row[MAX_COMPARED + 1];
    const size_t n = strlen(b) < MAX_COMPARED ? strlen(b) : MAX_COMPARED;
    for (size_t j = 0; j <= n; j++) row[j] = (unsigned)j;
    for (size_t i = 0; i < a.size && i < MAX_COMPARED; i++) {
        unsigned diagonal = row[0];
        row[0]++;
        for (size_t j = 1; j <= n; j++) {
            unsigned best = diagonal + (a.data[i] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[n];
}

static bool fail_arch(struct gguf_str name, struct base_error *err)
{
    const char *nearest[N_NEAREST] = {"", "", ""}, *known;
    unsigned distance[N_NEAREST] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    for (size_t i = 0; (known = model_arch_name(i, NULL)); i++) {
        unsigned d = edit_distance(name, known);
        for (int k = 0; k < N_NEAREST; k++)
            if (d < distance[k]) { /* moves the replaced character to the next place */
                const unsigned pushed_d = distance[k];
                const char *pushed = nearest[k];
                distance[k] = d;
                nearest[k] = known;
                d = pushed_d;
                known = pushed;
            }
    }
    return base_fail_at(err, BASE_MODEL, "general.architecture", -1,
                        "architecture '%.*s' is not supported (the nearest names that are: %s, %s, "
                        "%s)",
                        name.size < 64 ? (int)name.size : 64, name.data, nearest[0], nearest[1],
                        nearest[2]);
}

static bool read_arch(struct model_params *p, const struct gguf_file *file, bool drafts,
                      struct base_error *err)
{
    struct gguf_str name = {NULL, 0};
    if ((!drafts && !model_kind_check(file, err)) ||
        !gguf_get_str(file, "general.architecture", &name, err))
        return false;
    if (!name.data)
        return base_fail_at(err, BASE_MODEL, "general.architecture", -1, "this key is missing");
    p->arch = drafts ? model_arch_find_drafter(name, &p->name) : model_arch_find(name, &p->name);
    return p->arch ? true : fail_arch(name, err);
}

/* ---- Numbers of the whole model ---- */

/* Reads the size of the vocabulary from the shape of the embeddings. A few files have only the
 * weight of the output projection, which then serves as the embeddings too. */
static bool read_vocab(struct model_params *p, const struct gguf_file *file, struct base_error *err)
{
    const struct gguf_tensor *t = gguf_tensor_find(file, "token_embd.weight");
    if (!t && p->arch->drafter) return true;
    if (!t) t = gguf_tensor_find(file, "output.weight");
    if (!t) return base_fail_at(err, BASE_MODEL, "token_embd.weight", -1, "missing tensor");
    if (t->n_dims != 2 || t->ne[0] != p->n_embd || t->ne[1] > INT32_MAX)
        return base_fail_at(err, BASE_MODEL, "token_embd.weight", -1,
                            "shape [%llu][%llu], but the embedding length is %u",
                            (unsigned long long)t->ne[1], (unsigned long long)t->ne[0], p->n_embd);
    p->n_vocab = (uint32_t)t->ne[1];
    return true;
}

/* Reads the activation of the feed-forward networks, which files of models that were trained
 * further with ReLU need: their architecture is that of the original. Files with ffn_down
 * transposed, those of PowerInfer, are of models with ReLU. */
static bool read_activation(struct model_reader *r, struct model_params *p)
{
    static const char *const names[ENGINE_UNARY_COUNT] = {
        [ENGINE_SILU] = "silu",         [ENGINE_GELU] = "gelu",
        [ENGINE_GELU_ERF] = "gelu_erf", [ENGINE_GELU_QUICK] = "gelu_quick",
        [ENGINE_RELU] = "relu",         [ENGINE_RELU_SQR] = "relu_sqr"};
    static const char key[] = "feed_forward.activation";
    struct gguf_str name = {NULL, 0};
    p->act = model_reader_tensor(r, 0, "ffn_down_t.weight") ? ENGINE_RELU : p->arch->ffn.act;
    if (!gguf_get_str(r->file, model_reader_key(r, key), &name, r->err)) return false;
    if (!name.data) return true;
    for (int f = 0; f < ENGINE_UNARY_COUNT; f++)
        if (names[f] && name.size == strlen(names[f]) && !memcmp(name.data, names[f], name.size)) {
            p->act = (enum engine_unary)f;
            return true;
        }
    return model_reader_fail(r, key,
                             "not silu, gelu, gelu_erf, gelu_quick, relu or relu_sqr: '%.*s'",
                             name.size < 64 ? (int)name.size : 64, name.data);
}

static bool is_plain(const struct model_params *p)
{
    return p->norm == MODEL_LAYER_NORM_PLAIN || p->norm == MODEL_RMS_NORM_PLAIN;
}

static bool read_norm(struct model_reader *r, struct model_params *p)
{
    static const char rms_key[] = "attention.layer_norm_rms_epsilon";
    bool parallel = true, post = false;
    p->norm = p->arch->norm;
    if (p->norm == MODEL_NORM_BY_EPSILON) {
        if (!model_read_f32(r, rms_key, MODEL_OPTIONAL, 0.0f, &p->norm_eps)) return false;
        p->norm = p->norm_eps > 0.0f ? MODEL_RMS_NORM : MODEL_LAYER_NORM;
    }
    const bool rms = p->norm == MODEL_RMS_NORM || p->norm == MODEL_RMS_NORM_PLAIN;
    const enum model_need need = p->arch->norm_eps > 0.0f ? MODEL_OPTIONAL : MODEL_REQUIRED;
    if (p->arch->norm_eps > 0.0f) p->norm_eps = p->arch->norm_eps;
    if (!model_read_f32(r, rms ? rms_key : "attention.layer_norm_epsilon", need, 0.0f,
                        &p->norm_eps) ||
        !gguf_get_bool(r->file, model_reader_key(r, "use_parallel_residual"), &parallel, r->err) ||
        !gguf_get_bool(r->file, model_reader_key(r, "swin_norm"), &post, r->err))
        return false;
    p->post_norm_eps = p->arch->post_eps > 0.0f ? p->arch->post_eps : p->norm_eps;
    p->residual = p->arch->residual;
    if (p->residual == MODEL_PARALLEL_KEY) p->residual = parallel ? MODEL_PARALLEL : MODEL_PRE_NORM;
    if (p->residual == MODEL_POST_NORM_KEY) p->residual = post ? MODEL_POST_NORM : MODEL_PRE_NORM;
    return true;
}

/* Returns the number of rows of a matrix; 0 if the file does not have it. */
static uint32_t rows_of(const struct gguf_file *file, const char *name)
{
    const struct gguf_tensor *t = gguf_tensor_find(file, name);
    return t && t->ne[1] <= INT32_MAX ? (uint32_t)t->ne[1] : 0;
}

static bool read_ends(struct model_reader *r, struct model_params *p)
{
    const struct model_ends_row *row = &p->arch->ends;
    struct model_ends *ends = &p->ends;
    ends->n_embd = p->n_embd;
    ends->n_vocab = p->n_vocab;
    ends->n_output = p->arch->encoder   ? 0
                     : p->arch->drafter ? rows_of(r->file, "output.weight")
                                        : p->n_vocab;
    const bool normless = p->residual == MODEL_SUM_NORM || p->residual == MODEL_HYPER_GATED;
    ends->n_output_norm = is_plain(p) || normless ? 0 : p->n_embd;
    const struct gguf_tensor *types = gguf_tensor_find(r->file, "token_types.weight");
    ends->n_types =
        row->token_types && types && types->ne[1] <= MODEL_MAX_DIM ? (uint32_t)types->ne[1] : 0;
    ends->n_embd_norm = row->embd_norm == MODEL_EMBD_NORM ? p->n_embd : 0;
    if (p->n_ctx_train <= row->first_position)
        return model_reader_fail(r, "context_length", "too small");
    const bool must = p->arch->encoder || row->first_position;
    ends->n_positions = row->positions && !must ? p->n_ctx_train : 0;
    ends->n_positions_must = row->positions && must ? p->n_ctx_train : 0;
    p->n_ctx_train -= row->first_position;
    p->embd_scale = row->embd_scale == MODEL_EMBD_SQRT ? sqrtf((float)p->n_embd)
                    : row->embd_default > 0            ? row->embd_default
                                                       : 1.0f;
    p->residual_scale =
        row->residual_default > 0 ? row->residual_default / sqrtf((float)p->n_layer) : 1.0f;
    p->logit_scale = row->logit_default > 0    ? row->logit_default
                     : row->logits_by_embd > 0 ? row->logits_by_embd / (float)p->n_embd
                                               : 1.0f;
    p->logit_softcap = row->softcap;
    const bool altup = p->arch->plan.altup;
    if (altup) ends->n_per_layer = 256;
    if (p->arch->plan.per_layer &&
        !model_read_u32(r, "embedding_length_per_layer_input",
                        altup ? MODEL_OPTIONAL : MODEL_REQUIRED, altup ? 1 : 0,
                        MODEL_MAX_DIM / p->n_layer, &ends->n_per_layer))
        return false;
    ends->n_streams = altup ? MODEL_STREAMS - 1 : 0;
    ends->n_per_layers = p->n_layer * ends->n_per_layer;
    if ((row->embd_scale == MODEL_EMBD_KEY &&
         !model_read_f32(r, "embedding_scale", MODEL_OPTIONAL, 0.0f, &p->embd_scale)) ||
        (row->residual_scale &&
         !model_read_f32(r, "residual_scale", MODEL_OPTIONAL, 0.0f, &p->residual_scale)) ||
        (row->logit_scale != MODEL_LOGITS_PLAIN &&
         !model_read_f32(r, "logit_scale", MODEL_OPTIONAL, 0.0f, &p->logit_scale)) ||
        (row->softcap_key &&
         !model_read_f32(r, "final_logit_softcapping", MODEL_OPTIONAL, 0.0f, &p->logit_softcap)))
        return false;
    /* Some files write 0 instead of leaving the key out. */
    if (p->embd_scale == 0.0f) p->embd_scale = 1.0f;
    if (p->residual_scale == 0.0f) p->residual_scale = 1.0f;
    if (p->logit_scale == 0.0f) p->logit_scale = 1.0f;
    if (row->logit_scale == MODEL_LOGITS_DIVIDED) p->logit_scale = 1.0f / p->logit_scale;
    return true;
}

static bool read_temperature(struct model_reader *r, struct model_params *p)
{
    const enum model_temperature kind = p->arch->attn.temperature;
    const char *length = kind == MODEL_TEMPERATURE_KEY ? "attention.temperature_length"
                                                       : "rope.scaling.original_context_length";
    if (kind == MODEL_TEMPERATURE_NONE) return true;
    if (kind == MODEL_TEMPERATURE_UNROTATED) {
        p->temperature = 0.1f;
        p->temperature_length = 8192;
        p->temperature_first = 1;
        return true;
    }
    p->temperature_length = p->n_ctx_train;
    if (!model_read_f32(r, "attention.temperature_scale", MODEL_OPTIONAL, 0.0f, &p->temperature))
        return false;
    return p->temperature == 0.0f ||
           model_read_u32(r, length, MODEL_OPTIONAL, 1, MODEL_MAX_CTX, &p->temperature_length);
}

/* Reads the numbers of experts of an architecture with experts. */
static bool read_experts(struct model_reader *r, struct model_params *p)
{
    if (!p->arch->experts.allowed) return true;
    if (!model_read_u32(r, "expert_count", MODEL_OPTIONAL, 0, MODEL_MAX_EXPERTS, &p->n_expert))
        return false;
    if (p->n_expert == 0) return true;
    return model_read_u32(r, "expert_used_count", MODEL_REQUIRED, 1, p->n_expert,
                          &p->n_expert_used);
}

/* Reads how many times a token passes through the layers. */
static bool read_passes(struct model_reader *r, struct model_params *p)
{
    bool skip = false;
    uint32_t n = 1;
    if (!p->n_stack) p->n_run = p->n_layer;
    if (!p->arch->plan.loops) return true;
    if (!model_read_u32(r, "num_loops", MODEL_OPTIONAL, 1, MODEL_MAX_LAYERS / p->n_layer, &n) ||
        !gguf_get_bool(r->file, model_reader_key(r, "skip_loop_final_norm"), &skip, r->err))
        return false;
    p->pass_norm = !skip;
    p->n_run = p->n_layer * n;
    return true;
}

/* Reads whether tokens attend to later ones, and the pooling. */
static bool read_direction(struct model_reader *r, struct model_params *p)
{
    const uint32_t unspecified = UINT32_MAX; /* what some writers put for a missing key */
    bool causal = true;
    uint32_t pooling = unspecified;
    if (!gguf_get_bool(r->file, model_reader_key(r, "attention.causal"), &causal, r->err) ||
        !gguf_get_u32(r->file, model_reader_key(r, "pooling_type"), &pooling, r->err))
        return false;
    p->has_pooling = pooling != unspecified;
    if (p->has_pooling &&
        !model_read_u32(r, "pooling_type", MODEL_REQUIRED, 0, MODEL_POOL_RANK, &pooling))
        return false;
    p->bidirectional = p->arch->encoder || p->arch->diffusion || !causal;
    p->pooling = p->has_pooling     ? (enum model_pooling)pooling
                 : p->bidirectional ? MODEL_POOL_MEAN
                                    : MODEL_POOL_LAST;
    return true;
}

/* Reads a diffusion model's keys of texts, whose names have no architecture. */
static bool read_diffusion(struct model_reader *r, struct model_params *p)
{
    uint32_t mask = UINT32_MAX;
    p->mask_id = -1;
    p->shifted = true;
    if (!p->arch->diffusion) return true;
    if (!gguf_get_bool(r->file, "diffusion.shift_logits", &p->shifted, r->err) ||
        !gguf_get_u32(r->file, "tokenizer.ggml.mask_token_id", &mask, r->err))
        return false;
    if (mask < p->n_vocab) p->mask_id = (int32_t)mask;
    return true;
}

/* Reads the numbers of layers of an encoder and its decoder, and the token that begins the
 * decoder's text. */
static bool read_source(struct model_reader *r, struct model_params *p, uint32_t max_layers)
{
    uint32_t start = 0;
    p->start_id = -1;
    if (!p->arch->source) return true;
    p->n_source = p->n_layer;
    p->ends.n_source_norm = p->n_embd;
    if (!model_read_u32(r, "decoder_block_count", MODEL_OPTIONAL, 1, max_layers, &p->n_layer) ||
        !gguf_get_u32(r->file, "tokenizer.ggml.bos_token_id", &start, r->err) ||
        !model_read_u32(r, "decoder_start_token_id", MODEL_OPTIONAL, 0, INT32_MAX, &start))
        return false;
    p->start_id = (int32_t)start;
    return true;
}

static bool read_numbers(struct model_reader *r, struct model_params *p)
{
    /* Every layer has at least one tensor, so the number of tensors bounds the number of layers. */
    const uint64_t n_tensors = gguf_tensor_count(r->file);
    if (n_tensors == 0)
        return base_fail(r->err, BASE_MODEL,
                         "the file has no tensors: a vocabulary without a model");
    const uint32_t max_layers =
        n_tensors < MODEL_MAX_LAYERS ? (uint32_t)n_tensors : MODEL_MAX_LAYERS;
    if (!model_read_u32(r, "block_count", MODEL_REQUIRED, 1,
                        p->arch->plan.stacks ? MODEL_MAX_LAYERS : max_layers, &p->n_layer) ||
        !model_read_u32(r, "embedding_length", MODEL_REQUIRED, 1, MODEL_MAX_DIM, &p->n_embd) ||
        !model_read_u32(r, "context_length", MODEL_REQUIRED, 1, MODEL_MAX_CTX, &p->n_ctx_train) ||
        !read_vocab(p, r->file, r->err) ||
        !model_read_u32(r, "nextn_predict_layers", MODEL_OPTIONAL, 0, p->n_layer - 1,
                        &p->n_draft_layer))
        return false;
    p->n_layer -= p->n_draft_layer;
    if (!model_read_stacks(r, p, max_layers) || !read_source(r, p, max_layers)) return false;
    r->n_layer = p->n_layer;
    uint32_t n_expert = 0;
    if (!model_read_u32(r, "expert_count", MODEL_OPTIONAL, 0, MODEL_MAX_EXPERTS, &n_expert))
        return false;
    p->arch = model_arch_known(p->arch, p->n_layer, p->n_vocab, n_expert);
    r->prefix = p->arch->prefix;
    if (p->n_draft_layer && p->arch->mtp &&
        model_reader_tensor(r, p->n_layer, "nextn.eh_proj.weight")) {
        p->n_mtp = 1;
        p->mtp =
            (struct model_mtp){.n_embd = p->n_embd, .n_both = 2 * p->n_embd, .n_vocab = p->n_vocab};
    }
    return read_diffusion(r, p) && read_direction(r, p) && read_norm(r, p) && read_passes(r, p) &&
           read_experts(r, p) && read_temperature(r, p) && model_read_streams(r, p) &&
           read_ends(r, p) && (!p->arch->drafter || model_drafter_read(r, p));
}

/* ---- Layers ---- */

static bool plan_experts(struct model_reader *r, const struct model_params *p, uint32_t layer,
                         enum model_block_id *ffn)
{
    const struct model_experts_row *row = &p->arch->experts;
    uint32_t leading = 0, step = 1;
    if ((row->leading && !model_read_u32(r, "leading_dense_block_count", MODEL_OPTIONAL, 0,
                                         MODEL_MAX_LAYERS, &leading)) ||
        (row->step && !model_read_u32(r, "interleave_moe_layer_step", MODEL_OPTIONAL, 0,
                                      MODEL_MAX_LAYERS, &step)))
        return false;
    if (row->every) {
        uint32_t every = 0;
        if (!model_read_u32(r, "moe_every_n_layers", MODEL_OPTIONAL, 0, MODEL_MAX_LAYERS, &every))
            return false;
        if (every == 0 || layer % every != 1) return true;
    }
    if (row->by_tensor && !model_reader_tensor(r, layer, "ffn_gate_inp.weight")) return true;
    if (layer >= leading && (step == 0 || (layer + 1) % step == 0)) *ffn = MODEL_EXPERTS;
    return true;
}

static bool plan_interval(struct model_reader *r, const struct model_plan *plan, uint32_t layer,
                          enum model_block_id *mixer)
{
    bool is_array, is_recurrent;
    uint32_t interval = plan->interval ? plan->interval : 4;
    if (!model_read_layer_flag(r, "attention.recurrent_layers", layer, &is_array, &is_recurrent) ||
        !model_read_u32(r, "full_attention_interval", MODEL_OPTIONAL, 1, MODEL_MAX_LAYERS,
                        &interval))
        return false;
    if (!is_array) is_recurrent = (layer + 1) % interval != 0;
    if (is_recurrent) *mixer = plan->recurrent;
    return true;
}

static bool plan_one(struct model_reader *r, const struct model_plan *plan, uint32_t layer,
                     enum model_block_id *mixer, enum model_block_id *ffn)
{
    uint32_t n_head_kv = 0, n_ff = 0;
    if (!model_read_layer_u32(r, "attention.head_count_kv", MODEL_OPTIONAL, layer, 0,
                              MODEL_MAX_HEADS, &n_head_kv) ||
        !model_read_layer_u32(r, "feed_forward_length", MODEL_OPTIONAL, layer, 0, MODEL_MAX_DIM,
                              &n_ff))
        return false;
    *mixer = n_ff ? *ffn : n_head_kv ? plan->mixer : plan->recurrent;
    *ffn = MODEL_NOTHING;
    return true;
}

/* Chooses the blocks of a layer. */
static bool plan_layer(struct model_reader *r, const struct model_params *p,
                       struct model_layer *layer, enum model_block_id *mixer,
                       enum model_block_id *ffn)
{
    const struct model_plan *plan = &p->arch->plan;
    *mixer = plan->mixer;
    *ffn = plan->ffn ? plan->ffn : MODEL_FFN;
    if (layer->index >= p->n_layer) { /* an MTP layer */
        if (p->n_expert && model_reader_tensor(r, layer->index, "ffn_gate_inp.weight"))
            *ffn = MODEL_EXPERTS;
        return true;
    }
    if (p->n_expert && !plan_experts(r, p, layer->index, ffn)) return false;
    if (plan->rule == MODEL_PLAN_MIXERS) *ffn = MODEL_NOTHING;
    if (plan->rule == MODEL_PLAN_SAME || plan->rule == MODEL_PLAN_MIXERS) return true;
    const uint32_t l = layer->index;
    if (plan->rule == MODEL_PLAN_ONE) return plan_one(r, plan, l, mixer, ffn);
    if (plan->rule == MODEL_PLAN_INTERVAL) return plan_interval(r, plan, l, mixer);
    uint32_t n_head = 1, n_head_kv = 1, n_ff = 1;
    if (!model_read_layer_u32(r, "attention.head_count", MODEL_OPTIONAL, l, 0, MODEL_MAX_HEADS,
                              &n_head) ||
        !model_read_layer_u32(r, "attention.head_count_kv", MODEL_OPTIONAL, l, 0, MODEL_MAX_HEADS,
                              &n_head_kv) ||
        !model_read_layer_u32(r, "feed_forward_length", MODEL_OPTIONAL, l, 0, MODEL_MAX_DIM, &n_ff))
        return false;
    if (plan->rule == MODEL_PLAN_KV_HEADS) {
        if (n_head_kv == 0) *mixer = plan->recurrent;
        return true;
    }
    if (n_head_kv == 0) *mixer = MODEL_LINEAR_MIXER;
    if (n_head == 0) *mixer = MODEL_NOTHING;
    if (n_ff == 0) *ffn = MODEL_NOTHING;
    layer->idle = n_ff == 0;
    return true;
}

/* Returns whether a layer of experts also has a dense network. */
static bool is_beside(const struct model_reader *r, const struct model_params *p, uint32_t layer)
{
    const enum model_beside rule = p->arch->experts.beside;
    return rule == MODEL_BESIDE_INPUT || rule == MODEL_BESIDE_NORMS ||
           (rule == MODEL_BESIDE_MEAN && model_reader_tensor(r, layer, "ffn_up.weight"));
}

static bool read_part(struct model_reader *r, struct model_params *p, struct model_layer *l,
                      enum model_block_id id, struct model_part *part)
{
    if (id == MODEL_NOTHING) return true;
    const struct model_block *block = model_blocks[id];
    void *self = calloc(1, block->size);
    if (!self)
        return base_fail(r->err, BASE_NO_MEMORY, "no memory for the %s block of %u layers",
                         block->name, p->n_layer);
    *part = (struct model_part){block, self};
    return block->read(r, p, l, self);
}

/* Sets the sizes of a layer's norms and of its other tensors outside of blocks. */
static void size_norms(const struct model_params *p, struct model_layer *l)
{
    const uint32_t size = is_plain(p) || p->hyper_rank ? 0 : p->n_embd;
    const bool sum = p->residual == MODEL_SUM_NORM;
    const bool before = p->residual != MODEL_POST_NORM && !sum;
    const bool after = p->residual == MODEL_SANDWICH || p->residual == MODEL_POST_NORM || sum;
    const bool first = p->arch->plan.first_plain && l->index == 0;
    const bool parallel = p->residual == MODEL_PARALLEL || p->residual == MODEL_PARALLEL_BY_NORM;
    l->n_mixer_norm = l->mixer.block && before && !first ? size : 0;
    l->n_mixer_norm_optional = first ? size : 0;
    l->n_mixer_norm_2 = parallel || sum ? size : 0;
    l->n_mixer_post_norm = l->mixer.block && after ? size : 0;
    l->n_ffn_norm = l->ffn.block && before && !parallel ? size : 0;
    l->n_ffn_norm_optional = parallel ? size : 0;
    l->n_beside_norm = l->beside.block && p->arch->experts.beside == MODEL_BESIDE_INPUT ? size : 0;
    l->n_ffn_post_norm = l->ffn.block && after ? size : 0;
    l->n_beside_norms = l->beside.block && p->arch->experts.beside == MODEL_BESIDE_NORMS ? size : 0;
    if (p->n_hyper && !p->hyper_rank)
        l->mixer_hyper = l->ffn_hyper =
            (struct model_hyper){.n_in = p->n_hyper * p->n_embd,
                                 .n_mix = (2 + (p->sinkhorn ? p->n_hyper : 0)) * p->n_hyper,
                                 .n_scale = p->sinkhorn ? 3 : 2};
    l->n_score = p->set_aside ? p->n_embd : 0;
    l->n_scale = p->arch->ends.layer_scale;
    l->n_skip = p->arch->ends.embd_skip ? 1 : 0;
    l->n_cross_norm = l->cross.block ? size : 0;
}

static bool read_layers(struct model_reader *r, struct model_params *p)
{
    uint32_t rescale = 0;
    p->layer = calloc(p->n_layer + p->n_mtp, sizeof *p->layer);
    if (!p->layer) return base_fail(r->err, BASE_NO_MEMORY, "no memory for %u layers", p->n_layer);
    if (p->arch->ends.rescale &&
        !model_read_u32(r, "rescale_every_n_layers", MODEL_OPTIONAL, 0, MODEL_MAX_LAYERS, &rescale))
        return false;
    for (uint32_t i = 0; i < p->n_layer + p->n_mtp; i++) {
        struct model_layer *l = &p->layer[i];
        enum model_block_id mixer, ffn, beside = MODEL_NOTHING;
        const enum model_block_id tail = p->arch->plan.altup   ? MODEL_ALTUP
                                         : p->ends.n_per_layer ? MODEL_PER_LAYER
                                                               : MODEL_NOTHING;
        l->index = i;
        l->halved = rescale && (i + 1) % rescale == 0;
        if (!plan_layer(r, p, l, &mixer, &ffn)) return false;
        if (ffn == MODEL_EXPERTS && is_beside(r, p, i)) {
            ffn = MODEL_FFN;
            beside = MODEL_EXPERTS;
        }
        const enum model_block_id mixer_2 = p->arch->plan.mixer_2;
        const bool ngram = p->ngram.n_head && p->ngram.layer == i;
        if (!read_part(r, p, l, mixer, &l->mixer) ||
            !read_part(r, p, l, ngram ? MODEL_NGRAM : MODEL_NOTHING, &l->front) ||
            !read_part(r, p, l, p->n_source ? MODEL_CROSS : MODEL_NOTHING, &l->cross) ||
            !read_part(r, p, l, mixer_2 ? mixer_2 : MODEL_NOTHING, &l->mixer_2) ||
            !read_part(r, p, l, ffn, &l->ffn) || !read_part(r, p, l, beside, &l->beside) ||
            !read_part(r, p, l, tail, &l->tail))
            return false;
        size_norms(p, l);
        if (!p->hyper_rank) continue;
        l->mixer_hyper =
            model_hyper_gated(p, model_reader_tensor(r, i, "hc_attn_norm.weight"), false);
        l->ffn_hyper = model_hyper_gated(p, model_reader_tensor(r, i, "hc_ffn_norm.weight"), false);
    }
    return true;
}

/* Reads the layers of an encoder before a decoder. */
static bool read_source_layers(struct model_reader *r, struct model_params *p)
{
    if (p->n_source == 0) return true;
    p->source = calloc(p->n_source, sizeof *p->source);
    if (!p->source)
        return base_fail(r->err, BASE_NO_MEMORY, "no memory for %u layers", p->n_source);
    r->prefix = MODEL_SOURCE_PREFIX;
    for (uint32_t i = 0; i < p->n_source; i++) {
        struct model_layer *l = &p->source[i];
        l->index = i;
        if (!read_part(r, p, l, MODEL_ATTENTION, &l->mixer) ||
            !read_part(r, p, l, MODEL_FFN, &l->ffn))
            return false;
        size_norms(p, l);
    }
    return true;
}

static bool read_params(struct model_params *p, const struct gguf_file *file, bool drafts,
                        struct base_error *err)
{
    *p = (struct model_params){0};
    if (!read_arch(p, file, drafts, err)) return false;
    struct model_reader r = {.file = file, .name = p->name, .err = err};
    if (read_numbers(&r, p) && read_activation(&r, p) && read_layers(&r, p) &&
        read_source_layers(&r, p) && read_part(&r, p, NULL, MODEL_POOL, &p->pool))
        return true;
    model_params_free(p);
    return false;
}

bool model_params_read(struct model_params *p, const struct gguf_file *file, struct base_error *err)
{
    return read_params(p, file, false, err);
}

bool model_params_read_drafter(struct model_params *p, const struct gguf_file *file,
                               struct base_error *err)
{
    return read_params(p, file, true, err);
}

static void free_layers(struct model_layer *layer, uint32_t n)
{
    for (uint32_t i = 0; layer && i < n; i++) {
        free(layer[i].front.self);
        free(layer[i].mixer.self);
        free(layer[i].cross.self);
        free(layer[i].mixer_2.self);
        free(layer[i].ffn.self);
        free(layer[i].beside.self);
        free(layer[i].tail.self);
    }
    free(layer);
}

void model_params_free(struct model_params *p)
{
    free_layers(p->layer, p->n_layer + p->n_mtp);
    free_layers(p->source, p->n_source);
    free(p->pool.self);
    *p = (struct model_params){0};
}
