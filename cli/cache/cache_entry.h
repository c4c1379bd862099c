/* cli/cache/cache_entry.h: reads and writes the file of one stored sequence.
 *
 *     struct head        128 bytes: sizes, the key, the checksum of everything before the state
 *     name               of the model, for messages; zeros up to a multiple of 8 bytes
 *     ids                I32, all of the sequence; zeros likewise
 *     checksums          U64, of each piece of the state
 *     state              model_seq_save's, in pieces of CLI_CACHE_PIECE bytes, the last one shorter
 *
 * This file has the format and its checks; others have names, folders and the meaning of the key.
 * No byte is used before its checksum is verified. Reading a file of any content is memory-safe,
 * even while another process changes it: it is read, not mapped. */
#pragma once

#include "base/buffer.h"
#include "base/sha256.h"
#include "models/model.h"

enum { CLI_CACHE_PIECE = 256 * 1024, CLI_CACHE_NAME_MAX = 256, CLI_CACHE_HEAD = 128 };

/* Everything before the state. The caller frees it with cli_cache_head_free. */
struct cli_cache_head {
    struct base_buffer bytes;                 /* the bytes of the file before the state */
    const char *name;                         /* [n_name], of any bytes */
    const int32_t *id;                        /* [n_ids], n_ids > 0 */
    const uint64_t *checksum;                 /* one per piece */
    uint64_t n_name, n_ids, state_size, size; /* size: that of the whole file */
    char key[BASE_SHA256_HEX];
};

/* Reads the head. Fails with BASE_FAILED and the reason if the file is invalid, or
 * BASE_NO_MEMORY. */
bool cli_cache_head_read(int fd, struct cli_cache_head *h, struct base_error *err);
void cli_cache_head_free(struct cli_cache_head *h); /* may be all zeros */

/* Computes the size of the file for a state of that size; false if it does not fit 63 bits. */
bool cli_cache_size(uint64_t n_name, uint64_t n_ids, uint64_t state_size, uint64_t *size);

/* Calls model_seq_load for the state after the head. */
uint32_t cli_cache_state_load(int fd, const struct cli_cache_head *h, struct model_session *s,
                              uint32_t seq, uint32_t least, uint32_t most, struct base_error *err);

/* Marks an empty file as an entry whose content follows. */
bool cli_cache_mark(int fd);
/* Returns whether the file has that mark: this program has written it. */
bool cli_cache_is_marked(int fd);

/* What identifies an entry. The name is truncated to CLI_CACHE_NAME_MAX. */
struct cli_cache_text {
    const char *key; /* [BASE_SHA256_HEX - 1] */
    const char *name;
    size_t n_name;
    const int32_t *id;
    size_t n_ids;
};
/* Computes the number of bytes that model_seq_save writes. */
bool cli_cache_state_size(struct model_session *s, uint32_t seq, uint64_t *size,
                          struct base_error *err);
/* Writes the sequence, of state_size bytes, to an empty or marked file. Fails with BASE_FAILED for
 * a system error, BASE_INTERRUPTED or BASE_NO_MEMORY. */
bool cli_cache_write(int fd, const struct cli_cache_text *text, struct model_session *s,
                     uint32_t seq, uint64_t state_size, struct base_error *err);
