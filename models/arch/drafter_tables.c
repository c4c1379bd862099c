/* models/arch/drafter_tables.c: models that draft tokens for another one. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

const struct model_arch model_arch_drafter[] = {
    {{"eagle3"}, .drafter = MODEL_DRAFTER_EAGLE3, .attn.pairs = true, .alias = {{"d2t.weight", "d2t"}}},
    {{"dflash"}, .drafter = MODEL_DRAFTER_DFLASH, .ends.embd_scale = MODEL_EMBD_KEY, .ffn.act_key = true,
     .attn = {.rope = MODEL_ROPE_NEOX, .qk_norm = MODEL_QK_NORM_HEAD, .scale = MODEL_SCALE_KEY,
              .window.rule = MODEL_WINDOW_ALL}, .alias = {{"d2t.weight", "d2t"}}},
    {.name = {NULL}},
};
