/* cli/cache/cache_key.h: the key of a stored sequence: facts that must be equal for its state to be
 * valid.
 *
 * A state is a function of the bytes of the model, its adapters and control vectors, of metadata
 * that the command line overrides, of the cache types, of the arithmetic, and of the ids. The key
 * covers all of these but the ids. Reading a whole model at each start would cost more time than
 * the cache saves, so the key covers its bytes by
 *
 *   inode, size and time of change of each file    the kernel sets the time of change, to the
 *                                                  present, at every write and to every new file,
 *                                                  and no call sets it to another value
 *   SHA-256 of pieces spread over the files        for a file of another disk that happens to have
 *                                                  the same three
 *
 * A file that changed within the last seconds may change again within the resolution of its time:
 * it has no key, unless it is so small that its SHA-256 takes little time and becomes part of the
 * key. The linker's hash of this program and the version of the C library cover the arithmetic. */
#pragma once

#include "base/sha256.h"
#include "cli/load.h"

/* Computes the key of sequences of an open model. Returns false, with the reason in *why, if there
 * is no key. */
bool cli_cache_key(const struct cli_values *values, const struct cli_model *model,
                   char key[BASE_SHA256_HEX], const char **why);
