/* models/arch/experts_tables.c: mixtures of experts. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

/* Q, K and V have no biases or scales: tensors with these names are ignored. */
#define BARE_QKV                                                                                    \
    .alias = {{"attn_q.bias", ""}, {"attn_k.bias", ""}, {"attn_v.bias", ""},                        \
              {"attn_q.scale", ""}, {"attn_k.scale", ""}, {"attn_v.scale", ""}}

#define LLAMA4(qk)                                                                                  \
    .attn = {.rotate = MODEL_ROTATE_NOT_4TH, .qk_norm = (qk), .temperature = MODEL_TEMPERATURE_UNROTATED, \
             .window = {.rule = MODEL_WINDOW_PERIOD, .period = 4, .rope = MODEL_WINDOW_ROPE_BASE,    \
                        .size = 8192, .fixed = 8192, .chunked = true}},                              \
    .experts = {.allowed = true, .own_length = true, .step = true, .gating = MODEL_GATING_SIGMOID,   \
                .normalize = MODEL_NORMALIZE_NEVER, .choose_by_logits = true, .weigh_inputs = true,  \
                .shared = MODEL_SHARED_LENGTH_OR_OWN},                                               \
    .alias = {{"attn_output.bias", ""}}
/* Maverick normalizes neither queries nor keys. */
static const struct model_arch llama4_maverick = {{"llama4"}, LLAMA4(MODEL_QK_NORM_NONE)};

const struct model_arch model_arch_experts[] = {
    {{"qwen2moe"}, .attn = {.rope = MODEL_ROPE_NEOX},
     .experts = {.allowed = true, .own_length = true, .normalize = MODEL_NORMALIZE_NEVER,
                 .shared = MODEL_SHARED_LENGTH_OR_MAIN, .shared_gate = true}},
    {{"qwen3moe"}, .ffn.scales = true, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .experts = {.allowed = true, .own_length = true}},
    {{"grovemoe"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .experts = {.allowed = true, .own_length = true, .choose_by_logits = true, .chunks = true}},
    {{"qwen3vlmoe"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD,
                              .rope_keys = MODEL_ROPE_KEYS_INTERLEAVED},
     .experts = {.allowed = true, .own_length = true}},
    {{"olmoe"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_FULL},
     .experts = {.allowed = true, .normalize = MODEL_NORMALIZE_NEVER}, BARE_QKV},
    {{"phimoe"}, .attn = {.rope = MODEL_ROPE_NEOX}, .experts = {.allowed = true}},
    {{"grok"}, .residual = MODEL_SANDWICH, .ffn.act = ENGINE_GELU,
     .attn = {.rope = MODEL_ROPE_NEOX, .rope_keys = MODEL_ROPE_KEYS_YARN_ALL, .scale = MODEL_SCALE_OUTPUT,
              .softcap = 30},
     .experts = {.allowed = true, .own_length = true, .main_length = true, .beside = MODEL_BESIDE_MEAN},
     .ends = {.embd_scale = MODEL_EMBD_KEY, .embd_default = 78.38367176906169f, .softcap_key = true,
              .logit_scale = MODEL_LOGITS_TIMES, .logit_default = 0.5773502691896257f},
     .alias = {{"post_attention_norm.weight", "attn_output_norm.weight"},
               {"post_ffw_norm.weight", "layer_output_norm.weight"}, {"attn_output.bias", ""}}},
    {{"arctic"}, .ffn = {.square = true}, .experts = {.allowed = true, .beside = MODEL_BESIDE_INPUT},
     .alias = {{"attn_output.bias", ""}}},
    {{"llama4"}, LLAMA4(MODEL_QK_NORM_PLAIN), .known = {{.n_expert = 128, .as = &llama4_maverick}}},
    {{"smallthinker"}, .ffn.act = ENGINE_RELU,
     .attn = {.rope = MODEL_ROPE_NEOX, .rotate = MODEL_ROTATE_NOT_1ST,
              .window = {.rule = MODEL_WINDOW_FIRST, .period = 4, .fixed = 4096, .rope = MODEL_WINDOW_ROPE_BASE}},
     .experts = {.allowed = true, .own_length = true, .gating_key = true, .route_by_layer = true},
     .alias = {{"attn_output.bias", ""}}},
    {{"dbrx"}, .norm = MODEL_LAYER_NORM, .attn = {.rope = MODEL_ROPE_NEOX}, .experts = {.allowed = true},
     .alias = {{"ffn_norm.weight", "attn_output_norm.weight"}}},
    {{"deepseek"},
     .experts = {.allowed = true, .own_length = true, .leading = true, .normalize = MODEL_NORMALIZE_NEVER,
                 .scale_key = true, .shared = MODEL_SHARED_COUNT}},
    {{"deepseek2-ocr"}, .attn = {.rope = MODEL_ROPE_NEOX, .rope_keys = MODEL_ROPE_KEYS_NONE},
     .experts = {.allowed = true, .own_length = true, .leading = true, .gating_key = true,
                 .normalize = MODEL_NORMALIZE_KEY, .scale_key = true, .shared = MODEL_SHARED_COUNT}, BARE_QKV},
    {{"dots1"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .experts = {.allowed = true, .own_length = true, .leading = true, .gating_key = true,
                 .normalize = MODEL_NORMALIZE_KEY, .scale_key = true, .shared = MODEL_SHARED_COUNT}},
    {{"glm4moe"}, .mtp = MODEL_MTP_NORMALIZED, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .qk_norm_optional = true,
                           .rope_keys = MODEL_ROPE_KEYS_SECTIONS},
     .experts = {.allowed = true, .own_length = true, .leading = true, .gating = MODEL_GATING_SIGMOID,
                 .gating_key = true, .normalize = MODEL_NORMALIZE_KEY, .scale_key = true,
                 .shared = MODEL_SHARED_COUNT},
     .alias = {{"ffn_norm.weight", "post_attention_norm.weight"}}},
    {{"bailingmoe"}, .attn = {.head_by_rot = true},
     .experts = {.allowed = true, .own_length = true, .normalize = MODEL_NORMALIZE_KEY, .scale_key = true,
                 .shared = MODEL_SHARED_COUNT},
     .alias = {{"attn_output.bias", ""}}},
    {{"bailingmoe2"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .experts = {.allowed = true, .own_length = true, .leading = true, .gating_key = true,
                 .normalize = MODEL_NORMALIZE_KEY, .scale_key = true, .shared = MODEL_SHARED_LENGTH_COUNT}},
    {{"ernie4_5-moe"},
     .experts = {.allowed = true, .own_length = true, .leading = true, .step = true,
                 .shared = MODEL_SHARED_LENGTH},
     .alias = {{"attn_output.bias", ""}}},
    {{"hunyuan-moe"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_AFTER},
     .experts = {.allowed = true, .shared = MODEL_SHARED_LENGTH_OR_MAIN}},
    {{"hy_v3"}, .mtp = MODEL_MTP_NORMALIZED, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD}, .ffn.scales = true,
     .experts = {.allowed = true, .own_length = true, .by_tensor = true, .gating = MODEL_GATING_SIGMOID,
                 .gating_key = true, .normalize = MODEL_NORMALIZE_KEY, .scale_key = true,
                 .shared = MODEL_SHARED_LENGTH_OR_OWN},
     .alias = {{"exp_probs_b.bias", "exp_probs_b"}}},
    {{"gpt-oss"}, .attn = {.rope = MODEL_ROPE_NEOX, .head_by_rot = true,
                           .window = {.rule = MODEL_WINDOW_PERIOD, .period = 2, .rope = MODEL_WINDOW_ROPE_BASE}},
     .experts = {.allowed = true, .own_length = true, .gating = MODEL_GATING_SOFTMAX_CHOSEN,
                 .normalize = MODEL_NORMALIZE_NEVER},
     .ffn.oai = true,
     .alias = {{"ffn_norm.weight", "post_attention_norm.weight"}}},
    {{"minimax-m2"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_FULL},
     .experts = {.allowed = true, .gating_key = true}, BARE_QKV},
    {{"minimax-m3"}, .ffn.oai = true,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .indexed = MODEL_INDEXED_BLOCKS},
     .experts = {.allowed = true, .own_length = true, .leading = true, .gating_key = true,
                 .normalize = MODEL_NORMALIZE_KEY, .scale_key = true, .shared = MODEL_SHARED_COUNT}},
    {{"exaone-moe"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD,
                              .rotate = MODEL_ROTATE_WINDOWED, .window = {.rule = MODEL_WINDOW_PERIOD, .period = 4}},
     .experts = {.allowed = true, .own_length = true, .leading = true, .gating_key = true,
                 .normalize = MODEL_NORMALIZE_KEY, .scale_key = true, .shared = MODEL_SHARED_LENGTH_OR_OWN}},
    {{"maple"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .rotate = MODEL_ROTATE_WINDOWED,
                         .window = {.rule = MODEL_WINDOW_MARKED, .rope = MODEL_WINDOW_ROPE_BASE}},
     .ffn.clamps = MODEL_CLAMPS_INPUT,
     .experts = {.allowed = true, .own_length = true}},
    {{"mellum"}, .ffn.scales = true, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD,
                          .window = {.rule = MODEL_WINDOW_PERIOD, .period = 4, .rope = MODEL_WINDOW_ROPE_UNSCALED}},
     .experts = {.allowed = true, .own_length = true}},
    {.name = {NULL}},
};
