/* engine/threads.c: processors, physical cores and CPU quotas, from the affinity mask, sysfs and
 * the control-group files. A file that cannot be parsed means "no limit". Called by engine.c and
 * pool.c.
 *
 * With more threads than the quota, the kernel suspends them for the rest of each period, even
 * inside a barrier. A second thread per core gains nothing, because one thread saturates the
 * multiply units. */
#include "engine/threads.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4096, TEXT_ROOM = 512 };

void engine_cpus_allowed(struct engine_cpus *set)
{
    memset(set, 0, sizeof(*set));
    if (sched_getaffinity(0, sizeof(*set), set->part) != 0 || engine_cpus_count(set) == 0) {
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

/* Reads the first line of root + path into text[TEXT_ROOM]. */
static bool read_line(const char *root, const char *path, char *text)
{
    char name[PATH_ROOM];
    if (snprintf(name, sizeof(name), "%s%s", root, path) >= (int)sizeof(name)) return false;
    FILE *file = fopen(name, "re");
    if (!file) return false;
    const bool ok = fgets(text, TEXT_ROOM, file) != NULL;
    fclose(file);
    return ok;
}

int engine_threads_cores(const char *root, const struct engine_cpus *allowed)
{
    int n_cores = 0;
    for (int cpu = 0; cpu < ENGINE_CPUS_MAX; ++cpu) {
        if (!engine_cpus_has(allowed, cpu)) continue;
        char path[128], text[TEXT_ROOM];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        struct engine_cpus siblings;
        bool first = true; /* first allowed processor of this core */
        if (read_line(root, path, text) && engine_cpus_parse(text, &siblings)) {
            for (int other = 0; other < cpu && first; ++other) {
                first = !(engine_cpus_has(&siblings, other) && engine_cpus_has(allowed, other));
            }
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

/* The limit of one version 2 group: cpu.max contains "QUOTA PERIOD" or "max PERIOD". */
static int limit_v2(const char *root, const char *dir)
{
    char path[PATH_ROOM], text[TEXT_ROOM];
    long long quota, period;
    if (snprintf(path, sizeof(path), "%s/cpu.max", dir) >= (int)sizeof(path)) return INT_MAX;
    if (!read_line(root, path, text)) return INT_MAX;
    return sscanf(text, "%lld %lld", &quota, &period) == 2 ? whole_cpus(quota, period) : INT_MAX;
}

/* The limit of one version 1 group, from two files; a quota of -1 means "no limit". */
static int limit_v1(const char *root, const char *dir)
{
    char path[PATH_ROOM], text[TEXT_ROOM];
    if (snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir) >= (int)sizeof(path)) {
        return INT_MAX;
    }
    if (!read_line(root, path, text)) return INT_MAX;
    const long long quota = strtoll(text, NULL, 10);
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (!read_line(root, path, text)) return INT_MAX;
    return whole_cpus(quota, strtoll(text, NULL, 10));
}

/* The tightest limit of mount + group and of every group above it. Inside a container the
 * directories of the group's path may not exist; then the mount itself is the container's group. */
static int limit_chain(const char *root, const char *mount, const char *group,
                       int (*limit)(const char *root, const char *dir))
{
    char dir[PATH_ROOM];
    if (strstr(group, "..")) group = "/";
    const int mount_len = snprintf(dir, sizeof(dir), "%s%s", mount, group);
    if (mount_len >= (int)sizeof(dir)) return INT_MAX;
    int n = INT_MAX;
    for (size_t len = strlen(dir); len >= strlen(mount);) {
        dir[len] = '\0';
        n = min_int(n, limit(root, dir));
        if (len == strlen(mount)) break;
        while (dir[--len] != '/') {
        }
    }
    return n;
}

/* True when `name` is one of the comma-separated words of list. */
static bool list_has(const char *list, const char *name)
{
    const size_t len = strlen(name);
    for (const char *p = list; *p;) {
        const size_t word = strcspn(p, ",");
        if (word == len && strncmp(p, name, len) == 0) return true;
        p += word + (p[word] == ',');
    }
    return false;
}

int engine_threads_quota(const char *root)
{
    char name[PATH_ROOM], line[PATH_ROOM];
    if (snprintf(name, sizeof(name), "%s/proc/self/cgroup", root) >= (int)sizeof(name)) return 0;
    FILE *file = fopen(name, "re");
    if (!file) return 0;
    int n = INT_MAX;
    while (fgets(line, sizeof(line), file)) {
        /* "ID:CONTROLLERS:/GROUP", with ID 0 and no controllers for version 2 */
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':');
        char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group || group[1] != '/') continue;
        *group++ = '\0';
        ++list;
        if (*list == '\0') {
            n = min_int(n, limit_chain(root, "/sys/fs/cgroup", group, limit_v2));
        } else if (list_has(list, "cpu")) {
            char mount[PATH_ROOM + 32];
            snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", list);
            n = min_int(n, limit_chain(root, mount, group, limit_v1));
            n = min_int(n, limit_chain(root, "/sys/fs/cgroup/cpu", group, limit_v1));
        }
    }
    fclose(file);
    return n == INT_MAX ? 0 : n;
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
