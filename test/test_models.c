/* test/test_models.c: tiny models of random weights, one per architecture and variant.
 *
 * Each is evaluated against the logits of an independent implementation (test/data/models:
 * llama.cpp of 2026-08-22 on the same files, F32 weights and caches, no flash attention; 20 ids,
 * [20][vocab] little-endian float32), and against itself: the same bytes for any threads, batch and
 * level, in F32 and in quantized types, with a window that slides and after going back.
 *
 *   test_models --write FOLDER    writes the models and ids.txt, for recording such logits anew */
#include "test/support.h"

#include "test/support_files.h"
#include "test/support_level.h"
#include "test/support_model.h"
#include "test/support_session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_IDS = 20, MANY_IDS = 70 };

struct variant {
    const char *name;
    const char *arch;
    double bar; /* NMSE against the stored logits */
    bool fused, tied, biases;
    uint32_t n_expert;
};

/* llama.cpp's GELU goes through a half-precision table: Gemma's bar is what that allows. */
static const struct variant variants[] = {
    {"llama", "llama", 1e-12, .biases = true},
    {"llama-fused", "llama", 1e-12, .fused = true, .tied = true},
    {"llama-moe", "llama", 1e-12, .n_expert = 4},
    {"qwen2", "qwen2", 1e-12, .biases = true},
    {"qwen3", "qwen3", 1e-12, .tied = true},
    {"gemma3", "gemma3", 1e-6, .tied = true},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static struct support_model options_of(const struct variant *v, enum quant_id type)
{
    struct support_model m = support_model_default(v->arch);
    m.seed = 42;
    m.fused_qkv = v->fused;
    m.tied = v->tied;
    m.biases = v->biases;
    m.n_expert = v->n_expert;
    m.n_expert_used = v->n_expert / 2;
    m.type = quant_type_by_id(type);
    if (m.type->block_len > 32) { /* rows must be whole blocks */
        m.n_embd = 256;
        m.n_ff = 512;
        m.head_dim = 64;
    }
    return m;
}

static void make_ids(int32_t *ids, int n, uint32_t n_vocab)
{
    struct support_random r = support_random_new(7);
    for (int i = 0; i < n; i++) ids[i] = (int32_t)(support_random_u32(&r) % n_vocab);
}

static void write_model(const struct support_model *m, const char *path)
{
    struct base_error err = BASE_ERROR_INIT;
    if (!support_model_write(m, path, &err)) fail_msg("%s: %s", err.item, err.text);
}

static void temporary(char out[64], const char *name)
{
    snprintf(out, 64, "/tmp/infer-%d-%.32s.gguf", (int)getpid(), name);
}

/* ---- Evaluation under a setting ---- */

struct setting {
    int threads;
    uint32_t batch;
    enum cpu_level level;
    enum quant_id cache;
    bool go_back; /* evaluate, forget the second half, evaluate that again */
};

static bool eval(struct model_session *s, const int32_t *ids, int n, bool go_back,
                 struct support_rows *out, struct base_error *err)
{
    if (!model_eval(s, ids, (uint64_t)n, MODEL_LOGITS_ALL, support_rows_keep, out, err))
        return false;
    if (!go_back) return true;
    /* A short way back is always held; what is left must then come out as before. */
    uint32_t left = model_session_truncate(s, (uint32_t)n - 4);
    struct support_rows rest = {out->data + left * out->n_vocab, out->n_vocab};
    return model_eval(s, ids + left, (uint64_t)n - left, MODEL_LOGITS_ALL, support_rows_keep, &rest,
                      err);
}

/* The logits [n][n_vocab] of a model file; the caller frees them. */
static float *logits_of(const char *path, const struct setting *s, const int32_t *ids, int n,
                        size_t *n_vocab)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct model_session_options session = {
        .n_ctx = 128, .n_batch = s->batch, .type_k = s->cache, .type_v = s->cache};
    options.n_threads = s->threads;
    options.level = s->level;
    struct support_session opened;
    support_session_open(&opened, path, &options, &session);
    struct support_rows rows = {.n_vocab = model_facts(opened.model)->n_vocab};
    rows.data = malloc((size_t)n * rows.n_vocab * sizeof(float));
    if (!eval(opened.session, ids, n, s->go_back, &rows, &err))
        fail_msg("%s: %s", err.item, err.text);
    *n_vocab = rows.n_vocab;
    support_session_close(&opened);
    return rows.data;
}

/* ---- Against the other implementation ---- */

static void check_stored(const struct variant *v)
{
    const struct setting plain = {2, 512, cpu_level_best(), QUANT_F32, false};
    struct support_model m = options_of(v, QUANT_F32);
    char path[64], stored[128];
    int32_t ids[N_IDS];
    size_t n_vocab, size;
    temporary(path, v->name);
    write_model(&m, path);
    make_ids(ids, N_IDS, m.n_vocab);
    float *ours = logits_of(path, &plain, ids, N_IDS, &n_vocab);
    unlink(path);
    snprintf(stored, sizeof stored, "test/data/models/%s.f32", v->name);
    float *theirs = (float *)support_read_file(stored, &size);
    if (!theirs) fail_msg("%s is missing (run from the project's root)", stored);
    assert_int_equal(size, N_IDS * n_vocab * sizeof(float));
    double error = support_nmse(ours, theirs, N_IDS * n_vocab);
    printf("%s: NMSE %.3g\n", v->name, error);
    if (!(error <= v->bar)) fail_msg("%s: NMSE %g", v->name, error);
    free(ours);
    free(theirs);
}

static void stored_logits(void **state)
{
    (void)state;
    for (int i = 0; i < N_VARIANTS; i++) check_stored(&variants[i]);
}

/* A row of the table without a variant here, and so without stored logits, is untested. */
static void every_architecture_has_stored_logits(void **state)
{
    (void)state;
    size_t i = 0;
    for (; support_arch(i); i++) {
        bool found = false;
        for (int v = 0; v < N_VARIANTS; v++)
            found = found || strcmp(variants[v].arch, support_arch(i)) == 0;
        if (!found) fail_msg("no variant and no test/data/models/%s.f32", support_arch(i));
    }
    assert_true(i >= 4);
}

/* ---- Against itself ---- */

static void check_same_bytes(const struct variant *v, enum quant_id type, enum quant_id cache)
{
    const enum cpu_level best = cpu_level_best();
    const struct setting settings[] = {
        {1, 512, best, cache, false},        {2, 1, best, cache, false},
        {3, 7, best, cache, true},           {7, 64, best, cache, false},
        {2, 9, CPU_AVX512BF16, cache, true}, {2, 33, CPU_AVX512, cache, false},
        {1, 5, CPU_AVXVNNI, cache, false},   {2, 16, CPU_AVX2, cache, true},
        {1, 1, CPU_AVX2, cache, false},      {2, 512, CPU_SCALAR, cache, false},
        {3, 1, CPU_SCALAR, cache, false},
    };
    struct support_model m = options_of(v, type);
    char path[64];
    int32_t ids[MANY_IDS];
    float *first = NULL;
    size_t n_vocab;
    temporary(path, v->name);
    write_model(&m, path);
    make_ids(ids, MANY_IDS, m.n_vocab);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct setting *s = &settings[i];
        if (!support_level_runs(s->level)) continue;
        float *logits = logits_of(path, s, ids, MANY_IDS, &n_vocab);
        for (size_t row = 0; first && row < MANY_IDS; row++)
            if (memcmp(logits + row * n_vocab, first + row * n_vocab, n_vocab * sizeof(float)) != 0)
                fail_msg("%s in %s: position %zu differs with %d threads, batch %u, level %s",
                         v->name, m.type->name, row, s->threads, s->batch,
                         cpu_level_name(s->level));
        if (first)
            free(logits);
        else
            first = logits;
    }
    free(first);
    unlink(path);
}

static void same_bytes_of_every_architecture(void **state)
{
    (void)state;
    for (int i = 0; i < N_VARIANTS; i++) check_same_bytes(&variants[i], QUANT_F32, QUANT_F16);
}

static void same_bytes_of_every_type(void **state)
{
    (void)state;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        bool some = id == QUANT_Q4_1 || id == QUANT_Q4_K || id == QUANT_BF16;
        if (support_quick() && !some) continue;
        if (type && type->act) check_same_bytes(&variants[5], id, QUANT_F16);
    }
}

static void same_bytes_of_every_cache(void **state)
{
    static const enum quant_id caches[] = {QUANT_F32,  QUANT_BF16, QUANT_Q8_0,
                                           QUANT_Q4_0, QUANT_Q5_1, QUANT_IQ4_NL};
    (void)state;
    size_t n = support_quick() ? 2 : sizeof caches / sizeof *caches;
    for (size_t i = 0; i < n; i++) {
        struct variant wide = variants[5];
        check_same_bytes(&wide, QUANT_Q4_K, caches[i]); /* heads of 64 */
    }
}

/* ---- Recording ---- */

static int write_all(const char *folder)
{
    char path[512];
    for (int i = 0; i < N_VARIANTS; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_model m = options_of(&variants[i], QUANT_F32);
        int32_t ids[N_IDS];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, variants[i].name);
        if (!support_model_write(&m, path, &err)) {
            fprintf(stderr, "%s: %s\n", path, err.text);
            return 1;
        }
        make_ids(ids, N_IDS, m.n_vocab);
        snprintf(path, sizeof path, "%s/ids.txt", folder);
        FILE *f = fopen(path, "w");
        for (int k = 0; f && k < N_IDS; k++) fprintf(f, "%d ", ids[k]);
        if (!f || fclose(f) != 0) return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_has_stored_logits),
        cmocka_unit_test(stored_logits),
        cmocka_unit_test(same_bytes_of_every_architecture),
        cmocka_unit_test(same_bytes_of_every_type),
        cmocka_unit_test(same_bytes_of_every_cache),
    };
    if (argc == 3 && strcmp(argv[1], "--write") == 0) return write_all(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
