/* cli/cmd/perplexity_tasks.h: `infer perplexity --hellaswag` and the like: how many multiple-choice
 * tasks a model solves.
 *
 * A choice's figure is the mean of the logarithms of its tokens' probabilities; the choice with the
 * highest is the answer. Of HellaSwag and binary files those tokens count that come after what all
 * choices of the task begin with. Of Winogrande those after the choice count, but the last; where
 * either choice has no more than three tokens that differ or follow, those of the choice too. */
#ifndef CLI_CMD_PERPLEXITY_TASKS_H
#define CLI_CMD_PERPLEXITY_TASKS_H

#include "cli/load.h"

/* Whether the options are for tasks in place of a text. */
bool cli_tasks_asked(const struct cli_values *values);

/* Reads, evaluates, prints. Needs the model's weights and tokenizer. */
bool cli_tasks_run(const struct cli_values *values, struct cli_model *model,
                   struct base_error *err);

#endif
