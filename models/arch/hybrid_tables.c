/* models/arch/hybrid_tables.c: layers that carry a state from token to token, alone or with
 * attention between them. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

const struct model_arch model_arch_hybrid[] = {
    {{"lfm2"}, .plan = {MODEL_PLAN_KV_HEADS, MODEL_ATTENTION, MODEL_SHORT_CONV},
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .window.rule = MODEL_WINDOW_ALL},
     .alias = {{"output_norm.weight", "token_embd_norm.weight"}}},
    {{"lfm2moe"}, .plan = {MODEL_PLAN_KV_HEADS, MODEL_ATTENTION, MODEL_SHORT_CONV},
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .experts = {.allowed = true, .own_length = true, .leading = true, .gating_key = true},
     .alias = {{"output_norm.weight", "token_embd_norm.weight"}}},
    {.name = {NULL}},
};
