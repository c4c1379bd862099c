/* generate/lone.h: one step of a request that is evaluated by itself. Private to generate/.
 *
 * A batch has the request's next ids and draft tokens; its logits select tokens. It has no other
 * requests. */
#pragma once

#include "generate/draft.h"
#include "generate/generate.h"

struct generate_lone {
    /* ---- Set by the caller ---- */
    struct generate_request *request;
    struct generate_draft *draft; /* NULL: no draft tokens */
    generate_sink_fn *sink;
    void *user;
    struct model_token *tokens; /* a batch: room for the next ids and GENERATE_DRAFT_MAX more */
    /* ---- Results and state of a step ---- */
    bool failed; /* choosing a token failed, not the evaluation */
    int32_t guess[GENERATE_DRAFT_MAX];
    size_t n_guess;
    size_t n_right; /* in a batch: number of draft tokens that were right so far */
    bool wrong;     /* in a batch: the further logits follow a wrong draft token or the end */
    double taking;  /* in a batch: seconds spent choosing tokens */
};

/* Evaluates the next ids, ids[n], n > 0, and chooses the tokens. Returns false after an error or an
 * interrupt. */
bool generate_lone_step(struct generate_lone *l, const int32_t *ids, size_t n,
                        struct base_error *err);
