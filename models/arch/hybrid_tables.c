/* models/arch/hybrid_tables.c: models with recurrent layers, alone or with attention layers between
 * them. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

/* Coefficients and norms whose tensor names have no ".weight". */
#define BARE_SSM {"ssm_a.weight", "ssm_a"}, {"ssm_d.weight", "ssm_d"}
#define BARE_POST {"post_attention_norm.weight", "post_attention_norm"}, {"post_ffw_norm.weight", "post_ffw_norm"}
#define NORM_2   {"ffn_norm.weight", "post_attention_norm.weight"}
/* Biases that files may have and the reference implementation does not add. */
#define NO_BIAS  {"attn_q.bias", ""}, {"attn_k.bias", ""}, {"attn_v.bias", ""}

#define RWKV(id)                                                                                    \
    .plan = {.mixer = (id), .ffn = MODEL_CHANNEL_MIX}, .norm = MODEL_LAYER_NORM,                    \
    .alias = {{"ffn_norm.weight", "attn_norm_2.weight"}, {"ffn_norm.bias", "attn_norm_2.bias"}}

const struct model_arch model_arch_hybrid[] = {
    {{"lfm2"}, .plan = {.rule = MODEL_PLAN_KV_HEADS, .mixer = MODEL_ATTENTION, .recurrent = MODEL_SHORT_CONV},
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .window.rule = MODEL_WINDOW_ALL},
     .alias = {{"output_norm.weight", "token_embd_norm.weight"}}},
    {{"lfm2moe"}, .plan = {.rule = MODEL_PLAN_KV_HEADS, .mixer = MODEL_ATTENTION, .recurrent = MODEL_SHORT_CONV},
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .experts = {.allowed = true, .own_length = true, .leading = true, .gating_key = true},
     .alias = {{"output_norm.weight", "token_embd_norm.weight"}}},
    {{"qwen35"}, .mtp = MODEL_MTP_NORMALIZED, .plan = {.rule = MODEL_PLAN_INTERVAL, .mixer = MODEL_ATTENTION, .recurrent = MODEL_DELTA_NET},
     .ffn.scales = true,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .q_gate = true,
              .scale = MODEL_SCALE_KEY, .rope_keys = MODEL_ROPE_KEYS_INTERLEAVED},
     .alias = {BARE_SSM, NORM_2, NO_BIAS}},
    {{"qwen35moe"}, .mtp = MODEL_MTP_NORMALIZED, .plan = {.rule = MODEL_PLAN_INTERVAL, .mixer = MODEL_ATTENTION, .recurrent = MODEL_DELTA_NET},
     .ffn.scales = true,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .q_gate = true,
              .scale = MODEL_SCALE_KEY, .rope_keys = MODEL_ROPE_KEYS_INTERLEAVED},
     .experts = {.allowed = true, .own_length = true, .shared = MODEL_SHARED_LENGTH_OR_MAIN,
                 .shared_gate = true},
     .alias = {BARE_SSM, NORM_2, NO_BIAS}},
    {{"qwen3next"}, .mtp = MODEL_MTP_NORMALIZED, .plan = {.rule = MODEL_PLAN_INTERVAL, .mixer = MODEL_ATTENTION, .recurrent = MODEL_DELTA_NET},
     .ffn.scales = true,
     .delta.grouped = true,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .q_gate = true,
              .scale = MODEL_SCALE_KEY},
     .experts = {.allowed = true, .own_length = true, .shared = MODEL_SHARED_LENGTH_OR_MAIN,
                 .shared_gate = true},
     .alias = {BARE_SSM, NORM_2, NO_BIAS}},
    {{"granitehybrid"}, .plan = {.rule = MODEL_PLAN_KV_HEADS, .mixer = MODEL_ATTENTION, .recurrent = MODEL_MAMBA2},
     .experts = {.allowed = true, .shared = MODEL_SHARED_LENGTH},
     .attn = {.scale = MODEL_SCALE_KEY, .rotate = MODEL_ROTATE_FINETUNED},
     .ends = {.embd_scale = MODEL_EMBD_KEY, .logit_scale = MODEL_LOGITS_DIVIDED, .residual_scale = true},
     .alias = {BARE_SSM}},
    {{"mamba"}, .plan = {.rule = MODEL_PLAN_MIXERS, .mixer = MODEL_MAMBA}, .alias = {BARE_SSM}},
    {{"jamba"}, .plan = {.rule = MODEL_PLAN_KV_HEADS, .mixer = MODEL_ATTENTION, .recurrent = MODEL_MAMBA},
     .mamba.norms = true, .attn.rope = MODEL_ROPE_NONE,
     .experts = {.allowed = true, .by_tensor = true, .normalize = MODEL_NORMALIZE_NEVER},
     .alias = {BARE_SSM}},
    {{"plamo2"}, .plan = {.rule = MODEL_PLAN_KV_HEADS, .mixer = MODEL_ATTENTION, .recurrent = MODEL_MAMBA},
     .mamba = {.norms = true, .heads = true}, .residual = MODEL_SANDWICH, .ffn.form = MODEL_FFN_FUSED,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD_EACH, .scale = MODEL_SCALE_BY_VALUE},
     .alias = {BARE_SSM, BARE_POST, {"ssm_dt_norm.weight", "ssm_dt_norm"},
               {"ssm_b_norm.weight", "ssm_b_norm"}, {"ssm_c_norm.weight", "ssm_c_norm"}}},
    {{"mamba2"}, .plan = {.rule = MODEL_PLAN_MIXERS, .mixer = MODEL_MAMBA2}, .alias = {BARE_SSM}},
    {{"nemotron_h", "nemotron_h_moe"},
     .plan = {.rule = MODEL_PLAN_ONE, .mixer = MODEL_ATTENTION, .recurrent = MODEL_MAMBA2},
     .attn = {.rope = MODEL_ROPE_NONE, .scale = MODEL_SCALE_KEY},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_RELU_SQR, .scales = true},
     .experts = {.allowed = true, .own_length = true, .gating = MODEL_GATING_SIGMOID,
                 .normalize = MODEL_NORMALIZE_KEY, .scale_key = true, .shared = MODEL_SHARED_LENGTH,
                 .plain = true, .latent = true},
     .alias = {BARE_SSM}},
    {{"falcon-h1"}, .plan = {.mixer = MODEL_ATTENTION, .mixer_2 = MODEL_MAMBA2},
     .attn = {.rope = MODEL_ROPE_NEOX, .scale = MODEL_SCALE_KEY}, .mamba.norm_optional = true,
     .alias = {BARE_SSM, {"ffn_norm.weight", "ffn_norm"}, {"rope_freqs.weight", ""}, {"attn_output.bias", ""}}},
    {{"rwkv6"}, RWKV(MODEL_RWKV6), .rwkv.receptance = true, .ends = {.embd_norm = MODEL_EMBD_NORM, .rescale = true}},
    {{"rwkv7"}, RWKV(MODEL_RWKV7), .ends.embd_norm = MODEL_EMBD_NORM},
    {{"rwkv6qwen2"}, .plan.mixer = MODEL_RWKV6, .rwkv.linear = true},
    {{"arwkv7"}, .plan.mixer = MODEL_RWKV7, .rwkv.norm_optional = true},
    {.name = {NULL}},
};
