/* test/test_ops_low_rank.c: add_low_rank against a naive reference in double, for B of several
 * types, with and without experts, on several threads and levels; rows without the update keep
 * their bits; what does not fit is refused. */
#include "test/support.h"
#include "test/support_graph.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct arg {
    int64_t tokens, used, experts, size, rank; /* used 0: without experts */
    enum quant_id type;
    enum support_form form; /* of y and z */
};

/* One row, parts of panels, many units, ranks above the unit's, blocks of 32 across panels. */
static const struct arg cases[] = {
    {1, 0, 1, 16, 1, QUANT_F32, SUPPORT_PLAIN},     {1, 0, 1, 1000, 16, QUANT_F16, SUPPORT_COLS},
    {70, 0, 1, 333, 8, QUANT_BF16, SUPPORT_COLS},   {3, 0, 1, 5, 64, QUANT_F32, SUPPORT_SWAPPED},
    {33, 0, 1, 600, 300, QUANT_F16, SUPPORT_PLAIN}, {4, 0, 1, 129, 6, QUANT_Q8_0, SUPPORT_PLAIN},
    {7, 3, 5, 77, 16, QUANT_F32, SUPPORT_PLAIN},    {9, 2, 4, 520, 4, QUANT_F16, SUPPORT_COLS},
    {2, 1, 6, 40, 2, QUANT_Q8_0, SUPPORT_SWAPPED},
};
enum { CASES = sizeof cases / sizeof cases[0], IDS_MAX = 32 };

/* Every expert, in an order that is not sorted. */
static int64_t id_of(const struct arg *arg, int64_t t, int64_t u)
{
    return (t * 7 + u * 3) % arg->experts;
}

static struct engine_tensor *scale_input(struct support_rig *rig, int64_t n)
{
    struct engine_tensor *s =
        support_source(rig, QUANT_F32, (int64_t[]){n, 1, 1, 1}, SUPPORT_PLAIN);
    ((float *)(void *)s->data)[n / 2] = 0.0f;
    return s;
}

static struct engine_tensor *build(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    const int64_t panels = (arg->size + 63) / 64, u = arg->used ? arg->used : arg->tokens;
    const int64_t n = arg->used ? arg->tokens : 1;
    int32_t ids[IDS_MAX];
    rig->in[0] = support_source(rig, QUANT_F32, (int64_t[]){arg->size, u, n, 1}, arg->form);
    rig->in[1] = support_source(rig, QUANT_F32, (int64_t[]){arg->rank, u, n, 1}, arg->form);
    const int64_t ne[] = {64, arg->rank, panels, arg->experts};
    struct engine_tensor *b = support_source(rig, arg->type, ne, SUPPORT_PLAIN);
    rig->in[2] = b;
    rig->in[3] = scale_input(rig, arg->tokens);
    for (int64_t i = 0; i < arg->tokens * arg->used; i++)
        ids[i] = (int32_t)id_of(arg, i / arg->used, i % arg->used);
    return engine_add_low_rank(rig->g, rig->in[0], rig->in[1], b, rig->in[3], 0.75f,
                               arg->used ? support_ids(rig, arg->used, arg->tokens, ids) : NULL);
}

static double want(const struct support_rig *rig, const struct engine_tensor *result,
                   const void *user, const int64_t *i)
{
    const struct arg *arg = user;
    const int64_t t = arg->used ? i[2] : i[1], x = arg->used ? id_of(arg, i[2], i[1]) : 0;
    const struct engine_tensor *b = rig->in[2];
    double sum = support_at(rig->in[0], i[0], i[1], i[2], 0);
    (void)result;
    for (int64_t j = 0; j < arg->rank; j++) {
        sum += 0.75 * support_at(rig->in[3], t, 0, 0, 0) *
               support_at(rig->in[1], j, i[1], i[2], 0) * support_at(b, i[0] % 64, j, i[0] / 64, x);
    }
    return sum;
}

static void adds_the_update_of_each_row(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        char label[64];
        snprintf(label, sizeof label, "add_low_rank, case %d", i);
        support_check_op(label, build, want, &cases[i], 1e-11);
    }
}

/* Minus zero, NaN and infinite updates included: the row is not computed. */
static void rows_without_scale_keep_their_bits(void **state)
{
    (void)state;
    for (int e = 0; e < SUPPORT_ENGINES; e++) {
        struct support_rig rig;
        struct base_error err = BASE_ERROR_INIT;
        support_rig_init(&rig, support_engines()[e], 1);
        struct engine_tensor *y =
            support_source(&rig, QUANT_F32, (int64_t[]){40, 2, 1, 1}, SUPPORT_PLAIN);
        struct engine_tensor *z =
            support_source(&rig, QUANT_F32, (int64_t[]){2, 2, 1, 1}, SUPPORT_PLAIN);
        struct engine_tensor *b =
            support_source(&rig, QUANT_F32, (int64_t[]){64, 2, 1, 1}, SUPPORT_PLAIN);
        struct engine_tensor *s =
            support_source(&rig, QUANT_F32, (int64_t[]){2, 1, 1, 1}, SUPPORT_PLAIN);
        float *rows = (float *)(void *)y->data, *scale = (float *)(void *)s->data;
        rows[3] = -0.0f;
        ((float *)(void *)b->data)[7] = INFINITY;
        scale[0] = 0.0f;
        scale[1] = 1.0f;
        struct engine_tensor *out = engine_add_low_rank(rig.g, y, z, b, s, 1.0f, NULL);
        engine_output(rig.g, out);
        if (!engine_graph_plan(rig.g, true, &err) || !engine_graph_run(rig.g, &err))
            fail_msg("%s", err.text);
        assert_memory_equal(out->data, y->data, 40 * sizeof(float));
        assert_true(memcmp(out->data + out->nb[1], y->data + y->nb[1], 40 * sizeof(float)) != 0);
        support_rig_free(&rig);
    }
}

static void ids_out_of_range_give_nan(void **state)
{
    (void)state;
    struct support_rig rig;
    struct base_error err = BASE_ERROR_INIT;
    support_rig_init(&rig, support_engines()[0], 1);
    struct engine_tensor *out = engine_add_low_rank(
        rig.g, support_source(&rig, QUANT_F32, (int64_t[]){20, 2, 1, 1}, SUPPORT_PLAIN),
        support_source(&rig, QUANT_F32, (int64_t[]){3, 2, 1, 1}, SUPPORT_PLAIN),
        support_source(&rig, QUANT_F32, (int64_t[]){64, 3, 1, 4}, SUPPORT_PLAIN),
        support_source(&rig, QUANT_F32, (int64_t[]){1, 1, 1, 1}, SUPPORT_PLAIN), 1.0f,
        support_ids(&rig, 2, 1, (const int32_t[]){4, 3}));
    engine_output(rig.g, out);
    if (!engine_graph_plan(rig.g, true, &err) || !engine_graph_run(rig.g, &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < 20; i++) {
        assert_true(isnan(support_at(out, i, 0, 0, 0)));
        assert_true(isfinite(support_at(out, i, 1, 0, 0)));
    }
    support_rig_free(&rig);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    for (int bad = 0; bad < 8; bad++) {
        struct support_rig rig;
        struct base_error err = BASE_ERROR_INIT;
        support_rig_init(&rig, support_engines()[0], 1);
        const enum support_form form = bad == 0 ? SUPPORT_TRANSPOSED : SUPPORT_PLAIN;
        const int32_t list[] = {0, 1, 2, 3};
        struct engine_tensor *out = engine_add_low_rank(
            rig.g, support_source(&rig, QUANT_F32, (int64_t[]){20, 2, 1, 1}, form),
            support_source(&rig, QUANT_F32, (int64_t[]){3, bad == 1 ? 3 : 2, 1, 1}, SUPPORT_PLAIN),
            support_source(&rig, QUANT_F32,
                           (int64_t[]){bad == 2 ? 32 : 64, bad == 3 ? 4 : 3, bad == 4 ? 2 : 1,
                                       bad == 5 ? 2 : 1},
                           SUPPORT_PLAIN),
            support_source(&rig, QUANT_F32, (int64_t[]){bad == 6 ? 1 : 2, 1, 1, 1}, SUPPORT_PLAIN),
            1.0f, bad == 7 ? support_ids(&rig, 4, 1, list) : NULL);
        assert_null(out);
        assert_false(engine_graph_plan(rig.g, true, &err));
        assert_int_equal(err.code, BASE_MODEL);
        support_rig_free(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_the_update_of_each_row),
        cmocka_unit_test(rows_without_scale_keep_their_bits),
        cmocka_unit_test(ids_out_of_range_give_nan),
        cmocka_unit_test(refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}
