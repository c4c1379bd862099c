/* test/bench/bench_ports.c: which instructions a core with AVX-512 can execute in parallel with
 * multiplications: the basis for the shapes of tiles (engine/cpu/x86/tile_avx512.c,
 * docs/performance.md).
 *
 *     bench_ports
 *
 * VPDPBUSD per nanosecond from registers, for several numbers of accumulators; the same with the
 * loads of a tile; and the cost of another instruction, one for every two VPDPBUSD, in VPDPBUSD.
 * Best of several runs, one thread. */
#include "base/unroll.h"
#include "test/bench/support_bench.h"
#include <stdint.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"), noinline))

enum { STEPS = 200000, RUNS = 15, LINES = 32, MOST_PANELS = 3, PANEL_BYTES = 4096 + 64 };

static _Alignas(64) char panels[MOST_PANELS * PANEL_BYTES + 64 * LINES], columns[64 * LINES];
static _Alignas(64) char stored[64 * 8];

#define MULTIPLY(sum, codes, four)                                                                 \
    __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(four))

/* Multiplies N registers STEPS times; `beside` follows the first of every two multiplications. */
#define LOOP(name, N, beside)                                                                      \
    TARGET static void name(void)                                                                  \
    {                                                                                              \
        __m512i sum[N], other[8];                                                                  \
        const __m512i a = _mm512_set1_epi32(3), b = _mm512_set1_epi32(5);                          \
        const __mmask32 odd = 0xaaaaaaaa;                                                          \
        EACH (i, N) sum[i] = a;                                                                    \
        EACH (i, 8) other[i] = b;                                                                  \
        for (int step = 0; step < STEPS; step++)                                                   \
            EACH (i, N) {                                                                          \
                MULTIPLY(sum[i], a, b);                                                            \
                if (i % 2 == 0) {                                                                  \
                    __m512i *const o = &other[i / 2 % 8];                                          \
                    (void)o, (void)odd;                                                            \
                    beside;                                                                        \
                }                                                                                  \
            }                                                                                      \
    }

LOOP(sums_4, 4, )
LOOP(sums_6, 6, )
LOOP(sums_8, 8, )
LOOP(sums_10, 10, )
LOOP(sums_12, 12, )
LOOP(sums_16, 16, )

#define BESIDE(text) __asm__ volatile(text : "=v"(*o) : "v"(a), "v"(b))
LOOP(beside_fma, 16, __asm__ volatile("vfmadd231ps %1, %1, %0" : "+v"(*o) : "v"(a)))
LOOP(beside_mulps, 16, BESIDE("vmulps %1, %2, %0"))
LOOP(beside_mulld, 16, BESIDE("vpmulld %1, %2, %0"))
LOOP(beside_addps, 16, BESIDE("vaddps %1, %2, %0"))
LOOP(beside_cvt, 16, BESIDE("vcvtdq2ps %1, %0"))
LOOP(beside_slld, 16, BESIDE("vpslld $16, %1, %0"))
LOOP(beside_blend, 16,
     __asm__ volatile("vpblendmw %1, %2, %0%{%3%}"
                      : "=v"(*o)
                      : "v"(a), "v"(b), "Yk"(odd)))
LOOP(beside_shufb, 16, BESIDE("vpshufb %1, %2, %0"))
LOOP(beside_permw, 16, BESIDE("vpermw %1, %2, %0"))
LOOP(beside_load, 16,
     __asm__ volatile("vmovdqa32 %1, %0"
                      : "=v"(*o)
                      : "m"(stored[(i / 2 % 8) * 64])))
LOOP(beside_store, 16,
     __asm__ volatile("vmovdqa32 %1, %0"
                      : "=m"(stored[(i / 2 % 8) * 64])
                      : "v"(*o)))
LOOP(store_of_16, 16, if (i == 0) __asm__ volatile("vmovdqa32 %1, %0" : "=m"(stored) : "v"(*o)))

/* Multiplies a tile of P panels by C columns from the first-level cache. */
#define TILE(name, P, C)                                                                           \
    TARGET static void name(void)                                                                  \
    {                                                                                              \
        __m512i sum[P][C];                                                                         \
        EACH (p, P)                                                                                \
            EACH (c, C) sum[p][c] = _mm512_setzero_si512();                                        \
        for (int step = 0; step < STEPS; step++) {                                                 \
            const char *w = panels + step % LINES * 64, *x = columns + step % LINES * 32;          \
            __m512i codes[P];                                                                      \
            EACH (p, P) codes[p] = _mm512_loadu_si512(w + p * PANEL_BYTES);                        \
            EACH (c, C) {                                                                          \
                const __m512i four = _mm512_set1_epi32(((const int32_t *)(const void *)x)[c]);     \
                EACH (p, P) MULTIPLY(sum[p][c], codes[p], four);                                   \
            }                                                                                      \
        }                                                                                          \
    }

TILE(tile_1_8, 1, 8)
TILE(tile_2_4, 2, 4)
TILE(tile_2_8, 2, 8)
TILE(tile_3_4, 3, 4)

/* Multiplies per nanosecond. */
static double rate(void (*loop)(void), int multiplies)
{
    double best = 0;
    for (int i = 0; i < RUNS; i++) {
        const double start = support_seconds();
        loop();
        const double one = 1e-9 * STEPS * multiplies / (support_seconds() - start);
        if (one > best) best = one;
    }
    return best;
}

/* The instructions, with the number of VPDPBUSD per instruction. */
static const struct {
    const char *name;
    void (*loop)(void);
    int of;
} beside[] = {
    {"VFMADD231PS", beside_fma, 2}, {"VMULPS", beside_mulps, 2},
    {"VPMULLD", beside_mulld, 2},   {"VADDPS", beside_addps, 2},
    {"VCVTDQ2PS", beside_cvt, 2},   {"VPSLLD", beside_slld, 2},
    {"VPBLENDMW", beside_blend, 2}, {"VPSHUFB", beside_shufb, 2},
    {"VPERMW", beside_permw, 2},    {"load", beside_load, 2},
    {"store", beside_store, 2},     {"store beside 16", store_of_16, 16},
};

int main(void)
{
    if (!__builtin_cpu_supports("avx512vnni")) {
        puts("this processor has no VPDPBUSD of 512 bits");
        return 0;
    }
    printf("sums   4: %.2f  6: %.2f  8: %.2f  10: %.2f  12: %.2f  16: %.2f VPDPBUSD/ns\n",
           rate(sums_4, 4), rate(sums_6, 6), rate(sums_8, 8), rate(sums_10, 10), rate(sums_12, 12),
           rate(sums_16, 16));
    printf("panels by columns   1 x 8: %.2f  2 x 4: %.2f  2 x 8: %.2f  3 x 4: %.2f VPDPBUSD/ns\n",
           rate(tile_1_8, 8), rate(tile_2_4, 8), rate(tile_2_8, 16), rate(tile_3_4, 12));
    puts("beside two VPDPBUSD, costs as many of them as:");
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        const double alone = rate(sums_16, 16);
        printf("%-22s %5.2f\n", beside[i].name,
               (alone / rate(beside[i].loop, 16) - 1) * beside[i].of);
    }
    return 0;
}
#else
int main(void)
{
    puts("for x86-64 only");
    return 0;
}
#endif
