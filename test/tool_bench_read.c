/* test/tool_bench_read.c: how memory wants to be read, without any product.
 *
 *     tool_bench_read [THREADS]
 *
 * Loops that load what kernels with AVX-512 load of rows of Q8_0, and add nothing but the words, in
 * turn over the same memory: along the rows, or eight rows side by side, two blocks of each at a
 * step; asking ahead or not, whole steps or each line once. Each thread has a stretch of its own.
 * Shown are GB/s, and the median of the ratios, turn by turn, to a loop that loads whole lines and
 * asks for each once; apart for turns in which memory was fast, and slow, where it is both. */
#include "engine/engine.h"
#include "quant/stream.h"
#include "test/support_bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f")))

enum { TURNS = 41, LINE = 64, PAIR = 68, STEP = 8 * PAIR }; /* bytes; a pair of blocks */
enum asks { NONE, STEPS, LINES };
#define MEMORY ((size_t)768 << 20)

/* A way to read. row: bytes of rows that go side by side, a multiple of PAIR; 0: along them. */
struct way {
    const char *name;
    uint64_t (*read)(const struct way *way, const char *from, size_t bytes);
    enum asks asks;
    size_t ahead, row;
};

TARGET static void meet(__m512i sum[4], const char *at, int i)
{
    sum[i % 4] = _mm512_xor_si512(sum[i % 4], _mm512_loadu_si512(at));
}

TARGET static uint64_t total(const __m512i sum[4])
{
    return (uint64_t)_mm512_reduce_add_epi64(
        _mm512_xor_si512(_mm512_xor_si512(sum[0], sum[1]), _mm512_xor_si512(sum[2], sum[3])));
}

static void ask(const struct way *way, const char *at, size_t bytes)
{
    if (way->asks == STEPS) quant_prefetch_once(at + way->ahead, bytes);
    if (way->asks == LINES) quant_prefetch_lines(at + way->ahead, bytes, way);
}

TARGET static uint64_t whole_lines(const struct way *way, const char *from, size_t bytes)
{
    __m512i sum[4] = {0};
    for (size_t at = 0; at + 8 * LINE <= bytes; at += 8 * LINE) {
        ask(way, from + at, 8 * LINE);
        for (int i = 0; i < 8; i++) meet(sum, from + at + i * LINE, i);
    }
    return total(sum);
}

TARGET static uint64_t along(const struct way *way, const char *from, size_t bytes)
{
    __m512i sum[4] = {0};
    for (size_t at = 0; at + STEP <= bytes; at += STEP) {
        ask(way, from + at, STEP);
        for (int i = 0; i < 8; i++) meet(sum, from + at + i * PAIR, i);
    }
    return total(sum);
}

TARGET static uint64_t side_by_side(const struct way *way, const char *from, size_t bytes)
{
    __m512i sum[4] = {0};
    const size_t group = 8 * way->row;
    for (size_t first = 0; first + group <= bytes; first += group) {
        for (size_t at = 0; at < way->row; at += PAIR) {
            ask(way, from + first + group + 8 * at, STEP);
            for (int i = 0; i < 8; i++) meet(sum, from + first + (size_t)i * way->row + at, i);
        }
    }
    return total(sum);
}

static const struct way ways[] = {
    {"whole lines, asked for once, 4 KB ahead", whole_lines, LINES, 4096, 0},
    {"whole lines, nothing asked for", whole_lines, NONE, 0, 0},
    {"along rows, nothing asked for", along, NONE, 0, 0},
    {"along rows, by steps, 4 KB ahead", along, STEPS, 4096, 0},
    {"along rows, each line once, 2 KB ahead", along, LINES, 2048, 0},
    {"along rows, each line once, 4 KB ahead", along, LINES, 4096, 0},
    {"along rows, each line once, 6 KB ahead", along, LINES, 6144, 0},
    {"along rows, each line once, 8 KB ahead", along, LINES, 8192, 0},
    {"8 rows of 680 bytes, by steps, 4 KB ahead", side_by_side, STEPS, 4096, 680},
    {"8 rows of 2176 bytes, by steps, 4 KB ahead", side_by_side, STEPS, 4096, 2176},
    {"8 rows of 8704 bytes, by steps, 4 KB ahead", side_by_side, STEPS, 4096, 8704},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

struct job {
    const struct way *way;
    const char *memory;
    uint64_t seen[64];
};

static void read_share(const struct engine_worker *worker, void *user)
{
    struct job *job = user;
    const size_t share = MEMORY / (size_t)worker->nth;
    job->seen[worker->ith % 64] ^=
        job->way->read(job->way, job->memory + (size_t)worker->ith * share, share);
}

/* Rates of all ways in those of the turns in which the first one's, there and in the next turn, was
 * within the bounds. */
static void report(double rate[N_WAYS][TURNS], double least, double most, const char *when)
{
    for (int w = 0; w < N_WAYS; w++) {
        double of[TURNS], ratio[TURNS];
        size_t n = 0;
        for (int t = 0; t + 1 < TURNS; t++) {
            const double *first = rate[0] + t;
            if (first[0] < least || first[0] > most || first[1] < least || first[1] > most)
                continue;
            of[n] = rate[w][t];
            ratio[n++] = rate[w][t] / first[0];
        }
        if (n < 5) return;
        if (w == 0) printf("\n%s, %zu turns\n", when, n);
        printf("  %-44s %6.1f  %5.2f\n", ways[w].name, support_median(of, n) * 1e-9,
               support_median(ratio, n));
    }
}

int main(int argc, char **argv)
{
    struct engine_options options = engine_options_default();
    struct engine *e = support_engine(options, argc > 1 ? atoi(argv[1]) : options.n_threads);
    static double rate[N_WAYS][TURNS];
    char *memory = aligned_alloc(2 << 20, MEMORY + (2 << 20)); /* what is asked for lies in it */
    if (!memory) return 4;
    if (e->quant.level < QUANT_AVX512) {
        fprintf(stderr, "tool_bench_read: this processor has no AVX-512\n");
        return 2;
    }
    (void)madvise(memory, MEMORY, MADV_HUGEPAGE);
    for (size_t i = 0; i < MEMORY; i += 64) memory[i] = (char)(i >> 6);
    struct job job = {.memory = memory};
    for (int t = 0; t < TURNS; t++) {
        for (int w = 0; w < N_WAYS; w++) {
            job.way = &ways[w];
            const double start = support_seconds();
            engine_pool_run(e->pool, read_share, &job);
            rate[w][t] = (double)MEMORY / (support_seconds() - start);
        }
    }
    double sorted[TURNS];
    for (int t = 0; t < TURNS; t++) sorted[t] = rate[0][t];
    (void)support_median(sorted, TURNS);
    const double slow = sorted[TURNS / 20], fast = sorted[TURNS - 1 - TURNS / 20];
    printf("%d threads; GB/s, and times the first way's\n", e->options.n_threads);
    if (fast < 1.25 * slow) {
        report(rate, 0, 1e15, "all");
    } else {
        report(rate, 0, slow + (fast - slow) / 3, "while memory was slow");
        report(rate, fast - (fast - slow) / 3, 1e15, "while it was fast");
    }
    free(memory);
    engine_free(e);
    return 0;
}
#else
int main(void)
{
    fprintf(stderr, "tool_bench_read: for x86-64 only\n");
    return 2;
}
#endif
