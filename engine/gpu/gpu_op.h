/* engine/gpu/gpu_op.h: how a GPU runs an op: a row of a table for each. Private to engine/gpu/. */
#ifndef ENGINE_GPU_GPU_OP_H
#define ENGINE_GPU_GPU_OP_H

#include "engine/gpu/gpu_device.h"
#include "engine/op.h"

struct engine_gpu_op {
    const struct engine_op *op;
    bool (*supports)(const struct engine_tensor *node);   /* whether it computes this node */
    int64_t (*scratch)(const struct engine_tensor *node); /* bytes; NULL: none */
    void (*launch)(struct engine_gpu *gpu, const struct engine_tensor *node, char *scratch);
};

extern const struct engine_gpu_op engine_gpu_op_mul_mat; /* engine/gpu/gpu_mul_mat.c */

#endif
