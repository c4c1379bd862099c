/* models/arch/gemma_tables.c: the Gemma family. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

#define GEMMA .attn.rope = MODEL_ROPE_NEOX, .ffn.act = ENGINE_GELU, .ends.embd_scale = MODEL_EMBD_SQRT
#define GEMMA2                                                                                      \
    GEMMA, .residual = MODEL_SANDWICH, .attn.softcap = 50, .ends.softcap_key = true, .ends.softcap = 30, \
        .attn.window = {MODEL_WINDOW_PERIOD, 2, MODEL_WINDOW_ROPE_BASE, .size = 4096}
#define GEMMA3                                                                                      \
    GEMMA, .residual = MODEL_SANDWICH, .attn.qk_norm = MODEL_QK_NORM_HEAD, .ends.softcap_key = true, \
        .attn.window = {.rule = MODEL_WINDOW_PERIOD, .period = 6, .rope = MODEL_WINDOW_ROPE_OWN}

#define GEMMA3N                                                                                     \
    .residual = MODEL_SANDWICH, .plan = {.per_layer = true, .altup = true},                          \
        .ffn = {.act = ENGINE_GELU, .sparse = 10}, .ends = {.embd_scale = MODEL_EMBD_SQRT, .softcap = 30}, \
        .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .scale = MODEL_SCALE_ONE,     \
                 .v_norm = true, .sharing = MODEL_KV_SHARED_FROM_20,                                   \
                 .window = {.rule = MODEL_WINDOW_PERIOD, .period = 5, .rope = MODEL_WINDOW_ROPE_OWN}}
#define GEMMA4                                                                                      \
    .residual = MODEL_SANDWICH, .plan.per_layer = true, .ffn = {.act = ENGINE_GELU, .scales = true},     \
        .ends = {.embd_scale = MODEL_EMBD_SQRT, .softcap_key = true, .softcap = 30, .layer_scale = true}, \
        .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .scale = MODEL_SCALE_ONE,     \
                 .v_norm = true, .k_as_v = true, .sharing = MODEL_KV_SHARED_KEY, \
                 .window = {.rule = MODEL_WINDOW_MARKED, .rope = MODEL_WINDOW_ROPE_OWN, .own_heads = true}}, \
        .experts = {.allowed = true, .own_length = true, .beside = MODEL_BESIDE_NORMS}

static const struct model_arch gemma2_27b = {{"gemma2"}, GEMMA2, .attn.scale = MODEL_SCALE_BY_EMBD};
static const struct model_arch gemma3_27b = {{"gemma3"}, GEMMA3, .attn.scale = MODEL_SCALE_BY_EMBD};

const struct model_arch model_arch_gemma[] = {
    {{"gemma"}, GEMMA},
    {{"gemma2"}, GEMMA2, .known = {{.min_layers = 46, .max_layers = 46, .as = &gemma2_27b}}},
    {{"gemma3"}, GEMMA3, .known = {{.min_layers = 62, .max_layers = 62, .as = &gemma3_27b}}},
    {{"gemma3n"}, GEMMA3N},
    {{"gemma4"}, GEMMA4},
    {.name = {NULL}},
};
