/* generate/draft.h: draft tokens, so that one batch evaluates several tokens of a text (speculative
 * decoding).
 *
 * Owns: where draft tokens come from (the text itself, or a smaller model with the same
 * vocabulary), and how many are worth evaluating. Refuses: choosing tokens. The request chooses
 * each token by the logits that plain evaluation gives, bit for bit, and drops what was evaluated
 * after a wrong draft token. So drafts, and the measured times that decide on their number, change
 * the speed of a text and never its bytes. */
#ifndef GENERATE_DRAFT_H
#define GENERATE_DRAFT_H

#include "models/model.h"

enum { GENERATE_DRAFT_MAX = 16 }; /* draft tokens of a step */

struct generate_draft_options {
    uint32_t n_ctx;                /* of the session that evaluates the text */
    struct model_session *session; /* of a smaller model with the same vocabulary and n_ctx:
                                      sequence 0. NULL: drafts are looked up in the text */
    bool always; /* draft whenever possible; otherwise only if it pays by the measured times */
};

struct generate_draft; /* opaque; the caller owns it */

struct generate_draft *generate_draft_new(const struct generate_draft_options *options,
                                          struct base_error *err);
void generate_draft_free(struct generate_draft *d); /* NULL is fine */

/* Begins another text. */
void generate_draft_begin(struct generate_draft *d);

/* To be called before a batch. ids[0..n) is the text, of which the batch evaluates the last
 * `n_new`. Writes at most `room` draft tokens that follow it to guess[GENERATE_DRAFT_MAX]; *n_guess
 * is their number. Between two calls ids may only be appended. Errors are those of the smaller
 * model's evaluation. */
bool generate_draft_guess(struct generate_draft *d, const int32_t *ids, size_t n, size_t n_new,
                          uint64_t room, int32_t *guess, size_t *n_guess, struct base_error *err);

/* To be called after the batch, with its time and the number of right draft tokens. */
void generate_draft_learn(struct generate_draft *d, size_t n_new, size_t n_guess, size_t n_right,
                          double seconds);

/* Adds the bytes of the graphs that batches with draft tokens use. */
bool generate_draft_plan(struct model_session *session, uint64_t *bytes, struct base_error *err);

struct generate_draft_counts {
    uint64_t n_batches, n_guesses, n_right;
};
struct generate_draft_counts generate_draft_counts(const struct generate_draft *d);

#endif
