/* models/arch/arch.c: the architecture table. See models/arch/arch.h. */
#include "models/arch/arch.h"
#include <string.h>

static const struct model_arch archs[] = {
    {.name = "llama",
     .features = MODEL_MAY_MIX,
     .rope = ENGINE_ROPE_NORMAL,
     .activation = ENGINE_SILU},
    {.name = "qwen2", .rope = ENGINE_ROPE_NEOX, .activation = ENGINE_SILU},
    {.name = "qwen3",
     .features = MODEL_QK_NORM,
     .rope = ENGINE_ROPE_NEOX,
     .activation = ENGINE_SILU},
    {.name = "gemma3",
     .features = MODEL_QK_NORM | MODEL_POST_NORMS | MODEL_EMBD_SCALE,
     .rope = ENGINE_ROPE_NEOX,
     .activation = ENGINE_GELU,
     .window_period = 6,
     .window_rope_base = 10000.0f,
     .known = {{.n_layer = 62, .attention_scale = MODEL_SCALE_BY_EMBD}}}, /* 27B */
};

const struct model_arch *model_arch_find(struct gguf_str name)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strlen(archs[i].name) == name.size && !memcmp(archs[i].name, name.data, name.size))
            return &archs[i];
    return NULL;
}

const struct model_arch *model_arch_at(size_t i)
{
    return i < sizeof archs / sizeof *archs ? &archs[i] : NULL;
}
