/* test/test_sample.c: every sampling rule against a naive implementation (full sort, libm exp),
 * with random and adversarial logits; seeds, history, errors, and the distribution of draws. */
#include "sample/sample.h"
#include "test/support.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VOCAB = 5000, MAX_HISTORY = 200 };

/* ---- The naive chain ---- */

struct naive {
    double logit;
    int32_t id;
};

static int naive_order(const void *pa, const void *pb)
{
    const struct naive *a = pa, *b = pb;
    if (a->logit != b->logit) return a->logit > b->logit ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int by_id(const void *pa, const void *pb)
{
    const struct naive *a = pa, *b = pb;
    return a->id < b->id ? -1 : 1;
}

/* Returns the id for the uniform number u; -1 if no token is possible. If no rule can remove a
 * candidate, draws go by id. */
static int32_t naive_next(const struct sample_options *o, uint32_t n_vocab, const float *logits,
                          const int32_t *history, int n_history, double u)
{
    static struct naive c[MAX_VOCAB];
    uint32_t n = 0;
    int window =
        o->repeat_last_n < 0 || o->repeat_last_n > n_history ? n_history : o->repeat_last_n;
    for (uint32_t id = 0; id < n_vocab; id++) {
        float x = logits[id];
        if (isnan(x) || x == -INFINITY) continue;
        int count = 0;
        for (int i = n_history - window; i < n_history; i++) count += history[i] == (int32_t)id;
        if (count > 0) {
            x = x > 0 ? x / o->repeat_penalty : x * o->repeat_penalty;
            x -= (float)count * o->frequency_penalty;
            x -= o->presence_penalty;
        }
        c[n++] = (struct naive){(double)x, (int32_t)id};
    }
    if (n == 0) return -1;
    qsort(c, n, sizeof c[0], naive_order);
    if (o->temp == 0.0f) return c[0].id;
    if (o->top_k > 0 && (uint32_t)o->top_k < n) n = (uint32_t)o->top_k;
    if (o->top_p < 1.0f) {
        double total = 0, sum = 0;
        for (uint32_t i = 0; i < n; i++) total += exp(c[i].logit - c[0].logit);
        uint32_t keep = 0;
        while (keep < n) {
            sum += exp(c[keep++].logit - c[0].logit) / total;
            if (sum >= (double)o->top_p) break;
        }
        n = keep;
    }
    uint32_t keep = 1;
    while (keep < n && exp(c[keep].logit - c[0].logit) >= (double)o->min_p) keep++;
    n = keep;
    const double best = c[0].logit;
    if ((o->top_k == 0 || o->top_k > 4096) && o->top_p >= 1.0f && o->min_p <= 0.0f)
        qsort(c, n, sizeof c[0], by_id);
    double total = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++) total += exp((c[i].logit - best) / (double)o->temp);
    for (uint32_t i = 0; i < n; i++) {
        sum += exp((c[i].logit - best) / (double)o->temp) / total;
        if (sum > u) return c[i].id;
    }
    return c[n - 1].id;
}

/* ---- Random logits ---- */

static float random_float(struct sample_random *r, float low, float high)
{
    return low + (high - low) * (float)sample_random_unit(r);
}

enum shape { SMOOTH, PEAKED, TIES, HOLES, SHAPE_COUNT };

static void fill(struct sample_random *r, enum shape shape, uint32_t n, float *logits)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = random_float(r, -8, 8);
        if (shape == PEAKED) x = x > 7.9f ? x + 10 : x;
        if (shape == TIES) x = floorf(x / 4);
        if (shape == HOLES) {
            uint32_t kind = sample_random_u32(r) % 4;
            if (kind == 0) x = NAN;
            if (kind == 1) x = -INFINITY;
        }
        logits[i] = x;
    }
    logits[sample_random_u32(r) % n] = 3.5f; /* at least one finite logit */
}

static const float top_ps[] = {1, 0.95f, 0.5f, 0.001f};
static const float min_ps[] = {0, 0.05f, 0.4f};
static const float temps[] = {0, 0.3f, 0.8f, 1, 2.5f};
static const int32_t top_ks[] = {0, 1, 3, 40, 100000};
static const uint32_t vocabs[] = {1, 2, 63, 64, 65, 1000, MAX_VOCAB};
#define PICK(r, list) (list)[sample_random_u32(r) % (sizeof(list) / sizeof(list)[0])]

static void the_chain_equals_the_naive_one(void **state)
{
    (void)state;
    static float logits[MAX_VOCAB], before[MAX_VOCAB];
    struct sample_random r;
    sample_random_seed(&r, 7);
    for (int trial = 0; trial < 3000; trial++) {
        struct sample_options o = sample_options_default();
        o.temp = PICK(&r, temps);
        o.top_k = PICK(&r, top_ks);
        o.top_p = PICK(&r, top_ps);
        o.min_p = PICK(&r, min_ps);
        o.seed = sample_random_u32(&r);
        if (trial % 3 == 0) {
            o.repeat_penalty = random_float(&r, 0.5f, 2);
            o.frequency_penalty = random_float(&r, -1, 1);
            o.presence_penalty = random_float(&r, -1, 1);
            o.repeat_last_n = (int32_t)(sample_random_u32(&r) % 80) - 1;
        }
        uint32_t n = PICK(&r, vocabs);
        fill(&r, (enum shape)(trial % SHAPE_COUNT), n, logits);
        memcpy(before, logits, sizeof logits);

        struct base_error err = BASE_ERROR_INIT;
        struct sampler *s = sample_new(&o, n, MAX_HISTORY, &err);
        assert_non_null(s);
        int32_t history[MAX_HISTORY];
        int n_history = (int)(sample_random_u32(&r) % MAX_HISTORY);
        for (int i = 0; i < n_history; i++) {
            history[i] = (int32_t)(sample_random_u32(&r) % (n < 30 ? n : 30));
            sample_accept(s, history[i]);
        }
        struct sample_random twin;
        sample_random_seed(&twin, o.seed);
        for (int i = 0; i < 3; i++) {
            double u = o.temp == 0 ? 0 : sample_random_unit(&twin);
            int32_t want = naive_next(&o, n, logits, history, n_history, u);
            assert_int_equal(sample_next(s, logits, &err), want);
        }
        assert_memory_equal(before, logits, sizeof logits); /* the caller's logits are unchanged */
        sample_free(s);
    }
}

static struct sampler *make(const struct sample_options *o, uint32_t n_vocab)
{
    struct base_error err = BASE_ERROR_INIT;
    struct sampler *s = sample_new(o, n_vocab, 64, &err);
    assert_non_null(s);
    return s;
}

static void nothing_possible_is_an_error(void **state)
{
    (void)state;
    static const float temp[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        struct sample_options o = sample_options_default();
        o.temp = temp[i];
        struct sampler *s = make(&o, 3);
        struct base_error err = BASE_ERROR_INIT;
        assert_int_equal(sample_next(s, (float[]){-INFINITY, NAN, -INFINITY}, &err), -1);
        assert_int_equal(err.code, BASE_FAILED);
        err = BASE_ERROR_INIT;
        assert_int_equal(sample_next(s, (float[]){NAN, -3e38f, NAN}, &err), 1);
        assert_int_equal(sample_next(s, (float[]){0, INFINITY, INFINITY}, &err) > 0, 1);
        sample_free(s);
    }
}

static void forbidden_ids_are_not_drawn(void **state)
{
    (void)state;
    struct sample_options o = sample_options_default();
    o.temp = 0;
    struct sampler *s = make(&o, 4);
    struct base_error err = BASE_ERROR_INIT;
    const float logits[4] = {1, 9, 8, 8};
    sample_forbid(s, 1);
    sample_forbid(s, 1);
    sample_forbid(s, 99);
    assert_int_equal(sample_next(s, logits, &err), 2); /* the lowest of equal ones */
    for (int id = 0; id < 4; id++) sample_forbid(s, id);
    assert_int_equal(sample_next(s, logits, &err), -1);
    assert_int_equal(err.code, BASE_FAILED);
    sample_free(s);
}

static void a_mask_restricts_one_call(void **state)
{
    (void)state;
    enum { N = 130 };
    static const float temps_used[2] = {0, 1};
    float logits[N];
    for (int i = 0; i < N; i++) logits[i] = i == 5 ? 50 : 1;
    logits[127] = NAN;
    for (int t = 0; t < 2; t++) {
        struct sample_options o = sample_options_default();
        o.temp = temps_used[t];
        struct sampler *s = make(&o, N);
        struct base_error err = BASE_ERROR_INIT;
        const uint64_t some[3] = {(uint64_t)1 << 7, (uint64_t)1 << 63, ~(uint64_t)1};
        const uint64_t one[3] = {0, (uint64_t)1 << 2, 0}, impossible[3] = {0, (uint64_t)1 << 63, 0};
        sample_restrict(s, some);
        int32_t id = sample_next(s, logits, &err);
        assert_true(id == 7 || id == 129);
        assert_int_equal(sample_next(s, logits, &err), 5); /* the mask applies only once */
        sample_restrict(s, one);
        assert_int_equal(sample_next(s, logits, &err), 66);
        sample_restrict(s, one);
        sample_restrict(s, NULL);
        assert_int_equal(sample_next(s, logits, &err), 5);
        sample_restrict(s, impossible);
        assert_int_equal(sample_next(s, logits, &err), -1);
        assert_int_equal(err.code, BASE_FAILED);
        assert_string_equal(err.item, "constraint");
        assert_int_equal(sample_next(s, logits, &err), 5);
        sample_free(s);
    }
}

/* Compared with a full sort and libm. */
static void logprobs_are_those_of_the_softmax_without_samplers(void **state)
{
    (void)state;
    static float logits[MAX_VOCAB];
    static struct naive all[MAX_VOCAB];
    static struct sample_logprob best[MAX_VOCAB + 1], of_scalar[MAX_VOCAB + 1];
    static const uint32_t ks[] = {0, 1, 2, 5, 20, MAX_VOCAB + 1};
    struct sample_random r;
    sample_random_seed(&r, 21);
    for (int trial = 0; trial < 300; trial++) {
        uint32_t n = PICK(&r, vocabs), k = PICK(&r, ks), n_all = 0;
        fill(&r, (enum shape)(trial % SHAPE_COUNT), n, logits);
        double sum = 0, of_id, id_of_scalar;
        for (uint32_t id = 0; id < n; id++)
            if (logits[id] > -INFINITY)
                all[n_all++] = (struct naive){(double)logits[id], (int32_t)id};
        qsort(all, n_all, sizeof all[0], naive_order);
        for (uint32_t i = 0; i < n_all; i++) sum += exp(all[i].logit - all[0].logit);
        int32_t id = (int32_t)(sample_random_u32(&r) % n);
        assert_int_equal(sample_logprobs(cpu_level_best(), logits, n, k, best, id, &of_id),
                         k < n_all ? k : n_all);
        const uint32_t n_best =
            sample_logprobs(CPU_SCALAR, logits, n, k, of_scalar, id, &id_of_scalar);
        assert_int_equal(n_best, k < n_all ? k : n_all);
        assert_true(id_of_scalar == of_id);
        for (uint32_t i = 0; i < n_best; i++)
            assert_true(of_scalar[i].id == best[i].id && of_scalar[i].logprob == best[i].logprob);
        for (uint32_t i = 0; i < n_all; i++) {
            double want = all[i].logit - all[0].logit - log(sum);
            if (i < k) assert_int_equal(best[i].id, all[i].id);
            if (i < k) assert_true(fabs(best[i].logprob - want) < 2e-6);
            if (all[i].id == id) assert_true(fabs(of_id - want) < 2e-6);
        }
        if (!(logits[id] > -INFINITY)) assert_true(of_id == -INFINITY);
    }
    double of_id = 0;
    assert_int_equal(
        sample_logprobs(cpu_level_best(), (float[]){NAN, -INFINITY}, 2, 2, best, 0, &of_id), 0);
    assert_true(of_id == -INFINITY);
    assert_int_equal(
        sample_logprobs(cpu_level_best(), (float[]){0, INFINITY}, 2, 2, best, 7, &of_id), 2);
    assert_true(best[0].id == 1 && best[0].logprob == 0.0 && of_id == -INFINITY);
}

static void penalties_forget_ids_that_leave_the_window(void **state)
{
    (void)state;
    struct sample_options o = sample_options_default();
    o.temp = 0;
    o.presence_penalty = 5;
    o.repeat_last_n = 2;
    struct sampler *s = make(&o, 3);
    struct base_error err = BASE_ERROR_INIT;
    const float logits[3] = {10, 8, 1};
    assert_int_equal(sample_next(s, logits, &err), 0);
    sample_accept(s, 0);
    sample_accept(s, -1); /* outside the vocabulary: ignored, not added to the history */
    sample_accept(s, 3);
    assert_int_equal(sample_next(s, logits, &err), 1);
    sample_accept(s, 2);
    assert_int_equal(sample_next(s, logits, &err), 1);
    sample_accept(s, 2);
    assert_int_equal(sample_next(s, logits, &err), 0);
    sample_free(s);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    const struct sample_options good = sample_options_default();
    struct sample_options bad[9] = {good, good, good, good, good, good, good, good, good};
    bad[0].temp = -0.1f;
    bad[1].temp = NAN;
    bad[2].top_k = -1;
    bad[3].top_p = 1.5f;
    bad[4].min_p = NAN;
    bad[5].repeat_penalty = 0;
    bad[6].frequency_penalty = INFINITY;
    bad[7].presence_penalty = NAN;
    bad[8].repeat_last_n = -2;
    for (int i = 0; i < 9; i++) {
        struct base_error err = BASE_ERROR_INIT;
        assert_null(sample_new(&bad[i], 10, 10, &err));
        assert_int_equal(err.code, BASE_USAGE);
        assert_string_not_equal(err.item, "");
    }
    struct base_error err = BASE_ERROR_INIT;
    assert_null(sample_new(&good, 0, 10, &err));
    assert_int_equal(err.code, BASE_MODEL);
    sample_free(NULL);
}

/* The published first outputs of PCG32 for state 42, stream 54 (pcg-c demo). */
static void random_numbers_are_pcg32(void **state)
{
    (void)state;
    static const uint32_t want[6] = {0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                     0x83d2f293, 0xbfa4784b, 0xcbed606e};
    struct sample_random r;
    sample_random_seed(&r, 42);
    for (int i = 0; i < 6; i++) assert_int_equal(sample_random_u32(&r), want[i]);
}

static void a_seed_determines_the_draws(void **state)
{
    (void)state;
    static float logits[1000];
    struct sample_random r;
    sample_random_seed(&r, 1);
    fill(&r, SMOOTH, 1000, logits);
    struct sample_options o = sample_options_default();
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    int32_t id[3][20];
    for (int run = 0; run < 3; run++) {
        o.seed = run == 2 ? 6 : 5;
        struct sampler *s = make(&o, 1000);
        struct base_error err = BASE_ERROR_INIT;
        for (int i = 0; i < 20; i++) id[run][i] = sample_next(s, logits, &err);
        sample_free(s);
    }
    assert_memory_equal(id[0], id[1], sizeof id[0]);
    assert_memory_not_equal(id[0], id[2], sizeof id[0]);
}

/* Pearson's chi-square over 16 tokens, 15 degrees of freedom: 99.99 % of good generators are below
 * 44.3. The seed is fixed, so the result is deterministic. */
static void draws_follow_the_distribution(void **state)
{
    (void)state;
    enum { N = 16, DRAWS = 200000 };
    float logits[N];
    double p[N], total = 0;
    for (int i = 0; i < N; i++) logits[i] = (float)((i * 7) % N) / 4;
    struct sample_options o = sample_options_default();
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.temp = 1.3f;
    o.seed = 11;
    for (int i = 0; i < N; i++) total += p[i] = exp((double)logits[i] / (double)o.temp);
    struct sampler *s = make(&o, N);
    struct base_error err = BASE_ERROR_INIT;
    int count[N] = {0};
    for (int i = 0; i < DRAWS; i++) count[sample_next(s, logits, &err)]++;
    double chi = 0;
    for (int i = 0; i < N; i++) {
        double want = DRAWS * p[i] / total;
        chi += (count[i] - want) * (count[i] - want) / want;
    }
    assert_true(chi < 44.3);
    sample_free(s);
}

/* A large flat vocabulary, where a full sort would be slow: the lazily sorted heap must satisfy the
 * definition of top-p. */
static void large_vocabularies_equal_the_naive_chain(void **state)
{
    (void)state;
    enum { N = 262144 };
    float *logits = malloc(N * sizeof *logits);
    assert_non_null(logits);
    struct sample_random r;
    sample_random_seed(&r, 3);
    for (int i = 0; i < N; i++) logits[i] = random_float(&r, 0, 1);
    struct sample_options o = sample_options_default();
    o.top_k = 0;
    o.top_p = 0.25f;
    o.min_p = 0;
    struct sampler *s = make(&o, N);
    struct base_error err = BASE_ERROR_INIT;
    for (int i = 0; i < 20; i++) {
        int32_t id = sample_next(s, logits, &err);
        assert_true(id >= 0 && id < N);
        double above = 0, total = 0; /* probability of the tokens before it in order */
        for (int j = 0; j < N; j++) {
            double e = exp((double)logits[j]);
            total += e;
            if (logits[j] > logits[id] || (logits[j] == logits[id] && j < id)) above += e;
        }
        assert_true(above / total < (double)o.top_p);
    }
    sample_free(s);
    free(logits);
}

/* XTC's threshold is a probability. A vocabulary whose tail has most of the weight, in blocks that
 * are not summed one by one: no candidate reaches the threshold, so none is removed. */
static void xtc_counts_the_weight_of_a_long_tail(void **state)
{
    enum { N = 64 * 100 };
    static float logits[N];
    struct base_error err = BASE_ERROR_INIT;
    struct sample_options o = sample_options_default();
    (void)state;
    o.top_k = 0, o.top_p = 1, o.min_p = 0, o.temp = 0;
    o.xtc_probability = 1;
    o.xtc_threshold = 0.1f;
    for (int tail = 0; tail < 2; tail++) {
        for (int i = 0; i < N; i++) logits[i] = tail ? -5.5f : -15.5f;
        logits[0] = 0;
        logits[70] = -0.5f;
        double total = 0;
        for (int i = 0; i < N; i++) total += exp((double)logits[i]);
        const bool likely = exp((double)logits[70]) / total >= (double)o.xtc_threshold;
        assert_int_equal(likely, !tail);
        struct sampler *s = make(&o, N);
        /* Of two likely candidates the better one is removed. */
        assert_int_equal(sample_next(s, logits, &err), likely ? 70 : 0);
        sample_free(s);
    }
}

/* Adaptive-p's mean is of the ids that it drew: an accepted id that it did not draw, such as one
 * that a constraint forces, leaves the target unchanged. */
static void adaptive_p_learns_only_from_what_it_drew(void **state)
{
    enum { N = 50, DRAWS = 200 };
    float logits[N];
    struct base_error err = BASE_ERROR_INIT;
    struct sample_options o = sample_options_default();
    int n_other = 0;
    (void)state;
    o.top_k = 0, o.top_p = 1, o.min_p = 0, o.temp = 1;
    o.adaptive_target = 0.4f;
    o.adaptive_decay = 0.5f;
    o.seed = 5;
    for (int i = 0; i < N; i++) logits[i] = -0.15f * (float)i;
    struct sampler *learns = make(&o, N), *forced = make(&o, N), *never = make(&o, N);
    for (int i = 0; i < DRAWS; i++) {
        const int32_t a = sample_next(learns, logits, &err), b = sample_next(forced, logits, &err);
        assert_int_equal(b, sample_next(never, logits, &err));
        n_other += a != b;
        sample_accept(learns, a);
        sample_accept(forced, (b + 1) % N);
    }
    assert_true(n_other > DRAWS / 10); /* what is learned changes draws */
    sample_free(learns);
    sample_free(forced);
    sample_free(never);
}

static bool set_number(struct sample_options *o, const char *text, struct base_error *err)
{
    *err = BASE_ERROR_INIT;
    return sample_options_set(o, text, strlen(text), err);
}

static void numbers_are_set_by_their_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {"temp",       "temp=", "temp=x", "temp=1 ", "top_k=1.5",
                                        "samplers=1", "=1",    "tem=1",  "seed=-"};
    struct base_error err;
    struct sample_options o = sample_options_default();
    assert_true(set_number(&o, "temp=0.25", &err) && set_number(&o, "top_k=7", &err) &&
                set_number(&o, "seed=123", &err));
    assert_true(o.temp == 0.25f && o.top_k == 7 && o.seed == 123);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(set_number(&o, wrong[i], &err));
        assert_int_equal(err.code, BASE_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chain_equals_the_naive_one),
        cmocka_unit_test(nothing_possible_is_an_error),
        cmocka_unit_test(forbidden_ids_are_not_drawn),
        cmocka_unit_test(a_mask_restricts_one_call),
        cmocka_unit_test(logprobs_are_those_of_the_softmax_without_samplers),
        cmocka_unit_test(penalties_forget_ids_that_leave_the_window),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(random_numbers_are_pcg32),
        cmocka_unit_test(a_seed_determines_the_draws),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(large_vocabularies_equal_the_naive_chain),
        cmocka_unit_test(xtc_counts_the_weight_of_a_long_tail),
        cmocka_unit_test(adaptive_p_learns_only_from_what_it_drew),
        cmocka_unit_test(numbers_are_set_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
