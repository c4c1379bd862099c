/* cli/commands.h: the subcommands, one file each (cmd_*.c). Each writes its result to standard
 * output, or returns false with an error that main.c reports. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/options.h"

#define CLI_VERSION_TEXT "0.1.0"
#define CLI_VERSION_DATE "2026-11-21" /* printed in the manual page */

bool cli_cmd_run(const struct cli_values *values, struct base_error *err);
bool cli_cmd_chat(const struct cli_values *values, struct base_error *err);
bool cli_cmd_batch(const struct cli_values *values, struct base_error *err);
bool cli_cmd_tokenize(const struct cli_values *values, struct base_error *err);
bool cli_cmd_logits(const struct cli_values *values, struct base_error *err);
bool cli_cmd_perplexity(const struct cli_values *values, struct base_error *err);
bool cli_cmd_score(const struct cli_values *values, struct base_error *err);
bool cli_cmd_embed(const struct cli_values *values, struct base_error *err);
bool cli_cmd_rerank(const struct cli_values *values, struct base_error *err);
bool cli_cmd_similar(const struct cli_values *values, struct base_error *err);
bool cli_cmd_bench(const struct cli_values *values, struct base_error *err);
bool cli_cmd_inspect(const struct cli_values *values, struct base_error *err);
bool cli_cmd_imatrix(const struct cli_values *values, struct base_error *err);
bool cli_cmd_quantize(const struct cli_values *values, struct base_error *err);
bool cli_cmd_merge_lora(const struct cli_values *values, struct base_error *err);
bool cli_cmd_split(const struct cli_values *values, struct base_error *err);
bool cli_cmd_merge(const struct cli_values *values, struct base_error *err);
bool cli_cmd_edit(const struct cli_values *values, struct base_error *err);
bool cli_cmd_diff(const struct cli_values *values, struct base_error *err);
bool cli_cmd_verify(const struct cli_values *values, struct base_error *err);
bool cli_cmd_check(const struct cli_values *values, struct base_error *err);
bool cli_cmd_cache(const struct cli_values *values, struct base_error *err);
bool cli_cmd_models(const struct cli_values *values, struct base_error *err);
bool cli_cmd_pull(const struct cli_values *values, struct base_error *err);
bool cli_cmd_doctor(const struct cli_values *values, struct base_error *err);
bool cli_cmd_completion(const struct cli_values *values, struct base_error *err);
bool cli_cmd_man(const struct cli_values *values, struct base_error *err);
bool cli_cmd_version(const struct cli_values *values, struct base_error *err);
bool cli_cmd_help(const struct cli_values *values, struct base_error *err);

#endif
