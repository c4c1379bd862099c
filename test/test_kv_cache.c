/* test/test_kv_cache.c: the positions that a query attends to in each kind of layer, and how far a
 * sequence can be truncated: sliding and chunked windows, whose sizes in real models exceed what
 * tiny models evaluate. */
#include "test/support.h"

#include "models/state/state.h"

enum { WINDOW = 8, N_CTX = 128, N_BATCH = 4, MANY = 100 };

/* A state of one layer, and the inputs of one token. */
struct world {
    struct model_layer layer;
    struct model_params params;
    struct model_state state;
    int32_t slot, range[4];
    struct engine_tensor slots, ranges;
    struct model_state_inputs inputs;
};

static void open_world(struct world *w, uint32_t window, bool chunked)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    const struct model_state_options options = {
        .n_seq = 2, .n_ctx = N_CTX, .n_batch = N_BATCH, .type_k = f32, .type_v = f32};
    *w = (struct world){.layer.kv = {1, 4, 4, window, chunked}};
    w->params = (struct model_params){.n_layer = 1, .n_pass = 1, .layer = &w->layer};
    assert_true(model_state_init(&w->state, &w->params, &options, &err));
    w->slots.data = (char *)&w->slot;
    w->ranges.data = (char *)w->range;
    const enum model_kv_kind kind = window ? MODEL_KV_SLIDING : MODEL_KV_FULL;
    w->inputs.kv.slot[kind] = &w->slots;
    w->inputs.kv.range[kind] = &w->ranges;
}

/* The first position that the next token of sequence 0 attends to. */
static int32_t next_sees(struct world *w)
{
    const uint32_t position = model_state_append(&w->state, 0, 1);
    model_state_fill_inputs(&w->state, &w->inputs, &(struct model_place){.position = position});
    assert_int_equal(w->range[0], 0);
    assert_int_equal(w->range[2], position + 1);
    return w->range[1];
}

static void queries_see_what_the_rule_says(void **state)
{
    struct world w;
    (void)state;
    for (int rule = 0; rule < 3; rule++) {
        open_world(&w, rule ? WINDOW : 0, rule == 2);
        for (int32_t p = 0; p < MANY; p++) {
            const int32_t sliding = p < WINDOW ? 0 : p - WINDOW + 1;
            assert_int_equal(next_sees(&w), rule == 0 ? 0 : rule == 1 ? sliding : p - p % WINDOW);
        }
        model_state_free(&w.state);
    }
}

/* A sequence is truncated to a position whose keys are all still stored, or to the start. */
static void sequences_go_back_as_far_as_their_keys_are_kept(void **state)
{
    struct world w;
    (void)state;
    for (uint32_t length = MANY; length > 0; length--) {
        open_world(&w, WINDOW, true);
        for (int p = 0; p < MANY; p++) next_sees(&w);
        const uint32_t oldest = w.state.kv.slots[MODEL_KV_SLIDING].oldest[0];
        assert_in_range(oldest, 1, MANY - WINDOW - N_BATCH);
        const uint32_t sees = length - length % WINDOW;
        const uint32_t left = sees >= oldest ? length : 0;
        assert_int_equal(model_state_fork(&w.state, 0, 1, length), left);
        assert_int_equal(model_state_truncate(&w.state, 0, length), left);
        assert_int_equal(next_sees(&w), left ? sees : 0);
        model_state_free(&w.state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_see_what_the_rule_says),
        cmocka_unit_test(sequences_go_back_as_far_as_their_keys_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
