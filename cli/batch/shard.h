/* cli/batch/shard.h: the part of the lines that this process answers: by --shard, otherwise by the
 * variables of a process launcher.
 *
 * Line L (from 1 on) belongs to part (L - 1) % count. */
#pragma once

#include "cli/options.h"
#include <stdint.h>

struct cli_shard {
    uint64_t index, count; /* index from 0 on */
    const char *source;    /* the option or launcher; NULL: there is one part */
};

/* Finds the part. Without --shard it is the task of a Slurm array, the rank of an MPI launcher, or
 * with both the rank within the task. Fails with BASE_USAGE if index and count are inconsistent. */
bool cli_shard_find(const struct cli_values *values, struct cli_shard *out, struct base_error *err);

static inline bool cli_shard_has(const struct cli_shard *s, uint64_t line)
{
    return (line - 1) % s->count == s->index;
}
