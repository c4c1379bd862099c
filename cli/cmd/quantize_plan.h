/* cli/cmd/quantize_plan.h: the target type of each tensor of a model.
 *
 * The first of these that applies determines it: --embedding-type, --output-type, --tensor-type,
 * the rules of the mix (cli/quantize_types.h; none with --pure), the base of the mix. */
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cli/quantize_types.h"
#include "gguf/gguf.h"

/* An override: the type for the names that match a pattern. */
struct cli_quantize_override {
    const char *text; /* PATTERN=TYPE */
    struct pcre2_real_code_8 *pattern;
    const struct quant_type *type;
};

/* The file_type of types that have no number. */
#define CLI_FILE_TYPE_NONE UINT32_MAX

struct cli_quantize_plan {
    const struct quant_type *base;
    const struct quant_type *output;    /* output matrix (tied: the embeddings); NULL: by rules */
    const struct quant_type *embedding; /* token embeddings; NULL: by rules */
    const struct cli_quantize_mix *mix; /* NULL: a plain type */
    struct cli_quantize_override override[CLI_LIST_MAX];
    size_t n_overrides;
    struct pcre2_real_match_data_8 *match;
    const struct gguf_file *file;
    const struct quant_type **overridden; /* [tensors]: by the overrides; NULL: none matches */
    unsigned facts;                       /* the conditions of rules that the model satisfies */
    uint32_t file_type;                   /* general.file_type; not used for a mix that copies */
    uint64_t n_layer, n_values;           /* layers; tensors whose role is VALUE */
    uint64_t *rank; /* [tensors]: number of converted tensors of its role before it */
    bool has_experts;
    bool tied; /* the model has no output.weight */
};

/* Makes a plan from the options of `quantize` for TYPE `name`, or NULL, with which only options
 * determine types; `file` must outlive it. has_matrix: there is an importance matrix. Fails with
 * BASE_USAGE for an unknown name, a type without an encoder, or a pattern that is invalid or
 * matches nothing. The caller frees the plan, after a failure too. */
bool cli_quantize_plan_make(struct cli_quantize_plan *p, const struct gguf_file *file,
                            const struct cli_values *values, const char *name, bool has_matrix,
                            struct base_error *err);
void cli_quantize_plan_free(struct cli_quantize_plan *p);

/* The type of a tensor that is copied: its own, or that of its rows without interleaving. */
const struct quant_type *cli_quantize_own_type(const struct gguf_tensor *t);

/* Returns the target type of tensor `index`, which is its own if it is not converted; NULL if the
 * plan has no TYPE and no option determines it. *fell_back: the planned type's block does not
 * divide its rows. */
const struct quant_type *cli_quantize_plan_type(const struct cli_quantize_plan *p, uint64_t index,
                                                bool *fell_back);

/* Returns whether a tensor is a copy by columns of another one (quant/columns.h), which no output
 * takes over: it has the old rows. */
bool cli_quantize_is_copy(const struct gguf_tensor *t);

/* Returns the role of tensor `index`; that of embeddings is OUTPUT if the model has no output. */
unsigned cli_quantize_plan_role(const struct cli_quantize_plan *p, uint64_t index);

/* Returns the name of the type or mix by general.file_type, such as "Q4_K_M"; NULL if the key is
 * absent or unknown. */
const char *cli_quantize_name(const struct gguf_file *file);
