/* cli/whole_text.h: a request whose tokens a diffusion model writes together. */
#pragma once

#include "cli/load.h"
#include "generate/generate.h"

/* Prepares the options of a request: without --temp (`has_temp`) a diffusion model takes the best
 * tokens. Fails with BASE_USAGE for an option that needs tokens one by one. Does nothing for other
 * models. */
bool cli_diffusion_prepare(struct generate_options *o, bool has_temp,
                           const struct cli_values *values, const struct cli_model *model,
                           struct base_error *err);

/* A text to write: the options, and a request with them that has begun with the prompt. */
struct cli_diffusion {
    const struct cli_values *values; /* those of --diffusion-* count */
    const struct cli_model *model;
    const struct generate_options *options;
    struct generate_request *request;
    const struct generate_prompt *prompt;
};

/* Writes --predict tokens (128 by default) after the prompt in sequence 0, and passes them to the
 * request and its pieces to the sink, as generate_run does. */
bool cli_diffusion_run(const struct cli_diffusion *d, generate_sink_fn *sink, void *user,
                       struct generate_outcome *outcome, struct base_error *err);
