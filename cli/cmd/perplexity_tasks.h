/* cli/cmd/perplexity_tasks.h: `infer perplexity --hellaswag` and similar: the share of
 * multiple-choice tasks that a model solves.
 *
 * The score of a choice is the mean log-probability of the tokens that count; the answer is the
 * choice with the highest score. In HellaSwag and binary files the tokens after the common prefix
 * of all choices count. In Winogrande the tokens after the choice count, except the last; if either
 * choice has at most three tokens that differ or follow, those of the choice count too. */
#ifndef CLI_CMD_PERPLEXITY_TASKS_H
#define CLI_CMD_PERPLEXITY_TASKS_H

#include "cli/load.h"

/* Returns whether the options select tasks instead of a text. */
bool cli_tasks_asked(const struct cli_values *values);

/* Reads and evaluates the tasks and prints the result. The model must have weights and a
 * tokenizer. */
bool cli_tasks_run(const struct cli_values *values, struct cli_model *model,
                   struct base_error *err);

#endif
