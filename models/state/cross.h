/* models/state/cross.h: the keys and values of the text that an encoder has read, for the cross
 * attention of a decoder.
 *
 * A sequence begins with this text, its source, as a whole. Each sequence with a source names a
 * region of n_ctx slots; forks share it, and a region is free when no sequence names it. A sequence
 * cannot be cut back into its source, only to nothing. */
#pragma once

#include "models/params.h"

struct model_cross_layer {
    struct engine_tensor k, v; /* F32 [n_seq * n_ctx][KH D], [..][KH DV] */
};

struct model_cross {
    struct model_cross_layer *layer; /* [n_layer]; NULL: the model has no encoder */
    uint32_t n_layer;
    uint32_t *source;          /* [n_seq]: tokens of the source; 0: none */
    uint32_t *region;          /* [n_seq] */
    uint32_t *refcount;        /* [n_seq]: sequences that name the region */
    int32_t *table;            /* [n_seq][n_ctx]: the slots of the sequences' positions */
    struct engine_tensor view; /* a tensor of the tables */
};

extern const struct model_state_kind model_state_cross;
