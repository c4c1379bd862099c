/* test/support_level.c: see support_level.h. */
#include "test/support_level.h"
#include "test/support_files.h"
#include <stdio.h>
#include <stdlib.h>

/* Before main of each test program: an unknown family must not pass as this machine's. */
__attribute__((constructor)) static void check_family(void)
{
    struct base_error err = BASE_ERROR_INIT;
    char text[512];
    if (cpu_family_check(&err)) return;
    fprintf(stderr, "%s\n", base_error_format(&err, text, sizeof text));
    exit(2);
}

bool support_level_runs(enum cpu_level level)
{
    static bool named[CPU_LEVEL_COUNT];
    if (cpu_level_runs(level)) return true;
    if (!named[level] && cpu_level_built(level))
        printf("skipped: %s (this machine lacks it)\n", cpu_level_name(level));
    named[level] = true;
    return false;
}

/* Short runs omit avx512bf16 if amx runs: amx has the same kernels, except those of many columns,
 * which avx512bf16 shares with avx512. */
static bool is_left_out(enum cpu_level level)
{
    return support_quick() && level == CPU_AVX512BF16 && cpu_level_runs(CPU_AMX);
}

bool support_family_takes(size_t i)
{
    const char *named = getenv(CPU_FAMILY_VARIABLE);
    size_t own = 0, n = 0;
    for (const struct cpu_family *f; (f = cpu_family_at((int)n)) != NULL; n++)
        if (f == cpu_family()) own = n;
    return !support_quick() || !named || !*named || i % n == own;
}

bool support_level_next(int *level)
{
    while (*level < CPU_LEVEL_COUNT &&
           (!support_level_runs((enum cpu_level) * level) || is_left_out((enum cpu_level) * level)))
        ++*level;
    return *level < CPU_LEVEL_COUNT;
}
