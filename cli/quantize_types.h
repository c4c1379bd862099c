/* cli/quantize_types.h: the outputs of `infer quantize`: the types that have an encoder, and mixes
 * of them. Help, manual, completion and the command itself use these lists. */
#ifndef CLI_QUANTIZE_TYPES_H
#define CLI_QUANTIZE_TYPES_H

#include "quant/quant.h"

struct cli_quantize_mix {
    const char *name;
    enum quant_id base, output;
    enum quant_id value;     /* attn_v and fused QKV in layers that get more */
    enum quant_id down;      /* ffn_down in layers that get more */
    enum quant_id attention; /* attn_output */
    bool all_layers;         /* value and down get more in all layers */
    uint32_t file_type;      /* general.file_type */
};

/* Mix i; NULL past the last one. */
const struct cli_quantize_mix *cli_quantize_mix_at(size_t i);
/* Name i of all types, then of all mixes; NULL past the last one. */
const char *cli_quantize_type_name(size_t i);

#endif
