/* engine/gpu/gpu_arguments.h: what rows of ops share: tensors as arguments of kernels
 * (engine/gpu/device/gpu_ops.h), and their start. Private to engine/gpu/. */
#pragma once

#include "engine/gpu/device/gpu_ops.h"
#include "engine/gpu/gpu_op.h"
#include "engine/graph_internal.h"

/* The tensor for device code; t may be NULL. */
static inline struct engine_gpu_tensor engine_gpu_tensor_of(const struct engine_tensor *t)
{
    struct engine_gpu_tensor out = {0};
    for (int i = 0; t && i < ENGINE_DIMS; i++) {
        out.ne[i] = t->ne[i];
        out.nb[i] = t->nb[i];
    }
    out.data = t ? t->data : NULL;
    return out;
}

static inline bool engine_gpu_is_float(const struct engine_tensor *t)
{
    return !t || engine_tensor_is(t, QUANT_F32);
}

/* Whether all sources are floats. */
static inline bool engine_gpu_has_floats(const struct engine_tensor *node)
{
    bool ok = true;
    for (int i = 0; i < ENGINE_MAX_SRC; i++) ok = ok && engine_gpu_is_float(node->src[i]);
    return ok;
}

/* Starts a kernel on a row of blocks of ENGINE_GPU_THREADS threads without shared memory. */
static inline void engine_gpu_start(struct engine_gpu *gpu, enum engine_gpu_kernel kernel,
                                    uint32_t blocks, const void *arguments)
{
    const struct engine_gpu_grid grid = {blocks, 1, ENGINE_GPU_THREADS, 0};
    engine_gpu_launch(gpu, gpu->op[kernel], &grid, arguments);
}

/* Defines the row of an op that one kernel computes; SUPPORTS and BLOCKS: expressions of node and
 * arguments. */
#define ENGINE_GPU_ONE_KERNEL(NAME, KERNEL, SUPPORTS, BLOCKS, ...)                                 \
    static bool NAME##_supports(const struct engine_tensor *node)                                  \
    {                                                                                              \
        (void)node;                                                                                \
        return SUPPORTS;                                                                           \
    }                                                                                              \
    static void NAME##_launch(struct engine_gpu *gpu, const struct engine_tensor *node,            \
                              char *scratch)                                                       \
    {                                                                                              \
        (void)scratch;                                                                             \
        const struct engine_gpu_##NAME arguments = {__VA_ARGS__};                                  \
        engine_gpu_start(gpu, ENGINE_GPU_KERNEL_##KERNEL, BLOCKS, &arguments);                     \
    }                                                                                              \
    const struct engine_gpu_op engine_gpu_op_##NAME = {                                            \
        .op = &engine_op_##NAME, .supports = NAME##_supports, .launch = NAME##_launch};
