/* engine/ops.h: the list of all ops. Each row, engine_op_NAME, is in engine/graph/; its code on the
 * CPU in op/, matmul/ or attention/; test/test_op_table.c has a case for each. */
#pragma once

#include "engine/op.h"

/* clang-format off */
#define ENGINE_VIEW_OPS(OP) OP(view) OP(reshape) OP(permute)
#define ENGINE_RUN_OPS(OP)                                                                         \
    OP(copy) OP(cast) OP(get_rows) OP(set_rows) OP(set_kv_q16) OP(concat) OP(repeat)                \
    OP(add) OP(sub) OP(mul) OP(div) OP(scale) OP(clamp) OP(softcap) OP(unary) OP(glu)              \
    OP(norm) OP(rms_norm) OP(l2_norm) OP(sum_rows)                                                 \
    OP(soft_max) OP(rope_table) OP(rope)                                                           \
    OP(add_low_rank) OP(choose_experts) OP(expert_weights) OP(expert_sum) OP(glu_clamp)            \
    OP(mul_mat) OP(mul_mat_id) OP(mul_mat_glu) OP(mul_mat_id_glu)                                  \
    OP(mul_mat_active) OP(mul_mat_id_active) OP(mul_mat_columns) OP(mul_mat_id_columns)            \
    OP(mul_mat_transposed)                                                                         \
    OP(attention) OP(choose_keys) OP(compress_keys) OP(sinkhorn)                                                                  \
    OP(ssm_conv) OP(ssm_scan) OP(wkv6) OP(wkv7) OP(gated_delta)
#define ENGINE_OPS(OP) ENGINE_VIEW_OPS(OP) ENGINE_RUN_OPS(OP)
/* clang-format on */

#define ENGINE_OP_DECLARE(name) extern const struct engine_op engine_op_##name;
ENGINE_OPS(ENGINE_OP_DECLARE)
#undef ENGINE_OP_DECLARE
