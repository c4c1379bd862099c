/* models/arch/arch.h: what an architecture is: a row of data, an enum for each axis of variation.
 *
 * A row says how an architecture differs from llama: every field that is absent (0) is llama's. An
 * architecture of known blocks is one row in a *_tables.c of this folder; rows are read by blocks
 * and builders, which test fields and never names. docs/adding-a-model.md shows an addition. */
#ifndef MODELS_ARCH_ARCH_H
#define MODELS_ARCH_ARCH_H

#include "engine/graph.h"
#include "gguf/gguf.h"

/* ---- The layer plan: which blocks a layer is made of ---- */

/* Blocks by number: models/block/blocks.c has the table of their rows. */
enum model_block_id {
    MODEL_ATTENTION,
    MODEL_FFN,
    MODEL_EXPERTS,
    MODEL_LINEAR_MIXER, /* no tokens are mixed: the output product alone */
    MODEL_ALTUP,        /* a layer of several streams, of which one runs through its other parts */
    MODEL_PER_LAYER,    /* adds what per-layer embeddings give, at a layer's end */
    MODEL_MLA,          /* attention over latents */
    MODEL_SHORT_CONV,   /* a gated convolution over a few tokens */
    MODEL_DELTA_NET,    /* the gated delta rule */
    MODEL_MAMBA2,       /* a selective scan with one decay for each head */
    MODEL_BLOCK_COUNT,
    MODEL_NOTHING = MODEL_BLOCK_COUNT /* the layer has no such part */
};

enum model_plan_rule {
    MODEL_PLAN_SAME,     /* every layer has `mixer` */
    MODEL_PLAN_COUNTS,   /* counts of 0: feed_forward_length, the layer does nothing;
                            attention.head_count, no mixer; _kv, MODEL_LINEAR_MIXER */
    MODEL_PLAN_KV_HEADS, /* layers of attention.head_count_kv 0 have `recurrent`, others `mixer` */
    MODEL_PLAN_INTERVAL, /* the last of each full_attention_interval (4) layers has `mixer`, others
                            `recurrent`; attention.recurrent_layers says it for each layer */
    MODEL_PLAN_MIXERS,   /* every layer has `mixer` and no network */
    MODEL_PLAN_ONE       /* one block for each layer: a network where feed_forward_length is not 0,
                            else as KV_HEADS; 0 is the default of both keys */
};

struct model_plan {
    enum model_plan_rule rule;
    enum model_block_id mixer, recurrent;
    enum model_block_id mixer_2; /* a second mixer of the same input, added to the first; 0: none */
    bool per_layer; /* embeddings for each layer: embedding_length_per_layer_input; 0: none */
    bool altup;     /* layers are MODEL_ALTUP; per-layer embeddings have 256 numbers by default */
    bool loops; /* all layers run num_loops times, with a state of their own each time; between two
                   runs the output's norm, unless skip_loop_final_norm */
};

/* ---- Norms and residuals ---- */

enum model_norm_kind {
    MODEL_RMS_NORM,         /* x / sqrt(mean(x^2) + eps) * weight (+ bias where the file has one) */
    MODEL_LAYER_NORM,       /* (x - mean) / sqrt(variance + eps) * weight (+ bias) */
    MODEL_LAYER_NORM_PLAIN, /* the same without weights: the file has no tensors of norms */
    MODEL_RMS_NORM_PLAIN,
    MODEL_NORM_BY_EPSILON /* RMS where attention.layer_norm_rms_epsilon is above 0, else layer norm
                           */
};

/* x: the layer's input; m, f: mixer and feed-forward network; N: norms with weights of their own.
 * A norm of the file that is optional: attn_norm_2, which then is m's, while N is f's. */
enum model_residual {
    MODEL_PRE_NORM,        /* x += m(N x); x += f(N x) */
    MODEL_SANDWICH,        /* x += N m(N x); x += N f(N x) */
    MODEL_POST_NORM,       /* x += N m(x); x += N f(x) */
    MODEL_PARALLEL,        /* x += m(N x) + f(N x), one N or, if the file has ffn_norm, two */
    MODEL_PARALLEL_KEY,    /* use_parallel_residual: true: parallel, false: pre-norm */
    MODEL_PARALLEL_BY_NORM /* without ffn_norm parallel, with it pre-norm */
};

/* ---- Attention ---- */

enum model_rope_kind { MODEL_ROPE_NORMAL, MODEL_ROPE_NEOX, MODEL_ROPE_NONE };

enum model_rope_layers {
    MODEL_ROTATE_ALL,
    MODEL_ROTATE_WINDOWED, /* layers with a sliding window */
    MODEL_ROTATE_LEADING,  /* those, and the leading plain ones of a mixture */
    MODEL_ROTATE_NOT_4TH,  /* not every fourth */
    MODEL_ROTATE_PATTERN,  /* those that attention.rope_pattern marks; all if it is absent */
    MODEL_ROTATE_NOT_1ST,  /* not the first of every four; all if the model has no window */
    MODEL_ROTATE_FINETUNED /* all, or none where rope.scaling.finetuned is false */
};

/* Which rope.* keys count beside rope.freq_base and the usual scaling. */
enum model_rope_keys {
    MODEL_ROPE_KEYS_USUAL,
    MODEL_ROPE_KEYS_NONE,     /* none at all: base 10000 */
    MODEL_ROPE_KEYS_YARN,     /* rope.scaling.yarn_beta_fast, _beta_slow and _log_multiplier */
    MODEL_ROPE_KEYS_YARN_ALL, /* the betas, beta_fast 8 by default, yarn_ext_factor, _attn_factor */
    MODEL_ROPE_KEYS_ALPHA,    /* rope.scaling.alpha changes the base; and the next */
    MODEL_ROPE_KEYS_SECTIONS, /* NEOX where rope.dimension_sections has two kinds; pairs of the
                                 fourth do not rotate */
    MODEL_ROPE_KEYS_INTERLEAVED /* pairs that its interleaved sections leave out do not rotate */
};

enum model_qk_norm {
    MODEL_QK_NORM_NONE,
    MODEL_QK_NORM_HEAD,       /* RMS over each head, before RoPE */
    MODEL_QK_NORM_AFTER,      /* the same after RoPE */
    MODEL_QK_NORM_FULL,       /* RMS over all heads together, before RoPE */
    MODEL_QK_NORM_HEAD_LAYER, /* layer norm of each head with weights of its own [H][D] */
    MODEL_QK_NORM_FULL_LAYER, /* layer norm over all heads together */
    MODEL_QK_NORM_PLAIN,      /* RMS after RoPE without weights, on layers that rotate */
    MODEL_QK_NORM_GAIN        /* RMS after RoPE; queries with one weight for each head, keys none */
};

enum model_score_scale {
    MODEL_SCALE_BY_HEAD, /* 1 / sqrt(D) */
    MODEL_SCALE_BY_EMBD, /* 1 / sqrt(E / H) */
    MODEL_SCALE_BY_SIZE, /* 1 / D */
    MODEL_SCALE_ONE,     /* 1 */
    MODEL_SCALE_KEY,     /* attention.scale, 1 / sqrt(D) where it is absent or 0 */
    MODEL_SCALE_OUTPUT   /* attention.output_scale, 1 / sqrt(128) where it is absent */
};

/* Queries times 1 + attention.temperature_scale * ln(floor(position / length) + 1). */
enum model_temperature {
    MODEL_TEMPERATURE_NONE,
    MODEL_TEMPERATURE_ORIGINAL, /* length: rope.scaling.original_context_length */
    MODEL_TEMPERATURE_KEY,      /* attention.temperature_length */
    MODEL_TEMPERATURE_UNROTATED /* scale 0.1, length 8192, positions from 1; layers without RoPE */
};

/* Latent attention that reads a = 10 rope.scaling.yarn_log_multiplier. m(x) = 1 + 0.1 x ln f with
 * the factor f; M is YaRN's magnitude of the rotation, scores are multiplied by (M m(a))^2 /
 * sqrt(D). */
enum model_yarn_log {
    MODEL_YARN_LOG_NONE, /* the key is not read */
    MODEL_YARN_LOG,      /* M = m(1) / m(a) */
    MODEL_YARN_LOG_EQUAL /* M = 1 where a is not 0 */
};

enum model_window_rule {
    MODEL_WINDOW_NONE,
    MODEL_WINDOW_PERIOD, /* of each `period` layers the last attends to all */
    MODEL_WINDOW_FIRST,  /* of each `period` layers the first attends to all */
    MODEL_WINDOW_ALL,    /* all layers have the window */
    MODEL_WINDOW_MARKED  /* those that attention.sliding_window_pattern marks, which is required */
};

/* How windowed layers rotate. */
enum model_window_rope {
    MODEL_WINDOW_ROPE_SAME,     /* as the others */
    MODEL_WINDOW_ROPE_OWN,      /* base of rope.freq_base_swa, 10000 by default; never scaled */
    MODEL_WINDOW_ROPE_OWN_BASE, /* that key's base, by default the others'; never scaled */
    MODEL_WINDOW_ROPE_BASE,     /* the same, scaled as the others */
    MODEL_WINDOW_ROPE_UNSCALED  /* the others' base; never scaled */
};

/* Sliding windows: which layers attend to the last attention.sliding_window positions only. The key
 * attention.sliding_window_pattern replaces the period; an array says it for each layer. */
struct model_window {
    enum model_window_rule rule;
    uint32_t period;
    enum model_window_rope rope;
    uint32_t size;  /* where the file has no attention.sliding_window; 0: then no layer has one */
    uint32_t fixed; /* the size whatever that key says, unless it says 0; 0: the key counts */
    bool chunked; /* positions are cut into pieces of that size: a query attends to its own piece */
    bool own_heads; /* attention.key_length_swa, value_length_swa, rope.dimension_count_swa */
};

/* The last layers may have no keys and values: they read those that the latest layer of the same
 * kind (with or without a window) has written. */
enum model_kv_sharing {
    MODEL_KV_OWN,
    MODEL_KV_SHARED_KEY,    /* as many as attention.shared_kv_layers says */
    MODEL_KV_SHARED_FROM_20 /* all but the first 20 */
};

/* What attn_gate of the layer's input makes of the output before the last product: numbers that it
 * is multiplied by, one for each element or for each head, as the tensor's shape says. */
enum model_gate {
    MODEL_GATE_NONE,
    MODEL_GATE_SIGMOID,
    MODEL_GATE_SIGMOID_OPTIONAL, /* files may lack it */
    MODEL_GATE_SOFTPLUS
};

struct model_attention_row {
    enum model_rope_kind rope;
    enum model_rope_layers rotate;
    enum model_rope_keys rope_keys;
    enum model_qk_norm qk_norm;
    bool qk_norm_optional; /* files may lack its tensors */
    enum model_score_scale scale;
    struct model_window window;
    enum model_temperature temperature;
    enum model_yarn_log yarn_log;
    float softcap; /* of scores: attn_logit_softcapping, by default this; 0: none */
    bool q_gate;   /* attn_q gives a gate beside each head's query: the output times its sigmoid */
    enum model_gate gate;
    bool head_by_rot; /* D is rope.dimension_count */
    bool half_rot;    /* layers without a window rotate half of rope.dimension_count */
    bool v_norm;      /* RMS over each head of values, without weights */
    bool k_as_v;      /* without attn_v values are the keys' product */
    enum model_kv_sharing sharing;
    float alibi; /* largest slope's exponent, where no attention.max_alibi_bias; 0: no ALiBi */
};

/* ---- Recurrent mixers ---- */

/* Gated delta rule. KH key heads, H value heads. */
struct model_delta_row {
    bool grouped; /* a key head is shared by consecutive value heads, not every KH-th; beta and
                     alpha are one tensor ssm_ba, by key head; files may have Q, K, V and Z as
                     ssm_in, likewise */
};

struct model_mamba_row {
    bool norm_optional; /* files may lack ssm_norm */
};

/* ---- Feed-forward networks ---- */

enum model_ffn_form {
    MODEL_FFN_GATED, /* down (act(gate x) * up x) */
    MODEL_FFN_FUSED, /* the same, gate and up in one tensor ffn_up, gate first */
    MODEL_FFN_PLAIN, /* down act(up x) */
    MODEL_FFN_XIELU  /* plain with xIELU, whose numbers are keys (Huang 2024) */
};

struct model_ffn_row {
    enum model_ffn_form form;
    enum engine_unary act;
    bool scales;      /* a .scale of its matrices counts; otherwise it is ignored */
    bool clamps;      /* gated units are bounded by swiglu_clamp_shexp, experts' by _exp */
    uint32_t divisor; /* of feed_forward_length; 0: 1 */
    bool square;      /* F is E instead */
    uint32_t sparse;  /* so many first layers keep of the gate's numbers what exceeds mean + 1.645
                         deviations of their row, about a twentieth */
};

/* What the router's numbers are for choosing, and as weights; numbered as expert_gating_func. */
enum model_gating {
    MODEL_GATING_SOFTMAX_DEFAULT, /* as the next */
    MODEL_GATING_SOFTMAX,
    MODEL_GATING_SIGMOID,
    MODEL_GATING_SOFTMAX_CHOSEN /* as they are; the weights are a softmax of the chosen */
};

enum model_normalize { MODEL_NORMALIZE_ALWAYS, MODEL_NORMALIZE_NEVER, MODEL_NORMALIZE_KEY };

/* How long the experts are together that every token uses. S: expert_shared_feed_forward_length */
enum model_shared {
    MODEL_SHARED_NONE,
    MODEL_SHARED_COUNT,          /* an expert's length times expert_shared_count */
    MODEL_SHARED_LENGTH,         /* S, none where that is 0 */
    MODEL_SHARED_LENGTH_OR_OWN,  /* S, by default an expert's length */
    MODEL_SHARED_LENGTH_OR_MAIN, /* S, by default feed_forward_length */
    MODEL_SHARED_LENGTH_COUNT,   /* (S, by default an expert's length) times expert_shared_count */
    MODEL_SHARED_LENGTH_OR_COUNT /* S, by default as COUNT; none where expert_shared_count is 0 */
};

/* Layers with both kinds of networks: f is plain, e experts. */
enum model_beside {
    MODEL_BESIDE_NONE,
    MODEL_BESIDE_INPUT, /* f(N x) + e(N' of the layer's input): ffn_norm_exps */
    MODEL_BESIDE_MEAN,  /* (f(N x) + e(N x)) / sqrt(2) where the layer has ffn_up */
    MODEL_BESIDE_NORMS /* N f(N x) + N e(N x); the router reads x / rms(x) / sqrt(E) * its .scale */
};

struct model_experts_row {
    bool allowed;     /* a file with expert_count > 0 is a mixture */
    bool own_length;  /* expert_feed_forward_length, by default feed_forward_length / U */
    bool main_length; /* by default feed_forward_length itself */
    bool by_tensor;   /* a layer is a mixture if it has ffn_gate_inp */
    bool leading;     /* the first leading_dense_block_count layers are plain */
    bool step;        /* of interleave_moe_layer_step layers only the last is a mixture */
    enum model_gating gating;
    bool gating_key;                /* expert_gating_func, by default `gating` */
    enum model_normalize normalize; /* weights of the chosen have the sum 1; expert_weights_norm */
    bool scale_key;                 /* expert_weights_scale */
    enum model_shared shared;
    uint32_t shared_count; /* expert_shared_count where the file has none */
    bool shared_gate;      /* what the shared experts give is weighted for each token */
    bool shared_fused;     /* their gate and up are one tensor ffn_up_shexp, gate first */
    bool shared_mean;      /* where a layer has both: the mean of shared experts and chosen ones */
    bool choose_by_logits; /* chosen are the largest numbers before `gating` */
    bool weigh_inputs; /* experts get their input times the weight: outputs are added as they are */
    bool route_by_layer; /* the router's input is the layer's, not normalized */
    enum model_beside beside;
    bool oai;    /* clamped gated units of gpt-oss */
    bool plain;  /* down act(up x), the shared ones too */
    bool chunks; /* experts_per_group consecutive experts share a small one, which works on what
                    the chosen give: added times expert_group_scale */
    bool latent; /* moe_latent_size: experts work between ffn_latent_down and _up */
};

/* ---- Both ends ---- */

enum model_embd_scale {
    MODEL_EMBD_PLAIN,
    MODEL_EMBD_SQRT, /* times sqrt(E) */
    MODEL_EMBD_KEY   /* times embedding_scale, by default embd_default */
};

enum model_embd_norm {
    MODEL_EMBD_NORM_NONE,
    MODEL_EMBD_NORM,      /* token_embd_norm */
    MODEL_EMBD_NORM_PLAIN /* the model's kind without weights */
};

enum model_logit_scale {
    MODEL_LOGITS_PLAIN,
    MODEL_LOGITS_TIMES,  /* times logit_scale */
    MODEL_LOGITS_DIVIDED /* divided by it */
};

struct model_ends_row {
    enum model_embd_scale embd_scale;
    enum model_embd_norm embd_norm;
    bool positions; /* learned ones are added: position_embd */
    enum model_logit_scale logit_scale;
    bool softcap_key;     /* logits are capped by final_logit_softcapping, */
    float softcap;        /* by default this */
    float logit_default;  /* logit_scale where the file has none; 0: 1 */
    float logits_by_embd; /* the same, times 1 / E */
    float embd_default;   /* embedding_scale where the file has none; 0: 1 */
    bool embd_skip;   /* each layer adds the embeddings, times its own number layer_output_scale */
    bool layer_scale; /* a layer's output is multiplied by layer_output_scale */
    bool residual_scale;    /* what a block adds is multiplied by residual_scale */
    float residual_default; /* where the file has none, times 1 / sqrt(layers); 0: 1 */
};

/* Layers after the others that guess at the token after the next (multi-token prediction), which
 * files may have: nextn_predict_layers. Each reads the embedding of the next token and what came
 * before it, the hidden state: */
enum model_mtp_input {
    MODEL_MTP_NONE,       /* the layers are passed over */
    MODEL_MTP_NORMALIZED, /* after the output's norm, or the layer's own */
    MODEL_MTP_PLAIN       /* before it */
};

/* ---- The row ---- */

struct model_arch;

/* Published models that differ from their architecture in what no key of their files says: known by
 * their sizes (0: any), they take the row `as` instead. */
struct model_known {
    uint32_t min_layers, max_layers, n_vocab, n_expert;
    const struct model_arch *as; /* NULL: no more */
};

/* A tensor that this architecture spells otherwise: full names without "blk.N.". */
struct model_alias {
    const char *usual, *here; /* NULL: no more; here "": files have it and the model ignores it */
};

enum { MODEL_MAX_KNOWN = 3, MODEL_MAX_ALIASES = 10, MODEL_MAX_NAMES = 8 };

struct model_arch {
    const char *name[MODEL_MAX_NAMES]; /* general.architecture, and the prefix of its keys */
    struct model_plan plan;
    enum model_norm_kind norm;
    float post_eps; /* epsilon of the norms after mixer and network; 0: as the others' */
    enum model_residual residual;
    struct model_attention_row attn;
    struct model_delta_row delta;
    struct model_mamba_row mamba;
    struct model_ffn_row ffn;
    struct model_experts_row experts;
    struct model_ends_row ends;
    enum model_mtp_input mtp;
    struct model_known known[MODEL_MAX_KNOWN];
    struct model_alias alias[MODEL_MAX_ALIASES];
};

/* Name i of all the rows' names, its row in *row (may be NULL); NULL past the last one. */
const char *model_arch_name(size_t i, const struct model_arch **row);
/* The row of a name; *spelled is the table's copy of the name. NULL if there is none. */
const struct model_arch *model_arch_find(struct gguf_str name, const char **spelled);
/* The row that a model of these sizes takes: `arch`, or what its table of known sizes says. */
const struct model_arch *model_arch_known(const struct model_arch *arch, uint32_t n_layer,
                                          uint32_t n_vocab, uint32_t n_expert);

#endif
