/* engine/gpu/device/gpu_roofline.c: device code: multiplies signed bytes by the matrix units, from
 * registers, to measure their rate (engine/gpu/roofline_gpu.c). */
#include "engine/gpu/device/gpu_element.h"

GPU_KERNEL(engine_gpu_roofline, engine_gpu_roofline)
{
    const uint32_t x = (uint32_t)gpu_lane(), a[4] = {x, x + 1, x + 2, x + 3}, b[2] = {x, ~x};
    int sum[ENGINE_GPU_MULTIPLY_CHAINS][4], all = 0;
    GPU_EACH (c, ENGINE_GPU_MULTIPLY_CHAINS)
        for (int i = 0; i < 4; i++) sum[c][i] = c;
    for (int i = 0; i < p.rounds; i++) {
        GPU_EACH (c, ENGINE_GPU_MULTIPLY_CHAINS) gpu_multiply_32(a, b, sum[c]);
    }
    GPU_EACH (c, ENGINE_GPU_MULTIPLY_CHAINS)
        for (int i = 0; i < 4; i++) all ^= sum[c][i];
    p.out[gpu_thread_of_grid()] = all;
}
