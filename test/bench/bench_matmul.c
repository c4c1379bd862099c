/* test/bench/bench_matmul.c: speed of products and attention through the graph, with the limits of
 * the machine measured in the same run: int8 multiply-adds and streaming reads
 * (engine/cpu/roofline.h).
 *
 *     bench_matmul [THREADS [LEVEL [TYPE]]]
 *
 * One line per type and shape: columns, GMAC/s and their share of the int8 peak, GB/s of weights
 * and their share of the streaming rate. Products with one column use 256 MB of different weights,
 * which come from memory. Lines of tiles: only the tile, on panels (or packed floats) in the L2
 * cache, with one thread, relative to the int8 peak (or the rate of fused multiply-adds) before and
 * after it. On a shared machine only shares of different runs are comparable. */
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/isa/tile.h"
#include "engine/cpu/matmul/matmul.h"
#include "engine/cpu/roofline.h"
#include "engine/graph.h"
#include "test/bench/support_bench.h"
#include "test/support_random.h"
#include "test/support_row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- Limits ---- */

struct limits {
    struct engine *engine;
    double peak, stream; /* GMAC/s, GB/s */
};

static void measure_limits(struct limits *l)
{
    struct base_error err = BASE_ERROR_INIT;
    l->peak = engine_roofline_int8(l->engine->cpu) * 1e-9;
    l->stream = engine_roofline_bandwidth(l->engine->cpu, &err) * 1e-9;
    if (l->stream == 0) support_die(&err);
}

/* ---- Products ---- */

/* Seconds of the best of some runs of a planned graph. */
static double time_graph(struct engine_graph *g)
{
    struct base_error err = BASE_ERROR_INIT;
    double best = 1e30;
    if (!engine_graph_plan(g, true, &err)) support_die(&err);
    for (int i = 0; i < 7; i++) {
        double t = support_seconds();
        if (!engine_graph_run(g, &err)) support_die(&err);
        t = support_seconds() - t;
        if (i > 0 && t < best) best = t;
    }
    return best;
}

enum { MAX_WEIGHTS = 2048 };

static void bench_product(const struct limits *l, const struct quant_type *type, int64_t k,
                          int64_t n, int64_t n_cols)
{
    static struct engine_tensor w[MAX_WEIGHTS];
    struct base_error err = BASE_ERROR_INIT;
    uint64_t row_bytes, seed = 1;
    if (!quant_row_bytes(type, (uint64_t)k, &row_bytes)) return;
    size_t bytes = (size_t)n * row_bytes;
    int count = n_cols > 16 ? 2 : (int)(((size_t)256 << 20) / bytes);
    if (count > MAX_WEIGHTS) count = MAX_WEIGHTS;
    float *x = support_memory((size_t)(k * n_cols) * 4), *row = support_memory((size_t)k * 4);
    for (int64_t i = 0; i < k * n_cols; i++) x[i] = support_random_gauss(&seed);
    for (int64_t i = 0; i < k; i++) row[i] = support_random_gauss(&seed);
    char *data = support_memory(bytes * (size_t)count);
    support_row_encode(type, k, row, NULL, data);
    for (size_t i = 1; i < (size_t)n * (size_t)count; i++)
        memcpy(data + i * row_bytes, data, row_bytes);
    struct engine_tensor xt = support_tensor(QUANT_F32, 2, (int64_t[]){k, n_cols}, x);
    struct engine_graph *g = engine_graph_new(l->engine, count + 8, &err);
    if (!g) support_die(&err);
    for (int i = 0; i < count; i++) {
        w[i] = support_tensor(type->id, 2, (int64_t[]){k, n}, data + (size_t)i * bytes);
        engine_output(g, engine_mul_mat(g, &w[i], &xt));
    }
    double t = time_graph(g) / count, macs = (double)k * n * n_cols / t * 1e-9;
    double rate = (double)bytes / t * 1e-9;
    printf("%-7s k %5d n %5d columns %3d  %7.1f GMAC/s %5.1f %%  %6.1f GB/s %5.1f %%\n", type->name,
           (int)k, (int)n, (int)n_cols, macs, 100 * macs / l->peak, rate, 100 * rate / l->stream);
    engine_graph_free(g);
    free(x);
    free(row);
    free(data);
}

/* ---- Tiles ---- */

/* As in products (engine/cpu/matmul/route_panels.c), small enough for an L2 cache of 512 KB: blocks
 * of 32 with all of k and some panels, super-blocks with a K-block and two panels. */
enum { TILE_K = 2048, TILE_PANELS = 4, TILE_GROUPS = 8 };
enum { TILE_PASSES = 8, TILE_RUNS = 21 };

/* n copies of a group of columns, in the type's activation form, and the size of one. */
static char *tile_columns(const struct engine *engine, const struct engine_tile *tile,
                          const struct quant_type *type, int64_t k, int n, size_t *group_bytes)
{
    const bool small = type->act->layout == QUANT_LAYOUT_32;
    const int64_t len = type->act->block_len;
    *group_bytes = (size_t)(k / len * (small ? tile->cols32_bytes : tile->cols256_bytes));
    char *groups = support_memory(*group_bytes * (size_t)n);
    static _Alignas(64) char column[4 * TILE_K];
    static float x[TILE_K];
    const struct quant_act_parts parts = quant_act_parts(type->act, k);
    const struct quant_act act = quant_act_at(&parts, column);
    struct quant_act same[ENGINE_TILE_MAX_COLS];
    uint64_t seed = 1;
    for (int i = 0; i < k; i++) x[i] = support_random_gauss(&seed);
    engine->cpu->quant.quantize[type->act->index](k, x, &act);
    for (int c = 0; c < tile->cols; c++) same[c] = act;
    (small ? tile->columns32 : tile->columns256)(tile, 0, k / len, same, tile->cols, groups);
    for (int i = 1; i < n; i++) memcpy(groups + (size_t)i * *group_bytes, groups, *group_bytes);
    return groups;
}

/* The share of one thread's int8 peak that the tile reaches, the median of some runs. */
static void bench_tile(struct engine *engine, const struct quant_type *type)
{
    const struct engine_tile *tile = engine_tile_product_table(engine->cpu->quant.level, INT64_MAX);
    const struct quant_kernel *kernel = &engine->cpu->quant.type[type->id];
    if (type->act->element) return;
    const bool small = type->act->layout == QUANT_LAYOUT_32;
    const bool slice =
        engine_route_k_blocks(type->act->layout, INT64_MAX, engine->cpu->quant.dual_512);
    const int64_t k = slice ? tile->k_block : TILE_K, n_blocks = k / type->act->block_len;
    const int at_once = engine_matmul_panels(&engine->cpu->quant, type); /* panels */
    const int n_panels = slice ? at_once : TILE_PANELS;
    const int n_groups = TILE_GROUPS * (int)(TILE_K / k) * TILE_PANELS / n_panels;
    const size_t panel = (size_t)(n_blocks * engine_matmul_panel_bytes(tile, type));
    uint64_t row_bytes, seed = 2;
    if (!quant_row_bytes(type, (uint64_t)k, &row_bytes)) return;
    size_t group_bytes;
    char *groups = tile_columns(engine, tile, type, k, n_groups, &group_bytes);
    char *panels = support_memory(panel * (size_t)n_panels), *row = support_memory(row_bytes);
    const int sums_each = tile->cols / ENGINE_TILE_COLS;
    struct engine_tile_sums *sums = support_memory((size_t)(n_groups * sums_each) * sizeof *sums);
    const void *rows[QUANT_PANEL_ROWS];
    float *x = support_memory((size_t)k * sizeof *x),
          results[ENGINE_TILE_MAX_COLS][2 * QUANT_PANEL_ROWS];
    float *out[ENGINE_TILE_MAX_COLS];
    for (int i = 0; i < k; i++) x[i] = support_random_gauss(&seed);
    support_row_encode(type, k, x, NULL, row);
    for (int r = 0; r < QUANT_PANEL_ROWS; r++) rows[r] = row;
    for (int j = 0; j < n_panels; j++)
        for (int64_t b = 0; b < n_blocks; b++) {
            _Alignas(64) struct quant_panel256 unpacked;
            char *to = panels + (size_t)j * panel + (size_t)b * panel / (size_t)n_blocks;
            kernel->unpack(b, 1, rows, small || !tile->fold256 ? to : (char *)&unpacked);
            if (!small && tile->fold256) tile->fold256(kernel->panel, &unpacked, to);
        }
    for (int c = 0; c < tile->cols; c++) out[c] = results[c];
    double share[TILE_RUNS];
    if (tile->begin) tile->begin();
    for (int run = 0; run < TILE_RUNS; run++) {
        const double before = engine_roofline_int8(engine->cpu), start = support_seconds();
        for (int i = 0; i < TILE_PASSES * n_groups; i++)
            for (int j = 0; j < n_panels; j += at_once) {
                const int g = i % n_groups;
                const void *w = panels + (size_t)j * panel,
                           *cols = groups + (size_t)g * group_bytes;
                const struct engine_tile_to to = {.sums = sums + g * sums_each,
                                                  .first = !slice || i < n_groups,
                                                  .last = !slice,
                                                  .n_rows = at_once * QUANT_PANEL_ROWS,
                                                  .n_cols = tile->cols,
                                                  .out = out};
                if (small)
                    tile->panel32(kernel->panel, n_blocks, w, cols, &to);
                else
                    tile->panel256(kernel->panel, n_blocks, w, cols, &to);
            }
        const double macs = (double)TILE_PASSES * n_groups * n_panels * QUANT_PANEL_ROWS *
                            tile->cols * (double)k / (support_seconds() - start);
        share[run] = 2 * macs / (before + engine_roofline_int8(engine->cpu));
    }
    if (tile->end) tile->end();
    printf("%-7s tile alone %5.1f %%\n", type->name, 100 * support_median(share, TILE_RUNS));
    free(groups);
    free(panels);
    free(row);
    free(sums);
    free(x);
}

/* ---- Tiles of floats ---- */

enum { FMA_STEPS = 4096, FMA_CHAINS = 12 };

#if defined(__x86_64__)

/* The result depends on all chains, so that the compiler keeps them. */
__attribute__((target("avx2,fma"))) static float multiply_add_avx2(void)
{
    __m256 sum[FMA_CHAINS], all = _mm256_setzero_ps();
    const __m256 a = _mm256_set1_ps(0.5f);
    EACH (c, FMA_CHAINS) sum[c] = _mm256_set1_ps((float)c);
    for (int i = 0; i < FMA_STEPS; i++)
        EACH (c, FMA_CHAINS) sum[c] = _mm256_fmadd_ps(sum[c], a, a);
    EACH (c, FMA_CHAINS) all = _mm256_add_ps(all, sum[c]);
    return _mm256_cvtss_f32(all);
}

__attribute__((target("avx512f"))) static float multiply_add_avx512(void)
{
    __m512 sum[FMA_CHAINS], all = _mm512_setzero_ps();
    const __m512 a = _mm512_set1_ps(0.5f);
    EACH (c, FMA_CHAINS) sum[c] = _mm512_set1_ps((float)c);
    for (int i = 0; i < FMA_STEPS; i++)
        EACH (c, FMA_CHAINS) sum[c] = _mm512_fmadd_ps(sum[c], a, a);
    EACH (c, FMA_CHAINS) all = _mm512_add_ps(all, sum[c]);
    return _mm512_cvtss_f32(all);
}
#endif

/* Fused multiply-adds per second of one thread, from registers; 0 for levels without a loop. */
static double fma_peak(enum cpu_level level)
{
    (void)level; /* unused without vector loops */
    float (*multiply_add)(void) = NULL;
    double lanes = 0, best = 0;
#if defined(__x86_64__)
    if (cpu_has(level, CPU_AVX2)) multiply_add = multiply_add_avx2, lanes = 8;
    if (cpu_has(level, CPU_AVX512)) multiply_add = multiply_add_avx512, lanes = 16;
#endif
    for (int i = 0; multiply_add && i < 30; i++) {
        const double start = support_seconds();
        const float sum = multiply_add();
        const double rate = FMA_STEPS * FMA_CHAINS * lanes / (support_seconds() - start);
        if (sum > 0 && rate > best) best = rate;
    }
    return best;
}

/* Packed rows of random numbers: both halves of a word are bfloat16. */
static float *packed_rows(size_t n)
{
    float *to = support_memory(n * sizeof *to);
    uint64_t seed = 3;
    for (size_t i = 0; i < n; i++) {
        const float number = support_random_gauss(&seed);
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        bits = (bits & 0xffff0000) | bits >> 16;
        memcpy(to + i, &bits, sizeof bits);
    }
    return to;
}

/* The share of one thread's rate of fused multiply-adds that the tile of packed floats reaches. */
static void bench_float_tile(struct engine *engine, const char *name,
                             const struct engine_tile_packed *packed, int64_t k)
{
    enum { L2_FLOATS = 1 << 17, ROWS = ENGINE_TILE_FLOAT_ROWS, COLUMNS = ENGINE_TILE_COLS };
    const int64_t n_steps = (k + 31) / 32 * (32 / packed->step_len);
    int n_sets = (int)(L2_FLOATS / (ROWS * k));
    if (n_sets < 1) n_sets = 1;
    const int n_groups = (int)((1 << 14) / k) + 1;
    float *w = packed_rows((size_t)(n_sets * ROWS * n_steps) * 16);
    float *x = packed_rows((size_t)(n_groups * COLUMNS * n_steps) * 16);
    float results[COLUMNS][ROWS], *out[COLUMNS];
    struct engine_tile_tree tree;
    const struct engine_tile_leaves leaves = {.end = 16, .n_steps = n_steps, .tree = &tree};
    double share[TILE_RUNS];
    for (int c = 0; c < COLUMNS; c++) out[c] = results[c];
    for (int run = 0; run < TILE_RUNS; run++) {
        const double before = fma_peak(engine->cpu->quant.level), start = support_seconds();
        for (int pass = 0; pass < TILE_PASSES; pass++)
            for (int g = 0; g < n_groups; g++)
                for (int j = 0; j < n_sets; j++)
                    packed->product(&leaves, w + j * ROWS * n_steps * 16,
                                    x + g * COLUMNS * n_steps * 16, ROWS, COLUMNS, out);
        const double macs = (double)TILE_PASSES * n_groups * n_sets * ROWS * COLUMNS * (double)k /
                            (support_seconds() - start);
        share[run] = 2 * macs / (before + fma_peak(engine->cpu->quant.level));
    }
    printf("%-7s tile alone %5.1f %% of fused multiply-adds, k %d\n", name,
           100 * support_median(share, TILE_RUNS), (int)k);
    free(w);
    free(x);
}

static void bench_float_tiles(struct engine *engine, const struct quant_type *type)
{
    const struct engine_tile *tile = engine_tile_table(engine->cpu->quant.level);
    const struct engine_tile_packed *packed =
        type->act->layout == QUANT_LAYOUT_F32    ? tile->packed_f32
        : type->act->layout == QUANT_LAYOUT_BF16 ? tile->packed_bf16
                                                 : NULL;
    static const int lengths[] = {384, 1536, 2048, 8192};
    for (int i = 0; packed && i < 4; i++) bench_float_tile(engine, type->name, packed, lengths[i]);
}

/* ---- Attention ---- */

static void bench_attention(const struct limits *l, int heads, int n_kv, int d, int n_tokens,
                            int past)
{
    struct base_error err = BASE_ERROR_INIT;
    int64_t room = past + n_tokens;
    uint64_t seed = 1;
    float *q = support_memory((size_t)(n_tokens * heads * d) * 4);
    for (int i = 0; i < n_tokens * heads * d; i++) q[i] = support_random_gauss(&seed);
    size_t bytes = (size_t)room * (size_t)(n_kv * d) * 2;
    uint16_t *k = support_memory(bytes), *v = support_memory(bytes);
    int32_t *cells = support_memory((size_t)room * 4),
            *span = support_memory((size_t)n_tokens * 16);
    for (int i = 0; i < room; i++) cells[i] = i;
    for (int i = 0; i < n_tokens; i++) memcpy(span + 4 * i, (int32_t[]){0, 0, past + i + 1, 0}, 16);
    struct engine_tensor qt = support_tensor(QUANT_F32, 3, (int64_t[]){d, heads, n_tokens}, q);
    struct engine_tensor kt = support_tensor(QUANT_F16, 3, (int64_t[]){d, n_kv, room}, k);
    struct engine_tensor vt = support_tensor(QUANT_F16, 3, (int64_t[]){d, n_kv, room}, v);
    struct engine_tensor st = support_tensor(QUANT_I32, 2, (int64_t[]){4, n_tokens}, span);
    struct engine_tensor ct = support_tensor(QUANT_I32, 2, (int64_t[]){room, 1}, cells);
    struct engine_attention how = {.scale = 0.125f};
    struct engine_graph *g = engine_graph_new(l->engine, 8, &err);
    if (!g) support_die(&err);
    engine_output(g, engine_attention(g, &qt, &kt, &vt, &st, &ct, NULL, NULL, &how));
    double t = time_graph(g), keys = (double)n_tokens * past + n_tokens * (n_tokens + 1) / 2.0;
    printf("attention heads %d/%d d %d tokens %3d past %5d: %8.1f us %6.1f GMAC/s %6.1f GB/s\n",
           heads, n_kv, d, n_tokens, past, t * 1e6, keys * heads * d * 2 / t * 1e-9,
           2.0 * (double)bytes / t * 1e-9);
    engine_graph_free(g);
    free(q);
    free(k);
    free(v);
    free(cells);
    free(span);
}

int main(int argc, char **argv)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct limits l = {0};
    if (argc > 1) options.n_threads = atoi(argv[1]);
    if (argc > 2 && !cpu_level_by_name(argv[2], &options.level)) return 2;
    l.engine = engine_new(&options, &err);
    if (!l.engine) support_die(&err);
    options.n_threads = 1;
    struct engine *alone = engine_new(&options, &err);
    if (!alone) support_die(&err);
    measure_limits(&l);
    printf("%d threads, %s; int8 peak %.1f GMAC/s, streaming %.1f GB/s\n",
           l.engine->options.n_threads, cpu_level_name(l.engine->cpu->quant.level), l.peak,
           l.stream);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act) continue;
        if (argc > 3 && quant_type_by_name(argv[3]) != type) continue;
        static const int columns[] = {1, 2, 3, 4, 8, 16, 512};
        for (int i = 0; i < 7; i++) bench_product(&l, type, 2048, 2048, columns[i]);
        bench_product(&l, type, 576, 1536, 1);
        bench_product(&l, type, 576, 1536, 512);
        bench_tile(alone, type);
        bench_float_tiles(alone, type);
    }
    bench_attention(&l, 9, 3, 64, 512, 0);
    bench_attention(&l, 9, 3, 64, 1, 128);
    bench_attention(&l, 9, 3, 64, 1, 4096);
    bench_attention(&l, 32, 8, 128, 512, 0);
    bench_attention(&l, 32, 8, 128, 1, 4096);
    engine_free(alone);
    engine_free(l.engine);
    return 0;
}
