/* engine/gpu/gpu_op.h: how a GPU runs an op: a row of a table for each. Private to engine/gpu/. */
#pragma once

#include "engine/gpu/gpu_device.h"
#include "engine/op.h"

struct engine_gpu_op {
    const struct engine_op *op;
    bool (*supports)(const struct engine_tensor *node);   /* whether it computes this node */
    int64_t (*scratch)(const struct engine_tensor *node); /* bytes; NULL: none */
    void (*launch)(struct engine_gpu *gpu, const struct engine_tensor *node, char *scratch);
};

/* The ops of a GPU: products are in gpu_mul_mat.c and gpu_products.c, experts in
 * gpu_rows_experts.c, the choice and compression of keys in gpu_rows_keys.c, those with a state in
 * gpu_rows_recurrent.c, the others in gpu_rows.c. */
/* clang-format off */
#define ENGINE_GPU_OPS(OP)                                                                         \
    OP(mul_mat) OP(mul_mat_batch) OP(mul_mat_id) OP(mul_mat_active) OP(mul_mat_id_active)          \
    OP(mul_mat_transposed) OP(add_low_rank)                                                        \
    OP(add) OP(sub) OP(mul) OP(div) OP(glu) OP(unary) OP(scale) OP(clamp) OP(softcap)              \
    OP(glu_clamp) OP(copy) OP(cast) OP(concat) OP(repeat) OP(get_rows) OP(set_rows)                \
    OP(norm) OP(rms_norm) OP(l2_norm) OP(sum_rows) OP(soft_max) OP(rope)                           \
    OP(choose_experts) OP(expert_weights) OP(expert_sum) OP(set_kv_q16) OP(attention)   \
    OP(choose_keys) OP(compress_keys) OP(sinkhorn)                                                 \
    OP(ssm_conv) OP(ssm_scan) OP(wkv6) OP(wkv7) OP(gated_delta)
/* clang-format on */

#define ENGINE_GPU_DECLARE(name) extern const struct engine_gpu_op engine_gpu_op_##name;
ENGINE_GPU_OPS(ENGINE_GPU_DECLARE)
#undef ENGINE_GPU_DECLARE
