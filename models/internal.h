/* models/internal.h: the model and its graphs, shared by the files of this room. */
#pragma once

#include "models/adapter_set.h"
#include "models/block/blocks.h"
#include "models/model.h"
#include "models/weights.h"

struct model {
    const struct gguf_file *file; /* not owned */
    struct engine *engine;        /* not owned */
    struct model_params params;
    struct model_weights weights;
    struct model_facts facts;
    struct model_adapter_set adapters;
};

/* ---- Graphs (build.c) ---- */

/* The graph of a drafter for T tokens. At position p it reads token p and the hidden states of
 * position p - 1 (DFlash: no token, and those of p), and stores keys and values in the slot of
 * token p. */
struct model_drafter_graph {
    struct engine_graph *graph;
    struct engine_tensor *ids, *positions; /* I32 [T] */
    struct engine_tensor *hidden;          /* F32 [T][..]: see enum model_drafter_use */
    struct model_state_inputs inputs;      /* only keys and values */
    struct engine_tensor *near; /* I32 [T][4]: ranges of layers that attend to near positions */
    /* F32 [n][E], the drafter's own hidden states, and F32 [n][V], the logits of n draft tokens;
     * both NULL in a graph that only stores keys and values */
    struct engine_tensor *next, *logits;
};

enum model_drafter_use {
    MODEL_DRAFTER_STORES,  /* keys and values; `hidden` are those that the drafter reads */
    MODEL_DRAFTER_GUESSES, /* and a draft token */
    MODEL_DRAFTER_CHAINS,  /* likewise, after another draft token; `hidden` is its `next` */
    MODEL_DRAFTER_BLOCKS   /* draft tokens in the places of all tokens but the first; no `hidden` */
};
struct model_drafter;
bool model_drafter_build(struct model_drafter_graph *g, const struct model_drafter *d,
                         uint32_t n_tokens, enum model_drafter_use use, struct base_error *err);

/* The graph of an encoder for a text of T tokens, which ends in the decoder's keys and values of
 * it. */
struct model_source_graph {
    struct engine_graph *graph;
    uint32_t n_tokens;
    struct engine_tensor *ids, *slots;   /* I32 [T] */
    struct engine_tensor *range, *table; /* I32 [T][4], [1][T] */
    struct engine_tensor *buckets;       /* I32: of relative positions */
    struct engine_tensor *adapters;      /* F32 [adapters][T]: their scales, or NULL */
};

bool model_source_build(struct model_source_graph *g, struct model *m, struct model_state *state,
                        uint32_t n_tokens, struct base_error *err);

/* ---- The text for an encoder before a decoder, in a session (source.c) ---- */

/* Returns how many of tokens[n] are the text for the encoder: those before the first start_id, if
 * their sequence is empty; 0 if it is not. */
uint32_t model_source_length(const struct model *m, const struct model_state *state,
                             const struct model_token *tokens, uint32_t n);
/* Checks that a sequence which has not more than its text for the encoder, or receives `length`
 * tokens of it, continues with the start_id; `next` is the token after these, -1: none. */
bool model_source_check(const struct model *m, const struct model_state *state, uint32_t seq,
                        uint64_t length, int32_t next, struct base_error *err);
/* Makes *g, which may be all zeros, the graph for n tokens. */
bool model_source_graph_of(struct model_source_graph *g, struct model *m, struct model_state *state,
                           uint32_t n, struct base_error *err);
/* Evaluates the encoder for the n tokens that begin a sequence; after a failure this is empty.
 * `adaptation` [n_seq] may be NULL if there are no adapters. */
bool model_source_eval(struct model_source_graph *g, struct model *m, struct model_state *state,
                       const struct model_adaptation *adaptation, const struct model_token *tokens,
                       uint32_t n, struct base_error *err);

/* A planned graph for a batch shape: T tokens in, the logits of n_out of them out, or if n_out is
 * above the maximum of a piece (model_head_rows) their hidden states. After the mixer of the last
 * layer the graph continues with n_rows of the tokens: those with logits, and those whose hidden
 * states after it a drafter reads. */
struct model_graph {
    struct engine_graph *graph;
    uint32_t n_tokens, n_rows, n_out;
    uint32_t n_span;                  /* runs of consecutive tokens of one sequence */
    struct engine_tensor *ids;        /* I32 [T] */
    struct engine_tensor *positions;  /* I32 [T] */
    struct engine_tensor *q_scale;    /* F32 [T][1][1], or NULL */
    struct engine_tensor *adapters;   /* F32 [adapters][T]: their scales, or NULL */
    struct engine_tensor *buckets;    /* I32: of relative positions, or NULL */
    struct model_state_inputs inputs; /* where each token's state is stored */
    struct engine_tensor *rows;       /* I32 [n_rows]: token indices; NULL if n_rows is 0 or T */
    struct engine_tensor *out_rows;   /* I32 [n_out]: row indices; NULL if n_out is 0 or n_rows */
    struct engine_tensor *hidden;     /* F32 [n_out][E], normalized */
    struct engine_tensor *logits;     /* F32 [n_out][V]; NULL: hidden is the output, or n_out 0 */
    /* What a drafter reads: F32 [T][E], or [n_rows][E] of those that leave the last layer. */
    struct engine_tensor *read[MODEL_READS_MAX];
    uint64_t last_used;
};

bool model_graph_build(struct model_graph *g, struct model *m, struct model_state *state,
                       uint32_t n_tokens, uint32_t n_span, uint32_t n_rows, uint32_t n_out,
                       struct base_error *err);
void model_graph_free(struct model_graph *g);
uint64_t model_graph_bytes(const struct model_graph *g);

/* The maximum number of rows whose logits a graph computes at once: those of a whole batch can be
 * larger than the model. */
uint32_t model_head_rows(const struct model_params *p);

/* A planned graph of the output product alone: model_head_rows hidden states to logits F32
 * [rows][V]. */
struct model_head {
    struct engine_graph *graph;
    struct engine_tensor hidden; /* a leaf in the memory of another graph's output */
    struct engine_tensor *logits;
    struct engine_tensor *adapters; /* F32 [adapters][rows]: their scales, or NULL */
};
/* `hidden` is the output of a graph with more rows. */
bool model_head_build(struct model_head *h, struct model *m, const struct engine_tensor *hidden,
                      struct base_error *err);

/* A graph of the block after pooling (block_pool.c), from rows F32 [n_rows][E]. */
struct model_pool_graph {
    struct engine_tensor *adapters; /* F32 [adapters][n_rows]: their scales, or NULL */
    struct engine_graph *graph;
    struct engine_tensor *rows, *result;
};
bool model_pool_build(struct model_pool_graph *out, struct model *m, bool rank, uint32_t n_rows,
                      struct base_error *err);

/* ---- A drafter, in a session (drafter.c) ---- */

enum {
    MODEL_DRAFTER_ROWS = 96, /* hidden states that the session keeps of a sequence */
    MODEL_DRAFTER_GRAPHS = 7 /* for 1, 2, 4, ... MODEL_DRAFTER_PENDING tokens */
};

/* Names the hidden state in row p % MODEL_DRAFTER_ROWS, that of position p. */
struct model_drafter_row {
    uint32_t position;
    int32_t id; /* the token at that position; -1: the row is empty */
};

struct model_drafter {
    struct model *m;         /* the model that the session evaluates */
    const struct model *own; /* whose layers draft: m with an MTP layer, or a drafter's file */
    const struct model_layer *layer; /* [n_layer]: these layers */
    uint32_t n_layer;
    struct model_state *state;
    struct model_reads reads;
    uint32_t n_hidden; /* numbers that are read of a position: H */
    uint32_t near;     /* what layers with `near` attend to; 0: there are none */
    uint32_t lag;   /* the keys of a position are made of hidden states so many positions before */
    uint32_t block; /* maximum number of tokens of a draft in one run; 0: each takes a run */
    float *hidden;  /* [n_seq][MODEL_DRAFTER_ROWS][H] */
    struct model_drafter_row *row; /* [n_seq][MODEL_DRAFTER_ROWS] */
    /* [n_seq] each. `stored`: the keys and values of the positions from state->kv.draft_first up to
     * it are computed. `end`: the hidden states of the positions up to it are kept. */
    uint32_t *stored, *end;
    uint32_t *share; /* [n_seq]: of the last tokens of a call, those whose hidden states are kept */
    /* Built when first used. block_of[i]: for i tokens. */
    struct model_drafter_graph guess, chain, store[MODEL_DRAFTER_GRAPHS],
        block_of[MODEL_DRAFTER_STEPS + 1];
};

/* Chooses what drafts in a session of m: `own` (see above). */
void model_drafter_choose(struct model_drafter *r, struct model *m, const struct model *own);
/* Allocates the rows of all sequences. After a failure the caller still calls model_drafter_free.
 */
bool model_drafter_init(struct model_drafter *r, struct model_state *state, struct base_error *err);
void model_drafter_free(struct model_drafter *r); /* may be all zeros */
/* _clear: sequence `seq` is new, or was loaded with its keys and values; its rows become empty.
 * _copy: `to` became a copy of `from`. */
void model_drafter_clear(struct model_drafter *r, uint32_t seq);
void model_drafter_copy(struct model_drafter *r, uint32_t from, uint32_t to);
/* Builds all graphs and adds their bytes to *bytes. */
bool model_drafter_plan(struct model_drafter *r, uint64_t *bytes, struct base_error *err);
/* Returns of how many of the last of n > 0 consecutive tokens the drafter reads what leaves the
 * last layer. */
uint32_t model_drafter_share(const struct model_drafter *r, uint64_t n);
/* Announces that a call will evaluate n tokens of the sequence: sets its `share`. */
void model_drafter_expect(struct model_drafter *r, uint32_t seq, uint32_t n);
/* Copies the hidden states that a run of g returned; row[n_rows]: its tokens that continued. */
bool model_drafter_keep(struct model_drafter *r, const struct model_graph *g,
                        const struct model_token *tokens, const uint32_t *row,
                        struct base_error *err);
/* Computes the missing keys and values of the drafter for positions before `end`. If the hidden
 * states that this needs are not kept, its keys and values begin at `end`. */
bool model_drafter_store(struct model_drafter *r, uint32_t seq, uint32_t end,
                         struct base_error *err);
/* See model_seq_draft_begin. */
bool model_drafter_begin(struct model_drafter *r, uint32_t seq, struct base_error *err);
/* Returns the number of logits per draft token, and the maximum number of tokens of a draft, with
 * those before it. */
uint32_t model_drafter_n_vocab(const struct model_drafter *r);
uint32_t model_drafter_most(const struct model_drafter *r);
/* See model_seq_draft. The caller has checked the arguments. */
bool model_drafter_draft(struct model_drafter *r, uint32_t seq, int32_t *ids, uint32_t n,
                         uint32_t k, model_chooser choose, void *user, struct base_error *err);
