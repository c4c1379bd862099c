/* models/state/kv_cache.h: keys and values of several sequences.
 *
 * A slot stores a position's keys and values of one layer, and its key of an indexer. Layers of one
 * kind (those that attend to all positions, those with a sliding window) share the numbering of
 * slots; each layer has its own pool of slots. Each sequence has a block table, which names the
 * slot of each of its positions; the attention op reads slots through these tables, so callers do
 * not depend on where a position is stored. A slot has a count of the sequences whose tables name
 * it: a fork copies a table, and if a unit has several slots, the rows of an incomplete last group.
 * Only the sequence that reserved a slot writes it, once; a slot is free when its count is 0.
 *
 *     positions of sequence 0     0   1   2   3
 *       their slots               0   1   2   3
 *     positions of sequence 1     0   1   2           a fork of two positions (without groups)
 *       their slots               0   1  32
 *     refcounts of slots 0 ..     2   2   1   1   0 ..  1 (slot 32)  0 ..
 *
 * A sequence keeps all its positions in layers of full attention. In layers with a window it keeps
 * the last `capacity` ones: window + batch, because all tokens of a batch are written before its
 * first token reads. A pool has n_seq times that many slots, so a free one always exists; the
 * memory of unused slots is never touched. */
#pragma once

#include "engine/kv.h"
#include "models/params.h"

enum model_kv_kind {
    MODEL_KV_FULL,
    MODEL_KV_SLIDING,
    /* Compressed keys: one for each complete block of positions. Layers with these have keys of
     * positions too: those with a sliding window in the same tensors, whose first slots are those;
     * in others blocks have only keys of an indexer. */
    MODEL_KV_FINE,   /* of blocks that overlap */
    MODEL_KV_COARSE, /* of blocks that do not */
    MODEL_KV_KINDS   /* none */
};

/* What a layer caches for each position: keys, values, the keys of an indexer, which chooses the
 * keys that a query attends to, and in F32 what the keys of blocks will be made of. Blocks have the
 * keys of an indexer, which positions then lack, and in layers with a window keys and values. */
enum model_kv_part {
    MODEL_KV_KEYS,
    MODEL_KV_VALUES,
    MODEL_KV_INDEX,
    MODEL_KV_OPEN,
    MODEL_KV_PARTS
};

struct model_kv_rows {
    struct engine_tensor t; /* [heads][units][..]: units of slots in the form of the device; no
                               data: the layer has none */
    struct engine_kv_form form;
    enum quant_id type; /* of the values that the form stores */
};

struct model_kv_layer {
    struct model_kv_rows part[MODEL_KV_PARTS];
    enum model_kv_kind kind;
    enum model_kv_kind blocks; /* the kind of its compressed keys; MODEL_KV_KINDS: none */
    bool present;              /* the layer keeps keys and values */
};

struct model_kv_slots {
    uint32_t ratio;            /* positions of a block; 1: positions. Below, blocks are positions */
    uint32_t entries;          /* n_ctx / ratio, at least 1 */
    uint32_t capacity;         /* positions that a sequence keeps; 0: no layer is of this kind */
    uint32_t base;             /* the first slot */
    uint32_t count;            /* n_seq * capacity */
    uint32_t *refcount;        /* [count]: block tables that name the slot */
    int32_t *table;            /* block tables [n_seq][entries] */
    uint32_t *oldest;          /* [n_seq]: the first position that is kept */
    struct engine_tensor view; /* a tensor of the block tables */
};

struct model_kv {
    struct model_kv_layer *layer; /* [n_layer] */
    uint32_t n_layer;             /* layers of all runs (model_run_layer), and of a drafter */
    uint32_t window;              /* window of sliding layers; 0: there are none */
    bool both; /* tokens attend to later ones too; windows reach window / 2 positions to each side.
                  A sequence is one run, so all layers of one shape use the same memory */
    bool chunked; /* sliding layers attend to positions from a multiple of `window` on */
    struct model_kv_slots slots[MODEL_KV_KINDS];
    uint32_t *draft_first; /* [n_seq]: a drafter has keys and values only from this position on */
    bool is_coded;         /* a layer's units have several slots */
};

/* The inputs of a graph; NULL for a kind that the model has no layer of. */
struct model_kv_inputs {
    struct engine_tensor *slot[MODEL_KV_KINDS];  /* I32 [T]: where each token is written */
    struct engine_tensor *range[MODEL_KV_KINDS]; /* I32 [T][4]: the range of its attention */
    /* Of kinds of blocks: I32 [T][4], the positions of the block that the token ends, or an empty
     * range; I32 [T], their first one. A token that ends no block has the slot -1. */
    struct engine_tensor *ended[MODEL_KV_KINDS], *start[MODEL_KV_KINDS];
};

extern const struct model_state_kind model_state_kv;
