/* test/support_adapter.h: writes adapters (LoRA) with random factors for a model file, and the
 * model that results from merging them, computed in double: what evaluation beside the weights is
 * compared with. */
#pragma once

#include "gguf/gguf.h"

struct support_adapter {
    uint64_t seed;
    uint32_t rank;
    float alpha;                   /* 0: no key */
    const struct quant_type *type; /* of the factors */
    const char *only;              /* words of which a name must have one; NULL: any name */
    const char *without;           /* words that exclude a name; NULL: none */
    const char *invocation;        /* ids separated by spaces; NULL: no activated adapter */
};

/* The update of each matrix is about a third of its size. */
bool support_adapter_write(const struct support_adapter *a, const char *model, const char *path,
                           struct base_error *err);
/* Writes the model with scale[i] times adapter[i] added to its weights, all in F32. A model whose
 * output product uses the embeddings gets a separate output matrix, which an adapter of the
 * embeddings does not change; one with a classifier has no output product. */
bool support_adapter_merge(const char *model, const char *const *adapter, const float *scale, int n,
                           const char *path, struct base_error *err);
