/* cli/cmd/quantize_plan.h: which type each tensor of a model becomes.
 *
 * Of what is said of a tensor the first counts: --embedding-type, --output-type, --tensor-type, the
 * rules of the mix (cli/quantize_types.h; --pure: none), its base. */
#ifndef CLI_CMD_QUANTIZE_PLAN_H
#define CLI_CMD_QUANTIZE_PLAN_H

#include "base/error.h"
#include "cli/options.h"
#include "cli/quantize_types.h"
#include "gguf/gguf.h"

/* A type that a pattern of names gives. */
struct cli_quantize_override {
    struct pcre2_real_code_8 *pattern;
    const struct quant_type *type;
};

struct cli_quantize_plan {
    const struct quant_type *base;
    const struct quant_type *output;    /* output matrix (tied: the embeddings); NULL: by rules */
    const struct quant_type *embedding; /* token embeddings; NULL: by rules */
    const struct cli_quantize_mix *mix; /* NULL: a plain type */
    struct cli_quantize_override override[CLI_LIST_MAX];
    size_t n_overrides;
    struct pcre2_real_match_data_8 *match;
    const struct gguf_file *file;
    unsigned facts;     /* the conditions of rules that hold for the model */
    uint32_t file_type; /* general.file_type; of a mix that copies: unused */
    uint32_t n_layer;
    uint32_t *n_values; /* [n_layer + 1]: tensors that are VALUE in the layers before */
    bool tied;          /* there is no output.weight */
};

/* A plan by the options of `quantize` for TYPE `name`; `file` must outlive it. has_matrix: there is
 * an importance matrix. BASE_USAGE for a name that is no type, a type that cannot be encoded, a
 * pattern that is none. To be freed also after an error. */
bool cli_quantize_plan_make(struct cli_quantize_plan *p, const struct gguf_file *file,
                            const struct cli_values *values, const char *name, bool has_matrix,
                            struct base_error *err);
void cli_quantize_plan_free(struct cli_quantize_plan *p);

/* The type that a tensor becomes: its own when it is not converted. *fell_back: its rows are no
 * multiple of the wanted type's block. */
const struct quant_type *cli_quantize_plan_type(const struct cli_quantize_plan *p,
                                                const struct gguf_tensor *t, bool *fell_back);

/* The type or mix of a file by general.file_type: "Q4_K_M", or NULL when that is absent or has no
 * name here. */
const char *cli_quantize_name(const struct gguf_file *file);

#endif
