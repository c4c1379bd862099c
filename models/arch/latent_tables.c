/* models/arch/latent_tables.c: latent attention. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

#define DEEPSEEK_EXPERTS                                                                            \
    .allowed = true, .own_length = true, .leading = true, .gating_key = true,                       \
    .normalize = MODEL_NORMALIZE_KEY, .scale_key = true, .shared = MODEL_SHARED_COUNT

/* GLM 4.7 Flash: files may lack expert_gating_func. */
static const struct model_arch glm_flash = {
    {"deepseek2"}, .mtp = MODEL_MTP_NORMALIZED, .plan.mixer = MODEL_MLA,
    .attn = {.temperature = MODEL_TEMPERATURE_KEY, .yarn_log = MODEL_YARN_LOG_EQUAL},
    .experts = {DEEPSEEK_EXPERTS, .gating = MODEL_GATING_SIGMOID}};

const struct model_arch model_arch_latent[] = {
    {{"deepseek2"}, .mtp = MODEL_MTP_NORMALIZED, .plan.mixer = MODEL_MLA,
     .attn = {.temperature = MODEL_TEMPERATURE_KEY, .yarn_log = MODEL_YARN_LOG_EQUAL},
     .experts = {DEEPSEEK_EXPERTS},
     .known = {{.min_layers = 47, .max_layers = 48, .n_vocab = 154880, .as = &glm_flash}}},
    {{"deepseek32"}, .mtp = MODEL_MTP_NORMALIZED, .plan.mixer = MODEL_MLA, .ffn.scales = true,
     .attn = {.yarn_log = MODEL_YARN_LOG, .indexed = MODEL_INDEXED_ALL, .index_rope = MODEL_ROPE_NEOX},
     .experts = {DEEPSEEK_EXPERTS}},
    {{"glm-dsa"}, .mtp = MODEL_MTP_NORMALIZED, .plan.mixer = MODEL_MLA, .ffn.scales = true,
     .attn = {.yarn_log = MODEL_YARN_LOG, .indexed = MODEL_INDEXED_TYPES},
     .experts = {DEEPSEEK_EXPERTS, .gating = MODEL_GATING_SIGMOID}},
    {{"dots3note"}, .plan.mixer = MODEL_MLA, .ffn.scales = true,
     .attn = {.indexed = MODEL_INDEXED_ALL, .index_rope = MODEL_ROPE_NEOX, .gate = MODEL_GATE_SIGMOID,
              .latent_k_norm = true, .window = {.rule = MODEL_WINDOW_MARKED, .rope = MODEL_WINDOW_ROPE_BASE}},
     .experts = {DEEPSEEK_EXPERTS}},
    {{"deepseek4"}, .residual = MODEL_HYPER_MIXED, .plan.mixer = MODEL_COMPRESSED,
     .attn.window = {.rule = MODEL_WINDOW_ALL, .rope = MODEL_WINDOW_ROPE_UNSCALED},
     .ffn.clamps = MODEL_CLAMPS_EXPERTS,
     .experts = {DEEPSEEK_EXPERTS, .gating = MODEL_GATING_SQRT_SOFTPLUS, .hash = true},
     .alias = {{"exp_probs_b_vl.bias", ""}}},
    {{"hy_v4"}, .residual = MODEL_HYPER, .plan.mixer = MODEL_MLA,
     .attn = {.indexed = MODEL_INDEXED_OPTIONAL, .index_as_heads = true, .gate = MODEL_GATE_SIGMOID},
     .ffn.clamps = MODEL_CLAMPS_INPUT,
     .experts = {DEEPSEEK_EXPERTS, .gating = MODEL_GATING_SIGMOID}, .alias = {{"attn_output.scale", ""}}},
    {{"mistral4"}, .plan.mixer = MODEL_MLA,
     .attn = {.temperature = MODEL_TEMPERATURE_KEY, .yarn_log = MODEL_YARN_LOG},
     .experts = {DEEPSEEK_EXPERTS}},
    {{"minicpm3"}, .plan.mixer = MODEL_MLA, .attn = {.rope = MODEL_ROPE_NEOX},
     .ends = {.embd_default = 12, .residual_default = 1.4f, .logits_by_embd = 256}},
    {{"plm"}, .plan.mixer = MODEL_MLA,
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_RELU_SQR}},
    {.name = {NULL}},
};
