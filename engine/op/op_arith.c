/* engine/op/op_arith.c: elementwise ops: add, sub, mul, div, scale, clamp, softcap, unary, glu.
 *
 * Arithmetic, per element, every operation rounded once:
 *     add, sub, mul, div   a op b, b repeated over a if its dimensions divide a's
 *     scale                fmaf(a, scale, bias)
 *     clamp                min(max(a, lo), hi); NaN gives NaN
 *     softcap              fmaf(tanh(fmaf(a, 1 / cap, 0)), cap, 0)
 *     unary, glu           the functions of engine/isa/vec.h
 * Sources of other types are decoded to float first, which is exact. */
#include "engine/graph_internal.h"
#include "engine/op/op_rows.h"
#include "engine/ops.h"

/* ---- Two operands ---- */

static bool binary_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    if (!engine_type_computes(a) || !engine_type_computes(b))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (!engine_tensor_can_repeat(b, a))
        return engine_shape_fail(dst, err, "the second does not repeat over the first");
    engine_dst_like(dst, QUANT_F32, a);
    return true;
}

static void binary_run(const struct engine_task *task, struct engine_tensor *dst,
                       void (*f)(int64_t n, const float *x, const float *y, float *out))
{
    float *buffer_a = engine_scratch_buffer(task, ENGINE_PIECE, 0),
          *buffer_b = engine_scratch_buffer(task, ENGINE_PIECE, 1);
    int64_t first, last;
    engine_task_rows(task, engine_pieces(dst), &first, &last);
    for (int64_t p = first; p < last; p++) {
        struct engine_piece at = engine_piece_at(dst, p);
        const float *a = engine_piece_load(task->engine, dst->src[0], &at, buffer_a);
        const float *b = engine_piece_load(task->engine, dst->src[1], &at, buffer_b);
        f(at.n, a, b, engine_piece_out(dst, &at));
    }
}

static void add_run(const struct engine_task *task, struct engine_tensor *dst)
{
    binary_run(task, dst, task->engine->vec.add);
}

static void sub_run(const struct engine_task *task, struct engine_tensor *dst)
{
    binary_run(task, dst, task->engine->vec.sub);
}

static void mul_run(const struct engine_task *task, struct engine_tensor *dst)
{
    binary_run(task, dst, task->engine->vec.mul);
}

static void div_run(const struct engine_task *task, struct engine_tensor *dst)
{
    binary_run(task, dst, task->engine->vec.div);
}

const struct engine_op engine_op_add =
    ENGINE_ROWS_OP("add", 2, binary_shape, engine_scratch_pieces, add_run, .in_place = true);
const struct engine_op engine_op_sub =
    ENGINE_ROWS_OP("sub", 2, binary_shape, engine_scratch_pieces, sub_run, .in_place = true);
const struct engine_op engine_op_mul =
    ENGINE_ROWS_OP("mul", 2, binary_shape, engine_scratch_pieces, mul_run, .in_place = true);
const struct engine_op engine_op_div =
    ENGINE_ROWS_OP("div", 2, binary_shape, engine_scratch_pieces, div_run, .in_place = true);

static struct engine_tensor *binary(struct engine_graph *g, const struct engine_op *op,
                                    struct engine_tensor *a, struct engine_tensor *b)
{
    struct engine_tensor *src[] = {a, b};
    return engine_graph_node(g, op, src, 2, NULL);
}

struct engine_tensor *engine_add(struct engine_graph *g, struct engine_tensor *a,
                                 struct engine_tensor *b)
{
    return binary(g, &engine_op_add, a, b);
}

struct engine_tensor *engine_sub(struct engine_graph *g, struct engine_tensor *a,
                                 struct engine_tensor *b)
{
    return binary(g, &engine_op_sub, a, b);
}

struct engine_tensor *engine_mul(struct engine_graph *g, struct engine_tensor *a,
                                 struct engine_tensor *b)
{
    return binary(g, &engine_op_mul, a, b);
}

struct engine_tensor *engine_div(struct engine_graph *g, struct engine_tensor *a,
                                 struct engine_tensor *b)
{
    return binary(g, &engine_op_div, a, b);
}

struct engine_tensor *engine_add1(struct engine_graph *g, struct engine_tensor *a,
                                  struct engine_tensor *scalar)
{
    if (scalar && engine_tensor_elements(scalar) != 1)
        return engine_graph_fail(g, "add1: %s is not one element", scalar->name);
    return binary(g, &engine_op_add, a, scalar);
}

/* ---- One operand ---- */

static bool map_shape(struct engine_tensor *dst, struct base_error *err)
{
    if (!engine_type_computes(dst->src[0]))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    engine_dst_like(dst, QUANT_F32, dst->src[0]);
    return true;
}

static void scale_piece(const struct engine_vec *vec, const union engine_params *params, int64_t n,
                        const float *x, float *out)
{
    vec->scale(n, x, params->scale.scale, params->scale.bias, out);
}

static void clamp_piece(const struct engine_vec *vec, const union engine_params *params, int64_t n,
                        const float *x, float *out)
{
    vec->clamp(n, x, params->clamp.low, params->clamp.high, out);
}

static void softcap_piece(const struct engine_vec *vec, const union engine_params *params,
                          int64_t n, const float *x, float *out)
{
    vec->scale(n, x, 1.0f / params->softcap, 0.0f, out);
    vec->unary[ENGINE_TANH](n, out, out);
    vec->scale(n, out, params->softcap, 0.0f, out);
}

static void unary_piece(const struct engine_vec *vec, const union engine_params *params, int64_t n,
                        const float *x, float *out)
{
    vec->unary[params->unary](n, x, out);
}

static void scale_run(const struct engine_task *task, struct engine_tensor *dst)
{
    engine_pieces_map(task, dst, scale_piece);
}

static void clamp_run(const struct engine_task *task, struct engine_tensor *dst)
{
    engine_pieces_map(task, dst, clamp_piece);
}

static void softcap_run(const struct engine_task *task, struct engine_tensor *dst)
{
    engine_pieces_map(task, dst, softcap_piece);
}

static void unary_run(const struct engine_task *task, struct engine_tensor *dst)
{
    engine_pieces_map(task, dst, unary_piece);
}

const struct engine_op engine_op_scale =
    ENGINE_ROWS_OP("scale", 1, map_shape, engine_scratch_pieces, scale_run, .in_place = true);
const struct engine_op engine_op_clamp =
    ENGINE_ROWS_OP("clamp", 1, map_shape, engine_scratch_pieces, clamp_run, .in_place = true);
const struct engine_op engine_op_softcap =
    ENGINE_ROWS_OP("softcap", 1, map_shape, engine_scratch_pieces, softcap_run, .in_place = true);
const struct engine_op engine_op_unary =
    ENGINE_ROWS_OP("unary", 1, map_shape, engine_scratch_pieces, unary_run, .in_place = true);

struct engine_tensor *engine_scale(struct engine_graph *g, struct engine_tensor *a, float scale,
                                   float bias)
{
    return engine_graph_node(g, &engine_op_scale, &a, 1,
                             &(union engine_params){.scale = {scale, bias}});
}

struct engine_tensor *engine_clamp(struct engine_graph *g, struct engine_tensor *a, float lo,
                                   float hi)
{
    return engine_graph_node(g, &engine_op_clamp, &a, 1, &(union engine_params){.clamp = {lo, hi}});
}

struct engine_tensor *engine_softcap(struct engine_graph *g, struct engine_tensor *a, float cap)
{
    return engine_graph_node(g, &engine_op_softcap, &a, 1, &(union engine_params){.softcap = cap});
}

struct engine_tensor *engine_unary(struct engine_graph *g, struct engine_tensor *a,
                                   enum engine_unary f)
{
    return engine_graph_node(g, &engine_op_unary, &a, 1, &(union engine_params){.unary = f});
}

/* ---- Gated units ---- */

static bool glu_shape(struct engine_tensor *dst, struct base_error *err)
{
    if (!engine_tensor_same_shape(dst->src[0], dst->src[1]))
        return engine_shape_fail(dst, err, "gate and up differ in shape");
    return binary_shape(dst, err);
}

static void glu_run(const struct engine_task *task, struct engine_tensor *dst)
{
    binary_run(task, dst, task->engine->vec.glu[dst->params.unary]);
}

const struct engine_op engine_op_glu =
    ENGINE_ROWS_OP("glu", 2, glu_shape, engine_scratch_pieces, glu_run, .in_place = true);

struct engine_tensor *engine_glu(struct engine_graph *g, struct engine_tensor *gate,
                                 struct engine_tensor *up, enum engine_unary f)
{
    struct engine_tensor *src[] = {gate, up};
    return engine_graph_node(g, &engine_op_glu, src, 2, &(union engine_params){.unary = f});
}
