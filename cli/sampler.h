/* cli/sampler.h: sets a sampler's options from those of the command line.
 *
 * Contains what only the command line has: escapes in sequence breakers, biases of texts, the
 * engine's level. End-of-text tokens are in generate/. */
#pragma once

#include "cli/load.h"
#include "sample/sample.h"

/* Objects that the options point to. */
struct cli_sampler_parts {
    struct sample_text *breaker;
    struct sample_bias *bias;
    size_t n_biases, max_biases;
};

/* Sets all options but the biases. Call it before the model is loaded, so that errors are reported
 * early. Fails with BASE_USAGE, which names the option: ranges, names, contradictions, the form of
 * biases. */
bool cli_sampler_prepare(const struct chat_request *request, struct cli_sampler_parts *parts,
                         struct sample_options *options, struct base_error *err);
/* Sets the biases and the level, which need the tokenizer and the engine. */
bool cli_sampler_finish(const struct chat_request *request, const struct cli_model *model,
                        struct cli_sampler_parts *parts, struct sample_options *options,
                        struct base_error *err);
void cli_sampler_parts_free(struct cli_sampler_parts *parts);
