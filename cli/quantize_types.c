/* cli/quantize_types.c: the names of types and mixes. See cli/quantize_types.h. */
#include "cli/quantize_types.h"
#include <stddef.h>

static const struct cli_quantize_mix mixes[] = {
    {"Q3_K_M", QUANT_Q3_K, QUANT_Q6_K, QUANT_Q4_K, QUANT_Q4_K, QUANT_Q4_K, true, 12},
    {"Q3_K_S", QUANT_Q3_K, QUANT_Q6_K, QUANT_Q3_K, QUANT_Q3_K, QUANT_Q3_K, false, 11},
    {"Q4_K_M", QUANT_Q4_K, QUANT_Q6_K, QUANT_Q6_K, QUANT_Q6_K, QUANT_Q4_K, false, 15},
    {"Q4_K_S", QUANT_Q4_K, QUANT_Q6_K, QUANT_Q4_K, QUANT_Q4_K, QUANT_Q4_K, false, 14},
    {"Q5_K_M", QUANT_Q5_K, QUANT_Q6_K, QUANT_Q6_K, QUANT_Q6_K, QUANT_Q5_K, false, 17},
    {"Q5_K_S", QUANT_Q5_K, QUANT_Q6_K, QUANT_Q5_K, QUANT_Q5_K, QUANT_Q5_K, false, 16},
};
enum { N_MIXES = sizeof mixes / sizeof *mixes };

const struct cli_quantize_mix *cli_quantize_mix_at(size_t i)
{
    return i < N_MIXES ? &mixes[i] : NULL;
}

const char *cli_quantize_type_name(size_t i)
{
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (type && type->encode && i-- == 0) return type->name;
    }
    return i < N_MIXES ? mixes[i].name : NULL;
}
