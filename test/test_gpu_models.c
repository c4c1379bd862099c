/* test/test_gpu_models.c: models whose layers are on a GPU (the fake driver of test/fake_cuda.h) give
 * the bytes of the processor: logits of prompts and steps, forked and moved sequences, types of
 * weights and caches; and each architecture either does, or cannot be opened there. */
#include "test/support.h"

#include "engine/gpu/gpu.h"
#include "engine/gpu/gpu_code.h"
#include "models/model.h"
#include "test/fake_cuda.h"
#include "test/support_model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_CTX = 320, STEPS = 2, MAX_IDS = 300 };

/* Where the layers and the ends (embedding, output) of a model are. */
enum where { HERE, HALF, LAYERS, ALL, WHERES };
static const char *const names[WHERES] = {"here", "half", "layers", "all"};

struct opened {
    struct gguf_file *file;
    struct engine_gpu *gpu;
    struct engine *engine;
    struct model *model;
    struct model_session *session;
};

static void close_model(struct opened *o)
{
    model_session_free(o->session);
    model_close(o->model);
    engine_free(o->engine);
    engine_gpu_close(o->gpu);
    gguf_close(o->file);
    assert_int_equal(fake_cuda.live, 0);
}

/* False: the session cannot be planned there. */
static bool open_model(struct opened *o, const struct support_model *m, enum where where,
                       const char *cache, struct base_error *err)
{
    struct engine_options options = engine_options_default();
    struct model_session_options session = model_session_options_default();
    struct model_placement placement = {.n_layers = where == HALF ? 1 : UINT32_MAX,
                                        .ends = where == ALL};
    char path[64];
    snprintf(path, sizeof path, "/tmp/infer-gpu-%d.gguf", (int)getpid());
    options.n_threads = 1;
    session.n_ctx = N_CTX;
    session.n_batch = 64;
    session.n_seq = 2;
    if (cache) session.type_k = session.type_v = quant_type_by_name(cache)->id;
    *o = (struct opened){0};
    if (!support_model_write(m, path, err)) fail_msg("%s: %s", m->arch, err->text);
    o->file = gguf_open(path, err);
    unlink(path);
    o->engine = engine_new(&options, err);
    if (where != HERE) {
        o->gpu = engine_gpu_open(&(struct engine_gpu_options){0}, err);
        placement.place = engine_add_place(o->engine, &engine_backend_gpu, o->gpu, err);
    }
    o->model = model_open(o->file, o->engine, where == HERE ? NULL : &placement, err);
    if (!o->model) fail_msg("%s: %s: %s", m->arch, err->item, err->text);
    session.hidden = !model_facts(o->model)->writes;
    o->session = model_session_new(o->model, &session, err);
    return o->session != NULL;
}

struct rows {
    float *at;
    size_t n, max;
};

static bool add_rows(void *user, uint64_t first, uint64_t n, const float *logits,
                     struct base_error *err)
{
    struct rows *r = user;
    (void)first;
    (void)err;
    const size_t size = n * 300;
    if (r->n + size > r->max) return base_fail(err, BASE_FAILED, "too many rows");
    memcpy(r->at + r->n, logits, size * sizeof *logits);
    r->n += size;
    return true;
}

/* Evaluates n ids from the sequence's length on, and adds the logits of the last two. */
static bool eval(struct opened *o, uint32_t seq, uint64_t n, struct rows *rows, struct base_error *err)
{
    struct model_token tokens[MAX_IDS];
    const uint32_t from = model_seq_length(o->session, seq);
    for (uint64_t i = 0; i < n; i++)
        tokens[i] = (struct model_token){.id = (int32_t)(((from + i) * 7 + 11) % 300),
                                         .seq = seq,
                                         .wants_logits = i + 2 >= n};
    return model_eval_batch(o->session, tokens, n, add_rows, rows, err);
}

/* The logits of a prompt of n ids and of some steps, of the sequence and of a fork. */
static bool logits_of(const struct support_model *m, enum where where, const char *cache, uint64_t n,
                      struct rows *rows, struct base_error *err)
{
    struct opened o;
    rows->n = 0;
    bool ok = open_model(&o, m, where, cache, err) && eval(&o, 0, n, rows, err);
    for (int i = 0; ok && i < STEPS; i++) ok = eval(&o, 0, 1, rows, err);
    if (ok) {
        model_seq_fork(o.session, 0, 1, model_seq_length(o.session, 0));
        ok = eval(&o, 1, 2, rows, err) && eval(&o, 0, 1, rows, err);
    }
    close_model(&o);
    return ok;
}

static struct rows rows_new(void)
{
    struct rows rows = {.max = 64 * 300};
    rows.at = malloc(rows.max * sizeof *rows.at);
    return rows;
}

int main(void)
{
    struct rows want = rows_new(), got = rows_new();
    setbuf(stdout, NULL);
    for (const struct support_fixture *f = support_fixtures; f->name; f++) {
        const struct support_model m = support_model_of(f);
        printf("%s:", f->name);
        for (int where = HERE; where < WHERES; where++) {
            struct base_error err = BASE_ERROR_INIT;
            const bool ok = logits_of(&m, where, NULL, 13, where ? &got : &want, &err);
            if (!ok)
                printf(" %s: %s", names[where], err.text);
            else if (where && (got.n != want.n || memcmp(got.at, want.at, want.n * 4)))
                printf(" %s DIFFERS", names[where]);
            else
                printf(" %s ok", names[where]);
            if (!where && !ok) break;
        }
        printf("\n");
    }
}
