/* test/test_gpu_joins.c: which nodes one kernel of a GPU computes, by their memory and shapes. That
 * they give the same bytes: test_gpu_models. */
#include "test/support_gpu.h"

#include "engine/gpu/gpu_code.h"
#include "engine/gpu/gpu_joins.h"
#include "engine/graph_internal.h"
#include <stdio.h>

/* Nodes at addresses that a test chooses. */
struct desk {
    struct rig rig;
    struct engine_graph *g;
    struct engine_buffer buffer;
    int64_t used;
};

enum { DESK = 1 << 19, DESK_NODES = 32 };

static struct desk desk_new(void)
{
    struct base_error err = BASE_ERROR_INIT;
    struct desk d = {.rig = rig_new()};
    d.g = engine_graph_new(d.rig.engine, DESK_NODES, &err);
    if (!d.g || !engine_buffer_new(d.rig.place, ENGINE_BUFFER_GRAPH, DESK, &d.buffer, &err))
        fail_msg("%s", err.text);
    return d;
}

static void desk_free(struct desk *d)
{
    engine_graph_free(d->g);
    engine_buffer_free(&d->buffer);
    rig_free(&d->rig);
}

static struct engine_tensor *at_own_place(struct desk *d, struct engine_tensor *t)
{
    t->data = d->buffer.base + d->used;
    d->used += engine_tensor_bytes(t);
    assert_true(d->used <= DESK);
    return t;
}

static struct engine_tensor *floats_of(struct desk *d, int64_t ne0, int64_t ne1)
{
    return at_own_place(d, engine_input(d->g, QUANT_F32, 2, (int64_t[]){ne0, ne1}, "x"));
}

static struct engine_tensor *sum_of(struct desk *d, struct engine_tensor *x)
{
    return at_own_place(d, engine_add(d->g, x, floats_of(d, x->ne[0], 1)));
}

/* The norm of `heads` heads of a tensor's tokens, at these distances in floats. */
static struct engine_tensor *norm_of(struct desk *d, struct engine_tensor *x, int64_t size,
                                     int64_t heads, int64_t tokens, int64_t head_stride,
                                     int64_t token_stride)
{
    struct engine_tensor *view =
        engine_input(d->g, QUANT_F32, 3, (int64_t[]){size, heads, tokens}, "v");
    struct engine_tensor *norm = at_own_place(d, engine_rms_norm(d->g, view, 1e-5f));
    view->data = x->data;
    view->nb[1] = 4 * head_stride;
    view->nb[2] = 4 * token_stride;
    return norm;
}

static int joined(struct desk *d, int n, struct engine_tensor *const *node)
{
    struct engine_step steps[DESK_NODES] = {0};
    for (int i = 0; i < n; i++) steps[i].node = node[i];
    d->rig.gpu->ahead_of = NULL;
    return engine_gpu_join(d->rig.gpu, steps, n, d->buffer.base);
}

static int both(struct desk *d, struct engine_tensor *a, struct engine_tensor *b)
{
    return joined(d, 2, (struct engine_tensor *[]){a, b});
}

/* Blocks run in any order, so a kernel's nodes neither write nor read what another one of them
 * writes, except for a chain, row by row. */
static void nodes_of_one_kernel_have_memory_of_their_own(void **state)
{
    struct desk d = desk_new();
    (void)state;
    struct engine_tensor *x = floats_of(&d, 64, 2), *y = floats_of(&d, 64, 2);
    struct engine_tensor *a = sum_of(&d, x), *b = sum_of(&d, y);
    char *const place = b->data;
    assert_int_equal(both(&d, a, b), 2);
    b->data = a->data + 64; /* writes what a writes */
    assert_int_equal(both(&d, a, b), 0);
    b->data = x->data + 64; /* what a reads */
    assert_int_equal(both(&d, a, b), 0);
    b->data = place;
    y->data = a->data + 64; /* reads what a writes */
    assert_int_equal(both(&d, a, b), 0);
    struct engine_tensor *norm = norm_of(&d, a, 64, 1, 2, 64, 64);
    uint64_t before = fake_cuda.blocks; /* one for each row of a chain */
    assert_int_equal(both(&d, a, norm), 2);
    assert_int_equal(fake_cuda.blocks - before, 2);
    before = fake_cuda.blocks;
    assert_int_equal(both(&d, a, norm_of(&d, x, 64, 1, 2, 64, 64)), 2);
    assert_int_equal(fake_cuda.blocks - before, 4);
    norm->src[1] = floats_of(&d, 64, 1);
    assert_int_equal(both(&d, a, norm), 2);
    norm->src[1]->data = a->data; /* its weights are a row of a */
    assert_int_equal(both(&d, a, norm), 0);
    desk_free(&d);
}

static void chains_have_adjacent_rows_of_one_length(void **state)
{
    struct desk d = desk_new();
    (void)state;
    struct engine_tensor *a = sum_of(&d, floats_of(&d, 128, 2)),
                         *c = sum_of(&d, floats_of(&d, 64, 2));
    struct engine_tensor *more[4];
    assert_int_equal(both(&d, a, norm_of(&d, a, 64, 2, 2, 64, 128)), 2);
    assert_int_equal(both(&d, a, norm_of(&d, a, 64, 2, 2, 32, 128)), 0);
    assert_int_equal(both(&d, a, norm_of(&d, a, 64, 2, 2, 64, 96)), 0);
    assert_int_equal(both(&d, c, norm_of(&d, c, 64, 2, 1, 64, 128)), 0); /* rows of 64, of 128 */
    for (int i = 0; i < 4; i++) more[i] = sum_of(&d, floats_of(&d, 64, 1));
    assert_int_equal(joined(&d, 4, more), ENGINE_GPU_CHAINS);
    desk_free(&d);
}

static void long_rows_are_in_chains_if_they_can_be_divided(void **state)
{
    struct desk d = desk_new();
    (void)state;
    struct engine_tensor *x = floats_of(&d, ENGINE_GPU_CHAIN_SIZE + 32, 1),
                         *y = floats_of(&d, ENGINE_GPU_CHAIN_SIZE + 64, 1);
    assert_int_equal(both(&d, sum_of(&d, x), sum_of(&d, x)), 0);
    assert_int_equal(both(&d, sum_of(&d, y), sum_of(&d, y)), 2);
    struct engine_tensor *a = norm_of(&d, y, ENGINE_GPU_CHAIN_SIZE + 64, 1, 1, 0, 0),
                         *b = norm_of(&d, y, ENGINE_GPU_CHAIN_SIZE + 64, 1, 1, 0, 0);
    assert_int_equal(both(&d, a, b), 0);
    desk_free(&d);
}

static void a_long_norm_is_joined_with_its_own_sum(void **state)
{
    enum { SIZE = 2 * ENGINE_GPU_CHAIN_SIZE };
    struct desk d = desk_new();
    (void)state;
    struct engine_tensor *x = floats_of(&d, SIZE, 2), *y = floats_of(&d, SIZE, 2),
                         *a = at_own_place(&d, engine_add(d.g, x, y)),
                         *norm = at_own_place(&d, engine_rms_norm(d.g, a, 1e-5f)),
                         *other = at_own_place(&d, engine_rms_norm(d.g, x, 1e-5f));
    assert_int_equal(both(&d, a, norm), 2);
    assert_int_equal(both(&d, a, other), 0);
    norm->data = x->data + 64; /* a row's norm over another row of x */
    assert_int_equal(both(&d, a, norm), 0);
    norm->data = y->data - 64;
    assert_int_equal(both(&d, a, norm), 0);
    desk_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_one_kernel_have_memory_of_their_own),
        cmocka_unit_test(chains_have_adjacent_rows_of_one_length),
        cmocka_unit_test(long_rows_are_in_chains_if_they_can_be_divided),
        cmocka_unit_test(a_long_norm_is_joined_with_its_own_sum),
    };
    size_t size;
    if (!engine_gpu_code(&size)) {
        printf("skipped: this build has no code for GPUs\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
