/* test/test_golden.c: two real models against reference values: transformers on PyTorch in float32,
 * weights dequantized. Figures of their logits are in test/data/golden; if ../shared/golden exists,
 * all logits are compared, too.
 *
 * With weights converted to F32: greedy ids equal, last logits within NMSE 1e-10. With the
 * quantized file: mean KL divergence of the next-token distribution from the F32 twin's over 512
 * ids. */
#include "test/support.h"

#include "test/support_files.h"
#include "test/support_random.h"
#include "test/support_session.h"
#include "test/support_twin.h"
#include "text/tokenizer/tokenizer.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_KL_IDS = 512, KL_STEP = 64 };

static void load(struct support_session *l, const char *path, enum quant_id cache)
{
    struct engine_options engine = engine_options_default();
    struct model_session_options session = {
        .n_ctx = 1024, .n_batch = 512, .type_k = cache, .type_v = cache};
    support_session_open(l, path, &engine, &session);
}

/* Evaluates the ids and returns the logits of the last position; fails the test on an error. */
static const float *eval(struct support_session *l, const int32_t *ids, uint64_t n)
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

static int32_t argmax(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return (int32_t)best;
}

/* ---- Figures of the reference's logits (test/data/golden, by scripts/make-golden-figures) ---- */

enum { N_SUMS = 64 };

/* Logits that the file lists, [[id, logit], ...]. */
static void check_listed(const char *prompt, const json_t *list, const float *logits, double bar)
{
    assert_true(json_array_size(list) >= 8);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);
        json_int_t id = json_integer_value(json_array_get(pair, 0));
        double want = json_number_value(json_array_get(pair, 1));
        if (!(fabs((double)logits[id] - want) <= bar))
            fail_msg("%s: logit %d is %.7g, not %.7g", prompt, (int)id, (double)logits[id], want);
    }
}

/* Sums with random signs: their mean squared difference estimates that of all logits. With 64 of
 * them the estimate has a standard deviation of 18 %. */
static double estimated_nmse(const float *logits, size_t n_vocab, const json_t *figures)
{
    double sums[N_SUMS] = {0}, error = 0;
    const json_t *want = json_object_get(figures, "sums");
    assert_int_equal(json_array_size(want), N_SUMS);
    uint64_t state = 0;
    for (size_t i = 0; i < n_vocab; i++) {
        uint64_t signs = support_random(&state);
        for (int j = 0; j < N_SUMS; j++)
            sums[j] += signs >> j & 1 ? -(double)logits[i] : (double)logits[i];
    }
    for (size_t j = 0; j < N_SUMS; j++) {
        double d = sums[j] - json_number_value(json_array_get(want, j));
        error += d * d / N_SUMS;
    }
    return error / json_number_value(json_object_get(figures, "squares"));
}

static void check_figures(const char *prompt, const json_t *figures, const float *logits,
                          size_t n_vocab)
{
    const double bar = 1e-10; /* of the NMSE; a single logit may be off by ten standard errors */
    double squares = json_number_value(json_object_get(figures, "squares"));
    double each = 10 * sqrt(bar * squares / (double)n_vocab);
    check_listed(prompt, json_object_get(figures, "best"), logits, each);
    check_listed(prompt, json_object_get(figures, "some"), logits, each);
    double error = estimated_nmse(logits, n_vocab, figures);
    printf("%s: NMSE of the last logits by figures %.3g\n", prompt, error);
    if (!(error <= bar)) fail_msg("%s: NMSE by figures %g", prompt, error);
}

/* Compares all logits, if the reference data beside the project has them. */
static void check_all_logits(const char *golden_name, const char *prompt, const float *logits,
                             size_t n_vocab)
{
    char path[512], file[128];
    size_t size;
    snprintf(file, sizeof file, "golden/%s.%s.f32", golden_name, prompt);
    if (!support_shared_path(file, path, sizeof path)) return;
    float *reference = (float *)support_read_file(path, &size);
    assert_non_null(reference);
    assert_int_equal(size, n_vocab * sizeof(float));
    double error = support_nmse(logits, reference, n_vocab);
    printf("%s: NMSE of the last logits %.3g\n", prompt, error);
    if (!(error <= 1e-10)) fail_msg("%s: NMSE %g", prompt, error);
    free(reference);
}

/* Tests one prompt with the model converted to F32. */
static void check_prompt(struct support_session *l, const char *golden_name, const char *prompt,
                         const json_t *what)
{
    const size_t n_vocab = model_facts(l->model)->n_vocab;
    size_t n_ids, n_greedy;
    int32_t *ids = ids_of(json_object_get(what, "ids"), &n_ids);
    int32_t *greedy = ids_of(json_object_get(what, "greedy_ids"), &n_greedy);
    assert_true(n_ids > 0 && n_greedy > 0);
    if (support_quick() && n_greedy > 4) n_greedy = 4;
    assert_int_equal(model_session_truncate(l->session, 0), 0);
    const float *logits = eval(l, ids, n_ids);
    check_figures(prompt, what, logits, n_vocab);
    check_all_logits(golden_name, prompt, logits, n_vocab);
    for (size_t i = 0; i < n_greedy; i++) {
        int32_t id = argmax(logits, n_vocab);
        if (id != greedy[i]) fail_msg("%s: token %zu is %d, not %d", prompt, i, id, greedy[i]);
        logits = eval(l, &id, 1);
    }
    free(ids);
    free(greedy);
}

/* ---- The quantized file against its F32 twin ---- */

/* The mean over positions of KL(model converted to F32 || quantized model). */
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

/* The first 512 ids of the first 6,000 characters of the GPL, as described in the golden README.
 * False if the machine lacks the text. */
static bool kl_ids(const struct text_tokenizer *t, struct text_ids *ids)
{
    struct base_error err = BASE_ERROR_INIT;
    size_t size;
    char *text = support_read_file("/usr/share/common-licenses/GPL-3", &size);
    if (!text) return false;
    assert_true(size >= 6000 && text_encode(t, text, 6000, TEXT_ADD_SPECIAL, ids, &err));
    assert_true(ids->count >= N_KL_IDS);
    free(text);
    return true;
}

static void check_kl(struct support_session *twin, struct support_session *quantized,
                     const struct text_ids *ids, double bar)
{
    const size_t n_vocab = model_facts(twin->model)->n_vocab;
    struct support_rows p = {malloc(KL_STEP * n_vocab * sizeof(float)), n_vocab};
    struct support_rows q = {malloc(KL_STEP * n_vocab * sizeof(float)), n_vocab};
    struct base_error err = BASE_ERROR_INIT;
    double total = 0;
    model_session_truncate(twin->session, 0);
    for (size_t i = 0; i < N_KL_IDS; i += KL_STEP) {
        assert_true(model_eval(twin->session, ids->id + i, KL_STEP, MODEL_LOGITS_ALL,
                               support_rows_keep, &p, &err));
        assert_true(model_eval(quantized->session, ids->id + i, KL_STEP, MODEL_LOGITS_ALL,
                               support_rows_keep, &q, &err));
        total += mean_kl(p.data, q.data, KL_STEP, n_vocab) * KL_STEP / N_KL_IDS;
    }
    printf("mean KL divergence over %d ids: %.5f (bar %.4f)\n", N_KL_IDS, total, bar);
    if (!(total <= bar)) fail_msg("KL %g above %g", total, bar);
    free(p.data);
    free(q.data);
}

static void check_model(const char *file, const char *golden_name, double kl_bar)
{
    char path[512], twin_path[512], figures[128];
    struct support_session twin, quantized;
    struct base_error err = BASE_ERROR_INIT;
    struct text_ids ids = TEXT_IDS_INIT;
    const char *prompt;
    json_t *what;
    if (!support_model_path(file, path, sizeof path)) support_skip(file);
    snprintf(figures, sizeof figures, "test/data/golden/%s.json", golden_name);
    json_t *root = json_load_file(figures, 0, NULL);
    if (!root) fail_msg("%s is missing (run from the project's root)", figures);
    if (!support_twin_write(path, twin_path, &err)) fail_msg("%s: %s", err.item, err.text);
    load(&twin, twin_path, QUANT_F32);
    unlink(twin_path);
    struct text_tokenizer *t = text_tokenizer_open(twin.file, &err);
    assert_non_null(t);
    const json_t *prompts = json_object_get(root, "prompts");
    assert_int_equal(json_object_size(prompts), 4);
    json_object_foreach(json_object_get(root, "prompts"), prompt, what)
    {
        check_prompt(&twin, golden_name, prompt, what);
        if (support_quick()) break;
    }
    if (support_quick()) {
        printf("skipped: other prompts and the KL divergence of %s (quick run)\n", file);
    } else if (kl_ids(t, &ids)) {
        load(&quantized, path, QUANT_F16);
        check_kl(&twin, &quantized, &ids, kl_bar);
        support_session_close(&quantized);
    } else {
        printf("skipped: KL divergence of %s: no /usr/share/common-licenses/GPL-3 here\n", file);
    }
    text_ids_free(&ids);
    text_tokenizer_close(t);
    support_session_close(&twin);
    json_decref(root);
}

static void smollm2_gives_the_stored_figures(void **state)
{
    (void)state;
    check_model(SUPPORT_SMOLLM2, "smollm2-135m", 0.0045);
}

static void gemma3_gives_the_stored_figures(void **state)
{
    (void)state;
    if (support_quick()) support_skip("golden values of Gemma 3 (quick run)");
    check_model(SUPPORT_GEMMA3, "gemma3-270m", 0.0065);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_gives_the_stored_figures),
        cmocka_unit_test(gemma3_gives_the_stored_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
