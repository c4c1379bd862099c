/* cli/cache/cache_folder.h: the folder of the prefix cache and the files in it.
 *
 * Owns: the place of the folder, checks of owner and permissions, eviction. Refuses: the content of
 * files. The folder belongs to the user; others can write neither to it nor to a file that is
 * opened. Files are complete when they get their name, and do not change afterwards; a reader keeps
 * an open file that is removed. A process that ends early may leave an incomplete file of another
 * name, which a later process removes. */
#ifndef CLI_CACHE_CACHE_FOLDER_H
#define CLI_CACHE_CACHE_FOLDER_H

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

enum {
    CLI_CACHE_FILE_NAME = 64,   /* KEY-FIRST-ALL.prefix, each of 16 digits */
    CLI_CACHE_FILES_MAX = 4096, /* maximum listed */
    CLI_CACHE_FILES_KEPT = 1024
};

struct cli_cache_file {
    char name[CLI_CACHE_FILE_NAME]; /* "": removed */
    uint64_t size;
    int64_t used_ns; /* time of last use, since 1970 */
};

struct cli_cache_folder {
    int fd;
    struct base_buffer path;
    struct cli_cache_file *file; /* [count], most recently used first */
    size_t count;
    size_t n_left;  /* files not removed */
    uint64_t bytes; /* of these files */
};

/* Opens and lists the folder of --cache: `given`, or for "auto" infer/prefix in the user's cache
 * folder; `make` creates it and its parents. BASE_FAILED, BASE_NO_MEMORY; *missing if there is no
 * folder. To be closed in any case. */
bool cli_cache_folder_open(struct cli_cache_folder *f, const char *given, bool make, bool *missing,
                           struct base_error *err);
void cli_cache_folder_close(struct cli_cache_folder *f);

/* Opens a file of the list for reading; -1 if it was removed, or others can write to it. */
int cli_cache_file_open(const struct cli_cache_folder *f, const struct cli_cache_file *file);
void cli_cache_file_remove(struct cli_cache_folder *f, struct cli_cache_file *file);
/* Removes the least recently used files until `size` more bytes are within the limit and at most
 * CLI_CACHE_FILES_KEPT files are left. */
void cli_cache_folder_make_room(struct cli_cache_folder *f, uint64_t size, uint64_t limit);

#endif
