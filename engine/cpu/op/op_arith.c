/* engine/cpu/op/op_arith.c: elementwise ops: add, sub, mul, div, scale, clamp, softcap, unary, glu.
 *
 * Arithmetic, per element, every operation rounded once:
 *     add, sub, mul, div   a op b, b repeated over a if its dimensions divide a's
 *     scale                fmaf(a, scale, bias)
 *     clamp                min(max(a, lo), hi); NaN gives NaN
 *     softcap              fmaf(tanh(fmaf(a, 1 / cap, 0)), cap, 0)
 *     unary, glu           the functions of engine/cpu/isa/vec.h
 * Sources of other types are decoded to float first, which is exact. */
#include "engine/cpu/op/op_rows.h"
#include "engine/ops.h"

/* ---- Two operands ---- */

static void binary_run(const struct engine_task *task, struct engine_tensor *dst,
                       void (*f)(int64_t n, const float *x, const float *y, float *out))
{
    float *buffer_a = engine_scratch_buffer(task, ENGINE_PIECE, 0),
          *buffer_b = engine_scratch_buffer(task, ENGINE_PIECE, 1);
    for (int64_t p, last = engine_task_rows(task, engine_pieces(dst), &p); p < last; p++) {
        struct engine_piece at = engine_piece_at(dst, p);
        const float *a = engine_piece_load(task->cpu, dst->src[0], &at, buffer_a);
        const float *b = engine_piece_load(task->cpu, dst->src[1], &at, buffer_b);
        f(at.n, a, b, engine_piece_out(dst, &at));
    }
}

#define BINARY_OP(name)                                                                            \
    static void name##_run(const struct engine_task *task, struct engine_tensor *dst)              \
    {                                                                                              \
        binary_run(task, dst, task->cpu->vec.name);                                                \
    }                                                                                              \
    ENGINE_CPU_ROWS_OP(name, engine_scratch_pieces, name##_run);
BINARY_OP(add)
BINARY_OP(sub)
BINARY_OP(mul)
BINARY_OP(div)

/* ---- One operand ---- */

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

ENGINE_CPU_PIECES_OP(scale, scale_piece)
ENGINE_CPU_PIECES_OP(clamp, clamp_piece)
ENGINE_CPU_PIECES_OP(softcap, softcap_piece)
ENGINE_CPU_PIECES_OP(unary, unary_piece)

/* ---- Gated units ---- */

static void glu_run(const struct engine_task *task, struct engine_tensor *dst)
{
    binary_run(task, dst, task->cpu->vec.glu[dst->params.unary]);
}

ENGINE_CPU_ROWS_OP(glu, engine_scratch_pieces, glu_run);
