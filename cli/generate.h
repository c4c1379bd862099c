/* cli/generate.h: the token loop: from the ids of a prompt to text that ends where it should.
 *
 * Owns: the sampler, stop strings, the decoder, the order in which they meet. Refuses: where the
 * text goes (a sink) and what the prompt is. `run` and `chat` use it. */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "cli/allowed.h"
#include "cli/load.h"
#include "sample/sample.h"
#include "sample/stop.h"

enum cli_ending {
    CLI_END_EOS,        /* the model chose an end-of-text token */
    CLI_END_STOP,       /* a --stop text */
    CLI_END_LIMIT,      /* --predict tokens */
    CLI_END_CONTEXT,    /* the context is full */
    CLI_END_CONSTRAINT, /* the constraint lets nothing follow */
    CLI_END_INTERRUPTED /* Ctrl-C */
};
extern const char *const cli_ending_name[]; /* as --json says it */

struct cli_piece {
    int32_t id;       /* the token; -1: none, this is text that was held back */
    uint64_t index;   /* of the token, from 0 */
    const char *text; /* what can be shown now: whole UTF-8, no part of a stop text */
    size_t size;      /* may be 0 */
};
/* Called once a token, and once more after the last when text is left. */
typedef bool cli_piece_fn(void *user, const struct cli_piece *piece, struct base_error *err);

struct cli_outcome {
    enum cli_ending ending;
    const char *stop_text; /* what ended it, after --escape; NULL: no stop text did */
    size_t stop_size;
    uint64_t n_cached; /* tokens that the session held before the prompt */
    uint64_t n_prompt, n_generated;
    uint64_t
        n_read; /* of the prompt: fewer where Ctrl-C broke off, or nothing was to be generated */
    double read_seconds, generate_seconds;
    double choose_seconds; /* of those that generated: samplers and constraint */
    bool complete;         /* the text is what the constraint accepts; true without one */
};

struct cli_generator {
    const struct cli_values *values;
    const struct cli_model *model;
    uint64_t seed;
    /* The rest is the generator's own. */
    struct sampler *sampler;
    struct constraint *constraint; /* NULL: none was asked for */
    struct cli_allowed *allowed;
    struct base_buffer said; /* the text so far, when both a constraint and --stop are there */
    struct base_buffer stop_text[CLI_LIST_MAX];
    struct text_decoder decoder;
    struct base_buffer piece, output; /* bytes of the latest token; what may be shown */
};

/* Checks the options, compiles the constraint and draws the seed; for before the model is loaded.
 */
bool cli_generator_prepare(struct cli_generator *g, const struct cli_values *values,
                           struct base_error *err);
/* Makes the sampler for an open session. The model must stay where it is. */
bool cli_generator_open(struct cli_generator *g, const struct cli_model *model,
                        struct base_error *err);
void cli_generator_close(struct cli_generator *g); /* a zeroed one is fine */

/* For another text: a sampler that has seen nothing, with a seed of its own. */
bool cli_generator_restart(struct cli_generator *g, uint64_t seed, struct base_error *err);
/* Shows the sampler ids that the session holds already. */
void cli_generator_accept(struct cli_generator *g, const int32_t *ids, size_t n);

/* Evaluates ids[n] after what the session holds and generates from there. `continues` says that
 * the text follows other text, so that no leading space is dropped. Every piece has reached the
 * sink when it returns. Ctrl-C is an ending and no error; so is a text that ends before its
 * constraint is satisfied (outcome->complete tells). */
bool cli_generator_run(struct cli_generator *g, const int32_t *ids, size_t n, bool continues,
                       cli_piece_fn *sink, void *user, struct cli_outcome *outcome,
                       struct base_error *err);

/* BASE_CUT when the text ended before its constraint was satisfied. */
bool cli_outcome_check(const struct cli_outcome *outcome, struct base_error *err);

#endif
