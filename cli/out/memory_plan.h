/* cli/out/memory_plan.h: --plan: the memory that a run would need, without running it.
 *
 * The model was opened from its header alone (gguf_open_header) on an engine that only plans, so
 * neither the weights nor the memory are needed. */
#ifndef CLI_OUT_MEMORY_PLAN_H
#define CLI_OUT_MEMORY_PLAN_H

#include "cli/load.h"

/* Writes the plan of a prompt of n_prompt tokens (0: a whole batch) and what follows it. */
bool cli_plan_show(const struct cli_model *m, const struct cli_values *values, uint64_t n_prompt,
                   struct base_error *err);

#endif
