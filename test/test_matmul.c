/* test/test_matmul.c: every output of products has the bits of the scalar specification
 * (quant_type.dot on scalar activations), at any level, threads, rows, columns and route; and
 * scalar is within its error bound of a double-precision reference. */
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/matmul/route.h"
#include "test/support_files.h"
#include "test/support_graph.h"
#include "test/support_level.h"
#include "test/support_product.h"
#include "test/support_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Edges of tiles and blocks ---- */

static void check_product(struct product_bench *b, struct engine *e, int64_t rows, int64_t cols)
{
    struct engine_tensor w = product_leaf(b->type->id, 2, (int64_t[]){b->k, rows}, b->w);
    struct engine_tensor x = product_leaf(QUANT_F32, 2, (int64_t[]){PRODUCT_MAX_K, cols}, b->x);
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *out = engine_mul_mat(g, &w, engine_cols(g, &x, 0, b->k));
    product_run(g, out);
    for (int64_t c = 0; c < cols; c++) product_check(b, e, product_row(out, c, 0, 0), c, rows);
    engine_graph_free(g);
}

static void check_edges(const struct quant_type *type, struct engine *e, int round)
{
    static struct product_bench b;
    static const int64_t rows[] = {1, 16, 40, 2, 15, 17, 33, 3};
    product_fill(&b, type, product_short_k(type, round), round % 2, (uint64_t)round);
    for (int64_t cols = 1; cols <= 18; cols++)
        check_product(&b, e, rows[(round + cols) % 8], cols == 18 ? PRODUCT_MAX_COLS : cols);
}

static void edges_of_tiles_and_blocks_equal_scalar(void **state)
{
    (void)state;
    static const int threads[] = {1, 3, 7, 2};
    product_for_all(check_edges, threads, support_quick() ? 3 : 4);
}

/* ---- Largest possible sums ---- */

/* Rows have equal weights, whose codes are the largest or the smallest. Columns have equal q and
 * one 127; their sums over a sub-block range from within to beyond 16 bits. Columns that are
 * multiplied together have the same q, because the largest q determines the path of all. */
enum {
    EXTREME_ROWS = 17,
    EXTREME_STEP = 3,
    EXTREME_FILLS = 128 / EXTREME_STEP / (PRODUCT_MAX_COLS / 8)
};

static void fill_extremes(struct product_bench *b, const struct quant_type *type, int fill)
{
    if (b->type == type) return;
    b->type = type;
    b->k = 2 * type->block_len;
    assert_true(quant_row_bytes(type, (uint64_t)b->k, &b->row_bytes));
    for (int64_t r = 0; r < EXTREME_ROWS; r++) {
        float row[PRODUCT_MAX_K];
        for (int64_t i = 0; i < b->k; i++) row[i] = (r % 2 ? -1.0f : 1.0f) * (float)(r + 1);
        support_row_make(type, b->k, row, b->w + (size_t)r * b->row_bytes);
    }
    for (int64_t c = 0; c < PRODUCT_MAX_COLS; c++) {
        for (int64_t i = 0; i < b->k; i++) {
            const int64_t most = EXTREME_STEP * (fill * (PRODUCT_MAX_COLS / 8) + c / 8) + 1;
            const float q = i % type->block_len == 0 ? 127.0f : (float)most;
            b->x[c][i] = c % 3 == 0 || (c % 3 == 1 && i / 16 % 2) ? q : -q;
        }
        struct quant_act a = product_act(type->act, b->k, b->x[c]);
        for (int64_t r = 0; r < EXTREME_ROWS; r++)
            b->want[c][r] = type->dot(b->k, b->w + (size_t)r * b->row_bytes, &a);
    }
}

static void check_extremes(const struct quant_type *type, struct engine *e, int round)
{
    static struct product_bench b[EXTREME_FILLS];
    (void)round;
    if (type->act->element) return;
    for (int fill = 0; fill < EXTREME_FILLS; fill++) {
        fill_extremes(&b[fill], type, fill);
        check_product(&b[fill], e, EXTREME_ROWS, PRODUCT_MAX_COLS);
        check_product(&b[fill], e, EXTREME_ROWS, 3);
    }
}

static void the_largest_sums_equal_scalar(void **state)
{
    (void)state;
    static const int threads[] = {1};
    product_for_all(check_extremes, threads, 1);
}

/* ---- Batches, strides ---- */

/* w [2][rows][k] are the halves of a matrix; x [2][2 * 2][T][k] is permuted: two consecutive
 * matrices of x share one of w. */
static void check_batches(const struct quant_type *type, struct engine *e, int round)
{
    static struct product_bench b;
    enum { T = 5, N = 20 };
    product_fill(&b, type, product_short_k(type, round), false, (uint64_t)round);
    struct engine_tensor w = product_leaf(type->id, 3, (int64_t[]){b.k, N, 2}, b.w);
    /* Column (t, h, s) of x is row (s * T + t) * 4 + h of b.x: heads within tokens. */
    struct engine_tensor x = product_leaf(QUANT_F32, 4, (int64_t[]){PRODUCT_MAX_K, 4, T, 2}, b.x);
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *cut = engine_view(
        g, &x, 4, (int64_t[]){b.k, 4, T, 2},
        (int64_t[]){4, PRODUCT_MAX_K * 4, 4 * PRODUCT_MAX_K * 4, T * 4 * PRODUCT_MAX_K * 4}, 0);
    struct engine_tensor *out = engine_mul_mat(g, &w, engine_permute(g, cut, 0, 2, 1, 3));
    product_run(g, out);
    for (int s = 0; s < 2; s++)
        for (int h = 0; h < 4; h++)
            for (int t = 0; t < T; t++) {
                const float *got = product_row(out, t, h, s);
                const float *want = b.want[(s * T + t) * 4 + h] + h / 2 * N;
                for (int r = 0; r < N; r++)
                    if (!product_same(got[r], want[r]))
                        fail_msg("%s %s batch %d head %d token %d row %d: %.9g, not %.9g",
                                 type->name, cpu_level_name(e->cpu->quant.level), s, h, t, r,
                                 got[r], want[r]);
            }
    engine_graph_free(g);
}

static void products_of_batches_equal_scalar(void **state)
{
    (void)state;
    static const int threads[] = {1, 3};
    product_for_all(check_batches, threads, 2);
}

/* x is transposed, so its elements are strided. w: every second row of a matrix. */
static void strided_operands_equal_scalar(void **state)
{
    (void)state;
    static struct product_bench b;
    static float transposed[PRODUCT_MAX_K][7];
    struct engine *e = product_engine(cpu_level_best(), 2);
    product_fill(&b, quant_type_by_id(QUANT_F16), 100, false, 5);
    for (int c = 0; c < 7; c++)
        for (int i = 0; i < 100; i++) transposed[i][c] = b.x[c][i];
    struct engine_tensor x = product_leaf(QUANT_F32, 2, (int64_t[]){7, 100}, transposed);
    struct engine_tensor w = product_leaf(QUANT_F16, 2, (int64_t[]){100, PRODUCT_MAX_ROWS}, b.w);
    for (int f = 0; f < support_families(); f++) {
        product_adapt(e, f);
        struct engine_graph *g = product_graph(e);
        struct engine_tensor *half =
            engine_view(g, &w, 2, (int64_t[]){100, PRODUCT_MAX_ROWS / 2}, (int64_t[]){2, 400}, 0);
        struct engine_tensor *out = engine_mul_mat(g, half, engine_permute(g, &x, 1, 0, 2, 3));
        product_run(g, out);
        for (int c = 0; c < 7; c++)
            for (int r = 0; r < PRODUCT_MAX_ROWS / 2; r++)
                assert_true(product_same(product_row(out, c, 0, 0)[r], b.want[c][2 * r]));
        engine_graph_free(g);
    }
    engine_free(e);
}

/* ---- Long rows of floats: sums kept between K-blocks; sums of -0.0 at the end ---- */

enum { LONG_K = 2081, LONG_ROWS = 29, LONG_COLS = 13 };

static void check_long(const struct quant_type *type, struct engine *e, int64_t k)
{
    static char w[LONG_ROWS * LONG_K * sizeof(float)];
    static float x[LONG_COLS][LONG_K], row[LONG_K];
    static _Alignas(64) char column[4 * LONG_K + 64];
    uint64_t seed = (uint64_t)k, row_bytes;
    assert_true(quant_row_bytes(type, (uint64_t)k, &row_bytes));
    for (int r = 0; r < LONG_ROWS; r++) {
        for (int i = 0; i < k; i++) row[i] = r == 4 ? -6e-8f : product_random(&seed);
        support_row_fill(type, k, row, w + (size_t)r * row_bytes);
    }
    for (int c = 0; c < LONG_COLS; c++)
        for (int i = 0; i < k; i++) x[c][i] = c == 10 ? 1e-44f : product_random(&seed);
    struct engine_tensor weights = product_leaf(type->id, 2, (int64_t[]){k, LONG_ROWS}, w);
    struct engine_tensor columns = product_leaf(QUANT_F32, 2, (int64_t[]){LONG_K, LONG_COLS}, x);
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *out = engine_mul_mat(g, &weights, engine_cols(g, &columns, 0, k));
    product_run(g, out);
    for (int c = 0; c < LONG_COLS; c++) {
        const struct quant_act_parts parts = quant_act_parts(type->act, k);
        const struct quant_act a = quant_act_at(&parts, column);
        e->cpu->quant.quantize[type->act->index](k, x[c], &a);
        for (int r = 0; r < LONG_ROWS; r++)
            assert_true(product_same(product_row(out, c, 0, 0)[r],
                                     type->dot(k, w + (size_t)r * row_bytes, &a)));
    }
    if (type->act == &quant_act_f32 && k >= 16) assert_true(signbit(product_row(out, 10, 0, 0)[4]));
    engine_graph_free(g);
}

static void long_rows_of_floats_equal_scalar(void **state)
{
    (void)state;
    static const int64_t k[] = {5, 40, 1024, 1059, LONG_K};
    static const enum quant_id types[] = {QUANT_F32, QUANT_F16, QUANT_BF16};
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        struct engine *e = product_engine(level, 2);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 5; j++) {
                product_adapt(e, level + i + j);
                check_long(quant_type_by_id(types[i]), e, k[j]);
            }
        engine_free(e);
    }
}

/* ---- N-blocks: enough columns for one block per worker ---- */

enum { STRIPED_COLS = 523 };

static void check_stripes(enum quant_id id, int n_threads, const float *x, float *out)
{
    static struct product_bench b;
    struct engine *e = product_engine(cpu_level_best(), n_threads);
    product_adapt(e, n_threads);
    product_fill(&b, quant_type_by_id(id), 256, false, 5);
    struct engine_tensor w = product_leaf(id, 2, (int64_t[]){256, PRODUCT_MAX_ROWS}, b.w);
    struct engine_tensor columns =
        product_leaf(QUANT_F32, 2, (int64_t[]){256, STRIPED_COLS}, (void *)(uintptr_t)x);
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *product = engine_mul_mat(g, &w, &columns);
    product_run(g, product);
    for (int64_t c = 0; c < STRIPED_COLS; c++)
        memcpy(out + c * PRODUCT_MAX_ROWS, product_row(product, c, 0, 0),
               PRODUCT_MAX_ROWS * sizeof *out);
    engine_graph_free(g);
    engine_free(e);
}

static void ranges_of_columns_per_worker_give_the_same_bits(void **state)
{
    (void)state;
    static const enum quant_id types[] = {QUANT_Q4_1, QUANT_Q4_K, QUANT_F16, QUANT_BF16};
    static float x[STRIPED_COLS * 256], want[STRIPED_COLS * PRODUCT_MAX_ROWS],
        got[STRIPED_COLS * PRODUCT_MAX_ROWS];
    for (int i = 0; i < STRIPED_COLS * 256; i++) x[i] = sinf((float)(i * 37 % 1001));
    for (int t = 0; t < 4; t++) {
        check_stripes(types[t], 1, x, want);
        for (int threads = 2; threads <= 7; threads++) {
            check_stripes(types[t], threads, x, got);
            if (memcmp(got, want, sizeof got) != 0)
                fail_msg("%s: %d threads, other bits", quant_type_by_id(types[t])->name, threads);
        }
    }
}

/* ---- Adjacent results, experts ---- */

static const enum quant_id cat_types[4] = {QUANT_F32, QUANT_Q4_1, QUANT_Q8_0, QUANT_BF16};

static void check_cat(struct engine *e, int64_t cols)
{
    static struct product_bench b[4];
    static const int64_t rows[4] = {17, 40, 1, 16};
    struct engine_tensor w[4], *at[4];
    int n = 0;
    for (int i = 0; i < 4; i++) {
        const struct quant_type *type = quant_type_by_id(cat_types[i]);
        if (!type || !type->act) continue;
        product_fill(&b[n], type, 96, false, 77);
        memcpy(b[n].x, b[0].x, sizeof(b[n].x));
        w[n] = product_leaf(type->id, 2, (int64_t[]){96, rows[n]}, b[n].w);
        at[n] = &w[n];
        for (int64_t c = 0; c < PRODUCT_MAX_COLS; c++) {
            struct quant_act a = product_act(type->act, 96, b[n].x[c]);
            for (int64_t r = 0; r < PRODUCT_MAX_ROWS; r++)
                b[n].want[c][r] = type->dot(96, b[n].w + (size_t)r * b[n].row_bytes, &a);
        }
        n++;
    }
    struct engine_tensor x = product_leaf(QUANT_F32, 2, (int64_t[]){PRODUCT_MAX_K, cols}, b[0].x);
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *out = engine_mul_mat_cat(g, at, n, engine_cols(g, &x, 0, 96));
    product_run(g, out);
    for (int64_t c = 0; c < cols; c++)
        for (int64_t i = 0, column = 0; i < n; column += rows[i++])
            product_check(&b[i], e, product_row(out, c, 0, 0) + column, c, rows[i]);
    engine_graph_free(g);
}

static void products_of_one_input_equal_scalar(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct engine *e = product_engine(cpu_level_best(), threads);
        for (int f = 0; f < support_families(); f++) {
            product_adapt(e, f);
            check_cat(e, 1);
            check_cat(e, 3);
            check_cat(e, 64);
        }
        engine_free(e);
    }
}

/* Experts are the rows of one matrix, N each; some ids do not exist. */
static void check_experts(const struct quant_type *type, struct engine *e, int round)
{
    static struct product_bench b;
    enum { N = 10, X = PRODUCT_MAX_ROWS / N, U = 3 };
    const int64_t n_tokens = round < 2 ? 1 : 21;
    bool one = round % 2;
    int32_t ids[21][U];
    uint64_t seed = 99;
    product_fill(&b, type, product_short_k(type, round), false, (uint64_t)round);
    for (int t = 0; t < 21; t++)
        for (int u = 0; u < U; u++) ids[t][u] = (int32_t)(support_random(&seed) % (X + 1)) - t % 2;
    struct engine_tensor w = product_leaf(type->id, 3, (int64_t[]){b.k, N, X}, b.w);
    struct engine_tensor x =
        product_leaf(QUANT_F32, 3, (int64_t[]){PRODUCT_MAX_K, one ? 1 : U, n_tokens}, b.x);
    struct engine_tensor which = product_leaf(QUANT_I32, 2, (int64_t[]){U, n_tokens}, ids);
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *out = engine_mul_mat_id(g, &w, engine_cols(g, &x, 0, b.k), &which);
    product_run(g, out);
    for (int t = 0; t < n_tokens; t++)
        for (int u = 0; u < U; u++)
            for (int r = 0; r < N; r++) {
                int id = ids[t][u];
                float want = id >= 0 && id < X ? b.want[one ? t : t * U + u][id * N + r] : NAN;
                if (!product_same(product_row(out, u, t, 0)[r], want))
                    fail_msg("%s %s token %d use %d expert %d row %d: %.9g, not %.9g", type->name,
                             cpu_level_name(e->cpu->quant.level), t, u, id, r,
                             product_row(out, u, t, 0)[r], want);
            }
    engine_graph_free(g);
}

static void products_of_experts_equal_scalar(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 5};
    product_for_all(check_experts, threads, 3);
}

/* ---- Long rows, many rows: several M-blocks and panels per worker ---- */

static void large_products_equal_scalar(void **state)
{
    (void)state;
    enum { K = 33024, N = 200, T = 12 };
    static const enum quant_id types[] = {QUANT_Q4_K, QUANT_Q8_0, QUANT_F16, QUANT_BF16};
    for (int i = 0; i < 4; i++) {
        const struct quant_type *type = quant_type_by_id(types[i]);
        uint64_t row_bytes, seed = 3;
        if (!type || !type->act || !support_family_takes((size_t)i)) continue;
        assert_true(quant_row_bytes(type, K, &row_bytes));
        char *w = malloc(N * row_bytes);
        float *x = malloc(sizeof(float) * K * T), *row = malloc(sizeof(float) * K);
        for (int64_t r = 0; r < N; r++) {
            for (int64_t j = 0; j < K; j++) row[j] = product_random(&seed);
            support_row_fill(type, K, row, w + (uint64_t)r * row_bytes);
        }
        for (int64_t j = 0; j < K * T; j++) x[j] = product_random(&seed);
        struct engine_tensor wt = product_leaf(type->id, 2, (int64_t[]){K, N}, w);
        struct engine_tensor xt = product_leaf(QUANT_F32, 2, (int64_t[]){K, T}, x);
        struct engine_tensor one = product_leaf(QUANT_F32, 2, (int64_t[]){K, 1}, x + K * (T - 1));
        struct engine *many = product_engine(cpu_level_best(), 2),
                      *few = product_engine(CPU_AVX2, 1);
        for (int f = 0; f < support_families(); f++) {
            product_adapt(many, f);
            product_adapt(few, f);
            struct engine_graph *a = product_graph(many), *b = product_graph(few);
            struct engine_tensor *all = engine_mul_mat(a, &wt, &xt),
                                 *last = engine_mul_mat(b, &wt, &one);
            product_run(a, all);
            product_run(b, last);
            assert_memory_equal(product_row(all, T - 1, 0, 0), product_row(last, 0, 0, 0),
                                N * sizeof(float));
            engine_graph_free(a);
            engine_graph_free(b);
        }
        engine_free(many);
        engine_free(few);
        free(w);
        free(x);
        free(row);
    }
}

/* ---- The specification against a double-precision reference ---- */

static void scalar_is_near_the_reference(void **state)
{
    (void)state;
    static struct product_bench b;
    static struct quant_kernels kernels;
    quant_kernels_init(&kernels, CPU_SCALAR);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act || !support_family_takes(id)) continue;
        const int64_t block = type->act->element ? 32 : type->act->block_len;
        product_fill(&b, type, 512, false, id);
        for (int c = 0; c < PRODUCT_MAX_COLS; c++) {
            if (c % 29 == 9) continue; /* a NaN */
            for (int r = 0; r < PRODUCT_MAX_ROWS; r++) {
                float row[512];
                double want = 0, bound = 0, absolute = 0;
                kernels.type[id].decode(0, 512, b.w + (size_t)r * b.row_bytes, row);
                for (int64_t i = 0; i < 512; i += block) {
                    double amax = 0, weights = 0;
                    for (int64_t j = i; j < i + block; j++) {
                        amax = fmax(amax, fabs((double)b.x[c][j]));
                        weights += fabs((double)row[j]);
                        want += (double)row[j] * b.x[c][j];
                        absolute += fabs((double)row[j] * b.x[c][j]);
                    }
                    bound += weights * amax / 127 * 0.5001;
                }
                if (type->act == &quant_act_f32) bound = 0;
                if (type->act == &quant_act_bf16) bound = absolute * 0x1p-8;
                bound += absolute * 1e-5 + 1e-30;
                /* minima cancel codes: the rounding error is relative to both */
                if (type->scalar.panel && type->scalar.panel->has_min)
                    bound += bound * 0.01 + absolute * 1e-4;
                if (!(fabs(b.want[c][r] - want) <= bound))
                    fail_msg("%s column %d row %d: %.9g, not %.9g +- %g", type->name, c, r,
                             b.want[c][r], want, bound);
            }
        }
    }
}

/* ---- OpenBLAS: close, not equal ---- */

static void blas_is_near_the_reference(void **state)
{
    (void)state;
    enum { K = 2048, N = 9, T = 2051 };
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    options.use_blas = true;
    options.n_threads = 2;
    struct engine *e = engine_new(&options, &err);
    if (!e) {
        assert_int_equal(err.code, BASE_USAGE);
        print_message("skipped: OpenBLAS is not installed\n");
        return;
    }
    static float weights[N * K], columns[T * K];
    for (int i = 0; i < N * K; i++) weights[i] = (float)(i * 29 % 103) - 51.0f;
    for (int i = 0; i < T * K; i++) columns[i] = (float)(i * 17 % 101) - 50.0f;
    /* Two weights at once, so that rows of results are not adjacent. */
    struct engine_tensor w = product_leaf(QUANT_F32, 2, (int64_t[]){K, N}, weights);
    struct engine_tensor one = product_leaf(QUANT_F32, 2, (int64_t[]){K, 1}, weights + K);
    struct engine_tensor x = product_leaf(QUANT_F32, 2, (int64_t[]){K, T}, columns);
    struct engine_tensor *both[] = {&w, &one};
    struct engine_graph *g = product_graph(e);
    struct engine_tensor *out = engine_mul_mat_cat(g, both, 2, &x);
    product_run(g, out);
    for (int c = 0; c < T; c += 7)
        for (int r = 0; r < N + 1; r++) {
            const float *row = r < N ? weights + r * K : weights + K;
            double want = 0, absolute = 0;
            for (int i = 0; i < K; i++) {
                want += (double)row[i] * columns[c * K + i];
                absolute += fabs((double)row[i] * columns[c * K + i]);
            }
            assert_true(fabs(product_row(out, c, 0, 0)[r] - want) <= 1e-5 * absolute);
        }
    engine_graph_free(g);
    engine_free(e);
}

/* ---- Refusals ---- */

static void shapes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static float data[64];
    struct engine *e = product_engine(cpu_level_best(), 1);
    struct engine_tensor w = product_leaf(QUANT_F32, 2, (int64_t[]){8, 4}, data);
    struct engine_tensor long_x = product_leaf(QUANT_F32, 2, (int64_t[]){16, 2}, data);
    struct engine_tensor ids = product_leaf(QUANT_I32, 1, (int64_t[]){8}, data);
    struct engine_tensor batches = product_leaf(QUANT_F32, 3, (int64_t[]){8, 1, 3}, data);
    struct engine_tensor two = product_leaf(QUANT_F32, 3, (int64_t[]){8, 1, 2}, data);
    struct engine_tensor *bad[][2] = {{&w, &long_x}, {&w, NULL}, {NULL, &w},
                                      {&w, &ids},    {&ids, &w}, {&two, &batches}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct engine_graph *g = product_graph(e);
        assert_null(engine_mul_mat(g, bad[i][0], bad[i][1]));
        assert_false(engine_graph_plan(g, true, &err));
        assert_int_equal(err.code, BASE_MODEL);
        engine_graph_free(g);
    }
    engine_free(e);
}

/* ---- Routes ---- */

/* The route of each type, number of columns and level, by the table of engine/cpu/matmul/route.c.
 */
static const struct {
    enum quant_id type;
    int64_t columns, max_columns;
    enum cpu_level level;
    bool gated, active, blas, adjacent_rows, dual_512;
    int few;
    const char *route;
} routes[] = {
    {QUANT_Q4_K, 1, 1, CPU_SCALAR, .route = "gemv-strided"},
    {QUANT_F32, 2, 2, CPU_SCALAR, .route = "gemv-strided"},
    {QUANT_Q4_0, 1, 1, CPU_SCALAR, .gated = true, .route = "gemv"},
    {QUANT_Q4_0, 2, 2, CPU_SCALAR, .adjacent_rows = true, .route = "gemv"},
    {QUANT_Q4_0, 1, 1, CPU_SCALAR, .active = true, .route = "active"},
    {QUANT_Q4_0, 2, 9, CPU_SCALAR, .active = true, .route = "active"},
    {QUANT_Q4_0, 3, 3, CPU_SCALAR, .active = true, .route = "panels-k"},
    {QUANT_Q4_0, 2, 3, CPU_SCALAR, .route = "gemv"},
    {QUANT_Q4_0, 3, 3, CPU_SCALAR, .route = "panels-k"},
    {QUANT_Q4_0, 4, 16, CPU_SCALAR, .few = 4, .route = "gemv"},
    {QUANT_Q4_0, 17, 17, CPU_SCALAR, .route = "panels"},
    {QUANT_Q4_K, 3, 16, CPU_SCALAR, .route = "panels-k"},
    {QUANT_Q4_K, 3, 17, CPU_SCALAR, .route = "panels"},
    {QUANT_Q4_K, 512, 512, CPU_SCALAR, .dual_512 = true, .route = "panels-k"},
    {QUANT_Q8_0, 512, 512, CPU_SCALAR, .dual_512 = true, .route = "panels"},
    {QUANT_F32, 512, 512, CPU_SCALAR, .route = "rows"},
    {QUANT_BF16, 3, 3, CPU_SCALAR, .route = "gemv"},
    {QUANT_F32, 512, 512, CPU_SCALAR, .blas = true, .route = "blas"},
    {QUANT_F32, 16, 16, CPU_AVX2, .route = "rows"},
    {QUANT_F16, 17, 17, CPU_AVX2, .route = "packed"},
    {QUANT_BF16, 3, 3, CPU_AVX2, .route = "packed"},
    {QUANT_F16, 17, 17, CPU_AVX512, .route = "packed"},
    {QUANT_BF16, 3, 3, CPU_AVX512BF16, .route = "rows"},
    {QUANT_Q4_K, 512, 512, CPU_AMX, .dual_512 = true, .route = "panels-k"},
    {QUANT_BF16, 16, 16, CPU_AMX, .route = "rows"},
    {QUANT_BF16, 17, 17, CPU_AMX, .route = "packed"},
};

static void each_product_has_its_route(void **state)
{
    bool reached[ENGINE_ROUTE_COUNT] = {false};
    (void)state;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (cpu_level_cap(routes[i].level) != routes[i].level) {
            print_message("skipped: routes of %s\n", cpu_level_name(routes[i].level));
            continue;
        }
        const struct engine_route_facts facts = {
            .max_columns = routes[i].max_columns,
            .gated = routes[i].gated,
            .active = routes[i].active,
            .blas = routes[i].blas,
            .adjacent_rows = routes[i].adjacent_rows,
            .dual_512 = routes[i].dual_512,
            .tile = engine_tile_product_table(routes[i].level, routes[i].max_columns)};
        const struct quant_act_form *act = quant_type_by_id(routes[i].type)->act;
        const enum engine_route route =
            engine_route_of(&facts, act, routes[i].few, routes[i].columns);
        assert_string_equal(engine_route_name(route), routes[i].route);
        reached[route] = true;
    }
    for (int i = 0; i < ENGINE_ROUTE_COUNT; i++)
        if (!reached[i] && cpu_level_cap(CPU_AVX2) == CPU_AVX2)
            fail_msg("no row has the route %s", engine_route_name((enum engine_route)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_tiles_and_blocks_equal_scalar),
        cmocka_unit_test(the_largest_sums_equal_scalar),
        cmocka_unit_test(products_of_batches_equal_scalar),
        cmocka_unit_test(strided_operands_equal_scalar),
        cmocka_unit_test(ranges_of_columns_per_worker_give_the_same_bits),
        cmocka_unit_test(products_of_one_input_equal_scalar),
        cmocka_unit_test(products_of_experts_equal_scalar),
        cmocka_unit_test(large_products_equal_scalar),
        cmocka_unit_test(scalar_is_near_the_reference),
        cmocka_unit_test(blas_is_near_the_reference),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(each_product_has_its_route),
        cmocka_unit_test(long_rows_of_floats_equal_scalar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
