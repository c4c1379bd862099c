/* base/output.h: files that are written, and system calls that finish what they begin.
 *
 * An output is written beside its name and gets the name when it is complete: until then, and after
 * any failure, the file that stood there is untouched. "-" is standard output. What is no regular
 * file (a pipe, a device), and whatever standard output is already, is written in place. A link is
 * followed; permissions of a file that is replaced are kept. Durability across a power cut is not
 * promised (no fsync). */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include "base/error.h"
#include <stddef.h>

enum { BASE_PATH_SIZE = 4096 };

struct base_output {
    int fd;                    /* -1: not open */
    bool unfinished;           /* `temporary` is a file that has no right to stay */
    char path[BASE_PATH_SIZE]; /* links followed; "standard output" for "-" */
    char temporary[BASE_PATH_SIZE];
};

/* Prepares *o, which may hold anything: base_output_close is right from here on. */
void base_output_init(struct base_output *o);

/* BASE_FAILED with the file's name when it cannot be written. */
bool base_output_open(struct base_output *o, const char *path, struct base_error *err);

/* All bytes, or BASE_FAILED: a full disk, a limit. BASE_INTERRUPTED where a reader keeps it
 * waiting. */
bool base_output_write(struct base_output *o, const void *bytes, size_t size,
                       struct base_error *err);

/* Closes, and with `ok` gives the file its name; otherwise, and when that fails, removes what was
 * written. Returns ok, or false and an error. One that is not open is fine. */
bool base_output_close(struct base_output *o, bool ok, struct base_error *err);

/* Removes what an unfinished output has written so far. Async-signal-safe: for a signal handler
 * that ends the process. */
void base_output_remove(const struct base_output *o);

/* The name behind all links, of a file that need not be there. False sets errno. */
bool base_path_follow(const char *path, char out[BASE_PATH_SIZE]);

/* write(2) until all is written; also to a descriptor that does not block. False sets errno: EINTR
 * when base/interrupt.h's flag goes up meanwhile. */
bool base_write_all(int fd, const void *bytes, size_t size);

#endif
