/* models/model.h: a model file as something that can be evaluated.
 *
 * Owns: hyper-parameters, the architecture table, weights by name, graph builders, sequence memory.
 * Refuses: text, sampling, printing. A model is immutable once open (weights stay in the mapped
 * file); a session is one mutable timeline of tokens with its cache and its graphs. */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "engine/engine.h"
#include "gguf/gguf.h"

struct model;         /* opaque */
struct model_session; /* opaque */

struct model_facts { /* what callers may ask about a model */
    const char *arch;
    uint32_t n_vocab, n_ctx_train, n_layer, n_embd, n_head, n_head_kv;
    uint64_t n_params, weight_bytes;
};

/* `file` and `engine` must outlive the model. NULL and BASE_MODEL for a missing, damaged or
 * unsupported model: the message names the key, the tensor or the architecture. */
struct model *model_open(const struct gguf_file *file, struct engine *engine,
                         struct base_error *err);
void model_close(struct model *m); /* NULL is fine */
const struct model_facts *model_facts(const struct model *m);

struct model_session_options {
    uint32_t n_ctx;       /* cells; 0: what the model was trained with, at most 4096 */
    uint32_t n_batch;     /* tokens evaluated at once at most; 0: 512 */
    enum quant_id type_k; /* cache types: F32, F16, BF16, Q8_0, Q4_0, ... */
    enum quant_id type_v;
};
struct model_session_options model_session_options_default(void); /* F16 caches */

/* Allocates the cache and plans the graphs that the options imply. */
struct model_session *model_session_new(struct model *m, const struct model_session_options *o,
                                        struct base_error *err);
void model_session_free(struct model_session *s); /* NULL is fine */
uint32_t model_session_n_ctx(const struct model_session *s);
uint32_t model_session_length(const struct model_session *s); /* tokens in the cache */
uint64_t model_session_cache_bytes(const struct model_session *s);

/* Which positions get logits. */
enum model_logits { MODEL_LOGITS_NONE, MODEL_LOGITS_LAST, MODEL_LOGITS_ALL };

/* Appends ids[n] (in batches of n_batch) to the timeline. For each batch `sink` (may be NULL) is
 * called with the wanted rows of logits: first row's index among ids, row count, [rows][n_vocab].
 * The logits stay valid during the call. BASE_TOO_LONG when the context would overflow (nothing is
 * evaluated); ids outside the vocabulary are BASE_FAILED. */
typedef bool (*model_logits_sink)(void *user, uint64_t first, uint64_t rows, const float *logits,
                                  struct base_error *err);
bool model_eval(struct model_session *s, const int32_t *ids, uint64_t n, enum model_logits which,
                model_logits_sink sink, void *user, struct base_error *err);

/* The last position's logits [n_vocab] of the latest model_eval with LAST or ALL; NULL before. */
const float *model_last_logits(const struct model_session *s);

/* Forgets tokens from position `length` on and returns how many are left: `length`, or 0 when a
 * sliding-window cache no longer holds what the positions after `length` would look at. */
uint32_t model_session_truncate(struct model_session *s, uint32_t length);

#endif
