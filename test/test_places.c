/* test/test_places.c: a model whose layers lie on a device with its own memory, half of them or
 * all, gives the same bytes as in this machine's memory: logits of prompts and steps with every
 * fixture, rows of logits beyond one piece of the output product, saved and loaded sequences,
 * forks. (More sequences: test_sequences.c; drafts: test_draft.c.) */
#include "test/support.h"

#include "base/buffer.h"
#include "test/support_apart.h"
#include "test/support_model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    N_CTX = 128,
    SOURCE = 3 /* tokens for an encoder before a decoder */,
    PROMPT = 13,
    STEPS = 3,
    N_IDS = PROMPT + STEPS
};

struct opened {
    struct gguf_file *file;
    struct engine *engine;
    struct model *model;
    struct model_session *session;
};

static void open_model(struct opened *o, const struct support_model *m, enum support_apart how,
                       uint32_t n_batch)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct model_session_options session = model_session_options_default();
    char path[64];
    snprintf(path, sizeof path, "/tmp/infer-places-%d.gguf", (int)getpid());
    options.n_threads = 1;
    session.n_ctx = N_CTX;
    session.n_batch = n_batch;
    session.n_seq = 2;
    session.whole = true;
    if (!support_model_write(m, path, &err)) fail_msg("%s: %s", m->arch, err.text);
    o->file = gguf_open(path, &err);
    unlink(path);
    o->engine = engine_new(&options, &err);
    o->model = o->file && o->engine ? support_apart_open(o->file, o->engine, how, &err) : NULL;
    session.hidden = o->model && !model_facts(o->model)->writes;
    o->session = o->model ? model_session_new(o->model, &session, &err) : NULL;
    if (!o->session) fail_msg("%s: %s: %s", m->arch, err.item, err.text);
}

static void close_model(struct opened *o)
{
    model_session_free(o->session);
    model_close(o->model);
    engine_free(o->engine);
    gguf_close(o->file);
}

struct rows {
    struct base_buffer bytes;
    size_t row;
};

static bool add_rows(void *user, uint64_t first, uint64_t n, const float *logits,
                     struct base_error *err)
{
    struct rows *r = user;
    (void)first;
    (void)err;
    base_buffer_add(&r->bytes, logits, n * r->row);
    return !r->bytes.failed;
}

static int32_t id_at(const struct opened *o, uint64_t i)
{
    const struct model_facts *facts = model_facts(o->model);
    if (facts->start_id >= 0 && i == SOURCE) return facts->start_id;
    return (int32_t)((i * 7 + 11) % facts->n_vocab);
}

/* Evaluates n ids from the sequence's length on (of an encoder from 0 on, as a text of its own),
 * and adds all their logits, or hidden states, to *rows. */
static void eval(struct opened *o, uint32_t seq, uint64_t n, struct rows *rows)
{
    struct base_error err = BASE_ERROR_INIT;
    struct model_token tokens[N_CTX];
    const struct model_facts *facts = model_facts(o->model);
    if (!facts->writes) model_seq_truncate(o->session, seq, 0);
    const uint32_t from = model_seq_length(o->session, seq);
    rows->row = (facts->writes ? facts->n_vocab : facts->n_embd) * sizeof(float);
    for (uint64_t i = 0; i < n; i++)
        tokens[i] = (struct model_token){.id = id_at(o, from + i),
                                         .seq = seq,
                                         .wants_logits = facts->start_id < 0 || from + i >= SOURCE};
    if (!model_eval_batch(o->session, tokens, n, add_rows, rows, &err))
        fail_msg("%s: %s: %s", model_facts(o->model)->arch, err.item, err.text);
}

static void check_same(struct rows *got, const struct rows *want, const char *name, const char *how)
{
    assert_int_equal(got->bytes.size, want->bytes.size);
    if (memcmp(got->bytes.data, want->bytes.data, want->bytes.size) != 0)
        fail_msg("%s, %s apart: the logits differ", name, how);
    base_buffer_free(&got->bytes);
}

static void every_model_gives_the_same_bytes_on_another_device(void **state)
{
    const struct support_apart_counts before = support_apart_counts();
    (void)state;
    for (const struct support_fixture *f = support_fixtures; f->name; f++) {
        const struct support_model m = support_model_of(f);
        struct rows want = {.bytes = BASE_BUFFER_INIT};
        for (int how = SUPPORT_HERE; how < SUPPORT_APARTS; how++) {
            struct rows got = {.bytes = BASE_BUFFER_INIT};
            struct opened o;
            open_model(&o, &m, how, 5);
            eval(&o, 0, PROMPT, how ? &got : &want);
            for (int i = 0; i < STEPS; i++) eval(&o, 0, 1, how ? &got : &want);
            close_model(&o);
            if (how) check_same(&got, &want, f->name, support_apart_names[how]);
        }
        base_buffer_free(&want.bytes);
    }
    const struct support_apart_counts after = support_apart_counts();
    assert_true(after.runs > before.runs + 100);
    assert_true(after.bytes > before.bytes);
}

static void logits_of_many_tokens_are_the_same_in_pieces(void **state)
{
    const struct support_model m = support_model_default("llama");
    struct rows want = {.bytes = BASE_BUFFER_INIT};
    (void)state;
    for (int how = SUPPORT_HERE; how < SUPPORT_APARTS; how++) {
        struct rows got = {.bytes = BASE_BUFFER_INIT};
        struct opened o;
        open_model(&o, &m, how, N_CTX);
        eval(&o, 0, 100, how ? &got : &want);
        close_model(&o);
        if (how) check_same(&got, &want, m.arch, support_apart_names[how]);
    }
    base_buffer_free(&want.bytes);
}

struct saved {
    struct base_buffer bytes;
    size_t at;
};

static bool write_saved(void *user, const void *bytes, uint64_t n, struct base_error *err)
{
    struct saved *s = user;
    (void)err;
    base_buffer_add(&s->bytes, bytes, n);
    return !s->bytes.failed;
}

static bool read_saved(void *user, void *bytes, uint64_t n, struct base_error *err)
{
    struct saved *s = user;
    if (n > s->bytes.size - s->at) return base_fail(err, BASE_FAILED, "too short");
    memcpy(bytes, s->bytes.data + s->at, n);
    s->at += n;
    return true;
}

static bool pass_saved(void *user, uint64_t n, struct base_error *err)
{
    struct saved *s = user;
    if (n > s->bytes.size - s->at) return base_fail(err, BASE_FAILED, "too short");
    s->at += n;
    return true;
}

/* Saves a sequence in one place, loads it in another, forks it there and continues both. */
static void move(const struct support_model *m, enum support_apart from, enum support_apart to,
                 struct rows *rows)
{
    struct base_error err = BASE_ERROR_INIT;
    struct saved saved = {.bytes = BASE_BUFFER_INIT};
    const struct model_sink sink = {write_saved, &saved};
    const struct model_source source = {read_saved, pass_saved, {&saved}, 1};
    struct rows ignored = {.bytes = BASE_BUFFER_INIT};
    struct opened a, b;
    open_model(&a, m, from, 64);
    eval(&a, 0, PROMPT, &ignored);
    if (!model_seq_save(a.session, 0, &sink, &err)) fail_msg("%s", err.text);
    close_model(&a);
    open_model(&b, m, to, 64);
    assert_int_equal(model_seq_load(b.session, 0, 1, PROMPT, &source, &err), PROMPT);
    eval(&b, 0, 2, rows);
    model_seq_fork(b.session, 0, 1, model_seq_length(b.session, 0));
    eval(&b, 1, 3, rows);
    eval(&b, 0, 2, rows);
    close_model(&b);
    base_buffer_free(&saved.bytes);
    base_buffer_free(&ignored.bytes);
}

static void saved_sequences_move_between_places(void **state)
{
    static const char *const archs[] = {"llama", "gemma2", "lfm2", "qwen3next", "deepseek2"};
    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        const struct support_model m = support_model_default(archs[i]);
        struct rows want = {.bytes = BASE_BUFFER_INIT};
        move(&m, SUPPORT_HERE, SUPPORT_HERE, &want);
        for (int from = 0; from < SUPPORT_APARTS; from++)
            for (int to = 0; to < SUPPORT_APARTS; to++) {
                struct rows got = {.bytes = BASE_BUFFER_INIT};
                move(&m, from, to, &got);
                check_same(&got, &want, archs[i], support_apart_names[to]);
            }
        base_buffer_free(&want.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_gives_the_same_bytes_on_another_device),
        cmocka_unit_test(logits_of_many_tokens_are_the_same_in_pieces),
        cmocka_unit_test(saved_sequences_move_between_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
