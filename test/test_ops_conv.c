/* test/test_ops_conv.c: im2col, convolutions and the outer product against a naive reference in
 * double, for sources in every memory layout, on several threads and levels with equal bits. */
#include "test/support.h"
#include "test/support_graph.h"
#include <math.h>
#include <stdio.h>

struct arg {
    int64_t in[2], kernel[2], channels, filters, n;
    int stride[2], pad[2], dilation[2];
    bool is_2d;
    enum quant_id type;
    enum support_form form_kernel, form_x;
};

static const struct arg cases[] = {
    {{1, 1}, {1, 1}, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}, true, QUANT_F32, 0, 0},
    {{7, 5}, {3, 3}, 2, 3, 1, {1, 1}, {1, 1}, {1, 1}, true, QUANT_F32, 0, 0},
    {{7, 5}, {3, 2}, 3, 4, 2, {2, 1}, {0, 2}, {1, 2}, true, QUANT_F16, SUPPORT_SWAPPED, 0},
    {{9, 8}, {2, 4}, 1, 1, 3, {3, 2}, {4, 3}, {2, 1}, true, QUANT_F32, 0, SUPPORT_COLS},
    {{16, 16}, {4, 4}, 3, 33, 2, {4, 4}, {0, 0}, {1, 1}, true, QUANT_F16, 0, SUPPORT_SWAPPED},
    {{6, 5},
     {3, 3},
     4,
     2,
     2,
     {1, 2},
     {1, 1},
     {1, 1},
     true,
     QUANT_F32,
     SUPPORT_TRANSPOSED,
     SUPPORT_TRANSPOSED},
    {{1, 1}, {1, 1}, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}, false, QUANT_F32, 0, 0},
    {{37, 1}, {3, 1}, 5, 7, 1, {1, 1}, {1, 0}, {1, 1}, false, QUANT_F32, 0, SUPPORT_COLS},
    {{37, 1}, {5, 1}, 2, 3, 4, {2, 1}, {2, 0}, {3, 1}, false, QUANT_F16, 0, SUPPORT_SWAPPED},
    {{300, 1}, {3, 1}, 16, 20, 1, {2, 1}, {1, 0}, {1, 1}, false, QUANT_F16, 0, SUPPORT_TRANSPOSED},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void make_sources(struct support_rig *rig, const struct arg *arg)
{
    int64_t kernel_2d[] = {arg->kernel[0], arg->kernel[1], arg->channels, arg->filters};
    int64_t kernel_1d[] = {arg->kernel[0], arg->channels, arg->filters, 1};
    int64_t x_2d[] = {arg->in[0], arg->in[1], arg->channels, arg->n};
    int64_t x_1d[] = {arg->in[0], arg->channels, arg->n, 1};
    rig->in[0] =
        support_source(rig, arg->type, arg->is_2d ? kernel_2d : kernel_1d, arg->form_kernel);
    rig->in[1] = support_source(rig, QUANT_F32, arg->is_2d ? x_2d : x_1d, arg->form_x);
}

static struct engine_tensor *build_conv(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    make_sources(rig, arg);
    if (arg->is_2d)
        return engine_conv_2d(rig->g, rig->in[0], rig->in[1], arg->stride, arg->pad, arg->dilation);
    return engine_conv_1d(rig->g, rig->in[0], rig->in[1], arg->stride[0], arg->pad[0],
                          arg->dilation[0]);
}

/* x at tap (kw, kh) of the kernel that stands at (ow, oh), 0 outside. */
static double tap_at(const struct support_rig *rig, const struct arg *arg, int64_t ow, int64_t oh,
                     int64_t kw, int64_t kh, int64_t c, int64_t n)
{
    int64_t w = ow * arg->stride[0] + kw * arg->dilation[0] - arg->pad[0];
    int64_t h = oh * arg->stride[1] + kh * arg->dilation[1] - arg->pad[1];
    if (w < 0 || w >= arg->in[0] || h < 0 || h >= arg->in[1]) return 0.0;
    return arg->is_2d ? support_at(rig->in[1], w, h, c, n) : support_at(rig->in[1], w, c, n, 0);
}

static double want_conv(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    int64_t oh = arg->is_2d ? i[1] : 0, filter = arg->is_2d ? i[2] : i[1];
    int64_t n = arg->is_2d ? i[3] : i[2];
    double sum = 0.0;
    for (int64_t c = 0; c < arg->channels; c++)
        for (int64_t kh = 0; kh < arg->kernel[1]; kh++)
            for (int64_t kw = 0; kw < arg->kernel[0]; kw++) {
                double k = arg->is_2d ? support_at(rig->in[0], kw, kh, c, filter)
                                      : support_at(rig->in[0], kw, c, filter, 0);
                sum += k * tap_at(rig, arg, i[0], oh, kw, kh, c, n);
            }
    return sum;
}

static void test_convolutions(void **state)
{
    (void)state;
    for (int k = 0; k < CASES; k++) {
        char label[32];
        snprintf(label, sizeof label, "convolution, case %d", k);
        support_check_op(label, build_conv, want_conv, &cases[k], 1e-12);
    }
}

static struct engine_tensor *build_im2col(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    make_sources(rig, arg);
    return engine_im2col(rig->g, rig->in[0], rig->in[1], arg->stride, arg->pad, arg->dilation,
                         arg->is_2d);
}

static double want_im2col(const struct support_rig *rig, const struct engine_tensor *result,
                          const void *user, const int64_t *i)
{
    (void)result;
    const struct arg *arg = user;
    int64_t kw = i[0] % arg->kernel[0], kh = i[0] / arg->kernel[0] % arg->kernel[1];
    int64_t c = i[0] / arg->kernel[0] / arg->kernel[1];
    if (arg->is_2d) return tap_at(rig, arg, i[1], i[2], kw, kh, c, i[3]);
    return tap_at(rig, arg, i[1], 0, kw, 0, c, i[2]);
}

static void test_im2col(void **state)
{
    (void)state;
    for (int k = 0; k < CASES; k++) {
        char label[32];
        snprintf(label, sizeof label, "im2col, case %d", k);
        support_check_op(label, build_im2col, want_im2col, &cases[k], 0.0);
    }
}

/* ---- out_prod ---- */

struct out_prod_arg {
    int64_t n, m, k, a2, a3, b2, b3;
    enum quant_id type_a;
    enum support_form form_a, form_b;
};

static struct engine_tensor *build_out_prod(struct support_rig *rig, const void *user)
{
    const struct out_prod_arg *arg = user;
    int64_t a[] = {arg->n, arg->k, arg->a2, arg->a3}, b[] = {arg->m, arg->k, arg->b2, arg->b3};
    rig->in[0] = support_source(rig, arg->type_a, a, arg->form_a);
    rig->in[1] = support_source(rig, QUANT_F32, b, arg->form_b);
    return engine_out_prod(rig->g, rig->in[0], rig->in[1]);
}

static double want_out_prod(const struct support_rig *rig, const struct engine_tensor *result,
                            const void *user, const int64_t *i)
{
    (void)result;
    const struct out_prod_arg *arg = user;
    int64_t a2 = i[2] / (arg->b2 / arg->a2), a3 = i[3] / (arg->b3 / arg->a3);
    double sum = 0.0;
    for (int64_t k = 0; k < arg->k; k++)
        sum +=
            support_at(rig->in[0], i[0], k, a2, a3) * support_at(rig->in[1], i[1], k, i[2], i[3]);
    return sum;
}

static void test_out_prod(void **state)
{
    (void)state;
    static const struct out_prod_arg list[] = {
        {1, 1, 1, 1, 1, 1, 1, QUANT_F32, 0, 0},
        {37, 5, 9, 1, 1, 1, 1, QUANT_F32, SUPPORT_COLS, 0},
        {6, 4, 3, 2, 3, 2, 3, QUANT_F16, SUPPORT_SWAPPED, SUPPORT_TRANSPOSED},
        {65, 3, 17, 1, 2, 4, 2, QUANT_F32, SUPPORT_TRANSPOSED, SUPPORT_COLS},
        {8, 70, 2, 2, 1, 6, 3, QUANT_BF16, 0, SUPPORT_SWAPPED},
    };
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        char label[32];
        snprintf(label, sizeof label, "out_prod, case %d", (int)k);
        support_check_op(label, build_out_prod, want_out_prod, &list[k], 1e-12);
    }
}

/* ---- Refusals ---- */

static void test_refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const int64_t kernel[] = {3, 3, 2, 4}, x[] = {7, 5, 2, 1}, other[] = {7, 5, 3, 1};
    static const int one[] = {1, 1}, none[] = {0, 0}, far[] = {9, 9}, minus[] = {-1, 0};
    for (int k = 0; k < 6; k++) {
        struct support_rig rig;
        struct base_error err = BASE_ERROR_INIT;
        support_rig_init(&rig, support_engines()[0], 1);
        struct engine_tensor *w = support_source(&rig, QUANT_F32, kernel, SUPPORT_PLAIN);
        struct engine_tensor *in =
            support_source(&rig, QUANT_F32, k == 0 ? other : x, SUPPORT_PLAIN);
        struct engine_tensor *y =
            k == 5 ? engine_out_prod(rig.g, w, in)
                   : engine_conv_2d(rig.g, w, in, k == 1 ? none : one, k == 2 ? minus : none,
                                    k == 3   ? far
                                    : k == 4 ? none
                                             : one);
        assert_null(y);
        assert_false(engine_graph_plan(rig.g, true, &err));
        assert_int_equal(err.code, BASE_MODEL);
        support_rig_free(&rig);
    }
}

static int close_engines(void **state)
{
    (void)state;
    support_engines_free();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_im2col),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_out_prod),
        cmocka_unit_test(test_refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, close_engines);
}
