/* test/test_token_loop.c: after the first token the loop that generates text allocates nothing:
 * evaluation, sampling, detokenizing and stop strings together, as `run` puts them together. */
#include "test/support.h"

#include "models/model.h"
#include "sample/sample.h"
#include "sample/stop.h"
#include "test/support_alloc.h"
#include "test/support_model.h"
#include "text/tokenizer/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- The loop ---- */

enum { N_TOKENS = 60, ROOM = 1 << 14 };

struct loop {
    struct gguf_file *file;
    struct engine *engine;
    struct model *model;
    struct model_session *session;
    struct text_tokenizer *tokenizer;
    struct sampler *sampler;
    struct sample_stop *stop;
    struct text_decoder decoder;
    struct base_buffer piece, shown;
};

static void open_loop(struct loop *l, const char *arch)
{
    static const char *const stops[] = {"never in this text"};
    struct base_error err = BASE_ERROR_INIT;
    struct support_model m = support_model_default(arch);
    struct engine_options engine = engine_options_default();
    struct model_session_options session = model_session_options_default();
    struct sample_options sample = sample_options_default();
    char path[64];
    snprintf(path, sizeof path, "/tmp/infer-%d-loop.gguf", (int)getpid());
    engine.n_threads = 2;
    session.n_ctx = 128;
    sample.repeat_penalty = 1.1f;
    assert_true(support_model_write(&m, path, &err));
    l->file = gguf_open(path, &err);
    unlink(path);
    l->engine = engine_new(&engine, &err);
    l->model = model_open(l->file, l->engine, &err);
    l->session = l->model ? model_session_new(l->model, &session, &err) : NULL;
    l->tokenizer = text_tokenizer_open(l->file, &err);
    l->sampler = sample_new(&sample, m.n_vocab, session.n_ctx, &err);
    l->stop = sample_stop_new(stops, 1, &err);
    if (!l->session || !l->tokenizer || !l->sampler || !l->stop) fail_msg("%s", err.text);
    text_decoder_init(&l->decoder, l->tokenizer, true, false);
    for (int i = 0; i < ROOM; i++) { /* as `run` does: room beforehand */
        base_buffer_add(&l->piece, "x", 1);
        base_buffer_add(&l->shown, "x", 1);
    }
}

static void close_loop(struct loop *l)
{
    base_buffer_free(&l->piece);
    base_buffer_free(&l->shown);
    sample_stop_free(l->stop);
    sample_free(l->sampler);
    text_tokenizer_close(l->tokenizer);
    model_session_free(l->session);
    model_close(l->model);
    engine_free(l->engine);
    gguf_close(l->file);
}

static int32_t step(struct loop *l, int32_t id)
{
    struct base_error err = BASE_ERROR_INIT;
    if (!model_eval(l->session, &id, 1, MODEL_LOGITS_LAST, NULL, NULL, &err))
        fail_msg("%s", err.text);
    id = sample_next(l->sampler, model_last_logits(l->session), &err);
    assert_true(id >= 0);
    sample_accept(l->sampler, id);
    base_buffer_clear(&l->piece);
    base_buffer_clear(&l->shown);
    text_decoder_add(&l->decoder, id, &l->piece);
    assert_int_equal(sample_stop_feed(l->stop, l->piece.data, l->piece.size, &l->shown), -1);
    return id;
}

static void no_allocation_after_the_first_token(void **state)
{
    static const char *const archs[] = {"llama", "qwen2", "qwen3", "gemma3"};
    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        struct loop l = {0};
        open_loop(&l, archs[i]);
        assert_true(atomic_load(&allocations) > 0); /* the wraps are in place */
        int32_t id = step(&l, 65);
        int before = atomic_load(&allocations);
        for (int n = 0; n < N_TOKENS; n++) id = step(&l, id);
        int more = atomic_load(&allocations) - before;
        if (more) fail_msg("%s: %d allocations", archs[i], more);
        close_loop(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_allocation_after_the_first_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
