/* cli/sampler.h: from the options to a sampler, for every command that generates. */
#ifndef CLI_SAMPLER_H
#define CLI_SAMPLER_H

#include "cli/load.h"
#include "sample/sample.h"

/* What can be said before the model is loaded: ranges, names, contradictions, the form of biases.
 * BASE_USAGE names the option. */
bool cli_sampler_check(const struct cli_values *values, struct base_error *err);

/* Makes the sampler for an open session; the tokenizer must outlive it. NULL on failure. */
struct sampler *cli_sampler_open(const struct cli_values *values, const struct cli_model *model,
                                 uint64_t seed, struct base_error *err);

#endif
