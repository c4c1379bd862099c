/* engine/gpu/gpu_rows_experts.c: the rows of ops of experts: choosing them, their weights, and sums
 * (engine/gpu/device/gpu_experts.c). Their products: gpu_products.c. */
#include "engine/gpu/gpu_arguments.h"
#include "engine/ops.h"

enum { SHARED_BYTES = 48 << 10 }; /* of a block, at least, on all GPUs */

static int64_t choose_bytes(const struct engine_tensor *node)
{
    return engine_gpu_choose_bytes(node->src[0]->ne[0], node->params.choose_experts.n_groups);
}

static bool choose_supports(const struct engine_tensor *node)
{
    return engine_gpu_has_floats(node) && choose_bytes(node) <= SHARED_BYTES;
}

static void choose_launch(struct engine_gpu *gpu, const struct engine_tensor *node, char *scratch)
{
    (void)scratch;
    const struct engine_gpu_choose_experts arguments = {
        .ids = engine_gpu_tensor_of(node),
        .probs = engine_gpu_tensor_of(node->src[0]),
        .bias = engine_gpu_tensor_of(node->src[1]),
        .how = node->params.choose_experts,
    };
    const struct engine_gpu_grid grid = {(uint32_t)node->ne[1], 1, 32,
                                         (uint32_t)choose_bytes(node)};
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_CHOOSE_EXPERTS], &grid, &arguments);
}

const struct engine_gpu_op engine_gpu_op_choose_experts = {
    .op = &engine_op_choose_experts, .supports = choose_supports, .launch = choose_launch};

ENGINE_GPU_ONE_KERNEL(expert_weights, EXPERT_WEIGHTS, engine_gpu_is_float(node->src[0]),
                      engine_gpu_half_blocks(node->ne[1]), .out = engine_gpu_tensor_of(node),
                      .probs = engine_gpu_tensor_of(node->src[0]),
                      .ids = engine_gpu_tensor_of(node->src[1]), .how = node->params.expert_weights)

ENGINE_GPU_ONE_KERNEL(expert_sum, EXPERT_SUM, engine_gpu_has_floats(node),
                      engine_gpu_map_blocks(&arguments.out), .out = engine_gpu_tensor_of(node),
                      .y = engine_gpu_tensor_of(node->src[0]),
                      .weights = engine_gpu_tensor_of(node->src[1]))
