/* cli/out/heat.h: a text with each token marked by its probability, on the terminal and as SVG.
 *
 * There are six levels, of a probability of 90 %, 50 %, 20 %, 5 %, 1 % and less; the first has no
 * mark. On a terminal the others are colours of the background (24 bits, or the 256-colour
 * palette); with NO_COLOR, TERM=dumb or without a terminal, characters in a line below each line of
 * text:
 *
 *     The capital of France is Lyon.
 *     ░░░ ▓▓▓▓▓▓▓ ·    ·····   █████ */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/output.h"
#include "cli/load.h"
#include "generate/generate.h"

enum cli_heat_form { CLI_HEAT_MARKS, CLI_HEAT_256, CLI_HEAT_RGB };

struct cli_heat_token; /* its end in the text, and its probability */

struct cli_heat { /* all zeros: empty */
    enum cli_heat_form form;
    bool silent;             /* only the picture is made */
    struct base_buffer text; /* all tokens */
    struct cli_heat_token *token;
    size_t n_tokens, room;
    size_t n_shown;                 /* tokens that are written */
    struct base_buffer line, marks; /* of the present line, for CLI_HEAT_MARKS */
    size_t column, width;
    double sum;          /* of the log-probabilities of n tokens */
    uint64_t n, n_texts; /* texts that have ended */
};

/* Begins a text; chooses the form by standard output and the environment. */
void cli_heat_begin(struct cli_heat *h, bool silent);
/* Adds a token with its log-probability (NaN: it has none) and writes what is complete: a character
 * may be split among tokens; then it has the lowest of their probabilities. */
bool cli_heat_add(struct cli_heat *h, const char *bytes, size_t size, double logprob,
                  struct base_error *err);
/* Adds a generated token with the probability that its logits give it: the model's own, before
 * samplers and constraints. */
bool cli_heat_take(struct cli_heat *h, const struct cli_model *model, bool special,
                   const struct generate_piece *piece, struct base_error *err);
/* Ends one of several texts with the perplexity of its tokens. */
bool cli_heat_next(struct cli_heat *h, struct base_error *err);
/* Writes the rest, and a legend. */
bool cli_heat_end(struct cli_heat *h, struct base_error *err);
/* Writes the picture of the whole text, with the probability of each token as its tooltip. */
bool cli_heat_svg(const struct cli_heat *h, struct base_output *file, struct base_error *err);
void cli_heat_free(struct cli_heat *h);
