/* models/state/state.h: the state of sequences.
 *
 * Sequences 0 .. n_seq - 1 have at most n_ctx tokens each. State is of several kinds, each a row of
 * functions; a model may use more than one. Private to models/. */
#pragma once

#include "models/model.h"
#include "models/state/cross.h"
#include "models/state/history.h"
#include "models/state/kv_cache.h"
#include "models/state/recurrent.h"

enum {
    MODEL_DRAFTER_STEPS = 32, /* maximum number of tokens that one draft evaluates */
    MODEL_DRAFTER_PENDING =
        64 /* maximum number of positions without the drafter's keys and values */
};

struct engine_pool;

struct model_state {
    uint32_t n_seq, n_ctx;
    uint32_t *length;                /* [n_seq]: tokens of each sequence */
    uint64_t bytes;                  /* of all kinds */
    const struct model_reads *reads; /* what a drafter reads; NULL: there is none */
    uint32_t n_draft;                /* its layers: the last ones with keys and values */
    bool hidden;                     /* graphs end with hidden states instead of logits */
    struct model_kv kv;
    struct model_recurrent recurrent;
    struct model_cross cross;
    struct model_history history;
    const struct engine_place *host;
    struct engine_buffer *buffers; /* [n_buffers]: of the kinds' tensors */
    size_t n_buffers, max_buffers;
};

struct model_state_options {
    uint32_t n_seq, n_ctx;
    uint32_t n_batch; /* maximum of tokens in one run of a graph */
    const struct quant_type *type_k, *type_v;
    const struct engine_place *host;   /* place 0: of layers without a place */
    const struct model_reads *reads;   /* what a drafter reads; NULL: there is none */
    const struct model_layer *drafter; /* [n_draft]: its layers */
    uint32_t n_draft;
    bool hidden; /* graphs end with hidden states instead of logits */
};

/* The inputs of a graph that describe where each token's state is stored. */
struct model_state_inputs {
    struct model_kv_inputs kv;
    struct engine_tensor *spans; /* I32 [spans][4], see engine/graph_recurrent.h; NULL if the model
                                    has no recurrent state */
    struct engine_tensor *cross; /* I32 [T][4]: ranges of the source; NULL: no encoder */
    struct engine_tensor *adapter;  /* I32 [T][1]: of each token (struct model_switch); or NULL */
    struct engine_tensor *read_ids; /* I32 [T]: the ids that are read; NULL: those of the tokens */
    struct engine_tensor *ngram;    /* I32 [T heads]: rows of the table of n-grams; or NULL */
};

/* A token of a run: its index, its span, its sequence, its position in the sequence, and its id. */
struct model_place {
    uint32_t t, span, seq, position;
    int32_t id;
};

/* The header of a saved sequence, before the data of all kinds. Readers must check every number of
 * it, because a file may be damaged. */
struct model_state_outline {
    uint32_t length, source;                            /* source: tokens of an encoder's text */
    uint32_t oldest[MODEL_KV_KINDS], draft_first;       /* the first position that is kept */
    uint32_t n_snapshot, snapshot[MODEL_SNAPSHOTS_MAX]; /* lengths, ascending */
};

/* A reader of saved data, which reads part `part` of n_parts and skips the others. */
struct model_state_reader {
    const struct model_source *source;
    unsigned part, n_parts;
};

static inline bool model_state_read(const struct model_state_reader *r, void *bytes, uint64_t n,
                                    struct base_error *err)
{
    return r->source->read(r->source->user[r->part], bytes, n, err);
}

static inline bool model_state_skip(const struct model_state_reader *r, uint64_t n,
                                    struct base_error *err)
{
    return n == 0 || r->source->pass_over(r->source->user[r->part], n, err);
}

/* A kind of state. Each function does nothing for a model without this kind. NULL in the place of
 * append, truncate, outline or make_room: nothing is to be done; of held or loadable: every length
 * can be kept. */
struct model_state_kind {
    const char *name;
    bool (*init)(struct model_state *s, const struct model_params *p,
                 const struct model_state_options *o, struct base_error *err);
    void (*free)(struct model_state *s);
    /* Begins a batch of runs: until the next one begins, each sequence can be cut back to its
     * present length. NULL: the kind can always be cut back. */
    void (*begin)(struct model_state *s);
    /* Reserves the next n tokens of a sequence, which one run of the graph evaluates as a span. */
    void (*append)(struct model_state *s, uint32_t seq, uint32_t n);
    /* Returns the largest length' <= length from which the sequence can continue; 0 is always
     * possible. */
    uint32_t (*held)(const struct model_state *s, uint32_t seq, uint32_t length);
    /* Removes positions from `length` on; `held` has returned `length`. */
    void (*truncate)(struct model_state *s, uint32_t seq, uint32_t length);
    /* Makes `to`, which is empty, share the first `length` positions of `from`. */
    void (*fork)(struct model_state *s, uint32_t from, uint32_t to, uint32_t length);
    /* add_inputs adds the inputs of a graph of n_tokens in n_span spans, each consecutive tokens of
     * one sequence; fill_inputs writes their values for a token of a run, after `append` of its
     * span. */
    void (*add_inputs)(const struct model_state *s, struct engine_graph *g, uint32_t n_tokens,
                       uint32_t n_span, struct model_state_inputs *in);
    void (*fill_inputs)(const struct model_state *s, const struct model_state_inputs *in,
                        const struct model_place *at);
    /* Fills the kind's part of the outline of a sequence. */
    void (*outline)(const struct model_state *s, uint32_t seq, struct model_state_outline *o);
    /* Returns the largest length' <= length to which a saved sequence can be cut back; 0 if
     * none. */
    uint32_t (*loadable)(const struct model_state *s, const struct model_state_outline *o,
                         uint32_t length);
    /* Writes the kind's state of the sequence. */
    bool (*save)(const struct model_state *s, uint32_t seq, const struct model_sink *to,
                 struct base_error *err);
    /* Reserves room in an empty sequence for the saved one, cut back to `length`, which `loadable`
     * has returned. */
    void (*make_room)(struct model_state *s, uint32_t seq, uint32_t length,
                      const struct model_state_outline *o);
    /* Called after make_room: reads a part of what `save` wrote. Other threads may read other parts
     * at the same time. */
    bool (*load)(struct model_state *s, uint32_t seq, uint32_t length,
                 const struct model_state_outline *o, const struct model_state_reader *from,
                 struct base_error *err);
};

/* Initializes all kinds. After a failure *s is empty. */
bool model_state_init(struct model_state *s, const struct model_params *p,
                      const struct model_state_options *o, struct base_error *err);
void model_state_free(struct model_state *s);
/* Returns whether the tokens of a sequence in a run must be one span. */
bool model_state_needs_spans(const struct model_state *s);
/* Begins a batch of runs, which can be removed as a whole until the next batch begins. */
void model_state_begin(struct model_state *s);
/* Appends n tokens to `seq`, which must have room for them, and returns the first one's
 * position. */
uint32_t model_state_append(struct model_state *s, uint32_t seq, uint32_t n);
/* Cuts `seq` back to the largest length, at most `length`, that every kind holds, and returns
 * it. */
uint32_t model_state_truncate(struct model_state *s, uint32_t seq, uint32_t length);
/* Replaces `to` by the first tokens of `from`, as many as every kind holds, at most `length`.
 * Returns their number. */
uint32_t model_state_fork(struct model_state *s, uint32_t from, uint32_t to, uint32_t length);
/* Writes a sequence; see model_seq_save. */
bool model_state_save(const struct model_state *s, uint32_t seq, const struct model_sink *to,
                      struct base_error *err);
/* Reads a sequence on all workers of the pool (NULL: on this thread). See model_seq_load. */
uint32_t model_state_load(struct model_state *s, uint32_t seq, uint32_t least, uint32_t most,
                          const struct model_source *from, struct engine_pool *pool,
                          struct base_error *err);
void model_state_add_inputs(const struct model_state *s, struct engine_graph *g, uint32_t n_tokens,
                            uint32_t n_span, struct model_state_inputs *in);
void model_state_fill_inputs(const struct model_state *s, const struct model_state_inputs *in,
                             const struct model_place *at);

/* For kinds: initializes *t, of `type` and shape ne[n_dims], over zeroed memory in `place` (NULL:
 * place 0) that takes physical memory when it is written, and adds its bytes to s->bytes.
 * model_state_free frees it. */
bool model_state_tensor(struct model_state *s, struct engine_tensor *t,
                        const struct engine_place *place, const struct quant_type *type, int n_dims,
                        const int64_t *ne, struct base_error *err);

/* Copies of state to and from this machine's memory. `image` has room for `size` bytes; _get
 * returns the bytes, in place if they are in this machine's memory, otherwise in `image`. */
const void *model_state_get(const struct engine_tensor *t, const char *from, uint64_t size,
                            void *image);
void model_state_put(const struct engine_tensor *t, char *to, const void *bytes, uint64_t size);
/* Returns where bytes for `to` are read, before _put: `to` itself in this machine's memory,
 * otherwise `image`. */
void *model_state_room(const struct engine_tensor *t, char *to, void *image);
/* Writes data[0..size) of the tensor, or reads it if `from` is not NULL. */
bool model_state_move(const struct engine_tensor *t, char *data, uint64_t size,
                      const struct model_sink *to, const struct model_state_reader *from,
                      struct base_error *err);
