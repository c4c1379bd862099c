/* test/test_gate.c: a product with a gate, one node for glu(gate x, up x), has the same bits as
 * three nodes at any level, threads, rows, columns and route; and cases that must not be fused. */
#include "engine/cpu/cpu_device.h"
#include "test/support_files.h"
#include "test/support_graph.h"
#include "test/support_level.h"
#include "test/support_product.h"
#include "test/support_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* glu(gate x, up x), which becomes one node, or two if it must not be fused. */
static struct engine_tensor *gated(struct engine_graph *g, struct engine_tensor *gate,
                                   struct engine_tensor *up, struct engine_tensor *x)
{
    struct engine_tensor *const both[] = {gate, up};
    struct engine_tensor *all = engine_mul_mat_cat(g, both, 2, x);
    const int64_t n = gate->ne[1], n_up = up->ne[1];
    return engine_glu(g, engine_cols(g, all, 0, n), engine_cols(g, all, n, n_up), ENGINE_GELU);
}

static void check_gate(const struct quant_type *type, struct engine *e, int round)
{
    static struct product_bench b;
    static const int64_t cols[] = {1, 2, 3, 8, 9, 33, PRODUCT_MAX_COLS};
    static const int64_t rows[] = {20, 16, 1, 7, 17, 15};
    struct engine_vec scalar;
    engine_vec_init(&scalar, CPU_SCALAR);
    product_fill(&b, type, product_short_k(type, round), round % 2, (uint64_t)round);
    for (int i = 0; i < 7; i++) {
        const int64_t n = rows[(round + i) % 6];
        struct engine_tensor gate = product_leaf(type->id, 2, (int64_t[]){b.k, n}, b.w);
        struct engine_tensor up =
            product_leaf(type->id, 2, (int64_t[]){b.k, n}, b.w + 20 * b.row_bytes);
        struct engine_tensor x =
            product_leaf(QUANT_F32, 2, (int64_t[]){PRODUCT_MAX_K, cols[i]}, b.x);
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *out = gated(g, &gate, &up, engine_cols(g, &x, 0, b.k));
        product_run(g, out);
        assert_int_equal(engine_graph_nodes(g), cols[i] > 2 ? 1 : 2);
        for (int64_t c = 0; c < cols[i]; c++) {
            float want[PRODUCT_MAX_ROWS];
            scalar.glu[ENGINE_GELU](n, b.want[c], b.want[c] + 20, want);
            for (int64_t r = 0; r < n; r++)
                if (!product_same(product_row(out, c, 0, 0)[r], want[r]))
                    fail_msg("%s level %s threads %d k %d columns %d: column %d row %d of %d",
                             type->name, cpu_level_name(e->cpu->quant.level), e->options.n_threads,
                             (int)b.k, (int)cols[i], (int)c, (int)r, (int)n);
        }
        engine_graph_free(g);
    }
}

static void fused_gate_and_up_equal_scalar(void **state)
{
    (void)state;
    static const int threads[] = {1, 3};
    product_for_all(check_gate, threads, 2);
}

/* The results with a zero (of either sign) in `active`, which is every second, every result, or all
 * but one, are +0, the others the specified products; weights of skipped rows may be NaN. */
static void check_active(const struct quant_type *type, struct engine *e, int round)
{
    static struct product_bench b;
    static const int64_t cols[] = {1, 2, 3, 33};
    static float active[33 * PRODUCT_MAX_ROWS]; /* [columns][n] */
    product_fill(&b, type, product_short_k(type, round), round % 2, (uint64_t)round);
    for (int i = 0; i < 4; i++) {
        const int64_t n = PRODUCT_MAX_ROWS - round % 3;
        uint64_t seed = (uint64_t)(7 * round + i);
        for (int64_t c = 0; c < cols[i]; c++)
            for (int64_t r = 0; r < n; r++) {
                const uint64_t dice = support_random(&seed) % 16;
                const bool on = round == 0 ? true : round == 1 ? r == 5 : dice < (uint64_t)round;
                active[c * n + r] = on ? dice % 2 ? -1.5f : NAN : dice % 2 ? -0.0f : 0.0f;
            }
        struct engine_tensor w = product_leaf(type->id, 2, (int64_t[]){b.k, n}, b.w);
        struct engine_tensor x =
            product_leaf(QUANT_F32, 2, (int64_t[]){PRODUCT_MAX_K, cols[i]}, b.x);
        struct engine_tensor a = product_leaf(QUANT_F32, 2, (int64_t[]){n, cols[i]}, active);
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *out = engine_mul_mat_active(g, &w, engine_cols(g, &x, 0, b.k), &a);
        product_run(g, out);
        for (int64_t c = 0; c < cols[i]; c++)
            for (int64_t r = 0; r < n; r++) {
                const float want = active[c * n + r] == 0.0f ? 0.0f : b.want[c][r];
                if (!product_same(product_row(out, c, 0, 0)[r], want))
                    fail_msg("%s level %s threads %d k %d columns %d: column %d row %d of %d",
                             type->name, cpu_level_name(e->cpu->quant.level), e->options.n_threads,
                             (int)b.k, (int)cols[i], (int)c, (int)r, (int)n);
            }
        engine_graph_free(g);
    }
}

static void rows_of_zero_gates_are_zero_and_others_equal_scalar(void **state)
{
    (void)state;
    static const int threads[] = {1, 3};
    product_for_all(check_active, threads, 2);
}

/* Gates are the first rows of experts, up projections the last ones; some ids do not exist. */
static void check_experts(const struct quant_type *type, struct engine *e, int round)
{
    enum { N = 5, X = 4, U = 3, UP = PRODUCT_MAX_ROWS / 2 };
    static struct product_bench b;
    const int64_t n_tokens = round % 3 ? 21 : 1;
    int32_t ids[21][U];
    uint64_t seed = (uint64_t)round;
    struct engine_vec scalar;
    engine_vec_init(&scalar, CPU_SCALAR);
    product_fill(&b, type, product_short_k(type, round), false, seed);
    for (int t = 0; t < 21; t++)
        for (int u = 0; u < U; u++) ids[t][u] = (int32_t)(support_random(&seed) % (X + 1)) - t % 2;
    const int64_t shape[] = {b.k, N, X};
    struct engine_tensor gate = product_leaf(type->id, 3, shape, b.w);
    struct engine_tensor up = product_leaf(type->id, 3, shape, b.w + UP * b.row_bytes);
    struct engine_tensor x =
        product_leaf(QUANT_F32, 3, (int64_t[]){PRODUCT_MAX_K, 1, n_tokens}, b.x);
    struct engine_tensor which = product_leaf(QUANT_I32, 2, (int64_t[]){U, n_tokens}, ids);
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *at = engine_cols(g, &x, 0, b.k);
    struct engine_tensor *out = engine_glu(g, engine_mul_mat_id(g, &gate, at, &which),
                                           engine_mul_mat_id(g, &up, at, &which), ENGINE_SILU);
    product_run(g, out);
    assert_int_equal(engine_graph_nodes(g), 1);
    for (int64_t t = 0; t < n_tokens; t++) {
        for (int64_t u = 0; u < U; u++) {
            const float *got = product_row(out, u, t, 0);
            const int32_t id = ids[t][u];
            float want[N];
            if (id >= 0 && id < X)
                scalar.glu[ENGINE_SILU](N, b.want[t] + id * N, b.want[t] + UP + id * N, want);
            for (int r = 0; r < N; r++)
                assert_true(id >= 0 && id < X ? product_same(got[r], want[r]) : isnan(got[r]));
        }
    }
    engine_graph_free(g);
}

/* glu(gate x, up x), of which up skips rows where the gate is zero: one node, or three if few
 * columns are multiplied. With ids, of experts. */
static struct engine_tensor *gated_by_zeros(struct engine_graph *g, struct engine_tensor *gate,
                                            struct engine_tensor *up, struct engine_tensor *x,
                                            struct engine_tensor *ids, enum engine_unary f)
{
    gate = ids ? engine_mul_mat_id(g, gate, x, ids) : engine_mul_mat(g, gate, x);
    struct engine_tensor *on = engine_unary(g, gate, f);
    up = ids ? engine_mul_mat_id_active(g, up, x, ids, on) : engine_mul_mat_active(g, up, x, on);
    return engine_glu(g, gate, up, f);
}

/* Gates are the first half of the rows, up projections the other. Every third gate has weights of
 * zero bytes, which are zeros in most types, and up then has bytes of NaN. */
static const struct product_bench *zero_gates(const struct quant_type *type, int round)
{
    enum { UP = PRODUCT_MAX_ROWS / 2 };
    static struct product_bench b;
    static int made = -1;
    if (b.type == type && made == round) return &b;
    made = round;
    product_fill(&b, type, product_short_k(type, round), round % 2, (uint64_t)round);
    for (int r = 1; r < UP; r += 3) {
        memset(b.w + (size_t)r * b.row_bytes, 0, b.row_bytes);
        memset(b.w + (size_t)(UP + r) * b.row_bytes, 0xff, b.row_bytes);
        for (int c = 0; c < PRODUCT_MAX_COLS; c++) {
            const struct quant_act a = product_act(type->act, b.k, b.x[c]);
            for (int i = r; i < PRODUCT_MAX_ROWS; i += UP)
                b.want[c][i] = type->dot(b.k, b.w + (size_t)i * b.row_bytes, &a);
        }
    }
    return &b;
}

static void check_zero_gates(const struct quant_type *type, struct engine *e, int round)
{
    enum { N = PRODUCT_MAX_ROWS / 2, COLS = 33 };
    static const int64_t cols[] = {1, 2, 3, COLS};
    const enum engine_unary f = round % 2 ? ENGINE_RELU_SQR : ENGINE_RELU;
    const struct product_bench *b = zero_gates(type, round);
    int32_t zero[COLS] = {0};
    for (int i = 0; i < 8; i++) {
        const bool by_id = i >= 4;
        const int64_t n = cols[i % 4], ne[] = {PRODUCT_MAX_K, by_id ? 1 : n, by_id ? n : 1};
        struct engine_tensor w[2], x = product_leaf(QUANT_F32, 3, ne, (void *)b->x);
        struct engine_tensor ids = product_leaf(QUANT_I32, 2, (int64_t[]){1, n}, zero);
        for (int side = 0; side < 2; side++)
            w[side] = product_leaf(type->id, 3, (int64_t[]){b->k, N, 1},
                                   (void *)(b->w + (size_t)(side * N) * b->row_bytes));
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *out =
            gated_by_zeros(g, &w[0], &w[1], engine_cols(g, &x, 0, b->k), by_id ? &ids : NULL, f);
        product_run(g, out);
        assert_int_equal(engine_graph_nodes(g), n > 2 ? 1 : 4);
        for (int64_t c = 0; c < n; c++)
            for (int r = 0; r < N; r++) {
                const float got = product_row(out, by_id ? 0 : c, by_id ? c : 0, 0)[r];
                const float y = b->want[c][r], up = b->want[c][N + r];
                const float on = f == ENGINE_RELU ? y : y * y; /* where y is not below zero */
                const bool zero_gate = y <= 0.0f || on == 0.0f;
                /* The activation of -0 may be -0. */
                if (zero_gate ? got != 0.0f || (y != 0.0f && signbit(got))
                              : !product_same(got, on * up))
                    fail_msg("%s level %s columns %d%s: column %d row %d: %a, gate %a, up %a",
                             type->name, cpu_level_name(e->cpu->quant.level), (int)n,
                             by_id ? " by id" : "", (int)c, r, (double)got, (double)y, (double)up);
            }
        engine_graph_free(g);
    }
}

static void rows_of_zero_gates_do_not_matter_in_fused_products(void **state)
{
    (void)state;
    static const int threads[] = {3};
    product_for_all(check_zero_gates, threads, 1);
}

static void fused_gate_and_up_of_experts_equal_scalar(void **state)
{
    (void)state;
    static const int threads[] = {1, 3};
    product_for_all(check_experts, threads, 2);
}

/* M-blocks of many tiles, N-blocks, K-blocks, batches: one node has the same bits as two. */
static void check_long_gate(const struct quant_type *type, struct engine *e, int round)
{
    enum { ROWS = 1111, COLS = 300, BATCHES = 2 };
    const int64_t k = type->block_len == 256 ? 1280 : 96, cols = round % 2 ? COLS : 20;
    uint64_t row_bytes, seed = (uint64_t)round;
    assert_true(quant_row_bytes(type, (uint64_t)k, &row_bytes));
    const size_t w_bytes = 2 * BATCHES * ROWS * row_bytes;
    char *w = calloc(1, w_bytes);
    float *x = calloc((size_t)(BATCHES * COLS * k), sizeof *x);
    assert_true(w && x);
    for (int64_t i = 0; i < BATCHES * COLS * k; i++) x[i] = product_random(&seed);
    for (int64_t r = 0; r < 2 * BATCHES * ROWS; r++) { /* 8 rows, repeated */
        if (r < 8)
            support_row_fill(type, k, x + (4 * r + 1) * k, w + (size_t)r * row_bytes);
        else
            memcpy(w + (size_t)r * row_bytes, w + (size_t)(r * 5 % 8) * row_bytes, row_bytes);
    }
    const int64_t shape[] = {k, ROWS, BATCHES};
    struct engine_tensor gate = product_leaf(type->id, 3, shape, w);
    struct engine_tensor up = product_leaf(type->id, 3, shape, w + w_bytes / 2);
    struct engine_tensor xs = product_leaf(QUANT_F32, 3, (int64_t[]){k, cols, BATCHES}, x);
    struct engine_graph *one = product_graph(e), *two = product_graph(e);
    struct engine_tensor *a = gated(one, &gate, &up, &xs), *b = gated(two, &gate, &up, &xs);
    product_plan_and_run(one, a, true);
    product_plan_and_run(two, b, false);
    assert_int_equal(engine_graph_nodes(one), 1);
    assert_int_equal(engine_graph_nodes(two), 2);
    for (int64_t c = 0; c < cols * BATCHES; c++)
        assert_memory_equal(product_row(a, c % cols, c / cols, 0),
                            product_row(b, c % cols, c / cols, 0), ROWS * sizeof(float));
    engine_graph_free(one);
    engine_graph_free(two);
    free(w);
    free(x);
}

static void a_fused_node_gives_the_bits_of_two_nodes(void **state)
{
    (void)state;
    for (int level = CPU_AVX2; support_level_next(&level); level++) {
        static const enum quant_id ids[] = {QUANT_F32,  QUANT_F16,  QUANT_BF16, QUANT_Q4_1,
                                            QUANT_Q8_0, QUANT_Q2_K, QUANT_Q6_K};
        struct engine *e = product_engine(level, 2);
        const int part = support_families() == 1 ? 1 : support_quick() ? 6 : 2;
        /* Each type has every second family at each level, in short runs every sixth, in turn. */
        for (int f = 0; f < support_families(); f++) {
            product_adapt(e, f);
            for (int i = 0; i < 7; i++)
                if (support_family_takes((size_t)i) && (i + level + f) % part == 0)
                    check_long_gate(quant_type_by_id(ids[i]), e, f / 2 + i + 1);
        }
        engine_free(e);
    }
}

/* These are not fused: sides of different types, columns of only one side, a product that is an
 * output, a side with more users. */
static void nodes_that_cannot_be_fused_stay_two(void **state)
{
    (void)state;
    static float data[64 * 8];
    struct engine *e = product_engine(cpu_level_best(), 1);
    struct engine_tensor w = product_leaf(QUANT_F32, 2, (int64_t[]){32, 6}, data);
    struct engine_tensor half = product_leaf(QUANT_F16, 2, (int64_t[]){32, 6}, data);
    struct engine_tensor x = product_leaf(QUANT_F32, 2, (int64_t[]){32, 5}, data);
    for (int what = 0; what < 5; what++) {
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *const both[] = {&w, what == 1 ? &half : &w};
        struct engine_tensor *all = engine_mul_mat_cat(g, both, 2, &x);
        struct engine_tensor *gate = engine_cols(g, all, what == 2 ? 6 : 0, 6);
        struct engine_tensor *up = engine_cols(g, all, 6, 6);
        if (what == 3) engine_output(g, all);
        struct engine_tensor *out = engine_glu(g, gate, up, ENGINE_SILU);
        if (what == 4) out = engine_add(g, out, up);
        product_run(g, out);
        assert_int_equal(engine_graph_nodes(g), what == 0 ? 1 : what == 4 ? 3 : 2);
        engine_graph_free(g);
    }
    engine_free(e);
}

/* With SILU `active` decides which results of up are zero, and a product with RELU(x) has the sign
 * and NaN of the other factor, so neither is glu. Nodes of gate and up by zeros: 4 if not fused. */
static void only_activations_that_give_zeros_replace_active_rows(void **state)
{
    (void)state;
    static float data[64 * 8];
    struct engine *e = product_engine(cpu_level_best(), 1);
    struct engine_tensor w = product_leaf(QUANT_F32, 2, (int64_t[]){32, 6}, data);
    struct engine_tensor other = product_leaf(QUANT_F32, 2, (int64_t[]){32, 5}, data + 32);
    struct engine_tensor x = product_leaf(QUANT_F32, 2, (int64_t[]){32, 5}, data);
    for (int what = 0; what < 5; what++) {
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *gate = engine_mul_mat(g, &w, &x);
        struct engine_tensor *on = engine_unary(g, gate, what == 2 ? ENGINE_STEP : ENGINE_RELU);
        struct engine_tensor *up = engine_mul_mat_active(g, &w, what == 3 ? &other : &x, on);
        struct engine_tensor *out = engine_glu(g, gate, up, ENGINE_RELU);
        if (what == 1) out = gated_by_zeros(g, &w, &w, &x, NULL, ENGINE_SILU);
        if (what == 4) out = engine_mul(g, engine_unary(g, &x, ENGINE_RELU), &other);
        product_run(g, out);
        assert_int_equal(engine_graph_nodes(g), what == 0 ? 1 : what == 4 ? 2 : 4);
        engine_graph_free(g);
    }
    engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_gate_and_up_equal_scalar),
        cmocka_unit_test(rows_of_zero_gates_are_zero_and_others_equal_scalar),
        cmocka_unit_test(rows_of_zero_gates_do_not_matter_in_fused_products),
        cmocka_unit_test(fused_gate_and_up_of_experts_equal_scalar),
        cmocka_unit_test(a_fused_node_gives_the_bits_of_two_nodes),
        cmocka_unit_test(nodes_that_cannot_be_fused_stay_two),
        cmocka_unit_test(only_activations_that_give_zeros_replace_active_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
