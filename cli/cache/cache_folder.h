/* cli/cache/cache_folder.h: the folder of the prefix cache and the files in it.
 *
 * Owns: where it is, who may have written what is read, what goes when it is full. Refuses: what
 * the files hold. The folder is the user's own and others cannot write to it, nor to a file that
 * is opened. Files are complete when they get their name, and never change afterwards:
 * a reader of one that is removed keeps it. A process that ends early may leave an incomplete one,
 * of another name; a later process removes it. */
#ifndef CLI_CACHE_CACHE_FOLDER_H
#define CLI_CACHE_CACHE_FOLDER_H

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

enum {
    CLI_CACHE_FILE_NAME = 64,   /* KEY-FIRST-ALL.prefix, each of 16 digits */
    CLI_CACHE_FILES_MAX = 4096, /* that are listed */
    CLI_CACHE_FILES_KEPT = 1024
};

struct cli_cache_file {
    char name[CLI_CACHE_FILE_NAME]; /* "": removed */
    uint64_t size;
    int64_t used_ns; /* since 1970: when it was used last */
};

struct cli_cache_folder {
    int fd;
    struct base_buffer path;
    struct cli_cache_file *file; /* [count], those used last first */
    size_t count;
    size_t n_left;  /* of them not removed */
    uint64_t bytes; /* of these */
};

/* Opens and lists the folder of --cache: `given`, or for "auto" infer/prefix in the user's folder
 * of caches; `make` makes it, with those that it is in. BASE_FAILED, BASE_NO_MEMORY; *missing when
 * there is none. cli_cache_folder_close in any case. */
bool cli_cache_folder_open(struct cli_cache_folder *f, const char *given, bool make, bool *missing,
                           struct base_error *err);
void cli_cache_folder_close(struct cli_cache_folder *f);

/* A descriptor for reading a file of the list; -1: it is gone, or it is not the user's alone. */
int cli_cache_file_open(const struct cli_cache_folder *f, const struct cli_cache_file *file);
void cli_cache_file_remove(struct cli_cache_folder *f, struct cli_cache_file *file);
/* Removes those that were not used for longest until `size` more bytes are within the limit, and
 * CLI_CACHE_FILES_KEPT files are left. */
void cli_cache_folder_make_room(struct cli_cache_folder *f, uint64_t size, uint64_t limit);

#endif
