/* engine/gpu/gpu_rows_recurrent.c: the rows of ops that carry a state from token to token
 * (engine/gpu/device/gpu_recurrent.c). */
#include "engine/gpu/gpu_arguments.h"
#include "engine/op_sources.h"
#include "engine/ops.h"

/* Whether all sources but the spans are floats; `spans` is the last one. */
static bool supports(const struct engine_tensor *node, int spans)
{
    bool ok = true;
    for (int i = 0; i < spans; i++) ok = ok && engine_gpu_is_float(node->src[i]);
    return ok;
}

/* Starts a kernel with the sources, in order, of which `table` and `spans` have members of their
 * own. */
static void start(struct engine_gpu *gpu, enum engine_gpu_kernel kernel,
                  const struct engine_tensor *node, int table, int spans, uint32_t blocks)
{
    struct engine_gpu_recurrent arguments = {
        .out = engine_gpu_tensor_of(node),
        .table = engine_gpu_tensor_of(node->src[table]),
        .spans = engine_gpu_tensor_of(node->src[spans]),
        .ahead = kernel == ENGINE_GPU_KERNEL_SSM_CONV ? node->params.conv_ahead : 0};
    for (int i = 0, n = 0; i < spans; i++)
        if (i != table) arguments.source[n++] = engine_gpu_tensor_of(node->src[i]);
    engine_gpu_start(gpu, kernel, blocks, &arguments);
}

/* Sixteen lanes for each row, a warp for 32 columns, or a thread for each channel of a span. */
static uint32_t blocks_of_rows(const struct engine_tensor *table, int64_t n_spans)
{
    return engine_gpu_half_blocks(table->ne[1] * table->ne[2] * n_spans);
}

static uint32_t blocks_of_columns(const struct engine_tensor *table, int64_t n_spans)
{
    return engine_gpu_row_blocks((table->ne[0] + 31) / 32 * table->ne[2] * n_spans);
}

static uint32_t blocks_of_channels(const struct engine_tensor *table, int64_t n_spans)
{
    return engine_gpu_row_blocks((table->ne[0] * n_spans + 31) / 32);
}

#define RECURRENT_OP(name, id, sources, blocks_of)                                                 \
    static bool name##_supports(const struct engine_tensor *node)                                  \
    {                                                                                              \
        return supports(node, ENGINE_##sources##_SPANS);                                           \
    }                                                                                              \
    static void name##_launch(struct engine_gpu *gpu, const struct engine_tensor *node,            \
                              char *scratch)                                                       \
    {                                                                                              \
        (void)scratch;                                                                             \
        start(gpu, ENGINE_GPU_KERNEL_##id, node, ENGINE_##sources##_TABLE,                         \
              ENGINE_##sources##_SPANS,                                                            \
              blocks_of(node->src[ENGINE_##sources##_TABLE],                                       \
                        node->src[ENGINE_##sources##_SPANS]->ne[1]));                              \
    }                                                                                              \
    const struct engine_gpu_op engine_gpu_op_##name = {                                            \
        .op = &engine_op_##name, .supports = name##_supports, .launch = name##_launch};

RECURRENT_OP(ssm_conv, SSM_CONV, CONV, blocks_of_channels)
RECURRENT_OP(ssm_scan, SSM_SCAN, SCAN, blocks_of_rows)
RECURRENT_OP(wkv6, WKV6, WKV6, blocks_of_columns)
RECURRENT_OP(wkv7, WKV7, WKV7, blocks_of_rows)
RECURRENT_OP(gated_delta, GATED_DELTA, DELTA, blocks_of_rows)
