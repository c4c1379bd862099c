/* test/test_blocks.c: texts of several blocks of compressed keys, of both lengths (DeepSeek-V4),
 * and models whose tokens depend on ids before them: sequences that are interleaved, forked, cut
 * back, saved and loaded have the same bytes as each by itself. */
#include "test/support.h"

#include "base/buffer.h"
#include "test/support_apart.h"
#include "test/support_files.h"
#include "test/support_model.h"
#include "test/support_random.h"
#include "test/support_session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_SEQ = 3, N_CTX = 320, N_BATCH = 32, N_VOCAB = 300, COARSE = 128 };

struct setting {
    const char *fixture;
    int threads;
    enum quant_id cache;
    enum support_apart apart;
};

static const struct setting settings[] = {{"deepseek4", 2, QUANT_F16, SUPPORT_HERE},
                                          {"deepseek4-yarn", 1, QUANT_F32, SUPPORT_ALL},
                                          {"deepseek4", 3, QUANT_Q8_0, SUPPORT_HALF}};

/* Short runs use the first setting. */
static size_t n_settings(void)
{
    return support_quick() ? 1 : sizeof settings / sizeof *settings;
}

struct world {
    struct support_session many, one; /* N_SEQ sequences; one thread and one sequence */
    uint64_t random;
    int32_t ids[N_SEQ][N_CTX];
    uint32_t length[N_SEQ];
    float row[N_SEQ][N_CTX][N_VOCAB]; /* the logits of each position */
    float batch[N_CTX][N_VOCAB];      /* those of the last call */
    struct base_buffer saved;
};

/* Writes the fixture, with these keys if they are not NULL, and sets its path. */
static void write_model(const char *fixture, const char *keys, char path[64])
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_model m = support_model_default(fixture);
    if (keys) m.keys = keys;
    snprintf(path, 64, "/tmp/infer-blocks-%d.gguf", (int)getpid());
    if (!support_model_write(&m, path, &err)) fail_msg("%s", err.text);
}

static struct world *open_world(const struct setting *s)
{
    char path[64];
    struct engine_options engine = engine_options_default();
    struct model_session_options o = {
        .n_seq = N_SEQ, .n_ctx = N_CTX, .n_batch = N_BATCH, .type_k = s->cache, .type_v = s->cache};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    write_model(s->fixture, NULL, path);
    engine.n_threads = s->threads;
    support_apart_now = s->apart;
    support_session_open(&w->many, path, &engine, &o);
    support_apart_now = SUPPORT_HERE;
    engine.n_threads = 1;
    o.n_seq = 1;
    o.n_batch = N_CTX;
    support_session_open(&w->one, path, &engine, &o);
    unlink(path);
    return w;
}

static void close_world(struct world *w)
{
    support_session_close(&w->many);
    support_session_close(&w->one);
    base_buffer_free(&w->saved);
    free(w);
}

/* Evaluates random tokens until the sequences have these lengths, in random runs of each sequence
 * and in batches of random sizes. */
static void grow(struct world *w, const uint32_t to[N_SEQ])
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_rows rows = {w->batch[0], N_VOCAB};
    for (bool all = false; !all;) {
        struct model_token tokens[2 * N_BATCH];
        uint32_t n = 0, want = 1 + support_random_below(&w->random, 2 * N_BATCH), first[N_SEQ];
        memcpy(first, w->length, sizeof first);
        for (uint32_t seq = 0; n < want && !all;) {
            all = true;
            for (uint32_t q = 0; q < N_SEQ; q++) all = all && w->length[q] >= to[q];
            if (support_random_below(&w->random, 3) == 0)
                seq = support_random_below(&w->random, N_SEQ);
            if (w->length[seq] >= to[seq]) {
                seq = (seq + 1) % N_SEQ;
                continue;
            }
            const int32_t id = (int32_t)support_random_below(&w->random, N_VOCAB);
            tokens[n++] = (struct model_token){.id = id, .seq = seq, .wants_logits = true};
            w->ids[seq][w->length[seq]++] = id;
        }
        if (!model_eval_batch(w->many.session, tokens, n, support_rows_keep, &rows, &err))
            fail_msg("%s", err.text);
        for (uint32_t i = 0; i < n; i++)
            memcpy(w->row[tokens[i].seq][first[tokens[i].seq]++], w->batch[i], sizeof w->batch[i]);
    }
}

/* Compares all logits of the sequences with those of each by itself. */
static void check(struct world *w)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_rows rows = {w->batch[0], N_VOCAB};
    for (uint32_t seq = 0; seq < N_SEQ; seq++) {
        assert_int_equal(model_seq_length(w->many.session, seq), w->length[seq]);
        model_session_truncate(w->one.session, 0);
        if (!model_eval(w->one.session, w->ids[seq], w->length[seq], MODEL_LOGITS_ALL,
                        support_rows_keep, &rows, &err))
            fail_msg("%s", err.text);
        for (uint32_t i = 0; i < w->length[seq]; i++)
            if (memcmp(w->row[seq][i], w->batch[i], sizeof w->batch[i]) != 0)
                fail_msg("sequence %u, position %u differs from the sequence alone", seq, i);
    }
}

/* Sequence `to` is now the first `length` tokens of `from`. */
static void is_copy(struct world *w, uint32_t from, uint32_t to, uint32_t length)
{
    memmove(w->ids[to], w->ids[from], length * sizeof w->ids[0][0]);
    memmove(w->row[to], w->row[from], length * sizeof w->row[0][0]);
    w->length[to] = length;
}

static void save(struct world *w, struct model_session *s, uint32_t seq)
{
    struct base_error err = BASE_ERROR_INIT;
    base_buffer_clear(&w->saved);
    if (!model_seq_save(s, seq, &(struct model_sink){support_saved_keep, &w->saved}, &err))
        fail_msg("%s", err.text);
    assert_false(w->saved.failed);
}

static uint32_t load(struct world *w, struct model_session *s, uint32_t seq, uint32_t most)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_saved from = {&w->saved, 0};
    const struct model_source source = {support_saved_read, support_saved_pass_over, {&from}, 1};
    const uint32_t n = model_seq_load(s, seq, 0, most, &source, &err);
    assert_int_equal(err.code, BASE_OK);
    return n;
}

/* ---- Tests ---- */

static void interleaved_sequences_are_each_what_they_are_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_settings(); i++) {
        struct world *w = open_world(&settings[i]);
        grow(w, (const uint32_t[]){N_CTX, 2 * COARSE + 1, 2 * COARSE});
        check(w);
        close_world(w);
    }
}

/* What makes the key of the next block is kept for a block of each length, and a batch more. */
static void a_sequence_is_cut_back_and_forked_within_its_last_two_blocks(void **state)
{
    static const uint32_t lengths[][2] = {{257, 256}, {255, 254}, {129, 128}};
    (void)state;
    for (size_t i = 0; i < n_settings(); i++) {
        struct world *w = open_world(&settings[i]);
        grow(w, (const uint32_t[]){270, 0, 0});
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            const uint32_t forked = lengths[k][0], cut = lengths[k][1];
            assert_int_equal(model_seq_fork(w->many.session, 0, 1, forked), forked);
            is_copy(w, 0, 1, forked);
            assert_int_equal(model_seq_fork(w->many.session, 0, 2, 270), 270);
            assert_int_equal(model_seq_truncate(w->many.session, 2, cut), cut);
            is_copy(w, 0, 2, cut);
            grow(w, (const uint32_t[]){270 + (uint32_t)k, forked + 5, cut + 9});
            check(w);
        }
        assert_int_equal(model_seq_fork(w->many.session, 0, 1, COARSE - 1), 0);
        assert_int_equal(model_seq_length(w->many.session, 1), 0);
        close_world(w);
    }
}

static void a_loaded_sequence_or_its_beginning_goes_on_as_the_saved_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_settings(); i++) {
        struct world *w = open_world(&settings[i]);
        grow(w, (const uint32_t[]){300, 40, 1});
        save(w, w->many.session, 0);
        assert_int_equal(load(w, w->many.session, 1, 300), 300);
        is_copy(w, 0, 1, 300);
        assert_int_equal(load(w, w->many.session, 2, 257), 257);
        is_copy(w, 0, 2, 257);
        struct base_buffer first = w->saved;
        assert_int_equal(load(w, w->one.session, 0, 300), 300);
        w->saved = BASE_BUFFER_INIT;
        save(w, w->one.session, 0);
        assert_int_equal(w->saved.size, first.size);
        assert_memory_equal(w->saved.data, first.data, first.size);
        base_buffer_free(&first);
        assert_int_equal(load(w, w->one.session, 0, 255), 0); /* needs position 128 */
        grow(w, (const uint32_t[]){310, N_CTX, 275});
        check(w);
        close_world(w);
    }
}

/* Keys of an indexer for blocks, n-grams, adapters that ids choose, two stacks of layers. A state
 * that cannot be shortened has a snapshot at most N_BATCH tokens before. */
static void beginnings_of_texts_go_on_as_such_in_models_of_every_state(void **state)
{
    static const struct setting all[] = {{"qwen4exp", 2, QUANT_F16, SUPPORT_HERE},
                                         {"glm5-next", 1, QUANT_F16, SUPPORT_HALF},
                                         {"graniteswitch", 1, QUANT_F32, SUPPORT_ALL},
                                         {"hrm_text", 1, QUANT_F16, SUPPORT_HERE}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct world *w = open_world(&all[i]);
        grow(w, (const uint32_t[]){70, 0, 9});
        save(w, w->many.session, 0);
        const uint32_t n = load(w, w->many.session, 1, 61);
        assert_true(n > 61 - N_BATCH && n <= 61);
        is_copy(w, 0, 1, n);
        const uint32_t forked = model_seq_fork(w->many.session, 0, 2, 66);
        assert_true(forked > 66 - N_BATCH && forked <= 66);
        is_copy(w, 0, 2, forked);
        grow(w, (const uint32_t[]){75, 90, 73});
        check(w);
        close_world(w);
    }
}

/* The function of the router has one value for this architecture; a file need not name it. */
static void a_file_without_the_gating_function_has_the_usual_one(void **state)
{
    static const char key[] = "expert_gating_func=4 ";
    char path[64], keys[1024];
    const struct model_session_options o = model_session_options_default();
    const struct engine_options engine = engine_options_default();
    struct base_error err = BASE_ERROR_INIT;
    struct support_session s;
    const char *all = support_model_default("deepseek4").keys, *at = strstr(all, key);
    float *row[2] = {calloc(N_VOCAB, sizeof(float)), calloc(N_VOCAB, sizeof(float))};
    (void)state;
    assert_true(at && row[0] && row[1]);
    snprintf(keys, sizeof keys, "%.*s%s", (int)(at - all), all, at + sizeof key - 1);
    for (int i = 0; i < 2; i++) {
        write_model("deepseek4", i ? keys : NULL, path);
        support_session_open(&s, path, &engine, &o);
        unlink(path);
        if (!model_eval(s.session, (const int32_t[]){1, 2, 3}, 3, MODEL_LOGITS_LAST, NULL, NULL,
                        &err))
            fail_msg("%s", err.text);
        memcpy(row[i], model_last_logits(s.session), N_VOCAB * sizeof(float));
        support_session_close(&s);
    }
    assert_memory_equal(row[0], row[1], N_VOCAB * sizeof(float));
    free(row[0]);
    free(row[1]);
}

/* Opens the model with one number of its first table of experts replaced; the error is *err. */
static void open_with_expert(int32_t expert, struct base_error *err)
{
    static const char table[] = "blk.0.ffn_gate_tid2eid.weight";
    const struct engine_options options = engine_options_default();
    struct engine *engine = engine_new(&options, err);
    char path[64];
    write_model("deepseek4", NULL, path);
    struct gguf_file *file = gguf_open(path, err);
    assert_true(engine && file);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)gguf_tensor_find(file, table)->offset + 20, SEEK_SET), 0);
    assert_int_equal(fwrite(&expert, sizeof expert, 1, f), 1);
    fclose(f);
    gguf_close(file);
    file = gguf_open(path, err);
    unlink(path);
    model_close(model_open(file, engine, NULL, err));
    if (err->code) assert_string_equal(err->item, table);
    gguf_close(file);
    engine_free(engine);
}

static void a_table_with_experts_that_do_not_exist_is_refused(void **state)
{
    static const int32_t wrong[] = {-1, 8, INT32_MIN};
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    open_with_expert(7, &err);
    assert_int_equal(err.code, BASE_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err = (struct base_error)BASE_ERROR_INIT;
        open_with_expert(wrong[i], &err);
        assert_int_equal(err.code, BASE_MODEL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interleaved_sequences_are_each_what_they_are_alone),
        cmocka_unit_test(a_sequence_is_cut_back_and_forked_within_its_last_two_blocks),
        cmocka_unit_test(a_loaded_sequence_or_its_beginning_goes_on_as_the_saved_one),
        cmocka_unit_test(beginnings_of_texts_go_on_as_such_in_models_of_every_state),
        cmocka_unit_test(a_file_without_the_gating_function_has_the_usual_one),
        cmocka_unit_test(a_table_with_experts_that_do_not_exist_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
