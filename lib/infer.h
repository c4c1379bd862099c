/* infer.h: opens language models in GGUF files and generates text, with the bytes of the program
 * `infer`.
 *
 * This header is all that a program needs: it is compiled with the flags that pkg-config
 * prints for `infer`; example.c beside this library's documentation is one. It compiles as C99 and
 * as C++.
 *
 * Errors: a function that can fail takes a `struct infer_error *` (or NULL) and returns false, NULL
 * or -1; the status is the exit status that the program would end with. Nothing prints or exits.
 * Threads: a model computes on threads of its own. Calls for one model and what was opened from it
 * must not overlap; different models are independent.
 * Stability: while the version begins with 0, a release may change this interface; the number in
 * the library's file name then changes. */
#ifndef INFER_H
#define INFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

const char *infer_version(void); /* "0.1.0" */

enum infer_status {
    INFER_OK = 0,
    INFER_FAILED = 1,
    INFER_USAGE = 2, /* a setting, a conversation or an id is wrong */
    INFER_MODEL = 3, /* the file is missing, damaged or not supported */
    INFER_NO_MEMORY = 4,
    INFER_TOO_LONG = 5 /* the tokens do not fit the context */
};

struct infer_error { /* the caller owns it; set by a function that fails */
    enum infer_status status;
    char text[800]; /* one line without newline, ends with 0 */
};

/* ---- Models ---- */

struct infer_model;

/* Opens the model of a GGUF file (of a split model: any part), which stays mapped. n_threads 0:
 * one per processor that the system allows. The caller closes it after all that it opened from
 * it. */
struct infer_model *infer_model_open(const char *path, int n_threads, struct infer_error *err);
void infer_model_close(struct infer_model *model); /* accepts NULL */
uint32_t infer_model_n_vocab(const struct infer_model *model);
uint32_t infer_model_n_ctx(const struct infer_model *model); /* tokens of its training context */

/* ---- Tokens ---- */

enum infer_tokenize_flags {
    INFER_ADD_SPECIAL = 1,  /* beginning and end of text, by the file's keys */
    INFER_PARSE_SPECIAL = 2 /* "<|im_end|>" in the text becomes that token */
};

/* Writes the ids of text[size] to ids[room] and returns how many there are, which may be more than
 * were written; -1 after an error. */
ptrdiff_t infer_tokenize(const struct infer_model *model, const char *text, size_t size,
                         unsigned flags, int32_t *ids, size_t room, struct infer_error *err);
/* infer_tokenize for a conversation through the model's chat template, up to the beginning of the
 * answer: `messages` is JSON, [{"role":"user","content":"..."}, ...]; texts in it never become
 * control tokens. */
ptrdiff_t infer_tokenize_chat(const struct infer_model *model, const char *messages, int32_t *ids,
                              size_t room, struct infer_error *err);
/* Writes the bytes of a token, which need not be whole characters, to out[room] and returns how
 * many there are, which may be more than were written. Control tokens have none. */
size_t infer_token_bytes(const struct infer_model *model, int32_t id, char *out, size_t room);
bool infer_token_is_end(const struct infer_model *model, int32_t id);

/* ---- Sessions: a sequence of tokens and what the model keeps of it ---- */

struct infer_session;

/* n_ctx: tokens at most; 0: those of the training context, at most 4096. */
struct infer_session *infer_session_open(struct infer_model *model, uint32_t n_ctx,
                                         struct infer_error *err);
void infer_session_close(struct infer_session *session);            /* accepts NULL */
uint32_t infer_session_length(const struct infer_session *session); /* in tokens */
/* Keeps the first `length` tokens. Returns the number that is left, which is smaller where the
 * model's state cannot go back exactly (windows, recurrent layers). */
uint32_t infer_session_truncate(struct infer_session *session, uint32_t length);
/* Appends ids[n] and evaluates them. After an error the sequence has none of them
 * (or is shorter, as after infer_session_truncate). */
bool infer_session_append(struct infer_session *session, const int32_t *ids, size_t n,
                          struct infer_error *err);
/* Returns the logits [n_vocab] after the last token, valid until the session changes; NULL if there
 * are none. */
const float *infer_session_logits(const struct infer_session *session);

/* ---- Sampling ---- */

struct infer_sampler;

/* `settings`: "NAME=NUMBER ..." with the names of `infer run`'s options (temp, top_k, top_p, min_p,
 * typical_p, seed, repeat_penalty, ...); what is absent has the program's default, the seed is 0.
 * The caller closes it. */
struct infer_sampler *infer_sampler_open(const struct infer_model *model, const char *settings,
                                         struct infer_error *err);
void infer_sampler_close(struct infer_sampler *sampler); /* accepts NULL */
void infer_sampler_accept(struct infer_sampler *sampler,
                          int32_t id); /* a token of the text so far */
/* Chooses a token by logits[n_vocab]; -1 after an error, also without logits. It does not accept
 * it. */
int32_t infer_sampler_choose(struct infer_sampler *sampler, const float *logits,
                             struct infer_error *err);

/* ---- A whole answer ---- */

/* Receives the next bytes of the text, always whole characters. Returns false to end the text. */
typedef bool infer_write_fn(void *user, const char *text, size_t size);

/* Makes ids[n] the session's tokens (those that it has already are not evaluated again) and
 * generates until the model ends the text, the context is full or max_tokens (below 0: no limit)
 * were generated. The text is that of `infer run` with the same ids and settings, reasoning
 * included. */
bool infer_generate(struct infer_session *session, const int32_t *ids, size_t n,
                    const char *settings, int64_t max_tokens, infer_write_fn *write, void *user,
                    struct infer_error *err);

#ifdef __cplusplus
}
#endif

#endif
