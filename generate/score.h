/* generate/score.h: the probabilities of given texts: of each token of a row, given the tokens
 * before it.
 *
 * It determines which rows are evaluated together and which prefixes they share;
 * generate/statistics.h has the statistics.
 *
 * Rows come in groups with a common prefix (a question and its answers), which is evaluated once
 * and forked for each row. The common prefix of adjacent groups (examples before each question) is
 * kept and evaluated once too. The results of a row have the same bits whatever else is evaluated:
 * the logits of a sequence depend on its own tokens only, and sums are in double precision in the
 * order of the vocabulary. */
#pragma once

#include "models/model.h"

struct generate_score_row {
    const int32_t *ids; /* the ids of the row after the prefix of its group */
    size_t n;        /* number with the prefix, at most the session's n_ctx + 1: the last id is not
                        evaluated */
    size_t from;     /* first token that counts, 1 <= from <= n: token 0 has no prediction */
    double *logprob; /* [n - from]: natural logarithms of the probabilities */
};

struct generate_score_group {
    const struct generate_score_row *row; /* [n] */
    size_t n;
    const int32_t *prefix; /* [n_prefix]: the first ids of all rows; NULL: none */
    size_t n_prefix;
};

struct generate_score_counts {
    uint64_t n_evaluated; /* tokens */
    uint64_t n_alone;     /* tokens of all rows without sharing */
    uint64_t n_groups;    /* groups that are done */
};

struct generate_scorer; /* opaque */

enum { GENERATE_SCORE_LEAST_SEQ = 3 };

/* Creates a scorer, which uses all sequences of the session, at least GENERATE_SCORE_LEAST_SEQ
 * (otherwise BASE_USAGE); groups with more rows than sequences take several evaluations. `engine`
 * and `session` must outlive it; the caller frees it. Returns NULL on failure. */
struct generate_scorer *generate_scorer_new(struct engine *engine, struct model_session *session,
                                            uint32_t n_vocab, struct base_error *err);
void generate_scorer_free(struct generate_scorer *s); /* accepts NULL */

/* Computes the logprobs of all rows. Fails with BASE_TOO_LONG for a row beyond the context, and
 * with BASE_USAGE for `from` out of range, before any evaluation. After another error
 * (BASE_INTERRUPTED, BASE_NO_MEMORY) the function can be called again. */
bool generate_scorer_run(struct generate_scorer *s, const struct generate_score_group *group,
                         size_t n, struct base_error *err);
/* Returns the counts since the scorer was created. */
struct generate_score_counts generate_scorer_counts(const struct generate_scorer *s);
