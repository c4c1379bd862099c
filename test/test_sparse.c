/* test/test_sparse.c: products of matrices by columns with activations most of which are zero have
 * the bits of the products by rows, at every level: random zeros, special values, underflow;
 * products of transposed matrices those of their definition. */
#include "engine/cpu/cpu_device.h"
#include "quant/columns.h"
#include "test/support_level.h"
#include "test/support_product.h"
#include "test/support_random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { K = 320, N = 192 };
static const enum quant_id types[] = {QUANT_Q4_0, QUANT_Q8_0, QUANT_F16};

struct sparse {
    const struct quant_type *type;
    int64_t row_bytes;
    char w[N * K * 2];
    char columns[N * K * 2 + 4096];
    uint64_t bytes; /* of columns */
};

static void make(struct sparse *s, enum quant_id id, float size)
{
    static float row[K];
    uint64_t seed = id + 1;
    struct quant_kernels kernels;
    quant_kernels_fill(&kernels, CPU_SCALAR);
    s->type = quant_type_by_id(id);
    s->row_bytes = quant_row_size(s->type, K);
    for (int r = 0; r < N; r++) {
        for (int i = 0; i < K; i++) row[i] = size * product_random(&seed);
        quant_encode(&kernels, id, K, row, NULL, s->w + r * s->row_bytes);
    }
    assert_true(quant_columns_size(s->type, K, N, &s->bytes));
    assert_true(s->bytes == (uint64_t)(N * s->row_bytes));
    assert_true(quant_columns_make(s->type, K, N, s->w, s->row_bytes, 0, N, s->columns));
}

/* x with about `percent` of numbers; the rest is zero of either sign. */
static void fill(float *x, int percent, float size, uint64_t *seed)
{
    for (int i = 0; i < K; i++) {
        const bool on = (int)(support_random(seed) % 100) < percent;
        x[i] = on ? size * product_random(seed) : support_random(seed) % 2 ? -0.0f : 0.0f;
    }
}

/* Compares engine_mul_mat_columns with the specification for n_columns columns. */
static void check(const struct sparse *s, struct engine *e, float *x, int n_columns)
{
    struct engine_tensor w = product_leaf(s->type->id, 2, (int64_t[]){K, N}, (void *)s->w);
    struct engine_tensor columns =
        product_leaf(QUANT_I8, 1, (int64_t[]){(int64_t)s->bytes}, (void *)s->columns);
    struct engine_tensor in = product_leaf(QUANT_F32, 2, (int64_t[]){K, n_columns}, x);
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *out = engine_mul_mat_columns(g, &w, &columns, &in);
    product_run(g, out);
    for (int c = 0; c < n_columns; c++) {
        const struct quant_act a = product_act(s->type->act, K, x + c * K);
        for (int r = 0; r < N; r++) {
            const float want = s->type->dot(K, s->w + r * s->row_bytes, &a);
            const float got = product_row(out, c, 0, 0)[r];
            if (!product_same(got, want))
                fail_msg("%s level %s, column %d row %d: %a, not %a", s->type->name,
                         cpu_level_name(e->cpu->quant.level), c, r, (double)got, (double)want);
        }
    }
    engine_graph_free(g);
}

static void for_types(const enum quant_id *type, size_t n_types,
                      void (*f)(enum quant_id id, struct engine *e))
{
    for (int level = 0; level < CPU_LEVEL_COUNT; level++) {
        if (cpu_level_cap((enum cpu_level)level) != (enum cpu_level)level) continue;
        for (int threads = 1; threads <= 3; threads += 2) {
            struct engine *e = product_engine((enum cpu_level)level, threads);
            for (size_t t = 0; t < n_types; t++) f(type[t], e);
            engine_free(e);
        }
    }
}

static void for_all(void (*f)(enum quant_id id, struct engine *e))
{
    for_types(types, sizeof types / sizeof *types, f);
}

static void check_shares(enum quant_id id, struct engine *e)
{
    static const int percent[] = {0, 1, 5, 10, 20, 28, 60, 100};
    static struct sparse s;
    static float x[3 * K];
    uint64_t seed = 5;
    make(&s, id, 1.0f);
    for (size_t p = 0; p < sizeof percent / sizeof *percent; p++)
        for (int n = 1; n <= 3; n++) {
            for (int c = 0; c < n; c++) fill(x + c * K, percent[p], 1.0f, &seed);
            check(&s, e, x, n);
        }
}

static void columns_have_the_bits_of_rows_at_any_share_of_zeros(void **state)
{
    (void)state;
    for_all(check_shares);
}

/* One negative number for each of the 16 lanes, so small that its products with positive weights
 * are -0, then zeros: a lane of -0 stays so only if the zeros are skipped. */
static void sums_of_underflows_have_the_sign_of_rows(void **state)
{
    (void)state;
    static struct sparse s;
    static float x[K];
    struct engine *e = product_engine(cpu_level_best(), 1);
    make(&s, QUANT_F16, 0.5f);
    for (int i = 0; i < N * K; i++) s.w[2 * i + 1] &= 0x7f;
    assert_true(quant_columns_make(s.type, K, N, s.w, s.row_bytes, 0, N, s.columns));
    for (int i = 0; i < 16; i++) x[i] = -1e-45f;
    check(&s, e, x, 1);
    engine_free(e);
}

/* A block with NaN or infinity, numbers of very different size, and underflows. */
static void check_extremes(enum quant_id id, struct engine *e)
{
    static struct sparse s;
    static float x[K];
    uint64_t seed = 9;
    make(&s, id, id == QUANT_F16 ? 1e-6f : 1.0f);
    for (int what = 0; what < 5; what++) {
        fill(x, 8, what == 1 ? 1e30f : 1.0f, &seed);
        if (what == 2) x[40] = NAN;
        if (what == 3) x[7] = INFINITY;
        for (int i = 0; i < K && what == 4; i++) x[i] *= 1e-44f;
        check(&s, e, x, 1);
    }
}

static void columns_have_the_bits_of_rows_with_extreme_numbers(void **state)
{
    (void)state;
    for_all(check_extremes);
}

static void weights_that_are_not_finite_have_no_columns(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        static struct sparse s;
        static const uint16_t infinite = 0x7c00, nan = 0x7e01;
        make(&s, types[t], 1.0f);
        for (int i = 0; i < 2; i++) {
            memcpy(s.w + 100 * s.row_bytes, i ? &nan : &infinite, 2);
            assert_false(quant_columns_make(s.type, K, N, s.w, s.row_bytes, 0, N, s.columns));
        }
    }
}

static void shapes_without_a_form_by_columns_are_refused(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_false(quant_columns_size(quant_type_by_id(QUANT_Q4_K), 256, 64, &bytes));
    assert_false(quant_columns_size(quant_type_by_id(QUANT_Q4_0), 256, 96, &bytes));
    assert_false(quant_columns_size(quant_type_by_id(QUANT_F16), 48, 64, &bytes));
    assert_false(quant_columns_size(quant_type_by_id(QUANT_F16), INT64_MAX / 64 * 32, 64, &bytes));
}

/* Experts by columns, at shares of zeros with which the copies are read and not read, when the rows
 * of quantized types are gone; two tokens have an expert in common. One id is out of range. */
static void check_experts(enum quant_id id, struct engine *e)
{
    enum { EXPERTS = 3, USED = 2, TOKENS = 2 };
    static const int percent[] = {0, 50, 8};
    static struct sparse s[EXPERTS];
    static char w[sizeof s->w * EXPERTS], copies[sizeof s->columns * EXPERTS];
    static float x[TOKENS * USED * K];
    int32_t ids[TOKENS * USED] = {2, 0, 2, EXPERTS};
    uint64_t seed = 11;
    for (int i = 0; i < EXPERTS; i++) {
        make(&s[i], id, (float)(i + 1));
        memcpy(w + i * N * s->row_bytes, s[i].w, (size_t)(N * s->row_bytes));
        memcpy(copies + (size_t)i * s->bytes, s[i].columns, s->bytes);
    }
    for (size_t p = 0; p < sizeof percent / sizeof *percent; p++) {
        for (int i = 0; i < TOKENS * USED; i++) fill(x + i * K, percent[p], 1.0f, &seed);
        if (percent[p] == 8 && id != QUANT_F16) memset(w, 0, sizeof w);
        struct engine_tensor weight = product_leaf(id, 3, (int64_t[]){K, N, EXPERTS}, w);
        struct engine_tensor columns =
            product_leaf(QUANT_I8, 2, (int64_t[]){(int64_t)s->bytes, EXPERTS}, copies);
        struct engine_tensor in = product_leaf(QUANT_F32, 3, (int64_t[]){K, USED, TOKENS}, x);
        struct engine_tensor which = product_leaf(QUANT_I32, 2, (int64_t[]){USED, TOKENS}, ids);
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *out = engine_mul_mat_id_columns(g, &weight, &columns, &in, &which);
        product_run(g, out);
        for (int i = 0; i < TOKENS * USED; i++) {
            const struct quant_act a = product_act(s->type->act, K, x + i * K);
            const float *got = product_row(out, i % USED, i / USED, 0);
            for (int r = 0; r < N; r++) {
                const float want =
                    ids[i] < EXPERTS ? s->type->dot(K, s[ids[i]].w + r * s->row_bytes, &a) : NAN;
                if (!product_same(got[r], want))
                    fail_msg("%s level %s, %d %% row %d of %d: %a, not %a", s->type->name,
                             cpu_level_name(e->cpu->quant.level), percent[p], r, i, (double)got[r],
                             (double)want);
            }
        }
        engine_graph_free(g);
    }
}

static void columns_of_experts_have_the_bits_of_rows(void **state)
{
    (void)state;
    for_all(check_experts);
}

/* A third of the rows or fewer is active in lists of several lengths, longer ones than route active
 * passes to a kernel at once; the weights of the other rows are NaN. */
static void check_active_rows(enum quant_id id, struct engine *e)
{
    enum { ROWS = 4800, MAX_LEN = 256 };
    static uint8_t w[ROWS * MAX_LEN * 2];
    static float x[2 * MAX_LEN], active[2 * ROWS];
    static const int every[] = {4, 10, 700};
    const struct quant_type *type = quant_type_by_id(id);
    const int len = type->block_len > 96 ? MAX_LEN : 96;
    const int64_t bytes = quant_row_size(type, len);
    uint64_t seed = 3;
    for (size_t t = 0; t < sizeof every / sizeof *every; t++) {
        memset(w, 0xff, sizeof w);
        for (int i = 0; i < 2 * len; i++) x[i] = product_random(&seed);
        for (int c = 0; c < 2; c++)
            for (int r = 0; r < ROWS; r++) {
                const bool on = support_random(&seed) % (uint64_t)(2 * every[t]) == 0;
                float row[MAX_LEN];
                active[c * ROWS + r] = on ? 1.0f : 0.0f;
                for (int i = 0; i < len; i++) row[i] = product_random(&seed);
                if (on) quant_encode(&e->cpu->quant, id, len, row, NULL, w + r * bytes);
            }
        struct engine_tensor weight = product_leaf(id, 2, (int64_t[]){len, ROWS}, w);
        struct engine_tensor in = product_leaf(QUANT_F32, 2, (int64_t[]){len, 2}, x);
        struct engine_tensor on = product_leaf(QUANT_F32, 2, (int64_t[]){ROWS, 2}, active);
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *out = engine_mul_mat_active(g, &weight, &in, &on);
        product_run(g, out);
        for (int c = 0; c < 2; c++) {
            const struct quant_act a = product_act(type->act, len, x + c * len);
            for (int r = 0; r < ROWS; r++) {
                const float want =
                    active[c * ROWS + r] == 0.0f ? 0.0f : type->dot(len, w + r * bytes, &a);
                if (!product_same(product_row(out, c, 0, 0)[r], want))
                    fail_msg("%s level %s, column %d row %d", type->name,
                             cpu_level_name(e->cpu->quant.level), c, r);
            }
        }
        engine_graph_free(g);
    }
}

static void listed_rows_have_the_bits_of_the_product_of_all_rows(void **state)
{
    static const enum quant_id all[] = {
        QUANT_F32,  QUANT_F16,  QUANT_BF16,   QUANT_Q4_0,  QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1,
        QUANT_Q8_0, QUANT_Q6_0, QUANT_IQ4_NL, QUANT_MXFP4, QUANT_Q4_K, QUANT_Q6_K};
    (void)state;
    for_types(all, sizeof all / sizeof *all, check_active_rows);
}

/* Sums of the rows of a matrix [K][WIDTH], in the order that engine/graph.h defines, for few and
 * many columns of x; rows whose x is zero may be NaN. */
static void check_transposed(enum quant_id id, struct engine *e)
{
    enum { COLUMNS = 35, WIDTH = 576 };
    static const int n_columns[] = {1, 2, COLUMNS};
    static char w[K * WIDTH * 4];
    static float x[COLUMNS * K], row[WIDTH], want[COLUMNS][WIDTH];
    const struct quant_type *type = quant_type_by_id(id);
    const int64_t row_bytes = quant_row_size(type, WIDTH);
    uint64_t seed = id;
    for (int c = 0; c < COLUMNS; c++) fill(x + c * K, c % 3 ? 10 : 70, 1.0f, &seed);
    memset(want, 0, sizeof want);
    for (int i = 0; i < K; i++) {
        const bool skipped = i % 7 == 3;
        for (int r = 0; r < WIDTH; r++) row[r] = product_random(&seed);
        if (skipped && id == QUANT_F16) row[i % WIDTH] = NAN;
        for (int c = 0; c < COLUMNS && skipped; c++) x[c * K + i] = c % 2 ? -0.0f : 0.0f;
        quant_encode(&e->cpu->quant, id, WIDTH, row, NULL, w + i * row_bytes);
        type->scalar.decode(0, WIDTH, w + i * row_bytes, row);
        for (int c = 0; c < COLUMNS; c++)
            for (int r = 0; r < WIDTH && x[c * K + i] != 0.0f; r++)
                want[c][r] = fmaf(row[r], x[c * K + i], want[c][r]);
    }
    for (int i = 0; i < 3; i++) {
        struct engine_tensor weight = product_leaf(id, 2, (int64_t[]){WIDTH, K}, w);
        struct engine_tensor in = product_leaf(QUANT_F32, 2, (int64_t[]){K, n_columns[i]}, x);
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *out = engine_mul_mat_transposed(g, &weight, &in);
        product_run(g, out);
        for (int c = 0; c < n_columns[i]; c++)
            assert_memory_equal(product_row(out, c, 0, 0), want[c], sizeof want[c]);
        engine_graph_free(g);
    }
}

static void rows_are_added_in_order_and_those_of_zeros_left_out(void **state)
{
    (void)state;
    for_all(check_transposed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_the_bits_of_rows_at_any_share_of_zeros),
        cmocka_unit_test(listed_rows_have_the_bits_of_the_product_of_all_rows),
        cmocka_unit_test(columns_of_experts_have_the_bits_of_rows),
        cmocka_unit_test(columns_have_the_bits_of_rows_with_extreme_numbers),
        cmocka_unit_test(sums_of_underflows_have_the_sign_of_rows),
        cmocka_unit_test(weights_that_are_not_finite_have_no_columns),
        cmocka_unit_test(rows_are_added_in_order_and_those_of_zeros_left_out),
        cmocka_unit_test(shapes_without_a_form_by_columns_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
