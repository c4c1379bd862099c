/* cli/batch/shard.h: which part of the lines this process answers: --shard, else what launchers of
 * many processes say.
 *
 * Line L (from 1) is of part (L - 1) % count. */
#ifndef CLI_BATCH_SHARD_H
#define CLI_BATCH_SHARD_H

#include "cli/options.h"
#include <stdint.h>

struct cli_shard {
    uint64_t index, count; /* index from 0 */
    const char *source;    /* what said so; NULL: nothing did, and it is all of one part */
};

/* Without --shard: of a Slurm array its task, of an MPI launcher its rank, of both the rank within
 * the task. BASE_USAGE for what is no part of a whole. */
bool cli_shard_find(const struct cli_values *values, struct cli_shard *out, struct base_error *err);

static inline bool cli_shard_has(const struct cli_shard *s, uint64_t line)
{
    return (line - 1) % s->count == s->index;
}

#endif
