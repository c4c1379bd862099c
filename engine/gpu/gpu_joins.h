/* engine/gpu/gpu_joins.h: several nodes by one kernel: starting a kernel takes longer than a small
 * one runs. Private to engine/gpu/. */
#pragma once

#include "engine/gpu/device/gpu_ops.h"
#include "engine/gpu/gpu_op.h"
#include "engine/plan.h"

/* Starts a kernel that computes the first of n steps, and some after it; returns how many, or 0 if
 * there is none. */
int engine_gpu_join(struct engine_gpu *gpu, const struct engine_step *steps, int n, char *scratch);

/* The arguments of a norm, without `add` and the conversion. */
struct engine_gpu_norm engine_gpu_norm_of(const struct engine_tensor *node);
struct engine_gpu_set_kv engine_gpu_set_kv_of(const struct engine_tensor *node);
/* Starts a norm of at least ENGINE_GPU_LONG_ROW elements, or without `add`; if `add` is not NULL,
 * that node is its source, and is computed, too. */
void engine_gpu_start_norm(struct engine_gpu *gpu, const struct engine_tensor *node,
                           const struct engine_tensor *add, char *scratch);
