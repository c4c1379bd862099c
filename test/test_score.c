/* test/test_score.c: figures about predictions against values computed by hand; probabilities of
 * given texts, evaluated together in any mixture, have the bits of each evaluated alone. */
#include "test/support.h"

#include "base/interrupt.h"
#include "generate/score.h"
#include "generate/statistics.h"
#include "test/support_generate.h"
#include "test/support_random.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR(got, want) assert_true(fabs((got) - (want)) < 1e-9 * (1 + fabs(want)))

/* ---- Figures computed by hand ---- */

static void means_have_their_standard_errors(void **state)
{
    (void)state;
    struct generate_moments m = {0};
    generate_moments_add(&m, 1);
    assert_true(generate_moments_error(&m) == 0);
    generate_moments_add(&m, 2);
    generate_moments_add(&m, 4);
    NEAR(generate_moments_mean(&m), 7.0 / 3);
    NEAR(generate_moments_error(&m), sqrt(14.0 / 9 / 2)); /* variance 21/3 - 49/9 */
    NEAR(generate_share_error(0.25, 101), sqrt(0.1875 / 100));
    assert_true(generate_share_error(1, 1) == 0);
}

static void quantiles_are_interpolated(void **state)
{
    (void)state;
    static const double v[4] = {0, 1, 2, 10};
    NEAR(generate_quantile(v, 4, 0.5), 1.5);
    NEAR(generate_quantile(v, 4, 0.25), 0.75);
    NEAR(generate_quantile(v, 4, 0.9), 7.6);
    NEAR(generate_quantile(v, 4, 0), 0.0);
    NEAR(generate_quantile(v, 4, 1), 10.0);
    NEAR(generate_quantile(v + 3, 1, 0.3), 10.0);
}

static void two_rows_have_their_divergence(void **state)
{
    (void)state;
    const float ln2 = logf(2);
    const float logits[3] = {5, 5 + ln2, 5};                  /* 1/4, 1/2, 1/4 */
    const float base[3] = {-3 + ln2, -3, -3};                 /* 1/2, 1/4, 1/4 */
    const float logs[3] = {-logf(2), -logf(2), (float)-16.5}; /* the last is ignored */
    struct generate_row_score s =
        generate_row_compare(logits, (struct generate_base_row){base, false}, 3, 0);
    assert_true(fabs(s.nll - log(4)) < 1e-6 && fabs(s.base_nll - log(2)) < 1e-6);
    assert_true(fabs(s.kl - log(2) / 4) < 1e-6 && fabs(s.shift + 0.25) < 1e-6);
    assert_false(s.same_top);
    s = generate_row_compare(logits, (struct generate_base_row){logs, true}, 3, 2);
    assert_true(fabs(s.kl - log(2) / 2) < 1e-6 && fabs(s.base_nll - 16.5) < 1e-6);
    s = generate_row_compare(logits, (struct generate_base_row){logits, false}, 3, 1);
    assert_true(s.kl == 0 && s.shift == 0 && s.same_top);
    s = generate_row_compare(logits, (struct generate_base_row){0}, 3, 1);
    assert_true(fabs(s.nll - log(2)) < 1e-6 && s.kl == 0 && s.base_nll == 0);
}

static void positions_are_summed_up(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct generate_statistics j;
    static const struct generate_row_score score[2] = {
        {.nll = 1, .base_nll = 1, .kl = 0.5, .shift = 0.3, .same_top = true},
        {.nll = 3, .base_nll = 2, .kl = 0.25, .shift = -0.4}};
    assert_true(generate_statistics_begin(&j, 2, &err));
    for (int i = 0; i < 2; i++) generate_statistics_add(&j, &score[i]);
    generate_statistics_end(&j);
    NEAR(j.kl_value[0], 0.25);
    NEAR(j.shift_value[0], -0.4);
    const struct generate_estimate ppl = generate_statistics_perplexity(&j);
    NEAR(ppl.value, exp(2));
    NEAR(ppl.error, exp(2)); /* variance (1 + 9) / 2 - 4 = 1, of one degree of freedom */
    const struct generate_estimate base = generate_statistics_base_perplexity(&j);
    NEAR(base.value, exp(1.5));
    NEAR(base.error, 0.5 * exp(1.5));
    NEAR(generate_statistics_correlation(&j), 1.0); /* covariance (1 + 6) / 2 - 3 = 0.5 */
    const struct generate_estimate ratio = generate_statistics_log_ratio(&j);
    NEAR(ratio.value, 0.5);
    NEAR(ratio.error, 0.5); /* sqrt(1 + 0.25 - 2 * 0.5) */
    const struct generate_estimate difference = generate_statistics_difference(&j);
    NEAR(difference.value, exp(2) - exp(1.5));
    NEAR(difference.error, exp(2) - 0.5 * exp(1.5)); /* fully correlated */
    const struct generate_estimate rms = generate_statistics_rms_shift(&j);
    NEAR(rms.value, sqrt(0.125));
    NEAR(rms.error, 0.035 / (2 * sqrt(0.125)));
    NEAR(generate_statistics_same_top(&j).value, 0.5);
    NEAR(generate_statistics_same_top(&j).error, 0.5);
    generate_statistics_free(&j);
}

/* ---- Probabilities of texts ---- */

enum { N_CTX = 96, MOST_ROWS = 9, N_GROUPS = 12 };

struct texts {
    int32_t id[N_GROUPS][MOST_ROWS][N_CTX + 1];
    double logprob[N_GROUPS][MOST_ROWS][N_CTX];
    struct generate_score_row row[N_GROUPS][MOST_ROWS];
    struct generate_score_group group[N_GROUPS];
};

static void fill(uint64_t *r, int32_t *id, size_t n, uint32_t n_vocab)
{
    for (size_t i = 0; i < n; i++) id[i] = (int32_t)support_random_below(r, n_vocab);
}

/* Makes the first n ids of a group's rows, or fewer if a row is shorter, the group's prefix. */
static void give_prefix(struct texts *t, size_t g, size_t n)
{
    struct generate_score_group *group = &t->group[g];
    for (size_t i = 0; i < group->n; i++)
        if (t->row[g][i].n < n) n = t->row[g][i].n;
    for (size_t i = 0; i < group->n; i++) t->row[g][i].ids += n;
    group->prefix = t->id[g][0];
    group->n_prefix = n;
}

/* Groups of one to nine rows. Half of the consecutive groups have a common prefix; rows of a group
 * share a prefix of any length, a part of which half of the groups have as theirs, and the first
 * scored token is any later one. */
static void make_texts(struct texts *t, uint64_t *r, uint32_t n_vocab)
{
    int32_t start[N_CTX + 1];
    fill(r, start, N_CTX + 1, n_vocab);
    for (size_t g = 0; g < N_GROUPS; g++) {
        if (support_random_below(r, 2)) fill(r, start, N_CTX + 1, n_vocab);
        const size_t n = 1 + support_random_below(r, MOST_ROWS);
        const size_t alike = support_random_below(r, 60), shared = support_random_below(r, 70);
        int32_t own[N_CTX + 1];
        memcpy(own, start, sizeof own);
        if (alike < shared) fill(r, own + alike, shared - alike, n_vocab);
        t->group[g] = (struct generate_score_group){.row = t->row[g], .n = n};
        for (size_t i = 0; i < n; i++) {
            int32_t *id = t->id[g][i];
            memcpy(id, own, sizeof own);
            fill(r, id + shared, N_CTX + 1 - shared, n_vocab);
            const size_t size = 2 + support_random_below(r, N_CTX);
            const size_t from = 1 + support_random_below(r, (uint32_t)size - 1);
            t->row[g][i] = (struct generate_score_row){id, size, from, t->logprob[g][i]};
        }
        if (support_random_below(r, 2))
            give_prefix(t, g, support_random_below(r, (uint32_t)shared + 1));
    }
}

struct alone {
    const struct generate_score_row *row;
    const int32_t *ids; /* of the whole row */
    uint32_t n_vocab;
    size_t n_wrong;
};

static bool compare(void *user, uint64_t first, uint64_t rows, const float *logits,
                    struct base_error *err)
{
    struct alone *a = user;
    (void)err;
    for (uint64_t i = first; i < first + rows; i++, logits += a->n_vocab) {
        if (i + 1 < a->row->from) continue;
        uint32_t best;
        const double want =
            (double)logits[a->ids[i + 1]] - generate_row_log_sum(logits, a->n_vocab, &best);
        a->n_wrong += want != a->row->logprob[i + 1 - a->row->from];
    }
    return true;
}

static void rows_together_are_what_they_are_alone(void **state)
{
    (void)state;
    static const char *const archs[] = {"llama", "gemma3", "lfm2"};
    static struct texts t;
    uint64_t r = 7;
    for (size_t a = 0; a < sizeof archs / sizeof archs[0]; a++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_generate s, one;
        support_generate_open(&s, archs[a], a % 2 ? 5 : 24, N_CTX);
        support_generate_open(&one, archs[a], 1, N_CTX);
        struct generate_scorer *scorer = generate_scorer_new(s.engine, s.session, s.n_vocab, &err);
        assert_non_null(scorer);
        for (int turn = 0; turn < 2; turn++) { /* the second starts with the state of the first */
            make_texts(&t, &r, s.n_vocab);
            assert_true(generate_scorer_run(scorer, t.group, N_GROUPS, &err));
            for (size_t g = 0; g < N_GROUPS; g++)
                for (size_t i = 0; i < t.group[g].n; i++) {
                    struct alone want = {&t.row[g][i], t.id[g][i], s.n_vocab, 0};
                    model_session_truncate(one.session, 0);
                    assert_true(model_eval(one.session, t.id[g][i], t.row[g][i].n - 1,
                                           MODEL_LOGITS_ALL, compare, &want, &err));
                    assert_int_equal(want.n_wrong, 0);
                }
        }
        generate_scorer_free(scorer);
        support_generate_close(&s);
        support_generate_close(&one);
    }
}

static void beginnings_are_evaluated_once(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s;
    support_generate_open(&s, "llama", 16, N_CTX);
    static struct texts t;
    uint64_t r = 8;
    int32_t start[60];
    fill(&r, start, 60, s.n_vocab);
    for (size_t g = 0; g < 6; g++) { /* 40 tokens for all, 20 for the group, 3 rows of 4 */
        fill(&r, start + 40, 20, s.n_vocab);
        t.group[g] = (struct generate_score_group){.row = t.row[g], .n = 3};
        for (size_t i = 0; i < 3; i++) {
            memcpy(t.id[g][i], start, sizeof start);
            for (int k = 0; k < 4; k++) t.id[g][i][60 + k] = (int32_t)(g * 12 + i * 4) + k;
            t.row[g][i] = (struct generate_score_row){t.id[g][i], 64, 60, t.logprob[g][i]};
        }
    }
    struct generate_scorer *scorer = generate_scorer_new(s.engine, s.session, s.n_vocab, &err);
    assert_non_null(scorer);
    assert_true(generate_scorer_run(scorer, t.group, 6, &err));
    const struct generate_score_counts c = generate_scorer_counts(scorer);
    assert_int_equal(c.n_evaluated, 40 + 6 * (20 + 3 * 3)); /* without the last token of each row */
    assert_int_equal(c.n_alone, 6 * 3 * 63);
    generate_scorer_free(scorer);
    support_generate_close(&s);
}

static void rows_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s;
    support_generate_open(&s, "llama", 4, N_CTX);
    struct generate_scorer *scorer = generate_scorer_new(s.engine, s.session, s.n_vocab, &err);
    assert_non_null(scorer);
    int32_t id[N_CTX + 2] = {0};
    double logprob[N_CTX + 2];
    struct generate_score_row row = {id, N_CTX + 1, 0, logprob};
    const struct generate_score_group group = {.row = &row, .n = 1};
    assert_false(generate_scorer_run(scorer, &group, 1, &err));
    assert_int_equal(err.code, BASE_USAGE);
    err = BASE_ERROR_INIT;
    row.from = 1;
    row.n = N_CTX + 2;
    assert_false(generate_scorer_run(scorer, &group, 1, &err));
    assert_int_equal(err.code, BASE_TOO_LONG);
    err = BASE_ERROR_INIT;
    row.n = N_CTX + 1;
    base_interrupt();
    assert_false(generate_scorer_run(scorer, &group, 1, &err));
    assert_int_equal(err.code, BASE_INTERRUPTED);
    base_interrupt_clear();
    err = BASE_ERROR_INIT;
    assert_true(generate_scorer_run(scorer, &group, 1, &err));
    generate_scorer_free(scorer);
    support_generate_close(&s);
    support_generate_open(&s, "llama", 2, N_CTX);
    assert_null(generate_scorer_new(s.engine, s.session, s.n_vocab, &err));
    assert_int_equal(err.code, BASE_USAGE);
    support_generate_close(&s);
}

/* Groups that begin with the same ids, up to the first token that counts: its probability needs the
 * logits of the token before, so all but that one is evaluated once. */
static void a_common_beginning_is_evaluated_once_but_for_its_last_token(void **state)
{
    enum { SHARED = 20, SIZE = SHARED + 3, N = 4 };
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s, one;
    int32_t id[N][SIZE];
    double logprob[N][SIZE];
    struct generate_score_row row[N];
    struct generate_score_group group[N];
    uint64_t r = 3;
    (void)state;
    support_generate_open(&s, "llama", 12, N_CTX);
    support_generate_open(&one, "llama", 1, N_CTX);
    for (size_t g = 0; g < N; g++) {
        fill(&r, id[g], SIZE, s.n_vocab);
        memcpy(id[g], id[0], SHARED * sizeof **id);
        row[g] = (struct generate_score_row){id[g], SIZE, SHARED, logprob[g]};
        group[g] = (struct generate_score_group){.row = &row[g], .n = 1};
    }
    struct generate_scorer *scorer = generate_scorer_new(s.engine, s.session, s.n_vocab, &err);
    assert_true(generate_scorer_run(scorer, group, N, &err));
    for (size_t g = 0; g < N; g++) {
        struct alone want = {&row[g], id[g], s.n_vocab, 0};
        model_session_truncate(one.session, 0);
        assert_true(
            model_eval(one.session, id[g], SIZE - 1, MODEL_LOGITS_ALL, compare, &want, &err));
        assert_int_equal(want.n_wrong, 0);
    }
    const struct generate_score_counts counts = generate_scorer_counts(scorer);
    assert_int_equal(counts.n_alone, N * (SIZE - 1));
    /* Of each group: the last token of its prefix, and two of the three that count. */
    assert_int_equal(counts.n_evaluated, SHARED - 1 + N * (1 + 2));
    generate_scorer_free(scorer);
    support_generate_close(&s);
    support_generate_close(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_have_their_standard_errors),
        cmocka_unit_test(quantiles_are_interpolated),
        cmocka_unit_test(two_rows_have_their_divergence),
        cmocka_unit_test(positions_are_summed_up),
        cmocka_unit_test(rows_together_are_what_they_are_alone),
        cmocka_unit_test(beginnings_are_evaluated_once),
        cmocka_unit_test(rows_that_do_not_fit_are_refused),
        cmocka_unit_test(a_common_beginning_is_evaluated_once_but_for_its_last_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
