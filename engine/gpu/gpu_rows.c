/* engine/gpu/gpu_rows.c: the rows of ops other than products: which nodes a GPU computes, and how
 * it starts their kernels (engine/gpu/device/gpu_ops.h). */
#include "engine/gpu/device/gpu_ops.h"
#include "engine/gpu/gpu_op.h"
#include "engine/graph_internal.h"
#include "engine/op_sources.h"
#include "engine/ops.h"

#define LOG2_E 0x1.715476p+0f

/* The tensor for device code; t may be NULL. */
static struct engine_gpu_tensor described(const struct engine_tensor *t)
{
    struct engine_gpu_tensor out = {0};
    for (int i = 0; t && i < ENGINE_DIMS; i++) {
        out.ne[i] = t->ne[i];
        out.nb[i] = t->nb[i];
    }
    out.data = t ? t->data : NULL;
    return out;
}

static bool is_float(const struct engine_tensor *t)
{
    return !t || engine_tensor_is(t, QUANT_F32);
}

static bool has_float_sources(const struct engine_tensor *node)
{
    bool ok = true;
    for (int i = 0; i < ENGINE_MAX_SRC; i++) ok = ok && is_float(node->src[i]);
    return ok;
}

/* ---- Elements ---- */

static void start_map(struct engine_gpu *gpu, const struct engine_tensor *node,
                      struct engine_gpu_map arguments)
{
    arguments.out = described(node);
    arguments.a = described(node->src[0]);
    arguments.b = described(node->src[1]);
    const struct engine_gpu_grid grid = {engine_gpu_map_blocks(&arguments.out), 1,
                                         ENGINE_GPU_THREADS, 0};
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_MAP], &grid, &arguments);
}

/* Defines the row of an op with the members of its arguments. */
#define MAP_OP(name, supports_, ...)                                                               \
    static void name##_launch(struct engine_gpu *gpu, const struct engine_tensor *node,            \
                              char *scratch)                                                       \
    {                                                                                              \
        (void)scratch;                                                                             \
        start_map(gpu, node, (struct engine_gpu_map){__VA_ARGS__});                                \
    }                                                                                              \
    const struct engine_gpu_op engine_gpu_op_##name = {                                            \
        .op = &engine_op_##name, .supports = (supports_), .launch = name##_launch};

MAP_OP(add, has_float_sources, .f = ENGINE_GPU_ADD)
MAP_OP(sub, has_float_sources, .f = ENGINE_GPU_SUB)
MAP_OP(mul, has_float_sources, .f = ENGINE_GPU_MUL)
MAP_OP(div, has_float_sources, .f = ENGINE_GPU_DIV)
MAP_OP(glu, has_float_sources, .f = ENGINE_GPU_GLU, .unary = node->params.unary)
MAP_OP(unary, has_float_sources, .f = ENGINE_GPU_UNARY, .unary = node->params.unary)
MAP_OP(scale, has_float_sources, .f = ENGINE_GPU_SCALE, .x = node->params.scale.scale,
       .y = node->params.scale.bias)
MAP_OP(clamp, has_float_sources, .f = ENGINE_GPU_CLAMP, .x = node->params.clamp.low,
       .y = node->params.clamp.high)
MAP_OP(softcap, has_float_sources, .f = ENGINE_GPU_SOFTCAP, .x = node->params.softcap)

static bool get_rows_supports(const struct engine_tensor *node)
{
    return is_float(node->src[0]);
}

MAP_OP(get_rows, get_rows_supports, .f = ENGINE_GPU_GET_ROWS)

/* ---- Norms ---- */

static void start_norm(struct engine_gpu *gpu, const struct engine_tensor *node,
                       enum engine_gpu_norm_kind kind)
{
    const struct engine_gpu_norm arguments = {
        .out = described(node),
        .a = described(node->src[0]),
        .weight = described(node->src[1]),
        .bias = described(node->src[2]),
        .kind = kind,
        .eps = node->params.norm.eps,
    };
    const struct engine_gpu_grid grid = {engine_gpu_row_blocks(engine_tensor_rows(node)), 1,
                                         ENGINE_GPU_THREADS, 0};
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_NORM], &grid, &arguments);
}

#define NORM_OP(name, kind)                                                                        \
    static void name##_launch(struct engine_gpu *gpu, const struct engine_tensor *node,            \
                              char *scratch)                                                       \
    {                                                                                              \
        (void)scratch;                                                                             \
        start_norm(gpu, node, kind);                                                               \
    }                                                                                              \
    const struct engine_gpu_op engine_gpu_op_##name = {                                            \
        .op = &engine_op_##name, .supports = has_float_sources, .launch = name##_launch};

NORM_OP(norm, ENGINE_GPU_NORM)
NORM_OP(rms_norm, ENGINE_GPU_RMS_NORM)
NORM_OP(l2_norm, ENGINE_GPU_L2_NORM)

/* ---- Positions ---- */

static void rope_launch(struct engine_gpu *gpu, const struct engine_tensor *node, char *scratch)
{
    (void)scratch;
    const struct engine_gpu_rope arguments = {
        .out = described(node),
        .a = described(node->src[0]),
        .table = described(node->src[1]),
        .normal = node->params.rope.kind == ENGINE_ROPE_NORMAL,
    };
    const struct engine_gpu_grid grid = {engine_gpu_map_blocks(&arguments.out), 1,
                                         ENGINE_GPU_THREADS, 0};
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_ROPE], &grid, &arguments);
}

const struct engine_gpu_op engine_gpu_op_rope = {
    .op = &engine_op_rope, .supports = has_float_sources, .launch = rope_launch};

/* ---- Keys and values ---- */

static bool set_kv_supports(const struct engine_tensor *node)
{
    return is_float(node->src[0]);
}

static void set_kv_launch(struct engine_gpu *gpu, const struct engine_tensor *node, char *scratch)
{
    (void)scratch;
    const struct engine_gpu_set_kv arguments = {
        .cache = described(node),
        .x = described(node->src[0]),
        .slots = described(node->src[2]),
        .values = node->params.set_kv_q16.what == ENGINE_KV_Q16_VALUES,
        .bfloat = quant_type_by_id(node->params.set_kv_q16.as)->act->layout == QUANT_LAYOUT_BF16,
    };
    const struct engine_gpu_grid grid = {engine_gpu_row_blocks(engine_tensor_rows(node->src[0])), 1,
                                         ENGINE_GPU_THREADS, 0};
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_SET_KV], &grid, &arguments);
}

const struct engine_gpu_op engine_gpu_op_set_kv_q16 = {
    .op = &engine_op_set_kv_q16, .supports = set_kv_supports, .launch = set_kv_launch};

/* Caches of int16 groups, without what changes scores: a bound, ALiBi, biases, or sinks. */
static bool attention_supports(const struct engine_tensor *node)
{
    const struct engine_attention *p = &node->params.attention;
    const struct engine_tensor *q = node->src[ENGINE_ATTENTION_Q];
    return engine_tensor_is(node->src[ENGINE_ATTENTION_K], QUANT_I8) &&
           engine_tensor_is(node->src[ENGINE_ATTENTION_V], QUANT_I8) && p->softcap == 0.0f &&
           p->max_alibi == 0.0f && !node->src[ENGINE_ATTENTION_SINKS] &&
           !node->src[ENGINE_ATTENTION_RELATIVE] && is_float(q) &&
           engine_tensor_row_contiguous(q) && q->ne[0] <= ENGINE_GPU_ATTENTION_SIZE &&
           p->dv <= ENGINE_GPU_ATTENTION_SIZE;
}

static void attention_launch(struct engine_gpu *gpu, const struct engine_tensor *node,
                             char *scratch)
{
    (void)scratch;
    const struct engine_tensor *q = node->src[ENGINE_ATTENTION_Q];
    const struct engine_gpu_attention arguments = {
        .out = described(node),
        .q = described(q),
        .k = described(node->src[ENGINE_ATTENTION_K]),
        .v = described(node->src[ENGINE_ATTENTION_V]),
        .ranges = described(node->src[ENGINE_ATTENTION_RANGE]),
        .tables = described(node->src[ENGINE_ATTENTION_TABLES]),
        .n_slots = engine_kv_slots(node->src[ENGINE_ATTENTION_K]),
        .scale = node->params.attention.scale * LOG2_E,
    };
    const struct engine_gpu_grid grid = {(uint32_t)q->ne[1], (uint32_t)q->ne[2],
                                         ENGINE_GPU_ATTENTION_THREADS,
                                         sizeof(struct engine_gpu_attention_memory)};
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_ATTENTION], &grid, &arguments);
}

const struct engine_gpu_op engine_gpu_op_attention = {
    .op = &engine_op_attention, .supports = attention_supports, .launch = attention_launch};
