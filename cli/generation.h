/* cli/generation.h: makes a request of generate/ from the options, for every command that
 * generates.
 *
 * Contains the objects that the request's options point to, and the command line's additions to its
 * error messages. */
#pragma once

#include "chat/chat_reply.h"
#include "cli/draft_model.h"
#include "cli/sampler.h"
#include "generate/generate.h"

struct cli_generation {
    struct generate_options options; /* options.sample.seed: the seed that is used */
    struct generate_request *request;
    struct cli_draft draft;
    /* Objects that the options point to. */
    struct cli_sampler_parts parts;
    struct constraint *constraint; /* NULL: no constraint */
    struct base_buffer marks;      /* text of options.marks */
    bool no_notes;                 /* the caller's: no line about the schema is written */
    bool texts_only; /* the caller's: a grammar or schema is never the name of a file */
};

/* The request, its texts and values must outlive the generation. Checks the options, compiles the
 * constraint and draws the seed. Call it before the model is loaded, so that errors are reported
 * early. `show_special`: control tokens are part of the text. */
bool cli_generation_prepare(struct cli_generation *g, const struct chat_request *request,
                            bool show_special, struct base_error *err);
/* Creates the request of values->request, on sequence 0 of an open session, and opens drafting. */
bool cli_generation_open(struct cli_generation *g, const struct cli_values *values,
                         const struct cli_model *model, struct base_error *err);
/* Replaces the options and the request of an open generation; the draft remains. */
bool cli_generation_change(struct cli_generation *g, const struct chat_request *request,
                           const struct cli_model *model, struct base_error *err);
/* Makes the call of a tool the constraint, if the request chooses one. */
bool cli_generation_choose_tool(struct cli_generation *g, const struct chat_request *request,
                                const struct chat_template *t, struct base_error *err);
/* Returns in *seed the seed of --seed; `given` -1: draws one. */
bool cli_seed_pick(int64_t given, uint64_t *seed, struct base_error *err);
void cli_generation_close(struct cli_generation *g); /* may be all zeros */

/* Fails with BASE_CUT if the text ended before it satisfied its constraint. */
bool cli_outcome_check(const struct generate_outcome *outcome, struct base_error *err);

/* Returns why a text that is empty, or has only reasoning (`reasoned`), is; NULL if it may be. */
const char *cli_outcome_lack(const struct generate_outcome *outcome, bool reasoned);
/* Returns why an ended reply has nothing of what its user reads; NULL if it has, or may be empty.
 */
const char *cli_reply_lack(const struct chat_reply *r, const struct generate_outcome *outcome);
