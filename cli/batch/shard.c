/* cli/batch/shard.c: selects a part of the lines. See cli/batch/shard.h. */
#include "cli/batch/shard.h"
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 1 << 30 };

/* Parses an integer below PARTS_MAX at the start of a text; *rest is the text after it. -1: there
 * is none. */
static int64_t number(const char *text, const char **rest)
{
    const size_t n = text ? strspn(text, "0123456789") : 0;
    *rest = text ? text + n : "";
    return n == 0 || n > 10 || strtoll(text, NULL, 10) > PARTS_MAX ? -1 : strtoll(text, NULL, 10);
}

/* Reads a variable; -1 if it is not set. Returns false if it is set and not a number. */
static bool variable(const char *name, int64_t *out, struct base_error *err)
{
    const char *text = getenv(name), *rest;
    *out = number(text, &rest);
    if (!text || !*text || (*out >= 0 && *rest == '\0')) return true;
    return base_fail_at(err, BASE_USAGE, name, -1, "'%s' is not a number (--shard 1/1: all lines)",
                        text);
}

static bool check(int64_t index, int64_t count, const char *source, struct base_error *err)
{
    if (index >= 0 && count > 0 && index < count) return true;
    return base_fail_at(err, BASE_USAGE, source, -1,
                        "part %lld of %lld does not exist; --shard I/N sets which part this is",
                        (long long)index + 1, (long long)count);
}

static bool parse(const char *text, struct cli_shard *out, struct base_error *err)
{
    const char *slash, *rest;
    const int64_t index = number(text, &slash);
    const int64_t count = number(*slash == '/' ? slash + 1 : NULL, &rest);
    if (index < 1 || count < index || *rest != '\0')
        return base_fail_at(err, BASE_USAGE, "--shard", -1,
                            "'%s' is not I/N, part I of N with I from 1 to N", text);
    *out = (struct cli_shard){(uint64_t)index - 1, (uint64_t)count, "--shard"};
    return true;
}

/* Reads a Slurm array: COUNT tasks numbered MIN, MIN + STEP, ... */
static bool find_array(struct cli_shard *out, struct base_error *err)
{
    int64_t id, count, least, step;
    if (!variable("SLURM_ARRAY_TASK_ID", &id, err) ||
        !variable("SLURM_ARRAY_TASK_COUNT", &count, err) ||
        !variable("SLURM_ARRAY_TASK_MIN", &least, err) ||
        !variable("SLURM_ARRAY_TASK_STEP", &step, err))
        return false;
    if (id < 0 || count < 0) return true;
    const int64_t offset = id - (least < 0 ? 0 : least);
    const int64_t index = step > 0 && offset % step == 0 ? offset / step : offset;
    if (!check(index, count, "SLURM_ARRAY_TASK_ID", err)) return false;
    *out = (struct cli_shard){(uint64_t)index, (uint64_t)count, "SLURM_ARRAY_TASK_ID"};
    return true;
}

static bool add_rank(const char *rank_name, const char *size_name, struct cli_shard *out,
                     bool *found, struct base_error *err)
{
    int64_t rank, size;
    if (!variable(rank_name, &rank, err) || !variable(size_name, &size, err)) return false;
    *found = rank >= 0 && size >= 0;
    if (!*found) return true;
    if (!check(rank, size, rank_name, err)) return false;
    *out = (struct cli_shard){out->index * (uint64_t)size + (uint64_t)rank,
                              out->count * (uint64_t)size, rank_name};
    return true;
}

bool cli_shard_find(const struct cli_values *values, struct cli_shard *out, struct base_error *err)
{
    bool found;
    *out = (struct cli_shard){0, 1, NULL};
    if (values->shard) return parse(values->shard, out, err);
    return find_array(out, err) &&
           add_rank("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", out, &found, err) &&
           (found || add_rank("PMI_RANK", "PMI_SIZE", out, &found, err));
}
