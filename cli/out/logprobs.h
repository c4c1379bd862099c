/* cli/out/logprobs.h: the array of --logprobs: for each token of a text its log-probability, and
 * the most probable tokens in its place, as JSON. A log-probability of minus infinity is null. */
#pragma once

#include "cli/load.h"
#include "generate/generate.h"

struct cli_logprobs {
    const struct cli_model *model;
    uint32_t n;                 /* tokens listed for each */
    struct base_buffer items;   /* of the array */
    struct base_buffer token;   /* the bytes of one token */
    struct sample_logprob *top; /* [n] of the latest token */
    uint32_t n_top;
    int32_t id; /* the latest token, and its log-probability */
    double own;
};

bool cli_logprobs_open(struct cli_logprobs *l, const struct cli_model *model, int64_t n,
                       struct base_error *err);
void cli_logprobs_close(struct cli_logprobs *l); /* may be all zeros */

/* Adds a token with its logits; a failed allocation is recorded in `items`. */
void cli_logprobs_take(struct cli_logprobs *l, const struct generate_piece *piece);
/* Appends the members "logprob", "bytes" and, if any are listed, "top" of the latest token. */
void cli_logprobs_add_latest(struct cli_logprobs *l, struct base_buffer *out);
