/* base/output.h: files that are replaced only when complete, and write calls that finish.
 *
 * An output is written to a temporary file and renamed when it is complete: until then, and after
 * any failure, an existing file is unchanged. "-" is standard output. Anything but a regular file
 * (a pipe, a device), and the file that standard output already is, is written in place. A link is
 * followed; permissions of a file that is replaced are kept. Durability across a power cut is not
 * promised (no fsync).
 *
 * An output may be several files, written in sequence: each is complete when the next one
 * is opened, and all get their names together, when the output is closed. */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include "base/error.h"
#include <stddef.h>

enum { BASE_PATH_SIZE = 4096 };

struct base_output {
    int fd;                    /* -1: not open */
    bool unfinished;           /* `temporary` exists and must be removed */
    char path[BASE_PATH_SIZE]; /* links followed; "standard output" for "-" */
    char temporary[BASE_PATH_SIZE];
    struct base_output_file *done, *last; /* files of this output that are complete, in order */
};

/* Prepares *o, which may be uninitialized: base_output_close is valid from here on. */
void base_output_init(struct base_output *o);

/* BASE_FAILED with the file's name when it cannot be written. */
bool base_output_open(struct base_output *o, const char *path, struct base_error *err);

/* Ends the open file, which stays without its name, and opens another one of the same output. */
bool base_output_next(struct base_output *o, const char *path, struct base_error *err);

/* All bytes, or BASE_FAILED: a full disk, a limit. BASE_INTERRUPTED while it waits for a reader. */
bool base_output_write(struct base_output *o, const void *bytes, size_t size,
                       struct base_error *err);

/* Closes, and with `ok` renames each file to its name; otherwise, and when that fails, removes what
 * was written and has no name yet. Returns ok, or false and an error. An output that is not open is
 * allowed. */
bool base_output_close(struct base_output *o, bool ok, struct base_error *err);

/* Removes what an unfinished output has written so far. Async-signal-safe: for a signal handler
 * that ends the process. */
void base_output_remove(const struct base_output *o);

/* The path with all links resolved; the file need not exist. False sets errno. */
bool base_path_follow(const char *path, char out[BASE_PATH_SIZE]);

/* write(2) until all is written; also to a descriptor that does not block. False sets errno: EINTR
 * when base/interrupt.h's flag is set meanwhile. */
bool base_write_all(int fd, const void *bytes, size_t size);

#endif
