/* models/adapter_set.h: the adapters and control vectors of a model, as its graphs use them.
 * Private to models/. */
#pragma once

#include "engine/graph.h"
#include "models/adapter.h"

/* What an adapter has for one tensor of the model. */
struct model_adapter_part {
    bool exists, is_table;            /* is_table: rows of the tensor are looked up */
    bool refused;                     /* a graph multiplies the tensor where adapters cannot act */
    float factor;                     /* alpha / r */
    struct engine_tensor a;           /* [r][inputs], experts [X][r][inputs], table [rows][r] */
    struct engine_tensor b;           /* B^T in panels, see engine_add_low_rank */
    const struct gguf_tensor *second; /* B in the file */
};

struct model_adapter {
    const struct gguf_file *file;                    /* not owned */
    struct model_adapter_part *part;                 /* [n_tensors], owned */
    struct engine_buffer buffers[ENGINE_PLACES_MAX]; /* factors of the weights in each */
    int32_t *invocation;                             /* owned */
    struct model_adapter_facts facts;
};

struct model_adapter_set {
    const struct engine_tensor *tensors; /* [n_tensors] of the model */
    uint32_t n_tensors;
    struct model_adapter item[MODEL_ADAPTERS_MAX];
    uint32_t count;
    float *directions;               /* [n_layer][E], owned; NULL: no control vector */
    struct engine_tensor *direction; /* [n_layer], owned; without data: none for this layer */
    struct engine_buffer placed[ENGINE_PLACES_MAX]; /* those of layers in other places */
};

/* Returns what adapter i has for a tensor or for the tensor that it is a view of; NULL: nothing. */
struct model_adapter_part *model_adapter_part_of(const struct model_adapter_set *set, uint32_t i,
                                                 const struct engine_tensor *weight, bool is_table);
/* Fails with BASE_MODEL if a part is refused by a graph that was built. */
bool model_adapters_check(const struct model_adapter_set *set, struct base_error *err);
void model_adapters_free(struct model_adapter_set *set);
