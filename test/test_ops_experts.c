/* test/test_ops_experts.c: choosing experts, their weights, the sum of their outputs and clamped
 * gated units against a naive reference in double, for sources in every memory layout, on several
 * threads and levels. */
#include "test/support.h"
#include "test/support_graph.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct arg {
    int64_t tokens, experts, used, groups, groups_used, size;
    bool bias, softmax, normalize, ties;
    float scale;
    enum support_form form;
};

/* One token, one expert, all experts, groups of several sizes, more tokens than workers. */
static const struct arg cases[] = {
    {1, 1, 1, 1, 1, 5, .scale = 1.0f},
    {3, 8, 8, 1, 1, 33, .normalize = true, .scale = 1.0f},
    {40, 64, 6, 8, 3, 40, .bias = true, .normalize = true, .scale = 2.5f},
    {17, 60, 4, 1, 1, 97, .softmax = true, .scale = 1.0f},
    {9, 128, 17, 16, 2, 4100, .bias = true, .ties = true, .normalize = true, .scale = 0.5f},
    {70, 32, 1, 4, 4, 64, .ties = true, .scale = 16.0f},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* 1 for positive values, else 0. */
static struct engine_tensor *step(struct support_rig *rig, struct engine_tensor *x)
{
    return engine_clamp(rig->g, engine_scale(rig->g, x, 1e30f, 0.0f), 0.0f, 1.0f);
}

/* Probabilities; with ties many are equal. */
static struct engine_tensor *probs(struct support_rig *rig, const struct arg *arg)
{
    struct engine_tensor *x =
        support_source(rig, QUANT_F32, (int64_t[]){arg->experts, arg->tokens, 1, 1}, arg->form);
    if (arg->ties) x = step(rig, x);
    x = engine_unary(rig->g, x, ENGINE_SIGMOID);
    engine_output(rig->g, x);
    rig->in[0] = x;
    return x;
}

static struct engine_tensor *bias(struct support_rig *rig, const struct arg *arg)
{
    if (!arg->bias) return NULL;
    rig->in[1] = support_source(rig, QUANT_F32, (int64_t[]){arg->experts, 1, 1, 1}, SUPPORT_PLAIN);
    if (arg->ties) {
        rig->in[1] = step(rig, rig->in[1]);
        engine_output(rig->g, rig->in[1]);
    }
    return rig->in[1];
}

/* The score of expert x for token t. */
static double score_of(const struct support_rig *rig, const struct arg *arg, int64_t x, int64_t t)
{
    const float p = (float)support_at(rig->in[0], x, t, 0, 0);
    return arg->bias ? p + (float)support_at(rig->in[1], x, 0, 0, 0) : p;
}

static double group_score(const struct support_rig *rig, const struct arg *arg, int64_t g,
                          int64_t t)
{
    const int64_t size = arg->experts / arg->groups;
    double best = -INFINITY, second = -INFINITY;
    for (int64_t x = g * size; x < (g + 1) * size; x++) {
        const double s = score_of(rig, arg, x, t);
        if (s > best) {
            second = best;
            best = s;
        } else if (s > second) {
            second = s;
        }
    }
    return size > 1 ? (double)((float)best + (float)second) : best;
}

/* The number of groups that are better than g. */
static int64_t group_rank(const struct support_rig *rig, const struct arg *arg, int64_t g,
                          int64_t t)
{
    int64_t rank = 0;
    const double own = group_score(rig, arg, g, t);
    for (int64_t other = 0; other < arg->groups; other++) {
        const double s = group_score(rig, arg, other, t);
        rank += s > own || (s == own && other < g);
    }
    return rank;
}

/* The expert at position u of the choice of token t. */
static int64_t chosen(const struct support_rig *rig, const struct arg *arg, int64_t u, int64_t t)
{
    const int64_t size = arg->experts / arg->groups;
    double score[128];
    bool taken[128] = {false};
    int64_t best = 0;
    for (int64_t g = 0; g < arg->groups; g++) {
        const bool open = group_rank(rig, arg, g, t) < arg->groups_used;
        for (int64_t x = g * size; x < (g + 1) * size; x++)
            score[x] = open ? score_of(rig, arg, x, t) : -INFINITY;
    }
    for (int64_t k = 0; k <= u; k++) {
        best = -1;
        for (int64_t x = 0; x < arg->experts; x++)
            if (!taken[x] && (best < 0 || score[x] > score[best])) best = x;
        taken[best] = true;
    }
    return best;
}

static struct engine_tensor *build_choose(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    struct engine_tensor *p = probs(rig, arg);
    return engine_choose_experts(rig->g, p, bias(rig, arg), (int)arg->used, (int)arg->groups,
                                 (int)arg->groups_used);
}

static double want_choose(const struct support_rig *rig, const struct engine_tensor *result,
                          const void *user, const int64_t *i)
{
    (void)result;
    return (double)chosen(rig, user, i[0], i[1]);
}

/* Chunks of three experts. */
static struct engine_tensor *build_chunks(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    struct engine_tensor *p = probs(rig, arg);
    return engine_choose_expert_chunks(rig->g, p, (int)arg->used, 3);
}

static double want_chunks(const struct support_rig *rig, const struct engine_tensor *result,
                          const void *user, const int64_t *i)
{
    struct arg arg = *(const struct arg *)user;
    (void)result;
    arg.groups = arg.groups_used = 1;
    arg.bias = false;
    return (double)(chosen(rig, &arg, i[0], i[1]) / 3);
}

static struct engine_tensor *build_weights(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    struct engine_tensor *ids = build_choose(rig, user);
    return engine_expert_weights(rig->g, rig->in[0], ids, arg->softmax, arg->normalize, arg->scale);
}

static double want_weights(const struct support_rig *rig, const struct engine_tensor *result,
                           const void *user, const int64_t *i)
{
    const struct arg *arg = user;
    double w[128], sum = 0, exps = 0, m = -INFINITY;
    (void)result;
    for (int64_t u = 0; u < arg->used; u++) {
        w[u] = support_at(rig->in[0], chosen(rig, arg, u, i[1]), i[1], 0, 0);
        m = fmax(m, w[u]);
    }
    for (int64_t u = 0; u < arg->used; u++) exps += exp(w[u] - m);
    for (int64_t u = 0; u < arg->used; u++) {
        if (arg->softmax) w[u] = exp(w[u] - m) / exps;
        sum += w[u];
    }
    return w[i[0]] / (arg->normalize ? fmax(sum, 0x1p-14) : 1.0) * arg->scale;
}

static struct engine_tensor *build_sum(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    rig->in[0] = support_source(rig, QUANT_F32, (int64_t[]){arg->size, arg->used, arg->tokens, 1},
                                arg->form);
    rig->in[1] = support_source(rig, QUANT_F32, (int64_t[]){arg->used, arg->tokens, 1, 1},
                                (enum support_form)((arg->form + 3) % SUPPORT_FORM_COUNT));
    return engine_expert_sum(rig->g, rig->in[0], rig->in[1]);
}

static double want_sum(const struct support_rig *rig, const struct engine_tensor *result,
                       const void *user, const int64_t *i)
{
    const struct arg *arg = user;
    double sum = 0;
    (void)result;
    for (int64_t u = 0; u < arg->used; u++)
        sum += support_at(rig->in[0], i[0], u, i[1], 0) * support_at(rig->in[1], u, i[1], 0, 0);
    return sum;
}

static struct engine_tensor *build_glu(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    for (int k = 0; k < 2; k++)
        rig->in[k] =
            support_source(rig, QUANT_F32, (int64_t[]){arg->size, arg->used, arg->tokens, 1},
                           (enum support_form)((arg->form + k) % SUPPORT_FORM_COUNT));
    return engine_glu_clamp(rig->g, rig->in[0], rig->in[1],
                            arg->bias ? ENGINE_GELU_QUICK : ENGINE_SILU, arg->scale / 2,
                            arg->bias ? 1.0f : 0.0f);
}

static double want_glu(const struct support_rig *rig, const struct engine_tensor *result,
                       const void *user, const int64_t *i)
{
    const struct arg *arg = user;
    const double limit = arg->scale / 2, gate = support_at(rig->in[0], i[0], i[1], i[2], i[3]);
    const double up = support_at(rig->in[1], i[0], i[1], i[2], i[3]), g = fmin(gate, limit);
    (void)result;
    return g / (1 + exp(-(arg->bias ? 1.702 : 1.0) * g)) *
           (fmax(-limit, fmin(up, limit)) + (arg->bias ? 1.0 : 0.0));
}

static void check_all(const char *name, support_build build, support_want want, double bar)
{
    for (int i = 0; i < CASES; i++)
        for (int form = 0; form < SUPPORT_FORM_COUNT; form++) {
            struct arg arg = cases[i];
            char label[64];
            arg.form = (enum support_form)form;
            snprintf(label, sizeof label, "%s, case %d, form %d", name, i, form);
            support_check_op(label, build, want, &arg, bar);
        }
}

static void the_experts_of_the_largest_scores_are_chosen(void **state)
{
    (void)state;
    check_all("choose_experts", build_choose, want_choose, 0.0);
    check_all("choose_experts, chunks", build_chunks, want_chunks, 0.0);
}

static void weights_of_the_chosen_experts_are_normalized(void **state)
{
    (void)state;
    check_all("expert_weights", build_weights, want_weights, 1e-12);
}

static void outputs_of_experts_are_summed_in_order(void **state)
{
    (void)state;
    check_all("expert_sum", build_sum, want_sum, 1e-12);
}

static void gate_and_up_are_clamped(void **state)
{
    (void)state;
    check_all("glu_clamp", build_glu, want_glu, 1e-11);
}

/* NaN is chosen last, and a weight of an id out of range is NaN. */
static void nan_scores_come_last_and_ids_out_of_range_give_nan(void **state)
{
    (void)state;
    struct support_rig rig;
    struct base_error err = BASE_ERROR_INIT;
    support_rig_init(&rig, support_engines()[1], 1);
    struct engine_tensor *p =
        support_source(&rig, QUANT_F32, (int64_t[]){5, 1, 1, 1}, SUPPORT_PLAIN);
    const float values[] = {NAN, 1.0f, NAN, -INFINITY, 1.0f};
    memcpy(p->data, values, sizeof values);
    struct engine_tensor *ids = engine_choose_experts(rig.g, p, NULL, 5, 1, 1);
    static const int32_t wild[] = {4, -1, 5};
    struct engine_tensor *w =
        engine_expert_weights(rig.g, p, support_ids(&rig, 3, 1, wild), false, false, 1.0f);
    engine_output(rig.g, ids);
    engine_output(rig.g, w);
    if (!engine_graph_plan(rig.g, true, &err) || !engine_graph_run(rig.g, &err))
        fail_msg("%s", err.text);
    static const int32_t expected[] = {1, 4, 3, 0, 2};
    assert_memory_equal(ids->data, expected, sizeof expected);
    const float *weight = (const float *)(const void *)w->data;
    assert_true(weight[0] == 1.0f && isnan(weight[1]) && isnan(weight[2]));
    support_rig_free(&rig);
}

static void shapes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    for (int bad = 0; bad < 10; bad++) {
        struct support_rig rig;
        struct base_error err = BASE_ERROR_INIT;
        support_rig_init(&rig, support_engines()[0], 1);
        static const int32_t three[] = {0, 1, 2};
        struct engine_tensor *p =
            support_source(&rig, QUANT_F32, (int64_t[]){12, 3, 1, 1}, SUPPORT_PLAIN);
        struct engine_tensor *y =
            support_source(&rig, QUANT_F32, (int64_t[]){12, 4, 3, 1}, SUPPORT_PLAIN);
        struct engine_tensor *ids = support_ids(&rig, 3, 1, three);
        struct engine_tensor *t = p;
        if (bad == 0) t = engine_choose_experts(rig.g, y, NULL, 4, 1, 1);
        if (bad == 1) t = engine_choose_experts(rig.g, p, NULL, 4, 5, 1);
        if (bad == 2) t = engine_choose_experts(rig.g, p, NULL, 13, 1, 1);
        if (bad == 3) t = engine_choose_experts(rig.g, p, NULL, 0, 1, 1);
        if (bad == 4) t = engine_choose_experts(rig.g, p, NULL, 2, 4, 5);
        if (bad == 5) t = engine_choose_experts(rig.g, p, y, 2, 1, 1);
        if (bad == 9) t = engine_choose_expert_chunks(rig.g, p, 2, 0);
        if (bad == 6) t = engine_expert_weights(rig.g, p, ids, false, false, 1.0f);
        if (bad == 7) t = engine_expert_sum(rig.g, y, p);
        if (bad == 8) t = engine_glu_clamp(rig.g, y, p, ENGINE_SILU, 1.0f, 0.0f);
        assert_null(t);
        assert_false(engine_graph_plan(rig.g, true, &err));
        assert_int_equal(err.code, BASE_MODEL);
        support_rig_free(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_experts_of_the_largest_scores_are_chosen),
        cmocka_unit_test(weights_of_the_chosen_experts_are_normalized),
        cmocka_unit_test(outputs_of_experts_are_summed_in_order),
        cmocka_unit_test(gate_and_up_are_clamped),
        cmocka_unit_test(nan_scores_come_last_and_ids_out_of_range_give_nan),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}
