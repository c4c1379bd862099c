/* engine/op_conv.c: outer products and convolutions. A convolution is a product: im2col lays the
 * patch under each output position out as a row, and mul_mat takes it with the kernels.
 *
 * Arithmetic: out_prod: out[m][n] = fmaf(a[k][n], b[k][m], out[m][n]) over k ascending from +0.
 * im2col moves values. A convolution's sums are those of quant/quant.h for the kernel's type, over
 * (channel, y, x), x fastest; positions in the padding are zeros that take part. */
#include "engine/graph_internal.h"
#include "engine/op_rows.h"
#include "engine/ops.h"
#include <string.h>

/* ---- out_prod ---- */

static bool out_prod_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    if (!engine_type_computes(a) || !engine_type_computes(b))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (a->ne[1] != b->ne[1] || b->ne[2] % a->ne[2] != 0 || b->ne[3] % a->ne[3] != 0)
        return engine_shape_fail(dst, err, "the two do not fit");
    engine_dst_shape(dst, QUANT_F32, a->ne[0], b->ne[0], b->ne[2], b->ne[3]);
    return true;
}

/* Rooms for a row of a and a row of b. */
static int64_t out_prod_scratch(const struct engine_tensor *dst, int n_threads)
{
    int64_t longer = dst->ne[0] > dst->ne[1] ? dst->ne[0] : dst->ne[1];
    return engine_rooms_bytes(n_threads, 2, longer);
}

static void out_prod_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    int64_t longer = dst->ne[0] > dst->ne[1] ? dst->ne[0] : dst->ne[1], first, last;
    float *room_a = engine_room(task, longer, 0), *room_b = engine_room(task, longer, 1);
    engine_task_rows(task, engine_tensor_rows(dst), &first, &last);
    for (int64_t r = first; r < last; r++) {
        struct engine_piece at = engine_row_at(dst, r);
        float *out = engine_piece_out(dst, &at);
        memset(out, 0, (size_t)at.n * sizeof *out);
        for (int64_t k = 0; k < a->ne[1]; k++) {
            struct engine_piece from_a = {.i1 = k, .i2 = at.i2, .i3 = at.i3, .n = a->ne[0]};
            struct engine_piece from_b = from_a;
            from_b.n = b->ne[0];
            const float *row = engine_piece_load(task->engine, a, &from_a, room_a);
            float factor = engine_piece_load(task->engine, b, &from_b, room_b)[at.i1];
            task->engine->vec.mad(at.n, row, factor, out);
        }
    }
}

const struct engine_op engine_op_out_prod = {.name = "out_prod",
                                             .split = ENGINE_SPLIT_ROWS,
                                             .n_src = 2,
                                             .shape = out_prod_shape,
                                             .scratch = out_prod_scratch,
                                             .run = out_prod_run};

struct engine_tensor *engine_out_prod(struct engine_graph *g, struct engine_tensor *a,
                                      struct engine_tensor *b)
{
    struct engine_tensor *src[] = {a, b};
    return engine_graph_node(g, &engine_op_out_prod, src, 2, NULL, 0);
}

/* ---- im2col ---- */

/* The parameters; of each pair the first is along x. */
enum { CONV_STRIDE, CONV_PAD = 2, CONV_DILATION = 4, CONV_2D = 6, CONV_PARAMS };

/* Where step k of the patch under output position `out` lies along an axis of x. */
static int64_t patch_at(const struct engine_tensor *dst, int axis, int64_t out, int64_t k)
{
    return out * dst->param[CONV_STRIDE + axis].i + k * dst->param[CONV_DILATION + axis].i -
           dst->param[CONV_PAD + axis].i;
}

/* Output positions along an axis of `size` values under a kernel of `kernel`; 0: none. */
static int64_t patch_count(const struct engine_tensor *dst, int axis, int64_t size, int64_t kernel)
{
    int64_t stride = dst->param[CONV_STRIDE + axis].i, pad = dst->param[CONV_PAD + axis].i;
    int64_t dilation = dst->param[CONV_DILATION + axis].i, limit = INT32_MAX;
    if (stride < 1 || pad < 0 || dilation < 1 || size > limit || kernel > limit) return 0;
    int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

/* kernel [OC][IC][KH][KW], x [N][IC][H][W] give [N][OH][OW][IC * KH * KW]; without the second axis
 * kernel [OC][IC][K], x [N][IC][L] give [N][OL][IC * K]. */
static bool im2col_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *kernel = dst->src[0], *x = dst->src[1];
    bool is_2d = dst->param[CONV_2D].i;
    int channel = is_2d ? 2 : 1;
    if (!engine_tensor_is(x, QUANT_F32)) return engine_shape_fail(dst, err, "x must be F32");
    if (kernel->ne[channel] != x->ne[channel] || (!is_2d && (kernel->ne[3] != 1 || x->ne[3] != 1)))
        return engine_shape_fail(dst, err, "kernel and x do not fit");
    int64_t ow = patch_count(dst, 0, x->ne[0], kernel->ne[0]);
    int64_t oh = is_2d ? patch_count(dst, 1, x->ne[1], kernel->ne[1]) : 1;
    if (ow < 1 || oh < 1) return engine_shape_fail(dst, err, "no output position");
    int64_t patch = kernel->ne[0] * kernel->ne[1] * (is_2d ? kernel->ne[2] : 1);
    if (is_2d)
        engine_dst_shape(dst, QUANT_F32, patch, ow, oh, x->ne[3]);
    else
        engine_dst_shape(dst, QUANT_F32, patch, ow, x->ne[2], 1);
    return true;
}

/* The values of one channel's row y under the patch, or zeros outside. */
static void patch_row(const struct engine_tensor *dst, const char *row, int64_t ox, float *out)
{
    const struct engine_tensor *x = dst->src[1];
    for (int64_t k = 0; k < dst->src[0]->ne[0]; k++) {
        int64_t at = patch_at(dst, 0, ox, k);
        out[k] = 0.0f;
        if (row && at >= 0 && at < x->ne[0]) memcpy(&out[k], row + at * x->nb[0], sizeof *out);
    }
}

static void im2col_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *kernel = dst->src[0], *x = dst->src[1];
    bool is_2d = dst->param[CONV_2D].i;
    int64_t kw = kernel->ne[0], kh = is_2d ? kernel->ne[1] : 1, first, last;
    int64_t channels = x->ne[is_2d ? 2 : 1];
    engine_task_rows(task, engine_tensor_rows(dst), &first, &last);
    for (int64_t r = first; r < last; r++) {
        struct engine_piece at = engine_row_at(dst, r);
        float *out = engine_piece_out(dst, &at);
        for (int64_t c = 0; c < channels; c++)
            for (int64_t k = 0; k < kh; k++, out += kw) {
                const char *row = NULL;
                int64_t y = is_2d ? patch_at(dst, 1, at.i2, k) : 0;
                if (!is_2d)
                    row = engine_row_data(x, c, at.i2, 0);
                else if (y >= 0 && y < x->ne[1])
                    row = engine_row_data(x, y, c, at.i3);
                patch_row(dst, row, at.i1, out);
            }
    }
}

const struct engine_op engine_op_im2col = {.name = "im2col",
                                           .split = ENGINE_SPLIT_ROWS,
                                           .n_src = 2,
                                           .shape = im2col_shape,
                                           .run = im2col_run};

/* param: strides, paddings, dilations, whether there is a second axis */
struct engine_tensor *engine_im2col(struct engine_graph *g, struct engine_tensor *kernel,
                                    struct engine_tensor *x, const int stride[2], const int pad[2],
                                    const int dilation[2], bool is_2d)
{
    struct engine_tensor *src[] = {kernel, x};
    union engine_param param[CONV_PARAMS] = {
        [CONV_STRIDE].i = stride[0],
        [CONV_STRIDE + 1].i = stride[1],
        [CONV_PAD].i = pad[0],
        [CONV_PAD + 1].i = pad[1],
        [CONV_DILATION].i = dilation[0],
        [CONV_DILATION + 1].i = dilation[1],
        [CONV_2D].i = is_2d,
    };
    return engine_graph_node(g, &engine_op_im2col, src, 2, param, CONV_PARAMS);
}

/* ---- Convolutions ---- */

/* patches [N][P][K] times kernels [OC][K], as [N][OC][P]. */
static struct engine_tensor *convolve(struct engine_graph *g, struct engine_tensor *kernel,
                                      struct engine_tensor *patches, int64_t n_out, int64_t n,
                                      int64_t positions)
{
    int64_t k = patches->ne[0];
    struct engine_tensor *w = engine_reshape(g, kernel, 2, (int64_t[]){k, n_out});
    struct engine_tensor *rows = engine_reshape(g, patches, 2, (int64_t[]){k, positions * n});
    struct engine_tensor *y = engine_mul_mat(g, w, rows);
    y = engine_reshape(g, y, 3, (int64_t[]){n_out, positions, n});
    return engine_cont(g, engine_transpose(g, y));
}

struct engine_tensor *engine_conv_1d(struct engine_graph *g, struct engine_tensor *kernel,
                                     struct engine_tensor *x, int stride, int pad, int dilation)
{
    const int strides[] = {stride, 1}, pads[] = {pad, 0}, dilations[] = {dilation, 1};
    struct engine_tensor *patches = engine_im2col(g, kernel, x, strides, pads, dilations, false);
    if (!patches) return NULL;
    return convolve(g, kernel, patches, kernel->ne[2], patches->ne[2], patches->ne[1]);
}

struct engine_tensor *engine_conv_2d(struct engine_graph *g, struct engine_tensor *kernel,
                                     struct engine_tensor *x, const int stride[2], const int pad[2],
                                     const int dilation[2])
{
    struct engine_tensor *patches = engine_im2col(g, kernel, x, stride, pad, dilation, true);
    if (!patches) return NULL;
    int64_t ow = patches->ne[1], oh = patches->ne[2], n = patches->ne[3], n_out = kernel->ne[3];
    struct engine_tensor *y = convolve(g, kernel, patches, n_out, n, ow * oh);
    return engine_reshape(g, y, 4, (int64_t[]){ow, oh, n_out, n});
}
