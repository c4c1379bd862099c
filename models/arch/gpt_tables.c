/* models/arch/gpt_tables.c: models with layer norms, from GPT-2 on. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

/* From 64 layers on (Command R+) queries and keys are normalized. */
static const struct model_arch command_r_plus = {
    {"command-r"}, .norm = MODEL_LAYER_NORM, .residual = MODEL_PARALLEL,
    .attn = {.qk_norm = MODEL_QK_NORM_HEAD_LAYER}, .ends = {.logit_scale = MODEL_LOGITS_TIMES}};

const struct model_arch model_arch_gpt[] = {
    {{"gpt2", "starcoder"}, .norm = MODEL_LAYER_NORM, .attn = {.rope = MODEL_ROPE_NONE},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU}, .ends = {.positions = true}},
    {{"opt"}, .norm = MODEL_LAYER_NORM, .norm_eps = 1e-5f, .attn = {.rope = MODEL_ROPE_NONE},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_RELU}, .ends = {.positions = true, .first_position = 2}},
    {{"bloom"}, .norm = MODEL_LAYER_NORM, .attn = {.rope = MODEL_ROPE_NONE, .alibi = 8},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU}, .ends = {.embd_norm = MODEL_EMBD_NORM}},
    {{"mpt"}, .norm = MODEL_LAYER_NORM,
     .attn = {.rope = MODEL_ROPE_NONE, .qk_norm = MODEL_QK_NORM_FULL_LAYER, .qk_norm_optional = true},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU}, .ends = {.positions = true},
     .alias = {{"ffn_act_scales.weight", "ffn.act.scales"}}},
    {{"jais"}, .norm = MODEL_LAYER_NORM, .attn = {.rope = MODEL_ROPE_NONE, .scale = MODEL_SCALE_BY_SIZE}},
    {{"gptneox"}, .norm = MODEL_LAYER_NORM, .residual = MODEL_PARALLEL_KEY,
     .attn = {.rope = MODEL_ROPE_NEOX}, .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU}},
    {{"falcon", "phi2"}, .norm = MODEL_LAYER_NORM, .residual = MODEL_PARALLEL,
     .attn = {.rope = MODEL_ROPE_NEOX}, .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU}},
    {{"starcoder2", "codeshell"}, .norm = MODEL_LAYER_NORM, .attn = {.rope = MODEL_ROPE_NEOX},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU}},
    {{"nemotron", "jais2"}, .norm = MODEL_LAYER_NORM, .attn = {.rope = MODEL_ROPE_NEOX},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_RELU_SQR}},
    {{"stablelm"}, .norm = MODEL_LAYER_NORM, .residual = MODEL_PARALLEL_BY_NORM,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD_LAYER, .qk_norm_optional = true}},
    {{"orion"}, .norm = MODEL_LAYER_NORM, .attn = {.rope = MODEL_ROPE_NEOX}},
    {{"olmo"}, .norm = MODEL_LAYER_NORM_PLAIN},
    {{"command-r"}, .norm = MODEL_LAYER_NORM, .residual = MODEL_PARALLEL,
     .ends = {.logit_scale = MODEL_LOGITS_TIMES},
     .known = {{.min_layers = 64, .as = &command_r_plus}}},
    {{"cohere2"}, .ffn.scales = true, .norm = MODEL_LAYER_NORM, .residual = MODEL_PARALLEL,
     .attn = {.rotate = MODEL_ROTATE_WINDOWED, .window = {.rule = MODEL_WINDOW_PERIOD, .period = 4}},
     .ends = {.logit_scale = MODEL_LOGITS_TIMES}},
    {.name = {NULL}},
};
