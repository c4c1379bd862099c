/* engine/ops.h: the op rows that other files of engine/ name: the simplifier and the tests. Each is
 * defined beside its code in an op_*.c file. */
#ifndef ENGINE_OPS_H
#define ENGINE_OPS_H

#include "engine/op.h"

extern const struct engine_op engine_op_view;
extern const struct engine_op engine_op_reshape;
extern const struct engine_op engine_op_permute;

extern const struct engine_op engine_op_copy;
extern const struct engine_op engine_op_cast;
extern const struct engine_op engine_op_get_rows;
extern const struct engine_op engine_op_set_rows;
extern const struct engine_op engine_op_concat;
extern const struct engine_op engine_op_repeat;
extern const struct engine_op engine_op_pad;

extern const struct engine_op engine_op_add;
extern const struct engine_op engine_op_sub;
extern const struct engine_op engine_op_mul;
extern const struct engine_op engine_op_div;
extern const struct engine_op engine_op_scale;
extern const struct engine_op engine_op_clamp;
extern const struct engine_op engine_op_softcap;
extern const struct engine_op engine_op_unary;
extern const struct engine_op engine_op_glu;

extern const struct engine_op engine_op_norm;
extern const struct engine_op engine_op_rms_norm;
extern const struct engine_op engine_op_l2_norm;
extern const struct engine_op engine_op_group_norm;
extern const struct engine_op engine_op_sum_rows;
extern const struct engine_op engine_op_soft_max;
extern const struct engine_op engine_op_argsort;
extern const struct engine_op engine_op_rope_table;
extern const struct engine_op engine_op_rope;

#endif
