/* models/arch/llama_tables.c: llama and its near relatives. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

const struct model_arch model_arch_llama[] = {
    {{"llama"}, .experts = {.allowed = true}},
    {{"qwen2"}, .attn = {.rope = MODEL_ROPE_NEOX}},
    {{"qwen3"}, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD}},
    {.name = {NULL}},
};
