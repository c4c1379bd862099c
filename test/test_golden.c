/* test/test_golden.c: two real models against reference values (../shared/golden: transformers on
 * PyTorch in float32, weights dequantized; its README says how they were made).
 *
 * With weights turned to F32: greedy ids equal, last logits within NMSE 1e-10. On the quantized
 * file: mean KL divergence of the next-token distribution from the F32 twin's over 512 ids. */
#include "test/support.h"

#include "models/model.h"
#include "test/support_files.h"
#include "test/support_twin.h"
#include "text/tokenizer/tokenizer.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_KL_IDS = 512, KL_STEP = 64 };

/* A model with an engine and a session, opened together. */
struct loaded {
    struct gguf_file *file;
    struct engine *engine;
    struct model *model;
    struct model_session *session;
};

static void load(struct loaded *l, const char *path, enum quant_id cache)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct model_session_options session = {
        .n_ctx = 1024, .n_batch = 512, .type_k = cache, .type_v = cache};
    l->file = gguf_open(path, &err);
    l->engine = engine_new(&options, &err);
    l->model = l->file && l->engine ? model_open(l->file, l->engine, &err) : NULL;
    l->session = l->model ? model_session_new(l->model, &session, &err) : NULL;
    if (!l->session) fail_msg("%s: %s: %s", path, err.item, err.text);
}

static void unload(struct loaded *l)
{
    model_session_free(l->session);
    model_close(l->model);
    engine_free(l->engine);
    gguf_close(l->file);
}

/* Evaluates and gives the logits of the last position; fails the test on an error. */
static const float *eval(struct loaded *l, const int32_t *ids, uint64_t n)
{
    struct base_error err = BASE_ERROR_INIT;
    if (!model_eval(l->session, ids, n, MODEL_LOGITS_LAST, NULL, NULL, &err))
        fail_msg("%s: %s", err.item, err.text);
    return model_last_logits(l->session);
}

static int32_t *ids_of(const json_t *array, size_t *n)
{
    *n = json_array_size(array);
    int32_t *ids = malloc((*n + 1) * sizeof *ids);
    for (size_t i = 0; i < *n; i++) ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return ids;
}

static double nmse(const float *x, const float *reference, size_t n)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)reference[i];
        error += d * d;
        power += (double)reference[i] * (double)reference[i];
    }
    return error / power;
}

static int32_t argmax(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return (int32_t)best;
}

static json_t *golden(const char *name)
{
    char path[512], file[64];
    snprintf(file, sizeof file, "golden/%s.json", name);
    if (!support_shared_path(file, path, sizeof path)) support_skip("no ../shared/golden here");
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    return root;
}

/* One prompt on the F32 twin. */
static void check_prompt(struct loaded *l, const char *prompt, const json_t *what)
{
    const size_t n_vocab = model_facts(l->model)->n_vocab;
    size_t n_ids, n_greedy, size;
    char path[512], file[128];
    int32_t *ids = ids_of(json_object_get(what, "ids"), &n_ids);
    int32_t *greedy = ids_of(json_object_get(what, "greedy_ids"), &n_greedy);
    snprintf(file, sizeof file, "golden/%s",
             json_string_value(json_object_get(what, "last_logits_file")));
    assert_true(support_shared_path(file, path, sizeof path));
    float *reference = (float *)support_read_file(path, &size);
    assert_int_equal(size, n_vocab * sizeof(float));

    assert_int_equal(model_session_truncate(l->session, 0), 0);
    const float *logits = eval(l, ids, n_ids);
    double error = nmse(logits, reference, n_vocab);
    printf("%s: NMSE of the last logits %.3g\n", prompt, error);
    if (!(error <= 1e-10)) fail_msg("%s: NMSE %g", prompt, error);
    for (size_t i = 0; i < n_greedy; i++) {
        int32_t id = argmax(logits, n_vocab);
        if (id != greedy[i]) fail_msg("%s: token %zu is %d, not %d", prompt, i, id, greedy[i]);
        logits = eval(l, &id, 1);
    }
    free(ids);
    free(greedy);
    free(reference);
}

/* Mean over positions of KL(F32 twin || quantized). */
static double mean_kl(const float *p_logits, const float *q_logits, size_t rows, size_t n_vocab)
{
    double total = 0;
    for (size_t r = 0; r < rows; r++) {
        const float *p = p_logits + r * n_vocab, *q = q_logits + r * n_vocab;
        double p_max = -INFINITY, q_max = -INFINITY, p_sum = 0, q_sum = 0, kl = 0;
        for (size_t i = 0; i < n_vocab; i++) {
            p_max = fmax(p_max, p[i]);
            q_max = fmax(q_max, q[i]);
        }
        for (size_t i = 0; i < n_vocab; i++) {
            p_sum += exp(p[i] - p_max);
            q_sum += exp(q[i] - q_max);
        }
        for (size_t i = 0; i < n_vocab; i++) {
            double log_p = p[i] - p_max - log(p_sum), log_q = q[i] - q_max - log(q_sum);
            kl += exp(log_p) * (log_p - log_q);
        }
        total += kl;
    }
    return total / (double)rows;
}

struct copy {
    float *rows;
    size_t n_vocab;
};

static bool keep_rows(void *user, uint64_t first, uint64_t rows, const float *logits,
                      struct base_error *err)
{
    struct copy *c = user;
    (void)err;
    memcpy(c->rows + first * c->n_vocab, logits, rows * c->n_vocab * sizeof *logits);
    return true;
}

/* The first 512 ids of the first 6,000 characters of the GPL, as the golden README says. */
static struct text_ids kl_ids(const struct loaded *l)
{
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    size_t size;
    char *text = support_read_file("/usr/share/common-licenses/GPL-3", &size);
    if (!text) support_skip("no /usr/share/common-licenses/GPL-3 here");
    struct text_tokenizer *t = text_tokenizer_open(l->file, &err);
    assert_non_null(t);
    assert_true(text_encode(t, text, 6000, TEXT_ADD_SPECIAL, &ids, &err));
    assert_true(ids.count >= N_KL_IDS);
    text_tokenizer_close(t);
    free(text);
    return ids;
}

static void check_kl(struct loaded *twin, struct loaded *quantized, double bar)
{
    const size_t n_vocab = model_facts(twin->model)->n_vocab;
    struct text_ids ids = kl_ids(twin);
    struct copy p = {malloc(KL_STEP * n_vocab * sizeof(float)), n_vocab};
    struct copy q = {malloc(KL_STEP * n_vocab * sizeof(float)), n_vocab};
    struct base_error err = BASE_ERROR_INIT;
    double total = 0;
    model_session_truncate(twin->session, 0);
    for (size_t i = 0; i < N_KL_IDS; i += KL_STEP) {
        assert_true(
            model_eval(twin->session, ids.id + i, KL_STEP, MODEL_LOGITS_ALL, keep_rows, &p, &err));
        assert_true(model_eval(quantized->session, ids.id + i, KL_STEP, MODEL_LOGITS_ALL, keep_rows,
                               &q, &err));
        total += mean_kl(p.rows, q.rows, KL_STEP, n_vocab) * KL_STEP / N_KL_IDS;
    }
    printf("mean KL divergence over %d ids: %.5f (bar %.4f)\n", N_KL_IDS, total, bar);
    if (!(total <= bar)) fail_msg("KL %g above %g", total, bar);
    free(p.rows);
    free(q.rows);
    text_ids_free(&ids);
}

static void check_model(const char *file, const char *golden_name, double kl_bar)
{
    char path[512], twin_path[512];
    struct loaded twin, quantized;
    struct base_error err = BASE_ERROR_INIT;
    const char *prompt;
    json_t *what;
    if (support_quick()) support_skip("golden values (quick run)");
    if (!support_model_path(file, path, sizeof path)) support_skip(file);
    json_t *root = golden(golden_name);
    if (!support_twin_write(path, twin_path, &err)) fail_msg("%s: %s", err.item, err.text);
    load(&twin, twin_path, QUANT_F32);
    unlink(twin_path);
    json_object_foreach(json_object_get(root, "prompts"), prompt, what)
        check_prompt(&twin, prompt, what);
    load(&quantized, path, QUANT_F16);
    check_kl(&twin, &quantized, kl_bar);
    unload(&quantized);
    unload(&twin);
    json_decref(root);
}

static void smollm2(void **state)
{
    (void)state;
    check_model(SUPPORT_SMOLLM2, "smollm2-135m", 0.0045);
}

static void gemma3(void **state)
{
    (void)state;
    check_model(SUPPORT_GEMMA3, "gemma3-270m", 0.0065);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2),
        cmocka_unit_test(gemma3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
