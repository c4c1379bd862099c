/* cli/cmd/quantize_plan.h: which type each tensor of a model becomes.
 *
 * A name is a type (every matrix becomes it) or a mix: NAME_S is the type with a Q6_K output
 * matrix, NAME_M also gives more bits to value and down projections in the layers that are most
 * sensitive to errors (the first and last eighth and every third between). */
#ifndef CLI_CMD_QUANTIZE_PLAN_H
#define CLI_CMD_QUANTIZE_PLAN_H

#include "base/error.h"
#include "cli/quantize_types.h"
#include "gguf/gguf.h"

struct cli_quantize_plan {
    const struct quant_type *base;
    const struct quant_type *output;    /* output matrix (tied: the embeddings); NULL: base */
    const struct quant_type *embedding; /* token embeddings; NULL: base */
    const struct cli_quantize_mix *mix; /* NULL: a plain type */
    uint32_t file_type;                 /* general.file_type */
    uint32_t n_layer;
    bool tied; /* there is no output.weight */
};

/* output and embedding are --output-type and --embedding-type, or NULL. BASE_USAGE for a name that
 * is no type, or a type that cannot be encoded. */
bool cli_quantize_plan_make(struct cli_quantize_plan *p, const struct gguf_file *file,
                            const char *name, const char *output, const char *embedding,
                            struct base_error *err);

/* The type that a tensor becomes: its own when it is not converted. *fell_back: its rows are no
 * multiple of the wanted type's block. */
const struct quant_type *cli_quantize_plan_type(const struct cli_quantize_plan *p,
                                                const struct gguf_tensor *t, bool *fell_back);

/* The type or mix of a file by general.file_type: "Q4_K_M", or NULL when that is absent or has no
 * name here. */
const char *cli_quantize_name(const struct gguf_file *file);

#endif
