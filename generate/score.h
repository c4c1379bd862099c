/* generate/score.h: the probabilities of given texts: of each token of a row, given the tokens
 * before it.
 *
 * Owns: which rows are evaluated together, which beginnings they share. Refuses: where rows come
 * from, what their figures mean (generate/judge.h has sums of them).
 *
 * Rows come in groups that share a beginning (a question and its answers): it is evaluated once,
 * and forked for each row. What a group's beginning has in common with that of the next group
 * (examples before each question) is kept and evaluated once too. Figures of a row have the same
 * bits whatever is evaluated beside it: what a sequence evaluates to depends on its own tokens
 * only, and sums are double precision in the order of the vocabulary. */
#ifndef GENERATE_SCORE_H
#define GENERATE_SCORE_H

#include "models/model.h"

struct generate_score_row {
    const int32_t *ids; /* [n], at most the session's n_ctx + 1: the last is not evaluated */
    size_t n;
    size_t from;     /* of the first token that counts, 1 <= from <= n: none predicts the first */
    double *logprob; /* [n - from]: natural logarithms of their probabilities */
};

struct generate_score_group {
    const struct generate_score_row *row; /* [n] */
    size_t n;
};

struct generate_score_counts {
    uint64_t n_evaluated; /* tokens */
    uint64_t n_alone;     /* tokens of all rows: what they would take one by one */
};

struct generate_scorer; /* opaque; the caller owns it */

enum { GENERATE_SCORE_LEAST_SEQ = 3 };

/* Uses all sequences of the session, GENERATE_SCORE_LEAST_SEQ at least (else BASE_USAGE); groups
 * of more rows than there are sequences take several evaluations. `engine` and `session` must
 * outlive it. NULL on failure. */
struct generate_scorer *generate_scorer_new(struct engine *engine, struct model_session *session,
                                            uint32_t n_vocab, struct base_error *err);
void generate_scorer_free(struct generate_scorer *s); /* NULL is fine */

/* Fills the logprobs of all rows. BASE_TOO_LONG for a row beyond the context, BASE_USAGE for `from`
 * out of range: nothing is evaluated. After another error (BASE_INTERRUPTED, BASE_NO_MEMORY) it can
 * be called again. */
bool generate_scorer_run(struct generate_scorer *s, const struct generate_score_group *group,
                         size_t n, struct base_error *err);
/* Since it was made. */
struct generate_score_counts generate_scorer_counts(const struct generate_scorer *s);

#endif
