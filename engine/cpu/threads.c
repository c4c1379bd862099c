/* engine/cpu/threads.c: processors, physical cores and CPU quotas, from the affinity mask, sysfs
 * and the control-group files. A file that cannot be parsed means "no limit". Called by engine.c
 * and pool.c.
 *
 * With more threads than the quota, the kernel suspends them for the rest of each period, even
 * inside a barrier. A second thread per core gains nothing, because one thread saturates the
 * multiply units. */
#include "engine/cpu/threads.h"
#include "base/cgroup.h"
#include "base/os.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void engine_cpus_allowed(struct engine_cpus *set)
{
    memset(set, 0, sizeof(*set));
    if (!base_os_cpus_get(set->word, sizeof set->word) || engine_cpus_count(set) == 0) {
        memset(set, 0, sizeof(*set));
        engine_cpus_add(set, 0);
    }
}

/* Parses a decimal number at *text and advances *text past it; -1 if there is none or it is too
 * large. */
static int parse_cpu(const char **text)
{
    if (**text < '0' || **text > '9') return -1;
    char *end;
    const unsigned long value = strtoul(*text, &end, 10);
    *text = end;
    return value < ENGINE_CPUS_MAX ? (int)value : -1;
}

bool engine_cpus_parse(const char *text, struct engine_cpus *set)
{
    memset(set, 0, sizeof(*set));
    for (;;) {
        const int first = parse_cpu(&text);
        int last = first;
        if (first >= 0 && *text == '-') {
            ++text;
            last = parse_cpu(&text);
        }
        if (first < 0 || last < first) break;
        for (int cpu = first; cpu <= last; ++cpu) engine_cpus_add(set, cpu);
        if (*text == '\0' || *text == '\n') return true;
        if (*text++ != ',') break;
    }
    memset(set, 0, sizeof(*set));
    return false;
}

int engine_threads_cores(const char *root, const struct engine_cpus *allowed)
{
    int n_cores = 0;
    for (int cpu = 0; cpu < ENGINE_CPUS_MAX; ++cpu) {
        if (!engine_cpus_has(allowed, cpu)) continue;
        char path[128], text[BASE_SYSTEM_LINE];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        struct engine_cpus siblings;
        bool first = true; /* first allowed processor of this core */
        if (base_system_line(root, path, "", text) && engine_cpus_parse(text, &siblings)) {
            for (int other = 0; other < cpu && first; ++other)
                first = !(engine_cpus_has(&siblings, other) && engine_cpus_has(allowed, other));
        }
        n_cores += first;
    }
    return n_cores;
}

/* quota / period in whole processors, at least 1; INT_MAX if the numbers mean "no limit". */
static int whole_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) return INT_MAX;
    const long long n = quota / period;
    return n < 1 ? 1 : n > INT_MAX ? INT_MAX : (int)n;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Takes the limit of a group. Version 2: cpu.max contains "QUOTA PERIOD" or "max PERIOD"; version
 * 1: two files, where a quota of -1 means "no limit". */
static void visit_group(void *user, const char *root, const char *folder, int version)
{
    char text[BASE_SYSTEM_LINE];
    long long quota, period;
    int *n = user;
    if (version == 2) {
        if (base_system_line(root, folder, "/cpu.max", text) &&
            sscanf(text, "%lld %lld", &quota, &period) == 2)
            *n = min_int(*n, whole_cpus(quota, period));
        return;
    }
    if (!base_system_line(root, folder, "/cpu.cfs_quota_us", text)) return;
    quota = strtoll(text, NULL, 10);
    if (!base_system_line(root, folder, "/cpu.cfs_period_us", text)) return;
    *n = min_int(*n, whole_cpus(quota, strtoll(text, NULL, 10)));
}

int engine_threads_quota(const char *root)
{
    int n = INT_MAX;
    const bool known = base_cgroup_visit(root, "cpu", visit_group, &n);
    return n < INT_MAX ? n : known ? 0 : -1;
}

int engine_threads_count(const char *root, const struct engine_cpus *allowed)
{
    int n = engine_cpus_count(allowed);
    const int quota = engine_threads_quota(root);
    const int cores = engine_threads_cores(root, allowed);
    if (quota > 0) n = min_int(n, quota);
    if (cores > 0) n = min_int(n, cores);
    return n < 1 ? 1 : n;
}

int engine_threads_default(void)
{
    struct engine_cpus allowed;
    engine_cpus_allowed(&allowed);
    return engine_threads_count("", &allowed);
}
