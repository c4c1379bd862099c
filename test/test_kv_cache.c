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

/* This machine's memory. */
static const struct engine_place *host(void)
{
    static struct engine *engine;
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    options.n_threads = 1;
    if (!engine) engine = engine_new(&options, &err);
    assert_non_null(engine);
    return &engine->place[0];
}

static void open_world(struct world *w, uint32_t window, bool chunked)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    const struct model_state_options options = {.n_seq = 2,
                                                .n_ctx = N_CTX,
                                                .n_batch = N_BATCH,
                                                .type_k = f32,
                                                .type_v = f32,
                                                .host = host()};
    *w = (struct world){
        .layer = {
            .kv = {.n_head = 1, .size_k = 4, .size_v = 4, .window = window, .chunked = chunked},
            .place = host()}};
    w->params = (struct model_params){.n_layer = 1, .n_run = 1, .layer = &w->layer};
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

static void queries_attend_to_the_keys_of_their_range(void **state)
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

/* Where tokens attend to later ones, a window reaches half its size to each side, within the text.
 */
static void queries_of_encoders_see_both_sides(void **state)
{
    struct world w;
    (void)state;
    for (uint32_t window = 0; window <= WINDOW + 1; window += window ? 1 : WINDOW)
        for (uint32_t length = 1; length <= 20; length++) {
            open_world(&w, window, false);
            w.state.kv.both = true;
            model_state_append(&w.state, 0, length);
            for (uint32_t p = 0; p < length; p++) {
                const uint32_t half = window ? window / 2 : MANY;
                model_state_fill_inputs(&w.state, &w.inputs, &(struct model_place){.position = p});
                assert_int_equal(w.range[1], p > half ? p - half : 0);
                assert_int_equal(w.range[2], p + half + 1 < length ? p + half + 1 : length);
                assert_int_equal(w.range[2] - 1 - w.range[3], p); /* its own position */
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

/* Opens a state of sequences in the int16-quantized form. */
static void open_codes(struct world *w)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct quant_type *f16 = quant_type_by_id(QUANT_F16);
    const struct model_state_options options = {.n_seq = 2,
                                                .n_ctx = N_CTX,
                                                .n_batch = N_BATCH,
                                                .type_k = f16,
                                                .type_v = f16,
                                                .host = host()};
    *w =
        (struct world){.layer = {.kv = {.n_head = 1, .size_k = 16, .size_v = 16}, .place = host()}};
    w->params = (struct model_params){.n_layer = 1, .n_run = 1, .layer = &w->layer};
    assert_true(model_state_init(&w->state, &w->params, &options, &err));
}

/* Attention reads whole groups of slots in place. A fork shares those that are complete and copies
 * the last, incomplete one, so that both sequences fill a group of their own: the positions of
 * each group have consecutive slots from a multiple of its size on. */
static void a_fork_copies_only_its_incomplete_group(void **state)
{
    enum { ALIGN = ENGINE_KV_Q16_ALIGN };
    struct world w;
    (void)state;
    for (uint32_t length = 1; length + 1 < N_CTX; length++) {
        open_codes(&w);
        model_state_append(&w.state, 0, length);
        assert_int_equal(model_state_fork(&w.state, 0, 1, length), length);
        model_state_append(&w.state, 0, 1);
        model_state_append(&w.state, 1, 1);
        const struct model_kv_slots *slots = &w.state.kv.slots[MODEL_KV_FULL];
        const int32_t *a = slots->table, *b = slots->table + N_CTX;
        const uint32_t complete = length / ALIGN * ALIGN;
        for (uint32_t p = 0; p <= length; p++) {
            assert_int_equal(a[p] == b[p], p < complete);
            assert_int_equal(slots->refcount[a[p]], p < complete ? 2 : 1);
            assert_int_equal((uint32_t)a[p] % ALIGN, p % ALIGN);
            assert_int_equal((uint32_t)b[p] % ALIGN, p % ALIGN);
            if (p % ALIGN) assert_int_equal(b[p], b[p - 1] + 1);
        }
        model_state_free(&w.state);
    }
}

static uint32_t n_used(const struct model_kv_slots *slots)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < slots->count; i++) n += slots->refcount[i] > 0;
    return n;
}

/* A slot is free as soon as no sequence has its position, or its window has passed it. */
static void slots_are_freed_when_nothing_can_attend_to_them(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 0, false);
    struct model_kv_slots *slots = &w.state.kv.slots[MODEL_KV_FULL];
    model_state_append(&w.state, 0, 40);
    assert_int_equal(model_state_fork(&w.state, 0, 1, 30), 30);
    assert_int_equal(n_used(slots), 40);
    model_state_truncate(&w.state, 0, 10);
    assert_int_equal(n_used(slots), 30); /* the fork has them */
    model_state_truncate(&w.state, 1, 5);
    assert_int_equal(n_used(slots), 10);
    model_state_truncate(&w.state, 0, 0);
    model_state_truncate(&w.state, 1, 0);
    assert_int_equal(n_used(slots), 0);
    model_state_free(&w.state);
    open_world(&w, WINDOW, false);
    slots = &w.state.kv.slots[MODEL_KV_SLIDING];
    for (uint32_t p = 0; p < MANY; p++) {
        model_state_append(&w.state, 0, 1);
        assert_int_equal(n_used(slots), p + 1 < slots->capacity ? p + 1 : slots->capacity);
        assert_true(slots->capacity >= WINDOW + N_BATCH); /* a batch is written before it is read */
    }
    model_state_free(&w.state);
}

/* A sliding window attends to the last WINDOW keys: a sequence goes back to the position whose
 * first key is the oldest that is kept, not further. */
static void a_window_goes_back_to_exactly_its_oldest_key(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, WINDOW, false);
    model_state_append(&w.state, 0, MANY);
    const uint32_t oldest = w.state.kv.slots[MODEL_KV_SLIDING].oldest[0];
    assert_true(oldest > 0);
    /* The next token, at this position, attends to `oldest` first. */
    const uint32_t length = oldest + WINDOW - 1;
    assert_int_equal(model_state_fork(&w.state, 0, 1, length - 1), 0);
    assert_int_equal(model_state_fork(&w.state, 0, 1, length), length);
    assert_int_equal(model_state_truncate(&w.state, 0, length), length);
    assert_int_equal(next_sees(&w), oldest);
    model_state_free(&w.state);
}

static void a_window_has_room_for_a_batch(void **state)
{
    struct world w;
    (void)state;
    for (uint32_t window = 1; window < N_CTX - N_BATCH; window++) {
        open_world(&w, window, false);
        const uint32_t capacity = w.state.kv.slots[MODEL_KV_SLIDING].capacity;
        assert_true(capacity >= window + N_BATCH);
        assert_true(capacity < window + N_BATCH + ENGINE_KV_Q16_ALIGN);
        model_state_free(&w.state);
    }
}

static void a_sequence_truncated_to_0_begins_again_with_all_its_window(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, WINDOW, false);
    const struct model_kv_slots *slots = &w.state.kv.slots[MODEL_KV_SLIDING];
    model_state_append(&w.state, 0, MANY);
    model_state_truncate(&w.state, 0, 0);
    model_state_append(&w.state, 0, 10);
    assert_int_equal(model_state_truncate(&w.state, 0, 5), 5);
    assert_int_equal(n_used(slots), 5);
    assert_int_equal(next_sees(&w), 0);
    model_state_free(&w.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_attend_to_the_keys_of_their_range),
        cmocka_unit_test(queries_of_encoders_see_both_sides),
        cmocka_unit_test(sequences_go_back_as_far_as_their_keys_are_kept),
        cmocka_unit_test(a_fork_copies_only_its_incomplete_group),
        cmocka_unit_test(slots_are_freed_when_nothing_can_attend_to_them),
        cmocka_unit_test(a_window_goes_back_to_exactly_its_oldest_key),
        cmocka_unit_test(a_window_has_room_for_a_batch),
        cmocka_unit_test(a_sequence_truncated_to_0_begins_again_with_all_its_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
