/* models/arch/arch_tables.h: the rows of each family. A row without a name ends a list. */
#pragma once

#include "models/arch/arch.h"

/* Q, K and V have no biases or scales: tensors with these names are ignored. */
#define BARE_QKV                                                                                    \
    {"attn_q.bias", ""}, {"attn_k.bias", ""}, {"attn_v.bias", ""}, {"attn_q.scale", ""},            \
        {"attn_k.scale", ""}, {"attn_v.scale", ""}

extern const struct model_arch model_arch_llama[];
extern const struct model_arch model_arch_gemma[];
extern const struct model_arch model_arch_gpt[];
extern const struct model_arch model_arch_window[];
extern const struct model_arch model_arch_experts[];
extern const struct model_arch model_arch_latent[];
extern const struct model_arch model_arch_hybrid[];
extern const struct model_arch model_arch_source[];
extern const struct model_arch model_arch_diffusion[];
extern const struct model_arch model_arch_encoder[];
extern const struct model_arch model_arch_drafter[]; /* not models by themselves */
