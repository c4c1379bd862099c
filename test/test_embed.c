/* test/test_embed.c: embeddings: pooling, classifiers and norms against naive double precision; the
 * same bits alone, in any batch, with any threads and level; all-MiniLM-L6-v2 against reference
 * values (test/data/golden/all-minilm-l6-v2.json). */
#include "test/support.h"

#include "generate/embed.h"
#include "test/support_files.h"
#include "test/support_level.h"
#include "test/support_model.h"
#include "test/support_session.h"
#include "text/tokenizer/tokenizer.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_TEXTS = 24, N_CTX = 64, MAX_SIZE = 300 };

struct texts {
    int32_t ids[N_TEXTS][N_CTX];
    size_t n[N_TEXTS];
};

/* Texts of 1 to N_CTX ids. */
static void make_texts(struct texts *t)
{
    struct sample_random r = support_model_random(11);
    for (size_t i = 0; i < N_TEXTS; i++) {
        t->n[i] = i < 3 ? 1 + i * (N_CTX / 2 - 1) : 1 + sample_random_u32(&r) % N_CTX;
        for (size_t k = 0; k < N_CTX; k++) t->ids[i][k] = (int32_t)(sample_random_u32(&r) % 300);
    }
    t->n[2] = N_CTX;
}

struct setting {
    int threads;
    uint32_t n_seq, n_batch;
    enum cpu_level level;
};

static void open_model(struct support_session *s, const char *name, const char *with,
                       const char *keys, const struct setting *how)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options engine = engine_options_default();
    struct model_session_options session = model_session_options_default();
    struct support_model m = support_model_default(name);
    char path[64], all[1024];
    snprintf(path, sizeof path, "/tmp/infer-embed-%d.gguf", (int)getpid());
    snprintf(all, sizeof all, "%s %s", m.with ? m.with : "", with ? with : "");
    m.with = all;
    if (keys) m.keys = keys;
    if (!support_model_write(&m, path, &err)) fail_msg("%s: %s", err.item, err.text);
    engine.n_threads = how->threads;
    engine.level = how->level;
    session.hidden = true;
    session.n_ctx = N_CTX;
    session.n_seq = how->n_seq;
    session.n_batch = how->n_batch;
    support_session_open(s, path, &engine, &session);
    unlink(path);
}

/* Computes rows [n][size] of the texts first .. first + n - 1; the caller frees them. */
static float *embed(struct support_session *s, enum model_pooling pooling, const struct texts *t,
                    size_t first, size_t n, uint32_t *size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct generate_embed_text text[N_TEXTS];
    struct generate_embedder *e =
        generate_embedder_new(s->session, model_facts(s->model), pooling, &err);
    if (!e) fail_msg("%s", err.text);
    *size = generate_embedder_size(e);
    const size_t room = pooling == MODEL_POOL_NONE ? N_CTX : 1;
    float *rows = calloc(n * room, *size * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        text[i] = (struct generate_embed_text){t->ids[first + i], t->n[first + i],
                                               rows + i * room * *size, NULL};
    if (!generate_embedder_run(e, text, n, &err)) fail_msg("%s", err.text);
    assert_int_equal(generate_embedder_done(e), n);
    generate_embedder_free(e);
    return rows;
}

/* The fastest kernels: the bits are those of any level. */
static const struct setting *plain(void)
{
    static struct setting s;
    s = (struct setting){1, 4, 64, cpu_level_best()};
    return &s;
}

/* ---- The same bits ---- */

static void check_bits(const char *name, enum model_pooling pooling)
{
    const enum cpu_level best = cpu_level_best();
    const struct setting settings[] = {{1, 1, 64, best},
                                       {2, 16, 512, best},
                                       {3, 5, 100, CPU_AVX512},
                                       {2, 24, 64, CPU_AVX2},
                                       {1, 3, 70, CPU_SCALAR}};
    struct support_session s;
    struct texts t;
    uint32_t size;
    make_texts(&t);
    open_model(&s, name, NULL, NULL, &settings[0]);
    float *alone[N_TEXTS];
    for (size_t i = 0; i < N_TEXTS; i++) alone[i] = embed(&s, pooling, &t, i, 1, &size);
    support_session_close(&s);
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        if (!support_level_runs(settings[k].level)) continue;
        open_model(&s, name, NULL, NULL, &settings[k]);
        const size_t some = support_quick() && settings[k].level == CPU_SCALAR ? 6 : N_TEXTS;
        float *rows = embed(&s, pooling, &t, 0, some, &size);
        for (size_t i = 0; i < some; i++) {
            const size_t room = pooling == MODEL_POOL_NONE ? N_CTX : 1;
            const size_t n = pooling == MODEL_POOL_NONE ? t.n[i] : 1;
            if (memcmp(rows + i * room * size, alone[i], n * size * sizeof *rows) != 0)
                fail_msg("%s: text %zu of %zu ids differs under setting %zu", name, i, t.n[i], k);
        }
        free(rows);
        support_session_close(&s);
    }
    for (size_t i = 0; i < N_TEXTS; i++) free(alone[i]);
}

static void a_row_has_the_same_bits_alone_and_in_any_batch(void **state)
{
    (void)state;
    check_bits("bert", MODEL_POOL_MEAN);
    check_bits("modern-bert", MODEL_POOL_CLS);
    check_bits("jina-bert-v2", MODEL_POOL_NONE);
    check_bits("gemma-embedding", MODEL_POOL_MEAN);
    check_bits("t5encoder", MODEL_POOL_MEAN);
    check_bits("qwen3", MODEL_POOL_LAST); /* a decoder */
}

/* ---- Pooling and classifiers ---- */

static void pooling_is_that_of_its_name(void **state)
{
    (void)state;
    struct support_session s;
    struct texts t;
    uint32_t size;
    make_texts(&t);
    open_model(&s, "bert", NULL, NULL, plain());
    float *all = embed(&s, MODEL_POOL_NONE, &t, 0, N_TEXTS, &size);
    assert_int_equal(size, 64);
    for (enum model_pooling p = MODEL_POOL_MEAN; p <= MODEL_POOL_LAST; p++) {
        float *rows = embed(&s, p, &t, 0, N_TEXTS, &size);
        for (size_t i = 0; i < N_TEXTS; i++)
            for (uint32_t d = 0; d < size; d++) {
                const float *token = all + i * N_CTX * size + d;
                double want = 0;
                for (size_t k = 0; k < t.n[i]; k++)
                    if (p == MODEL_POOL_MEAN)
                        want += (double)token[k * size] / (double)t.n[i];
                    else if (k == (p == MODEL_POOL_CLS ? 0 : t.n[i] - 1))
                        want = (double)token[k * size];
                if (!(fabs((double)rows[i * size + d] - want) <= 1e-6))
                    fail_msg("pooling %d, text %zu, number %u: %g, not %g", p, i, d,
                             (double)rows[i * size + d], want);
            }
        free(rows);
    }
    free(all);
    support_session_close(&s);
}

/* The values of a tensor of a file in F32. */
static const float *tensor(const struct support_session *s, const char *name)
{
    const struct gguf_tensor *t = gguf_tensor_find(s->file, name);
    if (!t) fail_msg("no tensor %s", name);
    return t->data;
}

/* y = W x + b */
static void product(const float *w, const float *b, const double *x, size_t rows, size_t columns,
                    double *y)
{
    for (size_t i = 0; i < rows; i++) {
        y[i] = b ? (double)b[i] : 0;
        for (size_t k = 0; k < columns; k++) y[i] += (double)w[i * columns + k] * x[k];
    }
}

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

/* Compares the scores with those of the classifier on the row that the model's pooling names. */
static void check_classifier(const char *name, const char *with, enum model_pooling from,
                             size_t n_classes)
{
    struct support_session s;
    struct texts t;
    uint32_t size, n;
    double x[MAX_SIZE], u[MAX_SIZE], y[MAX_SIZE], sum = 0;
    make_texts(&t);
    open_model(&s, name, with, NULL, plain());
    float *rows = embed(&s, from, &t, 0, N_TEXTS, &n);
    float *scores = embed(&s, MODEL_POOL_RANK, &t, 0, N_TEXTS, &size);
    assert_int_equal(size, n_classes);
    const bool norm = strstr(with, "cls.norm"), cls = strstr(with, "cls.weight");
    const bool decoder = from == MODEL_POOL_LAST;
    for (size_t i = 0; i < N_TEXTS; i++) {
        for (uint32_t d = 0; d < n; d++) u[d] = x[d] = (double)rows[i * n + d];
        if (cls) product(tensor(&s, "cls.weight"), tensor(&s, "cls.bias"), x, n, n, u);
        for (uint32_t d = 0; cls && d < n; d++) u[d] = norm ? gelu(u[d]) : tanh(u[d]);
        if (norm) {
            double mean = 0, square = 0;
            for (uint32_t d = 0; d < n; d++) mean += u[d] / n;
            for (uint32_t d = 0; d < n; d++) square += (u[d] - mean) * (u[d] - mean) / n;
            for (uint32_t d = 0; d < n; d++)
                u[d] =
                    (u[d] - mean) / sqrt(square + 1e-5) * (double)tensor(&s, "cls.norm.weight")[d];
        }
        product(tensor(&s, "cls.output.weight"), NULL, u, n_classes, n, y);
        sum = 0;
        for (size_t c = 0; c < n_classes; c++) sum += exp(y[c]);
        for (size_t c = 0; c < n_classes; c++) {
            const double want = decoder ? exp(y[c]) / sum : y[c];
            if (!(fabs((double)scores[i * n_classes + c] - want) <= 2e-5))
                fail_msg("%s, text %zu: score %g, not %g", name, i,
                         (double)scores[i * n_classes + c], want);
        }
    }
    free(rows);
    free(scores);
    support_session_close(&s);
}

static void classifiers_score_a_row(void **state)
{
    (void)state;
    check_classifier("bert", "cls.weight=64 cls.bias cls.output.weight=1", MODEL_POOL_CLS, 1);
    check_classifier("modern-bert", "cls.weight=64 cls.bias cls.norm.weight=1 cls.output.weight=3",
                     MODEL_POOL_MEAN, 3);
    check_classifier("qwen3", "cls.output.weight=2", MODEL_POOL_LAST, 2);
}

static void projections_follow_the_pooling(void **state)
{
    (void)state;
    struct support_session s;
    struct texts t;
    uint32_t size, n;
    double x[MAX_SIZE], u[MAX_SIZE], y[MAX_SIZE];
    make_texts(&t);
    for (int none = 0; none < 2; none++) {
        const enum model_pooling pooling = none ? MODEL_POOL_NONE : MODEL_POOL_MEAN;
        open_model(&s, "gemma-embedding", NULL, NULL, plain());
        float *rows = embed(&s, pooling, &t, 1, 2, &n);
        support_session_close(&s);
        open_model(&s, "gemma-embedding", "dense_2.weight=64 dense_3.weight=48", NULL, plain());
        float *projected = embed(&s, pooling, &t, 1, 2, &size);
        assert_int_equal(size, 48);
        for (size_t i = 0; i < (none ? N_CTX + t.n[2] : 2); i++) {
            for (uint32_t d = 0; d < n; d++) x[d] = (double)rows[i * n + d];
            product(tensor(&s, "dense_2.weight"), NULL, x, 64, n, u);
            product(tensor(&s, "dense_3.weight"), NULL, u, 48, 64, y);
            for (uint32_t d = 0; d < size; d++)
                assert_true(fabs((double)projected[i * size + d] - y[d]) <= 2e-5);
        }
        free(rows);
        free(projected);
        support_session_close(&s);
    }
}

/* With short convolutions only, a row depends on the tokens that their taps reach: with five layers
 * of three taps five to each side, or ten before it if the model is causal. */
static void taps_of_convolutions_reach_to_both_sides(void **state)
{
    (void)state;
    const size_t at = 20;
    for (int causal = 0; causal < 2; causal++) {
        struct support_session s;
        struct texts t;
        uint32_t size;
        make_texts(&t);
        memcpy(t.ids[1], t.ids[2], sizeof t.ids[2]);
        t.n[1] = t.n[2];
        t.ids[1][at]++;
        open_model(&s, "lfm2", NULL,
                   causal ? "attention.head_count_kv=0 shortconv.l_cache=3"
                          : "attention.head_count_kv=0 shortconv.l_cache=3 attention.causal=false",
                   plain());
        float *rows = embed(&s, MODEL_POOL_NONE, &t, 1, 2, &size);
        for (size_t k = 0; k < N_CTX; k++)
            assert_int_equal(
                !memcmp(rows + k * size, rows + (N_CTX + k) * size, size * sizeof *rows),
                k < (causal ? at : at - 5) || k > (causal ? at + 10 : at + 5));
        free(rows);
        support_session_close(&s);
    }
}

static void the_file_names_the_pooling(void **state)
{
    (void)state;
    struct support_session s;
    open_model(&s, "bert", NULL, "pooling_type=2", plain());
    assert_int_equal(model_facts(s.model)->pooling, MODEL_POOL_CLS);
    assert_true(model_facts(s.model)->bidirectional);
    assert_false(model_facts(s.model)->writes);
    support_session_close(&s);
    open_model(&s, "qwen3", NULL, NULL, plain());
    assert_int_equal(model_facts(s.model)->pooling, MODEL_POOL_LAST);
    assert_true(model_facts(s.model)->writes);
    support_session_close(&s);
    open_model(&s, "qwen3", NULL, "pooling_type=4294967295", plain());
    assert_int_equal(model_facts(s.model)->pooling, MODEL_POOL_LAST);
    assert_false(model_facts(s.model)->has_pooling);
    support_session_close(&s);
    open_model(&s, "qwen3", NULL, "attention.causal=false", plain());
    assert_int_equal(model_facts(s.model)->pooling, MODEL_POOL_MEAN);
    assert_false(model_facts(s.model)->writes);
    support_session_close(&s);
}

/* ---- Errors ---- */

static void what_cannot_be_computed_is_an_error(void **state)
{
    (void)state;
    struct support_session s;
    struct base_error err = BASE_ERROR_INIT;
    const struct model_session_options text = model_session_options_default();
    const struct model_token twice[] = {{1, 0, true}, {2, 1, true}, {3, 0, true}};
    int32_t ids[N_CTX + 1] = {1, 2, 3};
    float out[64];
    open_model(&s, "bert", NULL, NULL, plain());
    assert_null(model_session_new(s.model, &text, &err)); /* no logits */
    assert_int_equal(err.code, BASE_MODEL);
    err = BASE_ERROR_INIT;
    assert_null(generate_embedder_new(s.session, model_facts(s.model), MODEL_POOL_RANK, &err));
    assert_int_equal(err.code, BASE_USAGE);
    err = BASE_ERROR_INIT;
    assert_false(model_eval_batch(s.session, twice, 3, NULL, NULL, &err));
    assert_int_equal(err.code, BASE_FAILED);
    err = BASE_ERROR_INIT;
    assert_true(model_eval(s.session, ids, 2, MODEL_LOGITS_ALL, NULL, NULL, &err));
    assert_false(model_eval(s.session, ids, 1, MODEL_LOGITS_ALL, NULL, NULL, &err));
    assert_int_equal(err.code, BASE_FAILED);
    err = BASE_ERROR_INIT;
    struct generate_embedder *e =
        generate_embedder_new(s.session, model_facts(s.model), MODEL_POOL_MEAN, &err);
    struct generate_embed_text long_text = {ids, N_CTX + 1, out, NULL},
                               no_text = {ids, 0, out, NULL};
    assert_false(generate_embedder_run(e, &long_text, 1, &err));
    assert_int_equal(err.code, BASE_TOO_LONG);
    err = BASE_ERROR_INIT;
    assert_false(generate_embedder_run(e, &no_text, 1, &err));
    assert_int_equal(err.code, BASE_USAGE);
    generate_embedder_free(e);
    support_session_close(&s);
}

/* ---- Norms ---- */

static void norms_are_those_of_their_codes(void **state)
{
    (void)state;
    static const struct {
        int p;
        float want[4];
    } cases[] = {{-1, {3, -4, 0, 12}},
                 {0, {8190, -10920, 0, 32760}},
                 {1, {3 / 19.0f, -4 / 19.0f, 0, 12 / 19.0f}},
                 {2, {3 / 13.0f, -4 / 13.0f, 0, 12 / 13.0f}},
                 {3, {0.2457609f, -0.3276812f, 0, 0.9830436f}}}; /* (27 + 64 + 1728)^(1/3) */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float v[] = {3, -4, 0, 12}, zero[4] = {0};
        generate_embed_normalize(v, 4, cases[i].p);
        generate_embed_normalize(zero, 4, cases[i].p);
        for (int k = 0; k < 4; k++) {
            if (!(fabsf(v[k] - cases[i].want[k]) <= 2e-4f * fabsf(cases[i].want[k])))
                fail_msg("norm %d: %g, not %g", cases[i].p, (double)v[k], (double)cases[i].want[k]);
            assert_true(zero[k] == 0.0f);
        }
    }
    const float a[] = {1, 2}, b[] = {-2, 1}, c[] = {2, 4}, none[] = {0, 0};
    assert_true(fabs(generate_embed_cosine(a, b, 2)) < 1e-12);
    assert_true(fabs(generate_embed_cosine(a, c, 2) - 1) < 1e-12);
    assert_true(generate_embed_cosine(a, none, 2) == 0);
}

/* ---- A published model ---- */

static void check_golden(const char *file, double bar)
{
    char path[512];
    if (!support_model_path(file, path, sizeof path)) {
        printf("skipped: %s (no such model; scripts/make-embedding-model says how it is made)\n",
               file);
        return;
    }
    struct engine_options engine = engine_options_default();
    struct model_session_options session = model_session_options_default();
    struct support_session s;
    struct base_error err = BASE_ERROR_INIT;
    session.hidden = true;
    session.n_seq = 8;
    support_session_open(&s, path, &engine, &session);
    struct text_tokenizer *tokenizer = text_tokenizer_open(s.file, &err);
    struct generate_embedder *e =
        generate_embedder_new(s.session, model_facts(s.model), model_facts(s.model)->pooling, &err);
    json_t *root = json_load_file("test/data/golden/all-minilm-l6-v2.json", 0, NULL);
    const json_t *sentence;
    size_t i;
    assert_true(tokenizer && e && root);
    assert_int_equal(generate_embedder_size(e), 384);
    json_array_foreach(root, i, sentence)
    {
        const char *text = json_string_value(json_object_get(sentence, "text"));
        const json_t *want = json_object_get(sentence, "embedding");
        struct text_ids ids = TEXT_IDS_INIT;
        float got[384], row[384];
        assert_int_equal(json_array_size(want), 384);
        for (size_t d = 0; d < 384; d++) row[d] = (float)json_number_value(json_array_get(want, d));
        assert_true(text_encode(tokenizer, text, strlen(text), TEXT_ADD_SPECIAL, &ids, &err));
        const struct generate_embed_text one = {ids.id, ids.count, got, NULL};
        assert_true(generate_embedder_run(e, &one, 1, &err));
        const double cosine = generate_embed_cosine(got, row, 384);
        printf("%s: cosine %.8f: %s\n", file, cosine, text);
        if (!(cosine >= bar)) fail_msg("%s: cosine %g: %s", file, cosine, text);
        text_ids_free(&ids);
    }
    json_decref(root);
    generate_embedder_free(e);
    text_tokenizer_close(tokenizer);
    support_session_close(&s);
}

static void minilm_gives_the_embeddings_of_double_precision(void **state)
{
    (void)state;
    check_golden("all-MiniLM-L6-v2-f16.gguf", 0.9999);
    check_golden("all-MiniLM-L6-v2-q8_0.gguf", 0.999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_has_the_same_bits_alone_and_in_any_batch),
        cmocka_unit_test(pooling_is_that_of_its_name),
        cmocka_unit_test(classifiers_score_a_row),
        cmocka_unit_test(projections_follow_the_pooling),
        cmocka_unit_test(taps_of_convolutions_reach_to_both_sides),
        cmocka_unit_test(the_file_names_the_pooling),
        cmocka_unit_test(what_cannot_be_computed_is_an_error),
        cmocka_unit_test(norms_are_those_of_their_codes),
        cmocka_unit_test(minilm_gives_the_embeddings_of_double_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
