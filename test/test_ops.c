/* test/test_ops.c: elementwise ops, norms and softmax against a naive reference in double, for
 * sources in every memory layout and type, with equal bits on several threads and levels. */
#include "test/support.h"
#include "test/support_graph.h"
#include "test/support_unary.h"
#include <math.h>
#include <stdio.h>

/* Small and odd sizes, one element, a row longer than a piece, and enough elements for all
 * workers. */
static const int64_t shapes[][ENGINE_DIMS] = {
    {1, 1, 1, 1},  {1, 7, 3, 1},    {37, 1, 1, 1},   {6, 5, 4, 3},
    {33, 2, 1, 4}, {64, 131, 2, 1}, {9001, 1, 1, 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

struct arg {
    const int64_t *ne; /* of the first source */
    int64_t ne_b[ENGINE_DIMS];
    enum quant_id type_a, type_b;
    enum support_form form_a, form_b;
    int what; /* the op, the function or the variant */
};

static double in_at(const struct support_rig *rig, int k, const int64_t *i)
{
    return support_at(rig->in[k], i[0], i[1], i[2], i[3]);
}

/* ---- Two operands ---- */

static struct engine_tensor *build_binary(struct support_rig *rig, const void *user)
{
    static struct engine_tensor *(*const op[])(struct engine_graph *, struct engine_tensor *,
                                               struct engine_tensor *) = {engine_add, engine_sub,
                                                                          engine_mul, engine_div};
    const struct arg *arg = user;
    rig->in[0] = support_source(rig, arg->type_a, arg->ne, arg->form_a);
    rig->in[1] = support_source(rig, arg->type_b, arg->ne_b, arg->form_b);
    return op[arg->what](rig->g, rig->in[0], rig->in[1]);
}

static double want_binary(const struct support_rig *rig, const struct engine_tensor *result,
                          const void *user, const int64_t *i)
{
    (void)result;
    double a = in_at(rig, 0, i), b = in_at(rig, 1, i);
    switch (((const struct arg *)user)->what) {
    case 0:
        return a + b;
    case 1:
        return a - b;
    case 2:
        return a * b;
    default:
        return a / b;
    }
}

/* The shape of the second source: the same, one row, one element, one element per row, a divisor of
 * ne0. */
static void shape_b(const int64_t *ne, int variant, int64_t *out)
{
    for (int d = 0; d < ENGINE_DIMS; d++) out[d] = ne[d];
    if (variant == 1) out[1] = out[2] = out[3] = 1;
    if (variant == 2) out[0] = out[1] = out[2] = out[3] = 1;
    if (variant == 3) out[0] = out[2] = 1;
    if (variant == 4) out[0] = ne[0] % 3 == 0 ? ne[0] / 3 : ne[0], out[3] = 1;
}

static void sums_products_and_quotients_are_near_the_reference(void **state)
{
    (void)state;
    static const enum quant_id types[] = {QUANT_F32, QUANT_F32, QUANT_F16, QUANT_BF16};
    int n = 0;
    for (int s = 0; s < SHAPES; s++)
        for (int variant = 0; variant < 5; variant++)
            for (int what = 0; what < 4; what++, n++) {
                struct arg arg = {.ne = shapes[s], .what = what, .type_b = types[n % 4]};
                shape_b(shapes[s], variant, arg.ne_b);
                arg.type_a = types[n / 5 % 3];
                arg.form_a = n % SUPPORT_FORM_COUNT;
                arg.form_b = n / 3 % SUPPORT_FORM_COUNT;
                char label[64];
                snprintf(label, sizeof label, "binary %d, shape %d, variant %d", what, s, variant);
                support_check_op(label, build_binary, want_binary, &arg, 1e-13);
            }
}

/* ---- One operand ---- */

enum { MAP_SCALE = ENGINE_UNARY_COUNT, MAP_CLAMP, MAP_SOFTCAP, MAP_COUNT };

/* The root uses 3 + x, to be defined. */
static struct engine_tensor *build_map(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    struct engine_tensor *a = support_source(rig, arg->type_a, arg->ne, arg->form_a);
    rig->in[0] = a;
    switch (arg->what) {
    case MAP_SCALE:
        return engine_scale(rig->g, a, 1.75f, -0.5f);
    case MAP_CLAMP:
        return engine_clamp(rig->g, a, -1.0f, 0.5f);
    case MAP_SOFTCAP:
        return engine_softcap(rig->g, a, 0.75f);
    case ENGINE_SQRT:
        a = engine_scale(rig->g, a, 1.0f, 3.0f);
    }
    return engine_unary(rig->g, a, (enum engine_unary)arg->what);
}

static double want_map(const struct support_rig *rig, const struct engine_tensor *result,
                       const void *user, const int64_t *i)
{
    (void)result;
    int what = ((const struct arg *)user)->what;
    double x = in_at(rig, 0, i);
    switch (what) {
    case MAP_SCALE:
        return 1.75 * x - 0.5;
    case MAP_CLAMP:
        return fmin(0.5, fmax(-1.0, x));
    case MAP_SOFTCAP:
        return 0.75 * tanh(x / 0.75);
    case ENGINE_SQRT:
        x += 3.0;
    }
    return support_unary((enum engine_unary)what, x);
}

static void functions_of_one_value_are_near_the_reference(void **state)
{
    (void)state;
    static const enum quant_id types[] = {QUANT_F32, QUANT_F16, QUANT_F32, QUANT_BF16};
    for (int s = 0; s < SHAPES; s++)
        for (int what = 0; what < MAP_COUNT; what++) {
            struct arg arg = {.ne = shapes[s], .what = what, .type_a = types[(s + what) % 4]};
            arg.form_a = (s + what) % SUPPORT_FORM_COUNT;
            char label[64];
            snprintf(label, sizeof label, "map %d, shape %d", what, s);
            support_check_op(label, build_map, want_map, &arg, 1e-12);
        }
}

/* ---- Gated units ---- */

static struct engine_tensor *build_glu(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    rig->in[0] = support_source(rig, QUANT_F32, arg->ne, arg->form_a);
    rig->in[1] = support_source(rig, QUANT_F32, arg->ne, arg->form_b);
    return engine_glu(rig->g, rig->in[0], rig->in[1], (enum engine_unary)arg->what);
}

static double want_glu(const struct support_rig *rig, const struct engine_tensor *result,
                       const void *user, const int64_t *i)
{
    (void)result;
    return support_unary((enum engine_unary)((const struct arg *)user)->what, in_at(rig, 0, i)) *
           in_at(rig, 1, i);
}

static void gated_units_are_near_the_reference(void **state)
{
    (void)state;
    static const enum engine_unary gates[] = {ENGINE_SILU,       ENGINE_GELU, ENGINE_GELU_ERF,
                                              ENGINE_GELU_QUICK, ENGINE_RELU, ENGINE_SIGMOID};
    for (int s = 0; s < SHAPES; s++)
        for (int f = 0; f < 6; f++) {
            struct arg arg = {.ne = shapes[s],
                              .what = (int)gates[f],
                              .form_a = (s + f) % SUPPORT_FORM_COUNT,
                              .form_b = f % SUPPORT_FORM_COUNT};
            char label[64];
            snprintf(label, sizeof label, "glu %d, shape %d", (int)gates[f], s);
            support_check_op(label, build_glu, want_glu, &arg, 1e-12);
        }
}

/* ---- Norms ---- */

enum { NORM, RMS_NORM, L2_NORM, SUM_ROWS, RMS_WEIGHT, NORM_WEIGHT_BIAS, NORM_COUNT };
static const double norm_eps = 1e-3;

static struct engine_tensor *build_norm(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    struct engine_tensor *a = support_source(rig, arg->type_a, arg->ne, arg->form_a);
    int64_t row[] = {arg->ne[0], 1, 1, 1};
    rig->in[0] = a;
    rig->in[1] = support_source(rig, QUANT_F32, row, SUPPORT_PLAIN);
    rig->in[2] = support_source(rig, QUANT_F32, row, SUPPORT_PLAIN);
    switch (arg->what) {
    case NORM:
        return engine_norm(rig->g, a, (float)norm_eps);
    case RMS_NORM:
        return engine_rms_norm(rig->g, a, (float)norm_eps);
    case L2_NORM:
        return engine_l2_norm(rig->g, a, (float)norm_eps);
    case SUM_ROWS:
        return engine_sum_rows(rig->g, a);
    case RMS_WEIGHT:
        return engine_mul(rig->g, engine_rms_norm(rig->g, a, (float)norm_eps), rig->in[1]);
    default:
        a = engine_mul(rig->g, engine_norm(rig->g, a, (float)norm_eps), rig->in[1]);
        return engine_add(rig->g, a, rig->in[2]);
    }
}

/* The sum of (x - mean)^power over a row. */
static double row_sum(const struct support_rig *rig, const int64_t *i, double mean, int power)
{
    double sum = 0.0;
    for (int64_t k = 0; k < rig->in[0]->ne[0]; k++) {
        double x = support_at(rig->in[0], k, i[1], i[2], i[3]) - mean;
        sum += power == 2 ? x * x : x;
    }
    return sum;
}

static double want_norm(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    double n = (double)rig->in[0]->ne[0], x = in_at(rig, 0, i), mean;
    switch (((const struct arg *)user)->what) {
    case RMS_NORM:
        return x / sqrt(row_sum(rig, i, 0, 2) / n + norm_eps);
    case L2_NORM:
        return x / fmax(sqrt(row_sum(rig, i, 0, 2)), norm_eps);
    case SUM_ROWS:
        return row_sum(rig, i, 0, 1);
    case RMS_WEIGHT:
        return x / sqrt(row_sum(rig, i, 0, 2) / n + norm_eps) * in_at(rig, 1, i);
    }
    mean = row_sum(rig, i, 0, 1) / n;
    x = (x - mean) / sqrt(row_sum(rig, i, mean, 2) / n + norm_eps);
    if (((const struct arg *)user)->what == NORM) return x;
    return x * in_at(rig, 1, i) + in_at(rig, 2, i);
}

static void norms_are_near_the_reference(void **state)
{
    (void)state;
    static const int64_t ne[][ENGINE_DIMS] = {{1, 1, 1, 1}, {1, 7, 3, 1},    {37, 1, 1, 1},
                                              {6, 5, 4, 3}, {64, 131, 2, 1}, {300, 3, 1, 2}};
    for (int s = 0; s < 6; s++)
        for (int what = 0; what < NORM_COUNT; what++) {
            struct arg arg = {.ne = ne[s], .what = what, .form_a = (s + what) % SUPPORT_FORM_COUNT};
            char label[64];
            snprintf(label, sizeof label, "norm %d, shape %d", what, s);
            /* Rows of one element: the mean cancels the value, so only rounding errors remain. */
            support_check_op(label, build_norm, want_norm, &arg, 1e-11);
        }
}

/* ---- soft_max ---- */

enum { SM_MASK = 1, SM_F16 = 2, SM_ALIBI = 4, SM_SINKS = 8, SM_VARIANTS = 16 };

static struct engine_tensor *build_soft_max(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t mask[] = {arg->ne[0], arg->ne[1], 1, 1}, heads[] = {arg->ne[2], 1, 1, 1};
    rig->in[0] = support_source(rig, QUANT_F32, arg->ne, arg->form_a);
    if (arg->what & SM_MASK)
        rig->in[1] =
            support_source(rig, arg->what & SM_F16 ? QUANT_F16 : QUANT_F32, mask, SUPPORT_PLAIN);
    if (arg->what & SM_SINKS) rig->in[2] = support_source(rig, QUANT_F32, heads, SUPPORT_PLAIN);
    /* One masked element per row, and one row without any. */
    if (arg->what & SM_MASK && rig->in[1]->type->id == QUANT_F32 && arg->ne[0] > 1) {
        float *m = (float *)(void *)rig->in[1]->data;
        for (int64_t r = 0; r < arg->ne[1]; r++) m[r * arg->ne[0] + r % arg->ne[0]] = -INFINITY;
        if (arg->ne[1] > 2)
            for (int64_t k = 0; k < arg->ne[0]; k++) m[k] = -INFINITY;
    }
    return engine_soft_max(rig->g, rig->in[0], rig->in[1], rig->in[2], 0.7f,
                           arg->what & SM_ALIBI ? 8.0f : 0.0f);
}

static double logit(const struct support_rig *rig, const struct arg *arg, const int64_t *i)
{
    double slope = 1.0, h = (double)i[2], n = 1.0, heads = (double)arg->ne[2];
    while (2 * n <= heads) n *= 2;
    if (arg->what & SM_ALIBI)
        slope = h < n ? pow(pow(2.0, -8.0 / n), h + 1) : pow(pow(2.0, -4.0 / n), 2 * (h - n) + 1);
    double x = in_at(rig, 0, i) * (double)0.7f;
    return rig->in[1] ? x + slope * in_at(rig, 1, i) : x;
}

static double want_soft_max(const struct support_rig *rig, const struct engine_tensor *result,
                            const void *user, const int64_t *i)
{
    double sum = 0.0;
    for (int64_t k = 0; k < result->ne[0]; k++)
        sum += exp(logit(rig, user, (int64_t[]){k, i[1], i[2], i[3]}));
    if (rig->in[2]) sum += exp(support_at(rig->in[2], i[2], 0, 0, 0));
    return sum == 0.0 ? 0.0 : exp(logit(rig, user, i)) / sum;
}

static void softmax_is_near_the_reference(void **state)
{
    (void)state;
    static const int64_t ne[][ENGINE_DIMS] = {
        {1, 1, 1, 1}, {37, 3, 1, 1}, {6, 5, 4, 3}, {65, 21, 6, 2}};
    for (int s = 0; s < 4; s++)
        for (int what = 0; what < SM_VARIANTS; what++) {
            struct arg arg = {.ne = ne[s], .what = what, .form_a = (s + what) % SUPPORT_FORM_COUNT};
            char label[64];
            snprintf(label, sizeof label, "soft_max %d, shape %d", what, s);
            support_check_op(label, build_soft_max, want_soft_max, &arg, 1e-11);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_products_and_quotients_are_near_the_reference),
        cmocka_unit_test(functions_of_one_value_are_near_the_reference),
        cmocka_unit_test(gated_units_are_near_the_reference),
        cmocka_unit_test(norms_are_near_the_reference),
        cmocka_unit_test(softmax_is_near_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}
