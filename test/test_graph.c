/* test/test_graph.c: the graph: order, memory reuse, simplification, errors, interrupt, and no
 * allocation in a run. */
#include "base/interrupt.h"
#include "engine/cpu/cpu_op.h"
#include "engine/graph_internal.h"
#include "test/support.h"
#include "test/support_alloc.h"
#include "test/support_files.h"
#include "test/support_graph.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Small helpers ---- */

static void plan_and_run(struct support_rig *rig, bool simplify)
{
    struct base_error err = BASE_ERROR_INIT;
    if (!engine_graph_plan(rig->g, simplify, &err) || !engine_graph_run(rig->g, &err))
        fail_msg("%s: %s", err.item, err.text);
}

static struct engine_tensor *vector(struct support_rig *rig, int64_t n)
{
    return support_source(rig, QUANT_F32, (int64_t[]){n, 1, 1, 1}, SUPPORT_PLAIN);
}

static void rig_one(struct support_rig *rig, int engine)
{
    support_rig_init(rig, support_engines()[engine], 7);
}

/* ---- Random graphs ---- */

enum { RANDOM_NODES = 60, RANDOM_OUTPUTS = 3 };

struct random_graph {
    struct support_rig rig;
    struct engine_tensor *pool[4 + RANDOM_NODES]; /* contiguous F32 [rows][cols] */
    struct engine_tensor *weight, *matrix, *table, *ids;
    int n_pool;
    int64_t ne[ENGINE_DIMS];
};

/* Makes a tensor of the pool's shape from parts and views of one tensor: halves, transposes,
 * reshapes. */
static struct engine_tensor *random_moves(struct random_graph *r, uint64_t *state,
                                          struct engine_tensor *a)
{
    struct engine_graph *g = r->rig.g;
    int64_t half = r->ne[0] / 2;
    switch (support_random(state) % 5) {
    case 0:
        return engine_concat(g, engine_cols(g, a, half, r->ne[0] - half),
                             engine_cols(g, a, 0, half), 0);
    case 1:
        return engine_permute(g, engine_cont(g, engine_permute(g, a, 1, 0, 2, 3)), 1, 0, 2, 3);
    case 2: {
        struct engine_tensor *flat =
            engine_reshape(g, a, 1, (int64_t[]){engine_tensor_elements(a)});
        return engine_reshape(g, engine_scale(g, flat, 0.5f, 0.25f), ENGINE_DIMS, r->ne);
    }
    case 3: { /* subtracts the first row from every row: must not run in place, although no other
                 node uses the memory */
        struct engine_tensor *fresh = engine_scale(g, a, 1.5f, 0.0f);
        return engine_sub(g, fresh, engine_view(g, fresh, 1, r->ne, NULL, 0));
    }
    default: {
        struct engine_tensor *sum = engine_sum_rows(g, a);
        return engine_add(g, engine_scale(g, a, 1.0f, 0.0f), sum);
    }
    }
}

static struct engine_tensor *random_node(struct random_graph *r, uint64_t *state)
{
    struct engine_graph *g = r->rig.g;
    struct engine_tensor *a = r->pool[support_random(state) % (uint64_t)r->n_pool];
    struct engine_tensor *b = r->pool[support_random(state) % (uint64_t)r->n_pool];
    enum engine_unary f = support_random(state) % 2 ? ENGINE_SILU : ENGINE_GELU;
    switch (support_random(state) % 12) {
    case 0:
        return engine_add(g, a, b);
    case 1:
        return engine_sub(g, a, b);
    case 2:
        return engine_mul(g, engine_unary(g, a, f), b);
    case 3:
        return engine_mul(g, engine_rms_norm(g, a, 1e-5f), r->weight);
    case 4:
        return engine_add(g, engine_mul(g, engine_norm(g, a, 1e-5f), r->weight), r->weight);
    case 5:
        return engine_soft_max(g, a, NULL, NULL, 0.5f, 0.0f);
    case 6:
        return engine_scale(g, a, 0.75f, 0.125f);
    case 7: /* writes into the table, whose rows are then read through the result or the table */
        if (support_random(state) % 2)
            r->table = engine_set_rows(g, r->table, a, r->ids);
        else
            engine_set_rows(g, r->table, a, r->ids);
        return engine_get_rows(g, r->table, r->ids);
    case 8: /* overwrites an intermediate tensor that others are views of */
        return engine_add(
            g, engine_copy(g, engine_clamp(g, a, -1.0f, 1.0f), engine_scale(g, b, 2.0f, 0.0f)), a);
    case 9: /* overwrites memory that others of the pool may read later */
        engine_copy(g, engine_cols(g, a, 0, 8), engine_cols(g, b, 8, 8));
        return engine_mul(g, a, b);
    case 10:
        return engine_scale(g, engine_mul_mat(g, r->matrix, a), 0.03125f, 0.0f);
    default:
        return random_moves(r, state, a);
    }
}

/* With `apart` every tensor is an output, so that none shares memory with another. */
static void random_build(struct random_graph *r, struct engine *engine, uint64_t seed, bool apart)
{
    uint64_t state = seed;
    int32_t ids[64];
    support_rig_init(&r->rig, engine, seed);
    int64_t rows = seed % 2 ? 5 : 24, cols = seed % 2 ? 64 : 416;
    memcpy(r->ne, (int64_t[]){cols, rows, 1, 1}, sizeof r->ne);
    for (int i = 0; i < rows; i++) ids[i] = (int32_t)(support_random(&state) % (uint64_t)rows);
    r->weight = vector(&r->rig, cols);
    r->matrix = support_source(&r->rig, seed % 3 ? QUANT_Q8_0 : QUANT_F32,
                               (int64_t[]){cols, cols, 1, 1}, SUPPORT_PLAIN);
    r->table = support_source(&r->rig, QUANT_F32, r->ne, SUPPORT_PLAIN);
    r->ids = support_ids(&r->rig, rows, 1, ids);
    r->n_pool = 0;
    for (int i = 0; i < 4; i++) /* copies: the pool may be overwritten, the leaves must not */
        r->pool[r->n_pool++] = engine_scale(
            r->rig.g, support_source(&r->rig, QUANT_F32, r->ne, SUPPORT_PLAIN), 1.0f, 0.0f);
    for (int i = 0; i < RANDOM_NODES; i++) {
        struct engine_tensor *t = engine_cont(r->rig.g, random_node(r, &state));
        if (t) r->pool[r->n_pool++] = t;
    }
    if (apart)
        for (int i = 0; i < r->rig.g->n_tensors; i++)
            engine_output(r->rig.g, &r->rig.g->tensors[i]);
    for (int i = 1; i <= RANDOM_OUTPUTS; i++) engine_output(r->rig.g, r->pool[r->n_pool - i]);
}

/* Memory reuse, in-place ops, barriers and simplification change no bits. */
static void planning_changes_no_bit_of_random_graphs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (support_quick() ? 15 : 60); seed++) {
        struct random_graph apart, tight;
        random_build(&apart, support_engines()[0], seed, true);
        plan_and_run(&apart.rig, false);
        for (int k = 0; k < 2 * SUPPORT_ENGINES; k++) {
            random_build(&tight, support_engines()[k / 2], seed, false);
            plan_and_run(&tight.rig, k % 2);
            for (int i = 1; i <= RANDOM_OUTPUTS; i++) {
                const struct engine_tensor *a = apart.pool[apart.n_pool - i];
                const struct engine_tensor *b = tight.pool[tight.n_pool - i];
                if (memcmp(a->data, b->data, (size_t)engine_tensor_bytes(a)) != 0)
                    fail_msg("seed %d, run %d: output %s differs", (int)seed, k, a->name);
            }
            assert_true(engine_graph_bytes(tight.rig.g) < engine_graph_bytes(apart.rig.g) ||
                        seed % 2);
            support_rig_free(&tight.rig);
        }
        support_rig_free(&apart.rig);
    }
}

/* ---- Memory ---- */

static void a_chain_of_elementwise_ops_uses_one_buffer(void **state)
{
    (void)state;
    struct support_rig rig;
    rig_one(&rig, 1);
    struct engine_tensor *in = engine_input(rig.g, QUANT_F32, 1, (int64_t[]){100000}, "in"),
                         *t = in;
    for (int i = 0; i < 20; i++) t = engine_scale(rig.g, t, 1.0f, 1.0f);
    engine_output(rig.g, t);
    struct base_error err = BASE_ERROR_INIT;
    assert_true(engine_graph_plan(rig.g, true, &err));
    assert_int_equal(engine_graph_nodes(rig.g), 20);
    assert_true(in->data != t->data); /* an input is never overwritten */
    int64_t tensors = engine_graph_bytes(rig.g) - (int64_t)rig.g->plan.memory[0].scratch_bytes;
    assert_true(tensors >= 800000 && tensors < 801000);
    for (int i = 0; i < 100000; i++) ((float *)(void *)in->data)[i] = (float)i;
    for (int run = 0; run < 2; run++) { /* the input persists between runs */
        assert_true(engine_graph_run(rig.g, &err));
        assert_true(((float *)(void *)t->data)[99999] == 100019.0f);
    }
    support_rig_free(&rig);
}

/* Two branches whose results are needed at the same time need two tensors, consecutive ones only
 * one. */
static void memory_of_dead_tensors_is_reused(void **state)
{
    (void)state;
    struct support_rig rig;
    rig_one(&rig, 1);
    struct engine_tensor *in = vector(&rig, 50000), *sum = vector(&rig, 1);
    for (int i = 0; i < 8; i++) {
        struct engine_tensor *t = engine_scale(rig.g, in, (float)i, 0.0f);
        sum = engine_add(rig.g, engine_sum_rows(rig.g, t), sum);
    }
    engine_output(rig.g, sum);
    struct base_error err = BASE_ERROR_INIT;
    assert_true(engine_graph_plan(rig.g, true, &err));
    int64_t tensors = engine_graph_bytes(rig.g) - (int64_t)rig.g->plan.memory[0].scratch_bytes;
    assert_true(tensors >= 200000 && tensors < 201000);
    support_rig_free(&rig);
}

static void a_run_allocates_nothing(void **state)
{
    (void)state;
    for (int k = 0; k < SUPPORT_ENGINES; k++) {
        struct random_graph r;
        random_build(&r, support_engines()[k], 4, false);
        plan_and_run(&r.rig, true);
        int before = atomic_load(&allocations);
        assert_true(before > 0); /* allocations are counted */
        struct base_error err = BASE_ERROR_INIT;
        bool ran = true;
        for (int run = 0; run < 3; run++) ran = ran && engine_graph_run(r.rig.g, &err);
        assert_int_equal(atomic_load(&allocations), before);
        assert_true(ran);
        support_rig_free(&r.rig);
    }
}

/* ---- Order ---- */

static void writes_keep_their_order(void **state)
{
    (void)state;
    struct support_rig rig;
    rig_one(&rig, 3);
    struct engine_tensor *table = vector(&rig, 4), *one = vector(&rig, 4);
    int32_t zero = 0;
    struct engine_tensor *ids = support_ids(&rig, 1, 1, &zero);
    float *t = (float *)(void *)table->data, *o = (float *)(void *)one->data;
    for (int i = 0; i < 4; i++) t[i] = (float)i, o[i] = 10.0f;
    struct engine_tensor *before = engine_scale(rig.g, table, 1.0f, 0.0f);
    struct engine_tensor *written = engine_set_rows(rig.g, table, one, ids);
    struct engine_tensor *after = engine_scale(rig.g, written, 1.0f, 1.0f);
    struct engine_tensor *plain = engine_scale(rig.g, table, 1.0f, 2.0f);
    engine_copy(rig.g, engine_scale(rig.g, one, 2.0f, 0.0f), table); /* its result has no reader */
    engine_output(rig.g, before);
    engine_output(rig.g, after);
    engine_output(rig.g, plain);
    plan_and_run(&rig, true);
    for (int i = 0; i < 4; i++) {
        assert_true(((float *)(void *)before->data)[i] == (float)i);
        assert_true(((float *)(void *)after->data)[i] == 11.0f);
        assert_true(((float *)(void *)plain->data)[i] == 12.0f);
        assert_true(t[i] == 20.0f);
    }
    support_rig_free(&rig);
}

static void unneeded_nodes_do_not_run(void **state)
{
    (void)state;
    struct support_rig rig;
    rig_one(&rig, 1);
    struct engine_tensor *a = vector(&rig, 8);
    struct engine_tensor *used =
        engine_scale(rig.g, engine_scale(rig.g, a, -1.0f, 0.0f), -1.0f, 0.0f);
    engine_name(used, "neg %d", 2);
    engine_unary(rig.g, used, ENGINE_EXP);
    engine_output(rig.g, used);
    plan_and_run(&rig, true);
    assert_int_equal(engine_graph_nodes(rig.g), 2);
    assert_ptr_equal(engine_graph_find(rig.g, "neg 2"), used);
    assert_null(engine_graph_find(rig.g, "neg 3"));
    support_rig_free(&rig);
}

/* Barriers precede exactly the steps that depend on data that another worker may still write. */
static void a_barrier_precedes_each_step_that_needs_another_workers_result(void **state)
{
    (void)state;
    struct support_rig rig;
    struct base_error err = BASE_ERROR_INIT;
    rig_one(&rig, 3);
    struct engine_tensor *a = vector(&rig, 20000), *b = vector(&rig, 20000), *c = vector(&rig, 9);
    struct engine_tensor *t[] = {engine_scale(rig.g, a, 1.0f, 0.0f), /* first */
                                 engine_scale(rig.g, b, 1.0f, 0.0f), /* uses other memory */
                                 engine_scale(rig.g, c, 1.0f, 0.0f), /* likewise, on worker 0 */
                                 NULL,
                                 NULL,
                                 NULL,
                                 NULL};
    t[3] = engine_add(rig.g, t[0], t[1]); /* needs both */
    t[4] = engine_copy(rig.g, a, b);      /* writes into memory that no node has read since */
    t[5] = engine_copy(rig.g, t[1], b);   /* also writes there */
    t[6] = engine_scale(rig.g, t[2], 1.0f, 0.0f); /* worker 0 after worker 0 */
    static const bool barrier[] = {false, false, false, true, false, true, false};
    for (int i = 0; i < 7; i++) engine_output(rig.g, t[i]);
    assert_true(engine_graph_plan(rig.g, false, &err));
    assert_int_equal(engine_graph_nodes(rig.g), 7);
    for (int i = 0; i < 7; i++) {
        assert_ptr_equal(rig.g->plan.steps[i].node, t[i]);
        assert_int_equal(rig.g->plan.steps[i].barrier, barrier[i]);
    }
    support_rig_free(&rig);
}

/* ---- Simplification ---- */

static int nodes_of_block(bool simplify, bool watched)
{
    struct support_rig rig;
    rig_one(&rig, 1);
    struct engine_tensor *x = vector(&rig, 64), *w = vector(&rig, 64), *b = vector(&rig, 64);
    struct engine_tensor *n = engine_norm(rig.g, x, 1e-5f);
    struct engine_tensor *y = engine_add(rig.g, engine_mul(rig.g, n, w), b);
    struct engine_tensor *gate = engine_unary(rig.g, y, ENGINE_SILU);
    if (watched) engine_output(rig.g, n);
    engine_output(rig.g, engine_mul(rig.g, gate, y));
    plan_and_run(&rig, simplify);
    int nodes = engine_graph_nodes(rig.g);
    support_rig_free(&rig);
    return nodes;
}

static void the_nodes_of_a_layer_are_fused(void **state)
{
    (void)state;
    assert_int_equal(nodes_of_block(false, false), 5);
    assert_int_equal(nodes_of_block(true, false), 2); /* norm with weight and bias, glu */
    assert_int_equal(nodes_of_block(true, true), 4);  /* an output is never merged */
}

/* A norm must not move past a write into its source. */
static void no_op_is_moved_past_a_write_to_its_source(void **state)
{
    (void)state;
    struct support_rig rig;
    rig_one(&rig, 1);
    struct engine_tensor *x = vector(&rig, 4), *w = vector(&rig, 4), *y = vector(&rig, 4);
    float *v = (float *)(void *)x->data, *weight = (float *)(void *)w->data;
    for (int i = 0; i < 4; i++) v[i] = 3.0f, weight[i] = 1.0f;
    struct engine_tensor *n = engine_rms_norm(rig.g, x, 0.0f);
    engine_copy(rig.g, engine_scale(rig.g, y, 0.0f, -1.0f), x);
    struct engine_tensor *out = engine_mul(rig.g, n, w);
    engine_output(rig.g, out);
    plan_and_run(&rig, true);
    assert_true(((float *)(void *)out->data)[0] == 1.0f);
    support_rig_free(&rig);
}

/* ---- Errors ---- */

/* Builders that must report an error: a is [3][32], b is [5][7], ids I32 [4]. Numbers without a
 * case return a. */
static struct engine_tensor *build_bad_view(struct engine_graph *g, int i, struct engine_tensor *a)
{
    int64_t huge = INT64_MAX / 2;
    switch (i) {
    case 5:
        return engine_view(g, a, 2, (int64_t[]){32, 4}, NULL, 0);
    case 6:
        return engine_view(g, a, 1, (int64_t[]){32}, NULL, -4);
    case 7:
        return engine_view(g, a, 2, (int64_t[]){32, 3}, (int64_t[]){4, huge}, 0);
    case 8:
        return engine_view(g, a, 1, (int64_t[]){0}, NULL, 0);
    case 9:
        return engine_view(g, a, 2, (int64_t[]){32, 2}, (int64_t[]){4, -128}, 256);
    case 10:
        return engine_reshape(g, a, 1, (int64_t[]){95});
    case 11:
        return engine_reshape(g, engine_cols(g, a, 0, 16), 1, (int64_t[]){48});
    case 12:
        return engine_reshape(g, a, 3, (int64_t[]){huge, huge, 4});
    case 13:
        return engine_permute(g, a, 0, 1, 1, 3);
    case 14:
        return engine_cols(g, a, 30, 3);
    case 15:
        return engine_cols(g, a, -1, 3);
    default:
        return a;
    }
}

static struct engine_tensor *build_bad(struct engine_graph *g, int i, struct engine_tensor *a,
                                       struct engine_tensor *b, struct engine_tensor *ids)
{
    struct engine_rope rope = {.n_rot = 8, .freq_base = 1e4f, .freq_scale = 1.0f};
    int64_t huge = INT64_MAX / 2;
    switch (i) {
    case 0:
        return engine_add(g, a, b);
    case 1:
        return engine_add(g, a, NULL);
    case 2:
        return engine_mul(g, a, ids);
    case 3:
        return engine_glu(g, a, engine_cols(g, a, 0, 16), ENGINE_SILU);
    case 16:
        return engine_cast(g, a, (enum quant_id)QUANT_ID_COUNT);
    case 17:
        return engine_cast(g, a, QUANT_I32);
    case 18:
        return engine_cast(g, b, QUANT_Q8_0);
    case 19:
        return engine_copy(g, a, b);
    case 20:
        return engine_get_rows(g, a, b);
    case 21:
        return engine_get_rows(g, engine_input(g, QUANT_F64, 2, (int64_t[]){32, 3}, "f64"), ids);
    case 22:
        return engine_set_rows(g, a, b, ids);
    case 23:
        return engine_set_rows(g, a, a, ids);
    case 24:
        return engine_concat(g, a, b, 0);
    case 25:
        return engine_concat(g, a, a, 4);
    case 26:
        return engine_repeat(g, a, b);
    case 28:
        return engine_sinkhorn(g, a, 1, 0.0f);
    case 29:
        return engine_soft_max(g, a, b, NULL, 1.0f, 0.0f);
    case 30:
        return engine_soft_max(g, a, NULL, b, 1.0f, 0.0f);
    case 33:
        return engine_rope(g, a, ids, NULL, &rope); /* one token but four positions */
    case 32:
        rope.n_rot = 7;
        return engine_rope(g, a, ids, NULL, &rope);
    case 31:
        rope.kind = ENGINE_ROPE_MULTI;
        return engine_rope(g, a, ids, NULL, &rope);
    case 27:
        return engine_input(g, QUANT_F32, 3, (int64_t[]){huge, huge, 2}, "huge");
    case 4:
        return engine_input(g, QUANT_Q8_0, 1, (int64_t[]){33}, "odd");
    default:
        return build_bad_view(g, i, a);
    }
}

static void bad_shapes_are_errors(void **state)
{
    (void)state;
    for (int i = 0;; i++) {
        static const int32_t four[] = {0, 1, 2, 3};
        struct support_rig rig;
        struct base_error err = BASE_ERROR_INIT;
        rig_one(&rig, 1);
        struct engine_tensor *a =
            support_source(&rig, QUANT_F32, (int64_t[]){32, 3, 1, 1}, SUPPORT_PLAIN);
        struct engine_tensor *b =
            support_source(&rig, QUANT_F32, (int64_t[]){7, 5, 1, 1}, SUPPORT_PLAIN);
        struct engine_tensor *t = build_bad(rig.g, i, a, b, support_ids(&rig, 4, 1, four));
        bool end = t == a, planned = engine_graph_plan(rig.g, true, &err);
        if (!end && (t || planned || err.code != BASE_MODEL || err.text[0] == '\0'))
            fail_msg("case %d is not refused: %s", i, err.text);
        support_rig_free(&rig);
        if (end) break;
    }
}

static void the_first_error_of_a_graph_is_kept(void **state)
{
    (void)state;
    struct support_rig rig;
    struct base_error err = BASE_ERROR_INIT;
    rig_one(&rig, 1);
    struct engine_tensor *a = vector(&rig, 8), *b = vector(&rig, 3);
    struct engine_tensor *bad = engine_name(engine_add(rig.g, a, b), "lost");
    assert_null(bad);
    assert_null(engine_mul(rig.g, a, a)); /* nothing is built after an error */
    engine_output(rig.g, bad);
    assert_false(engine_graph_plan(rig.g, true, &err));
    assert_non_null(strstr(err.text, "add"));
    assert_non_null(strstr(err.text, "leaf0 F32 [8]"));
    support_rig_free(&rig);
}

static void misuse_is_an_error(void **state)
{
    (void)state;
    struct support_rig rig;
    struct base_error err = BASE_ERROR_INIT;
    rig_one(&rig, 1);
    assert_false(engine_graph_run(rig.g, &err)); /* no plan yet */
    struct engine_tensor *a = vector(&rig, 8);
    for (int i = 0; i < 256; i++) engine_scale(rig.g, a, 1.0f, 0.0f);
    assert_null(engine_scale(rig.g, a, 1.0f, 0.0f)); /* full */
    support_rig_free(&rig);

    err = BASE_ERROR_INIT;
    struct engine_tensor empty;
    rig_one(&rig, 1);
    assert_true(engine_tensor_init(&empty, quant_type_by_id(QUANT_F32), 1, (int64_t[]){4}, NULL,
                                   "empty", &err));
    engine_output(rig.g, engine_scale(rig.g, &empty, 1.0f, 0.0f));
    assert_false(engine_graph_plan(rig.g, true, &err)); /* a weight without data */
    assert_string_equal(err.item, "empty");
    support_rig_free(&rig);
}

static void a_graph_that_is_too_large_is_an_error(void **state)
{
    (void)state;
    struct support_rig rig;
    struct base_error err = BASE_ERROR_INIT;
    rig_one(&rig, 1);
    for (int i = 0; i < 5; i++)
        engine_input(rig.g, QUANT_F32, 1, (int64_t[]){INT64_MAX / 8}, "big");
    assert_false(engine_graph_plan(rig.g, true, &err));
    assert_int_equal(err.code, BASE_NO_MEMORY);
    support_rig_free(&rig);
}

/* ---- Interrupt ---- */

static atomic_int calls;

static bool any_shape(struct engine_tensor *dst, struct base_error *err)
{
    (void)err;
    engine_dst_like(dst, QUANT_F32, dst->src[0]);
    return true;
}

/* Requests the stop in the fifth node. */
static void trip_run(const struct engine_task *task, struct engine_tensor *dst)
{
    (void)dst;
    if (task->worker->ith == 0 && atomic_fetch_add(&calls, 1) == 4) base_interrupt();
}

static const struct engine_op trip = {.name = "trip", .n_src = 1, .shape = any_shape};
static const struct engine_cpu_op cpu_trip = {
    .op = &trip, .split = ENGINE_SPLIT_OWN, .run = trip_run};

/* Replaces the lookup in the CPU's table (see the Makefile). */
const struct engine_cpu_op *__real_engine_cpu_op_of(const struct engine_op *op);
const struct engine_cpu_op *__wrap_engine_cpu_op_of(const struct engine_op *op);
const struct engine_cpu_op *__wrap_engine_cpu_op_of(const struct engine_op *op)
{
    return op == &trip ? &cpu_trip : __real_engine_cpu_op_of(op);
}

static void an_interruption_ends_a_run(void **state)
{
    (void)state;
    for (int k = 0; k < SUPPORT_ENGINES; k++) {
        struct support_rig rig;
        struct base_error err = BASE_ERROR_INIT;
        rig_one(&rig, k);
        struct engine_tensor *t = vector(&rig, 8);
        for (int i = 0; i < 20; i++) t = engine_graph_node(rig.g, &trip, &t, 1, NULL);
        engine_output(rig.g, t);
        assert_true(engine_graph_plan(rig.g, true, &err));
        atomic_store(&calls, 0);
        assert_false(engine_graph_run(rig.g, &err));
        assert_int_equal(err.code, BASE_INTERRUPTED);
        assert_int_equal(atomic_load(&calls), 5);
        base_interrupt_clear(); /* and the graph still runs */
        err = BASE_ERROR_INIT;
        assert_true(engine_graph_run(rig.g, &err));
        support_rig_free(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planning_changes_no_bit_of_random_graphs),
        cmocka_unit_test(a_chain_of_elementwise_ops_uses_one_buffer),
        cmocka_unit_test(memory_of_dead_tensors_is_reused),
        cmocka_unit_test(a_run_allocates_nothing),
        cmocka_unit_test(writes_keep_their_order),
        cmocka_unit_test(unneeded_nodes_do_not_run),
        cmocka_unit_test(a_barrier_precedes_each_step_that_needs_another_workers_result),
        cmocka_unit_test(the_nodes_of_a_layer_are_fused),
        cmocka_unit_test(no_op_is_moved_past_a_write_to_its_source),
        cmocka_unit_test(bad_shapes_are_errors),
        cmocka_unit_test(the_first_error_of_a_graph_is_kept),
        cmocka_unit_test(misuse_is_an_error),
        cmocka_unit_test(a_graph_that_is_too_large_is_an_error),
        cmocka_unit_test(an_interruption_ends_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}
