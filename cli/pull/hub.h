/* cli/pull/hub.h: which files a name on the hub represents.
 *
 * USER/REPO[:QUANT] names one model of a repository, whose list of files the hub gives as JSON:
 *
 *     HUB/api/models/USER/REPO/tree/main?recursive=1
 *         [{"type":"file", "path":P, "size":N, "lfs":{"oid":SHA256, "size":N}}, ..]
 *     HUB/USER/REPO/resolve/main/P     a file's bytes
 *
 * What a list says is not trusted: paths that leave their folder or contain control characters name
 * no file, and of a path only the last part becomes a name on this machine. */
#ifndef CLI_PULL_HUB_H
#define CLI_PULL_HUB_H

#include "cli/pull/http.h"
#include "cli/pull/partial.h"

struct cli_hub_file {
    struct base_buffer url, name; /* name: in the folder of models */
    struct cli_version version;   /* size and sum, as far as they are known */
};

struct cli_hub_files {
    struct cli_hub_file *file;
    size_t count, room;
};

/* The files of a model: of a split one all parts, in order. BASE_USAGE for a text that is none, or
 * that fits several models (the error lists them); BASE_MODEL when there is none. */
bool cli_hub_find(struct cli_http *h, const char *hub, const char *text,
                  struct cli_hub_files *files, struct base_error *err);

/* The file, or files, of an address; `as` its name here, NULL: the address's; `sha256` of it, or
 * NULL. */
bool cli_hub_from_url(const char *url, const char *as, const char *sha256,
                      struct cli_hub_files *files, struct base_error *err);

/* Another name for the only file. BASE_USAGE when there are several, or it is no name. */
bool cli_hub_rename(struct cli_hub_files *files, const char *as, struct base_error *err);

void cli_hub_free(struct cli_hub_files *files);

/* What the answer to a request says when it is none of 200 and 206: BASE_MODEL when there is no
 * such thing or it is not for everyone, otherwise BASE_FAILED. `host`: whose answer it is. */
bool cli_hub_refusal(const struct cli_http_answer *a, const char *host, struct base_error *err);

#endif
