/* models/arch/drafter_tables.c: models that draft tokens for another one. See models/arch/arch.h. */
#include "models/arch/arch_tables.h"

const struct model_arch model_arch_drafter[] = {
    {{"eagle3"}, .drafter = MODEL_DRAFTER_EAGLE3, .attn.pairs = true, .alias = {{"d2t.weight", "d2t"}}},
    {.name = {NULL}},
};
