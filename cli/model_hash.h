/* cli/model_hash.h: the SHA-256 of a model's file, and its cache.
 *
 * The hash of a split model is that of the concatenated files. $XDG_CACHE_HOME/infer/sha256/ (or
 * ~/.cache) stores hashes under the files' device, inode, size and time of change, so that each
 * file is read only once. A cache that cannot be read or written is not an error. */
#pragma once

#include "base/sha256.h"
#include "gguf/gguf.h"

/* Returns the cached hash; false (and "") if there is none. */
bool cli_model_hash_cached(const struct gguf_file *file, char out[BASE_SHA256_HEX]);

/* Computes the hash of all bytes, or of pieces that are spread evenly over the file, which takes
 * milliseconds for any size. */
void cli_model_hash_pieces(const struct gguf_file *file, bool all, char out[BASE_SHA256_HEX]);

/* Returns the cached hash, or computes and caches it. Fails with BASE_INTERRUPTED on Ctrl-C. */
bool cli_model_hash(const struct gguf_file *file, char out[BASE_SHA256_HEX],
                    struct base_error *err);
