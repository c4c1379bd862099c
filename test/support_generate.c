/* test/support_generate.c: see test/support_generate.h. */
#include "test/support_generate.h"
#include "test/support.h"
#include "test/support_apart.h"
#include "test/support_model.h"
#include <stdio.h>
#include <unistd.h>

void support_generate_open(struct support_generate *s, const char *arch, uint32_t n_seq,
                           uint32_t n_ctx)
{
    support_generate_open_with(s, arch, 1, n_seq, n_ctx);
}

void support_generate_open_with(struct support_generate *s, const char *arch, int n_threads,
                                uint32_t n_seq, uint32_t n_ctx)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_model m = support_model_default(arch);
    struct engine_options engine = engine_options_default();
    struct model_session_options session = model_session_options_default();
    char path[64];
    snprintf(path, sizeof path, "/tmp/infer-%d-generate.gguf", (int)getpid());
    engine.n_threads = n_threads;
    session.n_seq = n_seq;
    session.n_ctx = n_ctx;
    *s = (struct support_generate){.n_vocab = m.n_vocab};
    if (!support_model_write(&m, path, &err)) fail_msg("%s: %s", arch, err.text);
    s->file = gguf_open(path, &err);
    unlink(path);
    s->engine = engine_new(&engine, &err);
    s->model = s->file && s->engine
                   ? support_apart_open(s->file, s->engine, support_apart_now, &err)
                   : NULL;
    s->session = s->model ? model_session_new(s->model, &session, &err) : NULL;
    s->tokenizer = s->session ? text_tokenizer_open(s->file, &err) : NULL;
    if (!s->tokenizer) fail_msg("%s: %s", arch, err.text);
    s->parts = (struct generate_model){
        .model = s->model, .tokenizer = s->tokenizer, .session = s->session};
}

void support_generate_add_drafter(struct support_generate *s, const char *name)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct support_model m = support_model_default(name);
    char path[64];
    snprintf(path, sizeof path, "/tmp/infer-%d-drafter.gguf", (int)getpid());
    if (!support_model_write(&m, path, &err)) fail_msg("%s: %s", name, err.text);
    s->drafter_file = gguf_open(path, &err);
    unlink(path);
    s->drafter = s->drafter_file ? model_open_drafter(s->drafter_file, s->engine, &err) : NULL;
    if (!s->drafter || !model_drafter_fits(s->drafter, s->model, &err))
        fail_msg("%s: %s: %s", name, err.item, err.text);
}

void support_generate_close(struct support_generate *s)
{
    text_tokenizer_close(s->tokenizer);
    model_session_free(s->session);
    model_close(s->drafter);
    gguf_close(s->drafter_file);
    model_close(s->model);
    engine_free(s->engine);
    gguf_close(s->file);
    *s = (struct support_generate){0};
}

struct generate_request *support_request(const struct support_generate *s,
                                         const struct generate_options *options, uint32_t seq)
{
    struct base_error err = BASE_ERROR_INIT;
    struct generate_request *r = generate_request_new(options, &s->parts, seq, &err);
    if (!r) fail_msg("%s", err.text);
    return r;
}

bool support_request_step(struct generate_request *r, struct generate_piece *piece)
{
    enum { MOST = 512 };
    struct base_error err = BASE_ERROR_INIT;
    struct model_session *session = generate_request_session(r);
    struct model_token tokens[MOST];
    size_t n;
    const int32_t *ids = generate_request_next_ids(r, &n);
    if (n == 0) return false;
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (struct model_token){ids[i], generate_request_seq(r), i + 1 == n};
    if (!model_eval_batch(session, tokens, n, NULL, NULL, &err) ||
        !generate_request_take(r, model_last_logits(session), piece, &err))
        fail_msg("%s", err.text);
    return true;
}
