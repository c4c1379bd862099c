/* models/arch/llama_tables.c: llama and its relatives: RMS norms, gated networks. See arch.h. */
#include "models/arch/arch_tables.h"

/* With 40 layers (13B) Baichuan has ALiBi instead of RoPE. */
static const struct model_arch baichuan_13b = {
    {"baichuan"}, .attn = {.rope = MODEL_ROPE_NONE, .alibi = 8}};
/* In the 32B model three of every four layers have a sliding window, and only these rotate. */
static const struct model_arch exaone4_32b = {
    {"exaone4"}, .residual = MODEL_POST_NORM,
    .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .rotate = MODEL_ROTATE_WINDOWED,
             .window = {MODEL_WINDOW_PERIOD, 4, .size = 4096}}};

/* The adapters of a product. */
#define SWITCHED(name) {name "_switch_a.weight", name ".lora_a"}, {name "_switch_b.weight", name ".lora_b"}

const struct model_arch model_arch_llama[] = {
    {{"llama"}, .ffn.scales = true, .experts = {.allowed = true}},
    {.name = {"internlm2", "xverse"}},
    {{"ernie4_5"}, .alias = {{"attn_output.bias", ""}}},
    {{"bamboo"}, .ffn = {.act = ENGINE_RELU, .act_both = true}},
    {{"arcee"}, .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_RELU_SQR}},
    {{"smollm3"}, .attn = {.rotate = MODEL_ROTATE_NOT_4TH}},
    {{"deci"}, .plan.rule = MODEL_PLAN_COUNTS},
    {{"mistral3"}, .ffn.scales = true, .experts = {.allowed = true},
     .attn = {.rope_keys = MODEL_ROPE_KEYS_YARN, .temperature = MODEL_TEMPERATURE_ORIGINAL}},
    {{"maincoder"}, .attn = {.qk_norm = MODEL_QK_NORM_AFTER}},
    {{"baichuan"}, .known = {{.min_layers = 40, .max_layers = 40, .as = &baichuan_13b}}},
    {{"refact"}, .attn = {.rope = MODEL_ROPE_NONE, .alibi = 8},
     .alias = {{"attn_output.bias", ""}, {"ffn_gate.bias", ""}, {"ffn_up.bias", ""}, {"ffn_down.bias", ""}}},
    {{"granite", "granitemoe"}, .experts = {.allowed = true, .shared = MODEL_SHARED_LENGTH},
     .attn = {.scale = MODEL_SCALE_KEY, .rotate = MODEL_ROTATE_FINETUNED},
     .ends = {.embd_scale = MODEL_EMBD_KEY, .logit_scale = MODEL_LOGITS_DIVIDED, .residual_scale = true}},
    {{"graniteswitch"}, .plan.switched = true,
     .attn = {.scale = MODEL_SCALE_KEY, .rotate = MODEL_ROTATE_FINETUNED},
     .ends = {.embd_scale = MODEL_EMBD_KEY, .logit_scale = MODEL_LOGITS_DIVIDED, .residual_scale = true},
     .alias = {SWITCHED("attn_q"), SWITCHED("attn_k"), SWITCHED("attn_v"), SWITCHED("attn_output"),
               SWITCHED("ffn_gate"), SWITCHED("ffn_up"), SWITCHED("ffn_down")}},
    {{"minicpm"}, .experts = {.allowed = true}, .attn = {.scale = MODEL_SCALE_KEY},
     .ends = {.embd_scale = MODEL_EMBD_KEY, .embd_default = 12, .logit_scale = MODEL_LOGITS_DIVIDED,
              .logits_by_embd = 256, .residual_scale = true, .residual_default = 1.4f}},
    {{"nanbeige"}, .plan.loops = true, .ffn.scales = true},
    {{"hrm_text"}, .plan.stacks = true, .norm = MODEL_RMS_NORM_PLAIN, .ends.embd_scale = MODEL_EMBD_KEY,
     .attn = {.rope = MODEL_ROPE_NEOX, .gate = MODEL_GATE_SIGMOID},
     .alias = {{"hrm.z_l_init.weight", "hrm.z_l_init"}}},
    {{"chatglm"}, .ffn = {.form = MODEL_FFN_FUSED}},
    {{"glm4"}, .residual = MODEL_SANDWICH, .attn = {.rope_keys = MODEL_ROPE_KEYS_SECTIONS},
     .ffn = {.form = MODEL_FFN_FUSED}},

    /* The two elements of a RoPE pair are half a head apart. M-RoPE is the same for text
     * positions. */
    {{"qwen2vl"}, .attn = {.rope = MODEL_ROPE_NEOX, .rope_keys = MODEL_ROPE_KEYS_SECTIONS},
     .alias = {{"output.bias", ""}}},
    {{"paddleocr"}, .attn = {.rope = MODEL_ROPE_NEOX, .rope_keys = MODEL_ROPE_KEYS_SECTIONS}},
    {{"qwen2", "exaone", "pangu-embedded"}, .attn = {.rope = MODEL_ROPE_NEOX}},
    {{"bitnet"}, .attn = {.rope = MODEL_ROPE_NEOX}, .ffn.scales = true},
    {{"seed_oss"}, .attn = {.rope = MODEL_ROPE_NEOX},
     .alias = {{"ffn_norm.weight", "post_attention_norm.weight"}}},
    {{"qwen"}, .attn = {.rope = MODEL_ROPE_NEOX}, .ffn = {.divisor = 2}},
    {{"cogvlm"}, .attn = {.rope = MODEL_ROPE_NEOX, .rope_keys = MODEL_ROPE_KEYS_NONE},
     .alias = {{"attn_qkv.scale", ""}, {"rope_freqs.weight", ""}}},
    {{"phi3"}, .attn = {.rope = MODEL_ROPE_NEOX}, .ffn = {.form = MODEL_FFN_FUSED}},
    {{"plamo"}, .residual = MODEL_PARALLEL, .attn = {.rope = MODEL_ROPE_NEOX}},
    {{"qwen3"}, .ffn.scales = true, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD}},
    {{"openelm"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .alias = {{"attn_qkv.scale", ""}}},
    {{"qwen3vl"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD,
                           .rope_keys = MODEL_ROPE_KEYS_INTERLEAVED}},
    {{"hunyuan-dense", "hunyuan_vl"},
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_AFTER, .rope_keys = MODEL_ROPE_KEYS_ALPHA}},
    {{"exaone4"}, .residual = MODEL_POST_NORM,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .known = {{.min_layers = 64, .max_layers = 64, .as = &exaone4_32b}}},
    {{"olmo2"}, .residual = MODEL_POST_NORM,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_FULL,
              .window = {.rule = MODEL_WINDOW_PERIOD, .period = 4, .rope = MODEL_WINDOW_ROPE_UNSCALED}}},
    {{"talkie"}, .norm = MODEL_RMS_NORM_PLAIN, .ffn.scales = true,
     .alias = {{"ffn_gate.scale", ""}, {"ffn_up.scale", ""}},
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_GAIN},
     .ends = {.embd_norm = MODEL_EMBD_NORM_PLAIN, .embd_skip = true, .logit_scale = MODEL_LOGITS_TIMES}},
    /* The ids from 4 on are images. The file's names of norms are those of layers without swin_norm. */
    {{"chameleon"}, .residual = MODEL_POST_NORM_KEY,
     .attn = {.qk_norm = MODEL_QK_NORM_HEAD_LAYER, .qk_norm_eps = 1e-5f}, .ends.silent = {4, 8196},
     .alias = {{"post_attention_norm.weight", "attn_norm.weight"}, {"post_ffw_norm.weight", "ffn_norm.weight"}}},
    {{"apertus"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .ffn = {.form = MODEL_FFN_XIELU}},
    {.name = {NULL}},
};
