/* test/test_diffusion.c: texts of diffusion models against a naive loop, which evaluates all
 * positions and sorts nothing. */
#include "test/support.h"

#include "generate/diffusion.h"
#include "test/support_files.h"
#include "test/support_model.h"
#include "test/support_session.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_VOCAB = 300, N_PROMPT = 5, N_NEW = 12, N = N_PROMPT + N_NEW, MASK = 299 };
static const int32_t prompt[N_PROMPT] = {11, 7, 150, 42, 3};

static void open_model(struct support_session *s, const char *arch, const char *keys)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_model m = support_model_default(arch);
    const struct engine_options engine = engine_options_default();
    struct model_session_options session = model_session_options_default();
    char path[64], all[256];
    snprintf(path, sizeof path, "/tmp/infer-%d-diffusion.gguf", (int)getpid());
    snprintf(all, sizeof all, "%s %s", m.keys ? m.keys : "", keys);
    m.keys = all;
    session.n_ctx = 32;
    session.whole = true;
    if (!support_model_write(&m, path, &err)) fail_msg("%s", err.text);
    support_session_open(s, path, &engine, &session);
    unlink(path);
}

/* The probability of an id, the entropy and the margin of a row, in double precision. */
static double confidence(const float *logits, enum generate_confidence how, int32_t id)
{
    double top = -INFINITY, sum = 0, entropy = 0, first = 0, second = 0;
    for (int i = 0; i < N_VOCAB; i++) top = fmax(top, (double)logits[i]);
    for (int i = 0; i < N_VOCAB; i++) sum += exp((double)logits[i] - top);
    for (int i = 0; i < N_VOCAB; i++) {
        const double p = exp((double)logits[i] - top) / sum;
        entropy -= p * log(p);
        if (p > first) second = first;
        if (p > first) first = p;
        if (p < first && p > second) second = p;
    }
    if (how == GENERATE_BY_ENTROPY) return -entropy;
    if (how == GENERATE_BY_MARGIN) return first - second;
    return exp((double)logits[id] - top) / sum;
}

/* One step: replaces `count` masks of ids[first .. end). */
static void naive_step(struct model_session *s, int32_t *ids, int first, int end, int count,
                       enum generate_confidence how, bool shifted)
{
    struct base_error err = BASE_ERROR_INIT;
    static float logits[N * N_VOCAB];
    struct support_rows rows = {logits, N_VOCAB};
    int32_t next[N];
    model_session_truncate(s, 0);
    assert_true(model_eval(s, ids, N, MODEL_LOGITS_ALL, support_rows_keep, &rows, &err));
    memcpy(next, ids, sizeof next);
    for (; count > 0; count--) {
        double best = -INFINITY;
        int at = -1, id = 0;
        for (int p = first; p < end; p++) {
            const float *row = logits + (p - shifted) * N_VOCAB;
            int choice = 0;
            if (next[p] != MASK) continue;
            for (int i = 0; i < MASK; i++)
                if (row[i] > row[choice]) choice = i;
            const double c = confidence(row, how, choice);
            if (c > best + 1e-9) {
                best = c;
                at = p;
                id = choice;
            }
        }
        if (at >= 0) next[at] = id;
    }
    memcpy(ids, next, sizeof next);
}

static void check(const char *arch, bool shifted, uint32_t steps, uint32_t block,
                  enum generate_confidence how)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_session s;
    struct generate_diffusion d = {.n_tokens = N_NEW,
                                   .n_steps = steps,
                                   .n_block = block,
                                   .confidence = how,
                                   .sample = sample_options_default()};
    int32_t ids[N], want[N];
    uint32_t n = 0;
    open_model(&s, arch,
               shifted ? "!tokenizer.ggml.mask_token_id=299"
                       : "!tokenizer.ggml.mask_token_id=299 !diffusion.shift_logits=false");
    d.sample.temp = 0;
    memcpy(ids, prompt, sizeof prompt);
    memcpy(want, prompt, sizeof prompt);
    for (int i = N_PROMPT; i < N; i++) want[i] = MASK;
    const int length = block ? (int)block : N_NEW, each = (int)steps * length / N_NEW;
    for (int first = N_PROMPT; first < N; first += length)
        for (int i = 0; i < each; i++)
            naive_step(s.session, want, first, first + length, length / each + (i < length % each),
                       how, shifted);
    assert_true(generate_diffuse(s.session, &d, ids, N_PROMPT, &n, &err));
    assert_int_equal(n, N_NEW);
    assert_memory_equal(ids, want, sizeof ids);
    support_session_close(&s);
}

static void texts_are_those_of_a_naive_loop(void **state)
{
    (void)state;
    check("llada", false, 12, 0, GENERATE_BY_PROBABILITY);
    check("llada", false, 6, 4, GENERATE_BY_PROBABILITY);
    check("dream", true, 5, 0, GENERATE_BY_ENTROPY);
    check("llada-moe", false, 12, 6, GENERATE_BY_MARGIN);
    check("rnd1", true, 3, 12, GENERATE_BY_PROBABILITY);
}

static bool is_chosen_end(const void *user, int32_t id)
{
    return id == *(const int32_t *)user;
}

/* The tokens before an end are the same whether or not the rest is written. */
static void a_text_ends_at_the_first_end(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_session s;
    struct generate_diffusion d = {
        .n_tokens = N_NEW, .n_block = 4, .sample = sample_options_default()};
    int32_t ids[N], all[N];
    uint32_t n = 0, n_all = 0;
    (void)state;
    open_model(&s, "llada", "!tokenizer.ggml.mask_token_id=299");
    d.sample.temp = 0.9f;
    d.sample.seed = 5;
    memcpy(ids, prompt, sizeof prompt);
    memcpy(all, prompt, sizeof prompt);
    assert_true(generate_diffuse(s.session, &d, all, N_PROMPT, &n_all, &err));
    assert_int_equal(n_all, N_NEW);
    d.is_end = is_chosen_end;
    d.user = &all[N_PROMPT + 5];
    const uint64_t before = model_session_n_evaluated(s.session);
    assert_true(generate_diffuse(s.session, &d, ids, N_PROMPT, &n, &err));
    assert_true(n <= 6);
    assert_memory_equal(ids, all, (N_PROMPT + n) * sizeof *ids);
    assert_true(model_session_n_evaluated(s.session) - before < before);
    support_session_close(&s);
}

static void errors_name_what_is_missing(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_session s;
    struct generate_diffusion d = {.n_tokens = N_NEW, .sample = sample_options_default()};
    int32_t ids[64] = {1};
    uint32_t n;
    (void)state;
    open_model(&s, "dream", "");
    assert_false(generate_diffuse(s.session, &d, ids, 1, &n, &err));
    assert_int_equal(err.code, BASE_MODEL);
    support_session_close(&s);
    err = (struct base_error)BASE_ERROR_INIT;
    open_model(&s, "dream", "!tokenizer.ggml.mask_token_id=299");
    d.n_tokens = 32;
    assert_false(generate_diffuse(s.session, &d, ids, 1, &n, &err));
    assert_int_equal(err.code, BASE_TOO_LONG);
    const struct model_session_options plain = {
        .n_ctx = 8, .type_k = QUANT_F16, .type_v = QUANT_F16};
    err = (struct base_error)BASE_ERROR_INIT;
    assert_null(model_session_new(s.model, &plain, &err)); /* token by token */
    assert_int_equal(err.code, BASE_MODEL);
    support_session_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_a_naive_loop),
        cmocka_unit_test(a_text_ends_at_the_first_end),
        cmocka_unit_test(errors_name_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
