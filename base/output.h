/* base/output.h: files that are replaced only when complete, and complete writes.
 *
 * An output is written to a temporary file of a random name and renamed when it is complete: until
 * then, and after any failure, an existing file is unchanged. "-" is standard output. Anything but
 * a regular file (a pipe, a device), and the file that standard output already is, is written in
 * place. A link is followed; permissions of a file that is replaced are kept. Where an output
 * replaces a file, its data reaches the disk (fsync) before it gets the name, and the name before
 * the output is closed; a file under a new name is not synced.
 *
 * An output may be several files, written in sequence: each is complete when the next one is
 * opened. All of them get their names when the output is closed, or none: signals wait, and after a
 * failure the old files get their names back, if the file system can swap names (RENAME_EXCHANGE).
 * Only SIGKILL or a power failure can leave a mixture: the format has to detect it. */
#pragma once

#include "base/error.h"
#include <stddef.h>

enum { BASE_PATH_SIZE = 4096 };

struct base_output {
    int fd;                    /* -1: not open */
    int folder;                /* of the files that are replaced, for fsync; -1: not open */
    bool unfinished;           /* `temporary` exists and must be removed */
    bool replaces;             /* a file of that name exists */
    char path[BASE_PATH_SIZE]; /* links followed; "standard output" for "-" */
    char temporary[BASE_PATH_SIZE];
    struct base_output_file *done, *last; /* files of this output that are complete, in order */
};

/* Initializes *o; after that base_output_close is valid. */
void base_output_init(struct base_output *o);

/* Opens the output. BASE_FAILED with the file's name when it cannot be written. */
bool base_output_open(struct base_output *o, const char *path, struct base_error *err);

/* Creates a file that gets the name `path` when it is closed, whatever has that name then: it opens
 * no existing file and follows no link. `mode`: its permissions, before the mask of the process. */
bool base_output_create(struct base_output *o, const char *path, unsigned mode,
                        struct base_error *err);
/* Returns whether the output can be opened, and leaves *o closed and nothing on the disk. Pipes and
 * devices are not opened. */
bool base_output_try(struct base_output *o, const char *path, struct base_error *err);

/* Closes the open file, which keeps its temporary name, and opens the next file of the output. */
bool base_output_next(struct base_output *o, const char *path, struct base_error *err);

/* Replaces bytes of file `n` (from 0) of an open output, all of whose files are regular. */
bool base_output_patch(struct base_output *o, uint64_t n, uint64_t offset, const void *bytes,
                       size_t size, struct base_error *err);

/* Writes all bytes. BASE_FAILED: disk full or size limit. BASE_INTERRUPTED: the interrupt flag was
 * set during the write. */
bool base_output_write(struct base_output *o, const void *bytes, size_t size,
                       struct base_error *err);

/* Closes the output. With `ok`, renames each file to its final name; otherwise, and after a failed
 * rename, removes the files that still have temporary names. Returns ok, or false and an error. The
 * output need not be open. */
bool base_output_close(struct base_output *o, bool ok, struct base_error *err);

/* Removes the temporary files of an unfinished output. Async-signal-safe: for a signal handler that
 * ends the process. */
void base_output_remove(const struct base_output *o);

/* The path with all links resolved; the file need not exist. False sets errno. */
bool base_path_follow(const char *path, char out[BASE_PATH_SIZE]);

/* Calls write(2) until all bytes are written; the descriptor may be non-blocking. False sets errno:
 * EINTR when base/interrupt.h's flag is set during the call. */
bool base_write_all(int fd, const void *bytes, size_t size);
