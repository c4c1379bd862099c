/* test/test_snapshots.c: which snapshots of a recurrent state a sequence keeps, and so how far it
 * can be cut back: borders of prompts, the beginning of a batch, and, when there are too many,
 * those that take the most tokens to recompute. */
#include "test/support.h"

#include "engine/backend.h"
#include "models/state/state.h"

enum { N_CTX = 4096 };

struct world {
    struct model_layer layer;
    struct model_params params;
    struct model_state state;
};

/* A state of rows * cols floats, without memory. */
static void open_world(struct world *w, uint32_t rows, uint32_t cols)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    static const struct engine_place nowhere = {.backend = &engine_backend_plan};
    const struct model_state_options options = {
        .n_seq = 2, .n_ctx = N_CTX, .n_batch = 64, .type_k = f32, .type_v = f32, .host = &nowhere};
    *w = (struct world){.layer.recurrent = {.n_head = 1, .rows = rows, .cols = cols}};
    w->params = (struct model_params){.n_layer = 1, .n_run = 1, .layer = &w->layer};
    assert_true(model_state_init(&w->state, &w->params, &options, &err));
}

/* A batch of n tokens of a sequence. */
static void run(struct world *w, uint32_t seq, uint32_t n)
{
    model_state_begin(&w->state);
    model_state_append(&w->state, seq, n);
}

/* The length from which sequence 0, or a fork of it, can continue at or below `length`. */
static uint32_t back_to(struct world *w, uint32_t length)
{
    const uint32_t held = model_state_fork(&w->state, 0, 1, length);
    assert_int_equal(model_state_truncate(&w->state, 1, 0), 0);
    return held;
}

static void as_many_snapshots_are_kept_as_fit_256_MB(void **state)
{
    static const struct {
        uint32_t rows, cols, n;
    } cases[] = {
        {4, 4, 16},       /* at most 16 */
        {2048, 2048, 16}, /* 16 MB each */
        {4096, 2048, 8},  /* 32 MB */
        {4096, 4096, 4},  /* 64 MB */
        {8192, 8192, 4},  /* 256 MB: at least 4 */
    };
    struct world w;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_world(&w, cases[i].rows, cases[i].cols);
        for (uint32_t k = 0; k < 40; k++) run(&w, 0, 10);
        uint32_t n = 0;
        for (uint32_t at = 400; at > 0; at--) n += back_to(&w, at) == at;
        assert_int_equal(n, cases[i].n);
        model_state_free(&w.state);
    }
}

static void a_sequence_goes_back_to_the_borders_of_its_prompts(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 4, 4);
    run(&w, 0, 10);                            /* a prompt */
    for (int i = 0; i < 5; i++) run(&w, 0, 1); /* a text: 15 tokens */
    assert_int_equal(back_to(&w, 15), 15);
    assert_int_equal(back_to(&w, 14), 14); /* the beginning of the latest batch */
    assert_int_equal(back_to(&w, 13), 10); /* single tokens are kept until the next batch */
    run(&w, 0, 7);                         /* a prompt: its beginning becomes a border */
    run(&w, 0, 1);
    run(&w, 0, 1);
    assert_int_equal(back_to(&w, 23), 23);
    assert_int_equal(back_to(&w, 22), 22);
    assert_int_equal(back_to(&w, 21), 15);
    assert_int_equal(back_to(&w, 14), 10);
    assert_int_equal(back_to(&w, 9), 0);
    model_state_free(&w.state);
}

static void the_snapshot_that_is_recomputed_fastest_is_evicted(void **state)
{
    enum { KEPT = 4 };
    static const uint32_t prompts[] = {30, 20, 5, 40, 50};
    struct world w;
    (void)state;
    open_world(&w, 4096, 4096); /* 4 snapshots */
    for (int i = 0; i < KEPT; i++) run(&w, 0, prompts[i]);
    for (uint32_t at = 30; at < 95; at++)
        assert_int_equal(back_to(&w, at), at < 50 ? 30 : at < 55 ? 50 : 55);
    run(&w, 0, prompts[KEPT]);
    /* 5 tokens after 50: these were the fewest. */
    assert_int_equal(back_to(&w, 55), 50);
    assert_int_equal(back_to(&w, 49), 30);
    run(&w, 0, 60);
    /* Lengths 30, 50, 95, 145: 30, 20, 45 and 50 tokens apart. */
    assert_int_equal(back_to(&w, 94), 30);
    assert_int_equal(back_to(&w, 144), 95);
    assert_int_equal(back_to(&w, 204), 145);
    model_state_free(&w.state);
}

/* The latest batch can always be undone, even if its beginning is near another snapshot. */
static void the_beginning_of_the_latest_batch_is_kept(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 4096, 4096);
    for (int i = 0; i < 3; i++) run(&w, 0, 100);
    run(&w, 0, 2);
    model_state_begin(&w.state);
    for (int i = 0; i < 6; i++) model_state_append(&w.state, 0, 3); /* runs of one batch */
    assert_int_equal(back_to(&w, 302), 302);
    assert_int_equal(model_state_truncate(&w.state, 0, 302), 302);
    model_state_free(&w.state);
}

static void a_fork_has_the_snapshots_up_to_its_length_and_shares_their_slots(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 4, 4);
    for (int i = 0; i < 3; i++) run(&w, 0, 10);
    const struct model_recurrent *r = &w.state.recurrent;
    assert_int_equal(model_state_fork(&w.state, 0, 1, 25), 20);
    assert_int_equal(r->n_snapshot[1], 2);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(r->refcount[r->snapshot[i].slot], i < 2 ? 2 : 1);
    assert_int_equal(model_state_truncate(&w.state, 1, 15), 10);
    assert_int_equal(model_state_truncate(&w.state, 0, 0), 0);
    uint32_t n_used = 0;
    for (uint32_t i = 0; i < r->count; i++) n_used += r->refcount[i];
    assert_int_equal(n_used, 1); /* that of the fork's 10 tokens */
    model_state_free(&w.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_snapshots_are_kept_as_fit_256_MB),
        cmocka_unit_test(a_sequence_goes_back_to_the_borders_of_its_prompts),
        cmocka_unit_test(the_snapshot_that_is_recomputed_fastest_is_evicted),
        cmocka_unit_test(the_beginning_of_the_latest_batch_is_kept),
        cmocka_unit_test(a_fork_has_the_snapshots_up_to_its_length_and_shares_their_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
