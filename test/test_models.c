/* test/test_models.c: tiny models of random weights: the fixtures of test/support_model_tables.c,
 * at least one for each architecture.
 *
 * Each is compared with another implementation, by figures of its logits of 32 ids
 * (test/data/golden/architectures.json, see the README there), and with itself: the same bytes for
 * any threads, batch and level, in F32 and quantized types, with a sliding window and after
 * truncation.
 *
 *   test_models --write FOLDER     writes the models as NAME.gguf, and ids.txt
 *   test_models --table            prints a line for each architecture, for scripts/make-architectures
 *   test_models --figures FOLDER   prints the figures of the logits NAME.f32, float32 [32][vocab]
 */
#include "models/block/blocks.h"
#include "test/support.h"

#include "test/support_files.h"
#include "test/support_level.h"
#include "test/support_model.h"
#include "test/support_session.h"
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_IDS = 32, MANY_IDS = 70 };
static const char figures_file[] = "test/data/golden/architectures.json";

static struct support_model options_of(const struct support_fixture *f, enum quant_id type)
{
    struct support_model m = support_model_of(f);
    m.seed = 42;
    m.type = quant_type_by_id(type);
    if (m.type->block_len > 32) { /* rows must be whole blocks */
        m.n_embd = 256;
        m.n_ff = 512;
        m.head_dim = 64;
    }
    return m;
}

/* Every fixture has at least 300 tokens. */
static void make_ids(int32_t *ids, int n)
{
    struct sample_random r = support_model_random(7);
    for (int i = 0; i < n; i++) ids[i] = (int32_t)(sample_random_u32(&r) % 300);
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
    bool go_back; /* evaluates, truncates the second half, and evaluates it again */
};

/* `whole`: all ids must be evaluated together. */
static bool eval(struct model_session *s, const int32_t *ids, int n, bool go_back, bool whole,
                 struct support_rows *out, struct base_error *err)
{
    if (!model_eval(s, ids, (uint64_t)n, MODEL_LOGITS_ALL, support_rows_keep, out, err))
        return false;
    if (!go_back) return true;
    /* Truncating a few tokens always works; the logits must be the same as before. */
    uint32_t left = model_session_truncate(s, whole ? 0 : (uint32_t)n - 4);
    struct support_rows rest = {out->data + left * out->n_vocab, out->n_vocab};
    return model_eval(s, ids + left, (uint64_t)n - left, MODEL_LOGITS_ALL, support_rows_keep, &rest,
                      err);
}

struct chain {
    float *row; /* of the next draft token */
    size_t n_vocab;
};

static int32_t keep_guess(void *user, const float *logits, struct base_error *err)
{
    struct chain *c = user;
    size_t best = 0;
    (void)err;
    memcpy(c->row, logits, c->n_vocab * sizeof *logits);
    for (size_t i = 1; i < c->n_vocab; i++)
        if (logits[i] > logits[best]) best = i;
    c->row += c->n_vocab;
    return (int32_t)best;
}

/* Evaluates the MTP layer, or a drafter, at positions p that are multiples of `step`. Row p
 * receives the logits after ids[p], where the model has evaluated the ids before it; the next rows,
 * at most four, receive those after each draft token. Other rows do not change. */
static bool eval_drafts(struct model_session *s, const int32_t *ids, int n, int step, bool go_back,
                        const struct support_rows *out, struct base_error *err)
{
    for (int p = step; p < n; p += step) {
        struct chain c = {out->data + (size_t)p * out->n_vocab, out->n_vocab};
        int32_t guess[5] = {ids[p]};
        uint32_t done = (uint32_t)(p - step);
        for (int again = 0; again <= go_back; again++) {
            if (again) done = model_session_truncate(s, (uint32_t)p - 4);
            if (!model_eval(s, ids + done, (uint64_t)p - done, MODEL_LOGITS_NONE, NULL, NULL, err))
                return false;
        }
        if (!model_seq_draft(s, 0, guess, 1, step < 4 ? 1 : 4, keep_guess, &c, err)) return false;
    }
    return true;
}

static const struct support_fixture *fixture(const char *name)
{
    const struct support_fixture *f = support_fixtures;
    while (f->name && strcmp(f->name, name) != 0) f++;
    assert_non_null(f->name);
    return f;
}

/* The logits [n][*n_vocab] of a drafter's file, for the model that it is made for; the caller frees
 * them. */
static float *draft_logits_of(const char *path, const struct setting *s,
                              const struct support_fixture *v, const int32_t *ids, int n,
                              size_t *n_vocab)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct model_session_options session = {
        .n_ctx = 128, .n_batch = s->batch, .type_k = s->cache, .type_v = s->cache};
    const struct support_model base = options_of(fixture(v->base), QUANT_F32);
    struct support_session opened;
    char base_path[64];
    options.n_threads = s->threads;
    options.level = s->level;
    temporary(base_path, "base");
    write_model(&base, base_path);
    support_session_open(&opened, base_path, &options, &session);
    unlink(base_path);
    model_session_free(opened.session);
    struct gguf_file *file = gguf_open(path, &err);
    session.drafter = file ? model_open_drafter(file, opened.engine, &err) : NULL;
    opened.session = session.drafter && model_drafter_fits(session.drafter, opened.model, &err)
                         ? model_session_new(opened.model, &session, &err)
                         : NULL;
    if (!opened.session) fail_msg("%s: %s: %s", v->name, err.item, err.text);
    *n_vocab = model_session_n_draft_vocab(opened.session);
    struct support_rows rows = {.n_vocab = *n_vocab};
    rows.data = calloc((size_t)n * rows.n_vocab, sizeof(float));
    if (!eval_drafts(opened.session, ids, n, n > N_IDS ? 16 : 4, s->go_back, &rows, &err))
        fail_msg("%s: %s: %s", v->name, err.item, err.text);
    model_session_free(opened.session);
    opened.session = NULL;
    model_close(session.drafter);
    gguf_close(file);
    support_session_close(&opened);
    return rows.data;
}

static const struct model_arch *row_of(const char *arch)
{
    const struct model_arch *a = NULL;
    const char *name;
    for (size_t i = 0; (name = model_arch_name(i, &a)) && strcmp(name, arch) != 0;) i++;
    assert_non_null(name);
    return a;
}

/* The logits [n][n_vocab] of a model file, of its MTP layer, or an encoder's hidden states
 * [n][n_embd], whose size is then *n_vocab; the caller frees them. */
static float *logits_of(const char *path, const struct setting *s, const struct support_fixture *v,
                        const int32_t *ids, int n, size_t *n_vocab)
{
    if (v->base) return draft_logits_of(path, s, v, ids, n, n_vocab);
    const bool mtp = v->mtp, encoder = row_of(v->arch)->encoder;
    const bool whole = encoder || row_of(v->arch)->diffusion || row_of(v->arch)->source;
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct model_session_options session = {.n_ctx = 128,
                                            .n_batch = s->batch,
                                            .type_k = s->cache,
                                            .type_v = s->cache,
                                            .mtp = mtp,
                                            .whole = whole,
                                            .hidden = encoder};
    options.n_threads = s->threads;
    options.level = s->level;
    options.predicts = v->predicts;
    struct support_session opened;
    support_session_open(&opened, path, &options, &session);
    const struct model_facts *facts = model_facts(opened.model);
    struct support_rows rows = {.n_vocab = encoder ? facts->n_embd : facts->n_vocab};
    rows.data = calloc((size_t)n * rows.n_vocab, sizeof(float));
    assert_int_equal(model_session_can_draft(opened.session), mtp);
    const int step = n > N_IDS ? 16 : 1;
    if (!(mtp ? eval_drafts(opened.session, ids, n, step, s->go_back, &rows, &err)
              : eval(opened.session, ids, n, s->go_back, encoder || row_of(v->arch)->diffusion,
                     &rows, &err)))
        fail_msg("%s: %s", err.item, err.text);
    *n_vocab = rows.n_vocab;
    support_session_close(&opened);
    return rows.data;
}

/* ---- Against the other implementation ---- */

enum { N_SUMS = 64, N_SOME = 32 };

/* Figures of logits [N_IDS][n_vocab], of which those that forbid an id count as 0: their sum of
 * squares; sums with random signs (bit j of a hash of the index is the sign in sum j); one logit of
 * each position. */
struct figures {
    double squares, sums[N_SUMS], some[N_SOME];
};

static uint64_t splitmix64(uint64_t i)
{
    uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double counted(float logit)
{
    return logit > -FLT_MAX ? (double)logit : 0.0;
}

static struct figures figures_of(const float *logits, size_t n_vocab)
{
    struct figures f = {0};
    for (size_t i = 0; i < N_IDS * n_vocab; i++) {
        const uint64_t signs = splitmix64(i);
        const double logit = counted(logits[i]);
        f.squares += logit * logit;
        for (int j = 0; j < N_SUMS; j++) f.sums[j] += signs >> j & 1 ? -logit : logit;
    }
    for (size_t i = 0; i < N_SOME; i++) f.some[i] = counted(logits[i * n_vocab + i * 37 % n_vocab]);
    return f;
}

/* Estimates the NMSE: the mean of the squared differences of sums with random signs is the squared
 * distance of the logits, with a standard deviation of 18 % for 64 sums. */
static double estimated_nmse(const struct figures *got, const struct figures *want)
{
    double error = 0;
    for (int j = 0; j < N_SUMS; j++) {
        const double d = got->sums[j] - want->sums[j];
        error += d * d / N_SUMS;
    }
    return error / want->squares;
}

static bool read_numbers(const json_t *array, double *out, size_t n)
{
    if (json_array_size(array) != n) return false;
    for (size_t i = 0; i < n; i++) out[i] = json_number_value(json_array_get(array, i));
    return true;
}

static bool read_figures(const json_t *root, const char *name, struct figures *f)
{
    const json_t *o = json_object_get(root, name);
    f->squares = json_number_value(json_object_get(o, "squares"));
    return o && f->squares > 0 && read_numbers(json_object_get(o, "sums"), f->sums, N_SUMS) &&
           read_numbers(json_object_get(o, "some"), f->some, N_SOME);
}

static void check_figures(const struct support_fixture *v, const json_t *root)
{
    const struct setting plain = {1, 512, cpu_level_best(), QUANT_F32, false};
    const double bar = v->bar > 0 ? v->bar : 1e-12;
    struct support_model m = options_of(v, QUANT_F32);
    struct figures want;
    char path[64];
    int32_t ids[N_IDS];
    size_t n_vocab;
    if (!read_figures(root, v->name, &want))
        fail_msg("%s: no figures in %s", v->name, figures_file);
    temporary(path, v->name);
    write_model(&m, path);
    make_ids(ids, N_IDS);
    float *ours = logits_of(path, &plain, v, ids, N_IDS, &n_vocab);
    unlink(path);
    const struct figures got = figures_of(ours, n_vocab);
    const double error = estimated_nmse(&got, &want);
    printf("%s: NMSE by figures %.3g\n", v->name, error);
    if (!(error <= bar)) fail_msg("%s: NMSE by figures %g", v->name, error);
    /* A single logit may be off by ten standard errors. */
    const double most = 10 * sqrt(bar * want.squares / (double)(N_IDS * n_vocab));
    for (int i = 0; i < N_SOME; i++)
        if (!(fabs(got.some[i] - want.some[i]) <= most + 1e-8))
            fail_msg("%s: position %d: logit %.9g, not %.9g", v->name, i, got.some[i],
                     want.some[i]);
    free(ours);
}

static void logits_are_those_of_an_independent_implementation(void **state)
{
    (void)state;
    json_t *root = json_load_file(figures_file, 0, NULL);
    if (!root) fail_msg("%s is missing (run from the project's root)", figures_file);
    for (const struct support_fixture *f = support_fixtures; f->name; f++) check_figures(f, root);
    for (const struct support_fixture *f = support_drafters; f->name; f++) check_figures(f, root);
    json_decref(root);
}

/* A row of the table without a fixture is untested. */
static void every_architecture_has_a_fixture(void **state)
{
    (void)state;
    size_t i = 0;
    for (const char *name; (name = model_arch_name(i, NULL)); i++) {
        bool found = false;
        for (const struct support_fixture *f = support_fixtures; f->name; f++)
            found = found || strcmp(f->arch, name) == 0;
        if (!found) fail_msg("no fixture for %s", name);
    }
    assert_true(i >= 4);
}

/* ---- Against itself ---- */

/* The nth case has the first setting and every third of the others, with one thread; `all`: all
 * settings with their threads, in a short run every third. */
static void check_same_bytes(const struct support_fixture *v, enum quant_id type,
                             enum quant_id cache, size_t nth, bool all)
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
    m.distinct_rows = 24; /* fewer to encode */
    size_t n_vocab;
    temporary(path, v->name);
    write_model(&m, path);
    make_ids(ids, MANY_IDS);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct setting s = settings[i];
        if (!support_level_runs(s.level)) continue;
        const size_t part = support_quick() ? 5 : all ? 1 : 3;
        if (i > 0 && (i + nth) % part != 0) continue;
        if (!all) s.threads = 1;
        float *logits = logits_of(path, &s, v, ids, MANY_IDS, &n_vocab);
        for (size_t row = 0; first && row < MANY_IDS; row++)
            if (memcmp(logits + row * n_vocab, first + row * n_vocab, n_vocab * sizeof(float)) != 0)
                fail_msg("%s in %s: position %zu differs with %d threads, batch %u, level %s",
                         v->name, m.type->name, row, s.threads, s.batch, cpu_level_name(s.level));
        if (first)
            free(logits);
        else
            first = logits;
    }
    free(first);
    unlink(path);
}

static const struct support_fixture *first_fixture_of(const char *arch)
{
    const struct support_fixture *f = support_fixtures;
    while (f->name && strcmp(f->arch, arch) != 0) f++;
    assert_non_null(f->name);
    return f;
}

/* Fixtures whose blocks no other one has, in addition to the first of each kind. */
static bool has_own_blocks(const struct support_fixture *f)
{
    static const char *const names[] = {"bert", "modern-bert", "t5", "llama-predicted"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(f->name, names[i]) == 0) return true;
    for (size_t i = 0; support_arch(i); i++)
        if (support_arch_is_first(i) && first_fixture_of(support_arch(i)) == f) return true;
    return false;
}

/* Short runs omit architectures of a kind that has been tested. */
static void every_architecture_gives_the_same_bits_for_any_setting(void **state)
{
    size_t nth = 0;
    (void)state;
    for (const struct support_fixture *f = support_fixtures; f->name; f++) {
        const bool own = has_own_blocks(f);
        if (own || !support_quick()) check_same_bytes(f, QUANT_F32, QUANT_F16, nth++, own);
    }
    for (const struct support_fixture *f = support_drafters; f->name; f++)
        check_same_bytes(f, QUANT_F32, QUANT_F16, nth++, false);
}

/* Old files of Mixtral have a tensor for each expert. */
static void experts_one_by_one_give_the_bits_of_stacked_ones(void **state)
{
    const struct setting plain = {1, 32, cpu_level_best(), QUANT_F16, false};
    const enum quant_id types[] = {QUANT_F32, support_quick() ? QUANT_Q4_0 : QUANT_Q4_K};
    (void)state;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        float *logits[SUPPORT_REVERSED + 1];
        struct support_model m = options_of(fixture("llama-moe"), types[k]);
        int32_t ids[MANY_IDS];
        size_t n_vocab;
        make_ids(ids, MANY_IDS);
        for (int how = SUPPORT_STACKED; how <= SUPPORT_REVERSED; how++) {
            char path[64];
            m.experts = (enum support_experts)how;
            temporary(path, "one-by-one");
            write_model(&m, path);
            logits[how] = logits_of(path, &plain, fixture("llama-moe"), ids, MANY_IDS, &n_vocab);
            unlink(path);
        }
        const size_t size = MANY_IDS * n_vocab * sizeof(float);
        assert_memory_equal(logits[SUPPORT_ONE_BY_ONE], logits[SUPPORT_STACKED], size);
        assert_memory_equal(logits[SUPPORT_REVERSED], logits[SUPPORT_STACKED], size);
        for (int how = SUPPORT_STACKED; how <= SUPPORT_REVERSED; how++) free(logits[how]);
    }
}

/* Kimi delta attention, lightning attention and gates of attention have neither. */
static void biases_and_scales_without_a_use_do_not_change_logits(void **state)
{
    static const struct {
        const char *fixture, *unused;
    } cases[] = {
        {"kimi-linear", "attn_k.bias attn_v.bias attn_k.scale attn_v.scale ssm_beta.scale"},
        {"minimax-01", "attn_qkv.scale"},
        {"afmoe", "attn_gate.scale"}};
    const struct setting plain = {1, 32, cpu_level_best(), QUANT_F16, false};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct support_fixture *f = fixture(cases[k].fixture);
        struct support_model m = options_of(f, QUANT_F32);
        float *logits[2];
        int32_t ids[MANY_IDS];
        size_t n_vocab;
        char path[64], with[512];
        make_ids(ids, MANY_IDS);
        for (int extra = 0; extra < 2; extra++) {
            temporary(path, "unused");
            write_model(&m, path);
            logits[extra] = logits_of(path, &plain, f, ids, MANY_IDS, &n_vocab);
            unlink(path);
            snprintf(with, sizeof with, "%s %s", m.with ? m.with : "", cases[k].unused);
            m.with = with;
        }
        assert_memory_equal(logits[1], logits[0], MANY_IDS * n_vocab * sizeof(float));
        for (int extra = 0; extra < 2; extra++) free(logits[extra]);
    }
}

/* (Each type in all settings: test_matmul.c.) */
static void every_type_gives_the_same_bits_for_any_setting(void **state)
{
    (void)state;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        bool some = id == QUANT_Q4_1 || id == QUANT_Q4_K || id == QUANT_BF16 || id == QUANT_IQ4_KS;
        if (support_quick() && !some) continue;
        if (type && type->act) check_same_bytes(fixture("gemma3"), id, QUANT_F16, id, some);
    }
}

static void every_cache_gives_the_same_bits_for_any_setting(void **state)
{
    static const enum quant_id caches[] = {QUANT_F32,  QUANT_BF16, QUANT_Q8_0,
                                           QUANT_Q4_0, QUANT_Q5_1, QUANT_IQ4_NL};
    (void)state;
    size_t n = support_quick() ? 2 : sizeof caches / sizeof *caches;
    for (size_t i = 0; i < n; i++) /* heads of 64 */
        check_same_bytes(fixture("gemma3"), QUANT_Q4_K, caches[i], i, true);
}

/* ---- Recording ---- */

/* Returns fixture i: of models, then of drafters; NULL past the last one. */
static const struct support_fixture *fixture_at(size_t i)
{
    const struct support_fixture *f = support_fixtures;
    for (; f->name; f++)
        if (i-- == 0) return f;
    for (f = support_drafters; f->name; f++)
        if (i-- == 0) return f;
    return NULL;
}

static int write_all(const char *folder)
{
    char path[512];
    const struct support_fixture *v;
    for (size_t i = 0; (v = fixture_at(i)); i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_model m = options_of(v, QUANT_F32);
        int32_t ids[N_IDS];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, v->name);
        if (!support_model_write(&m, path, &err)) {
            fprintf(stderr, "%s: %s: %s\n", path, err.item, err.text);
            return 1;
        }
        make_ids(ids, N_IDS);
        snprintf(path, sizeof path, "%s/ids.txt", folder);
        FILE *f = fopen(path, "w");
        for (int k = 0; f && k < N_IDS; k++) fprintf(f, "%d ", ids[k]);
        if (!f || fclose(f) != 0) return 1;
    }
    return 0;
}

static void print_numbers(const char *name, const double *x, int n)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < n; i++) printf("%s%.10g", i ? ", " : "", x[i]);
    printf("]");
}

static int print_figures(const char *folder)
{
    const char *before = "{";
    const struct support_fixture *v;
    for (size_t i = 0; (v = fixture_at(i)); i++) {
        char path[512];
        size_t size;
        snprintf(path, sizeof path, "%s/%s.f32", folder, v->name);
        float *logits = (float *)support_read_file(path, &size);
        if (!logits) continue;
        const struct figures f = figures_of(logits, size / sizeof(float) / N_IDS);
        printf("%s\n\"%s\": {\"squares\": %.10g", before, v->name, f.squares);
        print_numbers("sums", f.sums, N_SUMS);
        print_numbers("some", f.some, N_SOME);
        printf("}");
        before = ",";
        free(logits);
    }
    printf("\n}\n");
    return 0;
}

/* ---- The table of docs/architectures.md ---- */

static const char *network_of(const struct model_arch *a)
{
    static const char *const forms[] = {"gated", "gated, gate and up in one tensor", "plain",
                                        "plain, xIELU", "gated or plain, by the file's tensors"};
    return a->plan.ffn ? model_blocks[a->plan.ffn]->name : forms[a->ffn.form];
}

static const char *features_of(const struct model_arch *a, char *out, size_t size)
{
    const struct {
        bool has;
        const char *text;
    } all[] = {
        {a->encoder, "encoder"},
        {a->diffusion, "diffusion"},
        {a->source, "an encoder before the decoder"},
        {a->norm == MODEL_LAYER_NORM, "layer norms"},
        {a->norm == MODEL_LAYER_NORM_PLAIN, "layer norms without weights"},
        {a->norm == MODEL_RMS_NORM_PLAIN, "norms without weights"},
        {a->norm == MODEL_NORM_BY_EPSILON, "layer or RMS norms"},
        {a->plan.loops, "layers run several times"},
        {a->plan.stacks, "two stacks of layers run in turns"},
        {a->residual == MODEL_SANDWICH, "norms before and after"},
        {a->residual == MODEL_POST_NORM, "norms after"},
        {a->residual == MODEL_POST_NORM_KEY, "norms before or after"},
        {a->ends.silent[1] > 0, "ids of images are never chosen"},
        {a->residual == MODEL_SUM_NORM, "norms of sums"},
        {a->residual >= MODEL_PARALLEL, "parallel residual"},
        {a->attn.rope == MODEL_ROPE_NEOX, "NEOX pairs"},
        {a->attn.rope == MODEL_ROPE_NONE, "no RoPE"},
        {a->attn.rotate == MODEL_ROTATE_WINDOWED, "RoPE on windowed layers"},
        {a->attn.rotate == MODEL_ROTATE_LEADING, "RoPE on windowed and leading layers"},
        {a->attn.rotate == MODEL_ROTATE_NOT_4TH, "no RoPE on each fourth layer"},
        {a->attn.rotate == MODEL_ROTATE_PATTERN, "RoPE on marked layers"},
        {a->attn.gate != MODEL_GATE_NONE, "gated attention"},
        {a->attn.qk_norm != MODEL_QK_NORM_NONE, "normalized queries and keys"},
        {a->attn.rotate == MODEL_ROTATE_NOT_1ST, "RoPE on windowed layers"},
        {a->attn.window.rule != MODEL_WINDOW_NONE && !a->attn.window.chunked, "sliding windows"},
        {a->attn.window.chunked, "attention inside pieces"},
        {a->attn.softcap != 0.0f, "score softcap"},
        {a->attn.alibi != 0.0f, "ALiBi"},
        {a->attn.relative, "biases by relative position"},
        {a->attn.yarn_log != MODEL_YARN_LOG_NONE, "YaRN with a log multiplier"},
        {a->attn.temperature != MODEL_TEMPERATURE_NONE, "query temperature"},
        {a->attn.indexed != MODEL_INDEXED_NONE, "keys chosen by an indexer"},
        {a->ends.positions, "learned positions"},
        {a->ends.token_types, "token types"},
        {a->ends.embd_skip, "embeddings added to each layer"},
        {a->ends.embd_norm != MODEL_EMBD_NORM_NONE, "normalized embeddings"},
        {a->ends.embd_scale != MODEL_EMBD_PLAIN || a->ends.embd_default > 0, "scaled embeddings"},
        {a->ffn.clamps || a->ffn.situ || a->ffn.oai, "bounded units"},
        {a->residual == MODEL_HYPER, "hyper-connections"},
        {a->residual == MODEL_HYPER_MIXED || a->residual == MODEL_HYPER_MEAN,
         "hyper-connections with mixed streams"},
        {a->residual == MODEL_HYPER_GATED, "hyper-connections with gates"},
        {a->plan.ngram, "embeddings of several ids together"},
        {a->plan.switched, "adapters that ids choose"},
        {a->experts.hash, "experts by token id"},
        {a->residual == MODEL_NORM_STREAM, "normalized residuals"},
        {a->residual == MODEL_ATTENDED, "sublayers read mixtures of earlier streams"},
        {a->ends.residual_scale || a->ends.residual_default > 0, "scaled residuals"},
        {a->ends.logit_scale != MODEL_LOGITS_PLAIN || a->ends.logits_by_embd > 0, "scaled logits"},
        {a->ends.softcap_key, "logit softcap"},
        {a->plan.rule == MODEL_PLAN_COUNTS, "layers without attention or network"},
        {a->plan.rule == MODEL_PLAN_ONE, "a mixer or a network for each layer"},
        {a->plan.rule == MODEL_PLAN_MIXERS, "no networks"},
        {a->attn.q_gate, "gated output"},
        {a->attn.v_norm, "normalized values"},
        {a->attn.window.own_heads, "heads of windowed layers have a size of their own"},
        {a->attn.sharing != MODEL_KV_OWN, "shared keys and values"},
        {a->mtp != MODEL_MTP_NONE, "may have an MTP layer"},
        {a->plan.per_layer, "per-layer embeddings"},
        {a->plan.altup, "AltUp, LAuReL, sparse activations"},
        {a->experts.allowed && a->experts.beside == MODEL_BESIDE_NONE, "or experts"},
        {a->experts.chunks, "small experts behind groups of them"},
        {a->experts.beside != MODEL_BESIDE_NONE, "experts beside networks"},
    };
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].has)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? "; " : "", all[i].text);
    return out;
}

/* The mixers of an architecture's layers. */
static const char *mixers_of(const struct model_arch *a, char *out, size_t size)
{
    const struct model_plan *plan = &a->plan;
    const char *first = model_blocks[plan->mixer]->name;
    if (plan->mixer_2)
        snprintf(out, size, "%s and %s together", first, model_blocks[plan->mixer_2]->name);
    else if (plan->recurrent)
        snprintf(out, size, "%s or %s", first, model_blocks[plan->recurrent]->name);
    else
        snprintf(out, size, "%s", first);
    return out;
}

static int print_table(void)
{
    const struct model_arch *a;
    const char *name;
    for (size_t i = 0; (name = model_arch_name(i, &a)); i++) {
        char features[512], mixers[96];
        double bar = 0;
        for (const struct support_fixture *f = support_fixtures; f->name; f++)
            if (!f->mtp && strcmp(f->arch, name) == 0) bar = fmax(bar, f->bar > 0 ? f->bar : 1e-12);
        printf("{\"name\": \"%s\", \"mixer\": \"%s\", \"network\": \"%s\", \"features\": \"%s\", "
               "\"bar\": %g}\n",
               name, mixers_of(a, mixers, sizeof mixers), network_of(a),
               features_of(a, features, sizeof features), bar);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_has_a_fixture),
        cmocka_unit_test(logits_are_those_of_an_independent_implementation),
        cmocka_unit_test(every_architecture_gives_the_same_bits_for_any_setting),
        cmocka_unit_test(experts_one_by_one_give_the_bits_of_stacked_ones),
        cmocka_unit_test(biases_and_scales_without_a_use_do_not_change_logits),
        cmocka_unit_test(every_type_gives_the_same_bits_for_any_setting),
        cmocka_unit_test(every_cache_gives_the_same_bits_for_any_setting),
    };
    if (argc == 2 && strcmp(argv[1], "--table") == 0) return print_table();
    if (argc == 3 && strcmp(argv[1], "--write") == 0) return write_all(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--figures") == 0) return print_figures(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
