/* cli/cache/prefix_cache.h: beginnings of texts that were read before, by this or another process
 * (--cache).
 *
 * Owns: which stored sequence shares most with a text, which text is worth storing, remarks about
 * what fails. A cache that fails fails no answer: it is a cache without entries. It opens what it
 * may need before cli_sandbox_close: entries of the model, and the files that it will write. After
 * that it only reads and writes these, renames what it wrote, and removes entries of the folder. */
#ifndef CLI_CACHE_PREFIX_CACHE_H
#define CLI_CACHE_PREFIX_CACHE_H

#include "cli/load.h"
#include "generate/scheduler.h"

struct cli_prefix_cache; /* opaque */

/* The cache of --cache, of which at most n_writes sequences will be stored; NULL: none, or one that
 * cannot be used, after a remark on standard error. Before cli_sandbox_limit. */
struct cli_prefix_cache *cli_prefix_open(const struct cli_values *values, unsigned n_writes);
/* All functions take NULL: a cache without entries. */
void cli_prefix_close(struct cli_prefix_cache *c);
/* A name in its folder, for cli_sandbox_limit; and what cli_sandbox_close must allow. NULL and 0
 * without a cache. */
const char *cli_prefix_file(const struct cli_prefix_cache *c);
unsigned cli_prefix_allows(const struct cli_prefix_cache *c);

/* Opens the entries of this model and these settings. Before cli_sandbox_close. */
void cli_prefix_choose(struct cli_prefix_cache *c, const struct cli_model *model);

/* Sequence `seq` becomes the longest beginning of ids[n], without its last one, that is stored;
 * returns its length. 0: none is sufficiently longer than the n_held ids that the sequence holds of
 * it, and the sequence is what it was, or, after a damaged entry, empty. */
size_t cli_prefix_load(struct cli_prefix_cache *c, struct model_session *session, uint32_t seq,
                       const int32_t *ids, size_t n, size_t n_held);

/* Stores sequence `seq`, which holds ids[n], unless most of it is known to be stored: the first
 * n_stored. False where it was not stored; so are all after the first n_writes. */
bool cli_prefix_save(struct cli_prefix_cache *c, const struct model_session *session, uint32_t seq,
                     const int32_t *ids, size_t n, size_t n_stored);

/* The cache as the store of a scheduler; without a cache none. */
struct generate_store cli_prefix_store(struct cli_prefix_cache *c);

#endif
