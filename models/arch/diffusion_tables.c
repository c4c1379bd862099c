/* models/arch/diffusion_tables.c: models that replace masked tokens of a whole text, step by step. See
 * models/arch/arch.h. */
#include "models/arch/arch_tables.h"

const struct model_arch model_arch_diffusion[] = {
    {{"dream"}, .diffusion = true, .attn.rope = MODEL_ROPE_NEOX, .alias = {{"output.bias", ""}}},
    {{"llada"}, .diffusion = true,
     .alias = {{"attn_output.bias", ""}, {"ffn_gate.bias", ""}, {"ffn_up.bias", ""}, {"ffn_down.bias", ""},
               {"rope_freqs.weight", ""}}},
    {{"llada-moe"}, .diffusion = true, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .experts = {.allowed = true, .own_length = true, .normalize = MODEL_NORMALIZE_NEVER}},
    {{"rnd1"}, .diffusion = true, .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD},
     .experts = {.allowed = true, .own_length = true}},
    {.name = {NULL}},
};
