/* cli/whole_text.h: a request whose tokens a diffusion model writes together. */
#ifndef CLI_WHOLE_TEXT_H
#define CLI_WHOLE_TEXT_H

#include "cli/generation.h"

/* Fails with BASE_USAGE for a diffusion model and an option that needs tokens one by one. */
bool cli_diffusion_check(const struct cli_generation *g, const struct cli_values *values,
                         const struct cli_model *model, struct base_error *err);

/* Writes --predict tokens (128 by default) after the prompt by the options --diffusion-*, and
 * passes them to the request, which has begun, and its pieces to the sink, as generate_run does.
 * Without
 * --temp candidates are the best tokens. */
bool cli_diffusion_run(const struct cli_generation *g, const struct cli_values *values,
                       const struct cli_model *model, const struct text_ids *prompt,
                       generate_sink_fn *sink, void *user, struct generate_outcome *outcome,
                       struct base_error *err);

#endif
