/* test/test_threads.c: processor lists, physical cores and CPU quotas, read from simulated machines
 * under a temporary directory. */
#include "base/memory.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/threads.h"
#include "engine/engine.h"
#include "test/support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_ROOM = 512 };

/* A fresh directory; the test removes it with remove_tree. */
static void make_root(char root[PATH_ROOM])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, PATH_ROOM, "%s/infer-threads-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(root));
}

static void remove_tree(const char *root)
{
    char command[PATH_ROOM + 16];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

/* Writes root + path and creates its directories. */
static void put(const char *root, const char *path, const char *text)
{
    char name[2 * PATH_ROOM];
    snprintf(name, sizeof(name), "%s%s", root, path);
    for (char *p = name + strlen(root) + 1; *p; ++p) {
        if (*p != '/') continue;
        *p = '\0';
        mkdir(name, 0777);
        *p = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_siblings(const char *root, int cpu, const char *list)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    put(root, path, list);
}

static struct engine_cpus cpus(const char *list)
{
    struct engine_cpus set;
    assert_true(engine_cpus_parse(list, &set));
    return set;
}

static void lists_of_processors_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count; /* -1: an error */
        int first, last;
    } cases[] = {
        {"0", 1, 0, 0},
        {"0-3", 4, 0, 3},
        {"0-3,8,10-11\n", 7, 0, 11},
        {"5,4", 2, 4, 5},
        {"8191", 1, 8191, 8191},
        {"1022-1025", 4, 1022, 1025},
        {"", -1, 0, 0},
        {"\n", -1, 0, 0},
        {"3-1", -1, 0, 0},
        {"-1", -1, 0, 0},
        {"1,", -1, 0, 0},
        {"0-", -1, 0, 0},
        {"8192", -1, 0, 0},
        {"a", -1, 0, 0},
        {"1;2", -1, 0, 0},
        {"99999999999999999999", -1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        struct engine_cpus set;
        const bool ok = engine_cpus_parse(cases[i].text, &set);
        assert_int_equal(ok, cases[i].count >= 0);
        assert_int_equal(engine_cpus_count(&set), ok ? cases[i].count : 0);
        if (!ok) continue;
        assert_true(engine_cpus_has(&set, cases[i].first));
        assert_true(engine_cpus_has(&set, cases[i].last));
    }
}

static void a_core_is_counted_once(void **state)
{
    (void)state;
    char root[PATH_ROOM];
    make_root(root);
    /* 4 cores of 2 threads: 0+4, 1+5, 2+6 in different notations, 7 and 3 unknown */
    for (int i = 0; i < 3; ++i) {
        char list[32];
        snprintf(list, sizeof(list), "%d,%d\n", i, i + 4);
        put_siblings(root, i, list);
        put_siblings(root, i + 4, list);
    }
    put_siblings(root, 3, "what is this\n");
    const struct {
        const char *allowed;
        int cores;
    } cases[] = {{"0-2,4-6", 3}, {"0-7", 5}, {"4-6", 3}, {"4", 1}, {"0,4", 1}, {"0,5", 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const struct engine_cpus set = cpus(cases[i].allowed);
        assert_int_equal(engine_threads_cores(root, &set), cases[i].cores);
    }
    remove_tree(root);
}

/* Each row is a machine: the process's groups, then files. 0 is "no quota",
 * -1 no visible group. */
static void quotas_of_control_groups_limit_the_number_of_threads(void **state)
{
    (void)state;
    static const struct {
        int quota;
        const char *groups;
        const char *file[6]; /* path, text, path, text, ... */
    } cases[] = {
        {-1, NULL, {NULL}},
        {2, NULL, {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}},
        {-1, "0::/\n", {NULL}},
        {0, "0::/\n", {"/sys/fs/cgroup/cpu.max", "max 100000\n"}},
        {2, "0::/\n", {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}},
        {2, "0::/\n", {"/sys/fs/cgroup/cpu.max", "299999 100000\n"}},
        {1, "0::/\n", {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}},
        {0, "0::/\n", {"/sys/fs/cgroup/cpu.max", "nonsense\n"}},
        {0, "0::/\n", {"/sys/fs/cgroup/cpu.max", "100 0\n"}},
        {3,
         "0::/a/b\n",
         {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n", "/sys/fs/cgroup/a/cpu.max",
          "300000 100000\n", "/sys/fs/cgroup/cpu.max", "800000 100000\n"}},
        {4, "0::/not/here\n", {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}},
        {5, "0::/../up\n", {"/sys/fs/cgroup/cpu.max", "500000 100000\n"}},
        {2,
         "12:memory:/x\n4:cpu,cpuacct:/job\n",
         {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n",
          "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"}},
        {0,
         "4:cpu:/\n",
         {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
          "100000\n"}},
        {6,
         "4:cpuacct,cpu:/docker/1234\n",
         {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "600000\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
          "100000\n"}},
        {-1,
         "4:cpuset,cpuacct:/\n",
         {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "600000\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
          "100000\n"}},
        {-1, "no colon\n:\n::\n", {NULL}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char root[PATH_ROOM];
        make_root(root);
        if (cases[i].groups) put(root, "/proc/self/cgroup", cases[i].groups);
        for (int f = 0; f < 6 && cases[i].file[f]; f += 2) {
            put(root, cases[i].file[f], cases[i].file[f + 1]);
        }
        assert_int_equal(engine_threads_quota(root), cases[i].quota);
        remove_tree(root);
    }
}

/* Each row is a machine with 1000 kB in total and 600 kB free, if `meminfo`. */
static void available_memory_is_the_smallest_of_all_limits(void **state)
{
    (void)state;
    enum { KB = 1024, UNKNOWN = -1, NO_LIMIT = -2 };
    static const struct {
        bool meminfo;
        int room, limit; /* kB */
        const char *groups;
        const char *file[10]; /* path, text, path, text, ... */
    } cases[] = {
        {true, 600, NO_LIMIT, NULL, {NULL}},
        {false, UNKNOWN, NO_LIMIT, NULL, {NULL}},
        {true, 600, NO_LIMIT, "0::/\n", {"/sys/fs/cgroup/memory.max", "max\n"}},
        {true, 200, 200, "0::/\n", {"/sys/fs/cgroup/memory.max", "204800\n"}},
        {false, 200, 200, NULL, {"/sys/fs/cgroup/memory.max", "204800\n"}},
        {true,
         150,
         200,
         "0::/\n",
         {"/sys/fs/cgroup/memory.max", "204800\n", "/sys/fs/cgroup/memory.current", "51200\n"}},
        {true,
         0,
         200,
         "0::/\n",
         {"/sys/fs/cgroup/memory.max", "204800\n", "/sys/fs/cgroup/memory.current", "999999\n"}},
        {true,
         180,
         200,
         "0::/\n", /* page cache is free memory */
         {"/sys/fs/cgroup/memory.max", "204800\n", "/sys/fs/cgroup/memory.current", "102400\n",
          "/sys/fs/cgroup/memory.stat", "anon 20480\ninactive_file 61440\nactive_file 20480\n"}},
        {true,
         100,
         100,
         "0::/a/b\n", /* the group above is tighter; the one at the top is not */
         {"/sys/fs/cgroup/a/b/memory.max", "204800\n", "/sys/fs/cgroup/a/memory.max", "102400\n",
          "/sys/fs/cgroup/memory.max", "409600\n"}},
        {true,
         50,
         200,
         "0::/a/b\n", /* the tighter limit is not the one that leaves least */
         {"/sys/fs/cgroup/a/b/memory.max", "204800\n", "/sys/fs/cgroup/a/memory.max", "307200\n",
          "/sys/fs/cgroup/a/memory.current", "256000\n"}},
        {true, 100, 100, "0::/\n", {"/sys/fs/cgroup/memory.high", "102400\n"}},
        {true, 300, 300, "0::/not/here\n", {"/sys/fs/cgroup/memory.max", "307200\n"}},
        {true,
         600,
         NO_LIMIT,
         "4:memory:/\n",
         {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}},
        {true,
         250,
         300,
         "5:cpu:/x\n4:memory:/docker/1\n",
         {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "307200\n",
          "/sys/fs/cgroup/memory/memory.usage_in_bytes", "102400\n",
          "/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 51200\n"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char root[PATH_ROOM];
        struct base_memory m;
        uint64_t room = 0;
        make_root(root);
        if (cases[i].meminfo)
            put(root, "/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 600 kB\n");
        if (cases[i].groups) put(root, "/proc/self/cgroup", cases[i].groups);
        for (int f = 0; f < 10 && cases[i].file[f]; f += 2)
            put(root, cases[i].file[f], cases[i].file[f + 1]);
        base_memory_read(root, &m);
        assert_int_equal(base_memory_room(&m, &room), cases[i].room != UNKNOWN);
        if (cases[i].room != UNKNOWN) assert_int_equal(room, (uint64_t)cases[i].room * KB);
        assert_int_equal(m.limit,
                         cases[i].limit == NO_LIMIT ? UINT64_MAX : (uint64_t)cases[i].limit * KB);
        assert_int_equal(m.known, cases[i].meminfo);
        assert_int_equal(m.total, cases[i].meminfo ? 1000 * KB : 0);
        remove_tree(root);
    }
}

static void the_number_of_threads_is_the_smallest_limit(void **state)
{
    (void)state;
    char root[PATH_ROOM];
    make_root(root);
    for (int i = 0; i < 8; ++i) put_siblings(root, i, i % 2 ? "1,3,5,7\n" : "0,2,4,6\n");
    const struct engine_cpus all = cpus("0-7"), one = cpus("3");
    assert_int_equal(engine_threads_count(root, &all), 2);
    assert_int_equal(engine_threads_count(root, &one), 1);
    put(root, "/proc/self/cgroup", "0::/\n");
    put(root, "/sys/fs/cgroup/cpu.max", "100000 100000\n");
    assert_int_equal(engine_threads_count(root, &all), 1);
    remove_tree(root);
}

static void an_engine_without_a_given_number_of_threads_uses_that_number(void **state)
{
    (void)state;
    assert_true(engine_threads_default() >= 1);
    struct engine_options options = engine_options_default();
    struct base_error err = BASE_ERROR_INIT;
    struct engine *e = engine_new(&options, &err);
    assert_non_null(e);
    assert_int_equal(e->options.n_threads, engine_threads_default());
    assert_int_equal(e->options.level, cpu_level_best());
    assert_int_equal(engine_pool_threads(e->cpu->pool), e->options.n_threads);
    engine_free(e);
    options.level = CPU_SCALAR;
    options.n_threads = 3;
    e = engine_new(&options, &err);
    assert_non_null(e);
    assert_int_equal(e->options.level, CPU_SCALAR);
    assert_int_equal(engine_pool_threads(e->cpu->pool), 3);
    engine_free(e);
    options.n_threads = -2;
    assert_null(engine_new(&options, &err));
    assert_int_equal(err.code, BASE_USAGE);
    engine_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_processors_are_read),
        cmocka_unit_test(a_core_is_counted_once),
        cmocka_unit_test(available_memory_is_the_smallest_of_all_limits),
        cmocka_unit_test(quotas_of_control_groups_limit_the_number_of_threads),
        cmocka_unit_test(the_number_of_threads_is_the_smallest_limit),
        cmocka_unit_test(an_engine_without_a_given_number_of_threads_uses_that_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
