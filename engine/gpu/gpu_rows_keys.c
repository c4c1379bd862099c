/* engine/gpu/gpu_rows_keys.c: the rows of ops for sparse attention: choosing keys, keys of blocks
 * (engine/gpu/device/gpu_choose.c, gpu_compress.c), and doubly stochastic matrices. */
#include "engine/gpu/gpu_arguments.h"
#include "engine/op_sources.h"
#include "engine/ops.h"

/* ---- choose_keys: a group of tokens at once, whose scores are in scratch ---- */

static const int64_t GROUP_BYTES = 64 << 20;

static bool choose_supports(const struct engine_tensor *node)
{
    const struct engine_tensor *q = node->src[ENGINE_CHOOSE_Q];
    return !q || q->ne[0] <= ENGINE_GPU_ATTENTION_SIZE;
}

/* Bytes of a token's scores. */
static int64_t token_bytes(const struct engine_tensor *node)
{
    return node->ne[1] * node->src[ENGINE_CHOOSE_TABLES]->ne[0] * (int64_t)sizeof(float);
}

static int64_t group_of(const struct engine_tensor *node)
{
    const int64_t n = GROUP_BYTES / token_bytes(node);
    return n < 1 ? 1 : n < node->ne[2] ? n : node->ne[2];
}

static int64_t choose_scratch(const struct engine_tensor *node)
{
    return node->src[ENGINE_CHOOSE_Q] ? group_of(node) * token_bytes(node) : 0;
}

static void choose_launch(struct engine_gpu *gpu, const struct engine_tensor *node, char *scratch)
{
    const struct engine_tensor *k = node->src[ENGINE_CHOOSE_K];
    struct engine_gpu_choose_keys arguments = {
        .out = engine_gpu_tensor_of(node),
        .q = engine_gpu_tensor_of(node->src[ENGINE_CHOOSE_Q]),
        .k = engine_gpu_tensor_of(k),
        .ranges = engine_gpu_tensor_of(node->src[ENGINE_CHOOSE_RANGE]),
        .tables = engine_gpu_tensor_of(node->src[ENGINE_CHOOSE_TABLES]),
        .weights = engine_gpu_tensor_of(node->src[ENGINE_CHOOSE_WEIGHTS]),
        .near_ranges = engine_gpu_tensor_of(node->src[ENGINE_CHOOSE_NEAR_RANGE]),
        .near_tables = engine_gpu_tensor_of(node->src[ENGINE_CHOOSE_NEAR_TABLES]),
        .how = node->params.choose_keys,
        .coded = k && engine_tensor_is(k, QUANT_I8),
        .n_slots = k ? engine_kv_slots(k) : INT64_MAX,
        .scores = (float *)(void *)scratch,
    };
    const int64_t group = group_of(node);
    for (; arguments.first < node->ne[2]; arguments.first += group) {
        const int64_t left = node->ne[2] - arguments.first, n = left < group ? left : group;
        const int64_t parts = (arguments.tables.ne[0] + ENGINE_GPU_ATTENTION_THREADS - 1) /
                              ENGINE_GPU_ATTENTION_THREADS;
        const struct engine_gpu_grid scores = {(uint32_t)parts, (uint32_t)n,
                                               ENGINE_GPU_ATTENTION_THREADS,
                                               sizeof(struct engine_gpu_choose_memory)},
                                     lists = {(uint32_t)node->ne[1], (uint32_t)n,
                                              ENGINE_GPU_THREADS,
                                              ENGINE_GPU_WARPS * sizeof(int32_t)};
        if (k)
            engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_CHOOSE_SCORES], &scores, &arguments);
        engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_CHOOSE_KEYS], &lists, &arguments);
    }
}

const struct engine_gpu_op engine_gpu_op_choose_keys = {.op = &engine_op_choose_keys,
                                                        .supports = choose_supports,
                                                        .scratch = choose_scratch,
                                                        .launch = choose_launch};

/* ---- Sixteen lanes for each result ---- */

ENGINE_GPU_ONE_KERNEL(compress_keys, COMPRESS_KEYS, true,
                      engine_gpu_half_blocks(node->ne[0] * node->ne[1]),
                      .out = engine_gpu_tensor_of(node),
                      .rows = engine_gpu_tensor_of(node->src[ENGINE_COMPRESS_ROWS]),
                      .ranges = engine_gpu_tensor_of(node->src[ENGINE_COMPRESS_RANGE]),
                      .tables = engine_gpu_tensor_of(node->src[ENGINE_COMPRESS_TABLES]),
                      .ape = engine_gpu_tensor_of(node->src[ENGINE_COMPRESS_APE]),
                      .how = node->params.compress_keys)

ENGINE_GPU_ONE_KERNEL(sinkhorn, SINKHORN, true, engine_gpu_half_blocks(node->ne[2] * node->ne[3]),
                      engine_gpu_tensor_of(node), engine_gpu_tensor_of(node->src[0]),
                      node->params.sinkhorn)
