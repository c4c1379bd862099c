/* test/support_product.c: see test/support_product.h. */
#include "test/support_product.h"
#include "engine/cpu/cpu_device.h"
#include "test/support_files.h"
#include "test/support_graph.h"
#include "test/support_level.h"
#include "test/support_row.h"
#include <math.h>
#include <string.h>

/* ---- Random data ---- */

float product_random(uint64_t *state)
{
    return 0.5f * support_random_float(state);
}

/* Columns of several kinds: plain, tiny, subnormal, huge, zero, with a spike, with a NaN,
 * alternating extremes. */
static void fill_column(uint64_t *state, float *x, int64_t k, int64_t column)
{
    float scale = column % 11 == 3   ? 1e-20f
                  : column % 11 == 4 ? 1e-39f
                  : column % 11 == 5 ? 1e4f
                                     : 1.0f;
    for (int64_t i = 0; i < k; i++) x[i] = product_random(state) * scale;
    if (column % 11 == 7) memset(x, 0, (size_t)k * sizeof(float));
    if (column % 11 == 8) x[support_random(state) % k] = 1e6f;
    if (column % 29 == 9) x[support_random(state) % k] = NAN;
    for (int64_t i = 0; column % 11 == 10 && i < k; i++) x[i] = i % 2 ? -1.0f : 1.0f;
}

/* ---- One weight matrix with its specified products ---- */

struct quant_act product_act(const struct quant_act_form *form, int64_t k, const float *x)
{
    static _Alignas(64) char memory[PRODUCT_MAX_K * 4];
    static struct quant_kernels kernels;
    const struct quant_act_parts parts = quant_act_parts(form, k);
    const struct quant_act act = quant_act_at(&parts, memory);
    assert_in_range(parts.bytes, 0, sizeof memory);
    quant_kernels_init(&kernels, CPU_SCALAR);
    kernels.quantize[form->index](k, x, &act);
    return act;
}

void product_fill(struct product_bench *b, const struct quant_type *type, int64_t k, bool raw,
                  uint64_t seed)
{
    if (b->type == type && b->k == k && b->raw == raw && b->seed == seed) return;
    b->type = type;
    b->k = k;
    b->raw = raw;
    b->seed = seed;
    assert_true(quant_row_bytes(type, (uint64_t)k, &b->row_bytes));
    for (int64_t r = 0; r < PRODUCT_MAX_ROWS; r++) {
        float row[PRODUCT_MAX_K];
        char *to = b->w + (size_t)r * b->row_bytes;
        for (int64_t i = 0; i < k; i++) row[i] = product_random(&seed) * (r == 3 ? 30.0f : 1.0f);
        support_row_make(type, k, row, to);
        for (uint64_t i = 0; raw && i < b->row_bytes; i++) to[i] = (char)support_random(&seed);
    }
    for (int64_t c = 0; c < PRODUCT_MAX_COLS; c++) {
        fill_column(&seed, b->x[c], k, c);
        struct quant_act a = product_act(type->act, k, b->x[c]);
        for (int64_t r = 0; r < PRODUCT_MAX_ROWS; r++)
            b->want[c][r] = type->dot(k, b->w + (size_t)r * b->row_bytes, &a);
    }
}

/* ---- Running ---- */

enum { MAX_THREADS = 4 };

struct engine *product_engine(enum cpu_level level, int n_threads)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    options.level = level;
    options.n_threads = n_threads;
    struct engine *e = engine_new(&options, &err);
    assert_non_null(e);
    return e;
}

void product_adapt(struct engine *e, int turn)
{
    quant_kernels_fill_for(&e->cpu->quant, e->cpu->quant.level, support_family_at(turn));
}

struct engine_tensor product_leaf(enum quant_id type, int n_dims, const int64_t *ne, void *data)
{
    struct engine_tensor t;
    struct base_error err = BASE_ERROR_INIT;
    assert_true(engine_tensor_init(&t, quant_type_by_id(type), n_dims, ne, data, "leaf", &err));
    return t;
}

void product_plan_and_run(struct engine_graph *g, struct engine_tensor *out, bool simplify)
{
    struct base_error err = BASE_ERROR_INIT;
    char text[512];
    if (out) engine_output(g, out);
    if (!engine_graph_plan(g, simplify, &err) || !engine_graph_run(g, &err))
        fail_msg("%s", base_error_format(&err, text, sizeof(text)));
}

void product_run(struct engine_graph *g, struct engine_tensor *out)
{
    product_plan_and_run(g, out, true);
}

struct engine_graph *product_graph(struct engine *e)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_graph *g = engine_graph_new(e, 32, &err);
    assert_non_null(g);
    return g;
}

bool product_same(float a, float b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof(a)) == 0;
}

void product_check(const struct product_bench *b, const struct engine *e, const float *got,
                   int64_t column, int64_t n)
{
    for (int64_t r = 0; r < n; r++)
        if (!product_same(got[r], b->want[column][r]))
            fail_msg("%s level %s threads %d k %d column %d row %d: %.9g, not %.9g", b->type->name,
                     cpu_level_name(e->cpu->quant.level), e->options.n_threads, (int)b->k,
                     (int)column, (int)r, got[r], b->want[column][r]);
}

const float *product_row(const struct engine_tensor *t, int64_t i1, int64_t i2, int64_t i3)
{
    return (const float *)(t->data + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3]);
}

int64_t product_short_k(const struct quant_type *type, int i)
{
    static const int64_t floats[] = {1, 7, 16, 31, 33, 100, 576};
    return type->block_len == 1 ? floats[i % 7] : type->block_len * (1 + i % 3);
}

/* The checks of one round; engine[level][i] has threads[i] threads. In short runs each engine has
 * one of the families, and a type one of the numbers of threads at each level. */
static void check_round(void (*check)(const struct quant_type *, struct engine *, int),
                        const struct quant_type *type, int round,
                        struct engine *engine[CPU_LEVEL_COUNT][MAX_THREADS], int n_threads)
{
    const int n_families = support_quick() ? 1 : support_families(), id = (int)type->id;
    int n = 0;
    for (int level = CPU_SCALAR; support_level_next(&level); level++)
        for (int i = 0; i < n_threads; i++)
            for (int f = 0; f < n_families; f++) {
                if (support_quick() && (id + level) % n_threads != i) continue;
                if ((n++ + id) % PRODUCT_ROUNDS != round) continue;
                product_adapt(engine[level][i], id + level + i + f);
                check(type, engine[level][i], round);
            }
}

void product_for_all(void (*check)(const struct quant_type *, struct engine *, int),
                     const int *threads, int n_threads)
{
    struct engine *engine[CPU_LEVEL_COUNT][MAX_THREADS] = {{NULL}};
    assert_in_range(n_threads, 1, MAX_THREADS);
    for (int level = CPU_SCALAR; support_level_next(&level); level++)
        for (int i = 0; i < n_threads; i++) engine[level][i] = product_engine(level, threads[i]);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        for (int round = 0; type && type->act && support_family_takes(id) && round < PRODUCT_ROUNDS;
             round++)
            check_round(check, type, round, engine, n_threads);
    }
    for (int level = CPU_SCALAR; support_level_next(&level); level++)
        for (int i = 0; i < n_threads; i++) engine_free(engine[level][i]);
}
