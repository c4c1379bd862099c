/* engine/gpu/gpu_rows.c: the rows of ops other than products: which nodes a GPU computes, and how
 * it starts their kernels (engine/gpu/device/gpu_ops.h). */
#include "engine/alibi.h"
#include "engine/gpu/gpu_arguments.h"
#include "engine/gpu/gpu_joins.h"
#include "engine/gpu/gpu_product.h"
#include "engine/op_sources.h"
#include "engine/ops.h"

#define LOG2_E 0x1.715476p+0f

/* ---- Elements ---- */

/* Whether t has the node's shape, and both have no gaps; t may be NULL. */
static bool is_alike(const struct engine_tensor *node, const struct engine_tensor *t)
{
    return !t || (engine_tensor_same_shape(node, t) && engine_tensor_contiguous(t));
}

static void start_map(struct engine_gpu *gpu, const struct engine_tensor *node,
                      struct engine_gpu_map arguments, char *scratch)
{
    arguments.out = engine_gpu_tensor_of(node);
    arguments.a = engine_gpu_tensor_of(node->src[0]);
    arguments.b = engine_gpu_tensor_of(node->src[1]);
    arguments.plain = arguments.f < ENGINE_GPU_COPY && engine_tensor_contiguous(node) &&
                      is_alike(node, node->src[0]) && is_alike(node, node->src[1]);
    if (arguments.plain && node->ne[0] % ENGINE_GPU_THREADS == 0)
        arguments.to = engine_gpu_convert_for_next(gpu, node, scratch);
    struct engine_gpu_grid grid = {engine_gpu_map_blocks(&arguments.out), 1, ENGINE_GPU_THREADS, 0};
    arguments.ahead = engine_gpu_load_ahead(gpu, &grid);
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_MAP], &grid, &arguments);
}

/* Defines the row of an op with the members of its arguments. */
#define MAP_OP(name, supports_, ...)                                                               \
    static void name##_launch(struct engine_gpu *gpu, const struct engine_tensor *node,            \
                              char *scratch)                                                       \
    {                                                                                              \
        start_map(gpu, node, (struct engine_gpu_map){__VA_ARGS__}, scratch);                       \
    }                                                                                              \
    const struct engine_gpu_op engine_gpu_op_##name = {                                            \
        .op = &engine_op_##name, .supports = (supports_), .launch = name##_launch};

MAP_OP(add, engine_gpu_has_floats, .f = ENGINE_GPU_ADD)
MAP_OP(sub, engine_gpu_has_floats, .f = ENGINE_GPU_SUB)
MAP_OP(mul, engine_gpu_has_floats, .f = ENGINE_GPU_MUL)
MAP_OP(div, engine_gpu_has_floats, .f = ENGINE_GPU_DIV)
MAP_OP(glu, engine_gpu_has_floats, .f = ENGINE_GPU_GLU, .unary = node->params.unary)
MAP_OP(unary, engine_gpu_has_floats, .f = ENGINE_GPU_UNARY, .unary = node->params.unary)
MAP_OP(scale, engine_gpu_has_floats, .f = ENGINE_GPU_SCALE, .x = node->params.scale.scale,
       .y = node->params.scale.bias)
MAP_OP(clamp, engine_gpu_has_floats, .f = ENGINE_GPU_CLAMP, .x = node->params.clamp.low,
       .y = node->params.clamp.high)
MAP_OP(softcap, engine_gpu_has_floats, .f = ENGINE_GPU_SOFTCAP, .x = node->params.softcap)
MAP_OP(glu_clamp, engine_gpu_has_floats, .f = ENGINE_GPU_GLU_CLAMP,
       .unary = node->params.glu_clamp.f, .x = node->params.glu_clamp.limit,
       .y = node->params.glu_clamp.offset)
MAP_OP(repeat, engine_gpu_has_floats, .f = ENGINE_GPU_COPY)
MAP_OP(concat, engine_gpu_has_floats, .f = ENGINE_GPU_CONCAT, .dim = node->params.concat)

/* Elements of four bytes, without a conversion. */
static bool copy_supports(const struct engine_tensor *node)
{
    return node->type == node->src[0]->type &&
           (engine_tensor_is(node, QUANT_F32) || engine_tensor_is(node, QUANT_I32));
}

MAP_OP(copy, copy_supports, .f = ENGINE_GPU_COPY)
MAP_OP(cast, copy_supports, .f = ENGINE_GPU_COPY)

static bool get_rows_supports(const struct engine_tensor *node)
{
    return engine_gpu_is_float(node->src[0]) || engine_tensor_is(node->src[0], QUANT_I32);
}

MAP_OP(get_rows, get_rows_supports,
       .f = engine_tensor_is(node, QUANT_I32) ? ENGINE_GPU_GET_NUMBERS : ENGINE_GPU_GET_ROWS)

/* The table of floats is node, too. */
ENGINE_GPU_ONE_KERNEL(set_rows, SET_ROWS,
                      engine_gpu_is_float(node->src[0]) && engine_gpu_is_float(node->src[1]),
                      engine_gpu_row_blocks(engine_tensor_rows(node->src[0])),
                      engine_gpu_tensor_of(node), engine_gpu_tensor_of(node->src[0]),
                      engine_gpu_tensor_of(node->src[2]))

/* ---- Norms ---- */

struct engine_gpu_norm engine_gpu_norm_of(const struct engine_tensor *node)
{
    return (struct engine_gpu_norm){
        .out = engine_gpu_tensor_of(node),
        .a = engine_gpu_tensor_of(node->src[0]),
        .weight = engine_gpu_tensor_of(node->src[1]),
        .bias = engine_gpu_tensor_of(node->src[2]),
        .kind = node->op == &engine_op_norm       ? ENGINE_GPU_NORM
                : node->op == &engine_op_rms_norm ? ENGINE_GPU_RMS_NORM
                                                  : ENGINE_GPU_L2_NORM,
        .eps = node->params.norm.eps,
    };
}

void engine_gpu_start_norm(struct engine_gpu *gpu, const struct engine_tensor *node,
                           const struct engine_tensor *add, char *scratch)
{
    struct engine_gpu_norm arguments = engine_gpu_norm_of(node);
    for (int i = 0; add && i < 2; i++) arguments.add[i] = engine_gpu_tensor_of(add->src[i]);
    struct engine_gpu_grid grid = {(uint32_t)engine_tensor_rows(node), 1, ENGINE_GPU_LONG_THREADS,
                                   sizeof(struct engine_gpu_norm_memory)};
    if (node->ne[0] >= ENGINE_GPU_LONG_ROW) {
        arguments.to = engine_gpu_convert_for_next(gpu, node, scratch);
        arguments.ahead = engine_gpu_load_ahead(gpu, &grid);
        engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_NORM_LONG], &grid, &arguments);
        return;
    }
    engine_gpu_start(gpu, ENGINE_GPU_KERNEL_NORM, engine_gpu_row_blocks(engine_tensor_rows(node)),
                     &arguments);
}

#define NORM_OP(name)                                                                              \
    static void name##_launch(struct engine_gpu *gpu, const struct engine_tensor *node,            \
                              char *scratch)                                                       \
    {                                                                                              \
        engine_gpu_start_norm(gpu, node, NULL, scratch);                                           \
    }                                                                                              \
    const struct engine_gpu_op engine_gpu_op_##name = {                                            \
        .op = &engine_op_##name, .supports = engine_gpu_has_floats, .launch = name##_launch};

NORM_OP(norm)
NORM_OP(rms_norm)
NORM_OP(l2_norm)

ENGINE_GPU_ONE_KERNEL(sum_rows, SUM_ROWS, engine_gpu_has_floats(node),
                      engine_gpu_half_blocks(engine_tensor_rows(node)), engine_gpu_tensor_of(node),
                      engine_gpu_tensor_of(node->src[0]))

/* Without a mask or sinks. */
ENGINE_GPU_ONE_KERNEL(soft_max, SOFT_MAX,
                      engine_gpu_is_float(node->src[0]) && !node->src[1] && !node->src[2],
                      engine_gpu_half_blocks(engine_tensor_rows(node)), engine_gpu_tensor_of(node),
                      engine_gpu_tensor_of(node->src[0]), node->params.soft_max.scale)

/* ---- Positions ---- */

ENGINE_GPU_ONE_KERNEL(rope, ROPE, engine_gpu_has_floats(node),
                      engine_gpu_map_blocks(&arguments.out), .out = engine_gpu_tensor_of(node),
                      .a = engine_gpu_tensor_of(node->src[0]),
                      .table = engine_gpu_tensor_of(node->src[1]),
                      .normal = node->params.rope.kind == ENGINE_ROPE_NORMAL)

/* ---- Keys and values ---- */

static bool set_kv_supports(const struct engine_tensor *node)
{
    return engine_gpu_is_float(node->src[0]);
}

struct engine_gpu_set_kv engine_gpu_set_kv_of(const struct engine_tensor *node)
{
    return (struct engine_gpu_set_kv){
        .cache = engine_gpu_tensor_of(node),
        .x = engine_gpu_tensor_of(node->src[0]),
        .slots = engine_gpu_tensor_of(node->src[2]),
        .values = node->params.set_kv_q16.what == ENGINE_KV_Q16_VALUES,
        .bfloat = quant_type_by_id(node->params.set_kv_q16.as)->act->layout == QUANT_LAYOUT_BF16,
    };
}

static void set_kv_launch(struct engine_gpu *gpu, const struct engine_tensor *node, char *scratch)
{
    (void)scratch;
    const struct engine_gpu_set_kv arguments = engine_gpu_set_kv_of(node);
    engine_gpu_start(gpu, ENGINE_GPU_KERNEL_SET_KV,
                     engine_gpu_row_blocks(engine_tensor_rows(node->src[0])), &arguments);
}

const struct engine_gpu_op engine_gpu_op_set_kv_q16 = {
    .op = &engine_op_set_kv_q16, .supports = set_kv_supports, .launch = set_kv_launch};

/* The elements of a value. */
static int64_t values_of(const struct engine_tensor *node)
{
    return node->ne[0] / node->src[ENGINE_ATTENTION_Q]->ne[1];
}

/* Int16 groups or floats. */
static bool is_cache(const struct engine_tensor *t)
{
    return engine_tensor_is(t, QUANT_I8) || engine_tensor_is(t, QUANT_F32);
}

static bool attention_supports(const struct engine_tensor *node)
{
    const struct engine_attention *p = &node->params.attention;
    const struct engine_tensor *q = node->src[ENGINE_ATTENTION_Q];
    return is_cache(node->src[ENGINE_ATTENTION_K]) && is_cache(node->src[ENGINE_ATTENTION_V]) &&
           engine_gpu_is_float(q) &&
           (p->max_alibi == 0.0f || q->ne[1] <= ENGINE_GPU_ATTENTION_SLOPES) &&
           engine_tensor_row_contiguous(q) && q->ne[0] <= ENGINE_GPU_ATTENTION_SIZE &&
           values_of(node) <= ENGINE_GPU_ATTENTION_SIZE;
}

static int64_t chunks_of(const struct engine_tensor *node)
{
    return (node->src[ENGINE_ATTENTION_TABLES]->ne[0] + ENGINE_GPU_ATTENTION_THREADS - 1) /
           ENGINE_GPU_ATTENTION_THREADS;
}

/* Bytes of the sums of chunks. */
static int64_t sums_bytes(const struct engine_tensor *node)
{
    const struct engine_tensor *q = node->src[ENGINE_ATTENTION_Q];
    return q->ne[1] * q->ne[2] * chunks_of(node) * (values_of(node) + 2) * (int64_t)sizeof(float);
}

/* Whether rows of several tokens share the keys that a block reads. */
static bool is_tiled(const struct engine_tensor *node)
{
    enum { TOKENS = 16 };
    const struct engine_tensor *q = node->src[ENGINE_ATTENTION_Q];
    return q->ne[2] >= TOKENS && engine_tensor_is(node->src[ENGINE_ATTENTION_K], QUANT_I8) &&
           engine_tensor_is(node->src[ENGINE_ATTENTION_V], QUANT_I8) &&
           q->ne[0] % ENGINE_GPU_ATTENTION_STEP == 0 &&
           q->ne[0] <= ENGINE_GPU_ATTENTION_TILE_SIZE &&
           values_of(node) <= ENGINE_GPU_ATTENTION_TILE_SIZE;
}

static int64_t tiles_of(const struct engine_tensor *node)
{
    const struct engine_tensor *q = node->src[ENGINE_ATTENTION_Q];
    return engine_gpu_attention_tiles(q->ne[1] / node->src[ENGINE_ATTENTION_K]->ne[1] * q->ne[2]);
}

/* In how many parts the keys of a row are divided, so that few rows occupy a GPU too. */
static int64_t parts_of(const struct engine_tensor *node)
{
    enum { BLOCKS = 256, TILES = 128, MOST_SUMS = 32 << 20 };
    const struct engine_tensor *q = node->src[ENGINE_ATTENTION_Q];
    const int64_t most = chunks_of(node);
    int64_t parts = BLOCKS / (q->ne[1] * q->ne[2]);
    if (is_tiled(node))
        parts = sums_bytes(node) > MOST_SUMS
                    ? 1
                    : TILES / (node->src[ENGINE_ATTENTION_K]->ne[1] * tiles_of(node));
    return parts < 2 ? 1 : parts < most ? parts : most;
}

static int64_t attention_scratch(const struct engine_tensor *node)
{
    return parts_of(node) == 1 ? 0 : engine_gpu_converted_bytes(node) + sums_bytes(node);
}

static void attention_launch(struct engine_gpu *gpu, const struct engine_tensor *node,
                             char *scratch)
{
    const struct engine_attention *p = &node->params.attention;
    const struct engine_tensor *q = node->src[ENGINE_ATTENTION_Q];
    const struct engine_tensor *relative = node->src[ENGINE_ATTENTION_RELATIVE];
    const bool float_keys = engine_tensor_is(node->src[ENGINE_ATTENTION_K], QUANT_F32);
    const bool floats = engine_tensor_is(node->src[ENGINE_ATTENTION_V], QUANT_F32);
    const bool direct =
        !float_keys && !floats && p->softcap == 0.0f && p->max_alibi == 0.0f && !relative;
    struct engine_gpu_attention arguments = {
        .out = engine_gpu_tensor_of(node),
        .q = engine_gpu_tensor_of(q),
        .k = engine_gpu_tensor_of(node->src[ENGINE_ATTENTION_K]),
        .v = engine_gpu_tensor_of(node->src[ENGINE_ATTENTION_V]),
        .ranges = engine_gpu_tensor_of(node->src[ENGINE_ATTENTION_RANGE]),
        .tables = engine_gpu_tensor_of(node->src[ENGINE_ATTENTION_TABLES]),
        .sinks = engine_gpu_tensor_of(node->src[ENGINE_ATTENTION_SINKS]),
        .relative = engine_gpu_tensor_of(relative),
        .n_slots = engine_kv_slots(node->src[ENGINE_ATTENTION_K]),
        .scale = direct ? p->scale * LOG2_E : p->scale,
        .float_keys = float_keys,
        .direct = direct,
        .softcap = p->softcap,
        .n_parts = (int32_t)parts_of(node),
        .n_chunks = (int32_t)chunks_of(node),
    };
    if (arguments.n_parts > 1)
        arguments.sums = (float *)(void *)(scratch + engine_gpu_converted_bytes(node));
    if (arguments.n_parts > 1 && node->ne[0] % ENGINE_GPU_ATTENTION_THREADS == 0)
        arguments.to = engine_gpu_convert_for_next(gpu, node, scratch);
    for (int64_t h = 0; p->max_alibi != 0.0f && h < q->ne[1]; h++)
        arguments.slope[h] = engine_alibi_slope(p->max_alibi, h, q->ne[1]);
    struct engine_gpu_grid grid = {
        (uint32_t)q->ne[1], (uint32_t)(q->ne[2] * arguments.n_parts), ENGINE_GPU_ATTENTION_THREADS,
        (uint32_t)(sizeof(struct engine_gpu_attention_memory) +
                   ENGINE_GPU_ATTENTION_SUBS * (uint64_t)values_of(node) * sizeof(int32_t))};
    enum engine_gpu_kernel kernel =
        floats ? ENGINE_GPU_KERNEL_ATTENTION_FLOATS : ENGINE_GPU_KERNEL_ATTENTION;
    if (is_tiled(node)) {
        kernel = ENGINE_GPU_KERNEL_ATTENTION_TILE;
        grid.x = (uint32_t)node->src[ENGINE_ATTENTION_K]->ne[1];
        grid.y = (uint32_t)(tiles_of(node) * arguments.n_parts);
        grid.shared = engine_gpu_attention_tile_bytes(q->ne[0], direct);
    }
    engine_gpu_launch(gpu, gpu->op[kernel], &grid, &arguments);
    grid.x =
        (uint32_t)((node->ne[0] + ENGINE_GPU_ATTENTION_THREADS - 1) / ENGINE_GPU_ATTENTION_THREADS);
    grid.y = (uint32_t)q->ne[2];
    grid.shared = 0;
    if (arguments.n_parts == 1) return;
    arguments.ahead = engine_gpu_load_ahead(gpu, &grid);
    engine_gpu_launch(gpu,
                      gpu->op[floats ? ENGINE_GPU_KERNEL_ATTENTION_FLOATS_MERGE
                                     : ENGINE_GPU_KERNEL_ATTENTION_MERGE],
                      &grid, &arguments);
}

const struct engine_gpu_op engine_gpu_op_attention = {.op = &engine_op_attention,
                                                      .supports = attention_supports,
                                                      .scratch = attention_scratch,
                                                      .launch = attention_launch};
