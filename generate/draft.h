/* generate/draft.h: draft tokens, so that one batch evaluates several tokens of a text (speculative
 * decoding).
 *
 * Contains the sources of draft tokens (the text itself, an MTP layer of the model's file or a
 * drafter that reads the model's hidden states, or a smaller model with the same vocabulary), and
 * the decision how many are worth evaluating. It does not choose tokens: the request chooses each
 * token by the logits of plain evaluation, bit for bit, and drops what was evaluated after a wrong
 * draft token. So drafts, and the measured times that determine their number, change the speed of a
 * text and never its bytes. */
#pragma once

#include "models/model.h"

enum { GENERATE_DRAFT_MAX = 16 }; /* draft tokens per step */

struct generate_draft_options {
    uint32_t n_ctx;                /* that of the session that evaluates the text */
    uint32_t n_vocab;              /* likewise; 0: that of `session` is the same */
    struct model_session *session; /* sequence 0 of a smaller model with the same n_ctx, and the
                                    * same vocabulary but for unused tokens at its end; NULL:
                                    * drafts are looked up in the text */
    struct model_session
        *drafter; /* the session that evaluates the text, if it can draft tokens and
                   * `session` is NULL: it drafts where the text has no match */
    bool always;  /* draft in every possible step, only by the drafter if there is one; otherwise
                   * only if drafts save time by the measured costs */
};

struct generate_draft; /* opaque */

struct generate_draft *generate_draft_new(const struct generate_draft_options *options,
                                          struct base_error *err);
void generate_draft_free(struct generate_draft *d); /* accepts NULL */

/* Begins another text. */
void generate_draft_begin(struct generate_draft *d);

/* Call this before a batch. ids[0..n) is the text of sequence `seq`, of which the batch evaluates
 * the last `n_new`. Writes at most `room` draft tokens that follow it to guess[GENERATE_DRAFT_MAX];
 * *n_guess is their number. Between two calls ids may only be appended. Errors are those of the
 * evaluation of the drafter or the smaller model. */
bool generate_draft_next(struct generate_draft *d, uint32_t seq, const int32_t *ids, size_t n,
                         size_t n_new, uint64_t room, int32_t *guess, size_t *n_guess,
                         struct base_error *err);

/* Call this after the batch, with its time and the number of right draft tokens. */
void generate_draft_record(struct generate_draft *d, size_t n_new, size_t n_guess, size_t n_right,
                           double seconds);

/* Adds to *bytes those of the graphs that batches with draft tokens use. */
bool generate_draft_plan(struct model_session *session, uint64_t *bytes, struct base_error *err);

struct generate_draft_counts {
    uint64_t n_batches, n_guesses, n_right;
};
struct generate_draft_counts generate_draft_counts(const struct generate_draft *d);
