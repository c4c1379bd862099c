/* test/bench/bench_attn.c: the share of reading in the time of attention over a long context.
 *
 *     bench_attn [THREADS [LEVEL [HEADS KV_HEADS SIZE DEPTH]]]
 *
 * Attention of one token over int16-quantized caches of many layers, as in decoding, in turn with a
 * twin on the same threads that only reads each line of the same chunks once. Then the same from
 * the L2 cache, with one thread and one layer. */
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/pool.h"
#include "engine/kv.h"
#include "test/bench/support_bench.h"
#include "test/support_graph.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 61, CACHE_RUNS = 401 };
enum { FROM_MEMORY = 96 << 20, FROM_CACHE = 640 << 10, SPAN = 4 }; /* bytes of keys and values */

struct shape {
    int64_t heads, kv, size, depth;
};

/* Keys and values of consecutive layers, and the other inputs of attention. */
struct layers {
    struct shape s;
    int n;
    int64_t bytes[2], groups; /* per group of keys, of values; groups per head */
    struct engine_tensor *cache, q, span, cells;
    struct engine_graph *graph;
};

static int64_t tensor_bytes(const struct layers *l, int what)
{
    return l->bytes[what] * l->groups * l->s.kv;
}

/* Random int16-quantized keys (or values). */
static void fill(struct engine *e, struct layers *l, int what)
{
    struct base_error err = BASE_ERROR_INIT;
    const int64_t n_cells = l->groups * ENGINE_KV_Q16_GROUP, n = n_cells * l->s.kv * l->s.size;
    uint64_t seed = 1 + (uint64_t)what;
    float *rows = support_memory((size_t)n * sizeof *rows);
    for (int64_t i = 0; i < n; i++) rows[i] = support_random_float(&seed);
    struct engine_tensor x =
        support_tensor(QUANT_F32, 3, (int64_t[]){l->s.size, n_cells, l->s.kv}, rows);
    struct engine_tensor to = support_tensor(QUANT_I32, 1, (int64_t[]){n_cells}, l->cells.data);
    struct engine_graph *g = engine_graph_new(e, 8, &err);
    if (!g) support_die(&err);
    engine_output(g, engine_set_kv_q16(g, what ? ENGINE_KV_Q16_VALUES : ENGINE_KV_Q16_KEYS,
                                       &l->cache[what], &x, &to, QUANT_F16));
    if (!engine_graph_plan(g, true, &err) || !engine_graph_run(g, &err)) support_die(&err);
    engine_graph_free(g);
    free(rows);
}

static void plan(struct engine *e, struct layers *l)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct engine_attention how = {.scale = 0.125f, .dv = (int)l->s.size};
    struct engine_tensor *x = &l->q;
    l->graph = engine_graph_new(e, 8 * l->n + 8, &err);
    if (!l->graph) support_die(&err);
    for (int i = 0; i < l->n; i++) {
        struct engine_tensor *k = engine_permute(l->graph, &l->cache[2 * i], 0, 2, 1, 3);
        struct engine_tensor *v = engine_permute(l->graph, &l->cache[2 * i + 1], 0, 2, 1, 3);
        x = engine_attention(l->graph, x, k, v, &l->span, &l->cells, NULL, NULL, &how);
        x = engine_reshape(l->graph, x, 3, l->q.ne);
    }
    engine_output(l->graph, x);
    if (!engine_graph_plan(l->graph, true, &err) || !engine_graph_run(l->graph, &err))
        support_die(&err);
}

/* Layers whose caches fill `bytes`; the graph points into *l. */
static void layers_init(struct layers *l, struct engine *e, struct shape s, size_t bytes)
{
    const int64_t n_cells =
        (s.depth + ENGINE_KV_Q16_ALIGN - 1) / ENGINE_KV_Q16_ALIGN * ENGINE_KV_Q16_ALIGN;
    *l = (struct layers){.s = s,
                         .bytes = {engine_kv_coded_elements(NULL, ENGINE_KV_Q16_KEYS, s.size),
                                   engine_kv_coded_elements(NULL, ENGINE_KV_Q16_VALUES, s.size)},
                         .groups = n_cells / ENGINE_KV_Q16_GROUP};
    const int64_t layer = tensor_bytes(l, 0) + tensor_bytes(l, 1);
    uint64_t seed = 7;
    l->n = (int)((int64_t)bytes / layer) + 1;
    char *data = support_memory((size_t)(l->n * layer));
    float *q = support_memory((size_t)(s.heads * s.size) * sizeof *q);
    int32_t *span = support_memory(SPAN * sizeof *span);
    int32_t *cells = support_memory((size_t)n_cells * sizeof *cells);
    for (int64_t i = 0; i < s.heads * s.size; i++) q[i] = 4 * support_random_float(&seed);
    for (int64_t i = 0; i < n_cells; i++) cells[i] = (int32_t)i;
    memcpy(span, (int32_t[SPAN]){0, 0, (int32_t)s.depth, 0}, SPAN * sizeof *span);
    l->q = support_tensor(QUANT_F32, 3, (int64_t[]){s.size, s.heads, 1}, q);
    l->span = support_tensor(QUANT_I32, 2, (int64_t[]){SPAN, 1}, span);
    l->cells = support_tensor(QUANT_I32, 2, (int64_t[]){n_cells, 1}, cells);
    l->cache = support_memory((size_t)(2 * l->n) * sizeof *l->cache);
    for (int i = 0; i < 2 * l->n; data += tensor_bytes(l, i % 2), i++)
        l->cache[i] =
            support_tensor(QUANT_I8, 3, (int64_t[]){l->bytes[i % 2], l->groups, s.kv}, data);
    for (int what = 0; what < 2; what++) fill(e, l, what);
    for (int i = 2; i < 2 * l->n; i++)
        memcpy(l->cache[i].data, l->cache[i % 2].data, (size_t)tensor_bytes(l, i % 2));
    plan(e, l);
}

static void layers_free(struct layers *l)
{
    engine_graph_free(l->graph);
    free(l->cache[0].data);
    free(l->cache);
    free(l->q.data);
    free(l->span.data);
    free(l->cells.data);
}

/* ---- The twin ---- */

struct reading {
    const struct layers *l;
    bool to_l1;
    uint64_t sum[64]; /* sums of the workers, so that the compiler keeps the reads */
};

/* The chunks of each layer in turn, in the order of engine/cpu/attention/attention.c, which has two
 * barriers. */
static void read_layers(const struct engine_worker *worker, void *data)
{
    struct reading *r = data;
    const struct layers *l = r->l;
    const int64_t per = ENGINE_ATTENTION_CHUNK / ENGINE_KV_Q16_GROUP;
    const int64_t chunks = (l->groups + per - 1) / per, n = chunks * l->s.kv;
    for (int i = 0; i < l->n; i++) {
        for (int64_t u; (u = engine_pool_take(worker, n)) < n;) {
            const int64_t first = u % chunks * per;
            const int64_t groups = l->groups - first < per ? l->groups - first : per;
            for (int what = 0; what < 2; what++)
                r->sum[worker->ith % 64] += support_read(
                    l->cache[2 * i + what].data + (u / chunks * l->groups + first) * l->bytes[what],
                    (size_t)(groups * l->bytes[what]), r->to_l1);
        }
        engine_pool_barrier(worker);
        engine_pool_barrier(worker);
    }
}

/* ---- Measuring ---- */

static double attention_seconds(struct layers *l)
{
    struct base_error err = BASE_ERROR_INIT;
    double t = support_seconds();
    if (!engine_graph_run(l->graph, &err)) support_die(&err);
    return support_seconds() - t;
}

static double bytes_of(const struct layers *l)
{
    return (double)l->n * (double)(tensor_bytes(l, 0) + tensor_bytes(l, 1));
}

static void bench_memory(struct engine *e, struct shape s)
{
    struct layers l;
    layers_init(&l, e, s, FROM_MEMORY);
    struct reading r = {.l = &l, .to_l1 = e->cpu->quant.prefetch.to_l1};
    double rate[2][RUNS], ratio[RUNS];
    for (int i = 0; i < RUNS; i++) {
        for (int j = 0; j < 2; j++) {
            if ((i + j) % 2 == 0) {
                rate[0][i] = bytes_of(&l) / attention_seconds(&l);
                continue;
            }
            double t = support_seconds();
            engine_pool_run(e->cpu->pool, read_layers, &r);
            rate[1][i] = bytes_of(&l) / (support_seconds() - t);
        }
        ratio[i] = rate[0][i] / rate[1][i];
    }
    printf("attention %.1f GB/s, reading %.1f, ratio %.2f\n", support_median(rate[0], RUNS) * 1e-9,
           support_median(rate[1], RUNS) * 1e-9, support_median(ratio, RUNS));
    layers_free(&l);
}

static void bench_cache(struct engine *alone, struct shape s)
{
    const int64_t cell = 4 * s.kv * s.size;
    s.depth = FROM_CACHE / cell < s.depth ? FROM_CACHE / cell : s.depth;
    struct layers l;
    layers_init(&l, alone, s, 0);
    double rate[CACHE_RUNS];
    for (int i = 0; i < CACHE_RUNS; i++) rate[i] = bytes_of(&l) / attention_seconds(&l);
    printf("from L2, one thread: %.1f GB/s\n", support_median(rate, CACHE_RUNS) * 1e-9);
    layers_free(&l);
}

int main(int argc, char **argv)
{
    struct engine_options options = engine_options_default();
    struct shape s = {.heads = 9, .kv = 3, .size = 64, .depth = 4096}; /* SmolLM2's */
    const int n_threads = argc > 1 ? atoi(argv[1]) : options.n_threads;
    if (argc > 2 && !cpu_level_by_name(argv[2], &options.level)) return 2;
    if (argc == 7)
        s = (struct shape){atol(argv[3]), atol(argv[4]), atol(argv[5]), atol(argv[6])};
    else if (argc > 3)
        return 2;
    if (s.kv < 1 || s.heads < 1 || s.heads % s.kv || s.size < 1 || s.depth < 1) return 2;
    struct engine *e = support_engine(options, n_threads), *alone = support_engine(options, 1);
    printf("%d threads, %s; %ld heads over %ld, of %ld, depth %ld\n", e->options.n_threads,
           cpu_level_name(e->cpu->quant.level), (long)s.heads, (long)s.kv, (long)s.size,
           (long)s.depth);
    bench_memory(e, s);
    bench_cache(alone, s);
    engine_free(alone);
    engine_free(e);
    return 0;
}
