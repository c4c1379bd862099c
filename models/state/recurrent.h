/* models/state/recurrent.h: convolution and recurrent states of several sequences.
 *
 * Such a state is a function of all tokens before it and cannot be shortened. A slot stores the
 * states of all layers after some token. A sequence has a list of slots by length, its snapshots;
 * the last one is its present state. A run of the graph reads that slot and writes another one, so
 * each slot is written once: a run that fails leaves the state before it, and forks share slots. A
 * slot has a count of the sequences that name it. Slot 0 is the state of no tokens: zeros, never
 * written.
 *
 *     sequence 0, lengths     20   31   32          31: before a prompt, 32: at its end
 *       its slots              1    2    3
 *     sequence 1, lengths     20   31               a fork of 31 tokens
 *       its slots              1    2
 *     refcounts of slots       2    2    1   0 ..
 *
 * Truncation goes back to the nearest earlier snapshot; the caller evaluates the rest again.
 * Snapshots at the beginning and end of a run of several tokens (the borders of prompts) are kept;
 * those of single tokens only until the next batch. When a sequence has `capacity` of them, the one
 * that takes the fewest tokens to recompute is evicted, so that their distances become similar. */
#pragma once

#include "models/params.h"

struct model_recurrent_layer {
    struct engine_tensor conv;  /* F32 [slots][1][columns][channels]; no data: the layer has none */
    struct engine_tensor state; /* F32 [slots][heads][rows][cols]; no data: the layer has none */
    struct engine_tensor shift; /* F32 [slots][1][1][channels]; no data: the layer has none */
    struct engine_tensor front; /* as conv, of what changes the layer's input */
};

enum { MODEL_SNAPSHOTS_MAX = 16 }; /* of a sequence */

struct model_snapshot {
    uint32_t length; /* tokens */
    int32_t slot;
    bool border; /* at a border of a run of several tokens */
};

struct model_recurrent {
    struct model_recurrent_layer *layer; /* [n_layer] */
    uint32_t n_layer;
    uint32_t capacity;  /* maximum of snapshots of a sequence; 0: no layer has a state */
    uint32_t count;     /* slots: 1 + n_seq * capacity */
    uint32_t *refcount; /* [count]: snapshots that name the slot */
    struct model_snapshot *snapshot; /* [n_seq][capacity], by length */
    uint32_t *n_snapshot;            /* [n_seq] */
    uint32_t *start; /* [n_seq]: the length at which the latest batch began: its snapshot is kept */
};

extern const struct model_state_kind model_state_recurrent;
