/* test/bench/bench_read.c: compares ways to read memory, without products.
 *
 *     bench_read [THREADS]
 *
 * Loops with the loads of AVX-512 kernels for rows of Q8_0, which only add the words, alternate
 * over the same memory: rows in order, or two blocks of each of eight rows per step; without
 * prefetches, prefetching whole steps, or each line once. Each thread has its own part of the
 * memory. Prints GB/s and the median of the ratio, per turn, to a loop that loads whole lines and
 * prefetches each once; separately for turns with fast and slow memory if the speed varies. */
#include "base/unroll.h"
#include "engine/cpu/cpu_device.h"
#include "engine/engine.h"
#include "quant/stream.h"
#include "test/bench/support_bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { TURNS = 41, LINE = 64, PAIR = 68, STEP = 8 * PAIR }; /* bytes; a pair of blocks */
enum prefetch { NONE, STEPS, LINES };
#define MEMORY ((size_t)768 << 20)

INLINE void prefetch(enum prefetch how, const char *at, size_t bytes, const void *spare)
{
    if (how == STEPS) quant_prefetch_once(at, bytes);
    if (how == LINES) quant_prefetch_lines(at, bytes, spare);
}

/* Eight loads, `apart` bytes from one to the next, which change *sum. */
INLINE void load(__m512i *sum, const char *at, size_t apart)
{
    __m512i v[8];
    UNROLL
    for (size_t i = 0; i < 8; i++) v[i] = _mm512_loadu_si512(at + i * apart);
    UNROLL
    for (int n = 4; n > 0; n /= 2) UNROLL
    for (int i = 0; i < n; i++) v[i] = _mm512_xor_si512(v[i], v[i + n]);
    *sum = _mm512_xor_si512(*sum, v[0]);
}

INLINE uint64_t one_stream(const char *from, size_t bytes, size_t apart, enum prefetch how,
                           size_t ahead)
{
    __m512i sum = _mm512_setzero_si512();
    for (size_t at = 0; at + 8 * apart <= bytes; at += 8 * apart) {
        prefetch(how, from + at + ahead, 8 * apart, from + at);
        load(&sum, from + at, apart);
    }
    return (uint64_t)_mm512_reduce_add_epi64(sum);
}

/* Eight rows of `row` bytes, a multiple of PAIR. */
INLINE uint64_t side_by_side(const char *from, size_t bytes, size_t row, size_t ahead)
{
    __m512i sum = _mm512_setzero_si512();
    const size_t group = 8 * row;
    for (size_t first = 0; first + group <= bytes; first += group) {
        for (size_t at = 0; at < row; at += PAIR) {
            prefetch(STEPS, from + first + group + 8 * at + ahead, STEP, NULL);
            load(&sum, from + first + at, row);
        }
    }
    return (uint64_t)_mm512_reduce_add_epi64(sum);
}

typedef uint64_t read_fn(const char *from, size_t bytes);

#define ONE_STREAM(name, apart, how, ahead)                                                        \
    TARGET static uint64_t name(const char *from, size_t bytes)                                    \
    {                                                                                              \
        return one_stream(from, bytes, apart, how, ahead);                                         \
    }
#define SIDE_BY_SIDE(name, row)                                                                    \
    TARGET static uint64_t name(const char *from, size_t bytes)                                    \
    {                                                                                              \
        return side_by_side(from, bytes, row, 4096);                                               \
    }
ONE_STREAM(lines_4, LINE, LINES, 4096)
ONE_STREAM(lines_0, LINE, NONE, 0)
ONE_STREAM(in_order_0, PAIR, NONE, 0)
ONE_STREAM(in_order_steps_4, PAIR, STEPS, 4096)
ONE_STREAM(in_order_2, PAIR, LINES, 2048)
ONE_STREAM(in_order_4, PAIR, LINES, 4096)
ONE_STREAM(in_order_6, PAIR, LINES, 6144)
ONE_STREAM(in_order_8, PAIR, LINES, 8192)
SIDE_BY_SIDE(rows_680, 680)
SIDE_BY_SIDE(rows_2176, 2176)
SIDE_BY_SIDE(rows_8704, 8704)

static const struct way {
    const char *name;
    read_fn *read;
} ways[] = {
    {"whole lines, prefetched once, 4 KB ahead", lines_4},
    {"whole lines, without prefetch", lines_0},
    {"rows in order, without prefetch", in_order_0},
    {"rows in order, by steps, 4 KB ahead", in_order_steps_4},
    {"rows in order, each line once, 2 KB ahead", in_order_2},
    {"rows in order, each line once, 4 KB ahead", in_order_4},
    {"rows in order, each line once, 6 KB ahead", in_order_6},
    {"rows in order, each line once, 8 KB ahead", in_order_8},
    {"8 rows of 680 bytes, by steps, 4 KB ahead", rows_680},
    {"8 rows of 2176 bytes, by steps, 4 KB ahead", rows_2176},
    {"8 rows of 8704 bytes, by steps, 4 KB ahead", rows_8704},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

struct job {
    const struct way *way;
    const char *memory;
    uint64_t *seen; /* [threads]: keeps the compiler from dropping the reads */
};

static void read_share(const struct engine_worker *worker, void *user)
{
    struct job *job = user;
    const size_t share = MEMORY / (size_t)worker->nth / QUANT_PAGE * QUANT_PAGE;
    job->seen[worker->ith] ^= job->way->read(job->memory + (size_t)worker->ith * share, share);
}

/* Reports the rates of all ways in turns in which the rate of the first way was within the bounds,
 * in that turn and the next. */
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
        if (w == 0) printf("\n%s, %zu turns%s\n", when, n, n < 5 ? ": too few" : "");
        if (n < 5) return;
        printf("  %-44s %6.1f  %5.2f\n", ways[w].name, support_median(of, n) * 1e-9,
               support_median(ratio, n));
    }
}

int main(int argc, char **argv)
{
    struct engine_options options = engine_options_default();
    struct engine *e = support_engine(options, argc > 1 ? atoi(argv[1]) : options.n_threads);
    static double rate[N_WAYS][TURNS];
    if (!cpu_has(e->cpu->quant.level, CPU_AVX512)) {
        fprintf(stderr, "bench_read: this processor has no AVX-512\n");
        return 2;
    }
    char *memory = aligned_alloc(2 << 20, MEMORY);
    if (!memory) return 4;
    (void)madvise(memory, MEMORY, MADV_HUGEPAGE);
    for (size_t i = 0; i < MEMORY; i += 64) memory[i] = (char)(i >> 6);
    struct job job = {.memory = memory,
                      .seen = support_memory((size_t)e->options.n_threads * sizeof *job.seen)};
    for (int t = 0; t < TURNS; t++) {
        for (int w = 0; w < N_WAYS; w++) {
            job.way = &ways[w];
            const double start = support_seconds();
            engine_pool_run(e->cpu->pool, read_share, &job);
            rate[w][t] = (double)MEMORY / (support_seconds() - start);
        }
    }
    double sorted[TURNS];
    for (int t = 0; t < TURNS; t++) sorted[t] = rate[0][t];
    (void)support_median(sorted, TURNS); /* sorts them */
    const double slow = sorted[TURNS / 20], fast = sorted[TURNS - 1 - TURNS / 20];
    printf("%d threads; GB/s, and times the first way's\n", e->options.n_threads);
    if (fast < 1.25 * slow) {
        report(rate, 0, 1e15, "all");
    } else {
        report(rate, 0, slow + (fast - slow) / 3, "while memory was slow");
        report(rate, fast - (fast - slow) / 3, 1e15, "while it was fast");
    }
    free(job.seen);
    free(memory);
    engine_free(e);
    return 0;
}
#else
int main(void)
{
    fprintf(stderr, "bench_read: for x86-64 only\n");
    return 2;
}
#endif
