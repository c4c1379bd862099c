/* cli/output_files.h: the files that a command writes where an option says so.
 *
 * None of them may be a file that the command reads, under any name: BASE_USAGE, and it is not
 * changed. A signal that ends the process leaves no part of one. */
#ifndef CLI_OUTPUT_FILES_H
#define CLI_OUTPUT_FILES_H

#include "base/output.h"
#include "cli/options.h"
#include "gguf/gguf.h"

/* Opens base/output.h's output. The files that are read: those that `values` names, standard input,
 * and all of `model` (NULL: none). The output must not move until cli_output_close. */
bool cli_output_open(struct base_output *o, const char *path, const struct cli_values *values,
                     const struct gguf_file *model, struct base_error *err);
/* The same for an output that its writer opens, without opening it. */
bool cli_output_claim(struct base_output *o, const char *path, const struct cli_values *values,
                      const struct gguf_file *model, struct base_error *err);
/* The same for a model that its writer has been told all parts of; `path` as gguf_writer_begin
 * takes it. */
bool cli_output_claim_model(struct gguf_writer *w, const char *path,
                            const struct cli_values *values, const struct gguf_file *model,
                            struct base_error *err);
/* Only the question: BASE_USAGE if the file is read too. */
bool cli_output_check(const char *path, const struct cli_values *values,
                      const struct gguf_file *model, struct base_error *err);
/* base_output_close. */
bool cli_output_close(struct base_output *o, bool ok, struct base_error *err);

#endif
