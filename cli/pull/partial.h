/* cli/pull/partial.h: a partially fetched file.
 *
 * NAME.part has the bytes, NAME.part.state the size, version and checksum of the file and the
 * number of bytes that are complete from the beginning. Both remain after a failure, an interrupt
 * or a signal; the next call for the same name and the same version of the file continues.
 * NAME.part is renamed to NAME when it is complete and has the expected checksum. Until then it is
 * locked, so that two processes never fetch the same name at once. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/sha256.h"
#include "cli/pull/http.h"

#define CLI_PARTIAL_BEGIN "infer pull " /* of each NAME.part.state */

struct cli_version {
    int64_t size;                       /* -1: unknown until the end */
    char validator[CLI_HTTP_VALIDATOR]; /* as in struct cli_http_answer */
    char sha256[BASE_SHA256_HEX];       /* expected checksum; "": unknown */
};

struct cli_partial {
    int fd, state_fd;                       /* -1: not open */
    bool begun;                             /* `version` is set */
    struct base_buffer target, part, state; /* paths */
    struct cli_version version;
    uint64_t done;   /* number of complete bytes from the beginning */
    uint64_t saved;  /* the same according to the saved state */
    uint64_t hashed; /* number of bytes hashed so far */
    struct base_sha256 hash;
};

/* Opens and locks folder/name.part. Fails with BASE_FAILED if another process is fetching it, or it
 * cannot be written, or may not be only this user's. The caller closes it, after a failure too. */
bool cli_partial_open(struct cli_partial *p, const char *folder, const char *name,
                      struct base_error *err);

/* Sets the version of the file. Keeps existing bytes of the same version, otherwise begins at 0. */
bool cli_partial_begin(struct cli_partial *p, const struct cli_version *version,
                       struct base_error *err);
/* Discards all bytes. It need not be open. */
bool cli_partial_clear(struct cli_partial *p, struct base_error *err);

bool cli_partial_write(struct cli_partial *p, uint64_t at, const char *bytes, size_t size,
                       struct base_error *err);

/* Records that bytes [0, done) are complete. Hashes some of them, and saves the state from time to
 * time. */
bool cli_partial_advance(struct cli_partial *p, uint64_t done, struct base_error *err);

/* Hashes at most some MB; *over: all complete bytes are hashed. */
bool cli_partial_hash(struct cli_partial *p, bool *over, struct base_error *err);

/* Call this when all bytes are hashed: compares checksum and size. If they differ, fails with
 * BASE_MODEL and discards the bytes. */
bool cli_partial_check(struct cli_partial *p, struct base_error *err);

/* Renames the file to its final name. */
bool cli_partial_rename(struct cli_partial *p, struct base_error *err);

/* Saves the state, or removes files without bytes, and unlocks. */
void cli_partial_close(struct cli_partial *p);
