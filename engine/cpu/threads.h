/* engine/cpu/threads.h: the processors that this process may use, and the best number of threads.
 *
 * Private to engine/, its tests and `infer doctor`. The functions that read system files take the
 * path of a root directory, "" for the real one, so that tests can simulate other machines. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A set of processors by number (base/os.h). */
enum { ENGINE_CPUS_MAX = 8192 };
struct engine_cpus {
    uint64_t word[ENGINE_CPUS_MAX / 64];
};

static inline void engine_cpus_add(struct engine_cpus *set, int cpu)
{
    set->word[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static inline bool engine_cpus_has(const struct engine_cpus *set, int cpu)
{
    return set->word[cpu / 64] >> cpu % 64 & 1;
}

static inline int engine_cpus_count(const struct engine_cpus *set)
{
    int n = 0;
    for (int i = 0; i < ENGINE_CPUS_MAX / 64; i++) n += __builtin_popcountll(set->word[i]);
    return n;
}

/* The affinity mask of the calling thread; only processor 0 when the call fails. */
void engine_cpus_allowed(struct engine_cpus *set);

/* Reads a list such as "0-3,8,10-11" into *set; otherwise false, and the set is empty. */
bool engine_cpus_parse(const char *text, struct engine_cpus *set);

/* The number of physical cores of the allowed processors; a processor with unknown siblings counts
 * as a core. */
int engine_threads_cores(const char *root, const struct engine_cpus *allowed);

/* The tightest CPU quota of this process's control groups (v1 and v2, with all ancestors) in whole
 * processors, rounded down but at least 1; 0 when there is none, -1 when no control group is
 * visible. */
int engine_threads_quota(const char *root);

/* min(count of allowed, quota, cores), at least 1. */
int engine_threads_count(const char *root, const struct engine_cpus *allowed);

/* min(processors in the affinity mask, cgroup v1/v2 CPU quota rounded down but at least 1,
 * physical cores among them). */
int engine_threads_default(void);
