/* test/support_level.c: see support_level.h. */
#include "test/support_level.h"
#include "engine/cpu/isa/isa.h"
#include "test/support_files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Before main of each test program: an unknown family must not pass as this machine's. */
__attribute__((constructor)) static void check_family(void)
{
    struct base_error err = BASE_ERROR_INIT;
    char text[512];
    if (cpu_check(&err)) return;
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

/* Whether some kernel is not its parent's. */
static bool has_kernels(enum cpu_level level)
{
    const struct engine_isa *isa = engine_isa_here();
    struct quant_kernels own, parent;
    enum cpu_level path[CPU_LEVEL_COUNT];
    const int n = cpu_path(level, path);
    if (level == CPU_SCALAR || isa->vec[level] || isa->attn[level] || isa->tile[level] ||
        isa->tile_many[level])
        return true;
    quant_kernels_fill(&own, level);
    quant_kernels_fill(&parent, path[n - 2]);
    return memcmp(own.type, parent.type, sizeof own.type) != 0 ||
           memcmp(own.quantize, parent.quantize, sizeof own.quantize) != 0;
}

/* Short runs omit levels without kernels, and avx512bf16 if amx runs: amx has the same kernels,
 * except those of many columns, which avx512bf16 shares with avx512. */
static bool is_left_out(enum cpu_level level)
{
    return support_quick() &&
           (!has_kernels(level) || (level == CPU_AVX512BF16 && cpu_level_runs(CPU_AMX)));
}

int support_families(void)
{
    const char *named = getenv(CPU_FAMILY_VARIABLE);
    int n = 0;
    while (cpu_family_at(n)) n++;
    return named && *named ? 1 : n;
}

const struct cpu_family *support_family_at(int turn)
{
    const int n = support_families();
    return n == 1 ? cpu_family() : cpu_family_at(turn % n);
}

bool support_family_takes(size_t i)
{
    size_t own = 0, n = 0;
    for (const struct cpu_family *f; (f = cpu_family_at((int)n)) != NULL; n++)
        if (f == cpu_family()) own = n;
    return !support_quick() || support_families() > 1 || i % n == own;
}

bool support_level_next(int *level)
{
    while (*level < CPU_LEVEL_COUNT &&
           (!support_level_runs((enum cpu_level) * level) || is_left_out((enum cpu_level) * level)))
        ++*level;
    return *level < CPU_LEVEL_COUNT;
}
