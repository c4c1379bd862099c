/* models/arch/window_tables.c: models in which most layers have a sliding window, many with gated
 * attention. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

/* Routes as DeepSeek-V3 does, with sigmoids if the file has no expert_gating_func. */
#define SIGMOID_EXPERTS                                                                             \
    .allowed = true, .own_length = true, .gating = MODEL_GATING_SIGMOID, .gating_key = true,        \
    .normalize = MODEL_NORMALIZE_KEY, .scale_key = true

const struct model_arch model_arch_window[] = {
    {{"afmoe"}, .residual = MODEL_SANDWICH, .ends.embd_scale = MODEL_EMBD_SQRT,
     .attn = {.rope = MODEL_ROPE_NEOX, .rotate = MODEL_ROTATE_NOT_4TH, .qk_norm = MODEL_QK_NORM_HEAD,
              .gate = MODEL_GATE_SIGMOID,
              .window = {.rule = MODEL_WINDOW_PERIOD, .period = 4, .rope = MODEL_WINDOW_ROPE_BASE}},
     .experts = {SIGMOID_EXPERTS, .leading = true, .shared = MODEL_SHARED_COUNT}},
    {{"cohere2moe"}, .norm = MODEL_NORM_BY_EPSILON, .residual = MODEL_PARALLEL, .ffn.scales = true,
     .attn = {.rotate = MODEL_ROTATE_LEADING, .window = {.rule = MODEL_WINDOW_FIRST, .period = 4}},
     .experts = {SIGMOID_EXPERTS, .leading = true, .shared = MODEL_SHARED_LENGTH_OR_COUNT, .shared_mean = true},
     .ends.logit_scale = MODEL_LOGITS_TIMES},
    {{"granite_swa"},
     .attn = {.scale = MODEL_SCALE_KEY, .rotate = MODEL_ROTATE_PATTERN, .window.rule = MODEL_WINDOW_MARKED},
     .experts = {.allowed = true, .shared = MODEL_SHARED_LENGTH, .shared_fused = true},
     .ends = {.embd_scale = MODEL_EMBD_KEY, .logit_scale = MODEL_LOGITS_DIVIDED, .residual_scale = true}},
    {{"mimo2"}, .mtp = MODEL_MTP_PLAIN,
     .attn = {.rope = MODEL_ROPE_NEOX, .window = {.rule = MODEL_WINDOW_MARKED, .rope = MODEL_WINDOW_ROPE_OWN}},
     .experts = {.allowed = true, .own_length = true, .by_tensor = true, .gating = MODEL_GATING_SIGMOID},
     .alias = {BARE_QKV, {"nextn.shared_head_norm.weight", "layer_output_norm.weight"}}},
    {{"step35"}, .mtp = MODEL_MTP_PLAIN, .ffn.clamps = MODEL_CLAMPS_OUTPUT,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .qk_norm_optional = true,
              .gate = MODEL_GATE_SIGMOID_OPTIONAL, .half_rot = true,
              .window = {.rule = MODEL_WINDOW_MARKED, .rope = MODEL_WINDOW_ROPE_OWN}},
     .experts = {SIGMOID_EXPERTS, .by_tensor = true, .shared = MODEL_SHARED_LENGTH},
     .alias = {{"attn_q.bias", ""}, {"attn_k.bias", ""}, {"attn_v.bias", ""}}},
    {{"laguna"},
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .gate = MODEL_GATE_SOFTPLUS,
              .window = {.rule = MODEL_WINDOW_FIRST, .period = 4, .rope = MODEL_WINDOW_ROPE_OWN_BASE}},
     .experts = {SIGMOID_EXPERTS, .leading = true, .shared = MODEL_SHARED_LENGTH_OR_COUNT, .shared_count = 1}},
    {{"muse-glimmer"}, .residual = MODEL_SANDWICH, .post_eps = 1e-8f,
     .attn = {.rotate = MODEL_ROTATE_WINDOWED, .qk_norm = MODEL_QK_NORM_HEAD, .gate = MODEL_GATE_SIGMOID,
              .window = {.rule = MODEL_WINDOW_PERIOD, .period = 4, .rope = MODEL_WINDOW_ROPE_OWN_BASE}},
     .ends = {.embd_norm = MODEL_EMBD_NORM_PLAIN, .logit_scale = MODEL_LOGITS_TIMES, .softcap_key = true, .softcap = 30}},
    {{"spark2_5"}, .ffn.act = ENGINE_GELU,
     .attn = {.rope = MODEL_ROPE_NEOX, .gate = MODEL_GATE_SIGMOID,
              .window = {.rule = MODEL_WINDOW_MARKED, .rope = MODEL_WINDOW_ROPE_BASE}}},
    {{"plamo3"}, .residual = MODEL_SANDWICH, .ffn.form = MODEL_FFN_FUSED,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD,
              .window = {.rule = MODEL_WINDOW_PERIOD, .period = 8, .rope = MODEL_WINDOW_ROPE_OWN}},
     .alias = {{"post_attention_norm.weight", "post_attention_norm"}, {"post_ffw_norm.weight", "post_ffw_norm"},
               {"attn_qkv.scale", ""}}},
    {.name = {NULL}},
};
