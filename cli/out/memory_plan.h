/* cli/out/memory_plan.h: --plan: the memory that a run would need, without running it.
 *
 * Only the header of the model is read (gguf_open_header), and the engine only plans, so neither
 * the weights nor the memory need to exist. */
#ifndef CLI_OUT_MEMORY_PLAN_H
#define CLI_OUT_MEMORY_PLAN_H

#include "cli/load.h"

/* Prints the plan for a prompt of n_prompt tokens (0: a full batch) and the text after it. */
bool cli_plan_show(const struct cli_model *m, const struct cli_values *values, uint64_t n_prompt,
                   struct base_error *err);

#endif
