/* cli/cache/cache_key.h: what must be equal for the state of a sequence to be of use.
 *
 * Such a state is a function of the model's bytes, of metadata that the command line gives in their
 * place, of the types of the caches, of the arithmetic, and of the ids. The key names all but the
 * ids. To read a whole model at each start would cost more than the cache saves; the bytes are
 * named in their place by
 *
 *   inode, size and time of change of each file    the kernel sets the time of change, to the
 *                                                  present, at every write and to every new file,
 *                                                  and no call sets it to another value
 *   SHA-256 of pieces spread over the files        for a file of another disk that happens to have
 *                                                  the same three
 *
 * A file that changed within the last seconds may change again within the resolution of its time:
 * it has no key, unless it is so small that its SHA-256 is cheap; that is then its name. The
 * arithmetic is named by the linker's hash of this program and by the version of the C library. */
#ifndef CLI_CACHE_CACHE_KEY_H
#define CLI_CACHE_CACHE_KEY_H

#include "base/sha256.h"
#include "cli/options.h"
#include "gguf/gguf.h"

/* `mtp`: the sequences have the state of the layer that guesses. False, and why not in *why, where
 * there is no key. */
bool cli_cache_key(const struct cli_values *values, const struct gguf_file *file, bool mtp,
                   char key[BASE_SHA256_HEX], const char **why);

#endif
