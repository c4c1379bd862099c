/* test/test_gpu_models.c: models whose layers are on a GPU (the fake driver of test/fake_cuda.h)
 * give the bytes of the processor: logits of prompts and steps, forked and moved sequences, types
 * of weights and caches; and each architecture. */
#include "test/support.h"

#include "engine/gpu/gpu.h"
#include "engine/gpu/gpu_code.h"
#include "models/model.h"
#include "test/fake_cuda.h"
#include "test/support_files.h"
#include "test/support_model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOURCE = 3 /* tokens for an encoder before a decoder */, N_CTX = 320, MAX_FLOATS = 1 << 18 };

/* NULL: the fake driver; scripts/gpu-check names that of a GPU. */
static const char *library(void)
{
    return getenv("INFER_TEST_GPU");
}

/* Where the layers and the ends (embedding, output) of a model are. */
enum where { HERE, HALF, LAYERS, ALL, DIVIDED, WHERES };
static const char *const names[WHERES] = {"here", "half", "layers", "all", "divided"};

/* Which rows of networks are on the GPU for DIVIDED: of layer 0 two of three, of layer 1 all, of
 * layer 2 none, and so on. */
enum { CUT_LAYERS = 64, MOST_ROWS = 1024 };

static const struct model_hot *cut(const struct support_model *m)
{
    static struct model_hot hot[CUT_LAYERS];
    static uint32_t row[CUT_LAYERS][MOST_ROWS];
    assert_true(m->n_layer <= CUT_LAYERS && m->n_ff <= MOST_ROWS);
    for (uint32_t i = 0; i < m->n_layer; i++) {
        hot[i] = (struct model_hot){.n = m->n_ff, .row = row[i]};
        uint32_t n = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (uint32_t r = 0; r < m->n_ff; r++)
                if ((i % 3 == 1 || (i % 3 == 0 && r % 3 > 0)) == (pass == 0)) row[i][n++] = r;
            if (pass == 0) hot[i].n_hot = n;
        }
    }
    return hot;
}

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
                       const char *cache, uint32_t n_ctx, struct base_error *err)
{
    struct engine_options options = engine_options_default();
    struct model_session_options session = model_session_options_default();
    struct model_placement placement = {.n_layers = where == HALF ? 1 : UINT32_MAX,
                                        .output = where == ALL || where == DIVIDED,
                                        .hot = where == DIVIDED ? cut(m) : NULL};
    char path[64];
    snprintf(path, sizeof path, "/tmp/infer-gpu-%d.gguf", (int)getpid());
    options.n_threads = 1;
    session.n_ctx = n_ctx;
    session.n_batch = 64;
    session.n_seq = 2;
    session.whole = true;
    if (cache) session.type_k = session.type_v = quant_type_by_name(cache)->id;
    *o = (struct opened){0};
    if (!support_model_write(m, path, err)) fail_msg("%s: %s", m->arch, err->text);
    o->file = gguf_open(path, err);
    unlink(path);
    o->engine = engine_new(&options, err);
    if (where != HERE) {
        o->gpu = engine_gpu_open(
            &(struct engine_gpu_options){.library = library(), .cache = library() ? "/tmp" : NULL},
            err);
        if (!o->gpu) fail_msg("%s", err->text);
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
    size_t n, row; /* floats; of a row */
};

static bool add_rows(void *user, uint64_t first, uint64_t n, const float *rows,
                     struct base_error *err)
{
    struct rows *r = user;
    (void)first;
    if (r->n + n * r->row > MAX_FLOATS) return base_fail(err, BASE_FAILED, "too many rows");
    memcpy(r->at + r->n, rows, n * r->row * sizeof *rows);
    r->n += n * r->row;
    return true;
}

/* Evaluates n ids from the sequence's length on, and adds the rows of the last two. */
static bool eval(struct opened *o, uint32_t seq, uint64_t n, struct rows *rows,
                 struct base_error *err)
{
    struct model_token tokens[N_CTX];
    const struct model_facts *facts = model_facts(o->model);
    const uint32_t from = model_seq_length(o->session, seq);
    rows->row = facts->writes ? facts->n_vocab : facts->n_embd;
    for (uint64_t i = 0; i < n; i++) {
        const bool starts = facts->start_id >= 0 && from + i == SOURCE;
        tokens[i] = (struct model_token){
            .id = starts ? facts->start_id : (int32_t)(((from + i) * 7 + 11) % facts->n_vocab),
            .seq = seq,
            .wants_logits = i + 2 >= n && (facts->start_id < 0 || from + i >= SOURCE)};
    }
    return model_eval_batch(o->session, tokens, n, add_rows, rows, err);
}

/* The rows of n ids, and of models that write those of two steps and of a fork. */
static bool rows_of(const struct support_model *m, enum where where, const char *cache, uint64_t n,
                    struct rows *rows, struct base_error *err)
{
    struct opened o;
    rows->n = 0;
    bool ok =
        open_model(&o, m, where, cache, n < 32 ? 64 : N_CTX, err) && eval(&o, 0, n, rows, err);
    if (ok && model_facts(o.model)->writes) {
        ok = eval(&o, 0, 1, rows, err) && eval(&o, 0, 1, rows, err);
        model_seq_fork(o.session, 0, 1, model_seq_length(o.session, 0));
        ok = ok && eval(&o, 1, 2, rows, err);
    }
    close_model(&o);
    return ok;
}

/* Compares a model in two places; false: the GPU lacks an op, and `err` has it. */
static bool same(const struct support_model *m, const char *name, enum where where,
                 const char *cache, uint64_t n, struct base_error *err)
{
    static float want[MAX_FLOATS], got[MAX_FLOATS];
    struct rows here = {.at = want}, there = {.at = got};
    const int launches = fake_cuda.launches;
    if (!rows_of(m, HERE, cache, n, &here, err)) fail_msg("%s: %s", name, err->text);
    if (!rows_of(m, where, cache, n, &there, err)) return false;
    assert_true(library() || fake_cuda.launches > launches);
    if (here.n != there.n || memcmp(want, got, here.n * sizeof *want) != 0)
        fail_msg("%s, %s on the GPU: other bytes", name, names[where]);
    return true;
}

static void models_of_every_architecture_give_the_same_bytes(void **state)
{
    int n = 0;
    (void)state;
    for (const struct support_fixture *f = support_fixtures; f->name; f++, n++) {
        struct base_error err = BASE_ERROR_INIT;
        const struct support_model m = support_model_of(f);
        if (support_quick() && n % 20) continue;
        if (!same(&m, f->name, ALL, NULL, 5, &err)) fail_msg("%s: %s", f->name, err.text);
    }
    printf("%d models\n", n);
}

/* Prompts of two chunks of keys, in three batches; the fork shares an incomplete group. */
static void types_of_weights_and_caches_give_the_same_bytes(void **state)
{
    static const char *const cases[][3] = {{"Q4_K", "Q6_K", "F16"}, {"Q8_0", NULL, "BF16"},
                                           {"F16", NULL, NULL},     {"BF16", NULL, "F32"},
                                           {"Q4_0", "Q5_K", NULL},  {"IQ4_XS", "IQ2_XXS", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_model m = support_model_default(i % 2 ? "qwen3" : "llama");
        m.n_embd = m.n_ff = 256;
        m.head_dim = 64;
        m.n_ctx = N_CTX;
        m.type = quant_type_by_name(cases[i][0]);
        m.finer = cases[i][1] ? quant_type_by_name(cases[i][1]) : NULL;
        if (support_quick() && i > 1) break;
        if (!same(&m, cases[i][0], i % 2 ? HALF : LAYERS, cases[i][2], i ? 20 : 262, &err))
            fail_msg("%s: %s", cases[i][0], err.text);
    }
}

/* Gated and plain networks, with and without zeros, scales, a norm and a transposed matrix. */
static void networks_in_two_places_give_the_same_bytes(void **state)
{
    static const char *const cases[][2] = {
        {"llama", "Q4_K"},         {"arcee", "Q8_0"}, {"llama", "F16"}, {"bitnet", NULL},
        {"nanbeige-scales", NULL}, {"bamboo", NULL},  {"gemma2", NULL}, {"gemma3n", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_model m = support_model_default(cases[i][0]);
        if (cases[i][1]) {
            m.n_layer = 3;
            m.n_embd = 256;
            m.n_ff = MOST_ROWS; /* hot ones of F16 are copied in two pieces */
            m.type = quant_type_by_name(cases[i][1]);
        }
        if (support_quick() && i > 1) break;
        if (!same(&m, cases[i][0], DIVIDED, NULL, 5, &err))
            fail_msg("%s: %s", cases[i][0], err.text);
    }
}

static void a_cache_of_another_type_cannot_be_on_a_gpu(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_model m = support_model_default("llama");
    (void)state;
    m.head_dim = 32;
    assert_false(same(&m, "llama", LAYERS, "Q8_0", 5, &err));
    assert_string_equal(err.text, "a cache of type Q8_0 cannot be on a gpu");
}

/* The bytes of a model's weights, or with those of a session of its graphs, on a GPU that only
 * plans. */
static uint64_t bytes_there(const struct support_model *m, bool experts_here,
                            enum engine_buffer_kind kind)
{
    struct model_session_options session = model_session_options_default();
    uint64_t unused;
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct engine_gpu_plan plan = {0};
    char path[64];
    options.n_threads = 1;
    options.plan_only = true;
    snprintf(path, sizeof path, "/tmp/infer-gpu-%d.gguf", (int)getpid());
    if (!support_model_write(m, path, &err)) fail_msg("%s", err.text);
    struct gguf_file *file = gguf_open(path, &err);
    unlink(path);
    struct engine *engine = engine_new(&options, &err);
    const struct model_placement at = {
        .place = engine_add_place(engine, &engine_backend_gpu_plan, &plan, &err),
        .n_layers = UINT32_MAX,
        .experts_here = experts_here};
    struct model *model = model_open(file, engine, &at, &err);
    if (!model) fail_msg("%s", err.text);
    assert_true(model_facts(model)->placed_bytes <= plan.bytes[ENGINE_BUFFER_WEIGHTS]);
    struct model_session *s = model_session_new(model, &session, &err);
    if (!s || !model_session_plan(s, 4, &unused, &err)) fail_msg("%s", err.text);
    const uint64_t bytes = plan.bytes[kind];
    assert_true(plan.total >= bytes);
    model_session_free(s);
    model_close(model);
    engine_free(engine);
    gguf_close(file);
    assert_int_equal(plan.total, 0);
    return bytes;
}

static uint64_t weights_there(const struct support_model *m, bool experts_here)
{
    return bytes_there(m, experts_here, ENGINE_BUFFER_WEIGHTS);
}

/* The table is on the processor, and may be larger than a GPU's memory. */
static void rows_of_n_grams_are_copied_and_not_their_table(void **state)
{
    struct support_model m = support_model_default("qwen4exp");
    char keys[2048];
    (void)state;
    const uint64_t bytes = bytes_there(&m, false, ENGINE_BUFFER_GRAPH);
    const char *last = strstr(m.keys, ",83u"); /* rows for the last hash */
    assert_non_null(last);
    snprintf(keys, sizeof keys, "%.*s,8083u%s", (int)(last - m.keys), m.keys, last + 4);
    m.keys = keys;
    assert_int_equal(bytes_there(&m, false, ENGINE_BUFFER_GRAPH), bytes);
}

static void experts_may_remain_on_the_processor(void **state)
{
    const struct support_model dense = support_model_default("qwen3");
    const struct support_model moe = support_model_default("qwen3moe");
    (void)state;
    assert_true(moe.n_expert > 0);
    assert_true(weights_there(&moe, true) < weights_there(&moe, false) / 2);
    assert_int_equal(weights_there(&dense, true), weights_there(&dense, false));
}

/* A model whose rows are long enough for all kernels that compute several nodes. */
static struct support_model wide_model(const char *arch, enum quant_id type, bool biases,
                                       uint32_t n_layer)
{
    struct support_model m = support_model_default(arch);
    m.n_embd = 1024;
    m.n_head = 4;
    m.n_head_kv = 2;
    m.head_dim = 64;
    m.n_ff = 512;
    m.n_layer = n_layer;
    m.with = NULL;
    m.biases = biases;
    m.type = quant_type_by_id(type);
    return m;
}

static void nodes_that_one_kernel_computes_give_the_same_bytes(void **state)
{
    static const struct {
        const char *arch;
        enum quant_id type;
        bool biases;
    } rows[] = {{"llama", QUANT_Q4_K, false},  {"llama", QUANT_Q8_0, true},
                {"qwen2", QUANT_Q6_K, true},   {"qwen3", QUANT_Q4_0, false},
                {"gemma3", QUANT_Q4_K, false}, {"olmo2", QUANT_Q5_K, false},
                {"phi2", QUANT_Q4_K, true},    {"llama", QUANT_F16, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct support_model m = wide_model(rows[i].arch, rows[i].type, rows[i].biases, 2);
        for (uint64_t n = 2; n <= 40; n += 38) {
            struct base_error err = BASE_ERROR_INIT;
            if (!same(&m, m.arch, ALL, NULL, n, &err)) fail_msg("%s: %s", m.arch, err.text);
        }
    }
}

/* The kernels of a token of a model with a context of several chunks of keys. */
static int kernels_of_a_token(const struct support_model *m)
{
    static float memory[MAX_FLOATS];
    struct rows rows = {.at = memory};
    struct base_error err = BASE_ERROR_INIT;
    struct opened o;
    if (!open_model(&o, m, ALL, NULL, 1024, &err) || !eval(&o, 0, 3, &rows, &err))
        fail_msg("%s: %s", m->arch, err.text);
    rows.n = 0;
    const int before = fake_cuda.launches;
    if (!eval(&o, 0, 1, &rows, &err)) fail_msg("%s: %s", m->arch, err.text);
    const int n = fake_cuda.launches - before;
    close_model(&o);
    return n;
}

static void a_layer_of_a_token_has_few_kernels(void **state)
{
    static const struct {
        const char *arch;
        bool biases;
        int kernels;
    } rows[] = {{"llama", false, 10}, {"qwen2", true, 11}, {"qwen3", false, 11}};
    (void)state;
    for (size_t i = 0; !library() && i < sizeof rows / sizeof *rows; i++) {
        int n[2];
        for (uint32_t k = 0; k < 2; k++) {
            const struct support_model m =
                wide_model(rows[i].arch, QUANT_Q4_K, rows[i].biases, 1 + k);
            n[k] = kernels_of_a_token(&m);
        }
        if (n[1] - n[0] != rows[i].kernels)
            fail_msg("%s: %d kernels of a layer", rows[i].arch, n[1] - n[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_of_every_architecture_give_the_same_bytes),
        cmocka_unit_test(types_of_weights_and_caches_give_the_same_bytes),
        cmocka_unit_test(networks_in_two_places_give_the_same_bytes),
        cmocka_unit_test(nodes_that_one_kernel_computes_give_the_same_bytes),
        cmocka_unit_test(a_layer_of_a_token_has_few_kernels),
        cmocka_unit_test(a_cache_of_another_type_cannot_be_on_a_gpu),
        cmocka_unit_test(experts_may_remain_on_the_processor),
        cmocka_unit_test(rows_of_n_grams_are_copied_and_not_their_table),
    };
    size_t size;
    if (!engine_gpu_code(&size)) {
        printf("skipped: this build has no code for GPUs\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
