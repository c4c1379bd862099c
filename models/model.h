/* models/model.h: opening and evaluating a model.
 *
 * Owns: hyper-parameters, the architecture table, weights by name, graph builders, sequence memory.
 * Refuses: text, sampling, printing. A model is immutable once open (weights stay in the mapped
 * file); a session is the mutable part: one or several sequences of tokens, their cache, the
 * graphs. */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "engine/engine.h"
#include "gguf/gguf.h"

struct model;         /* opaque */
struct model_session; /* opaque */

/* Purposes of tensors that are not part of the text model. */
enum model_unused {
    MODEL_USED,
    MODEL_UNUSED_IMAGES,
    MODEL_UNUSED_AUDIO,
    MODEL_UNUSED_DRAFTS, /* layers that predict later tokens */
    MODEL_UNUSED_HEADS,  /* for outputs other than next-token logits */
    MODEL_UNUSED_OTHER,  /* without effect on this architecture's text */
    MODEL_UNUSED_COUNT
};

struct model_facts { /* public facts of a model */
    const char *arch;
    uint32_t n_vocab, n_ctx_train, n_layer, n_embd, n_head, n_head_kv;
    uint64_t n_params, weight_bytes;
    bool has_mtp;                          /* an MTP layer: model_seq_guess */
    uint32_t n_unused[MODEL_UNUSED_COUNT]; /* numbers of tensors; [MODEL_USED] is 0 */
};

/* Overrides of position scaling: keys "option.NAME" for gguf_override, set before model_open. NAME
 * is rope.freq_base or rope.scaling.X, X one of type (none, linear, yarn), factor,
 * original_context_length, yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow. Base
 * and factor apply to layers without a window, and to windowed layers that have no base of their
 * own. */
#define MODEL_OPTION_PREFIX "option"

/* `file` and `engine` must outlive the model. NULL and BASE_MODEL for a missing, damaged or
 * unsupported model: the message names the key, the tensor or the architecture. */
struct model *model_open(const struct gguf_file *file, struct engine *engine,
                         struct base_error *err);
void model_close(struct model *m); /* NULL is fine */
const struct model_facts *model_facts(const struct model *m);

struct model_session_options {
    uint32_t n_seq;       /* sequences, 0 .. n_seq - 1; 0: one */
    uint32_t n_ctx;       /* tokens per sequence; 0: the trained context, at most 4096 */
    uint32_t n_batch;     /* maximum of tokens evaluated at once; 0: 512 */
    enum quant_id type_k; /* cache types: F32, F16, BF16, Q8_0, Q4_0, ... */
    enum quant_id type_v;
    bool mtp; /* keeps what model_seq_guess needs, if the file has an MTP layer */
};
struct model_session_options model_session_options_default(void); /* F16 caches */

/* Allocates the cache and plans the graphs that the options imply. */
struct model_session *model_session_new(struct model *m, const struct model_session_options *o,
                                        struct base_error *err);
void model_session_free(struct model_session *s); /* NULL is fine */
uint32_t model_session_n_seq(const struct model_session *s);
uint32_t model_session_n_ctx(const struct model_session *s);
uint32_t model_session_n_vocab(const struct model_session *s); /* floats of a row of logits */
/* Bytes of the cache of all sequences. Memory that no token was written to is not resident. */
uint64_t model_session_cache_bytes(const struct model_session *s);
/* Computes the bytes of all graphs that model_eval plans for a prompt of n_prompt tokens followed
 * by single tokens. With an engine that only plans (plan_only) a session provides only this and the
 * sizes above, and allocates no memory for graphs and cache. */
bool model_session_plan(struct model_session *s, uint64_t n_prompt, uint64_t *bytes,
                        struct base_error *err);
/* Adds the bytes of the graphs for a batch of n tokens of one sequence that all have logits. */
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

/* Receives the requested rows of logits in the order of the tokens, several rows at a time: the
 * first row's index among those requested, the number of rows, [rows][n_vocab]. The logits are
 * valid during the call. */
typedef bool (*model_logits_sink)(void *user, uint64_t first, uint64_t rows, const float *logits,
                                  struct base_error *err);

/* Appends each token to its sequence, n_batch of them in one run of the graph; in one call a
 * sequence may occur any number of times. BASE_TOO_LONG when a sequence's context would overflow
 * and BASE_FAILED for an id or a sequence that does not exist: nothing is evaluated. After another
 * error (an interrupt, an error of the sink) the tokens of the batch that failed are removed.
 * `sink` may be NULL. */
bool model_eval_batch(struct model_session *s, const struct model_token *tokens, uint64_t n,
                      model_logits_sink sink, void *user, struct base_error *err);

uint32_t model_seq_length(const struct model_session *s, uint32_t seq); /* tokens it holds */

/* Removes tokens from position `length` on and returns how many are left: `length`; 0 when a
 * sliding-window cache lacks what the positions after `length` attend to; or, for a model with
 * recurrent states, the length of the nearest earlier snapshot (models/state/recurrent.h). */
uint32_t model_seq_truncate(struct model_session *s, uint32_t seq, uint32_t length);

/* Sets the next lengths to which the sequence can be cut exactly, besides those at which
 * evaluations end; 0: none. A model with recurrent states ends a run at such a length. Results have
 * the same bits with and without marks. */
enum { MODEL_MARKS = 2 };
void model_seq_mark(struct model_session *s, uint32_t seq, const uint32_t length[MODEL_MARKS]);

/* `to` becomes the first `length` tokens of `from` (its previous content is dropped) and shares
 * their KV slots instead of copying them. Returns the tokens that `to` now holds: `length` (at most
 * those of `from`), or fewer as with truncation. */
uint32_t model_seq_fork(struct model_session *s, uint32_t from, uint32_t to, uint32_t length);

/* ---- Draft tokens of an MTP layer (multi-token prediction) ---- */

bool model_session_has_mtp(const struct model_session *s);

/* Chooses a token by logits [n_vocab]; -1: an error. */
typedef int32_t (*model_chooser)(void *user, const float *logits, struct base_error *err);

/* Computes what model_seq_guess needs of the sequence, which it does itself otherwise. */
bool model_seq_guess_begin(struct model_session *s, uint32_t seq, struct base_error *err);

/* The first n > 0 of ids[n + k] follow the tokens of the sequence. Writes the k > 0 draft tokens
 * after them, chosen one after another, to the others. n + k is at most 33. The sequence does not
 * change. The session keeps the hidden states of the latest 96 evaluated positions of a sequence;
 * for a position without one the layer's own output is used, or zeros. */
bool model_seq_guess(struct model_session *s, uint32_t seq, int32_t *ids, uint32_t n, uint32_t k,
                     model_chooser choose, void *user, struct base_error *err);

/* ---- Saved sequences ----
 *
 * A sequence as bytes, for a session of the same model with the same cache types and `mtp`. A
 * loaded sequence continues with the same bits as the saved one. Only the same build of the program
 * can read the bytes: they have no version and no names. */

struct model_sink { /* writes the next n bytes */
    bool (*write)(void *user, const void *bytes, uint64_t n, struct base_error *err);
    void *user;
};
enum { MODEL_READERS_MAX = 8 };
struct model_source { /* copies or skips the next n bytes; both fail past the end */
    bool (*read)(void *user, void *bytes, uint64_t n, struct base_error *err);
    bool (*pass_over)(void *user, uint64_t n, struct base_error *err);
    void *user[MODEL_READERS_MAX]; /* readers of the same bytes, one per thread, each of which
                                      starts at their beginning */
    unsigned n_users;              /* at least 1 */
};

/* Writes the state of a sequence that is not empty. Errors are those of the sink and
 * BASE_NO_MEMORY. */
bool model_seq_save(struct model_session *s, uint32_t seq, const struct model_sink *to,
                    struct base_error *err);

/* Replaces `seq` by the first tokens of a saved sequence, as many as can be restored and at most
 * `most`; returns their number. Returns 0 if they are fewer than `least`, and `seq` is unchanged;
 * or after an error, and `seq` may be empty. Any bytes are safe to read; the source must check that
 * they are those that were saved. */
uint32_t model_seq_load(struct model_session *s, uint32_t seq, uint32_t least, uint32_t most,
                        const struct model_source *from, struct base_error *err);

/* ---- Sequence 0 alone ---- */

uint32_t model_session_length(const struct model_session *s);
uint32_t model_session_truncate(struct model_session *s, uint32_t length);

/* Which positions get logits. */
enum model_logits { MODEL_LOGITS_NONE, MODEL_LOGITS_LAST, MODEL_LOGITS_ALL };

/* Appends ids[n] (in batches of n_batch). The sink's `first` counts ids: with LAST it is n - 1.
 * Errors are those of model_eval_batch. */
bool model_eval(struct model_session *s, const int32_t *ids, uint64_t n, enum model_logits which,
                model_logits_sink sink, void *user, struct base_error *err);

/* The logits [n_vocab] of the last token that requested logits; NULL before, and after
 * truncation. */
const float *model_last_logits(const struct model_session *s);

#endif
