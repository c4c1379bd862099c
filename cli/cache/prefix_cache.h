/* cli/cache/prefix_cache.h: stored prefixes of texts, which this or another process has evaluated
 * (--cache).
 *
 * It selects the stored sequence with the longest common prefix and the texts to store, and prints
 * notes about failures. A failure of the cache is not an error of the command: the cache then has
 * no entries. Files are opened before cli_sandbox_close: the entries of the model, and the files
 * that will be written. After that the cache reads and writes only these, renames those that it
 * wrote, and removes entries of the folder. */
#pragma once

#include "cli/load.h"
#include "generate/scheduler.h"

struct cli_prefix_cache; /* opaque */

/* Fails with BASE_USAGE if --cache names a folder within one that does not exist: probably the name
 * is wrong. */
bool cli_prefix_check(const struct cli_values *values, struct base_error *err);

/* Opens the cache of --cache, which will store at most n_writes sequences. Returns NULL without a
 * cache, or after a note on standard error if it cannot be used. Call it before
 * cli_sandbox_limit. */
struct cli_prefix_cache *cli_prefix_open(const struct cli_values *values, unsigned n_writes);
/* All functions accept NULL: a cache without entries. */
void cli_prefix_close(struct cli_prefix_cache *c);
/* Return the name of a file in the cache's folder, for cli_sandbox_limit, and the flags for
 * cli_sandbox_close. NULL and 0 without a cache. */
const char *cli_prefix_file(const struct cli_prefix_cache *c);
unsigned cli_prefix_allows(const struct cli_prefix_cache *c);

/* Opens the entries for this model and these settings. Call it before cli_sandbox_close. */
void cli_prefix_choose(struct cli_prefix_cache *c, const struct cli_model *model);

/* Loads the longest stored prefix of ids[n], without its last id, into sequence `seq` and returns
 * its length. Returns 0 if no stored prefix is sufficiently longer than the n_held ids that the
 * sequence already has; the sequence is then unchanged or, after a damaged entry, empty. */
size_t cli_prefix_load(struct cli_prefix_cache *c, struct model_session *session, uint32_t seq,
                       const int32_t *ids, size_t n, size_t n_held);

/* Stores sequence `seq`, which has ids[n], unless most of it, the first n_stored ids, is stored
 * already, or it has other adapters than a new sequence (the key has those). Returns false if it
 * was not stored, as for all calls after the first n_writes. */
bool cli_prefix_save(struct cli_prefix_cache *c, struct model_session *session, uint32_t seq,
                     const int32_t *ids, size_t n, size_t n_stored);

/* Returns the cache as the store of a scheduler; empty without a cache. */
struct generate_store cli_prefix_store(struct cli_prefix_cache *c);
