/* generate/generate.h: generates a text from the ids of a prompt, token by token, until an end
 * condition.
 *
 * A request is a state machine for one sequence of a session: which ids must be evaluated next,
 * which id their logits select, which part of the text can be shown, why it ended. A request
 * evaluates nothing itself, so that one batch can be a step of many requests; generate_run drives a
 * single one. There is no command line, template or output here.
 *
 *     generate_request_new        once for any number of texts
 *     generate_request_begin      a text: all ids of its prompt; those that the sequence already has
 *                                 are not evaluated again
 *     generate_request_next_ids   ids to evaluate; none: the text has ended
 *     generate_request_take       the logits of the last of them -> a piece of text
 *     generate_request_end        the text that was held back, and the outcome
 *
 * After generate_request_begin a request itself allocates nothing; a constraint's caches grow with
 * each new state. */
#pragma once

#include "models/adapter.h"
#include "sample/constrain/constraint.h"
#include "sample/sample.h"
#include "text/tokenizer/tokenizer.h"

enum generate_ending {
    GENERATE_END_EOS,        /* the model chose an end-of-text token */
    GENERATE_END_STOP,       /* the text has a stop text */
    GENERATE_END_LIMIT,      /* max_tokens */
    GENERATE_END_CONTEXT,    /* the context is full */
    GENERATE_END_CONSTRAINT, /* the constraint allows no token */
    GENERATE_END_INTERRUPTED
};
extern const char *const generate_ending_name[]; /* "eos", "stop", ... */

/* The objects that the pointers refer to must outlive the requests. */
struct generate_options {
    struct sample_options sample; /* the request sets its token_bytes and end_id */
    uint64_t max_tokens;          /* limit for each text; UINT64_MAX: the context alone limits it */
    const char *const *stop;      /* [n_stop] texts that end the output before them; none empty.
                                   * A control token with such a text ends it too, if not shown */
    size_t n_stop;
    const struct constraint *constraint; /* restricts the answer; NULL: none */
    const char *marks;   /* control tokens whose text occurs here may represent it under the
                          * constraint; NULL: none may */
    int64_t max_thought; /* maximum of reasoning tokens; -1: see struct generate_thought_marks */
    bool ignore_eos;     /* end-of-text tokens are never chosen */
    bool show_special;   /* control tokens are part of the text */
    bool
        hides_control; /* ... for a caller that hides them: stop texts do not match their letters */
    bool all_logits;   /* pieces have logits even if no choice depends on them */
    bool in_lines;     /* the answer is JSON, and its pieces have line breaks and indents: */
    uint32_t indent;   /* spaces for each level */
};

/* Objects that requests share; all must outlive the requests. */
struct generate_model {
    const struct model *model;
    const struct text_tokenizer *tokenizer;
    struct model_session *session;
    const struct constrain_token_trie *trie; /* NULL: each constrained request builds one */
};

/* The marks around a model's reasoning before its answer. A constraint restricts only the answer.
 * Reasoning ends with the closing mark; if that begins with a control or user-defined token, only
 * that token begins it. The request writes the mark itself after max_thought tokens and, under a
 * constraint, if the model would end the text or if fewer tokens would be left than are reserved
 * for the answer: a quarter of the tokens that may come, or those of the shortest answer if that is
 * more.
 *
 *     open  reasoning  close turn answer  {"constrained": ...}
 *     answer  {"constrained": ...}                     without reasoning
 *
 * Under a constraint the request writes `turn` and `answer`, and without reasoning `answer`: the
 * model chooses the token in which `open` and `answer` first differ. With `marks` of struct
 * generate_options the constraint contains its own header, and `answer` is not written. */
struct generate_thought_marks {
    const char *open, *close;
    const char *turn, *answer; /* NULL or "": none */
    bool opened; /* the prompt ends with the opening mark; otherwise the text may begin with it */
};

struct generate_prompt {
    const int32_t *ids; /* [n]: all ids before the text, n > 0 */
    size_t n;
    size_t n_held; /* number of ids that the caller has put into the sequence (model_seq_fork); 0:
                    * it has those of the request's last text */
    const char *begun; /* [n_begun]: the beginning of the answer, which is the end of the ids; the
                        * constraint restricts it too. NULL: none */
    size_t n_begun;
    bool continues; /* the text continues other text: no leading space is dropped */
    uint64_t seed;
    const float *adapters; /* [adapters of the model]: their scales; NULL: the defaults */
    const struct generate_thought_marks *thought; /* NULL: the whole text is the answer */
};

/* Pointers are valid until the next call for the request, the logits as long as the caller keeps
 * them. */
struct generate_piece {
    int32_t id;          /* the token; -1: no token, only text that was held back, if any */
    uint64_t index;      /* of the token, from 0 */
    const char *text;    /* text to show: whole UTF-8, no part of a stop text */
    size_t size;         /* may be 0 */
    uint64_t end;        /* offset after the token's own bytes in the text, of which later pieces
                          * may show some */
    const float *logits; /* [n_vocab]: the token was chosen by these; NULL: none, or no token */
};

struct generate_outcome {
    enum generate_ending ending;
    const char *stop_text;   /* the stop text that ended the text, or NULL */
    uint64_t n_prompt;       /* ids of the prompt */
    uint64_t n_cached;       /* ids of the prompt that the sequence already had */
    uint64_t n_read;         /* ids of the prompt that were evaluated; after an interrupt the sum of
                              * these two is less than n_prompt */
    uint64_t n_generated;    /* including the one that ended the text */
    double read_seconds;     /* seconds for the prompt */
    double generate_seconds; /* seconds after that */
    double choose_seconds;   /* the part of these for samplers and the constraint */
    bool complete;           /* the constraint accepts the answer; true without one */
};

struct generate_request; /* opaque */

/* Creates a request on sequence `seq`, which nothing else may use. The caller frees it. Returns
 * NULL with BASE_USAGE for options out of range, BASE_FAILED or BASE_NO_MEMORY. */
struct generate_request *generate_request_new(const struct generate_options *options,
                                              const struct generate_model *model, uint32_t seq,
                                              struct base_error *err);
void generate_request_free(struct generate_request *r); /* accepts NULL */

/* Begins a text with a new sampler. The sequence keeps the common prefix of its ids and the prompt,
 * without the prompt's last id and as far as the prompt's adapters give the same state, and drops
 * its other ids; prompt->ids are copied. Fails with BASE_TOO_LONG if the prompt exceeds the
 * context, and with BASE_USAGE for a prompt without ids or a beginning that the constraint does not
 * allow. */
bool generate_request_begin(struct generate_request *r, const struct generate_prompt *prompt,
                            struct base_error *err);

/* Returns the ids [*n] to append to the sequence, with logits for the last one; *n 0: the text has
 * ended. */
const int32_t *generate_request_next_ids(const struct generate_request *r, size_t *n);
uint32_t generate_request_seq(const struct generate_request *r);
/* Returns the ids [*n] of the sequence. */
const int32_t *generate_request_held(const struct generate_request *r, size_t *n);
struct model_session *generate_request_session(const struct generate_request *r);

/* For draft tokens: all ids [*n] of the text so far; how many tokens after these may be evaluated;
 * whether the prompt has been evaluated; whether the text has ended; and a function that drops what
 * the sequence has after the text. */
const int32_t *generate_request_ids(const struct generate_request *r, size_t *n);
uint64_t generate_request_room(const struct generate_request *r);
bool generate_request_has_read(const struct generate_request *r);
bool generate_request_is_over(const struct generate_request *r);
void generate_request_cut(struct generate_request *r);

/* Chooses a token by the logits [n_vocab] of the last of next_ids, which the sequence now has.
 * After an interrupt, or if the constraint allows no token, the piece has no token. */
bool generate_request_take(struct generate_request *r, const float *logits,
                           struct generate_piece *piece, struct base_error *err);

/* As generate_request_take, but the token is given: `id`, which the request only turns into text.
 * Not for a request with a constraint or reasoning. */
bool generate_request_take_id(struct generate_request *r, int32_t id, struct generate_piece *piece,
                              struct base_error *err);

/* Returns whether the next token is determined: generate_request_take then needs no logits (NULL),
 * and the ids before it need not be evaluated yet. */
bool generate_request_is_forced(const struct generate_request *r);

/* Call this if the evaluation was interrupted: the text ends. */
void generate_request_interrupt(struct generate_request *r);

/* Call this after the last token: returns the rest of the text, and how it ended. An interrupt is
 * not an error, nor is a text that ends before it satisfies its constraint (outcome->complete). */
bool generate_request_end(struct generate_request *r, struct generate_piece *piece,
                          struct generate_outcome *outcome, struct base_error *err);

/* Called for each token, and once more at the end if text is left. Returns false with an error to
 * stop. */
typedef bool generate_sink_fn(void *user, const struct generate_piece *piece,
                              struct base_error *err);

/* Runs one request to its end: evaluates, chooses tokens, calls the sink, which must not use the
 * session. Draft tokens (generate/draft.h; NULL: none) change neither pieces nor outcome. */
struct generate_draft;
bool generate_run(struct generate_request *r, struct generate_draft *draft, generate_sink_fn *sink,
                  void *user, struct generate_outcome *outcome, struct base_error *err);
