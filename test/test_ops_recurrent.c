/* test/test_ops_recurrent.c: the ops with a state against a naive reference in double, which runs
 * the head that an element belongs to from the first token on; sources in every memory layout,
 * equal bits on several threads and levels. */
#include "engine/graph_recurrent.h"
#include "test/support.h"
#include "test/support_graph.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STATE = 80 }; /* one row of a state */

struct arg {
    int64_t dim, heads, tokens, seqs;
    int64_t n;      /* state elements, or dim of keys */
    int64_t groups; /* of b and c, or heads of keys */
    bool wide;      /* one decay for each state element */
    bool state;     /* look at the state, not at the output */
    int form;       /* of the first source; each later one takes the next */
};

/* One token, odd sizes, several sequences, more units than workers and fewer, long rows. */
static const struct arg cases[] = {
    {1, 1, 1, 1, 1, 1, false, false, 0},   {4, 3, 5, 2, 16, 3, false, false, 1},
    {7, 6, 3, 1, 19, 2, true, false, 2},   {1, 37, 4, 3, 16, 1, true, false, 3},
    {16, 4, 6, 2, 33, 1, false, false, 2}, {33, 2, 9, 1, 40, 1, true, false, 1},
    {70, 3, 2, 1, 21, 3, false, false, 0},
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

static struct engine_tensor *part(struct engine_recurrent r, const struct arg *arg)
{
    return arg->state ? r.state : r.out;
}

/* Element (i0, head, token, sequence) of source k. */
static double at(const struct support_rig *rig, int k, int64_t i0, int64_t h, int64_t t, int64_t s)
{
    return support_at(rig->in[k], i0, h, t, s);
}

/* What an element of the result belongs to; for states t is the last token. */
struct place {
    int64_t h, t, s;
};

static struct place place_of(const struct arg *arg, const int64_t *i)
{
    if (arg->state) return (struct place){i[2], arg->tokens - 1, i[3]};
    return (struct place){i[1], i[2], i[3]};
}

static void check(const char *name, support_build build, support_want want)
{
    for (int k = 0; k < CASES; k++) {
        for (int state = 0; state < 2; state++) {
            struct arg arg = cases[k];
            arg.state = state;
            char label[64];
            snprintf(label, sizeof label, "%s, case %d, %s", name, k, state ? "state" : "output");
            support_check_op(label, build, want, &arg, 1e-12);
        }
    }
}

/* ---- ssm_conv ---- */

static struct engine_tensor *build_conv(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t taps = arg->dim < 5 ? arg->dim : 4, channels = arg->heads * arg->dim;
    source(rig, arg, 0, QUANT_F32, taps - 1 + arg->tokens, channels, arg->seqs, 1);
    source(rig, arg, 1, arg->wide ? QUANT_F16 : QUANT_F32, taps, channels, 1, 1);
    return engine_ssm_conv(rig->g, rig->in[0], rig->in[1]);
}

static double want_conv(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    (void)user;
    double sum = 0.0;
    for (int64_t k = 0; k < rig->in[1]->ne[0]; k++)
        sum += at(rig, 0, i[1] + k, i[0], i[2], 0) * at(rig, 1, k, i[0], 0, 0);
    return sum;
}

static void ssm_conv_equals_the_reference(void **state)
{
    (void)state;
    check("ssm_conv", build_conv, want_conv);
}

/* ---- ssm_scan ---- */

/* Of s + 2 slots each sequence takes one, from the last one on downwards. */
static struct engine_tensor *last_slots(struct support_rig *rig, int64_t s)
{
    int32_t ids[8];
    for (int k = 0; k < s; k++) ids[k] = (int32_t)(s + 1 - k);
    return support_ids(rig, s, 1, ids);
}

static struct engine_tensor *build_scan(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t n = arg->n, h = arg->heads, t = arg->tokens, s = arg->seqs;
    source(rig, arg, 0, QUANT_F32, n, arg->dim, h, s + 2);
    source(rig, arg, 1, QUANT_F32, arg->dim, h, t, s);
    source(rig, arg, 2, QUANT_F32, h, t, s, 1);
    source(rig, arg, 3, QUANT_F32, arg->wide ? n : 1, h, 1, 1);
    source(rig, arg, 4, QUANT_F32, n, arg->groups, t, s);
    source(rig, arg, 5, QUANT_F32, n, arg->groups, t, s);
    rig->in[6] = last_slots(rig, s);
    return part(engine_ssm_scan(rig->g, rig->in[0], rig->in[1], rig->in[2], rig->in[3], rig->in[4],
                                rig->in[5], rig->in[6]),
                arg);
}

static double want_scan(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    struct place p = place_of(arg, i);
    int64_t row = arg->state ? i[1] : i[0], group = p.h / (arg->heads / arg->groups);
    double state[MAX_STATE], out = 0.0;
    int64_t slot = arg->seqs + 1 - p.s;
    for (int64_t k = 0; k < arg->n; k++) state[k] = at(rig, 0, k, row, p.h, slot);
    for (int64_t t = 0; t <= p.t; t++) {
        double d = log1p(exp(support_at(rig->in[2], p.h, t, p.s, 0)));
        out = 0.0;
        for (int64_t k = 0; k < arg->n; k++) {
            double a = at(rig, 3, arg->wide ? k : 0, p.h, 0, 0);
            state[k] = state[k] * exp(d * a) +
                       d * at(rig, 1, row, p.h, t, p.s) * at(rig, 4, k, group, t, p.s);
            out += state[k] * at(rig, 5, k, group, t, p.s);
        }
    }
    return arg->state ? state[i[0]] : out;
}

static void ssm_scan_is_near_the_reference(void **state)
{
    (void)state;
    check("ssm_scan", build_scan, want_scan);
}

/* A slot that is not there: NaN, and nothing is read outside. */
static void a_slot_that_does_not_exist_gives_nan(void **state)
{
    (void)state;
    static const int32_t bad[] = {-1, 7, 1 << 30};
    struct arg arg = {.dim = 2, .heads = 2, .tokens = 1, .seqs = 1, .n = 4, .groups = 1};
    for (int k = 0; k < 3; k++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_rig rig;
        support_rig_init(&rig, support_engines()[1], 3);
        struct engine_tensor *y = build_scan(&rig, &arg);
        engine_output(rig.g, y);
        memcpy(rig.in[6]->data, &bad[k], sizeof bad[k]);
        assert_true(engine_graph_plan(rig.g, true, &err));
        assert_true(engine_graph_run(rig.g, &err));
        for (int64_t i = 0; i < arg.dim; i++) assert_true(isnan(support_at(y, i, 0, 0, 0)));
        support_rig_free(&rig);
    }
}

/* ---- wkv6: state[i][j], i key, j value ---- */

static struct engine_tensor *build_wkv6(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t d = arg->dim, h = arg->heads, t = arg->tokens, s = arg->seqs;
    for (int k = 0; k < 5; k++)
        source(rig, arg, k, QUANT_F32, d, h, k == 3 ? 1 : t, k == 3 ? 1 : s);
    source(rig, arg, 5, QUANT_F32, d, d, h, s);
    struct engine_tensor **in = rig->in;
    return part(engine_wkv6(rig->g, in[0], in[1], in[2], in[3], in[4], in[5]), arg);
}

static double want_wkv6(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    struct place p = place_of(arg, i);
    double state[MAX_STATE], out = 0.0;
    for (int64_t k = 0; k < arg->dim; k++) state[k] = at(rig, 5, i[0], k, p.h, p.s);
    for (int64_t t = 0; t <= p.t; t++) {
        out = 0.0;
        for (int64_t k = 0; k < arg->dim; k++) {
            double kv = at(rig, 0, k, p.h, t, p.s) * at(rig, 1, i[0], p.h, t, p.s);
            out += (kv * at(rig, 3, k, p.h, 0, 0) + state[k]) * at(rig, 2, k, p.h, t, p.s);
            state[k] = state[k] * at(rig, 4, k, p.h, t, p.s) + kv;
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

/* Smaller numbers in place of a and b, so that the state does not explode. */
static struct engine_tensor *build_wkv7(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t d = arg->dim, h = arg->heads, t = arg->tokens, s = arg->seqs;
    for (int k = 0; k < 6; k++) source(rig, arg, k, QUANT_F32, d, h, t, s);
    source(rig, arg, 6, QUANT_F32, d, d, h, s);
    struct engine_tensor **in = rig->in;
    struct engine_tensor *a = engine_scale(rig->g, in[4], 0.125f, 0.0f);
    return part(engine_wkv7(rig->g, in[0], in[1], in[2], in[3], a, in[5], in[6]), arg);
}

static double want_wkv7(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    struct place p = place_of(arg, i);
    int64_t row = arg->state ? i[1] : i[0];
    double state[MAX_STATE], out = 0.0;
    for (int64_t k = 0; k < arg->dim; k++) state[k] = at(rig, 6, k, row, p.h, p.s);
    for (int64_t t = 0; t <= p.t; t++) {
        double sum = 0.0, v = at(rig, 3, row, p.h, t, p.s);
        for (int64_t k = 0; k < arg->dim; k++) sum += 0.125 * at(rig, 4, k, p.h, t, p.s) * state[k];
        out = 0.0;
        for (int64_t k = 0; k < arg->dim; k++) {
            state[k] = state[k] * at(rig, 1, k, p.h, t, p.s) + v * at(rig, 2, k, p.h, t, p.s) +
                       sum * at(rig, 5, k, p.h, t, p.s);
            out += state[k] * at(rig, 0, k, p.h, t, p.s);
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

/* Keys divided by their size, as the rule requires. */
static struct engine_tensor *build_delta(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t d = arg->dim, n = arg->n, h = arg->heads, t = arg->tokens, s = arg->seqs;
    source(rig, arg, 0, QUANT_F32, n, arg->groups, t, s);
    source(rig, arg, 1, QUANT_F32, n, arg->groups, t, s);
    source(rig, arg, 2, QUANT_F32, d, h, t, s);
    source(rig, arg, 3, QUANT_F32, arg->wide ? n : 1, h, t, s);
    source(rig, arg, 4, QUANT_F32, 1, h, t, s);
    source(rig, arg, 5, QUANT_F32, n, d, h, s + 2);
    struct engine_tensor **in = rig->in;
    struct engine_tensor *k = engine_scale(rig->g, in[1], 0.125f, 0.0f);
    return part(
        engine_gated_delta(rig->g, in[0], k, in[2], in[3], in[4], in[5], last_slots(rig, s)), arg);
}

static double want_delta(const struct support_rig *rig, const struct engine_tensor *result,
                         const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    struct place p = place_of(arg, i);
    int64_t row = arg->state ? i[1] : i[0], head_k = p.h % arg->groups;
    double state[MAX_STATE], out = 0.0;
    const int64_t slot = arg->seqs + 1 - p.s;
    for (int64_t k = 0; k < arg->n; k++) state[k] = at(rig, 5, k, row, p.h, slot);
    for (int64_t t = 0; t <= p.t; t++) {
        double sum = 0.0;
        for (int64_t k = 0; k < arg->n; k++) {
            state[k] *= exp(at(rig, 3, arg->wide ? k : 0, p.h, t, p.s));
            sum += state[k] * 0.125 * at(rig, 1, k, head_k, t, p.s);
        }
        double delta = (at(rig, 2, row, p.h, t, p.s) - sum) * at(rig, 4, 0, p.h, t, p.s);
        out = 0.0;
        for (int64_t k = 0; k < arg->n; k++) {
            state[k] += delta * 0.125 * at(rig, 1, k, head_k, t, p.s);
            out += state[k] * at(rig, 0, k, head_k, t, p.s);
        }
    }
    return arg->state ? state[i[0]] : out / sqrt((double)arg->n);
}

static void gated_delta_is_near_the_reference(void **state)
{
    (void)state;
    check("gated_delta", build_delta, want_delta);
}

/* ---- Two halves are the whole ---- */

/* Six tokens at once, and three, then three with the state of the first: the same bits. */
static void a_sequence_split_in_time_gives_the_same_bits(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct support_rig rig;
    support_rig_init(&rig, support_engines()[2], 9);
    enum { D = 8, H = 3, T = 6 };
    struct arg arg = {.form = SUPPORT_PLAIN};
    struct engine_tensor *half[2][5], *in[6];
    for (int k = 0; k < 5; k++) {
        in[k] = source(&rig, &arg, k, QUANT_F32, D, H, k == 3 ? 1 : T, 1);
        for (int part_of = 0; part_of < 2; part_of++) {
            half[part_of][k] = in[k];
            if (k == 3) continue;
            const int64_t ne[] = {D, H, T / 2, 1};
            half[part_of][k] =
                engine_view(rig.g, in[k], 4, ne, in[k]->nb, part_of * (T / 2) * in[k]->nb[2]);
        }
    }
    in[5] = source(&rig, &arg, 5, QUANT_F32, D, D, H, 1);
    struct engine_recurrent r[3];
    r[0] = engine_wkv6(rig.g, in[0], in[1], in[2], in[3], in[4], in[5]);
    struct engine_tensor *const *a = half[0], *const *b = half[1];
    r[1] = engine_wkv6(rig.g, a[0], a[1], a[2], a[3], a[4], in[5]);
    r[2] = engine_wkv6(rig.g, b[0], b[1], b[2], b[3], b[4], r[1].state);
    for (int k = 0; k < 3; k++) {
        engine_output(rig.g, r[k].out);
        engine_output(rig.g, r[k].state);
    }
    if (!engine_graph_plan(rig.g, true, &err) || !engine_graph_run(rig.g, &err))
        fail_msg("%s", err.text);
    const size_t half_bytes = sizeof(float) * D * H * T / 2;
    assert_memory_equal(r[0].out->data, r[1].out->data, half_bytes);
    assert_memory_equal(r[0].out->data + half_bytes, r[2].out->data, half_bytes);
    assert_memory_equal(r[0].state->data, r[2].state->data, sizeof(float) * D * D * H);
    support_rig_free(&rig);
}

/* ---- Refusals ---- */

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct arg arg = {.form = SUPPORT_PLAIN};
    for (int bad = 0; bad < 7; bad++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_rig rig;
        support_rig_init(&rig, support_engines()[0], 1);
        for (int k = 0; k < 7; k++)
            source(&rig, &arg, k, QUANT_F32, bad == k ? 5 : 4, k == 6 ? 4 : 3, k == 6 ? 3 : 2, 2);
        struct engine_tensor **in = rig.in;
        struct engine_recurrent r =
            engine_wkv7(rig.g, in[0], in[1], in[2], in[3], in[4], in[5], in[6]);
        assert_null(r.out);
        assert_null(r.state);
        assert_false(engine_graph_plan(rig.g, true, &err));
        assert_int_equal(err.code, BASE_MODEL);
        support_rig_free(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ssm_conv_equals_the_reference),
        cmocka_unit_test(ssm_scan_is_near_the_reference),
        cmocka_unit_test(a_slot_that_does_not_exist_gives_nan),
        cmocka_unit_test(wkv6_is_near_the_reference),
        cmocka_unit_test(wkv7_is_near_the_reference),
        cmocka_unit_test(gated_delta_is_near_the_reference),
        cmocka_unit_test(a_sequence_split_in_time_gives_the_same_bits),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}
