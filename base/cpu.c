/* base/cpu.c: the rows of levels and of processor families, and how they are detected. */
#include "base/cpu.h"
#include "base/os.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Words of bits, the features of a processor: of x86-64 the registers that CPUID fills, and XCR0,
 * the register states that the operating system saves; of 64-bit ARM the two words that Linux
 * passes to each process. Those of the other family are 0. */
enum word { LEAF1_C, LEAF7_B, LEAF7_C, LEAF7_D, LEAF7_1_A, XCR0, HWCAP, HWCAP2, N_WORDS };

#define BIT(n) (1u << (n))
enum {
    /* Instructions whose registers are not saved at a task switch must not be used. */
    STATE_AVX = BIT(1) | BIT(2), /* SSE, AVX */
    STATE_AVX512 = STATE_AVX | BIT(5) | BIT(6) | BIT(7),
    STATE_TILES = BIT(17) | BIT(18),
    TILE_FLAGS = BIT(24) | BIT(25) /* LEAF7_D */
};

#if defined(__x86_64__)
#include <cpuid.h>

static bool allow_tiles(const uint32_t has[N_WORDS])
{
    return (has[LEAF7_D] & TILE_FLAGS) == TILE_FLAGS && (has[XCR0] & STATE_TILES) == STATE_TILES &&
           base_os_allow_tiles();
}

static void read_features(uint32_t has[N_WORDS])
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    has[LEAF1_C] = c;
    if (c & bit_OSXSAVE) __asm__("xgetbv" : "=a"(has[XCR0]), "=d"(d) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    has[LEAF7_B] = b;
    has[LEAF7_C] = c;
    has[LEAF7_D] = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) has[LEAF7_1_A] = a;
    if (!allow_tiles(has)) has[XCR0] &= ~(uint32_t)STATE_TILES;
}

static bool made_by_intel(void)
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx && c == signature_INTEL_ecx &&
           d == signature_INTEL_edx;
}
#else
static void read_features(uint32_t has[N_WORDS])
{
#if defined(__aarch64__)
    base_os_arm_features(&has[HWCAP], &has[HWCAP2]);
#else
    (void)has;
#endif
}

static bool made_by_intel(void)
{
    return false;
}
#endif

/* Facts about the processor, read once: under a hypervisor each CPUID takes tens of microseconds,
 * and a cache size takes many CPUIDs. */
struct machine {
    pthread_once_t once;
    uint32_t has[N_WORDS];
    bool intel;
    long l1_bytes;      /* of the data cache, 0: unknown */
    const char *family; /* the value of CPU_FAMILY_VARIABLE; NULL: unset or empty */
};
static struct machine cpu_machine = {.once = PTHREAD_ONCE_INIT};

static void read_machine(void)
{
    read_features(cpu_machine.has);
    cpu_machine.intel = made_by_intel();
    const char *family = getenv(CPU_FAMILY_VARIABLE);
    if (family && *family) cpu_machine.family = family;
#ifdef _SC_LEVEL1_DCACHE_SIZE
    cpu_machine.l1_bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
#endif
}

static const struct machine *get_machine(void)
{
    pthread_once(&cpu_machine.once, read_machine);
    return &cpu_machine;
}

/* ---- Levels ---- */

struct level {
    const char *name, *needs;
    enum cpu_level parent;  /* of CPU_SCALAR: CPU_SCALAR */
    uint32_t bits[N_WORDS]; /* required in addition to the parent's */
};

/* Bits of a word are in the order of their names in `needs`. */
static const struct level levels[CPU_LEVEL_COUNT] = {
    [CPU_SCALAR] = {.name = "scalar", .needs = ""},
    [CPU_AVX2] = {"avx2",
                  "avx2 fma f16c",
                  CPU_SCALAR,
                  {[LEAF1_C] = BIT(12) | BIT(29) | BIT(28), /* and AVX */
                   [LEAF7_B] = BIT(5),
                   [XCR0] = STATE_AVX}},
    [CPU_AVXVNNI] = {"avxvnni", "avx_vnni", CPU_AVX2, {[LEAF7_1_A] = BIT(4)}},
    [CPU_AVX512] = {"avx512",
                    "avx512f avx512bw avx512dq avx512vl avx512_vnni",
                    CPU_AVX2,
                    {[LEAF7_B] = BIT(16) | BIT(30) | BIT(17) | BIT(31),
                     [LEAF7_C] = BIT(11),
                     [XCR0] = STATE_AVX512}},
    [CPU_AVX512BF16] = {"avx512bf16",
                        "avx512_bf16 avx512vbmi",
                        CPU_AVX512,
                        {[LEAF7_1_A] = BIT(5), [LEAF7_C] = BIT(1)}},
    [CPU_AMX] = {"amx",
                 "amx_tile amx_int8",
                 CPU_AVX512BF16,
                 {[LEAF7_D] = TILE_FLAGS, [XCR0] = STATE_TILES}},
    [CPU_NEON] = {"neon", "asimd", CPU_SCALAR, {[HWCAP] = BIT(1)}},
    [CPU_DOTPROD] = {"dotprod", "asimddp", CPU_NEON, {[HWCAP] = BIT(20)}},
    [CPU_I8MM] = {"i8mm", "i8mm", CPU_DOTPROD, {[HWCAP2] = BIT(13)}},
};

bool cpu_has(enum cpu_level level, enum cpu_level other)
{
    while (level != other && level != CPU_SCALAR) level = levels[level].parent;
    return level == other;
}

int cpu_path(enum cpu_level level, enum cpu_level path[CPU_LEVEL_COUNT])
{
    int n = 0;
    for (int l = 0; l < CPU_LEVEL_COUNT; l++)
        if (cpu_has(level, (enum cpu_level)l)) path[n++] = (enum cpu_level)l;
    return n;
}

const void *cpu_row(enum cpu_level level, const void *const rows[CPU_LEVEL_COUNT])
{
    while (!rows[level] && level != CPU_SCALAR) level = levels[level].parent;
    return rows[level];
}

const char *cpu_level_name(enum cpu_level level)
{
    return levels[level].name;
}

const char *cpu_level_needs(enum cpu_level level)
{
    return levels[level].needs;
}

bool cpu_level_by_name(const char *name, enum cpu_level *level)
{
    for (int l = 0; l < CPU_LEVEL_COUNT; l++) {
        if (strcasecmp(levels[l].name, name) != 0) continue;
        *level = (enum cpu_level)l;
        return true;
    }
    return false;
}

static bool runs(const uint32_t has[N_WORDS], enum cpu_level level)
{
    for (; level != CPU_SCALAR; level = levels[level].parent)
        for (int w = 0; w < N_WORDS; w++)
            if ((has[w] & levels[level].bits[w]) != levels[level].bits[w]) return false;
    return true;
}

bool cpu_level_built(enum cpu_level level)
{
#if defined(__x86_64__)
    return level == CPU_SCALAR || cpu_has(level, CPU_AVX2);
#elif defined(__aarch64__)
    return level == CPU_SCALAR || cpu_has(level, CPU_NEON);
#else
    return level == CPU_SCALAR;
#endif
}

bool cpu_level_runs(enum cpu_level level)
{
    return cpu_level_cap(level) == level;
}

enum cpu_level cpu_level_best(void)
{
    const struct machine *m = get_machine();
    int l = CPU_LEVEL_COUNT - 1;
    while (!runs(m->has, (enum cpu_level)l)) l--;
    return (enum cpu_level)l;
}

enum cpu_level cpu_level_cap(enum cpu_level level)
{
    const struct machine *m = get_machine();
    while (!runs(m->has, level)) level = levels[level].parent;
    return level;
}

/* ---- Processor families ---- */

/* The first row that matches describes the processor. The prefetch policies were measured on a
 * processor of each family (docs/performance.md): Granite Rapids, Zen 5, Zen 4 and Zen 3. That
 * of ARM was not: adjacent rows are one stream, which each prefetcher follows. Intel's
 * PREFETCHNTA keeps the hardware prefetcher of the second-level cache idle, so no policy of an
 * Intel family uses it. No CPUID flag reports two 512-bit ports; the cores that have them have a
 * first-level data cache above 32 KB. */
static const struct cpu_family families[] = {
    {.name = "icelake",
     .what = "Intel with two 512-bit ports: servers since Ice Lake",
     .intel = true,
     .level = CPU_AVX512,
     .l1_bytes = (32 << 10) + 1,
     .dual_512 = true,
     .prefetch = {.distance = 1024, .streams = true}},
    {.name = "intel",
     .what = "other Intel",
     .intel = true,
     .level = CPU_SCALAR,
     .prefetch = {.distance = 1024}},
    {.name = "zen5",
     .what = "two 512-bit ports: Zen 5",
     .level = CPU_AVX512,
     .l1_bytes = (32 << 10) + 1,
     .dual_512 = true,
     .prefetch = {.distance = 1024, .to_l1 = true, .adjacent_rows = true}},
    {.name = "zen4",
     .what = "512 bits in halves: Zen 4",
     .level = CPU_AVX512,
     .prefetch = {.distance = 1024}},
    {.name = "arm",
     .what = "64-bit ARM",
     .level = CPU_NEON,
     .prefetch = {.distance = 1024, .adjacent_rows = true}},
    {.name = "zen3",
     .what = "256 bits or less: Zen 3 and all others",
     .level = CPU_SCALAR,
     .prefetch = {.distance = 384, .to_l1 = true}},
};

enum { N_FAMILIES = sizeof families / sizeof families[0] };

const struct cpu_family *cpu_family_at(int i)
{
    return i < N_FAMILIES ? &families[i] : NULL;
}

static const struct cpu_family *family_by_name(const char *name)
{
    for (int i = 0; i < N_FAMILIES; i++)
        if (strcasecmp(families[i].name, name) == 0) return &families[i];
    return NULL;
}

bool cpu_check(struct base_error *err)
{
    const char *name = get_machine()->family;
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return base_fail(err, BASE_FAILED,
                         "this processor is big-endian; infer runs on little-endian ones, whose "
                         "numbers are those of the files");
    if (!name || family_by_name(name)) return true;
    char names[128] = "";
    for (int i = 0; i < N_FAMILIES; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? ", " : "",
                 families[i].name);
    return base_fail_at(err, BASE_USAGE, CPU_FAMILY_VARIABLE, -1,
                        "'%s' is not a family of processors: %s", name, names);
}

const struct cpu_family *cpu_family(void)
{
    const struct machine *m = get_machine();
    const struct cpu_family *named = m->family ? family_by_name(m->family) : NULL;
    if (named) return named;
    const enum cpu_level best = cpu_level_best();
    const struct cpu_family *f = families;
    while (!cpu_has(best, f->level) || m->l1_bytes < f->l1_bytes || (f->intel && !m->intel)) f++;
    return f;
}
