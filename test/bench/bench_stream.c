/* test/bench/bench_stream.c: the share of reading in the time of one-column products.
 *
 *     bench_stream [THREADS [LEVEL [TYPE|all [K]]]]
 *
 * Each type's product, with rows of K (2048) elements from memory, alternates with a twin that the
 * engine divides and runs in the same way, but whose kernel only reads. If a product is as fast as
 * its twin, no other kernel can be faster. Then the product with weights from the L2 cache and one
 * thread: if that is far above a thread's share of the memory rate, arithmetic is not a limit
 * either. */
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/matmul/matmul.h"
#include "engine/graph.h"
#include "test/bench/support_bench.h"
#include "test/support_graph.h"
#include "test/support_row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 21, CACHE_RUNS = 401 };
/* Approximate bytes of weights: far more than all third-level caches, and less than the
 * second-level cache. */
enum { FROM_MEMORY = 512 << 20, FROM_CACHE = 256 << 10 };

/* A gemv that reads its rows and multiplies nothing. */
static void read_rows(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                      float *out)
{
    for (int64_t r = 0; r < rows->n; r++)
        out[r] = (float)(support_read((const char *)rows->w + (size_t)r * rows->row_bytes,
                                      rows->row_bytes, rows->prefetch.to_l1) >>
                         40);
    (void)k;
    (void)a;
}

/* An engine whose products of all types only read. */
static struct engine *reader_of(struct engine_options options, int n_threads)
{
    struct engine *e = support_engine(options, n_threads);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        e->cpu->quant.type[id].gemv = read_rows;
        e->cpu->quant.type[id].rows_per_step = 1;
    }
    return e;
}

/* The inputs of a product: rows of random numbers in the type, and a column. */
struct weights {
    int64_t n;
    uint64_t row_bytes;
    struct engine_tensor w, x;
};

static struct weights weights_new(const struct quant_type *type, int64_t k, size_t bytes)
{
    enum { DIFFERENT = 64 };
    struct base_error err = BASE_ERROR_INIT;
    struct weights s;
    uint64_t seed = 1;
    if (!quant_row_bytes(type, (uint64_t)k, &s.row_bytes)) exit(2);
    s.n = (int64_t)(bytes / s.row_bytes) / DIFFERENT * DIFFERENT;
    if (s.n == 0) s.n = DIFFERENT;
    float *x = support_memory((size_t)k * sizeof *x),
          *row = support_memory((size_t)k * sizeof *row);
    char *data = support_memory((size_t)s.n * s.row_bytes);
    for (int64_t i = 0; i < k; i++) x[i] = support_random_float(&seed);
    for (int r = 0; r < DIFFERENT; r++) {
        for (int64_t i = 0; i < k; i++) row[i] = support_random_float(&seed);
        support_row_encode(type, k, row, NULL, data + (size_t)r * s.row_bytes);
    }
    for (int64_t r = DIFFERENT; r < s.n; r++)
        memcpy(data + (size_t)r * s.row_bytes, data + (size_t)(r % DIFFERENT) * s.row_bytes,
               s.row_bytes);
    free(row);
    if (!engine_tensor_init(&s.w, type, 2, (int64_t[]){k, s.n}, data, "w", &err) ||
        !engine_tensor_init(&s.x, quant_type_by_id(QUANT_F32), 2, (int64_t[]){k, 1}, x, "x", &err))
        support_die(&err);
    return s;
}

static void weights_free(struct weights *s)
{
    free(s->w.data);
    free(s->x.data);
}

static struct engine_graph *product_new(struct engine *e, struct weights *s)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_graph *g = engine_graph_new(e, 8, &err);
    if (!g) support_die(&err);
    engine_output(g, engine_mul_mat(g, &s->w, &s->x));
    if (!engine_graph_plan(g, true, &err) || !engine_graph_run(g, &err)) support_die(&err);
    return g;
}

static double seconds_of(struct engine_graph *g)
{
    struct base_error err = BASE_ERROR_INIT;
    double t = support_seconds();
    if (!engine_graph_run(g, &err)) support_die(&err);
    return support_seconds() - t;
}

/* GB/s of weights from memory of the product and of its twin, and the median of their ratios. */
static void bench_memory(struct engine *e, struct engine *reader, const struct quant_type *type,
                         int64_t k)
{
    struct weights s = weights_new(type, k, FROM_MEMORY);
    struct engine_graph *g[2] = {product_new(e, &s), product_new(reader, &s)};
    const double bytes = (double)s.n * (double)s.row_bytes;
    double rate[2][RUNS], ratio[RUNS];
    for (int i = 0; i < RUNS; i++) {
        for (int j = 0; j < 2; j++) rate[(i + j) % 2][i] = bytes / seconds_of(g[(i + j) % 2]);
        ratio[i] = rate[0][i] / rate[1][i];
    }
    printf("%-7s  %6.1f  %6.1f  %5.2f", type->name, support_median(rate[0], RUNS) * 1e-9,
           support_median(rate[1], RUNS) * 1e-9, support_median(ratio, RUNS));
    for (int j = 0; j < 2; j++) engine_graph_free(g[j]);
    weights_free(&s);
}

static void bench_cache(struct engine *alone, const struct quant_type *type, int64_t k)
{
    struct weights s = weights_new(type, k, FROM_CACHE);
    struct engine_graph *g = product_new(alone, &s);
    double rate[CACHE_RUNS];
    for (int i = 0; i < CACHE_RUNS; i++)
        rate[i] = (double)s.n * (double)s.row_bytes / seconds_of(g);
    printf("  %6.1f\n", support_median(rate, CACHE_RUNS) * 1e-9);
    engine_graph_free(g);
    weights_free(&s);
}

int main(int argc, char **argv)
{
    struct engine_options options = engine_options_default();
    const int n_threads = argc > 1 ? atoi(argv[1]) : options.n_threads;
    if (argc > 2 && !cpu_level_by_name(argv[2], &options.level)) return 2;
    const struct quant_type *only = argc > 3 ? quant_type_by_name(argv[3]) : NULL;
    if (argc > 3 && !only && strcmp(argv[3], "all") != 0) return 2;
    const int64_t k = argc > 4 ? atol(argv[4]) : 2048;
    if (k <= 0) return 2;
    struct engine *e = support_engine(options, n_threads), *reader = reader_of(options, n_threads);
    struct engine *alone = support_engine(options, 1);
    printf("%d threads, %s; GB/s of weights\n", e->options.n_threads,
           cpu_level_name(e->cpu->quant.level));
    printf("type     product reading  ratio  from L2, one thread\n");
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act || (only && type != only)) continue;
        if (k % type->block_len != 0) continue;
        bench_memory(e, reader, type, k);
        bench_cache(alone, type, k);
    }
    engine_free(alone);
    engine_free(reader);
    engine_free(e);
    return 0;
}
