/* test/support_model_tables.c: a tiny model for each architecture. See test/support_model.h. */
#include "test/support_model.h"

#define QKV_BIAS "attn_q.bias attn_k.bias attn_v.bias"

/* The other implementation's GELU goes through a half-precision table: hence the bars of 1e-6. */
const struct support_fixture support_fixtures[] = {
    {"llama", "llama", .with = QKV_BIAS},
    {"llama-fused", "llama", .tied = true, .with = "attn_qkv.weight"},
    {"llama-moe", "llama", .n_expert = 4, .n_expert_used = 2},
    {"qwen2", "qwen2", .with = QKV_BIAS},
    {"qwen3", "qwen3", .tied = true},
    {"gemma3", "gemma3", .n_layer = 7, .window = 8, .tied = true, .bar = 1e-6},
    {.name = NULL},
};
