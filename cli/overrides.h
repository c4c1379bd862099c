/* cli/overrides.h: metadata that the command line gives in place of the file's. */
#ifndef CLI_OVERRIDES_H
#define CLI_OVERRIDES_H

#include "cli/options.h"
#include "gguf/gguf.h"

/* --override-kv, --rope-* and --yarn-* for a file before its model is opened. BASE_USAGE names the
 * option that is malformed, and what would be right. */
bool cli_overrides_apply(struct gguf_file *file, const struct cli_values *values,
                         struct base_error *err);

#endif
