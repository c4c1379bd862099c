/* models/arch/gemma_tables.c: the Gemma family. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

/* clang-format off */
#define GEMMA3                                                              \
    .residual = MODEL_SANDWICH,                                             \
    .attn.rope = MODEL_ROPE_NEOX,                                           \
    .attn.qk_norm = MODEL_QK_NORM_HEAD,                                     \
    .attn.window = {MODEL_WINDOW_PERIOD, 6, MODEL_WINDOW_ROPE_OWN},         \
    .ffn.act = ENGINE_GELU,                                                 \
    .ends.embd_scale = MODEL_EMBD_SQRT
/* clang-format on */

static const struct model_arch gemma3_27b = {{"gemma3"}, GEMMA3, .attn.scale = MODEL_SCALE_BY_EMBD};

const struct model_arch model_arch_gemma[] = {
    {{"gemma3"}, GEMMA3, .known = {{.min_layers = 62, .max_layers = 62, .as = &gemma3_27b}}},
    {.name = {NULL}},
};
