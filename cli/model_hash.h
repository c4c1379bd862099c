/* cli/model_hash.h: the SHA-256 of a model's file, and its cache.
 *
 * For a split model it is that of the concatenated files. It is cached in
 * $XDG_CACHE_HOME/infer/sha256/ (else ~/.cache) under the files' device, inode, size and time of
 * change, so that it is computed once per file. A cache that cannot be read or written is not an
 * error. */
#ifndef CLI_MODEL_HASH_H
#define CLI_MODEL_HASH_H

#include "base/sha256.h"
#include "gguf/gguf.h"

/* The cached hash; false (and "") if there is none. */
bool cli_model_hash_cached(const struct gguf_file *file, char out[BASE_SHA256_HEX]);

/* The cached hash; otherwise computes and caches it. BASE_INTERRUPTED on Ctrl-C. */
bool cli_model_hash(const struct gguf_file *file, char out[BASE_SHA256_HEX],
                    struct base_error *err);

#endif
