/* cli/cache/cache_entry.h: the file of one stored sequence, written and read by its descriptor.
 *
 *     struct head        128 bytes: sizes, the key, the checksum of all that comes before the state
 *     name               the model's, for people; zeros up to a multiple of 8 bytes
 *     ids                I32, all of the sequence; likewise
 *     checksums          U64, of each piece of the state
 *     state              model_seq_save's, in pieces of CLI_CACHE_PIECE bytes, the last one shorter
 *
 * Owns: the format and all checks of it. Refuses: names, folders, what the key means. No byte is
 * used before the checksum over it was compared. A file of any content is safe to read, as is one
 * that another process changes meanwhile: it is read, not mapped. */
#ifndef CLI_CACHE_CACHE_ENTRY_H
#define CLI_CACHE_CACHE_ENTRY_H

#include "base/buffer.h"
#include "base/sha256.h"
#include "models/model.h"

enum { CLI_CACHE_PIECE = 256 * 1024, CLI_CACHE_NAME_MAX = 256, CLI_CACHE_HEAD = 128 };

/* What comes before the state; to be freed. */
struct cli_cache_head {
    struct base_buffer bytes;                 /* all of it */
    const char *name;                         /* [n_name], of any bytes */
    const int32_t *id;                        /* [n_ids], n_ids > 0 */
    const uint64_t *checksum;                 /* of the pieces */
    uint64_t n_name, n_ids, state_size, size; /* size: of the whole file */
    char key[BASE_SHA256_HEX];
};

/* BASE_FAILED says what is wrong with the file, BASE_NO_MEMORY. */
bool cli_cache_head_read(int fd, struct cli_cache_head *h, struct base_error *err);
void cli_cache_head_free(struct cli_cache_head *h); /* a zeroed one is fine */

/* What a state of that size makes of a file's size; false where that does not fit 63 bits. */
bool cli_cache_size(uint64_t n_name, uint64_t n_ids, uint64_t state_size, uint64_t *size);

/* model_seq_load of the state that follows the head. */
uint32_t cli_cache_state_load(int fd, const struct cli_cache_head *h, struct model_session *s,
                              uint32_t seq, uint32_t least, uint32_t most, struct base_error *err);

/* What is stored: the name is cut to CLI_CACHE_NAME_MAX. */
struct cli_cache_text {
    const char *key; /* [BASE_SHA256_HEX - 1] */
    const char *name;
    size_t n_name;
    const int32_t *id;
    size_t n_ids;
};
/* The bytes of model_seq_save. */
bool cli_cache_state_size(const struct model_session *s, uint32_t seq, uint64_t *size,
                          struct base_error *err);
/* Writes the sequence, of state_size bytes, into an empty file. BASE_FAILED of the system,
 * BASE_INTERRUPTED, BASE_NO_MEMORY. */
bool cli_cache_write(int fd, const struct cli_cache_text *text, const struct model_session *s,
                     uint32_t seq, uint64_t state_size, struct base_error *err);

#endif
