/* base/cpu.h: instruction-set levels, and facts about the processor.
 *
 * Contains the tree of levels, the detection of those that this machine can run, the function that
 * selects a table's kernels for a level, and the rows of processor families. Contains no kernels.
 * Called by every room that has kernels, and by cli/.
 *
 *     scalar -+- avx2 -+- avxvnni
 *             |        +- avx512 -- avx512bf16 -- amx
 *             +- neon -- dotprod -- i8mm
 *
 * A level contains its parent, and so all levels on the path to the root; of two levels on
 * different branches neither contains the other. Levels are never compared by < or >: cpu_has
 * tests whether one contains another. */
#pragma once

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

/* Parents precede their children. */
enum cpu_level {
    CPU_SCALAR,
    CPU_AVX2,       /* AVX2 + FMA + F16C */
    CPU_AVXVNNI,    /* AVX2 + AVX-VNNI (Intel's desktops since Alder Lake) */
    CPU_AVX512,     /* AVX-512 F + BW + DQ + VL + VNNI */
    CPU_AVX512BF16, /* AVX512 + BF16 + VBMI (Zen 4, Sapphire Rapids) */
    CPU_AMX,        /* AVX512BF16 + AMX-INT8 (Intel's servers since Sapphire Rapids) */
    CPU_NEON,       /* 64-bit ARM: Advanced SIMD with FMA and conversions of binary16 */
    CPU_DOTPROD,    /* NEON + SDOT, UDOT (Cortex-A55, A76, Neoverse N1, Apple M1) */
    CPU_I8MM,       /* DOTPROD + SMMLA, USDOT (Neoverse N2, V1, Apple M2) */
    CPU_LEVEL_COUNT
};

/* Kernels are compiled for their level by function attribute, so that the scalar version may share
 * the file and code that runs before dispatch does not need the level's instructions. */
#define CPU_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#define CPU_TARGET_AVX512                                                                          \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,avx2,f16c")))
#define CPU_TARGET_AVX512BF16                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,avx512vbmi,"   \
                          "fma,avx2,f16c")))
#define CPU_TARGET_AMX                                                                             \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,avx512vbmi,"   \
                          "fma,avx2,f16c,amx-tile,amx-int8")))

/* Whether `level` is `other` or contains it. */
bool cpu_has(enum cpu_level level, enum cpu_level other);

/* Fills path with the levels from CPU_SCALAR to `level`, both included; returns their number. A
 * kernel table is filled by overlaying the rows of these levels in this order: a level without a
 * better entry keeps its parent's. */
int cpu_path(enum cpu_level level, enum cpu_level path[CPU_LEVEL_COUNT]);

/* rows[level], or the entry of its nearest ancestor that is not NULL: for tables that are complete
 * at each level. */
const void *cpu_row(enum cpu_level level, const void *const rows[CPU_LEVEL_COUNT]);

/* The names of all levels in their order, as an option's list of choices. */
#define CPU_LEVEL_NAMES "scalar|avx2|avxvnni|avx512|avx512bf16|amx|neon|dotprod|i8mm"
const char *cpu_level_name(enum cpu_level level); /* "scalar", "avx2", ... */
/* The flags that a level needs in addition to its parent's, as words of /proc/cpuinfo; "" for
 * scalar. */
const char *cpu_level_needs(enum cpu_level level);
/* False when no level has that name (any case); then *level is unchanged. */
bool cpu_level_by_name(const char *name, enum cpu_level *level);

/* Whether this program has the level's kernels: those of another machine's instruction sets are not
 * compiled. CPU_SCALAR: always. */
bool cpu_level_built(enum cpu_level level);
/* Whether this processor has the level's instructions and the operating system saves their
 * registers. CPU_SCALAR: always. */
bool cpu_level_runs(enum cpu_level level);
/* The level that a program should use: the last one of the enumeration that runs. */
enum cpu_level cpu_level_best(void);
/* `level` if it runs, otherwise its nearest ancestor that does. */
enum cpu_level cpu_level_cap(enum cpu_level level);

/* ---- Processor families ---- */

/* Software prefetch of weights that a kernel will read, the same for all levels of a processor. */
struct cpu_prefetch {
    size_t distance;    /* bytes ahead, in each of several streams */
    bool to_l1;         /* a single stream is prefetched to L1, not to L2 */
    bool streams;       /* a single stream stalls at each page of 4 KB, so four streams are read:
                           super-blocks of four strided rows, 2 KB ahead to L2 and 768 bytes ahead
                           to L1, and the rows of the next panels; otherwise rows one by one */
    bool adjacent_rows; /* the rows of a step are adjacent, and so a single stream */
};

struct cpu_family {
    const char *name;     /* one word: "zen4" */
    const char *what;     /* which processors these are */
    bool intel;           /* only processors of this vendor */
    enum cpu_level level; /* supported by all of its processors */
    long l1_bytes;        /* minimum size of their L1 data cache */
    bool dual_512;        /* two 512-bit multiplications per cycle; otherwise one */
    struct cpu_prefetch prefetch;
};

/* The row of this machine's processor, or the one that CPU_FAMILY_VARIABLE names (any case): so
 * each policy can be tested on each machine, because a policy needs no instructions. */
#define CPU_FAMILY_VARIABLE "INFER_TEST_FAMILY"
const struct cpu_family *cpu_family(void);
/* Row i of the families, NULL past the last. */
const struct cpu_family *cpu_family_at(int i);
/* For programs to call at their start. Fails on a big-endian processor, because weights are read
 * where the file is mapped, and with all names if the variable names no row; cpu_family then
 * ignores it. */
bool cpu_check(struct base_error *err);
