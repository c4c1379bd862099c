/* cli/output_files.h: opens the files that a command's options write.
 *
 * An output that the command also reads, under any name, is BASE_USAGE and is not changed. A signal
 * that ends the process removes incomplete files. */
#pragma once

#include "base/output.h"
#include "cli/options.h"
#include "gguf/gguf.h"

/* Opens an output of base/output.h. The files that are read are those that `values` names, standard
 * input, and all of `model` (NULL: none). The output must not move until cli_output_close. */
bool cli_output_open(struct base_output *o, const char *path, const struct cli_values *values,
                     const struct gguf_file *model, struct base_error *err);
/* Checks and registers an output that its writer opens later, and checks that it can be opened,
 * so that a wrong name is an error before the work. */
bool cli_output_claim(struct base_output *o, const char *path, const struct cli_values *values,
                      const struct gguf_file *model, struct base_error *err);
/* cli_output_claim for all files of a model whose parts have been declared to the writer; `path` as
 * for gguf_writer_begin. */
bool cli_output_claim_model(struct gguf_writer *w, const char *path,
                            const struct cli_values *values, const struct gguf_file *model,
                            struct base_error *err);
/* Only checks: BASE_USAGE if the file is read too. */
bool cli_output_check(const char *path, const struct cli_values *values,
                      const struct gguf_file *model, struct base_error *err);
/* Calls base_output_close and unregisters the output. */
bool cli_output_close(struct base_output *o, bool ok, struct base_error *err);
