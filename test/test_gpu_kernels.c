/* test/test_gpu_kernels.c: the kernels for GPUs, in the emulator (test/emulator.h), against the
 * scalar specification, bit for bit: every type and activation form with the cases of
 * test_checkkern.c, in several orders of lanes and warps; and that the emulator detects kernels
 * that synchronize wrongly. */
#include "test/support.h"

#include "engine/gpu/device/gpu_ops.h"
#include "quant/gpu/dialect.h"
#include "quant/gpu/gpu_quant.h"
#include "test/emulator.h"
#include "test/support_bed.h"
#include "test/support_guard.h"
#include "test/support_random.h"
#include "test/support_row.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run(const char *name, const void *arguments, const struct emulator_grid *grid,
                uint64_t seed)
{
    void (*kernel)(const void *) = emulator_kernel(name);
    if (!kernel) fail_msg("there is no kernel %s", name);
    if (!emulator_run(kernel, arguments, grid, seed)) fail_msg("%s: threads diverge", name);
}

static void launch(const char *what, const char *of, const void *arguments,
                   const struct emulator_grid *grid, uint64_t seed)
{
    char name[QUANT_GPU_NAME_SIZE];
    quant_gpu_name(what, of, name);
    run(name, arguments, grid, seed);
}

static void run_float_tile(const struct quant_gpu_gemv *gemv, int64_t n_columns, uint64_t seed)
{
    const struct quant_gpu_tile tile = {*gemv, n_columns, NULL, NULL};
    run("quant_gpu_float_tile", &tile,
        &(struct emulator_grid){quant_gpu_float_tiles(gemv->n_rows, n_columns), 1,
                                QUANT_GPU_FLOAT_THREADS, sizeof(struct quant_gpu_float_memory)},
        seed);
}

/* The shape for n_rows rows, or one as for more of them, with one stage or two. */
static struct quant_gpu_gemv_shape any_shape(struct bed *bed, const struct quant_type *type,
                                             int64_t k, int n_rows)
{
    struct quant_gpu_gemv_shape shape = quant_gpu_gemv_shape(type, k, n_rows);
    if (!quant_gpu_lanes(type->id) || support_random_below(&bed->rng, 2)) return shape;
    shape.rows = QUANT_GPU_STAGED_ROWS * (1 + (int)support_random_below(&bed->rng, 8));
    shape.stages = 1 + (int)support_random_below(&bed->rng, 2);
    shape.shared = quant_gpu_staged_bytes(type, &shape);
    return shape;
}

/* Compares rows of a type with two columns. */
static void check_gemv(struct bed *bed, const struct quant_type *type, int64_t k, int n_rows)
{
    const size_t row_bytes = bed_row_bytes(bed, type, k);
    const uint8_t *w = bed_rows(bed, type, k, n_rows, row_bytes);
    float expected[BED_MAX_ROWS];
    bed_column_fill(&bed->column, &bed->rng, &bed->scalar, type->act, k);
    for (int r = 0; r < n_rows; r++)
        expected[r] = type->dot(k, w + row_bytes * (size_t)r, &bed->column.act);
    float *out = bed_canary_place(&bed->out, (size_t)n_rows * 4);
    const struct quant_gpu_gemv_shape shape = any_shape(bed, type, k, n_rows);
    const struct quant_gpu_gemv gemv = {.shape = shape,
                                        .id = type->id,
                                        .block_bytes = (int)type->block_bytes,
                                        .k = k,
                                        .n_rows = n_rows,
                                        .row_bytes = (int64_t)row_bytes,
                                        .w = w,
                                        .a.first = bed->column.act,
                                        .out = out};
    launch("gemv", quant_gpu_type_name(type), &gemv,
           &(struct emulator_grid){quant_gpu_gemv_blocks(&shape, n_rows), 1,
                                   32 * (uint32_t)shape.warps, shape.shared},
           support_random(&bed->rng));
    const int wrong = bed_float_mismatches(n_rows, out, expected) +
                      bed_canary_mismatches(&bed->out, (size_t)n_rows * 4);
    if (wrong)
        fail_msg("%s: k %lld, %d rows: %d mismatches", type->name, (long long)k, n_rows, wrong);
}

static void every_product_equals_scalar(void **state)
{
    struct bed bed = bed_new(1);
    (void)state;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act) continue;
        const int64_t last = type->block_len == 1 ? 70 : 5, block = type->block_len;
        for (int64_t n = 1; n <= last; n++)
            check_gemv(&bed, type, n * block, 1 + (int)support_random_below(&bed.rng, 35));
        for (int n_rows = 1; n_rows <= BED_MAX_ROWS; n_rows += 2)
            check_gemv(&bed, type, block == 1 ? 37 : 35 * 256, n_rows);
        check_gemv(&bed, type, BED_MAX_K / block * block, 9);
    }
    bed_free(&bed);
}

enum { MAX_COLUMNS = 133, X_BYTES = 8 << 10, MOST_LISTED = 700, MOST_MATRICES = 9 };

/* How columns of a tile's test have matrices; n 0: one matrix. */
struct matrices {
    int n, per, repeat;
    const int32_t *ids; /* of all columns, per of them stride apart; or NULL */
    int stride;
};

/* The groups of columns, by the kernel that sorts them. */
static void group_columns(struct bed *bed, const struct quant_gpu_matrices *by, int n_columns,
                          int32_t *columns, struct quant_gpu_group *groups)
{
    const struct engine_gpu_group_columns arguments = {*by, n_columns, columns, groups};
    void (*kernel)(const void *) = emulator_kernel("engine_gpu_group_columns");
    assert_true(emulator_run(kernel, &arguments,
                             &(struct emulator_grid){(uint32_t)by->n + 1, 1, ENGINE_GPU_THREADS,
                                                     ENGINE_GPU_WARPS * sizeof(int32_t)},
                             support_random(&bed->rng)));
}

static int matrix_of(const struct matrices *m, int c)
{
    const int of = !m->n ? 0 : m->ids ? m->ids[c / m->per * m->stride + c % m->per] : c / m->per;
    return of >= 0 && of < (m->n ? m->n : 1) ? of : -1;
}

/* Compares rows of a type, or of matrices of n_rows each, with n_columns columns, in tiles. */
static void check_tile(struct bed *bed, const struct quant_type *type, int64_t k, int n_rows,
                       int n_columns, const struct matrices *m)
{
    struct guard list = guard_new((size_t)n_columns * sizeof(int32_t)),
                 x_memory = guard_new(MAX_COLUMNS * X_BYTES);
    int32_t *columns = guard_at_end(&list, (size_t)n_columns * sizeof *columns, 1);
    static struct quant_gpu_group groups[MOST_LISTED / QUANT_GPU_TILE_COLUMNS + MOST_MATRICES + 1];
    const struct quant_act_parts parts = quant_act_parts(type->act, k);
    const int repeat = m->n ? m->repeat : 1, n_x = (n_columns + repeat - 1) / repeat;
    char(*memory)[X_BYTES] = guard_at_end(&x_memory, (size_t)n_x * X_BYTES, 1);
    const size_t unit = type->block_len == 1 ? type->block_bytes : 1,
                 row_bytes = bed_row_bytes(bed, type, k) / unit * unit,
                 bytes = (size_t)(n_rows * n_columns) * sizeof(float);
    const uint8_t *w = bed_rows(bed, type, k, n_rows * (m->n ? m->n : 1), row_bytes);
    w -= (uintptr_t)w % unit;
    float *expected = malloc(bytes), *out = malloc(bytes + 1);
    assert_true(parts.bytes <= (int64_t)sizeof memory[0] && n_x <= MAX_COLUMNS &&
                m->n <= MOST_MATRICES && n_columns <= MOST_LISTED);
    for (int x = 0; x < n_x; x++) {
        const struct quant_act to = quant_act_at(&parts, memory[x]);
        if (quant_gpu_is_float(type)) {
            bed_column_fill(&bed->column, &bed->rng, &bed->scalar, type->act, k);
            memcpy(to.q, bed->column.act.q, (size_t)(k * type->act->element_bytes));
        } else {
            bed_column_fill(&bed->column, &bed->rng, &bed->scalar, &quant_act_f32, k);
            bed->scalar.quantize[type->act->index](k, bed->column.act.f32, &to);
        }
    }
    for (int i = 0; i < n_rows * n_columns; i++) {
        const int c = i / n_rows, of = matrix_of(m, c), row = of * n_rows + i % n_rows;
        const struct quant_act x = quant_act_at(&parts, memory[c / repeat]);
        expected[i] = of < 0 ? NAN : type->dot(k, w + row_bytes * (size_t)row, &x);
    }
    memset(out, 0xa5, bytes + 1);
    const struct quant_gpu_tile tile = {
        .gemv = {.id = type->id,
                 .block_bytes = (int)type->block_bytes,
                 .k = k,
                 .n_rows = n_rows,
                 .row_bytes = (int64_t)row_bytes,
                 .out_stride = n_rows,
                 .w = w,
                 .a = {quant_act_at(&parts, memory[0]), sizeof memory[0]},
                 .out = out,
                 .by = {.ids = m->ids,
                        .per = m->per,
                        .stride = m->stride,
                        .n = m->n,
                        .bytes = n_rows * (int64_t)row_bytes,
                        .repeat = repeat}},
        .n_columns = n_columns,
        .groups = groups,
        .columns = columns};
    memset(list.base, 0x7f, list.size); /* numbers before the list are of no column */
    if (m->ids) group_columns(bed, &tile.gemv.by, n_columns, columns, groups);
    if (quant_gpu_is_float(type))
        run_float_tile(&tile.gemv, n_columns, support_random(&bed->rng));
    else
        launch("tile", quant_gpu_type_name(type), &tile,
               &(struct emulator_grid){quant_gpu_tiles(&tile.gemv.by, n_rows, n_columns), 1,
                                       QUANT_GPU_TILE_THREADS, quant_gpu_tile_bytes(type)},
               support_random(&bed->rng));
    const int wrong =
        bed_float_mismatches(n_rows * n_columns, out, expected) + (((uint8_t *)out)[bytes] != 0xa5);
    free(expected);
    free(out);
    guard_free(&list);
    guard_free(&x_memory);
    if (wrong)
        fail_msg("%s: k %lld, %d rows, %d columns, %d matrices: %d mismatches", type->name,
                 (long long)k, n_rows, n_columns, m->n, wrong);
}

static void tiles_of_many_columns_equal_scalar(void **state)
{
    static const struct matrices one = {0};
    struct bed bed = bed_new(4);
    (void)state;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !quant_gpu_lanes(type->id)) continue;
        assert_true(quant_gpu_tile_bytes(type) <= QUANT_GPU_TILE_MOST);
        for (int64_t n = 1; n <= 17; n += type->block_len == 32 ? 3 : 8)
            check_tile(&bed, type, n * type->block_len, 1 + (int)support_random_below(&bed.rng, 35),
                       1 + (int)support_random_below(&bed.rng, 40), &one);
        check_tile(&bed, type, 512, 35, MAX_COLUMNS, &one);
    }
    bed_free(&bed);
}

/* Fills ids with n[m] times m, in some order; m from -1 on; returns how many. */
static int make_ids(struct bed *bed, const int *n, int n_matrices, int32_t *ids)
{
    int all = 0;
    for (int m = -1; m < n_matrices; m++)
        for (int i = 0; i < n[m + 1]; i++) {
            const int j = (int)support_random_below(&bed->rng, (uint32_t)++all);
            ids[all - 1] = ids[j];
            ids[j] = m;
        }
    return all;
}

static void tiles_of_several_matrices_equal_scalar(void **state)
{
    /* Of no matrix, of matrix 0, 1 .. */
    static const int counts[][1 + MOST_MATRICES] = {
        {0, 0, 1, 127, 128, 129},       /* as many as a tile, fewer, more */
        {3, 130},                       /* all of one */
        {0, 0, 1, 0, 2, 0, 0, 0, 1, 0}, /* more matrices than columns */
        {2, 0, 0, 5, 0, 1, 0, 0, 0, 0},
    };
    static const int n_matrices[] = {5, 1, 9, 9};
    static const uint32_t types[] = {QUANT_Q4_K, QUANT_Q8_0, QUANT_Q6_K, QUANT_Q4_1, QUANT_IQ2_S};
    struct bed bed = bed_new(5);
    int32_t ids[MOST_LISTED] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct quant_type *type = quant_type_by_id(types[i]);
        for (size_t j = i == 0 ? 0 : 1; j < sizeof n_matrices / sizeof *n_matrices; j++) {
            const int n = make_ids(&bed, counts[j], n_matrices[j], ids);
            for (int c = 0; c < n && j == 3; c++) ids[c] = ids[c] < 0 ? INT32_MAX : ids[c];
            struct matrices m = {n_matrices[j], 7, n > MAX_COLUMNS ? 7 : 1, ids, 7};
            check_tile(&bed, type, 256, j == 0 ? 3 : 66, n, &m);
        }
        check_tile(&bed, type, 256, 3, 3 * 35, &(struct matrices){3, 35, 1, NULL, 0});
        check_tile(&bed, type, 256, 3, 2 * 133, &(struct matrices){2, 133, 2, NULL, 0});
        /* Two of three ids of a token, whose columns are one of x. */
        (void)make_ids(&bed, counts[0], 5, ids);
        check_tile(&bed, type, 512, 9, 2 * 60, &(struct matrices){5, 2, 2, ids, 3});
    }
    bed_free(&bed);
}

static void tiles_of_float_types_equal_scalar(void **state)
{
    static const struct matrices one = {0};
    struct bed bed = bed_new(5);
    (void)state;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act || !quant_gpu_is_float(type)) continue;
        for (int64_t n = 1; n <= 70 && n * type->block_len <= 1024;
             n += 1 + support_random_below(&bed.rng, 3)) {
            /* BF16 has another way for columns that are hostile. */
            bed.plain = bed.column.plain = support_random_below(&bed.rng, 2);
            check_tile(&bed, type, n * type->block_len,
                       1 + (int)support_random_below(&bed.rng, BED_MAX_ROWS),
                       1 + (int)support_random_below(&bed.rng, 40), &one);
        }
        check_tile(&bed, type, 7 * 64, 70, 33, &one);
    }
    bed_free(&bed);
}

static void tiles_of_floats_need_aligned_elements(void **state)
{
    static const struct {
        enum quant_id id;
        uintptr_t at;
        int64_t row_bytes;
        bool has_tile;
    } cases[] = {
        {QUANT_F32, 8, 12, true},   {QUANT_F32, 8, 10, false},  {QUANT_F32, 6, 12, false},
        {QUANT_F16, 6, 10, true},   {QUANT_F16, 6, 11, false},  {QUANT_BF16, 7, 10, false},
        {QUANT_NVFP4, 7, 37, true}, {QUANT_Q8_0, 8, 34, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct quant_gpu_gemv gemv = {.w = (const uint8_t *)cases[i].at,
                                            .row_bytes = cases[i].row_bytes};
        assert_int_equal(quant_gpu_has_float_tile(quant_type_by_id(cases[i].id), &gemv),
                         cases[i].has_tile);
    }
}

/* Multiplies rows of k numbers, of which only the last differs, with a column; returns the last
 * result. */
static float last_of_tile(enum quant_id id, int64_t k, const float *other, const float *last,
                          const float *x, uint64_t seed)
{
    enum { N_ROWS = 61, MAX_K = 32 }; /* warps of the last row: 7 reads, 4 adds, 6 adds by lanes */
    const struct quant_type *type = quant_type_by_id(id);
    uint8_t rows[N_ROWS][MAX_K * sizeof(float)];
    _Alignas(64) char column[MAX_K * sizeof(float)] = {0};
    float out[N_ROWS];
    for (int r = 0; r < N_ROWS; r++)
        support_row_make(type, k, r + 1 < N_ROWS ? other : last, rows[r]);
    for (int64_t i = 0; i < k; i++) {
        const uint16_t half = quant_f32_to_bf16(x[i]);
        if (id == QUANT_BF16)
            memcpy(column + 2 * i, &half, sizeof half);
        else
            memcpy(column + 4 * i, &x[i], sizeof x[i]);
    }
    const struct quant_gpu_gemv gemv = {.id = type->id,
                                        .block_bytes = (int)type->block_bytes,
                                        .k = k,
                                        .n_rows = N_ROWS,
                                        .row_bytes = sizeof rows[0],
                                        .w = rows[0],
                                        .a.first.q = (int8_t *)column,
                                        .out = out};
    run_float_tile(&gemv, 1, seed);
    const float expected = type->dot(k, rows[N_ROWS - 1], &gemv.a.first);
    assert_int_equal(bed_float_mismatches(1, &out[N_ROWS - 1], &expected), 0);
    return expected;
}

/* In BF16, sums of two products that are 2^exponent, which is flushed if it is subnormal. */
static void tiny_sums_of_tiles_are_flushed(void **state)
{
    static const float ones[] = {1.0f, 1.0f}, x[] = {0x1p-60f, 0x1p-60f + 0x1p-67f};
    (void)state;
    for (int exponent = -130; exponent < -120; exponent++) {
        const float last[] = {ldexpf(-1.0f - 0x1p-6f, exponent + 74),
                              ldexpf(1.0f + 0x1p-7f, exponent + 74)};
        for (uint64_t seed = 0; seed < 5; seed++)
            assert_true(last_of_tile(QUANT_BF16, 2, ones, last, x, seed) ==
                        (exponent < -126 ? 0.0f : ldexpf(1.0f, exponent)));
    }
}

static void tiny_elements_of_tiles_are_flushed(void **state)
{
    static const float tiny[] = {0x1p-130f}, large[] = {0x1p100f};
    (void)state;
    assert_true(last_of_tile(QUANT_BF16, 1, large, tiny, large, 1) == 0.0f);
    assert_true(last_of_tile(QUANT_BF16, 1, large, large, tiny, 1) == 0.0f);
    assert_true(last_of_tile(QUANT_F32, 1, large, large, tiny, 1) == 0x1p-30f);
}

static void sums_of_tiles_are_minus_0(void **state)
{
    float w[16], x[16];
    (void)state;
    for (int i = 0; i < 16; i++) {
        w[i] = -0x1p-80f;
        x[i] = 0x1p-80f;
    }
    assert_true(signbit(last_of_tile(QUANT_F32, 16, x, w, x, 1)));
}

/* Four columns, which are two of x, and the matrices that the ids name; without ids two matrices.
 */
static void check_matrices(struct bed *bed, const struct quant_type *type, bool by_id)
{
    enum { N_ROWS = 9, MATRICES = 3, PER = 2, RESULTS = 4 };
    static const int32_t ids[] = {2, 0, 77, -1, MATRICES, 77}; /* two a token, three apart */
    static const int number[2][RESULTS] = {{0, 0, 1, 1}, {2, 0, -1, -1}};
    const int64_t k = type->block_len == 1 ? 37 : 512;
    const size_t row_bytes = bed_row_bytes(bed, type, k);
    const uint8_t *w = bed_rows(bed, type, k, N_ROWS * MATRICES, row_bytes);
    float expected[RESULTS][N_ROWS], *out = bed_canary_place(&bed->out, sizeof expected);
    bed_column_fill(&bed->column, &bed->rng, &bed->scalar, type->act, k);
    for (int i = 0; i < RESULTS * N_ROWS; i++) {
        const int m = number[by_id][i / N_ROWS], row = m * N_ROWS + i % N_ROWS;
        expected[i / N_ROWS][i % N_ROWS] =
            m < 0 ? NAN : type->dot(k, w + row_bytes * (size_t)row, &bed->column.act);
    }
    const struct quant_gpu_gemv_shape shape = quant_gpu_gemv_shape(type, k, N_ROWS);
    const struct quant_gpu_gemv gemv = {.shape = shape,
                                        .id = type->id,
                                        .block_bytes = (int)type->block_bytes,
                                        .k = k,
                                        .n_rows = N_ROWS,
                                        .row_bytes = (int64_t)row_bytes,
                                        .out_stride = N_ROWS,
                                        .w = w,
                                        .a.first = bed->column.act,
                                        .out = out,
                                        .by = {.ids = by_id ? ids : NULL,
                                               .per = PER,
                                               .stride = 3,
                                               .n = MATRICES,
                                               .bytes = N_ROWS * (int64_t)row_bytes,
                                               .repeat = PER}};
    launch("gemv", quant_gpu_type_name(type), &gemv,
           &(struct emulator_grid){quant_gpu_gemv_blocks(&shape, N_ROWS), RESULTS,
                                   32 * (uint32_t)shape.warps, shape.shared},
           support_random(&bed->rng));
    const int wrong = bed_float_mismatches(RESULTS * N_ROWS, out, expected[0]) +
                      bed_canary_mismatches(&bed->out, sizeof expected);
    if (wrong) fail_msg("%s, by id: %d: %d mismatches", type->name, by_id, wrong);
}

static void columns_have_matrices_of_their_own(void **state)
{
    struct bed bed = bed_new(3);
    (void)state;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act) continue;
        check_matrices(&bed, type, false);
        check_matrices(&bed, type, true);
    }
    bed_free(&bed);
}

enum { COLUMNS = 3 };

/* Compares all memory of some columns. */
static void check_form(struct bed *bed, const struct quant_act_form *form, int64_t k)
{
    static _Alignas(64) char memory[2][COLUMNS][4 * BED_MAX_K];
    static float x[COLUMNS][BED_MAX_K];
    const struct quant_act_parts parts = quant_act_parts(form, k);
    memset(memory, 1, sizeof memory);
    for (int c = 0; c < COLUMNS; c++) {
        const struct quant_act to = quant_act_at(&parts, memory[0][c]);
        bed_column_fill(&bed->column, &bed->rng, &bed->scalar, &quant_act_f32, k);
        memcpy(x[c], bed->column.act.f32, (size_t)k * sizeof *x[c]);
        bed->scalar.quantize[form->index](k, x[c], &to);
    }
    const struct quant_gpu_quantize quantize = {
        .k = k,
        .x_stride = BED_MAX_K,
        .x = x[0],
        .to = {quant_act_at(&parts, memory[1][0]), sizeof memory[1][0]}};
    launch(
        "quantize", form->name, &quantize,
        &(struct emulator_grid){quant_gpu_quantize_blocks(form, k), COLUMNS, QUANT_GPU_THREADS, 0},
        support_random(&bed->rng));
    for (int c = 0; form->scaled_sums && c < COLUMNS; c++) { /* may be any NaN */
        const int64_t n = k / form->block_len;
        float *s[2] = {quant_act_at(&parts, memory[0][c]).s, quant_act_at(&parts, memory[1][c]).s};
        assert_int_equal(bed_float_mismatches(n, s[0], s[1]), 0);
        memcpy(s[1], s[0], (size_t)n * sizeof(float));
    }
    assert_memory_equal(memory[0], memory[1], sizeof memory[0]);
}

static void every_activation_form_equals_scalar(void **state)
{
    struct bed bed = bed_new(2);
    (void)state;
    for (int i = 0; i < QUANT_ACT_FORMS; i++) {
        const struct quant_act_form *form = quant_act_forms[i];
        if (!quant_gpu_converts(form)) continue;
        for (int64_t n = 1; n <= 40; n++) check_form(&bed, form, n * form->block_len);
    }
    bed_free(&bed);
}

/* ---- The emulator ---- */

static void pairs_without_a_barrier(const void *out)
{
    uint32_t *shared = gpu_shared();
    shared[gpu_thread()] = (uint32_t)gpu_thread();
    (*(uint32_t *const *)out)[gpu_thread()] = shared[gpu_thread() ^ 1];
}

static void pairs_of_warps_without_a_barrier(const void *out)
{
    uint32_t *shared = gpu_shared();
    shared[gpu_thread()] = (uint32_t)gpu_thread();
    gpu_sync_warp();
    (*(uint32_t *const *)out)[gpu_thread()] = shared[gpu_thread() ^ 32];
}

static void pairs(const void *out)
{
    uint32_t *shared = gpu_shared();
    shared[gpu_thread()] = (uint32_t)gpu_thread();
    gpu_sync();
    (*(uint32_t *const *)out)[gpu_thread()] = shared[gpu_thread() ^ 33];
}

static void one_lane_ends(const void *out)
{
    (void)out;
    if (gpu_lane() != 3) gpu_sync_warp();
}

static void one_warp_ends(const void *out)
{
    (void)out;
    if (gpu_warp() != 1) gpu_sync();
}

static void a_kernel_that_lacks_a_barrier_gives_other_values(void **state)
{
    uint32_t out[64], *to = out;
    const struct emulator_grid grid = {1, 1, 64, sizeof out};
    int right[3] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        void (*const kernels[3])(const void *) = {pairs, pairs_without_a_barrier,
                                                  pairs_of_warps_without_a_barrier};
        static const uint32_t mask[3] = {33, 1, 32};
        for (int i = 0; i < 3; i++) {
            bool ok = true;
            assert_true(emulator_run(kernels[i], &to, &grid, seed));
            for (uint32_t t = 0; t < 64; t++) ok = ok && out[t] == (t ^ mask[i]);
            right[i] += ok;
        }
    }
    assert_int_equal(right[0], 20);
    assert_int_equal(right[1], 0);
    assert_int_equal(right[2], 0);
}

static void threads_that_wait_for_different_things_are_an_error(void **state)
{
    const struct emulator_grid grid = {1, 1, 64, 0};
    (void)state;
    assert_false(emulator_run(one_lane_ends, NULL, &grid, 1));
    assert_false(emulator_run(one_warp_ends, NULL, &grid, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_product_equals_scalar),
        cmocka_unit_test(tiles_of_many_columns_equal_scalar),
        cmocka_unit_test(tiles_of_several_matrices_equal_scalar),
        cmocka_unit_test(tiles_of_float_types_equal_scalar),
        cmocka_unit_test(tiles_of_floats_need_aligned_elements),
        cmocka_unit_test(tiny_sums_of_tiles_are_flushed),
        cmocka_unit_test(tiny_elements_of_tiles_are_flushed),
        cmocka_unit_test(sums_of_tiles_are_minus_0),
        cmocka_unit_test(columns_have_matrices_of_their_own),
        cmocka_unit_test(every_activation_form_equals_scalar),
        cmocka_unit_test(a_kernel_that_lacks_a_barrier_gives_other_values),
        cmocka_unit_test(threads_that_wait_for_different_things_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
