/* cli/cache/cache_folder.h: the folder of the prefix cache and the files in it.
 *
 * It finds the folder, checks owner and permissions, and evicts files; cache_entry.h has their
 * content. Only the user can write to the folder and to files that are opened. A file gets its name
 * when it is complete, and does not change afterwards; a process that has opened it can read it
 * after its removal. A process that ends early may leave an incomplete file of another name, which
 * a later process removes. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

enum {
    CLI_CACHE_FILE_NAME = 64,   /* KEY-FIRST-ALL.prefix, each of 16 digits */
    CLI_CACHE_FILES_MAX = 4096, /* maximum number of listed files */
    CLI_CACHE_FILES_KEPT = 1024
};

struct cli_cache_file {
    char name[CLI_CACHE_FILE_NAME]; /* "": it was taken from the list */
    uint64_t size;
    int64_t used_ns; /* time of the last use, since 1970 */
};

struct cli_cache_folder {
    int fd;
    struct base_buffer path;
    struct cli_cache_file *file; /* [count], the most recently used first */
    size_t count;
    size_t n_left;  /* number of files in the list */
    uint64_t bytes; /* of these files */
};

/* Opens and lists the folder of --cache: `given`, or for "auto" infer/prefix in the user's cache
 * folder. `make` creates it and its parents. Fails with BASE_FAILED or BASE_NO_MEMORY; *missing if
 * there is no folder. The caller closes it, after a failure too. */
bool cli_cache_folder_open(struct cli_cache_folder *f, const char *given, bool make, bool *missing,
                           struct base_error *err);
void cli_cache_folder_close(struct cli_cache_folder *f);

/* Opens a file of the list, for writing too if that is possible; -1 if it was taken from it, or if
 * others can write to it. */
int cli_cache_file_open(const struct cli_cache_folder *f, const struct cli_cache_file *file);
/* Takes a file from the list, and removes it if this program has written it. Returns whether it
 * did. */
bool cli_cache_file_remove(struct cli_cache_folder *f, struct cli_cache_file *file);
/* Removes the least recently used files until `size` more bytes fit the limit and at most
 * CLI_CACHE_FILES_KEPT files are left. */
void cli_cache_folder_make_room(struct cli_cache_folder *f, uint64_t size, uint64_t limit);
