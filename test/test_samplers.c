/* test/test_samplers.c: every stage of the sampling chain, in any order, against a naive
 * implementation: full sorts, libm, doubles, direct from the definitions. Then the ranges of
 * options, the order of stages, and the distributions of draws. */
#include "sample/block.h"
#include "sample/sample.h"
#include "test/support.h"
#include "test/support_level.h"
#include "test/support_sampling.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 262144 };

/* ---- The comparison ---- */

struct trial {
    struct sample_options o;
    int order[SUPPORT_STAGES], n_order;
    char text[200];
    uint32_t n_vocab;
    bool default_order;
};

/* The results that the naive chain allows within rounding errors; -2: the id is not among them. */
static bool expected(struct support_chain *v, const struct trial *t, const double *u, int32_t id)
{
    static const double shifts[] = {0, 3e-6, -3e-6};
    for (int i = 0; i < 9; i++) {
        v->eps = shifts[i / 3];
        if (support_chain_next(v, t->order, t->n_order, u, shifts[i % 3]) == id) return true;
    }
    v->eps = 0;
    return false;
}

static void compare(struct sample_random *r, struct trial *t, enum support_shape shape,
                    float *logits, struct support_one *room)
{
    struct base_error err = BASE_ERROR_INIT;
    static int32_t few_ends[2];
    int n_ends = 0;
    for (int i = 0; i < 2; i++)
        if ((uint32_t)support_ends[i] < t->n_vocab) few_ends[n_ends++] = support_ends[i];
    t->o.samplers = t->default_order ? NULL : t->text;
    t->o.end_id = few_ends;
    t->o.n_ends = (size_t)n_ends;
    struct sampler *s = sample_new(&t->o, t->n_vocab, SUPPORT_N_CTX, &err);
    if (!s) fail_msg("%s: %s (%s)", err.item, err.text, t->text);
    struct support_chain v = {.o = &t->o,
                              .n_vocab = t->n_vocab,
                              .c = room,
                              .mu = 2 * (double)t->o.mirostat_tau,
                              .adaptive_weight = 1 / (1 - (double)t->o.adaptive_decay)};
    v.adaptive_sum = (double)t->o.adaptive_target * v.adaptive_weight;
    struct sample_random twin;
    sample_random_seed(&twin, t->o.seed);
    const uint32_t n_words = t->n_vocab < 6 ? t->n_vocab : 6; /* few, so that they repeat */
    for (int i = (int)(sample_random_u32(r) % (SUPPORT_MAX_HISTORY - 10)); i > 0; i--) {
        v.history[v.n_history++] = (int32_t)(sample_random_u32(r) % n_words);
        sample_accept(s, v.history[v.n_history - 1]);
    }
    bool draws_xtc = false;
    for (int i = 0; i < t->n_order; i++)
        draws_xtc =
            draws_xtc || (t->order[i] == SUPPORT_XTC && support_stage_acts(&t->o, SUPPORT_XTC));
    for (int call = 0; call < 3; call++) {
        double u[2] = {0};
        support_fill_logits(r, shape, t->n_vocab, logits);
        for (int i = 0; i <= draws_xtc; i++) u[i] = sample_random_unit(&twin);
        v.logits = logits;
        const int32_t id = sample_next(s, logits, &err);
        if (!expected(&v, t, u, id))
            fail_msg("%s of %u, shape %d, temp %g+-%g, mirostat %d, adaptive %g: got %d, naive %d",
                     t->text, t->n_vocab, (int)shape, (double)t->o.temp,
                     (double)t->o.dynatemp_range, (int)t->o.mirostat, (double)t->o.adaptive_target,
                     (int)id, (int)support_chain_next(&v, t->order, t->n_order, u, 0));
        v.mu -= (double)t->o.mirostat_eta * (-log2(v.chosen_p) - (double)t->o.mirostat_tau);
        v.adaptive_sum = v.chosen_p + (double)t->o.adaptive_decay * v.adaptive_sum;
        v.adaptive_weight = 1 + (double)t->o.adaptive_decay * v.adaptive_weight;
        v.history[v.n_history++] = id;
        sample_accept(s, id);
    }
    sample_free(s);
}

typedef struct sample_options options_fn(struct sample_random *r);

static void run_trials(uint64_t seed, int n_trials, const uint32_t *sizes, uint32_t n_sizes,
                       options_fn *options)
{
    static const int standard[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    float *logits = malloc(LARGE * sizeof *logits);
    struct support_one *room = malloc(LARGE * sizeof *room);
    assert_true(logits && room);
    struct sample_random r;
    sample_random_seed(&r, seed);
    for (int i = 0; i < n_trials; i++) {
        struct trial t = {.o = options(&r), .n_vocab = sizes[sample_random_u32(&r) % n_sizes]};
        enum support_shape shape = (enum support_shape)(i % SUPPORT_SHAPE_COUNT);
        t.default_order = options != support_random_options || sample_random_u32(&r) % 3 == 0;
        t.n_order = support_random_order(&r, &t.o, t.order, t.text, sizeof t.text);
        if (t.default_order || shape == SUPPORT_EXTREME) {
            memcpy(t.order, standard, sizeof standard);
            t.n_order = 9;
            t.default_order = true;
            strcpy(t.text, "the default");
        }
        compare(&r, &t, shape, logits, room);
    }
    free(logits);
    free(room);
}

static void long_lists_equal_the_naive_ones(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {3000, 4096, 9999};
    run_trials(7, getenv("INFER_TEST_QUICK") ? 200 : 1000, sizes, 3, support_long_options);
}

static void every_chain_equals_the_naive_one(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 63, 64, 65, 1000};
    run_trials(5, getenv("INFER_TEST_QUICK") ? 1000 : 6000, sizes, 7, support_random_options);
}

static void chains_over_large_vocabularies_equal_the_naive_one(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {LARGE, LARGE - 1, 50257};
    run_trials(6, getenv("INFER_TEST_QUICK") ? 4 : 30, sizes, 3, support_random_options);
}

/* The kernels of AVX2 and AVX-512, or scalar if the machine lacks one. */
static const struct sample_block_kernels *const *kernels_that_run(void)
{
    static const struct sample_block_kernels *kernels[2];
    kernels[0] = sample_block_kernels(support_level_runs(CPU_AVX2) ? CPU_AVX2 : CPU_SCALAR);
    kernels[1] = support_level_runs(CPU_AVX512) ? sample_block_kernels(CPU_AVX512) : kernels[0];
    return kernels;
}

/* The kernels of this machine have the same bits as the scalar ones, and are close to libm. */
static void block_kernels_equal_scalar(void **state)
{
    (void)state;
    const struct sample_block_kernels *any = sample_block_kernels(CPU_SCALAR);
    const struct sample_block_kernels *const *kernels = kernels_that_run();
    static const float scales[] = {1, 0, 0.3f, 1.25f, 1e-30f, FLT_MAX};
    struct sample_random r;
    sample_random_seed(&r, 9);
    for (int trial = 0; trial < 10000; trial++) {
        const struct sample_block_kernels *best = kernels[trial % 2];
        float raw[SAMPLE_BLOCK], x[SAMPLE_BLOCK], w[2][SAMPLE_BLOCK], top, bound[2];
        support_fill_logits(&r, (enum support_shape)(trial % SUPPORT_SHAPE_COUNT), SAMPLE_BLOCK,
                            raw);
        raw[3] = trial % 5 ? raw[3] : INFINITY;
        const uint64_t ids = trial % 3 ? (uint64_t)sample_random_u32(&r) << 31 | 1 : UINT64_MAX;
        sample_block_read(x, raw, SAMPLE_BLOCK, ids);
        any->bounds(x, NULL, 1, &top);
        any->bounds(raw, &ids, 1, &bound[0]);
        best->bounds(raw, &ids, 1, &bound[1]);
        assert_true(bound[0] == top && bound[1] == top);
        assert_true(any->reach(raw, raw[5]) == best->reach(raw, raw[5]));
        if (!(top > -INFINITY)) continue;
        const float scale = SUPPORT_PICK(&r, scales);
        any->weigh(x, top, scale, w[0]);
        best->weigh(x, top, scale, w[1]);
        assert_memory_equal(w[0], w[1], sizeof w[0]);
        struct sample_block_sums a[SAMPLE_BLOCK_KINDS], b[SAMPLE_BLOCK_KINDS];
        for (int kind = 0; kind < SAMPLE_BLOCK_KINDS; kind++) {
            a[kind] = any->sum[kind](x, top, scale);
            b[kind] = best->sum[kind](x, top, scale);
        }
        assert_memory_equal(a, b, sizeof a);
        assert_true(a[SAMPLE_WEIGHTS].sum == a[SAMPLE_ENTROPY].sum);
        const struct sample_block_sums moments = any->sum[SAMPLE_MOMENTS](x, top, 1.0f);
        double total = 0.0, sum = 0.0;
        uint32_t count = 0;
        for (int i = 0; i < SAMPLE_BLOCK; i++) {
            const float d = (x[i] - top) * scale;
            const bool is = ids >> i & 1 && raw[i] > -INFINITY;
            const double want = d > -87.0f ? exp((double)d) : 0.0;
            assert_true(x[i] == (is ? fminf(raw[i], FLT_MAX) : -INFINITY) && x[i] <= top);
            assert_true(fabs((double)w[0][i] - want) <= 1e-6 * want);
            assert_true((any->reach(x, -FLT_MAX) >> i & 1) == is);
            total += want;
            sum += is ? (double)x[i] - (double)top : 0.0;
            count += is;
        }
        assert_true(fabs((double)a[SAMPLE_WEIGHTS].sum - total) <= 1e-6 * total);
        assert_true(sum < -1e38 || fabs((double)moments.sum - sum) <= -1e-6 * sum);
        assert_true(a[SAMPLE_ENTROPY].n == count && moments.n == count);
    }
}

/* Adaptive-p's weights have the same bits at each level and are close to the formula. */
static void shape_kernels_equal_scalar(void **state)
{
    (void)state;
    const struct sample_block_kernels *any = sample_block_kernels(CPU_SCALAR);
    const struct sample_block_kernels *const *kernels = kernels_that_run();
    struct sample_random r;
    sample_random_seed(&r, 11);
    for (int trial = 0; trial < 3000; trial++) {
        const struct sample_block_kernels *best = kernels[trial % 2];
        float raw[SAMPLE_BLOCK], x[SAMPLE_BLOCK], w[2][SAMPLE_BLOCK], top;
        support_fill_logits(&r, (enum support_shape)(trial % SUPPORT_SHAPE_COUNT), SAMPLE_BLOCK,
                            raw);
        sample_block_read(x, raw, SAMPLE_BLOCK, UINT64_MAX);
        any->bounds(x, NULL, 1, &top);
        const struct sample_block_shape shape = {top, support_float_between(&r, 0, 3),
                                                 support_float_between(&r, 0, 1),
                                                 support_float_between(&r, 0, 1)};
        const float sum = any->shape(x, &shape, w[0]);
        assert_true(sum == best->shape(x, &shape, w[1]));
        assert_memory_equal(w[0], w[1], sizeof w[0]);
        double total = 0.0;
        for (int i = 0; i < SAMPLE_BLOCK; i++) {
            const double p = exp((double)((x[i] - top) * shape.scale)) * (double)shape.inverse;
            const double d = fabs(p - (double)shape.target) / 0.3;
            const double want = x[i] > -INFINITY ? exp(-10 * d * d / (1 + d)) : 0.0;
            assert_true(fabs((double)w[0][i] - want) <= 2e-5 * want);
            total += (double)w[0][i];
        }
        assert_true(fabs((double)sum - total) <= 1e-6 * total);
    }
}

/* ---- Options ---- */

static struct sampler *make(const struct sample_options *o, uint32_t n_vocab)
{
    struct base_error err = BASE_ERROR_INIT;
    struct sampler *s = sample_new(o, n_vocab, 64, &err);
    if (!s) fail_msg("%s: %s", err.item, err.text);
    return s;
}

static void refuse(const struct sample_options *o, const char *item)
{
    struct base_error err = BASE_ERROR_INIT;
    assert_null(sample_new(o, 100, 64, &err));
    assert_int_equal(err.code, BASE_USAGE);
    assert_string_equal(err.item, item);
}

/* Both rules keep more candidates than a list may have; the second one alone would keep all. */
static void what_a_rule_removes_stays_removed(void **state)
{
    (void)state;
    enum { N = 4000, KEPT = 1500 };
    float logits[N];
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    for (int i = 0; i < N; i++) logits[i] = (float)(i * 7 % N < KEPT); /* 1 for the best ones */
    o.samplers = "top_k;min_p;temperature";
    o.top_k = KEPT;
    o.min_p = 0.01f;
    o.temp = 100;
    struct sampler *s = make(&o, N);
    for (int i = 0; i < 300; i++) assert_true(logits[sample_next(s, logits, &err)] > 0.5f);
    sample_free(s);
}

/* A certain distribution has temperature 0 if the range includes it: at a temperature near 0 all
 * logits would have the same limit. */
static void a_candidate_with_probability_one_is_always_chosen(void **state)
{
    (void)state;
    static const float logits[2] = {-13.6f, -110};
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    o.samplers = "top_k;temperature;penalties";
    o.temp = 0.3f;
    o.dynatemp_range = 1.1f;
    o.dynatemp_exponent = 2.7f;
    o.repeat_penalty = 1.1f;
    for (o.seed = 0; o.seed < 20; o.seed++) {
        struct sampler *s = make(&o, 2);
        assert_int_equal(sample_next(s, logits, &err), 0);
        sample_free(s);
    }
}

static void ranges_are_checked(void **state)
{
    (void)state;
    struct sample_options o;
    static const struct {
        size_t at;
        const char *item;
        float low, high; /* allowed limits; infinity: not tested */
    } cases[] = {
#define CASE(member, item, low, high) {offsetof(struct sample_options, member), item, low, high}
        CASE(temp, "temp", 0, INFINITY),
        CASE(dynatemp_range, "dynatemp_range", 0, INFINITY),
        CASE(dynatemp_exponent, "dynatemp_exponent", 0, 1000),
        CASE(top_p, "top_p", 0, 1),
        CASE(min_p, "min_p", 0, 1),
        CASE(typical_p, "typical_p", 0, 1),
        CASE(top_n_sigma, "top_n_sigma", -1, INFINITY),
        CASE(xtc_probability, "xtc_probability", 0, 1),
        CASE(xtc_threshold, "xtc_threshold", 0, 1),
        CASE(repeat_penalty, "repeat_penalty", 0.01f, 1000),
        CASE(frequency_penalty, "frequency_penalty", -1000, 1000),
        CASE(presence_penalty, "presence_penalty", -1000, 1000),
        CASE(dry_multiplier, "dry_multiplier", 0, INFINITY),
        CASE(dry_base, "dry_base", 1, INFINITY),
        CASE(mirostat_tau, "mirostat_tau", 0, 1000),
        CASE(mirostat_eta, "mirostat_eta", 0, 1000),
        CASE(adaptive_target, "adaptive_target", -1, 1),
        CASE(adaptive_decay, "adaptive_decay", 0, 0.99f),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const float good[2] = {cases[i].low, cases[i].high < INFINITY ? cases[i].high : 5};
        const float bad[4] = {nextafterf(cases[i].low, -INFINITY),
                              cases[i].high < INFINITY ? nextafterf(cases[i].high, INFINITY) : NAN,
                              NAN, -INFINITY};
        for (int k = 0; k < 2; k++) {
            o = sample_options_default();
            *(float *)((char *)&o + cases[i].at) = good[k];
            sample_free(make(&o, 100));
        }
        for (int k = 0; k < 4; k++) {
            o = sample_options_default();
            *(float *)((char *)&o + cases[i].at) = bad[k];
            refuse(&o, cases[i].item);
        }
    }
    o = sample_options_default();
    o.mirostat = 3;
    refuse(&o, "mirostat");
    o = sample_options_default();
    o.dry_allowed_length = 0;
    refuse(&o, "dry_allowed_length");
    o = sample_options_default();
    o.dry_last_n = -2;
    refuse(&o, "dry_last_n");
    o = sample_options_default();
    o.dry_breaker = &(struct sample_text){"", 0};
    o.n_dry_breakers = 1;
    refuse(&o, "dry_breaker");
}

static void names_are_checked(void **state)
{
    (void)state;
    static const char *const good[] = {
        "top_k", "Top-K;TEMP", "topk,minp;nucleus,typ",
        " penalties ; dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature",
        "top_k;infill;adaptive-p"};
    static const char *const bad[] = {"",           "top_k;",          "best",   "top_k;;min_p",
                                      "top_",       "top_kk",          "infill", "infill;top_k",
                                      "top_k;topk", "temp;temperature"};
    struct sample_options o = sample_options_default();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        o.samplers = good[i];
        sample_free(make(&o, 100));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        o.samplers = bad[i];
        refuse(&o, "samplers");
    }
    o.samplers = "top_k;frobnicate";
    struct base_error err = BASE_ERROR_INIT;
    assert_false(sample_options_check(&o, &err));
    assert_non_null(strstr(err.text, "'frobnicate'"));
}

/* The error for an unknown name lists all stages. */
static void every_stage_has_a_naive_version(void **state)
{
    (void)state;
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    o.samplers = "frobnicate";
    assert_false(sample_options_check(&o, &err));
    const char *name = strstr(err.text, "the samplers are ");
    assert_non_null(name);
    name += strlen("the samplers are ");
    int n = 0;
    for (; *name; n++) {
        const size_t size = strcspn(name, ",");
        bool found = false;
        for (int i = 0; i < SUPPORT_STAGES; i++)
            found |= strlen(support_stage_name[i]) == size &&
                     memcmp(support_stage_name[i], name, size) == 0;
        if (!found) fail_msg("%.*s has no naive version", (int)size, name);
        name += size + strspn(name + size, ", ");
    }
    assert_int_equal(n, SUPPORT_STAGES);
}

static void options_that_could_not_act_are_refused(void **state)
{
    (void)state;
    struct sample_options o = sample_options_default();
    o.samplers = "top_k;temperature";
    sample_free(make(&o, 100));
    o.xtc_probability = 0.5f;
    refuse(&o, "samplers");
    o = sample_options_default();
    o.mirostat = 2;
    sample_free(make(&o, 100)); /* default top-k and similar rules are overridden */
    o.typical_p = 0.9f;
    refuse(&o, "mirostat");
    o = sample_options_default();
    o.bias = &(struct sample_bias){100, 1};
    o.n_biases = 1;
    refuse(&o, "bias");
    o.bias = &(struct sample_bias){5, NAN};
    refuse(&o, "bias");
    o.bias = &(struct sample_bias){5, INFINITY};
    refuse(&o, "bias");
}

static void biases_change_logits_and_forbid_ids(void **state)
{
    (void)state;
    static const struct sample_bias bias[] = {{1, -INFINITY}, {3, 2}, {3, 2.5f}, {4, 100}};
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    o.temp = 0;
    o.bias = bias;
    o.n_biases = 4;
    struct sampler *s = make(&o, 5);
    const float logits[5] = {5, 9, 1, 1, -INFINITY}; /* a bias cannot make it possible */
    assert_int_equal(sample_next(s, logits, &err), 3);
    sample_restrict(s, &(const uint64_t){1 << 1 | 1 << 2});
    assert_int_equal(sample_next(s, logits, &err), 2);
    sample_restrict(s, &(const uint64_t){1 << 1});
    assert_int_equal(sample_next(s, logits, &err), -1);
    assert_string_equal(err.item, "constraint");
    sample_free(s);
}

/* Two candidates remain; the order of stages determines whether the repeated best token is one of
 * them. */
static void samplers_act_in_the_given_order(void **state)
{
    (void)state;
    const float logits[4] = {10, 9, 8, 7};
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    o.top_k = 2;
    o.repeat_penalty = 10;
    bool seen[2][4] = {{false}};
    for (int run = 0; run < 2; run++) {
        o.samplers = run == 0 ? "penalties;top_k" : "top_k;penalties";
        o.seed = 4;
        struct sampler *s = make(&o, 4);
        sample_accept(s, 0);
        for (int i = 0; i < 20000; i++) seen[run][sample_next(s, logits, &err)] = true;
        sample_free(s);
    }
    assert_true(!seen[0][0] && seen[0][1] && seen[0][2] && !seen[0][3]);
    assert_true(seen[1][0] && seen[1][1] && !seen[1][2] && !seen[1][3]);
}

/* No penalty for a repetition across a breaker; without the breaker there is one. */
static void breakers_end_repetitions(void **state)
{
    (void)state;
    static const int32_t text[] = {1,  4, 7,
                                   30, 1, 4}; /* a, aa, ... ; 30: baca has breakers in it */
    const float logits[40] = {[7] = 10, [5] = 9};
    struct sample_options o = sample_options_default();
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer of_1 = BASE_BUFFER_INIT;
    support_token_text(NULL, 1, &of_1);
    o.temp = 0;
    o.token_bytes = support_token_text;
    o.dry_multiplier = 5;
    for (int run = 0; run < 2; run++) {
        const struct sample_text breaker = {of_1.data, of_1.size};
        o.dry_breaker = &breaker; /* token 1 is a breaker: too few tokens follow it */
        o.n_dry_breakers = (size_t)run;
        struct sampler *s = make(&o, 40);
        for (int i = 0; i < 6; i++) sample_accept(s, text[i]);
        assert_int_equal(sample_next(s, logits, &err), run == 0 ? 5 : 7);
        sample_free(s);
    }
    base_buffer_free(&of_1);
}

/* ---- Distributions ---- */

/* Pearson's chi-square of DRAWS draws; the seed is fixed, so the result is deterministic. With 15
 * degrees of freedom 99.99 % of good generators are below 44.3. */
static double chi_square(const struct sample_options *o, const float *logits, int n,
                         const double *p)
{
    enum { DRAWS = 100000 };
    struct base_error err = BASE_ERROR_INIT;
    struct sampler *s = make(o, (uint32_t)n);
    int count[64] = {0};
    double chi = 0;
    for (int i = 0; i < DRAWS; i++) count[sample_next(s, logits, &err)]++;
    for (int i = 0; i < n; i++) {
        if (p[i] <= 0) assert_int_equal(count[i], 0);
        if (p[i] > 0) chi += pow(count[i] - DRAWS * p[i], 2) / (DRAWS * p[i]);
    }
    sample_free(s);
    return chi;
}

static void draws_follow_the_distribution(void **state)
{
    (void)state;
    enum { N = 16 };
    float logits[N];
    double p[N], total = 0;
    for (int i = 0; i < N; i++) logits[i] = (float)((i * 7) % N) / 4;
    struct sample_options o = sample_options_default();
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.temp = 1.3f;
    for (int i = 0; i < N; i++) total += p[i] = exp((double)logits[i] / (double)o.temp);
    for (int i = 0; i < N; i++) p[i] /= total;
    for (int cut = 0; cut < 2; cut++) { /* by id, by rank */
        o.top_k = cut ? N : 0;
        for (o.seed = 1; o.seed < 4; o.seed++) assert_true(chi_square(&o, logits, N, p) < 44.3);
    }
    /* With probability 0.8 XTC removes the tokens above the threshold, except the least likely of
     * them. */
    o.xtc_probability = 0.8f;
    o.xtc_threshold = 0.05f;
    o.samplers = "temperature;xtc";
    int last = -1;
    double left = 1, mixed[N];
    for (int i = 0; i < N; i++)
        if (p[i] >= 0.05 && (last < 0 || p[i] < p[last])) last = i;
    for (int i = 0; i < N; i++)
        if (p[i] > p[last]) left -= p[i];
    for (int i = 0; i < N; i++) mixed[i] = 0.2 * p[i] + (p[i] > p[last] ? 0 : 0.8 * p[i] / left);
    for (o.seed = 1; o.seed < 4; o.seed++) assert_true(chi_square(&o, logits, N, mixed) < 44.3);
}

/* The mean surprise of the draws of Mirostat approaches tau. */
static void mirostat_reaches_its_target(void **state)
{
    (void)state;
    enum { N = 5000, STEPS = 4000 };
    float *logits = malloc(N * sizeof *logits);
    assert_non_null(logits);
    double total = 0;
    for (int i = 0; i < N; i++) {
        logits[i] = (float)(-1.1 * log(i + 1.0));
        total += exp((double)logits[i]);
    }
    for (int version = 1; version < 3; version++) {
        struct sample_options o = sample_options_default();
        struct base_error err = BASE_ERROR_INIT;
        o.temp = 1;
        o.mirostat = version;
        o.mirostat_tau = 3;
        struct sampler *s = make(&o, N);
        double surprise = 0;
        for (int i = 0; i < STEPS; i++) {
            const int32_t id = sample_next(s, logits, &err);
            surprise -= ((double)logits[id] - log(total)) / log(2) / STEPS;
        }
        /* Mirostat measures in the truncated distribution: less than in the full one */
        assert_true(surprise > 3 && surprise < 5.5);
        sample_free(s);
    }
    free(logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chain_equals_the_naive_one),
        cmocka_unit_test(chains_over_large_vocabularies_equal_the_naive_one),
        cmocka_unit_test(long_lists_equal_the_naive_ones),
        cmocka_unit_test(what_a_rule_removes_stays_removed),
        cmocka_unit_test(block_kernels_equal_scalar),
        cmocka_unit_test(shape_kernels_equal_scalar),
        cmocka_unit_test(a_candidate_with_probability_one_is_always_chosen),
        cmocka_unit_test(ranges_are_checked),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(every_stage_has_a_naive_version),
        cmocka_unit_test(options_that_could_not_act_are_refused),
        cmocka_unit_test(biases_change_logits_and_forbid_ids),
        cmocka_unit_test(samplers_act_in_the_given_order),
        cmocka_unit_test(breakers_end_repetitions),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(mirostat_reaches_its_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
