/* models/arch/arch.h: the description of an architecture: a row of data with an enum for each axis
 * of variation.
 *
 * A row has the differences of an architecture from llama: an absent field (0) is llama's. An
 * architecture of known blocks is one row in a *_tables.c of this folder; blocks and builders test
 * the fields of rows, never their names. docs/adding-a-model.md shows an addition. */
#pragma once

#include "engine/graph.h"
#include "gguf/gguf.h"
#include "models/arch/pooling.h"

/* ---- The layer plan: the blocks of each layer ---- */

/* Ids of blocks; models/block/blocks.c has the table of their rows. */
enum model_block_id {
    MODEL_ATTENTION,
    MODEL_FFN,
    MODEL_EXPERTS,
    MODEL_LINEAR_MIXER, /* no attention, only its output projection */
    MODEL_ALTUP,     /* AltUp: several streams, one of which passes through attention and network */
    MODEL_PER_LAYER, /* adds the layer's per-layer embeddings at its end */
    MODEL_MLA,       /* multi-head latent attention */
    MODEL_SHORT_CONV,  /* a gated convolution over a few tokens */
    MODEL_DELTA_NET,   /* the gated delta rule */
    MODEL_KDA,         /* the same with a decay for each element of a key */
    MODEL_LIGHTNING,   /* linear attention with a constant decay of each head */
    MODEL_MAMBA2,      /* a selective scan with one decay for each head */
    MODEL_MAMBA,       /* a selective scan of channels */
    MODEL_RWKV6,       /* RWKV 6's time mix */
    MODEL_RWKV7,       /* RWKV 7's time mix */
    MODEL_CHANNEL_MIX, /* RWKV's network */
    MODEL_CROSS,       /* attention of a decoder to the rows of its encoder */
    MODEL_COMPRESSED,  /* attention to a window and to compressed keys of blocks before it */
    MODEL_NGRAM,       /* embeddings of the latest ids together, added to the input of a layer */
    MODEL_POOL,        /* after the layers: classifier and projections of pooled rows */
    MODEL_BLOCK_COUNT,
    MODEL_NOTHING = MODEL_BLOCK_COUNT /* the layer has no such part */
};

enum model_plan_rule {
    MODEL_PLAN_SAME,     /* every layer has `mixer` */
    MODEL_PLAN_COUNTS,   /* a count of 0 in feed_forward_length: the layer has no effect; in
                            attention.head_count: it has no mixer; in head_count_kv:
                            MODEL_LINEAR_MIXER */
    MODEL_PLAN_KV_HEADS, /* layers of attention.head_count_kv 0 have `recurrent`, others `mixer` */
    MODEL_PLAN_INTERVAL, /* the last of each full_attention_interval layers (default `interval`, 0:
                            4) has `mixer`, others `recurrent`; an array of flags
                            attention.recurrent_layers overrides this
                          */
    MODEL_PLAN_MIXERS,   /* every layer has `mixer` and no network */
    MODEL_PLAN_ONE       /* one block for each layer: a network where feed_forward_length is not 0,
                            else as KV_HEADS; 0 is the default of both keys */
};

struct model_plan {
    enum model_plan_rule rule;
    enum model_block_id mixer, recurrent;
    uint32_t interval;
    enum model_block_id ffn;     /* the network; 0: MODEL_FFN */
    enum model_block_id mixer_2; /* a second mixer of the same input, added to the first; 0: none */
    bool per_layer;   /* per-layer embeddings: embedding_length_per_layer_input; 0: none */
    bool altup;       /* layers are MODEL_ALTUP; per-layer embeddings have 256 numbers by default */
    bool first_plain; /* files may lack the first layer's attn_norm: its mixer reads x itself */
    bool stacks;      /* two stacks of layers run in turns: hrm.layers_per_stack, hrm.h_cycles,
                         hrm.l_cycles (models/params.h) */
    bool switched;    /* adapters in the file, one of which each token has, by the ids up to it */
    bool ngram;       /* ple.layers names a layer whose input MODEL_NGRAM changes */
    bool loops; /* all layers run num_loops times, each pass with its own state; the output norm is
                   applied between passes, unless skip_loop_final_norm */
};

/* ---- Norms and residuals ---- */

enum model_norm_kind {
    MODEL_RMS_NORM,         /* x / sqrt(mean(x^2) + eps) * weight (+ bias if the file has one) */
    MODEL_LAYER_NORM,       /* (x - mean) / sqrt(variance + eps) * weight (+ bias) */
    MODEL_LAYER_NORM_PLAIN, /* layer norm without weights: the file has no tensors of norms */
    MODEL_RMS_NORM_PLAIN,
    MODEL_NORM_BY_EPSILON /* RMS norm if attention.layer_norm_rms_epsilon > 0, else layer norm */
};

/* x: the layer's input; m: mixer; f: feed-forward network; N: norms, each with its own weights. If
 * the file has attn_norm_2, this is the norm of m, and N is the norm of f. */
enum model_residual {
    MODEL_PRE_NORM,      /* x += m(N x); x += f(N x) */
    MODEL_SANDWICH,      /* x += N m(N x); x += N f(N x) */
    MODEL_POST_NORM,     /* x += N m(x); x += N f(x) */
    MODEL_POST_NORM_KEY, /* swin_norm: true: post-norm, false: pre-norm */
    MODEL_SUM_NORM,      /* x = N (x + m(x)); x = N (x + f(x)); no norm after the layers. If the
                            file has attn_norm_2, x = N2 (N (x + m(x)) + x) before f */
    MODEL_HYPER,         /* hyper-connections (hyper.c): several streams, of which sublayers read
                            a weighted sum */
    MODEL_HYPER_MIXED,   /* the same, and each sublayer mixes the streams among each other */
    MODEL_HYPER_MEAN,    /* the same; the output norm reads the mean of the streams */
    MODEL_HYPER_GATED,  /* streams whose normalized elements have gates; there are no other norms */
    MODEL_NORM_STREAM,  /* h = N x; x = m(h) + c h; h = N x; x = f(h) + c h, c residual_scale */
    MODEL_ATTENDED,     /* pre-norm, but sublayers read a mixture of earlier streams: before the
                           layers i with i mod attn_res.block_size = 0 the stream x is set aside
                           and begins anew with m; the inputs of N, also of the output norm, are
                           the sum of p_s s over the streams s set aside and x, p the softmax of
                           w . s / rms(s), with weights w for each place (Kimi K3) */
    MODEL_PARALLEL,     /* x += m(N x) + f(N x), one N or, if the file has ffn_norm, two */
    MODEL_PARALLEL_KEY, /* use_parallel_residual: true: parallel, false: pre-norm */
    MODEL_PARALLEL_BY_NORM /* parallel without ffn_norm, pre-norm with it */
};

/* ---- Attention ---- */

enum model_rope_kind { MODEL_ROPE_NORMAL, MODEL_ROPE_NEOX, MODEL_ROPE_NONE };

enum model_rope_layers {
    MODEL_ROTATE_ALL,
    MODEL_ROTATE_WINDOWED, /* layers with a sliding window */
    MODEL_ROTATE_LEADING,  /* layers with a sliding window, and leading layers without experts */
    MODEL_ROTATE_NOT_4TH,  /* all but every fourth */
    MODEL_ROTATE_PATTERN,  /* layers that attention.rope_pattern marks; all if it is absent */
    MODEL_ROTATE_NOT_1ST,  /* all but the first of every four layers; all without a window */
    MODEL_ROTATE_FINETUNED /* all; none if rope.scaling.finetuned is false */
};

/* The rope.* keys that are read besides rope.freq_base and the common scaling keys. */
enum model_rope_keys {
    MODEL_ROPE_KEYS_USUAL,
    MODEL_ROPE_KEYS_NONE,     /* no key at all: base 10000 */
    MODEL_ROPE_KEYS_YARN,     /* rope.scaling.yarn_beta_fast, _beta_slow and _log_multiplier */
    MODEL_ROPE_KEYS_YARN_ALL, /* the betas, beta_fast 8 by default, yarn_ext_factor, _attn_factor */
    MODEL_ROPE_KEYS_ALPHA, /* rope.scaling.alpha, which changes the base; and those of SECTIONS */
    MODEL_ROPE_KEYS_SECTIONS, /* NEOX if rope.dimension_sections has two kinds; pairs of its fourth
                                 section do not rotate */
    MODEL_ROPE_KEYS_INTERLEAVED /* pairs outside its interleaved sections do not rotate */
};

enum model_qk_norm {
    MODEL_QK_NORM_NONE,
    MODEL_QK_NORM_HEAD,       /* RMS over each head, before RoPE */
    MODEL_QK_NORM_HEAD_EACH,  /* the same with weights of its own for each head [H][D] */
    MODEL_QK_NORM_AFTER,      /* the same after RoPE */
    MODEL_QK_NORM_FULL,       /* RMS over all heads together, before RoPE */
    MODEL_QK_NORM_HEAD_LAYER, /* layer norm of each head with weights of its own [H][D] */
    MODEL_QK_NORM_FULL_LAYER, /* layer norm over all heads together */
    MODEL_QK_NORM_PLAIN,      /* RMS after RoPE without weights, on layers that rotate */
    MODEL_QK_NORM_GAIN        /* RMS after RoPE; one weight per query head, none for keys */
};

enum model_score_scale {
    MODEL_SCALE_BY_HEAD,  /* 1 / sqrt(D) */
    MODEL_SCALE_BY_EMBD,  /* 1 / sqrt(E / H) */
    MODEL_SCALE_BY_SIZE,  /* 1 / D */
    MODEL_SCALE_BY_VALUE, /* 1 / sqrt(DV) */
    MODEL_SCALE_ONE,      /* 1 */
    MODEL_SCALE_KEY,      /* attention.scale; 1 / sqrt(D) if it is absent or 0 */
    MODEL_SCALE_OUTPUT    /* attention.output_scale; 1 / sqrt(128) if it is absent */
};

/* Queries are multiplied by 1 + attention.temperature_scale * ln(floor(position / length) + 1). */
enum model_temperature {
    MODEL_TEMPERATURE_NONE,
    MODEL_TEMPERATURE_ORIGINAL, /* length: rope.scaling.original_context_length */
    MODEL_TEMPERATURE_KEY,      /* attention.temperature_length */
    MODEL_TEMPERATURE_UNROTATED /* scale 0.1, length 8192, positions from 1; layers without RoPE */
};

/* Latent attention with YaRN: a = 10 rope.scaling.yarn_log_multiplier and m(x) = 1 + 0.1 x ln f, f
 * the scaling factor. M is YaRN's magnitude of the rotation; scores are multiplied by (M m(a))^2 /
 * sqrt(D). */
enum model_yarn_log {
    MODEL_YARN_LOG_NONE, /* the key is not read */
    MODEL_YARN_LOG,      /* M = m(1) / m(a) */
    MODEL_YARN_LOG_EQUAL /* M = 1 if a is not 0 */
};

enum model_window_rule {
    MODEL_WINDOW_NONE,
    MODEL_WINDOW_PERIOD, /* the last of each `period` layers attends to all positions */
    MODEL_WINDOW_FIRST,  /* the first of each `period` layers attends to all positions */
    MODEL_WINDOW_ALL,    /* all layers have the window */
    MODEL_WINDOW_MARKED  /* layers that attention.sliding_window_pattern, a required key, marks */
};

/* RoPE of windowed layers. */
enum model_window_rope {
    MODEL_WINDOW_ROPE_SAME,     /* as in other layers */
    MODEL_WINDOW_ROPE_OWN,      /* base rope.freq_base_swa, default 10000; never scaled */
    MODEL_WINDOW_ROPE_OWN_BASE, /* base rope.freq_base_swa, default that of other layers; never
                                   scaled */
    MODEL_WINDOW_ROPE_BASE,     /* base and scaling of other layers */
    MODEL_WINDOW_ROPE_UNSCALED  /* base of other layers; never scaled */
};

/* Sliding windows: layers that attend to the last attention.sliding_window positions only. The key
 * attention.sliding_window_pattern replaces the period; an array of flags marks layers. */
struct model_window {
    enum model_window_rule rule;
    uint32_t period;
    enum model_window_rope rope;
    uint32_t size;  /* default of attention.sliding_window; 0: no layer has a window */
    uint32_t fixed; /* replaces a value of that key other than 0; 0: the key's value is used */
    bool chunked;   /* positions are cut into chunks of that size; a query attends to its chunk */
    bool own_heads; /* attention.key_length_swa, value_length_swa, rope.dimension_count_swa */
};

/* The last layers may have no keys and values of their own: they read those of the latest layer of
 * the same kind (with or without a window) that has some. */
enum model_kv_sharing {
    MODEL_KV_OWN,
    MODEL_KV_SHARED_KEY,    /* the last attention.shared_kv_layers layers */
    MODEL_KV_SHARED_FROM_20 /* all but the first 20 */
};

/* The attention output is multiplied by an activation of attn_gate x, x the layer's input, before
 * the output projection: one factor per element or per head, by the tensor's shape. */
enum model_gate {
    MODEL_GATE_NONE,
    MODEL_GATE_SIGMOID,
    MODEL_GATE_SIGMOID_OPTIONAL, /* files may lack its tensor */
    MODEL_GATE_SOFTPLUS
};

/* Layers whose queries attend to keys that an indexer chooses (attention.indexer.*). */
enum model_indexed {
    MODEL_INDEXED_NONE,
    MODEL_INDEXED_ALL,      /* each layer without a window has an indexer */
    MODEL_INDEXED_TYPES,    /* layers that attention.indexer.types marks have one, others use the
                              choice of the layer before them. Without the key: all, but if
                              context_length is at least 2^20 the first three and then each fourth,
                              from layer 6 on */
    MODEL_INDEXED_OPTIONAL, /* as TYPES; none if attention.indexer.top_k is 0 or absent */
    MODEL_INDEXED_BLOCKS, /* layers after the first leading_dense_block_count; it chooses blocks of
                             keys, for each key head */
    MODEL_INDEXED_MEANS,  /* layers with attention.compress_ratios r > 0; it chooses blocks of r
                             positions by the means of their keys */
    MODEL_INDEXED_POOLS   /* as TYPES, all by default; it chooses blocks of attention.indexer.kpool
                             positions by weighted sums of their keys */
};

struct model_attention_row {
    enum model_rope_kind rope;
    bool pairs; /* Q, K and V multiply two rows of E numbers */
    enum model_indexed indexed;
    enum model_rope_kind index_rope; /* of the indexer's queries and keys */
    bool index_as_heads; /* of these the last elements rotate, and the norm of keys has the model's
                            epsilon; otherwise the first, and 10^-6 */
    enum model_rope_layers rotate;
    enum model_rope_keys rope_keys;
    enum model_qk_norm qk_norm;
    bool qk_norm_optional; /* files may lack its tensors */
    bool latent_k_norm;    /* latent attention: RMS over the rotated part of keys, before RoPE */
    float qk_norm_eps;     /* its epsilon; 0: the model's */
    enum model_score_scale scale;
    struct model_window window;
    enum model_temperature temperature;
    enum model_yarn_log yarn_log;
    float softcap; /* default of attn_logit_softcapping, of scores; 0: none */
    bool q_gate;   /* attn_q has a gate after each head's query: output times its sigmoid */
    enum model_gate gate;
    bool head_by_rot; /* D is rope.dimension_count */
    bool half_rot;    /* layers without a window rotate half of rope.dimension_count */
    bool v_norm;      /* RMS norm of each value head, without weights */
    bool k_as_v;      /* without attn_v the key projection is used for values too */
    enum model_kv_sharing sharing;
    float alibi;   /* default of attention.max_alibi_bias, exponent of the largest slope; 0: none */
    bool relative; /* scores have a bias by the distance of key and query: attn_rel_b, of the first
                      layer if a layer has none (T5) */
};

/* ---- Recurrent mixers ---- */

/* Gated delta rule. KH key heads, H value heads. */
struct model_delta_row {
    bool grouped; /* consecutive value heads share a key head, otherwise every KH-th; beta and alpha
                     are one tensor ssm_ba, by key head; files may have Q, K, V and Z as ssm_in, in
                     the same order */
    bool sigmoid; /* the activation of the output's gate, otherwise SiLU */
};

/* Kimi delta attention. */
struct model_kda_row {
    bool decay_full, gate_full; /* the decay, the gate of the output: one matrix, not a product of
                                   two */
    bool bounded;               /* kda.gate_lower_bound, if present, is the decay's bound */
    bool positive;              /* files have |a|, otherwise -|a| */
    bool flat;                  /* the shape of a is [H], otherwise [H][1] */
    float unit_eps;             /* see model_unit_heads; 0: that of norms */
};

struct model_mamba_row {
    bool norm_optional; /* files may lack ssm_norm (Mamba 2) */
    bool norms; /* Mamba: the step's input, B and C are normalized with weights; otherwise without
                   weights, if ssm.dt_b_c_rms is true */
    bool heads; /* Mamba: ssm.time_step_rank heads, each with one step and one decay */
};

struct model_rwkv_row {
    bool linear; /* RWKV 6: linear attention without a bonus of the token itself and without a norm;
                    heads may share keys and values */
    bool norm_optional; /* RWKV 7: files may lack time_mix_ln */
    bool receptance;    /* the channel mix has a gate */
};

/* ---- Feed-forward networks ---- */

/* GELU in its original form, by the error function, is ENGINE_GELU_ERF: what BERT and its relatives
 * were trained with. */
enum model_ffn_form {
    MODEL_FFN_GATED,     /* down (act(gate x) * up x) */
    MODEL_FFN_FUSED,     /* as GATED, but gate and up are one tensor ffn_up, gate first */
    MODEL_FFN_PLAIN,     /* down act(up x) */
    MODEL_FFN_XIELU,     /* plain with xIELU, whose parameters are keys (Huang 2024) */
    MODEL_FFN_BY_TENSORS /* gated if the layer has ffn_gate, fused if ffn_up has 2 F rows, else
                            plain */
};

/* Bounds c of gated units: swiglu_clamp_shexp of networks and shared experts, swiglu_clamp_exp of
 * experts. up is clamped to -c .. c, and */
enum model_clamps {
    MODEL_CLAMPS_NONE,
    MODEL_CLAMPS_OUTPUT, /* act(gate) to c at most */
    MODEL_CLAMPS_INPUT,  /* gate to c at most, before act */
    MODEL_CLAMPS_EXPERTS /* the same; the default of swiglu_clamp_shexp is swiglu_clamp_exp */
};

struct model_ffn_row {
    enum model_ffn_form form;
    enum engine_unary act;
    bool act_key;    /* hidden_activation, a word, replaces `act` */
    bool plain_relu; /* plain networks have ReLU instead */
    bool act_both;   /* gated networks: act(gate x) * act(up x) */
    bool scales;     /* .scale tensors of its matrices are used; otherwise ignored */
    bool situ;       /* gated units are b tanh(g / b) sigmoid(g) l tanh(u / l), where b and l are
                        activation.situ_beta and _linear_beta; l <= 0: u instead of its tanh */
    bool oai;        /* the clamped gated units of gpt-oss, also those of experts */
    enum model_clamps clamps;
    uint32_t divisor; /* divides feed_forward_length; 0: 1 */
    bool square;      /* F = E */
    uint32_t sparse;  /* the first `sparse` layers replace gate values by their excess over mean
                         + 1.645 standard deviations of the row, or 0 */
};

/* The activation of router logits, for choosing experts and as weights; values of
 * expert_gating_func. */
enum model_gating {
    MODEL_GATING_SOFTMAX_DEFAULT, /* same as SOFTMAX */
    MODEL_GATING_SOFTMAX,
    MODEL_GATING_SIGMOID,
    MODEL_GATING_SOFTMAX_CHOSEN, /* experts are chosen by logits; weights are a softmax over the
                                    chosen */
    MODEL_GATING_SQRT_SOFTPLUS
};

enum model_normalize { MODEL_NORMALIZE_ALWAYS, MODEL_NORMALIZE_NEVER, MODEL_NORMALIZE_KEY };

/* The feed-forward length of all shared experts together. S is the key
 * expert_shared_feed_forward_length. */
enum model_shared {
    MODEL_SHARED_NONE,
    MODEL_SHARED_COUNT,          /* an expert's length times expert_shared_count */
    MODEL_SHARED_LENGTH,         /* S; 0: no shared experts */
    MODEL_SHARED_LENGTH_OR_OWN,  /* S, default an expert's length */
    MODEL_SHARED_LENGTH_OR_MAIN, /* S, default feed_forward_length */
    MODEL_SHARED_LENGTH_COUNT,   /* (S, default an expert's length) times expert_shared_count */
    MODEL_SHARED_LENGTH_OR_COUNT /* S, default as COUNT; none if expert_shared_count is 0 */
};

/* Layers with a dense network f and experts e. */
enum model_beside {
    MODEL_BESIDE_NONE,
    MODEL_BESIDE_INPUT, /* f(N x) + e(N' of the layer's input): ffn_norm_exps */
    MODEL_BESIDE_MEAN,  /* (f(N x) + e(N x)) / sqrt(2) if the layer has ffn_up */
    MODEL_BESIDE_NORMS  /* N f(N x) + N e(N x); the router's input is x / rms(x) / sqrt(E) * its
                           .scale */
};

struct model_experts_row {
    bool allowed;     /* a file with expert_count > 0 is a mixture */
    bool own_length;  /* expert_feed_forward_length, default feed_forward_length / U */
    bool main_length; /* default feed_forward_length instead */
    bool by_tensor;   /* a layer is a mixture if it has ffn_gate_inp */
    bool leading;     /* the first leading_dense_block_count layers are dense */
    bool step;        /* every interleave_moe_layer_step-th layer is a mixture, others are dense */
    bool every; /* layers i with i mod moe_every_n_layers = 1 are mixtures; 0, the default: none */
    enum model_gating gating;
    bool gating_key;                /* expert_gating_func, default `gating` */
    enum model_normalize normalize; /* scale the chosen weights to sum 1; expert_weights_norm */
    bool scale_key;                 /* expert_weights_scale */
    enum model_shared shared;
    uint32_t shared_count; /* default of expert_shared_count */
    bool shared_gate;      /* a gate weighs the shared experts' output for each token */
    bool shared_fused; /* gate and up of shared experts are one tensor ffn_up_shexp, gate first */
    bool shared_mean;  /* the mean of shared and chosen experts' outputs, if a layer has both */
    bool choose_by_logits; /* the largest logits (before `gating`) are chosen */
    bool weigh_inputs;     /* the weights multiply the experts' inputs instead of their outputs */
    bool route_by_layer;   /* the router's input is the layer's input, not normalized */
    enum model_beside beside;
    bool plain;  /* an expert, also a shared one, is down act(up x) */
    bool chunks; /* experts_per_group consecutive experts share a small expert, applied to the
                    chosen experts' output; its output times expert_group_scale is added */
    bool hash;   /* in the first hash_layer_count layers ffn_gate_tid2eid has the experts of each
                    token id */
    const char *latent; /* key of the size at which experts work, between ffn_latent_down and _up;
                           NULL: none */
};

/* ---- Embeddings and output ---- */

enum model_embd_scale {
    MODEL_EMBD_PLAIN,
    MODEL_EMBD_SQRT, /* times sqrt(E) */
    MODEL_EMBD_KEY   /* embeddings are multiplied by embedding_scale, default embd_default */
};

enum model_embd_norm {
    MODEL_EMBD_NORM_NONE,
    MODEL_EMBD_NORM,      /* token_embd_norm */
    MODEL_EMBD_NORM_PLAIN /* the model's kind of norm, without weights */
};

enum model_logit_scale {
    MODEL_LOGITS_PLAIN,
    MODEL_LOGITS_TIMES,  /* times logit_scale */
    MODEL_LOGITS_DIVIDED /* divided by logit_scale */
};

struct model_ends_row {
    enum model_embd_scale embd_scale;
    enum model_embd_norm embd_norm;
    bool positions;          /* learned position embeddings, position_embd, are added */
    uint32_t first_position; /* the row of position 0; contexts are shorter by as many */
    bool token_types;        /* row 0 of token_types is added to all embeddings */
    enum model_logit_scale logit_scale;
    bool softcap_key;     /* final_logit_softcapping is read: logits are capped by it */
    float softcap;        /* its default; 0: none */
    float logit_default;  /* default of logit_scale; 0: 1 */
    float logits_by_embd; /* default of logit_scale is this / E */
    float embd_default;   /* default of embedding_scale; 0: 1 */
    bool rescale; /* every rescale_every_n_layers-th layer's output is halved; 0, the default: none
                   */
    bool embd_skip;         /* each layer adds the embeddings times its layer_output_scale */
    uint32_t silent[2];     /* the logits of ids silent[0] <= id < silent[1] are -FLT_MAX */
    bool layer_scale;       /* a layer's output is multiplied by layer_output_scale */
    bool residual_scale;    /* a block's output is multiplied by residual_scale */
    float residual_default; /* default of residual_scale is this / sqrt(layers); 0: 1 */
};

/* Files may have MTP layers (multi-token prediction, nextn_predict_layers) after the others, which
 * predict the token after the next. Such a layer reads the embedding of the next token and the
 * hidden state of the position before it, which is */
enum model_mtp_input {
    MODEL_MTP_NONE,       /* the layers are not used */
    MODEL_MTP_NORMALIZED, /* the hidden state after the output norm, or after the MTP layer's own */
    MODEL_MTP_PLAIN       /* the hidden state before it */
};

/* A model that drafts tokens for another one, of which it reads hidden states (models/drafter.c):
 * it is no model by itself. */
enum model_drafter_kind {
    MODEL_DRAFTER_NONE,
    MODEL_DRAFTER_EAGLE3, /* one layer, which reads the embedding of a token and the hidden states
                             of the position before it (Li et al. 2025) */
    MODEL_DRAFTER_DFLASH  /* layers whose keys and values of a position are made of its hidden
                             states; they replace mask tokens after the text, all at once */
};

/* ---- Pooling: one row of a sequence's hidden states (block_pool.c) ---- */

struct model_pool_row {
    enum model_pooling rank; /* the row that a classifier reads; 0: the first of an encoder's
                                rows, otherwise the last */
    bool gelu;               /* the classifier's activation is GELU instead of tanh */
};

/* ---- The row ---- */

struct model_arch;

/* Published models that differ from their architecture in a fact that their files have no key for:
 * the sizes (0: any) identify them, and the row `as` describes them. */
struct model_known {
    uint32_t min_layers, max_layers, n_vocab, n_expert;
    const struct model_arch *as; /* NULL: end of the list */
};

/* A tensor with another name in this architecture: full names without "blk.N.". */
struct model_alias {
    const char *usual, *here; /* NULL: end of the list; here "": an ignored tensor */
};

enum { MODEL_MAX_KNOWN = 3, MODEL_MAX_ALIASES = 14, MODEL_MAX_NAMES = 8 };

struct model_arch {
    const char *name[MODEL_MAX_NAMES]; /* general.architecture, and the prefix of its keys */
    const char *prefix; /* of the names of layers' tensors, before "blk."; NULL: none */
    bool encoder;       /* tokens attend in both directions, and there are no logits */
    bool source;    /* an encoder reads a text first: its layers are "enc.blk.N", and those of the
                       decoder attend to its rows (T5) */
    bool diffusion; /* tokens attend in both directions, and the logits are of the tokens themselves
                     */
    struct model_plan plan;
    enum model_norm_kind norm;
    float norm_eps; /* default of the epsilon of norms; 0: files must have its key */
    float post_eps; /* epsilon of the norms after mixer and network; 0: the model's */
    enum model_residual residual;
    struct model_attention_row attn;
    struct model_delta_row delta;
    struct model_kda_row kda;
    struct model_mamba_row mamba;
    struct model_rwkv_row rwkv;
    struct model_ffn_row ffn;
    struct model_experts_row experts;
    struct model_ends_row ends;
    struct model_pool_row pool;
    enum model_mtp_input mtp;
    enum model_drafter_kind drafter;
    struct model_known known[MODEL_MAX_KNOWN];
    struct model_alias alias[MODEL_MAX_ALIASES];
};

/* Returns name i of all rows' names, and its row in *row (which may be NULL); NULL past the last
 * name. */
const char *model_arch_name(size_t i, const struct model_arch **row);
/* Returns the row of a name, NULL if there is none. *stored is the table's copy of the name. */
const struct model_arch *model_arch_find(struct gguf_str name, const char **stored);
/* As model_arch_find, among drafters, which the functions above do not return. */
const struct model_arch *model_arch_find_drafter(struct gguf_str name, const char **stored);
/* Returns the row for a model of these sizes: `arch`, or the row that its table of known models
 * names. */
const struct model_arch *model_arch_known(const struct model_arch *arch, uint32_t n_layer,
                                          uint32_t n_vocab, uint32_t n_expert);
