/* test/test_read_ahead.c: which bytes of experts are requested from the disk
 * (engine/cpu/read_ahead.h). */
#include "engine/cpu/read_ahead.h"
#include "engine/graph_internal.h"
#include "engine/ops.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { X = 6, ROWS = 4, BYTES = 10000 };

static char weights[3][X * BYTES];

static struct engine_tensor stack(int i)
{
    return (struct engine_tensor){.type = quant_type_by_id(QUANT_Q8_0),
                                  .ne = {32, ROWS, X, 1},
                                  .nb = {0, 0, BYTES, 0},
                                  .data = weights[i]};
}

struct visited {
    int n, weight[32], expert[32];
};

static void visit(void *user, const char *first, uint64_t bytes)
{
    struct visited *v = user;
    assert_true(v->n < 32);
    assert_int_equal(bytes, BYTES);
    for (int i = 0; i < 3; i++)
        if (first >= weights[i] && first < weights[i] + sizeof weights[i]) {
            assert_int_equal((first - weights[i]) % BYTES, 0);
            v->weight[v->n] = i;
            v->expert[v->n] = (int)((first - weights[i]) / BYTES);
        }
    v->n++;
}

/* Two tokens: ids 4, 1 and 1, 9, of which 9 is no expert. Products: gate and up as one node, down,
 * and one with the ids of another layer. */
static struct visited visit_all(int ith, int nth, int step)
{
    static int32_t id[] = {4, 1, 1, 9}, other_id[] = {0, 0, 0, 0};
    struct engine_tensor gate = stack(0), up = stack(1), down = stack(2), x = {.ne = {32, 1, 2, 1}};
    struct engine_tensor ids = {.type = quant_type_by_id(QUANT_I32),
                                .ne = {2, 2, 1, 1},
                                .nb = {4, 8, 16, 16},
                                .data = (char *)id};
    struct engine_tensor other = ids;
    other.data = (char *)other_id;
    struct engine_tensor first = {
        .op = &engine_op_mul_mat_id_glu, .ne = {ROWS, 2, 2, 1}, .src = {&x, &gate, &ids, &up}};
    struct engine_tensor second = {
        .op = &engine_op_mul_mat_id, .ne = {ROWS, 2, 2, 1}, .src = {&x, &down, &ids}};
    struct engine_tensor third = {
        .op = &engine_op_mul_mat_id, .ne = {ROWS, 2, 2, 1}, .src = {&x, &down, &other}};
    struct engine_step steps[] = {{.node = &first}, {.node = &second}, {.node = &third}};
    const struct engine_plan plan = {.steps = steps, .n_steps = 3};
    const struct engine_segment segment = {.first_step = 0, .n_steps = 3};
    struct visited v = {0};
    engine_read_ahead_chosen(&plan, &segment, step, &ids, ith, nth, visit, &v);
    return v;
}

static void each_chosen_expert_of_each_product_is_requested_once(void **state)
{
    (void)state;
    static const int weight[] = {0, 0, 1, 1, 2, 2}, expert[] = {1, 4, 1, 4, 1, 4};
    const struct visited v = visit_all(0, 1, 0);
    assert_int_equal(v.n, 6);
    assert_memory_equal(v.weight, weight, sizeof weight);
    assert_memory_equal(v.expert, expert, sizeof expert);
}

static void workers_divide_the_requests(void **state)
{
    (void)state;
    const struct visited a = visit_all(0, 2, 0), b = visit_all(1, 2, 0);
    assert_int_equal(a.n, 3);
    assert_int_equal(b.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a.expert[i], 4);
        assert_int_equal(b.expert[i], 1);
    }
}

static void products_before_the_step_are_not_requested(void **state)
{
    (void)state;
    const struct visited v = visit_all(0, 1, 1);
    assert_int_equal(v.n, 2);
    assert_int_equal(v.weight[0], 2);
}

static void most_experts_are_left_to_the_system(void **state)
{
    (void)state;
    int32_t id[] = {0, 1, 2, 3, 4, 5, 5, 5};
    struct engine_tensor ids = {.type = quant_type_by_id(QUANT_I32),
                                .ne = {2, 4, 1, 1},
                                .nb = {4, 8, 32, 32},
                                .data = (char *)id};
    assert_false(engine_read_ahead_pays(&ids, 6));
    assert_false(engine_read_ahead_pays(&ids, 8));
    assert_true(engine_read_ahead_pays(&ids, 9));
    ids.ne[1] = 1; /* one token */
    assert_true(engine_read_ahead_pays(&ids, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chosen_expert_of_each_product_is_requested_once),
        cmocka_unit_test(workers_divide_the_requests),
        cmocka_unit_test(products_before_the_step_are_not_requested),
        cmocka_unit_test(most_experts_are_left_to_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
