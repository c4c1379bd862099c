/* test/test_lora.c: adapters and control vectors, evaluated beside the weights: logits of tiny
 * models of all architectures equal those of the model with the adapters merged into its weights,
 * which test/support_adapter.c computes in double; same bits for any threads, batch and level;
 * sequences with different adapters in one batch have the bits of each by itself; broken files. */
#include "models/adapter.h"
#include "models/arch/arch.h"
#include "test/support.h"
#include "test/support_adapter.h"
#include "test/support_files.h"
#include "test/support_level.h"
#include "test/support_model.h"
#include "test/support_session.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_IDS = 24 };

static char folder[] = "/tmp/infer-lora-XXXXXX";

static const char *in_folder(const char *name, char path[96])
{
    snprintf(path, 96, "%s/%s", folder, name);
    return path;
}

static void make_ids(int32_t ids[N_IDS])
{
    struct sample_random r = support_model_random(7);
    for (int i = 0; i < N_IDS; i++) ids[i] = (int32_t)(sample_random_u32(&r) % 256);
}

/* An opened model with adapters. */
struct rig {
    struct gguf_file *file, *adapter[4];
    struct engine *engine;
    struct model *model;
    struct model_session *session;
    int n_adapters;
};

/* Opens the model and the adapters; *err: why the session cannot be opened. */
static bool rig_open(struct rig *r, const char *model, const char *const *adapter,
                     const float *scale, int n, const struct engine_options *engine,
                     const struct model_session_options *session, struct base_error *err)
{
    *r = (struct rig){.file = gguf_open(model, err), .engine = engine_new(engine, err)};
    r->model = r->file && r->engine ? model_open(r->file, r->engine, NULL, err) : NULL;
    for (; r->model && r->n_adapters < n; r->n_adapters++) {
        struct gguf_file **file = &r->adapter[r->n_adapters];
        *file = gguf_open(adapter[r->n_adapters], err);
        if (!*file || !model_adapter_add(r->model, *file, scale[r->n_adapters], err)) {
            gguf_close(*file);
            return false;
        }
    }
    r->session = r->model ? model_session_new(r->model, session, err) : NULL;
    return r->session != NULL;
}

static void rig_close(struct rig *r)
{
    model_session_free(r->session);
    model_close(r->model);
    engine_free(r->engine);
    for (int i = 0; i < r->n_adapters; i++) gguf_close(r->adapter[i]);
    gguf_close(r->file);
}

static struct engine_options one_thread(void)
{
    struct engine_options o = engine_options_default();
    o.n_threads = 1;
    return o;
}

static struct model_session_options f32_cache(uint32_t n_seq)
{
    return (struct model_session_options){
        .n_seq = n_seq, .n_ctx = 64, .type_k = QUANT_F32, .type_v = QUANT_F32};
}

/* Returns the logits of all ids; of a model with a classifier the hidden states, then the scores of
 * the last one. */
static float *eval_all(struct rig *r, const int32_t *ids, size_t *n)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct model_facts *f = model_facts(r->model);
    const size_t size = f->n_rank ? f->n_embd : f->n_vocab;
    struct support_rows rows = {calloc(N_IDS * size + f->n_rank, sizeof(float)), size};
    float *last = rows.data + (N_IDS - 1) * size;
    if (!model_eval(r->session, ids, N_IDS, MODEL_LOGITS_ALL, support_rows_keep, &rows, &err) ||
        (f->n_rank &&
         !model_session_pool(r->session, true, last, &(uint32_t){0}, 1, last + size, &err)))
        fail_msg("%s", err.text);
    *n = N_IDS * size + f->n_rank;
    return rows.data;
}

static bool has_classifier(const char *model)
{
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open(model, &err);
    const bool found = file && gguf_tensor_find(file, "cls.output.weight");
    gguf_close(file);
    return found;
}

/* The logits of a model file with adapters, or what eval_all returns instead. */
static float *logits_with(const char *model, const char *const *adapter, const float *scale, int n,
                          size_t *size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct rig r;
    int32_t ids[N_IDS];
    const struct engine_options engine = one_thread();
    struct model_session_options session = f32_cache(1);
    make_ids(ids);
    session.hidden = has_classifier(model);
    if (!rig_open(&r, model, adapter, scale, n, &engine, &session, &err))
        fail_msg("%s: %s: %s", err.file, err.item, err.text);
    float *logits = eval_all(&r, ids, size);
    rig_close(&r);
    return logits;
}

static void write_adapter(const struct support_adapter *a, const char *model, const char *path)
{
    struct base_error err = BASE_ERROR_INIT;
    if (!support_adapter_write(a, model, path, &err)) fail_msg("%s: %s", err.item, err.text);
}

/* ---- All architectures ---- */

/* Taps of convolutions and the vectors of time mixes are no product; the others have a matrix for
 * each head, stream or slice. */
#define NOT_SUPPORTED                                                                              \
    "conv time_mix_lerp time_mix_first time_mix_v1 time_mix_v2 time_mix_w2. attn_k_b attn_v_b "    \
    "altup_proj altup_unembd_proj ffn_down_t attn_output_a compressor_ape"
static const char not_supported[] = NOT_SUPPORTED;
/* A token reads several rows of the table of n-grams. */
static const char not_with_ngrams[] = NOT_SUPPORTED " per_layer_token_embd";

/* Rows for distances and for kinds of texts. */
static const char not_in_encoders[] = "attn_rel_b token_types";

static const struct model_arch *arch_of(const struct support_fixture *f)
{
    const struct model_arch *arch = NULL;
    for (size_t i = 0; strcmp(model_arch_name(i, &arch), f->arch) != 0; i++) continue;
    return arch;
}

/* Writes the model of a fixture, for encoders with a classifier. */
static void write_model(const char *fixture, enum quant_id type, char path[96])
{
    struct base_error err = BASE_ERROR_INIT;
    const struct support_fixture *f = support_fixtures;
    while (strcmp(f->name, fixture) != 0) f++;
    struct support_model m = support_model_of(f);
    m.seed = 42;
    m.type = quant_type_by_id(type);
    char with[800];
    snprintf(with, sizeof with, "%s cls.weight=64 cls.output.weight=3", m.with ? m.with : "");
    if (arch_of(f)->encoder) m.with = with;
    if (!support_model_write(&m, in_folder("model.gguf", path), &err)) fail_msg("%s", err.text);
}

/* The largest NMSE that roundings may cause. Models that amplify them: gemma3n by the threshold of
 * its sparse layers; kimi-k3 and deepseek4, where changing each weight of the embeddings by one
 * unit in the last place changes the logits by 1.8e-10 and 1.8e-9, those of llama by 1.9e-13. */
static double rounding_of(const char *fixture)
{
    return strcmp(fixture, "gemma3n") == 0 || strncmp(fixture, "deepseek4", 9) == 0 ? 1e-7
           : strcmp(fixture, "kimi-k3") == 0                                        ? 1e-9
                                                                                    : 1e-10;
}

/* Compares the logits of two adapters with those of the merged model. */
static void compare_with_merged(const struct support_fixture *f, const char *const adapter[2])
{
    char model[96], merged[96];
    struct base_error err = BASE_ERROR_INIT;
    const float scale[] = {1.0f, -0.4f};
    write_model(f->name, QUANT_F32, model);
    for (int i = 0; i < 2; i++) {
        const struct support_adapter a = {.seed = 5 + (uint64_t)i,
                                          .rank = i ? 2 : 4,
                                          .alpha = i ? 0.0f : 6.0f,
                                          .type = quant_type_by_id(i ? QUANT_F16 : QUANT_F32),
                                          .without = arch_of(f)->encoder      ? not_in_encoders
                                                     : arch_of(f)->plan.ngram ? not_with_ngrams
                                                                              : not_supported};
        write_adapter(&a, model, adapter[i]);
    }
    if (!support_adapter_merge(model, adapter, scale, 2, in_folder("merged.gguf", merged), &err))
        fail_msg("%s: %s", f->name, err.text);
    size_t n;
    float *want = logits_with(merged, NULL, NULL, 0, &n);
    float *got = logits_with(model, adapter, scale, 2, &n);
    float *base = logits_with(model, NULL, NULL, 0, &n);
    const double error = support_nmse(got, want, n);
    if (!(error < rounding_of(f->name))) fail_msg("%s: NMSE %g", f->name, error);
    if (!(support_nmse(base, want, n) > 1e-3)) fail_msg("%s: no effect", f->name);
    free(want);
    free(got);
    free(base);
}

static bool is_short_run(const char *name)
{
    static const char *const names[] = {"llama",  "llama-fused",    "llama-moe", "bitnet",
                                        "gpt2",   "gemma4-moe",     "minicpm3",  "lfm2",
                                        "mamba2", "nomic-bert-moe", "t5encoder"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void same_as_merged_in_every_architecture(void **state)
{
    (void)state;
    char path[2][96];
    const char *const adapter[] = {in_folder("a.gguf", path[0]), in_folder("b.gguf", path[1])};
    for (const struct support_fixture *f = support_fixtures; f->name; f++) {
        const bool no_effect = strcmp(f->name, "phi3-scales") == 0; /* of its scales */
        /* A product with a scale for each run is no product with one merged matrix. */
        const bool by_run = strcmp(f->name, "hrm_text-scales") == 0;
        const bool evaluates = !arch_of(f)->source && !arch_of(f)->diffusion;
        if (evaluates && !f->mtp && !no_effect && !by_run &&
            (!support_quick() || is_short_run(f->name)))
            compare_with_merged(f, adapter);
    }
}

/* ---- Bits ---- */

static const char *const kinds[] = {"llama", "llama-moe", "mamba2"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Writes a quantized model of a kind and two adapters of it. */
static void write_two(const char *kind, char model[96], char path[2][96])
{
    write_model(kind, QUANT_Q8_0, model);
    for (int i = 0; i < 2; i++) {
        const struct support_adapter a = {.seed = 9 + (uint64_t)i,
                                          .rank = i ? 3 : 16,
                                          .alpha = 8,
                                          .type = quant_type_by_id(i ? QUANT_F32 : QUANT_F16),
                                          .without = not_supported};
        write_adapter(&a, model, in_folder(i ? "b.gguf" : "a.gguf", path[i]));
    }
}

static void same_bits_for_any_threads_batch_and_level(void **state)
{
    (void)state;
    char model[96], path[2][96];
    const char *const adapter[] = {path[0], path[1]};
    const float scale[] = {1.0f, 0.5f};
    static const uint32_t batches[] = {1, 5, 64};
    int32_t ids[N_IDS];
    make_ids(ids);
    for (int kind = 0; kind < KINDS; kind++) {
        size_t n;
        write_two(kinds[kind], model, path);
        float *want = logits_with(model, adapter, scale, 2, &n);
        for (int level = CPU_SCALAR; support_level_next(&level); level++)
            for (int threads = 1; threads <= 3; threads++) {
                struct engine_options engine = engine_options_default();
                struct model_session_options session = f32_cache(1);
                struct base_error err = BASE_ERROR_INIT;
                struct rig r;
                engine.n_threads = threads;
                engine.level = (enum cpu_level)level;
                session.n_batch = batches[(threads + level) % 3];
                if (!rig_open(&r, model, adapter, scale, 2, &engine, &session, &err))
                    fail_msg("%s", err.text);
                float *got = eval_all(&r, ids, &n);
                if (memcmp(got, want, n * sizeof *got) != 0)
                    fail_msg("%s: other bits at %s, %d threads, batch %u", kinds[kind],
                             cpu_level_name((enum cpu_level)level), threads, session.n_batch);
                free(got);
                rig_close(&r);
            }
        free(want);
    }
}

static void open_two(struct rig *r, const char *kind, uint32_t n_seq)
{
    char model[96], path[2][96];
    const char *const adapter[] = {path[0], path[1]};
    const struct engine_options engine = one_thread();
    const struct model_session_options session = f32_cache(n_seq);
    struct base_error err = BASE_ERROR_INIT;
    write_two(kind, model, path);
    if (!rig_open(r, model, adapter, (float[]){1.0f, 0.0f}, 2, &engine, &session, &err))
        fail_msg("%s", err.text);
}

/* Evaluates ids[from .. N_IDS) in sequence `seq` and returns the logits of the last one. */
static float *eval_rest(struct rig *r, uint32_t seq, const int32_t *ids, int from)
{
    struct base_error err = BASE_ERROR_INIT;
    struct model_token token[N_IDS];
    const size_t n_vocab = model_facts(r->model)->n_vocab;
    struct support_rows rows = {calloc(n_vocab, sizeof(float)), n_vocab};
    for (int i = from; i < N_IDS; i++) token[i] = (struct model_token){ids[i], seq, i == N_IDS - 1};
    if (!model_eval_batch(r->session, token + from, (uint64_t)(N_IDS - from), support_rows_keep,
                          &rows, &err))
        fail_msg("%s", err.text);
    return rows.data;
}

enum { SEQUENCES = 5 };

/* None, the first, both, the second with a negative scale, the first from token 10 on. */
static const struct model_adaptation adaptations[SEQUENCES] = {
    {{0, 0}, {0}}, {{1.0f, 0}, {0}}, {{0.3f, 2.0f}, {0}}, {{0, -1.0f}, {0}}, {{1.0f, 0}, {10}},
};

static void sequences_have_the_bits_of_each_by_itself(void **state)
{
    (void)state;
    int32_t ids[N_IDS];
    make_ids(ids);
    for (int kind = 0; kind < KINDS; kind++) {
        struct rig r;
        struct base_error err = BASE_ERROR_INIT;
        float *want[SEQUENCES];
        open_two(&r, kinds[kind], SEQUENCES);
        const size_t n_vocab = model_facts(r.model)->n_vocab;
        for (uint32_t s = 0; s < SEQUENCES; s++) {
            model_seq_truncate(r.session, 0, 0);
            assert_int_equal(model_seq_adapt(r.session, 0, &adaptations[s]), 0);
            want[s] = eval_rest(&r, 0, ids, 0);
            for (uint32_t k = 0; k < s; k++)
                assert_true(memcmp(want[k], want[s], n_vocab * sizeof(float)) != 0);
        }
        /* All sequences in the same runs, in pieces of 7 tokens. */
        struct support_rows rows = {calloc(SEQUENCES * n_vocab, sizeof(float)), n_vocab};
        for (uint32_t s = 0; s < SEQUENCES; s++) {
            model_seq_truncate(r.session, s, 0);
            model_seq_adapt(r.session, s, &adaptations[s]);
        }
        for (int from = 0; from < N_IDS; from += 7) {
            struct model_token token[7 * SEQUENCES];
            uint64_t n = 0;
            for (uint32_t s = 0; s < SEQUENCES; s++)
                for (int i = from; i < from + 7 && i < N_IDS; i++)
                    token[n++] = (struct model_token){ids[i], s, i == N_IDS - 1};
            if (!model_eval_batch(r.session, token, n, support_rows_keep, &rows, &err))
                fail_msg("%s", err.text);
        }
        for (uint32_t s = 0; s < SEQUENCES; s++) {
            assert_memory_equal(rows.data + s * n_vocab, want[s], n_vocab * sizeof(float));
            free(want[s]);
        }
        free(rows.data);
        rig_close(&r);
    }
}

static void a_scale_of_zero_is_the_model_alone(void **state)
{
    (void)state;
    char model[96], path[2][96];
    const char *const adapter[] = {path[0], path[1]};
    for (int kind = 0; kind < KINDS; kind++) {
        size_t n;
        write_two(kinds[kind], model, path);
        float *want = logits_with(model, NULL, NULL, 0, &n);
        float *got = logits_with(model, adapter, (float[]){0.0f, 0.0f}, 2, &n);
        assert_memory_equal(got, want, n * sizeof *got);
        free(want);
        free(got);
    }
}

/* ---- Sequences that share tokens ---- */

static void shares_what_both_adaptations_have_in_common(void **state)
{
    (void)state;
    int32_t ids[N_IDS];
    struct rig r;
    make_ids(ids);
    open_two(&r, "llama", 2);
    model_seq_adapt(r.session, 0, &adaptations[0]);
    free(eval_rest(&r, 0, ids, 0));
    /* Nothing in common with an adapter from the beginning, ten tokens with one from token 10. */
    model_seq_adapt(r.session, 1, &adaptations[1]);
    assert_int_equal(model_seq_fork(r.session, 0, 1, N_IDS), 0);
    assert_int_equal(model_seq_adapted(r.session, 0, &adaptations[4]), 10);
    model_seq_adapt(r.session, 1, &adaptations[4]);
    assert_int_equal(model_seq_fork(r.session, 0, 1, N_IDS), 10);
    float *forked = eval_rest(&r, 1, ids, 10);
    /* Sequence 0, adapted itself, has the rows of its fork. */
    assert_int_equal(model_seq_adapt(r.session, 0, &adaptations[4]), 10);
    float *own = eval_rest(&r, 0, ids, 10);
    assert_memory_equal(own, forked, model_facts(r.model)->n_vocab * sizeof(float));
    assert_int_equal(model_seq_adapt(r.session, 0, &adaptations[4]), N_IDS);
    free(own);
    free(forked);
    rig_close(&r);
}

static void acts_from_the_last_invocation_on(void **state)
{
    (void)state;
    char model[96], path[96];
    const char *const adapter = path;
    const float scale = 0.5f;
    struct model_adaptation a;
    struct rig r;
    struct base_error err = BASE_ERROR_INIT;
    const struct engine_options engine = one_thread();
    const struct model_session_options session = f32_cache(1);
    write_model("llama", QUANT_F32, model);
    write_adapter(&(struct support_adapter){.rank = 2,
                                            .type = quant_type_by_id(QUANT_F32),
                                            .only = "attn_q",
                                            .invocation = "7 7 8"},
                  model, in_folder("a.gguf", path));
    if (!rig_open(&r, model, &adapter, &scale, 1, &engine, &session, &err))
        fail_msg("%s", err.text);
    model_adaptation_make(r.model, NULL, (int32_t[]){7, 7, 8, 1, 7, 7, 7, 8, 2}, 9, &a);
    assert_true(a.scale[0] == 0.5f && a.from[0] == 5);
    model_adaptation_make(r.model, (float[]){2.0f}, (int32_t[]){7, 7, 8}, 3, &a);
    assert_true(a.scale[0] == 2.0f && a.from[0] == 0);
    model_adaptation_make(r.model, NULL, (int32_t[]){8, 7, 7}, 3, &a);
    assert_true(a.scale[0] == 0.0f);
    rig_close(&r);
}

/* ---- Control vectors ---- */

/* Writes "direction.N" for the layers 1 and 2, or a tensor of that name and length. */
static void write_vector(const char *path, const char *name, uint64_t n)
{
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_writer *w = gguf_writer_new(&err);
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    const char *const names[] = {name ? name : "direction.1", "direction.2"};
    float x[512];
    gguf_writer_str(w, "general.architecture", "controlvector", 13);
    for (int i = 0; i < (name ? 1 : 2); i++)
        gguf_writer_tensor(w, (struct gguf_str){names[i], strlen(names[i])}, f32, 1, &n);
    assert_true(gguf_writer_begin(w, path, &err));
    for (int i = 0; i < (name ? 1 : 2); i++) {
        for (uint64_t k = 0; k < n; k++) x[k] = 0.25f * (float)((int)(k * 7 + (uint64_t)i) % 9 - 4);
        assert_true(gguf_writer_data(w, x, n * sizeof *x, &err));
    }
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
}

/* The logits of the model with `n` times the control vector of path for layers first .. last. */
static float *steered(const char *model, const char *path, float strength, int n, uint32_t first,
                      uint32_t last, size_t *size)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct engine_options engine = one_thread();
    const struct model_session_options session = f32_cache(1);
    struct rig r;
    int32_t ids[N_IDS];
    make_ids(ids);
    struct gguf_file *file = gguf_open(path, &err);
    r = (struct rig){.file = gguf_open(model, &err), .engine = engine_new(&engine, &err)};
    r.model = model_open(r.file, r.engine, NULL, &err);
    for (int i = 0; i < n; i++)
        if (!model_steer(r.model, file, strength, first, last, &err)) fail_msg("%s", err.text);
    gguf_close(file);
    r.session = model_session_new(r.model, &session, &err);
    if (!r.session) fail_msg("%s", err.text);
    float *logits = eval_all(&r, ids, size);
    rig_close(&r);
    return logits;
}

/* Adds a control vector of 0.5 to layer 1 as the bias of its last product. */
static void add_to_bias(const char *model, const char *path)
{
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open(model, &err);
    struct gguf_writer *w = gguf_writer_new(&err);
    gguf_writer_copy_metadata(w, file);
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        gguf_writer_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
    assert_true(gguf_writer_begin(w, path, &err));
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (t != gguf_tensor_find(file, "blk.1.ffn_down.bias")) {
            assert_true(gguf_writer_copy_data(w, file, t, &err));
            continue;
        }
        float x[512];
        memcpy(x, t->data, t->size);
        for (uint64_t k = 0; k < t->ne[0]; k++)
            x[k] += 0.5f * 0.25f * (float)((int)(k * 7) % 9 - 4);
        assert_true(gguf_writer_data(w, x, t->size, &err));
    }
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
    gguf_close(file);
}

static void a_control_vector_is_added_to_the_output_of_its_layer(void **state)
{
    (void)state;
    char model[96], path[96], other[96];
    size_t n;
    struct base_error err = BASE_ERROR_INIT;
    struct support_model m = support_model_default("gpt2");
    m.n_layer = 3;
    m.seed = 3;
    if (!support_model_write(&m, in_folder("model.gguf", model), &err)) fail_msg("%s", err.text);
    write_vector(in_folder("a.gguf", path), NULL, m.n_embd);
    add_to_bias(model, in_folder("merged.gguf", other));
    float *want = logits_with(other, NULL, NULL, 0, &n);
    float *once = steered(model, path, 0.5f, 1, 1, 1, &n);
    float *twice = steered(model, path, 0.25f, 2, 1, 1, &n);
    float *both = steered(model, path, 0.5f, 1, 1, 2, &n);
    assert_true(support_nmse(once, want, n) < 1e-11);
    assert_true(support_nmse(twice, want, n) < 1e-11);
    assert_true(support_nmse(both, want, n) > 1e-4);
    free(want);
    free(once);
    free(twice);
    free(both);
}

/* ---- Files that do not fit ---- */

/* Opens the adapter for the model; *err: why not. */
static void open_wrong(const char *model, const char *path, struct base_error *err)
{
    struct rig r;
    const float scale = 1.0f;
    const struct engine_options engine = one_thread();
    struct model_session_options session = f32_cache(1);
    session.hidden = has_classifier(model);
    assert_false(rig_open(&r, model, &path, &scale, 1, &engine, &session, err));
    rig_close(&r);
    assert_int_equal(err->code, BASE_MODEL);
}

static void names_what_does_not_fit_the_model(void **state)
{
    (void)state;
    char model[96], other[96], path[96];
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    const struct support_adapter all = {.rank = 2, .type = f32};
    struct support_model m = support_model_default("llama");
    struct base_error err = BASE_ERROR_INIT;
    /* A wider model: the first tensor is named. */
    m.n_embd = 96;
    assert_true(support_model_write(&m, in_folder("merged.gguf", other), &err));
    write_adapter(&all, other, in_folder("a.gguf", path));
    write_model("llama", QUANT_F32, model);
    open_wrong(model, path, &err);
    assert_string_equal(err.item, "token_embd.weight.lora_b"); /* the side of the embedding */
    assert_non_null(strstr(err.text, "does not fit the model's tensor"));
    assert_string_equal(err.file, path);
    /* More layers, another architecture, the model itself, a file without factors. */
    m = support_model_default("llama");
    m.n_layer = 3;
    err = BASE_ERROR_INIT;
    assert_true(support_model_write(&m, other, &err));
    write_adapter(&all, other, path);
    open_wrong(model, path, &err);
    assert_string_equal(err.item, "blk.2.attn_q.weight.lora_a");
    write_model("qwen2", QUANT_F32, other);
    write_adapter(&all, other, path);
    write_model("llama", QUANT_F32, model);
    err = BASE_ERROR_INIT;
    open_wrong(model, path, &err);
    assert_string_equal(err.item, "general.architecture");
    err = BASE_ERROR_INIT;
    open_wrong(model, model, &err);
    assert_string_equal(err.item, "general.type");
    write_adapter(&(struct support_adapter){.rank = 2, .type = f32, .only = "none"}, model, path);
    err = BASE_ERROR_INIT;
    open_wrong(model, path, &err);
    /* A matrix for each head. */
    write_model("deepseek2", QUANT_F32, model);
    write_adapter(&(struct support_adapter){.rank = 2, .type = f32, .only = "attn_k_b"}, model,
                  path);
    err = BASE_ERROR_INIT;
    open_wrong(model, path, &err);
    assert_string_equal(err.item, "blk.0.attn_k_b.weight");
    /* Rows for distances and for kinds of texts; a transposed matrix. */
    static const char *const tables[][2] = {{"t5encoder", "enc.blk.0.attn_rel_b.weight"},
                                            {"bert", "token_types.weight"},
                                            {"opt", "blk.0.ffn_down_t.weight"}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        write_model(tables[i][0], QUANT_F32, model);
        write_adapter(&(struct support_adapter){.rank = 2, .type = f32, .only = tables[i][1]},
                      model, path);
        err = BASE_ERROR_INIT;
        open_wrong(model, path, &err);
        assert_string_equal(err.item, tables[i][1]);
    }
}

static void names_what_is_no_control_vector(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t n;
    } wrong[] = {{"direction.0", 64}, {"direction.2", 64}, {"direction.1", 65},
                 {"direction.x", 64}, {"direction.", 64},  {"other", 64}};
    char model[96], path[96];
    write_model("llama", QUANT_F32, model);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct base_error err = BASE_ERROR_INIT;
        const struct engine_options engine = one_thread();
        const struct model_session_options session = f32_cache(1);
        struct rig r;
        assert_true(rig_open(&r, model, NULL, NULL, 0, &engine, &session, &err));
        write_vector(in_folder("a.gguf", path), wrong[i].name, wrong[i].n);
        struct gguf_file *file = gguf_open(path, &err);
        assert_false(model_steer(r.model, file, 1.0f, 1, 9, &err));
        assert_int_equal(err.code, BASE_MODEL);
        assert_string_equal(err.item, wrong[i].name);
        gguf_close(file);
        rig_close(&r);
    }
}

/* ---- Main ---- */

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"model.gguf", "merged.gguf", "a.gguf", "b.gguf"};
    char path[96];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i], path));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_merged_in_every_architecture),
        cmocka_unit_test(same_bits_for_any_threads_batch_and_level),
        cmocka_unit_test(sequences_have_the_bits_of_each_by_itself),
        cmocka_unit_test(a_scale_of_zero_is_the_model_alone),
        cmocka_unit_test(shares_what_both_adaptations_have_in_common),
        cmocka_unit_test(acts_from_the_last_invocation_on),
        cmocka_unit_test(a_control_vector_is_added_to_the_output_of_its_layer),
        cmocka_unit_test(names_what_does_not_fit_the_model),
        cmocka_unit_test(names_what_is_no_control_vector),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
