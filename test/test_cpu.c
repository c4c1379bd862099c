/* test/test_cpu.c: the tree of levels, caps, and tables filled along a path. */
#include "support.h"
#include "test/support_level.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The last level on the path before `level`; CPU_SCALAR for the root. */
static enum cpu_level parent_of(enum cpu_level level)
{
    enum cpu_level path[CPU_LEVEL_COUNT];
    const int n = cpu_path(level, path);
    return n > 1 ? path[n - 2] : CPU_SCALAR;
}

static void a_level_contains_its_ancestors(void **state)
{
    /* [level][other]: whether the level contains the other. */
    static const bool has[CPU_LEVEL_COUNT][CPU_LEVEL_COUNT] = {
        [CPU_SCALAR] = {[CPU_SCALAR] = true},
        [CPU_AVX2] = {[CPU_SCALAR] = true, [CPU_AVX2] = true},
        [CPU_AVXVNNI] = {[CPU_SCALAR] = true, [CPU_AVX2] = true, [CPU_AVXVNNI] = true},
        [CPU_AVX512] = {[CPU_SCALAR] = true, [CPU_AVX2] = true, [CPU_AVX512] = true},
        [CPU_AVX512BF16] =
            {[CPU_SCALAR] = true, [CPU_AVX2] = true, [CPU_AVX512] = true, [CPU_AVX512BF16] = true},
        [CPU_AMX] = {[CPU_SCALAR] = true,
                     [CPU_AVX2] = true,
                     [CPU_AVX512] = true,
                     [CPU_AVX512BF16] = true,
                     [CPU_AMX] = true},
        [CPU_NEON] = {[CPU_SCALAR] = true, [CPU_NEON] = true},
        [CPU_DOTPROD] = {[CPU_SCALAR] = true, [CPU_NEON] = true, [CPU_DOTPROD] = true},
        [CPU_I8MM] =
            {[CPU_SCALAR] = true, [CPU_NEON] = true, [CPU_DOTPROD] = true, [CPU_I8MM] = true},
    };
    (void)state;
    for (enum cpu_level l = 0; l < CPU_LEVEL_COUNT; l++)
        for (enum cpu_level o = 0; o < CPU_LEVEL_COUNT; o++)
            assert_int_equal(cpu_has(l, o), has[l][o]);
}

static void paths_go_from_scalar_to_the_level(void **state)
{
    (void)state;
    for (enum cpu_level l = 0; l < CPU_LEVEL_COUNT; l++) {
        enum cpu_level path[CPU_LEVEL_COUNT];
        const int n = cpu_path(l, path);
        assert_int_equal(path[0], CPU_SCALAR);
        assert_int_equal(path[n - 1], l);
        for (int i = 1; i < n; i++) assert_int_equal(parent_of(path[i]), path[i - 1]);
        for (enum cpu_level o = 0; o < CPU_LEVEL_COUNT; o++) {
            int found = 0;
            for (int i = 0; i < n; i++) found += path[i] == o;
            assert_int_equal(found, cpu_has(l, o));
        }
    }
}

static void parents_stand_before_their_children(void **state)
{
    (void)state;
    for (enum cpu_level l = 1; l < CPU_LEVEL_COUNT; l++) assert_true(parent_of(l) < l);
}

static void a_level_without_a_kernel_has_that_of_its_nearest_ancestor(void **state)
{
    (void)state;
    const void *const rows[CPU_LEVEL_COUNT] = {[CPU_SCALAR] = "s", [CPU_AVX512] = "5"};
    assert_string_equal(cpu_row(CPU_SCALAR, rows), "s");
    assert_string_equal(cpu_row(CPU_AVX2, rows), "s");
    assert_string_equal(cpu_row(CPU_AVXVNNI, rows), "s");
    assert_string_equal(cpu_row(CPU_AVX512, rows), "5");
    assert_string_equal(cpu_row(CPU_AVX512BF16, rows), "5");
}

static void levels_are_found_by_their_names(void **state)
{
    (void)state;
    char names[128] = "";
    for (enum cpu_level l = 0; l < CPU_LEVEL_COUNT; l++) {
        enum cpu_level found = CPU_LEVEL_COUNT;
        assert_true(cpu_level_by_name(cpu_level_name(l), &found));
        assert_int_equal(found, l);
        assert_int_equal(*cpu_level_needs(l) == '\0', l == CPU_SCALAR);
        if (l > 0) strcat(names, "|");
        strcat(names, cpu_level_name(l));
    }
    assert_string_equal(names, CPU_LEVEL_NAMES);
    enum cpu_level level = CPU_AVX512;
    assert_true(cpu_level_by_name("AVX2", &level));
    assert_int_equal(level, CPU_AVX2);
    assert_false(cpu_level_by_name("mmx", &level));
    assert_false(cpu_level_by_name("", &level));
    assert_int_equal(level, CPU_AVX2);
}

static void a_limit_is_the_nearest_ancestor_that_runs(void **state)
{
    (void)state;
    assert_true(cpu_level_runs(CPU_SCALAR));
    assert_true(cpu_level_runs(cpu_level_best()));
    for (enum cpu_level l = 0; l < CPU_LEVEL_COUNT; l++) {
        const enum cpu_level cap = cpu_level_cap(l);
        assert_true(cpu_has(l, cap));
        assert_true(cpu_level_runs(cap));
        assert_int_equal(cap, support_level_runs(l) ? l : cpu_level_cap(parent_of(l)));
        if (cpu_level_runs(l)) assert_true(l <= cpu_level_best());
        if (cpu_level_runs(l)) assert_true(cpu_level_runs(parent_of(l)));
    }
}

static void levels_of_other_machines_are_scalar(void **state)
{
    (void)state;
    int built = 0;
    for (enum cpu_level l = 0; l < CPU_LEVEL_COUNT; l++) {
        built += cpu_level_built(l);
        if (!cpu_level_built(l)) assert_int_equal(cpu_level_cap(l), CPU_SCALAR);
    }
#if defined(__x86_64__)
    assert_int_equal(built, 6);
#elif defined(__aarch64__)
    assert_int_equal(built, 4);
    assert_true(cpu_level_runs(CPU_NEON));
#endif
}

static void the_family_of_the_processor_is_the_named_one_or_runs_here(void **state)
{
    (void)state;
    const struct cpu_family *f = cpu_family();
    const char *named = getenv(CPU_FAMILY_VARIABLE);
    if (named && *named)
        assert_int_equal(strcasecmp(f->name, named), 0);
    else
        assert_true(cpu_has(cpu_level_best(), f->level) &&
                    cpu_has(cpu_level_best(), CPU_NEON) == cpu_has(f->level, CPU_NEON));
    assert_true(f->prefetch.distance > 0 && f->prefetch.distance % 64 == 0);
    if (f->dual_512) assert_true(cpu_has(f->level, CPU_AVX512));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_contains_its_ancestors),
        cmocka_unit_test(paths_go_from_scalar_to_the_level),
        cmocka_unit_test(parents_stand_before_their_children),
        cmocka_unit_test(a_level_without_a_kernel_has_that_of_its_nearest_ancestor),
        cmocka_unit_test(levels_are_found_by_their_names),
        cmocka_unit_test(a_limit_is_the_nearest_ancestor_that_runs),
        cmocka_unit_test(levels_of_other_machines_are_scalar),
        cmocka_unit_test(the_family_of_the_processor_is_the_named_one_or_runs_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
