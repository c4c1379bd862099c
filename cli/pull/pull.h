/* cli/pull/pull.h: fetches the files of a model into a folder.
 *
 * A file is requested in pieces, several at once; a broken connection continues at the same byte
 * after a pause. Sizes and checksums from the hub are verified; a response that differs from them,
 * or that is not a GGUF file, is an error. */
#pragma once

#include "cli/pull/hub.h"

struct cli_pull_options {
    const char *folder;
    int connections; /* requests at once, up to CLI_HTTP_REQUESTS */
    int retries;     /* retries of a piece without 1 MB of progress in between */
};

/* Fetches all files that do not exist yet, and records that they came from `name`. An existing file
 * must have the same checksum, otherwise it fails with BASE_FAILED. Shows progress on standard
 * error if it is a terminal. */
bool cli_pull(struct cli_http *h, const struct cli_hub_name *name,
              const struct cli_hub_files *files, const struct cli_pull_options *o,
              struct base_error *err);
