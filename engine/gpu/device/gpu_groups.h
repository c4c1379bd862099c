/* engine/gpu/device/gpu_groups.h: device code: a sum over the threads of a block, for the kernels
 * that number what they choose. */
#pragma once

#include "engine/gpu/device/gpu_element.h"

/* The sum of the n of the threads before this one, of ENGINE_GPU_THREADS; *all: of all threads,
 * which call it; shared memory: ENGINE_GPU_WARPS int32. */
static inline int32_t gpu_sum_before(int32_t n, int32_t *all)
{
    int32_t *of_warp = gpu_shared(), before = 0, sum = n;
    for (int mask = 1; mask < GPU_WARP; mask *= 2) {
        const int32_t other = (int32_t)gpu_shuffle_xor((uint32_t)sum, mask);
        if (gpu_lane() & mask) before += other;
        sum += other;
    }
    gpu_sync(); /* earlier sums are read */
    if (gpu_lane() == 0) of_warp[gpu_warp()] = sum;
    gpu_sync(); /* the sums of all warps are written */
    *all = 0;
    for (int w = 0; w < ENGINE_GPU_WARPS; w++) {
        if (w < gpu_warp()) before += of_warp[w];
        *all += of_warp[w];
    }
    return before;
}
