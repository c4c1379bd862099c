/* generate/draft.h: draft tokens, so that one batch evaluates several tokens of a text (speculative
 * decoding).
 *
 * Owns: where guesses come from (the text itself, a layer of the model's file that was trained to
 * guess, or a smaller model with the same vocabulary), and how many are worth evaluating. Refuses:
 * choosing tokens. A guess decides nothing: the request chooses each token by the logits that plain
 * evaluation gives, bit for bit, and what was evaluated after a wrong guess is forgotten. So
 * guesses, and the times that are measured to decide on their number, change the speed of a text
 * and never its bytes. */
#ifndef GENERATE_DRAFT_H
#define GENERATE_DRAFT_H

#include "models/model.h"

enum { GENERATE_DRAFT_MAX = 16 }; /* draft tokens of a step */

struct generate_draft_options {
    uint32_t n_ctx;                /* of the session whose tokens are guessed at */
    struct model_session *session; /* of a smaller model with the same vocabulary and n_ctx; its
                                    * sequence 0 is the draft's. NULL: guesses are looked up in the
                                    * text */
    struct model_session *mtp;     /* the one whose tokens are guessed at, where it has a layer that
                                    * guesses and `session` is NULL: asked where nothing is found in
                                    * the text. NULL: it has none */
    bool always; /* guess wherever a guess is known, by that layer alone if there is one; otherwise
                  * only where it has paid */
};

struct generate_draft; /* opaque; the caller owns it */

struct generate_draft *generate_draft_new(const struct generate_draft_options *options,
                                          struct base_error *err);
void generate_draft_free(struct generate_draft *d); /* NULL is fine */

/* Begins another text. */
void generate_draft_begin(struct generate_draft *d);

/* Before a batch: of the text ids[0..n) of sequence `seq`, the last `n_new` of which the batch
 * evaluates, at most `room` guesses at the following ids into guess[GENERATE_DRAFT_MAX]; *n_guess
 * their number. Since the last call ids were appended only. Errors are those of the layer's and the
 * smaller model's evaluation. */
bool generate_draft_guess(struct generate_draft *d, uint32_t seq, const int32_t *ids, size_t n,
                          size_t n_new, uint64_t room, int32_t *guess, size_t *n_guess,
                          struct base_error *err);

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
