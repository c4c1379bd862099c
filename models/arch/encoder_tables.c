/* models/arch/encoder_tables.c: encoders, whose tokens attend in both directions, alone or before a
 * decoder. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

/* BERT: the sum of a sublayer's input and output is normalized, and so are the embeddings. */
#define BERT                                                                                       \
    .encoder = true, .norm = MODEL_LAYER_NORM, .residual = MODEL_SUM_NORM
#define BERT_NAMES                                                                                 \
    {"post_attention_norm.weight", "attn_output_norm.weight"},                                     \
        {"post_attention_norm.bias", "attn_output_norm.bias"},                                     \
        {"post_ffw_norm.weight", "layer_output_norm.weight"},                                      \
        {"post_ffw_norm.bias", "layer_output_norm.bias"}
#define BERT_ENDS .embd_norm = MODEL_EMBD_NORM, .token_types = true

const struct model_arch model_arch_source[] = {
    {{"t5"}, .source = true, .prefix = "dec.",
     .attn = {.rope = MODEL_ROPE_NONE, .relative = true, .scale = MODEL_SCALE_ONE},
     .ffn = {.form = MODEL_FFN_BY_TENSORS, .act = ENGINE_GELU, .plain_relu = true},
     .alias = {{"output_norm.weight", "dec.output_norm.weight"}, {"attn_output.weight", "attn_o.weight"}}},
    {.name = {NULL}},
};

const struct model_arch model_arch_encoder[] = {
    {{"bert"}, BERT, .attn = {.rope = MODEL_ROPE_NONE}, .ends = {BERT_ENDS, .positions = true},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU_ERF}, .alias = {BERT_NAMES}},
    {{"nomic-bert"}, BERT, .attn = {.rope = MODEL_ROPE_NEOX}, .ends = {BERT_ENDS},
     .ffn = {.form = MODEL_FFN_GATED},
     .alias = {BERT_NAMES, {"ffn_gate.bias", ""}, {"ffn_up.bias", ""}, {"ffn_down.bias", ""}}},
    {{"nomic-bert-moe"}, BERT, .attn = {.rope = MODEL_ROPE_NEOX}, .ends = {BERT_ENDS},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU_ERF}, .alias = {BERT_NAMES},
     .experts = {.allowed = true, .every = true, .plain = true, .scale_key = true,
                 .normalize = MODEL_NORMALIZE_NEVER}},
    {{"jina-bert-v3"}, BERT, .attn = {.rope = MODEL_ROPE_NEOX}, .ends = {BERT_ENDS},
     .ffn = {.form = MODEL_FFN_PLAIN, .act = ENGINE_GELU_ERF}, .alias = {BERT_NAMES}},
    {{"jina-bert-v2"}, BERT, .ends = {BERT_ENDS},
     .attn = {.rope = MODEL_ROPE_NONE, .alibi = 8, .qk_norm = MODEL_QK_NORM_FULL_LAYER, .qk_norm_optional = true},
     .ffn = {.form = MODEL_FFN_BY_TENSORS, .act = ENGINE_GELU_ERF}, .alias = {BERT_NAMES}},
    {{"modern-bert"}, .encoder = true, .norm = MODEL_LAYER_NORM, .ends.embd_norm = MODEL_EMBD_NORM,
     .attn = {.rope = MODEL_ROPE_NEOX,
              .window = {.rule = MODEL_WINDOW_FIRST, .period = 3, .rope = MODEL_WINDOW_ROPE_OWN}},
     .ffn = {.form = MODEL_FFN_FUSED, .act = ENGINE_GELU_ERF, .act_key = true},
     .plan.first_plain = true, .pool = {.rank = MODEL_POOL_MEAN, .gelu = true}},
    {{"neo-bert"}, .encoder = true, .ffn.form = MODEL_FFN_FUSED,
     .alias = {{"output_norm.weight", "enc.output_norm.weight"}}},
    {{"eurobert"}, .encoder = true, .attn.rope = MODEL_ROPE_NEOX},
    {{"llama-embed"}, .encoder = true, .ffn.scales = true, .experts = {.allowed = true}},
    {{"gemma-embedding"}, .encoder = true, .residual = MODEL_SANDWICH, .ffn.act = ENGINE_GELU,
     .ends.embd_scale = MODEL_EMBD_SQRT, .alias = {{"output.weight", ""}},
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD,
              .window = {.rule = MODEL_WINDOW_PERIOD, .period = 6, .rope = MODEL_WINDOW_ROPE_OWN}}},
    {{"t5encoder"}, .encoder = true, .prefix = "enc.",
     .attn = {.rope = MODEL_ROPE_NONE, .relative = true, .scale = MODEL_SCALE_ONE},
     .ffn = {.form = MODEL_FFN_BY_TENSORS, .act = ENGINE_GELU, .plain_relu = true},
     .alias = {{"output_norm.weight", "enc.output_norm.weight"}, {"attn_output.weight", "attn_o.weight"}}},
    {.name = {NULL}},
};
