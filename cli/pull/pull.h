/* cli/pull/pull.h: fetches the files of a model into a folder.
 *
 * A file is asked for in pieces, several at once, each by a request of its own; a connection that
 * breaks off continues where it was, after a pause. Sizes and sums that the hub names are checked;
 * an answer that contradicts them, or that is no GGUF file, is an error. */
#ifndef CLI_PULL_PULL_H
#define CLI_PULL_PULL_H

#include "cli/pull/hub.h"

struct cli_pull_options {
    const char *folder;
    int connections; /* at once, up to CLI_HTTP_REQUESTS */
    int retries;     /* of a piece, each without 1 MB of progress */
};

/* Fetches all files that are not there already; those that are must be the same (by their sum), or
 * BASE_FAILED. Shows progress on the terminal of standard error. */
bool cli_pull(struct cli_http *h, const struct cli_hub_files *files,
              const struct cli_pull_options *o, struct base_error *err);

#endif
