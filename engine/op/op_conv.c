/* engine/op/op_conv.c: convolutions, as products of the kernel with patches, and the outer product.
 *
 * Arithmetic: im2col only copies. A convolution is im2col, then mul_mat of the kernel (seen as
 * [OC][IC * K]) with the patches, so its sums are those of quant/quant.h for the kernel's type.
 *     out_prod   from +0, acc = fmaf(a[k][i], b[k][j], acc), ascending k */
#include "base/size.h"
#include "engine/graph_internal.h"
#include "engine/op/op_rows.h"
#include "engine/ops.h"
#include <string.h>

/* ---- im2col ---- */

/* The dimensions of one node; a 1-D convolution has height 1. Index 0 of the pairs is width. */
struct patches {
    int64_t n, channels, in[2], kernel[2], out[2], stride[2], pad[2], dilation[2];
    bool is_2d;
};

/* Where a kernel of `k` taps can stand over `in` elements; at most 0 when it does not fit. */
static int64_t out_size(int64_t in, int64_t k, int64_t stride, int64_t pad, int64_t dilation)
{
    int64_t span = dilation * (k - 1) + 1, room = in + 2 * pad;
    return room < span ? 0 : (room - span) / stride + 1;
}

static struct patches patches_of(const struct engine_tensor *dst)
{
    const struct engine_tensor *kernel = dst->src[0], *x = dst->src[1];
    struct patches p = {.is_2d = dst->param[6].i != 0};
    p.n = p.is_2d ? x->ne[3] : x->ne[2];
    p.channels = p.is_2d ? x->ne[2] : x->ne[1];
    for (int d = 0; d < 2; d++) {
        bool real = d == 0 || p.is_2d;
        p.in[d] = real ? x->ne[d] : 1;
        p.kernel[d] = real ? kernel->ne[d] : 1;
        p.stride[d] = real ? dst->param[d].i : 1;
        p.pad[d] = real ? dst->param[2 + d].i : 0;
        p.dilation[d] = real ? dst->param[4 + d].i : 1;
        p.out[d] = out_size(p.in[d], p.kernel[d], p.stride[d], p.pad[d], p.dilation[d]);
    }
    return p;
}

static bool im2col_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *kernel = dst->src[0], *x = dst->src[1];
    if (!engine_type_computes(x) || x->type->block_len != 1)
        return engine_shape_fail(dst, err, "the input must be of a float type");
    for (int d = 0; d < 2; d++) {
        if (dst->param[d].i < 1 || dst->param[2 + d].i < 0 || dst->param[4 + d].i < 1)
            return engine_shape_fail(dst, err, "impossible stride, padding or dilation");
    }
    bool is_2d = dst->param[6].i != 0;
    if (kernel->ne[is_2d ? 2 : 1] != x->ne[is_2d ? 2 : 1] || (!is_2d && x->ne[3] != 1))
        return engine_shape_fail(dst, err, "kernel and input have different channels");
    /* So that no product below can wrap: each factor is less than 2^31. */
    for (int d = 0; d < ENGINE_DIMS; d++) {
        if (kernel->ne[d] > INT32_MAX || x->ne[d] > INT32_MAX)
            return engine_shape_fail(dst, err, "dimension too large");
    }
    struct patches p = patches_of(dst);
    if (p.out[0] < 1 || p.out[1] < 1)
        return engine_shape_fail(dst, err, "the kernel is larger than the padded input");
    uint64_t size;
    if (!base_mul((uint64_t)p.channels, (uint64_t)(p.kernel[0] * p.kernel[1]), &size) ||
        size > INT64_MAX)
        return engine_shape_fail(dst, err, "patches too large");
    if (is_2d) {
        engine_dst_shape(dst, QUANT_F32, (int64_t)size, p.out[0], p.out[1], p.n);
    } else {
        engine_dst_shape(dst, QUANT_F32, (int64_t)size, p.out[0], p.n, 1);
    }
    return true;
}

static int64_t im2col_scratch(const struct engine_tensor *dst, int n_threads)
{
    return engine_rooms_bytes(n_threads, 1, dst->src[1]->ne[0]);
}

/* One kernel row: out[ow][kw] = x[ow * stride + kw * dilation - pad], or 0 outside (x NULL: all
 * outside); the patches are out_step floats apart. */
static void patch_row(const struct patches *p, const float *x, float *out, int64_t out_step)
{
    for (int64_t ow = 0; ow < p->out[0]; ow++) {
        int64_t first = ow * p->stride[0] - p->pad[0];
        for (int64_t kw = 0; kw < p->kernel[0]; kw++) {
            int64_t i = first + kw * p->dilation[0];
            out[ow * out_step + kw] = x && i >= 0 && i < p->in[0] ? x[i] : 0.0f;
        }
    }
}

/* A unit of work is one channel of one line of patches: so that 1-D inputs are shared out, too. */
static void im2col_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct patches p = patches_of(dst);
    float *room = engine_room(task, p.in[0], 0);
    int64_t taps = p.kernel[0] * p.kernel[1], first, last;
    engine_task_rows(task, p.n * p.out[1] * p.channels, &first, &last);
    for (int64_t unit = first; unit < last; unit++) {
        int64_t c = unit % p.channels, line = unit / p.channels;
        int64_t oh = line % p.out[1], n = line / p.out[1];
        float *out = (float *)(void *)dst->data + line * p.out[0] * dst->ne[0] + c * taps;
        for (int64_t kh = 0; kh < p.kernel[1]; kh++) {
            int64_t ih = oh * p.stride[1] + kh * p.dilation[1] - p.pad[1];
            struct engine_piece at = {.i1 = ih, .i2 = c, .i3 = n, .n = p.in[0]};
            if (!p.is_2d) at = (struct engine_piece){.i1 = c, .i2 = n, .n = p.in[0]};
            const float *x = NULL;
            if (ih >= 0 && ih < p.in[1])
                x = engine_piece_load(task->engine, dst->src[1], &at, room);
            patch_row(&p, x, out + kh * p.kernel[0], dst->ne[0]);
        }
    }
}

static const struct engine_op op_im2col = {.name = "im2col",
                                           .split = ENGINE_SPLIT_ROWS,
                                           .n_src = 2,
                                           .shape = im2col_shape,
                                           .scratch = im2col_scratch,
                                           .run = im2col_run};

/* param: stride[2], pad[2], dilation[2], is_2d */
struct engine_tensor *engine_im2col(struct engine_graph *g, struct engine_tensor *kernel,
                                    struct engine_tensor *x, const int stride[2], const int pad[2],
                                    const int dilation[2], bool is_2d)
{
    struct engine_tensor *src[] = {kernel, x};
    union engine_param param[] = {{.i = stride[0]},     {.i = stride[1]},   {.i = pad[0]},
                                  {.i = pad[1]},        {.i = dilation[0]}, {.i = dilation[1]},
                                  {.i = (int32_t)is_2d}};
    return engine_graph_node(g, &op_im2col, src, 2, param, 7);
}

/* ---- Convolutions ---- */

/* cols[N][places][taps] and a kernel of oc filters give [N][OC][places]. */
static struct engine_tensor *convolve(struct engine_graph *g, struct engine_tensor *kernel,
                                      struct engine_tensor *cols, int64_t n, int64_t places,
                                      int64_t oc)
{
    if (!cols) return NULL;
    int64_t taps = cols->ne[0];
    if (!engine_tensor_contiguous(kernel)) kernel = engine_cont(g, kernel);
    kernel = engine_reshape(g, kernel, 2, (int64_t[]){taps, oc});
    cols = engine_reshape(g, cols, 2, (int64_t[]){taps, places * n});
    struct engine_tensor *y = engine_mul_mat(g, kernel, cols);
    y = engine_reshape(g, y, 3, (int64_t[]){oc, places, n});
    return engine_cont(g, engine_permute(g, y, 1, 0, 2, 3));
}

struct engine_tensor *engine_conv_1d(struct engine_graph *g, struct engine_tensor *kernel,
                                     struct engine_tensor *x, int stride, int pad, int dilation)
{
    struct engine_tensor *cols = engine_im2col(g, kernel, x, (int[]){stride, 1}, (int[]){pad, 0},
                                               (int[]){dilation, 1}, false);
    return cols ? convolve(g, kernel, cols, cols->ne[2], cols->ne[1], kernel->ne[2]) : NULL;
}

struct engine_tensor *engine_conv_2d(struct engine_graph *g, struct engine_tensor *kernel,
                                     struct engine_tensor *x, const int stride[2], const int pad[2],
                                     const int dilation[2])
{
    struct engine_tensor *cols = engine_im2col(g, kernel, x, stride, pad, dilation, true);
    if (!cols) return NULL;
    int64_t width = cols->ne[1], height = cols->ne[2], n = cols->ne[3], oc = kernel->ne[3];
    struct engine_tensor *y = convolve(g, kernel, cols, n, width * height, oc);
    return engine_reshape(g, y, 4, (int64_t[]){width, height, oc, n});
}

/* ---- out_prod ---- */

static bool out_prod_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    if (!engine_type_computes(a) || b->type->id != QUANT_F32)
        return engine_shape_fail(dst, err, "no arithmetic for these types");
    if (a->ne[1] != b->ne[1] || b->ne[2] % a->ne[2] || b->ne[3] % a->ne[3])
        return engine_shape_fail(dst, err, "shapes do not fit");
    engine_dst_shape(dst, QUANT_F32, a->ne[0], b->ne[0], b->ne[2], b->ne[3]);
    return true;
}

/* dst[i3][i2][j][i] = sum over k of a[i3][i2][k][i] b[i3][i2][k][j]; a begins again beyond its
 * outer dimensions as matrices are repeated in mul_mat: each for several of b. */
static void out_prod_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    float *room = engine_room(task, dst->ne[0], 0);
    int64_t group2 = b->ne[2] / a->ne[2], group3 = b->ne[3] / a->ne[3], first, last;
    engine_task_rows(task, engine_tensor_rows(dst), &first, &last);
    for (int64_t r = first; r < last; r++) {
        struct engine_piece at = engine_row_at(dst, r);
        float *out = engine_piece_out(dst, &at);
        memset(out, 0, (size_t)at.n * sizeof *out);
        const char *weight = b->data + at.i1 * b->nb[0] + at.i2 * b->nb[2] + at.i3 * b->nb[3];
        at.i2 /= group2;
        at.i3 /= group3;
        for (int64_t k = 0; k < a->ne[1]; k++) {
            float w;
            memcpy(&w, weight + k * b->nb[1], sizeof w);
            at.i1 = k;
            task->engine->vec.mad(at.n, engine_piece_load(task->engine, a, &at, room), w, out);
        }
    }
}

static const struct engine_op op_out_prod = {.name = "out_prod",
                                             .split = ENGINE_SPLIT_ROWS,
                                             .n_src = 2,
                                             .shape = out_prod_shape,
                                             .scratch = engine_scratch_rows,
                                             .run = out_prod_run};

struct engine_tensor *engine_out_prod(struct engine_graph *g, struct engine_tensor *a,
                                      struct engine_tensor *b)
{
    struct engine_tensor *src[] = {a, b};
    return engine_graph_node(g, &op_out_prod, src, 2, NULL, 0);
}
