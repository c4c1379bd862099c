/* cli/overrides.h: metadata overrides of the command line. */
#pragma once

#include "cli/options.h"
#include "gguf/gguf.h"

/* Applies --override-kv, --rope-* and --yarn-* to a file before its model is opened. Fails with
 * BASE_USAGE, which names the malformed option and the expected form.
 * `drafts`: the file is the model of --draft, for which --override-kv does not count. */
bool cli_overrides_apply(struct gguf_file *file, const struct cli_values *values, bool drafts,
                         struct base_error *err);

/* Fails with BASE_USAGE if a key of --override-kv has no effect: the file does not have it, and
 * neither the opened model nor the tokenizer, if it was opened, read it. */
bool cli_overrides_check(const struct gguf_file *file, bool has_tokenizer, struct base_error *err);
