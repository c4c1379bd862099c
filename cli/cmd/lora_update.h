/* cli/cmd/lora_update.h: what the adapters of --lora add to the rows of a model's weights, for
 * `infer merge-lora`: W + scale * alpha / r * B A, of embeddings row + scale * alpha / r * B a. */
#pragma once

#include "cli/adapters.h"
#include "engine/cpu/isa/vec.h"

struct cli_lora {
    struct cli_adapters adapters;
    const struct gguf_file *file; /* the model */
    struct engine *engine;        /* computes nothing: for the checks of a model */
    struct model *model;
};

/* The update of a tensor: for each of its rows n factors of as many rows of `right`. */
struct cli_lora_part {
    float *left, *right; /* [rows][rank], scaled; [matrices][rank][columns]; owned */
    uint64_t rank;
};
struct cli_lora_update {
    struct cli_lora_part part[MODEL_ADAPTERS_MAX]; /* in the order of the command line */
    uint32_t n;                                    /* 0: the tensor does not change */
    uint64_t columns, per_matrix;
};

/* Opens the adapters and checks that they fit the model. Fails with BASE_USAGE without one or for
 * an activated adapter. The caller calls _close, also after a failure. */
bool cli_lora_open(struct cli_lora *l, const struct cli_values *values,
                   const struct gguf_file *model, struct base_error *err);
void cli_lora_close(struct cli_lora *l); /* may be all zeros */

/* Reads the update of a tensor; the caller frees it, also after a failure. Fails with BASE_MODEL
 * for a tensor with a scale of its own, which multiplies its products, but not those of adapters.
 */
bool cli_lora_read(const struct cli_lora *l, const struct gguf_tensor *t, struct cli_lora_update *u,
                   struct base_error *err);
void cli_lora_update_free(struct cli_lora_update *u);
/* Adds the update to a row, which has the number `row` in the tensor: x = fmaf(right, left, x) for
 * ascending rows of `right`, adapter by adapter. */
void cli_lora_add(const struct cli_lora_update *u, const struct engine_vec *vec, uint64_t row,
                  float *x);

/* Whether the embeddings, which change, are the matrix of the output product too: an adapter of
 * them changes only what is looked up, so that the file needs a separate output matrix. */
bool cli_lora_unties(const struct cli_lora *l);
