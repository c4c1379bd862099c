/* test/bench/bench_blas.c: F32 products by our kernels and by OpenBLAS, alternating, as a table.
 *
 *     bench_blas [THREADS [ROUNDS]]
 *
 * Three ways for each shape: our tiles; the same graph with --blas, which uses OpenBLAS only for
 * large products (matmul/route.c); and OpenBLAS alone, one call per thread for its share of the
 * rows, which shows where OpenBLAS would be faster. They alternate; the table has medians, in G
 * multiply-adds per second, so that the ratios hold on a machine whose speed drifts. Products with
 * few columns use 128 MB of weights, which come from memory. */
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/matmul/blas.h"
#include "engine/graph.h"
#include "test/bench/support_bench.h"
#include "test/support_random.h"
#include <stdio.h>
#include <stdlib.h>

enum { WAYS = 3, MAX_ROUNDS = 25, MAX_WEIGHTS = 128, FEW_COLUMNS = 64, WEIGHT_BYTES = 128 << 20 };

static float *random_floats(int64_t n)
{
    float *x = aligned_alloc(64, ((size_t)n * sizeof(*x) + 63) / 64 * 64);
    uint64_t state = 1;
    if (!x) exit(4);
    for (int64_t i = 0; i < n; i++) x[i] = 0.5f * support_random_float(&state);
    return x;
}

/* A product of `rows` weights of length k with `columns` activations, `count` times with different
 * weights. */
struct shape {
    int64_t k, rows, columns, count;
    const float *w, *x;
    float *out;
    const struct engine_blas *blas;
};

/* One call for each product and worker, for its share of the rows. */
static void blas_job(const struct engine_worker *worker, void *data)
{
    const struct shape *s = data;
    int64_t first = s->rows * worker->ith / worker->nth,
            end = s->rows * (worker->ith + 1) / worker->nth;
    for (int64_t i = 0; i < s->count; i++)
        engine_blas_product(s->blas, s->columns, end - first, s->k, s->x, s->k,
                            s->w + (i * s->rows + first) * s->k, s->k, s->out + first, s->rows);
}

static struct engine_tensor matrix(int64_t k, int64_t n, const float *data)
{
    struct engine_tensor t;
    struct base_error err = BASE_ERROR_INIT;
    if (!engine_tensor_init(&t, quant_type_by_id(QUANT_F32), 2, (int64_t[]){k, n}, (void *)data,
                            "leaf", &err))
        support_die(&err);
    return t;
}

static struct engine_graph *build(struct engine *engine, const struct shape *s,
                                  struct engine_tensor *leaves)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_graph *g = engine_graph_new(engine, (int)s->count + 8, &err);
    if (!g) support_die(&err);
    leaves[s->count] = matrix(s->k, s->columns, s->x);
    for (int64_t i = 0; i < s->count; i++) {
        leaves[i] = matrix(s->k, s->rows, s->w + i * s->rows * s->k);
        engine_output(g, engine_mul_mat(g, &leaves[i], &leaves[s->count]));
    }
    if (!engine_graph_plan(g, true, &err)) support_die(&err);
    return g;
}

static void bench(struct engine *engine, int rounds, int64_t k, int64_t rows, int64_t columns)
{
    static struct engine_tensor leaves[MAX_WEIGHTS + 1];
    struct base_error err = BASE_ERROR_INIT;
    struct shape s = {
        .k = k, .rows = rows, .columns = columns, .count = 1, .blas = engine->cpu->blas};
    double time[WAYS][MAX_ROUNDS], rate[WAYS];
    if (columns <= FEW_COLUMNS) s.count = WEIGHT_BYTES / (k * rows * (int64_t)sizeof(float));
    if (s.count > MAX_WEIGHTS) s.count = MAX_WEIGHTS;
    float *w = random_floats(s.count * rows * k), *x = random_floats(columns * k);
    s.w = w;
    s.x = x;
    s.out = random_floats(columns * rows);
    struct engine_graph *g = build(engine, &s, leaves);
    for (int round = -1; round < rounds; round++) {
        for (int way = 0; way < WAYS; way++) {
            engine->cpu->blas = way == 0 ? NULL : (struct engine_blas *)s.blas;
            double t = support_seconds();
            if (way < 2 && !engine_graph_run(g, &err)) support_die(&err);
            if (way == 2) engine_pool_run(engine->cpu->pool, blas_job, &s);
            if (round >= 0) time[way][round] = support_seconds() - t;
        }
    }
    for (int way = 0; way < WAYS; way++) {
        rate[way] = (double)(k * rows * columns * s.count) /
                    support_median(time[way], (size_t)rounds) * 1e-9;
    }
    printf("| %d x %d x %d | %.1f | %.1f | %.1f | %.2f | %.2f |\n", (int)k, (int)rows, (int)columns,
           rate[0], rate[1], rate[2], rate[1] / rate[0], rate[2] / rate[0]);
    fflush(stdout);
    engine_graph_free(g);
    free(w);
    free(x);
    free(s.out);
}

int main(int argc, char **argv)
{
    static const struct {
        int64_t k, rows;
    } skinny[] = {{576, 1536}, {2048, 2048}, {8192, 2048}};
    static const int columns[] = {1, 4, 16, 32, 64, 128, 512};
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    int rounds = argc > 2 ? atoi(argv[2]) : 7;
    if (argc > 1) options.n_threads = atoi(argv[1]);
    if (rounds < 1 || rounds > MAX_ROUNDS) return 2;
    options.use_blas = true;
    struct engine *engine = engine_new(&options, &err);
    if (!engine) support_die(&err);
    printf("%d threads, %s; G multiply-adds a second\n\n", engine->options.n_threads,
           cpu_level_name(engine->cpu->quant.level));
    printf(
        "| k x rows x columns | ours | `--blas` | OpenBLAS alone | `--blas` / ours | alone / ours "
        "|\n| --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (int64_t n = 512; n <= 4096; n *= 2) bench(engine, rounds, n, n, n);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 7; j++) bench(engine, rounds, skinny[i].k, skinny[i].rows, columns[j]);
    engine_free(engine);
    return 0;
}
