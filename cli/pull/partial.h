/* cli/pull/partial.h: a file while it is fetched.
 *
 * NAME.part holds the bytes, NAME.part.state what they are of: size, version, sum, and how many
 * bytes from the beginning are there. Both stay after a failure, an interruption or a signal; the
 * next call for the same name, and the same version of the file, continues. NAME appears by a
 * rename when all bytes are there and have the sum that was expected. NAME.part is locked
 * meanwhile: two processes never fetch the same name at once. */
#ifndef CLI_PULL_PARTIAL_H
#define CLI_PULL_PARTIAL_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/sha256.h"
#include "cli/pull/http.h"

struct cli_version {
    int64_t size;                       /* -1: unknown until the end */
    char validator[CLI_HTTP_VALIDATOR]; /* as struct cli_http_answer has it */
    char sha256[BASE_SHA256_HEX];       /* that is expected; "": unknown */
};

struct cli_partial {
    int fd, state_fd;                       /* -1: not open */
    bool begun;                             /* `version` is set */
    struct base_buffer target, part, state; /* paths */
    struct cli_version version;
    uint64_t done;   /* bytes that are there from the beginning */
    uint64_t saved;  /* the same, as the state says */
    uint64_t hashed; /* bytes that are in the hash */
    struct base_sha256 hash;
};

/* Opens and locks folder/name.part. BASE_FAILED when another process fetches it, or it cannot be
 * written. On any result cli_partial_close. */
bool cli_partial_open(struct cli_partial *p, const char *folder, const char *name,
                      struct base_error *err);

/* What the file is to become. Keeps the bytes that are there if they are of the same version, and
 * begins at 0 otherwise. */
bool cli_partial_begin(struct cli_partial *p, const struct cli_version *version,
                       struct base_error *err);
/* Discards all bytes. */
bool cli_partial_clear(struct cli_partial *p, struct base_error *err);

bool cli_partial_write(struct cli_partial *p, uint64_t at, const char *bytes, size_t size,
                       struct base_error *err);

/* Bytes [0, done) are there now. Hashes some of them, and notes it in the state from time to
 * time. */
bool cli_partial_advance(struct cli_partial *p, uint64_t done, struct base_error *err);

/* Hashes at most some MB; *over says whether all bytes that are there are in the hash. */
bool cli_partial_hash(struct cli_partial *p, bool *over, struct base_error *err);

/* With all bytes in the hash: compares it, and the size. BASE_MODEL, and the bytes are forgotten,
 * when they differ. */
bool cli_partial_check(struct cli_partial *p, struct base_error *err);

/* Gives the file its name. */
bool cli_partial_rename(struct cli_partial *p, struct base_error *err);

/* Notes how far it got, or removes files that hold nothing, and unlocks. */
void cli_partial_close(struct cli_partial *p);

#endif
