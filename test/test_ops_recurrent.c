/* test/test_ops_recurrent.c: the ops with a state against a naive reference in double, which
 * computes an element's head from the first token of its span on; spans of different lengths,
 * sources in every memory layout, equal bits on several threads and levels. */
#include "engine/graph_recurrent.h"
#include "test/support.h"
#include "test/support_graph.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STATE = 80, MAX_SPANS = 4 }; /* numbers per row of a state */

struct arg {
    int64_t dim, heads, tokens; /* tokens of the first span; each later span has one more */
    int64_t spans;
    int64_t n;      /* state elements, or dim of keys */
    int64_t groups; /* groups of b and c, or heads of keys */
    bool wide;      /* a decay for each state element */
    bool state;     /* compares the table instead of the output */
    bool same;      /* the state is updated in its slot */
    int form;       /* layout of the first source; each later source has the next */
};

/* One token, odd sizes, several spans, more and fewer units than workers, long rows. */
static const struct arg cases[] = {
    {1, 1, 1, 1, 1, 1, false, false, false, 0},   {4, 3, 5, 2, 16, 3, false, false, false, 1},
    {7, 6, 3, 1, 19, 2, true, false, true, 2},    {1, 37, 4, 3, 16, 1, true, false, false, 3},
    {16, 4, 6, 2, 33, 1, false, false, true, 2},  {33, 2, 9, 1, 40, 1, true, false, false, 1},
    {70, 3, 2, 1, 21, 3, false, false, false, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static struct engine_tensor *source(struct support_rig *rig, const struct arg *arg, int k,
                                    enum quant_id type, int64_t ne0, int64_t ne1, int64_t ne2,
                                    int64_t ne3)
{
    rig->in[k] = support_source(rig, type, (int64_t[]){ne0, ne1, ne2, ne3},
                                (enum support_form)((arg->form + k) % SUPPORT_FORM_COUNT));
    return rig->in[k];
}

/* Element (i0, head, token) of source k. */
static double at(const struct support_rig *rig, int k, int64_t i0, int64_t h, int64_t t)
{
    return support_at(rig->in[k], i0, h, t, 0);
}

static int64_t first_of(const struct arg *arg, int64_t span)
{
    return span * arg->tokens + span * (span - 1) / 2;
}

static int64_t all_tokens(const struct arg *arg)
{
    return first_of(arg, arg->spans);
}

/* Span s reads slot 1 + s and writes the same slot, or, in another order, a slot after those that
 * are read; slot 0 and the last one are unchanged. */
static int64_t slot_after(const struct arg *arg, int64_t s)
{
    return arg->same ? 1 + s : 2 * arg->spans - s;
}

static int64_t all_slots(const struct arg *arg)
{
    return 2 * arg->spans + 2;
}

static struct engine_tensor *spans_of(struct support_rig *rig, const struct arg *arg)
{
    int32_t spans[MAX_SPANS][4];
    for (int64_t s = 0; s < arg->spans; s++) {
        spans[s][0] = (int32_t)first_of(arg, s);
        spans[s][1] = (int32_t)(arg->tokens + s);
        spans[s][2] = (int32_t)(1 + s);
        spans[s][3] = (int32_t)slot_after(arg, s);
    }
    return support_ids(rig, 4, arg->spans, spans[0]);
}

/* The table of slots as source k, and a copy that no op writes into. */
static struct engine_tensor *table(struct support_rig *rig, int k, int64_t ne0, int64_t ne1,
                                   int64_t ne2, int64_t slots)
{
    const int64_t ne[] = {ne0, ne1, ne2, slots};
    struct engine_tensor *t = support_source(rig, QUANT_F32, ne, SUPPORT_PLAIN);
    rig->in[k] = support_source(rig, QUANT_F32, ne, SUPPORT_PLAIN);
    memcpy(rig->in[k]->data, t->data, (size_t)engine_tensor_bytes(t));
    return t;
}

/* The output, or the table after the run. */
static struct engine_tensor *part(struct support_rig *rig, const struct arg *arg,
                                  struct engine_tensor *out, struct engine_tensor *slots)
{
    return arg->state ? engine_scale(rig->g, slots, 1.0f, 0.0f) : out;
}

/* The head, token and span of an element of the result. In a table t is the last token; s is -1 for
 * slots that no span writes. */
struct place {
    int64_t h, t, s;
};

static struct place place_of(const struct arg *arg, const int64_t *i)
{
    struct place p = {i[1], i[2], 0};
    if (!arg->state) {
        while (first_of(arg, p.s + 1) <= p.t) p.s++;
        return p;
    }
    for (; p.s < arg->spans; p.s++)
        if (i[3] == slot_after(arg, p.s))
            return (struct place){i[2], first_of(arg, p.s + 1) - 1, p.s};
    return (struct place){.s = -1};
}

static double unchanged(const struct support_rig *rig, int table, const int64_t *i)
{
    return support_at(rig->in[table], i[0], i[1], i[2], i[3]);
}

static void check(const char *name, support_build build, support_want want)
{
    for (int k = 0; k < CASES; k++) {
        for (int state = 0; state < 2; state++) {
            struct arg arg = cases[k];
            arg.state = state;
            char label[64];
            snprintf(label, sizeof label, "%s, case %d, %s", name, k, state ? "table" : "output");
            support_check_op(label, build, want, &arg, 1e-12);
        }
    }
}

/* ---- ssm_conv ---- */

/* Inputs after a token: some cases have none, some half of the taps, some all but one. */
static int ahead_of(const struct arg *arg, int64_t taps)
{
    return (int)(arg->heads * arg->tokens % 3 * (taps - 1) / 2);
}

static struct engine_tensor *build_conv(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    const int64_t taps = arg->dim < 5 ? arg->dim + 1 : 4, channels = arg->heads * arg->dim * 7;
    struct engine_tensor *slots = table(rig, 0, channels, taps - 1, 1, all_slots(arg));
    source(rig, arg, 1, QUANT_F32, channels, all_tokens(arg), 1, 1);
    source(rig, arg, 2, arg->wide ? QUANT_F16 : QUANT_F32, channels, taps, 1, 1);
    return part(rig, arg,
                engine_ssm_conv(rig->g, slots, rig->in[1], rig->in[2], spans_of(rig, arg),
                                ahead_of(arg, taps)),
                slots);
}

/* Channel c of input i, counted from the K - 1 inputs before the span. */
static double conv_input(const struct support_rig *rig, const struct arg *arg, int64_t s, int64_t i,
                         int64_t c)
{
    const int64_t kept = rig->in[0]->ne[1];
    return i < kept ? support_at(rig->in[0], c, i, 0, 1 + s)
                    : support_at(rig->in[1], c, first_of(arg, s) + i - kept, 0, 0);
}

static double want_conv(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    double sum = 0.0;
    if (arg->state) {
        const int64_t s = place_of(arg, i).s;
        return s < 0 ? unchanged(rig, 0, i) : conv_input(rig, arg, s, arg->tokens + s + i[1], i[0]);
    }
    const struct place p = place_of(arg, (const int64_t[]){0, 0, i[1]});
    const int64_t taps = rig->in[2]->ne[1], n = taps - 1 + arg->tokens + p.s; /* inputs */
    const int64_t from = p.t - first_of(arg, p.s) + ahead_of(arg, taps);
    for (int64_t k = 0; k < taps && from + k < n; k++)
        sum += conv_input(rig, arg, p.s, from + k, i[0]) * support_at(rig->in[2], i[0], k, 0, 0);
    return sum;
}

static void ssm_conv_is_near_the_reference(void **state)
{
    (void)state;
    check("ssm_conv", build_conv, want_conv);
}

/* ---- ssm_scan ---- */

static struct engine_tensor *build_scan(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t n = arg->n, h = arg->heads, t = all_tokens(arg);
    struct engine_tensor *slots = table(rig, 0, n, arg->dim, h, all_slots(arg)), **in = rig->in;
    source(rig, arg, 1, QUANT_F32, arg->dim, h, t, 1);
    source(rig, arg, 2, QUANT_F32, h, t, 1, 1);
    source(rig, arg, 3, QUANT_F32, arg->wide ? n : 1, h, 1, 1);
    source(rig, arg, 4, QUANT_F32, n, arg->groups, t, 1);
    source(rig, arg, 5, QUANT_F32, n, arg->groups, t, 1);
    in[6] = spans_of(rig, arg);
    return part(rig, arg, engine_ssm_scan(rig->g, slots, in[1], in[2], in[3], in[4], in[5], in[6]),
                slots);
}

static double want_scan(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    struct place p = place_of(arg, i);
    int64_t row = arg->state ? i[1] : i[0], group = p.h / (arg->heads / arg->groups);
    double state[MAX_STATE], out = 0.0;
    if (p.s < 0) return unchanged(rig, 0, i);
    for (int64_t k = 0; k < arg->n; k++) state[k] = support_at(rig->in[0], k, row, p.h, 1 + p.s);
    for (int64_t t = first_of(arg, p.s); t <= p.t; t++) {
        double d = log1p(exp(support_at(rig->in[2], p.h, t, 0, 0)));
        out = 0.0;
        for (int64_t k = 0; k < arg->n; k++) {
            double a = at(rig, 3, arg->wide ? k : 0, p.h, 0);
            state[k] =
                state[k] * exp(d * a) + d * at(rig, 1, row, p.h, t) * at(rig, 4, k, group, t);
            out += state[k] * at(rig, 5, k, group, t);
        }
    }
    return arg->state ? state[i[0]] : out;
}

static void ssm_scan_is_near_the_reference(void **state)
{
    (void)state;
    check("ssm_scan", build_scan, want_scan);
}

/* A slot that does not exist results in NaN, and tokens that do not exist are skipped; no access is
 * out of bounds. */
static void ranges_outside_the_state_change_nothing(void **state)
{
    (void)state;
    static const struct {
        int32_t span[4];
        bool gives_nan;
    } bad[] = {{{0, 2, -1, 1}, true},  {{0, 2, 1 << 30, 1}, true},  {{0, 2, 1, 4}, true},
               {{0, 2, 1, -7}, true},  {{0, 1 << 30, 1, 2}, false}, {{2, 5, 1, 2}, false},
               {{-5, 5, 1, 2}, false}, {{1 << 30, 1, 1, 2}, false}, {{0, -1, 1, 2}, false}};
    const struct arg arg = {.dim = 2, .heads = 2, .tokens = 2, .spans = 1, .n = 4, .groups = 1};
    const support_build builds[] = {build_conv, build_scan};
    for (size_t k = 0; k < 2 * sizeof bad / sizeof bad[0]; k++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_rig rig;
        support_rig_init(&rig, support_engines()[1], 3);
        struct engine_tensor *y = builds[k % 2](&rig, &arg);
        engine_output(rig.g, y);
        for (int i = 0; i < ENGINE_MAX_SRC; i++)
            if (y->src[i] && y->src[i]->type->id == QUANT_I32)
                memcpy(y->src[i]->data, bad[k / 2].span, sizeof bad[0].span);
        assert_true(engine_graph_plan(rig.g, true, &err));
        assert_true(engine_graph_run(rig.g, &err));
        for (int64_t i = 0; bad[k / 2].gives_nan && i < arg.dim; i++)
            assert_true(isnan(support_at(y, i, 0, 0, 0)));
        support_rig_free(&rig);
    }
}

/* ---- wkv6: state[i][j], i key, j value ---- */

static struct engine_tensor *build_wkv6(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t d = arg->dim, h = arg->heads, t = all_tokens(arg);
    for (int k = 0; k < 5; k++) source(rig, arg, k, QUANT_F32, d, h, k == 3 ? 1 : t, 1);
    struct engine_tensor *slots = table(rig, 5, d, d, h, all_slots(arg)), **in = rig->in;
    return part(rig, arg,
                engine_wkv6(rig->g, in[0], in[1], in[2], in[3], in[4], slots, spans_of(rig, arg)),
                slots);
}

static double want_wkv6(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    struct place p = place_of(arg, i);
    double state[MAX_STATE], out = 0.0;
    if (p.s < 0) return unchanged(rig, 5, i);
    for (int64_t k = 0; k < arg->dim; k++) state[k] = support_at(rig->in[5], i[0], k, p.h, 1 + p.s);
    for (int64_t t = first_of(arg, p.s); t <= p.t; t++) {
        out = 0.0;
        for (int64_t k = 0; k < arg->dim; k++) {
            double kv = at(rig, 0, k, p.h, t) * at(rig, 1, i[0], p.h, t);
            out += (kv * at(rig, 3, k, p.h, 0) + state[k]) * at(rig, 2, k, p.h, t);
            state[k] = state[k] * at(rig, 4, k, p.h, t) + kv;
        }
    }
    return arg->state ? state[i[1]] : out;
}

static void wkv6_is_near_the_reference(void **state)
{
    (void)state;
    check("wkv6", build_wkv6, want_wkv6);
}

/* ---- wkv7: state[i][j], i value, j key ---- */

/* Smaller a and b, so that the state does not diverge. */
static struct engine_tensor *build_wkv7(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t d = arg->dim, h = arg->heads, t = all_tokens(arg);
    for (int k = 0; k < 6; k++) source(rig, arg, k, QUANT_F32, d, h, t, 1);
    struct engine_tensor *slots = table(rig, 6, d, d, h, all_slots(arg)), **in = rig->in;
    struct engine_tensor *a = engine_scale(rig->g, in[4], 0.125f, 0.0f);
    return part(
        rig, arg,
        engine_wkv7(rig->g, in[0], in[1], in[2], in[3], a, in[5], slots, spans_of(rig, arg)),
        slots);
}

static double want_wkv7(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    struct place p = place_of(arg, i);
    int64_t row = arg->state ? i[1] : i[0];
    double state[MAX_STATE], out = 0.0;
    if (p.s < 0) return unchanged(rig, 6, i);
    for (int64_t k = 0; k < arg->dim; k++) state[k] = support_at(rig->in[6], k, row, p.h, 1 + p.s);
    for (int64_t t = first_of(arg, p.s); t <= p.t; t++) {
        double sum = 0.0, v = at(rig, 3, row, p.h, t);
        for (int64_t k = 0; k < arg->dim; k++) sum += 0.125 * at(rig, 4, k, p.h, t) * state[k];
        out = 0.0;
        for (int64_t k = 0; k < arg->dim; k++) {
            state[k] = state[k] * at(rig, 1, k, p.h, t) + v * at(rig, 2, k, p.h, t) +
                       sum * at(rig, 5, k, p.h, t);
            out += state[k] * at(rig, 0, k, p.h, t);
        }
    }
    return arg->state ? state[i[0]] : out;
}

static void wkv7_is_near_the_reference(void **state)
{
    (void)state;
    check("wkv7", build_wkv7, want_wkv7);
}

/* ---- gated_delta: state[i][j], i value, j key ---- */

/* Keys are divided by their norm, as the rule requires. */
static struct engine_tensor *build_delta(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t d = arg->dim, n = arg->n, h = arg->heads, t = all_tokens(arg);
    source(rig, arg, 0, QUANT_F32, n, arg->groups, t, 1);
    source(rig, arg, 1, QUANT_F32, n, arg->groups, t, 1);
    source(rig, arg, 2, QUANT_F32, d, h, t, 1);
    source(rig, arg, 3, QUANT_F32, arg->wide ? n : 1, h, t, 1);
    source(rig, arg, 4, QUANT_F32, 1, h, t, 1);
    struct engine_tensor *slots = table(rig, 5, n, d, h, all_slots(arg)), **in = rig->in;
    struct engine_tensor *k = engine_scale(rig->g, in[1], 0.125f, 0.0f);
    return part(
        rig, arg,
        engine_gated_delta(rig->g, in[0], k, in[2], in[3], in[4], slots, spans_of(rig, arg)),
        slots);
}

static double want_delta(const struct support_rig *rig, const struct engine_tensor *result,
                         const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    struct place p = place_of(arg, i);
    int64_t row = arg->state ? i[1] : i[0], head_k = p.h % arg->groups;
    double state[MAX_STATE], out = 0.0;
    if (p.s < 0) return unchanged(rig, 5, i);
    for (int64_t k = 0; k < arg->n; k++) state[k] = support_at(rig->in[5], k, row, p.h, 1 + p.s);
    for (int64_t t = first_of(arg, p.s); t <= p.t; t++) {
        double sum = 0.0;
        for (int64_t k = 0; k < arg->n; k++) {
            state[k] *= exp(at(rig, 3, arg->wide ? k : 0, p.h, t));
            sum += state[k] * 0.125 * at(rig, 1, k, head_k, t);
        }
        double delta = (at(rig, 2, row, p.h, t) - sum) * at(rig, 4, 0, p.h, t);
        out = 0.0;
        for (int64_t k = 0; k < arg->n; k++) {
            state[k] += delta * 0.125 * at(rig, 1, k, head_k, t);
            out += state[k] * at(rig, 0, k, head_k, t);
        }
    }
    return arg->state ? state[i[0]] : out / sqrt((double)arg->n);
}

static void gated_delta_is_near_the_reference(void **state)
{
    (void)state;
    check("gated_delta", build_delta, want_delta);
}

/* ---- Split in time ---- */

/* Six tokens at once, and three followed by three with their state, have the same bits. */
static void a_sequence_split_in_time_gives_the_same_bits(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct support_rig rig;
    support_rig_init(&rig, support_engines()[2], 9);
    enum { D = 8, H = 3, T = 6 };
    static const int32_t spans[][4] = {{0, T, 0, 1}, {0, T / 2, 0, 2}, {T / 2, T / 2, 2, 3}};
    struct arg arg = {.form = SUPPORT_PLAIN};
    struct engine_tensor *in[5], *out[3];
    for (int k = 0; k < 5; k++) in[k] = source(&rig, &arg, k, QUANT_F32, D, H, k == 3 ? 1 : T, 1);
    struct engine_tensor *slots = table(&rig, 5, D, D, H, 4);
    for (int k = 0; k < 3; k++) {
        out[k] = engine_wkv6(rig.g, in[0], in[1], in[2], in[3], in[4], slots,
                             support_ids(&rig, 4, 1, spans[k]));
        engine_output(rig.g, out[k]);
    }
    if (!engine_graph_plan(rig.g, true, &err) || !engine_graph_run(rig.g, &err))
        fail_msg("%s", err.text);
    const size_t half = sizeof(float) * D * H * T / 2, slot = sizeof(float) * D * D * H;
    assert_memory_equal(out[0]->data, out[1]->data, half);
    assert_memory_equal(out[0]->data + half, out[2]->data + half, half);
    assert_memory_equal(slots->data + slot, slots->data + 3 * slot, slot);
    support_rig_free(&rig);
}

/* ---- Refusals ---- */

static void shapes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct arg arg = {.form = SUPPORT_PLAIN};
    for (int bad = 0; bad < 9; bad++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_rig rig;
        support_rig_init(&rig, support_engines()[0], 1);
        for (int k = 0; k < 7; k++)
            source(&rig, &arg, k, bad == 8 && k == 6 ? QUANT_F16 : QUANT_F32, bad == k ? 5 : 4,
                   k == 6 ? 4 : 3, k == 6 ? 3 : 2, k == 6 ? 2 : 1);
        struct engine_tensor **in = rig.in;
        struct engine_tensor *spans =
            support_ids(&rig, bad == 7 ? 2 : 4, 1, (const int32_t[]){0, 2, 0, 1});
        assert_null(engine_wkv7(rig.g, in[0], in[1], in[2], in[3], in[4], in[5], in[6], spans));
        assert_false(engine_graph_plan(rig.g, true, &err));
        assert_int_equal(err.code, BASE_MODEL);
        support_rig_free(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ssm_conv_is_near_the_reference),
        cmocka_unit_test(ssm_scan_is_near_the_reference),
        cmocka_unit_test(ranges_outside_the_state_change_nothing),
        cmocka_unit_test(wkv6_is_near_the_reference),
        cmocka_unit_test(wkv7_is_near_the_reference),
        cmocka_unit_test(gated_delta_is_near_the_reference),
        cmocka_unit_test(a_sequence_split_in_time_gives_the_same_bits),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}
