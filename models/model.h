/* models/model.h: opens models and evaluates tokens.
 *
 * Contains hyper-parameters, the architecture table, weights by name, graph builders and the state
 * of sequences; no text, sampling or printing. A model is immutable once open (its weights are in
 * the mapped file). A session is the mutable part: one or several sequences of tokens, their cache,
 * and the graphs. */
#pragma once

#include "engine/engine.h"
#include "gguf/gguf.h"
#include "models/arch/pooling.h"

struct model;         /* opaque */
struct model_session; /* opaque */

/* Purposes of tensors that are not part of the text model. */
enum model_unused {
    MODEL_USED,
    MODEL_UNUSED_IMAGES,
    MODEL_UNUSED_AUDIO,
    MODEL_UNUSED_DRAFTS, /* of layers that predict later tokens */
    MODEL_UNUSED_HEADS,  /* of outputs other than next-token logits */
    MODEL_UNUSED_OTHER,  /* without effect on this architecture's text */
    MODEL_UNUSED_COUNT
};

struct model_facts { /* what callers may read of a model */
    const char *arch;
    uint32_t n_vocab, n_ctx_train, n_layer, n_embd, n_head, n_head_kv;
    uint64_t n_params, weight_bytes;
    uint64_t placed_bytes;    /* of the weights that only other places than 0 read */
    uint64_t copied_bytes;    /* of copies by columns that were made, or planned */
    uint64_t separated_bytes; /* of copies of rows that are interleaved in the file, or planned */
    uint64_t row_bytes; /* of copies of cold rows, instead of which the file is not read again */
    bool has_mtp;       /* the file has an MTP layer, which can draft tokens */
    bool writes;        /* token by token; encoders have no logits */
    int32_t start_id;   /* sequences begin with a text for an encoder, then this token; -1: none */
    bool diffusion;     /* a text is written as a whole, by replacing mask tokens */
    bool shifted;    /* a diffusion model's logits of a token are those of the position before it */
    int32_t mask_id; /* the mask token of a diffusion model; -1: none */
    bool bidirectional; /* tokens attend to later ones too */
    bool has_pooling;   /* the file has pooling_type; otherwise `pooling` is the usual one */
    enum model_pooling pooling; /* of the file */
    enum model_pooling rank_of; /* MODEL_POOL_RANK reads the row of this one */
    uint32_t n_pooled, n_rank;  /* numbers of an embedding and of scores; 0: no classifier */
    uint32_t n_predictors;      /* layers with a predictor of the zeros of their network; 0: none */
    uint32_t n_unused[MODEL_UNUSED_COUNT]; /* numbers of tensors; [MODEL_USED] is 0 */
};

/* Overrides of position scaling, for gguf_override before model_open: keys "option.NAME". NAME is
 * rope.freq_base or rope.scaling.X, where X is type (none, linear or yarn), factor,
 * original_context_length, yarn_ext_factor, yarn_attn_factor, yarn_beta_fast or yarn_beta_slow.
 * Base and factor apply to layers without a window, and to windowed layers that have no base of
 * their own. */
#define MODEL_OPTION_PREFIX "option"

/* Where a model's weights lie: the last n_layers layers (all if there are fewer) are copied to
 * `place`, and with `output` the last norm and the output product too; all else stays in place 0,
 * in the mapped file, as do embeddings, of which a token reads a row. The state of a layer lies
 * where its weights do. */
struct model_placement {
    const struct engine_place *place;
    uint32_t n_layers;
    bool output;
    /* The first of several places, which follow each other in the engine and divide the layers in
     * the order of the file: the shares of each, in any unit. The output is where the last layer
     * is. n_places 0: one place. */
    int n_places;
    double share[ENGINE_PLACES_MAX];
    bool experts_here; /* the experts of the layers are in place 0 nevertheless */
    /* [layers of the model], which must outlive it: the rest of the rows of feed-forward networks
     * is in place 0 nevertheless; NULL: none. */
    const struct model_hot *hot;
};

/* Rows of a feed-forward network, which are the elements that its last product reads. Those of the
 * first matrices that are hot are in the place of their layer, and as large a share of the last
 * matrix. All elements are computed as without the division, so the bytes are the same. */
struct model_hot {
    uint32_t n, n_hot;   /* n 0: not divided */
    const uint32_t *row; /* [n]: the hot ones, then the others; both ascending */
};

/* Opens the model of a file. `file` and `engine` must outlive it; the caller frees it with
 * model_close. `placement` NULL: all in place 0. Returns NULL with BASE_MODEL if the model is
 * incomplete, damaged or not supported: the message names the key, the tensor or the architecture.
 */
struct model *model_open(const struct gguf_file *file, struct engine *engine,
                         const struct model_placement *placement, struct base_error *err);
void model_close(struct model *m); /* accepts NULL */
/* Opens a drafter, which is no model by itself: model_session_options. */
struct model *model_open_drafter(const struct gguf_file *file, struct engine *engine,
                                 struct base_error *err);
/* Returns whether the file contains a drafter that model_open_drafter supports. */
bool model_is_drafter(const struct gguf_file *file);
/* Checks that a drafter can draft tokens for a model; fails with BASE_USAGE and the first number
 * that differs. */
bool model_drafter_fits(const struct model *drafter, const struct model *m, struct base_error *err);
/* Returns whether the file may contain a language model. Otherwise fails with BASE_MODEL and what
 * the file is: an adapter, an encoder for images, an importance matrix, a vocabulary. model_open
 * calls it. */
bool model_kind_check(const struct gguf_file *file, struct base_error *err);
const struct model_facts *model_facts(const struct model *m);
/* Returns how many layers are in a place, an MTP layer too. */
uint32_t model_layers_in(const struct model *m, const struct engine_place *place);
/* Returns facts.start_id of the model in a file that is not open as a model; -1 too if the file is
 * no model. */
int32_t model_start_id(const struct gguf_file *file);

struct model_session_options {
    uint32_t n_seq;       /* number of sequences; their ids are 0 .. n_seq - 1; 0: one */
    uint32_t n_ctx;       /* tokens per sequence; 0: the trained context, at most 4096 */
    uint32_t n_batch;     /* maximum number of tokens in one run; 0: 512 */
    enum quant_id type_k; /* cache types: F32, F16, BF16, Q8_0, Q4_0, ... */
    enum quant_id type_v;
    bool mtp; /* the session keeps what model_seq_draft needs, if the file has an MTP layer */
    struct model *drafter; /* likewise for a drafter that fits, in place of such a layer; NULL:
                              none. It must outlive the session */
    bool whole;  /* calls evaluate whole texts: needed for the logits of a diffusion model, and for
                    a model with a start_id, whose texts for the encoder are parts of one call */
    bool hidden; /* sinks receive hidden states [n_embd] after the last norm instead of logits */
};
struct model_session_options model_session_options_default(void); /* F16 caches */

/* Allocates the cache and plans the graphs that the options imply. Returns NULL with BASE_USAGE for
 * options that do not fit the model and BASE_NO_MEMORY. The caller frees it with
 * model_session_free. */
struct model_session *model_session_new(struct model *m, const struct model_session_options *o,
                                        struct base_error *err);
void model_session_free(struct model_session *s); /* accepts NULL */
const struct model *model_session_model(const struct model_session *s);
uint32_t model_session_n_seq(const struct model_session *s);
uint32_t model_session_n_ctx(const struct model_session *s);
uint32_t model_session_n_batch(const struct model_session *s); /* tokens of one run, at most */
uint32_t model_session_n_vocab(const struct model_session *s); /* number of logits per token */
/* Returns the bytes of the cache of all sequences. The parts that no token was written to take no
 * physical memory. */
uint64_t model_session_cache_bytes(const struct model_session *s);
/* Computes the bytes of all graphs that model_eval needs for a prompt of n_prompt tokens followed
 * by single tokens. With an engine that only plans (plan_only) a session offers only this function
 * and the sizes above, and allocates no memory for graphs and cache. */
bool model_session_plan(struct model_session *s, uint64_t n_prompt, uint64_t *bytes,
                        struct base_error *err);
/* Adds to *bytes those of the graphs for a batch of n tokens of one sequence, all with logits. */
bool model_session_plan_batch(struct model_session *s, uint32_t n, uint64_t *bytes,
                              struct base_error *err);

/* ---- Several sequences ----
 *
 * Sequences are independent: the logits of a sequence depend on its own tokens only, bit for bit,
 * not on other sequences in the session or in the batch. `seq`, `from` and `to` are below n_seq. */

struct model_token {
    int32_t id;
    uint32_t seq;
    bool wants_logits;
};

/* Receives the requested rows of logits in the order of the tokens, several rows per call: `first`
 * is the index of the first one among the requested rows, logits is [rows][n_vocab] and valid
 * during the call. Returns false after setting *err to stop the evaluation. */
typedef bool (*model_logits_sink)(void *user, uint64_t first, uint64_t rows, const float *logits,
                                  struct base_error *err);

/* Appends each token to its sequence and evaluates it, at most n_batch tokens per run of the graph.
 * Where tokens attend to later ones (facts.bidirectional), a call has a sequence as a whole: it was
 * empty, and its tokens are adjacent; otherwise BASE_FAILED. n_batch is then at least n_ctx.
 * With facts.start_id an empty sequence's tokens up to the first start_id are adjacent, too, and
 * have no logits; n_batch is then at least n_ctx as well. A call may have any number of tokens of a
 * sequence. Fails with BASE_TOO_LONG when a sequence would exceed its context, and with BASE_FAILED
 * for a token id or sequence that does not exist, before any evaluation. After another error (an
 * interrupt, an error of the sink) the tokens of the failed batch are removed. `sink` may be NULL.
 */
bool model_eval_batch(struct model_session *s, const struct model_token *tokens, uint64_t n,
                      model_logits_sink sink, void *user, struct base_error *err);

uint32_t model_seq_length(const struct model_session *s, uint32_t seq); /* in tokens */

/* Removes the tokens from position `length` on. Returns the number of tokens that are left:
 * `length`; or 0 if a sliding-window cache lacks positions that the next tokens attend to; or, for
 * a model with recurrent states, the length of the nearest earlier snapshot
 * (models/state/recurrent.h). */
uint32_t model_seq_truncate(struct model_session *s, uint32_t seq, uint32_t length);

/* Sets the next lengths to which the sequence can be cut back exactly, besides those at which
 * evaluations end; 0: none. A model with recurrent states ends a run at such a length. Marks do not
 * change a bit of the results. */
enum { MODEL_MARKS = 2 };
void model_seq_mark(struct model_session *s, uint32_t seq, const uint32_t length[MODEL_MARKS]);

/* Replaces `to` by the first `length` tokens of `from` and shares their KV slots instead of copying
 * them. Returns the new number of tokens of `to`: `length`, at most those of `from`, or fewer as
 * with truncation. */
uint32_t model_seq_fork(struct model_session *s, uint32_t from, uint32_t to, uint32_t length);

/* ---- Draft tokens of an MTP layer (multi-token prediction) or a drafter ---- */

bool model_session_can_draft(const struct model_session *s);
/* Returns the number of logits per draft token, which is that of the model's, or fewer. */
uint32_t model_session_n_draft_vocab(const struct model_session *s);
/* Returns the maximum of n + k of model_seq_draft, at least 2. */
uint32_t model_session_draft_most(const struct model_session *s);
/* Returns whether all tokens of a draft take one run; otherwise each takes one. */
bool model_session_drafts_at_once(const struct model_session *s);

/* Chooses a draft token by its logits [n_draft_vocab] and returns its index. Returns -1 after
 * setting *err. */
typedef int32_t (*model_chooser)(void *user, const float *logits, struct base_error *err);

/* Computes in advance what model_seq_draft needs of the sequence. */
bool model_seq_draft_begin(struct model_session *s, uint32_t seq, struct base_error *err);

/* Drafts tokens after the sequence. The first n > 0 of ids[n + k] are the tokens that follow it;
 * the function writes k > 0 draft tokens after them, chosen one after another.
 * The sequence does not change. The session keeps the hidden states of the latest 96 evaluated
 * positions of a sequence; for other positions it uses the drafter's own output, or zeros. */
bool model_seq_draft(struct model_session *s, uint32_t seq, int32_t *ids, uint32_t n, uint32_t k,
                     model_chooser choose, void *user, struct base_error *err);

/* ---- Saved sequences ----
 *
 * A sequence is saved as bytes for a session of the same model with the same cache types, `mtp` and
 * drafter.
 * A loaded sequence continues with the same bits as the saved one. Only the same build of the
 * program can read the bytes: they contain neither version nor names. */

struct model_sink { /* writes the next n bytes */
    bool (*write)(void *user, const void *bytes, uint64_t n, struct base_error *err);
    void *user;
};
enum { MODEL_READERS_MAX = 8 };
struct model_source { /* copies or skips the next n bytes; both fail past the end */
    bool (*read)(void *user, void *bytes, uint64_t n, struct base_error *err);
    bool (*pass_over)(void *user, uint64_t n, struct base_error *err);
    void *user[MODEL_READERS_MAX]; /* one per thread; each reads the same bytes from their start */
    unsigned n_users;              /* at least 1 */
};

/* Writes the state of a sequence, which must not be empty. Fails with the sink's errors and
 * BASE_NO_MEMORY. */
bool model_seq_save(struct model_session *s, uint32_t seq, const struct model_sink *to,
                    struct base_error *err);

/* Replaces `seq` by the first tokens of a saved sequence, as many as can be restored, at most
 * `most`. Returns their number. Returns 0 without an error if they would be fewer than `least`;
 * `seq` is then unchanged. Returns 0 with an error if reading fails; `seq` is then unchanged or
 * empty. Reading any bytes is memory-safe, but the source must check that they are those that were
 * saved. */
uint32_t model_seq_load(struct model_session *s, uint32_t seq, uint32_t least, uint32_t most,
                        const struct model_source *from, struct base_error *err);

/* Computes what the model makes of n pooled rows [n][n_embd] of hidden states: embeddings
 * [n][n_pooled], or with `rank` scores [n][n_rank], which needs a classifier. Row i is of sequence
 * seq[i]: adapters act on it as on that sequence's last token. */
bool model_session_pool(struct model_session *s, bool rank, const float *rows, const uint32_t *seq,
                        uint32_t n, float *out, struct base_error *err);

/* Returns the number of tokens that the session has evaluated, of all sequences. */
uint64_t model_session_n_evaluated(const struct model_session *s);

/* ---- Functions for sequence 0 ---- */

uint32_t model_session_length(const struct model_session *s);
uint32_t model_session_truncate(struct model_session *s, uint32_t length);

/* Which positions get logits. */
enum model_logits { MODEL_LOGITS_NONE, MODEL_LOGITS_LAST, MODEL_LOGITS_ALL };

/* Appends ids[n] to sequence 0 and evaluates them, n_batch at a time. The sink's `first` counts
 * ids: with MODEL_LOGITS_LAST it is n - 1. The text for an encoder has no logits. Errors are those
 * of model_eval_batch. */
bool model_eval(struct model_session *s, const int32_t *ids, uint64_t n, enum model_logits which,
                model_logits_sink sink, void *user, struct base_error *err);

/* Returns the logits [n_vocab] of the last token that had logits; NULL before the first one and
 * after a truncation. They are valid until the next evaluation. */
const float *model_last_logits(const struct model_session *s);
