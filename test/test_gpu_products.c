/* test/test_gpu_products.c: products on a GPU of the fake driver give the bytes of the processor;
 * which of them are one start, and which columns the node before them converts. */
#include "engine/gpu/gpu_code.h"
#include "test/support_gpu.h"
#include <stdio.h>

enum {
    K = 512,
    ROWS = 21,
    MORE_ROWS = 32,
    COLUMNS = 9 /* of a tile */,
    LONG = 1024 /* a row that a norm converts */,
    LONGEST = 5376 /* a row whose product has more than 48 KiB of shared memory */,
    MAX_OUT = COLUMNS * (ROWS + MORE_ROWS)
};

static void products_on_a_gpu_give_the_bytes_of_the_processor(void **state)
{
    struct rig rig = rig_new();
    uint64_t rng = 3;
    (void)state;
    struct weights second = weights_new(&rig, quant_type_by_id(QUANT_Q8_0), K, MORE_ROWS, &rng);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act) continue;
        struct weights first = weights_new(&rig, type, K, ROWS, &rng);
        for (int64_t columns = 1; columns <= COLUMNS; columns += columns == 1 ? 2 : 6) {
            struct base_error err = BASE_ERROR_INIT;
            float here[MAX_OUT] = {0}, there[MAX_OUT] = {0};
            const int before = fake_cuda.launches;
            assert_true(multiply(&rig, &first, &second, false, columns, id, here, &err));
            assert_int_equal(fake_cuda.launches, before);
            if (!multiply(&rig, &first, &second, true, columns, id, there, &err))
                fail_msg("%s: %s", type->name, err.text);
            assert_true(fake_cuda.launches > before);
            if (memcmp(here, there, sizeof here) != 0)
                fail_msg("%s, %d columns: other bytes", type->name, (int)columns);
        }
        weights_free(&first);
    }
    weights_free(&second);
    rig_free(&rig);
}

/* The second run and later ones start all kernels as one graph. */
static void products_with_weights_of_one_type_are_one_start(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    float out[MAX_OUT];
    uint64_t rng = 4;
    (void)state;
    struct weights first = weights_new(&rig, quant_type_by_id(QUANT_Q4_K), K, ROWS, &rng),
                   second = weights_new(&rig, quant_type_by_id(QUANT_Q4_K), K, MORE_ROWS, &rng);
    for (int64_t columns = 1; columns <= COLUMNS; columns += COLUMNS - 1) {
        float here[MAX_OUT];
        const int before = fake_cuda.launches;
        assert_true(multiply(&rig, &first, &second, true, columns, 5, out, &err));
        assert_int_equal(fake_cuda.launches - before, 2); /* the columns' conversion, the product */
        assert_true(multiply(&rig, &first, &second, false, columns, 5, here, &err));
        assert_memory_equal(here, out, (size_t)columns * (ROWS + MORE_ROWS) * sizeof *out);
    }
    weights_free(&first);
    weights_free(&second);
    rig_free(&rig);
}

/* Two products of the norm of x, of which only the first follows the norm. */
static void multiply_norm(const struct rig *rig, struct weights *w, bool on_gpu, int64_t columns,
                          float *out)
{
    struct base_error err = BASE_ERROR_INIT;
    uint64_t seed = 8;
    struct engine_graph *g = engine_graph_new(rig->engine, 16, &err);
    struct engine_tensor *x = engine_input(g, QUANT_F32, 2, (int64_t[]){LONG, columns}, "x");
    engine_graph_set_place(g, &rig->engine->place[on_gpu]);
    struct engine_tensor *norm = engine_rms_norm(g, x, 1e-5f);
    struct engine_tensor *first = engine_mul_mat(g, on_gpu ? &w[0].there : &w[0].here, norm);
    first = engine_mul_mat(g, on_gpu ? &w[2].there : &w[2].here, first);
    struct engine_tensor *both =
        engine_add(g, first, engine_mul_mat(g, on_gpu ? &w[1].there : &w[1].here, norm));
    engine_graph_set_place(g, NULL);
    engine_output(g, both = engine_add(g, both, both));
    if (!engine_graph_plan(g, true, &err)) fail_msg("%s", err.text);
    for (int64_t i = 0; i < LONG * columns; i++)
        ((float *)engine_input_data(x))[i] = support_random_gauss(&seed);
    assert_true(engine_graph_run(g, &err));
    memcpy(out, engine_output_data(both), (size_t)engine_tensor_bytes(both));
    engine_graph_free(g);
}

static void a_norm_converts_the_columns_of_the_product_that_follows(void **state)
{
    static const uint32_t types[][2] = {{QUANT_Q4_K, 1}, {QUANT_Q8_0, 1}, {QUANT_F16, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int64_t columns = 1; columns <= COLUMNS; columns += COLUMNS - 1) {
            float here[MAX_OUT] = {0}, there[MAX_OUT] = {0};
            struct rig rig = rig_new();
            uint64_t rng = 3;
            const struct quant_type *type = quant_type_by_id(types[i][0]);
            struct weights w[3] = {weights_new(&rig, type, LONG, 32, &rng),
                                   weights_new(&rig, type, LONG, ROWS, &rng),
                                   weights_new(&rig, quant_type_by_id(QUANT_Q8_0), 32, ROWS, &rng)};
            multiply_norm(&rig, w, false, columns, here);
            const int before = fake_cuda.launches;
            multiply_norm(&rig, w, true, columns, there);
            assert_memory_equal(here, there, sizeof here);
            /* The norm, three products, two conversions unless columns are floats, the sum. */
            assert_int_equal(fake_cuda.launches - before, types[i][1] ? 7 : 6);
            for (int k = 0; k < 3; k++) weights_free(&w[k]);
            rig_free(&rig);
        }
}

enum { EXPERTS = 5, EACH = 2, TOKENS = 70 };

/* Divides the rows of w among n matrices. */
static void divide(struct weights *w, int64_t n)
{
    for (int i = 0; i < 2; i++) {
        struct engine_tensor *t = i ? &w->there : &w->here;
        t->ne[1] /= n;
        t->ne[2] = n;
        t->nb[2] = t->nb[1] * t->ne[1];
        t->nb[3] = t->nb[2] * n;
    }
}

enum unlike { ALIKE, OTHER_ROWS, OTHER_IDS, OTHER_TYPE };

/* Gate and up of a token's experts, which may have other rows or ids, and what is after them;
 * returns the kernels of a GPU. */
static int multiply_experts(const struct rig *rig, struct weights *w, bool on_gpu, int64_t tokens,
                            enum unlike unlike, float *out)
{
    struct base_error err = BASE_ERROR_INIT;
    uint64_t seed = 9;
    struct engine_graph *g = engine_graph_new(rig->engine, 16, &err);
    struct engine_tensor *x[2], *ids[2];
    for (int i = 0; i < 2; i++) {
        x[i] = engine_input(g, QUANT_F32, 3, (int64_t[]){K, 1, tokens}, "x");
        ids[i] = engine_input(g, QUANT_I32, 2, (int64_t[]){EACH, tokens}, "ids");
    }
    struct engine_tensor *w_of[3];
    for (int i = 0; i < 3; i++) w_of[i] = on_gpu ? &w[i].there : &w[i].here;
    engine_graph_set_place(g, &rig->engine->place[on_gpu]);
    struct engine_tensor *gate = engine_mul_mat_id(g, w_of[0], x[0], ids[0]),
                         *up = engine_mul_mat_id(g, w_of[1], x[unlike == OTHER_ROWS],
                                                 ids[unlike == OTHER_IDS]),
                         *down = engine_mul_mat_id(g, w_of[2], engine_mul(g, gate, up), ids[0]);
    engine_graph_set_place(g, NULL);
    engine_output(g, down = engine_add(g, down, down));
    if (!engine_graph_plan(g, true, &err)) fail_msg("%s", err.text);
    for (int n = 0; n < 2; n++) {
        for (int64_t i = 0; i < K * tokens; i++)
            ((float *)engine_input_data(x[n]))[i] = support_random_gauss(&seed);
        for (int64_t i = 0; i < EACH * tokens; i++) /* none of the last expert */
            ((int32_t *)engine_input_data(ids[n]))[i] =
                (int32_t)support_random_below(&seed, EXPERTS - 1);
    }
    const int before = fake_cuda.launches;
    assert_true(engine_graph_run(g, &err));
    const int launches = fake_cuda.launches - before;
    memcpy(out, engine_output_data(down), (size_t)engine_tensor_bytes(down));
    engine_graph_free(g);
    return launches;
}

/* Of many tokens in tiles, for which columns are sorted; once for gate and up. */
static void experts_on_a_gpu_give_the_bytes_of_the_processor(void **state)
{
    enum { ROWS_OF_EACH = 32 };
    static const struct {
        enum quant_id id;
        enum unlike unlike;
        int few, many; /* kernels */
    } cases[] = {{QUANT_Q4_1, ALIKE, 6, 8},      {QUANT_Q8_0, OTHER_ROWS, 7, 10},
                 {QUANT_Q8_0, OTHER_IDS, 7, 10}, {QUANT_Q8_0, OTHER_TYPE, 7, 10},
                 {QUANT_Q6_0, ALIKE, 6, 6},      {QUANT_F16, ALIKE, 4, 4}};
    static float here[TOKENS * EACH * ROWS_OF_EACH], there[TOKENS * EACH * ROWS_OF_EACH];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig rig = rig_new();
        uint64_t rng = 3;
        const struct quant_type *type = quant_type_by_id(cases[i].id);
        struct weights w[3];
        for (int k = 0; k < 3; k++) {
            const bool is_other = k == 1 && cases[i].unlike == OTHER_TYPE;
            w[k] = weights_new(&rig, is_other ? quant_type_by_id(QUANT_Q4_K) : type,
                               k < 2 ? K : ROWS_OF_EACH, EXPERTS * ROWS_OF_EACH, &rng);
            divide(&w[k], EXPERTS);
        }
        for (int many = 0; many < 2; many++) {
            const int tokens = many ? TOKENS : 6;
            (void)multiply_experts(&rig, w, false, tokens, cases[i].unlike, here);
            assert_int_equal(multiply_experts(&rig, w, true, tokens, cases[i].unlike, there),
                             many ? cases[i].many : cases[i].few);
            if (memcmp(here, there, (size_t)(tokens * EACH * ROWS_OF_EACH) * 4) != 0)
                fail_msg("%s, %d tokens: other bytes", type->name, tokens);
        }
        for (int k = 0; k < 3; k++) weights_free(&w[k]);
        rig_free(&rig);
    }
}

/* Its scratch has room for its own short columns. */
static void a_norm_converts_nothing_for_a_product_of_something_else(void **state)
{
    enum { SMALL_K = 32, SMALL_ROWS = 3 };
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    uint64_t rng = 9;
    (void)state;
    struct weights w = weights_new(&rig, quant_type_by_id(QUANT_Q8_0), SMALL_K, SMALL_ROWS, &rng);
    struct engine_graph *g = engine_graph_new(rig.engine, 16, &err);
    struct engine_tensor *x = engine_input(g, QUANT_F32, 2, (int64_t[]){LONG, 1}, "x");
    struct engine_tensor *y = engine_input(g, QUANT_F32, 2, (int64_t[]){SMALL_K, 1}, "y");
    engine_graph_set_place(g, rig.place);
    struct engine_tensor *norm = engine_rms_norm(g, x, 1e-5f),
                         *product = engine_mul_mat(g, &w.there, y);
    engine_graph_set_place(g, NULL);
    engine_output(g, engine_add(g, norm, norm));
    engine_output(g, engine_add(g, product, product));
    assert_true(engine_graph_plan(g, true, &err));
    const struct engine_step *steps = g->plan.steps + g->plan.segments[0].first_step;
    assert_ptr_equal(steps[0].node, norm);
    assert_ptr_equal(steps[1].node, product);
    for (int i = 0; i < LONG; i++) ((float *)engine_input_data(x))[i] = 1.0f;
    for (int i = 0; i < SMALL_K; i++) ((float *)engine_input_data(y))[i] = 1.0f;
    assert_true(engine_graph_run(g, &err));
    engine_graph_free(g); /* finds bytes past the end */
    weights_free(&w);
    rig_free(&rig);
}

static void products_may_have_more_columns_than_a_start(void **state)
{
    enum { MANY = 4099, SMALL_K = 32 };
    /* By columns, by tiles of integers and of floats. */
    static const uint32_t types[] = {QUANT_Q6_0, QUANT_Q8_0, QUANT_BF16};
    static float here[2 * MANY], there[2 * MANY];
    struct base_error err = BASE_ERROR_INIT;
    uint64_t rng = 5;
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct rig rig = rig_new();
        const struct quant_type *type = quant_type_by_id(types[i]);
        struct weights first = weights_new(&rig, type, SMALL_K, 1, &rng),
                       second = weights_new(&rig, type, SMALL_K, 1, &rng);
        assert_true(multiply(&rig, &first, &second, false, MANY, 6, here, &err));
        if (!multiply(&rig, &first, &second, true, MANY, 6, there, &err)) fail_msg("%s", err.text);
        assert_memory_equal(here, there, sizeof here);
        weights_free(&first);
        weights_free(&second);
        rig_free(&rig);
    }
}

/* Each column's matrix is that of its number among all. */
static void batches_may_have_more_columns_than_a_start(void **state)
{
    enum { MANY = 2051, SMALL_K = 32 };
    static const uint32_t types[] = {QUANT_Q6_0, QUANT_F16};
    static float out[2][2 * MANY];
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct rig rig = rig_new();
        uint64_t rng = 5;
        struct weights w = weights_new(&rig, quant_type_by_id(types[i]), SMALL_K, 2, &rng);
        divide(&w, 2);
        for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
            struct engine_graph *g = engine_graph_new(rig.engine, 16, &err);
            struct engine_tensor *x =
                engine_input(g, QUANT_F32, 3, (int64_t[]){SMALL_K, MANY, 2}, "x");
            engine_graph_set_place(g, &rig.engine->place[on_gpu]);
            struct engine_tensor *y = engine_mul_mat(g, on_gpu ? &w.there : &w.here, x);
            engine_graph_set_place(g, NULL);
            engine_output(g, y = engine_add(g, y, y));
            if (!engine_graph_plan(g, true, &err)) fail_msg("%s", err.text);
            uint64_t seed = 9;
            for (int64_t j = 0; j < engine_tensor_elements(x); j++)
                ((float *)engine_input_data(x))[j] = support_random_gauss(&seed);
            assert_true(engine_graph_run(g, &err));
            memcpy(out[on_gpu], engine_output_data(y), sizeof out[on_gpu]);
            engine_graph_free(g);
        }
        assert_memory_equal(out[0], out[1], sizeof out[0]);
        weights_free(&w);
        rig_free(&rig);
    }
}

static void products_of_long_rows_have_more_shared_memory(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    float here[8], there[8];
    uint64_t rng = 7;
    (void)state;
    struct weights w = weights_new(&rig, quant_type_by_id(QUANT_Q8_0), LONGEST, 4, &rng);
    assert_true(multiply(&rig, &w, &w, false, 1, 6, here, &err));
    if (!multiply(&rig, &w, &w, true, 1, 6, there, &err)) fail_msg("%s", err.text);
    assert_memory_equal(here, there, sizeof here);
    weights_free(&w);
    rig_free(&rig);
}

static void many_columns_of_floats_are_multiplied_by_tiles(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    float out[MAX_OUT];
    uint64_t rng = 6;
    (void)state;
    const struct quant_type *type = quant_type_by_id(QUANT_F32);
    struct weights first = weights_new(&rig, type, K, ROWS, &rng),
                   second = weights_new(&rig, type, K, MORE_ROWS, &rng);
    for (int64_t columns = 1; columns <= COLUMNS; columns += COLUMNS - 1) {
        const int before = fake_cuda.launches;
        assert_true(multiply(&rig, &first, &second, true, columns, 7, out, &err));
        /* A start for each weight, or one for both. */
        assert_int_equal(fake_cuda.launches - before, columns == COLUMNS ? 2 : 1);
    }
    weights_free(&first);
    weights_free(&second);
    rig_free(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_on_a_gpu_give_the_bytes_of_the_processor),
        cmocka_unit_test(products_with_weights_of_one_type_are_one_start),
        cmocka_unit_test(a_norm_converts_the_columns_of_the_product_that_follows),
        cmocka_unit_test(experts_on_a_gpu_give_the_bytes_of_the_processor),
        cmocka_unit_test(a_norm_converts_nothing_for_a_product_of_something_else),
        cmocka_unit_test(products_may_have_more_columns_than_a_start),
        cmocka_unit_test(batches_may_have_more_columns_than_a_start),
        cmocka_unit_test(products_of_long_rows_have_more_shared_memory),
        cmocka_unit_test(many_columns_of_floats_are_multiplied_by_tiles),
    };
    size_t size;
    if (!engine_gpu_code(&size)) {
        printf("skipped: this build has no code for GPUs\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
