/* cli/pull/hub.h: finds the files of a model by its name on the hub (cli/hub_name.h).
 *
 * The hub lists the files of a repository as JSON:
 *
 *     HUB/api/models/USER/REPO/tree/REVISION?recursive=1
 *         [{"type":"file", "path":P, "size":N, "lfs":{"oid":SHA256, "size":N}}, ..]
 *     HUB/USER/REPO/resolve/REVISION/P     a file's bytes
 *
 * A list is checked: paths that leave their folder or contain control characters are ignored,
 * and only the last part of a path becomes a name on this machine. */
#pragma once

#include "cli/hub_name.h"
#include "cli/pull/http.h"
#include "cli/pull/partial.h"

struct cli_hub_file {
    struct base_buffer url, name; /* name: in the folder of models */
    struct cli_version version;   /* size and checksum, if known */
};

struct cli_hub_files {
    struct cli_hub_file *file;
    size_t count, room;
    struct base_buffer path; /* of the first file in its repository */
};

/* Finds the files of a model: all parts of a split one, in order. `retries`: of each page of the
 * list. Fails with BASE_USAGE for a name
 * that fits several models (the message lists them), and with BASE_MODEL if there is none. */
bool cli_hub_find(struct cli_http *h, const char *hub, const struct cli_hub_name *name, int retries,
                  struct cli_hub_files *files, struct base_error *err);

/* Makes the file or files of an address. `as`: the local name, NULL: that of the address; `sha256`:
 * its checksum, or NULL. */
bool cli_hub_from_url(const char *url, const char *as, const char *sha256,
                      struct cli_hub_files *files, struct base_error *err);

/* Renames the only file. Fails with BASE_USAGE if there are several, or the name is invalid. */
bool cli_hub_rename(struct cli_hub_files *files, const char *as, struct base_error *err);

void cli_hub_free(struct cli_hub_files *files);

/* Sets the error for a response with a status other than 200 and 206: BASE_MODEL if the file does
 * not exist or access is denied, otherwise BASE_FAILED. */
bool cli_hub_refusal(const struct cli_http_request *r, struct base_error *err);
