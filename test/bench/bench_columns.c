/* test/bench/bench_columns.c: time of products with few columns, relative to one column and to the
 * limits of the machine measured in the same run.
 *
 *     bench_columns [LEVEL [TYPE|all [MB]]]
 *
 * One thread, rows of 2048 elements, processor time. Products with 1 to 16 columns alternate, with
 * weights that fit the L2 cache and with MB (256) megabytes of weights. A line of the table has
 * medians: the time of 256 elements of a row times all columns; and, per turn, its ratio to one
 * column and its shares of two limits: reading the weights at the rate of a loop that only reads,
 * and int8 multiply-adds. */
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/roofline.h"
#include "engine/graph.h"
#include "test/bench/support_bench.h"
#include "test/support_random.h"
#include "test/support_row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { K = 2048, CACHE_ROWS = 512, ROWS = 2048, TURNS = 15, MAX_WEIGHTS = 1024, PASSES = 24 };

static const int columns[] = {1, 2, 3, 4, 8, 16};
enum { COUNTS = sizeof columns / sizeof *columns };

/* Seconds of processor time of this thread. */
static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A graph of n products with the same x, of weights from w on, `step` tensors apart. */
static struct engine_graph *products(struct engine *e, struct engine_tensor *w, int n, int step,
                                     struct engine_tensor *x)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_graph *g = engine_graph_new(e, n + 8, &err);
    if (!g) support_die(&err);
    for (int i = 0; i < n; i++) engine_output(g, engine_mul_mat(g, w + i * step, x));
    if (!engine_graph_plan(g, true, &err)) support_die(&err);
    return g;
}

static double time_graph(struct engine_graph *g)
{
    struct base_error err = BASE_ERROR_INIT;
    const double start = thread_seconds();
    if (!engine_graph_run(g, &err)) support_die(&err);
    return thread_seconds() - start;
}

static double time_reading(const struct engine *e, const void *data, size_t bytes)
{
    volatile uint64_t sum; /* keeps the reads */
    const double start = thread_seconds();
    sum = support_read(data, bytes, e->cpu->quant.prefetch.to_l1);
    (void)sum;
    return thread_seconds() - start;
}

/* Index: the number of columns. */
struct times {
    double ns[COUNTS], ratio[COUNTS], read[COUNTS], multiply[COUNTS];
};

/* Products of n weights, `step` tensors apart, with x of each number of columns. */
static struct times time_weights(struct engine *e, struct engine_tensor *w, int n, int step,
                                 struct engine_tensor *x)
{
    const double macs = (double)(w->ne[0] * w->ne[1]) * n;
    const size_t bytes = (size_t)(w->ne[1] * w->nb[1]) * (step > 0 ? (size_t)n : 1);
    struct engine_graph *g[COUNTS];
    double ns[COUNTS][TURNS], ratio[COUNTS][TURNS], read[COUNTS][TURNS], multiply[COUNTS][TURNS];
    struct times times;
    for (int i = 0; i < COUNTS; i++) g[i] = products(e, w, n, step, x + i);
    for (int t = -1; t < TURNS; t++) { /* -1: not measured */
        const double reading = time_reading(e, w->data, bytes), peak = engine_roofline_int8(e->cpu);
        double one = 0;
        for (int i = 0; i < COUNTS; i++) {
            const double s = time_graph(g[i]);
            if (i == 0) one = s;
            if (t < 0) continue;
            ns[i][t] = s * 1e9 / (macs / 256);
            ratio[i][t] = s / one;
            read[i][t] = reading / s;
            multiply[i][t] = macs * columns[i] / peak / s;
        }
    }
    for (int i = 0; i < COUNTS; i++) {
        times.ns[i] = support_median(ns[i], TURNS);
        times.ratio[i] = support_median(ratio[i], TURNS);
        times.read[i] = support_median(read[i], TURNS);
        times.multiply[i] = support_median(multiply[i], TURNS);
        engine_graph_free(g[i]);
    }
    return times;
}

/* n rows, some of them different. */
static char *random_rows(const struct quant_type *type, int64_t n, uint64_t row_bytes)
{
    enum { DIFFERENT = 16 };
    uint64_t seed = 1;
    float row[K];
    char *data = support_memory((size_t)n * row_bytes);
    for (int64_t r = 0; r < n; r++) {
        char *to = data + (size_t)r * row_bytes;
        for (int i = 0; r < DIFFERENT && i < K; i++) row[i] = support_random_gauss(&seed);
        if (r < DIFFERENT)
            support_row_encode(type, K, row, NULL, to);
        else
            memcpy(to, data + (size_t)(r % DIFFERENT) * row_bytes, row_bytes);
    }
    return data;
}

static void bench_type(struct engine *e, const struct quant_type *type, size_t megabytes)
{
    static struct engine_tensor w[MAX_WEIGHTS], x[COUNTS];
    uint64_t seed = 2, row_bytes;
    if (!quant_row_bytes(type, K, &row_bytes)) return;
    int n = (int)((megabytes << 20) / (row_bytes * ROWS));
    if (n < 1) n = 1;
    if (n > MAX_WEIGHTS) n = MAX_WEIGHTS;
    char *data = random_rows(type, (int64_t)n * ROWS, row_bytes);
    const int most = columns[COUNTS - 1];
    float *values = support_memory((size_t)(K * most) * sizeof *values);
    for (int i = 0; i < K * most; i++) values[i] = support_random_gauss(&seed);
    for (int i = 0; i < COUNTS; i++)
        x[i] = support_tensor(QUANT_F32, 2, (int64_t[]){K, columns[i]}, values);
    w[0] = support_tensor(type->id, 2, (int64_t[]){K, CACHE_ROWS}, data);
    const struct times cache = time_weights(e, w, PASSES, 0, x);
    for (int i = 0; i < n; i++)
        w[i] =
            support_tensor(type->id, 2, (int64_t[]){K, ROWS}, data + (size_t)i * ROWS * row_bytes);
    const struct times memory = time_weights(e, w, n, 1, x);
    for (int i = 0; i < COUNTS; i++)
        printf("| %s | %d | %.1f | %.2f | %.0f %% | %.1f | %.2f | %.0f %% | %.0f %% |\n",
               type->name, columns[i], cache.ns[i], cache.ratio[i], 100 * cache.multiply[i],
               memory.ns[i], memory.ratio[i], 100 * memory.read[i], 100 * memory.multiply[i]);
    free(values);
    free(data);
}

int main(int argc, char **argv)
{
    struct engine_options options = engine_options_default();
    if (argc > 1 && !cpu_level_by_name(argv[1], &options.level)) return 2;
    const bool all = argc < 3 || strcmp(argv[2], "all") == 0;
    const int megabytes = argc > 3 ? atoi(argv[3]) : 256;
    if (megabytes < 1 || (!all && !quant_type_by_name(argv[2]))) return 2;
    struct engine *e = support_engine(options, 1);
    puts("| type | columns | ns, cache | of one column | int8 | ns, memory | of one column | "
         "reading "
         "| int8 |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act || !type->scalar.encode) continue;
        if (all || quant_type_by_name(argv[2]) == type) bench_type(e, type, (size_t)megabytes);
    }
    engine_free(e);
    return 0;
}
