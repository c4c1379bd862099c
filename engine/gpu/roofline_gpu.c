/* engine/gpu/roofline_gpu.c: the speed of a GPU's memory, which limits generation, and of its
 * matrix units, which limit prompts, as those of this machine do (engine/cpu/roofline.h). */
#include "base/clock.h"
#include "engine/gpu/device/gpu_ops.h"
#include "engine/gpu/gpu_device.h"

enum {
    MOST_BYTES = 256 << 20, /* larger than the caches of any GPU */
    PART = 8,               /* of the free memory, for each of two buffers */
    PASSES = 4,
    COPIES = 8 /* of a pass: the start of a copy takes some microseconds */
};

/* Returns the seconds of a pass; 0 after an error. */
static double pass(struct engine_gpu *gpu, const struct engine_buffer two[2],
                   struct base_error *err)
{
    if (!engine_gpu_wait(gpu, err)) return 0;
    const double start = base_seconds();
    for (int i = 0; i < COPIES; i++) engine_gpu_copy(gpu, two[0].base, two[1].base, two[0].size);
    return engine_gpu_wait(gpu, err) ? base_seconds() - start : 0;
}

double engine_gpu_bandwidth(struct engine_gpu *gpu, struct base_error *err)
{
    const struct engine_place place = {.backend = &engine_backend_gpu, .device = gpu};
    struct engine_gpu_facts facts;
    struct engine_buffer two[2] = {{0}};
    double best = 0;
    if (!engine_gpu_read_facts(gpu, &facts, err)) return 0;
    const uint64_t size = facts.free / PART < MOST_BYTES ? facts.free / PART : MOST_BYTES;
    if (engine_buffer_new(&place, ENGINE_BUFFER_GRAPH, size, &two[0], err) &&
        engine_buffer_new(&place, ENGINE_BUFFER_GRAPH, size, &two[1], err))
        for (int i = 0; i < PASSES; i++) {
            const double seconds = pass(gpu, two, err);
            const double bytes = 2.0 * COPIES * (double)size;
            if (seconds > 0 && bytes / seconds > best) best = bytes / seconds;
        }
    engine_buffer_free(&two[0]);
    engine_buffer_free(&two[1]);
    return best;
}

/* Returns the seconds of `rounds` of each warp; 0 after an error. */
static double multiply(struct engine_gpu *gpu, const struct engine_gpu_grid *grid,
                       const struct engine_gpu_roofline *arguments, struct base_error *err)
{
    if (!engine_gpu_wait(gpu, err)) return 0;
    const double start = base_seconds();
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_ROOFLINE], grid, arguments);
    return engine_gpu_wait(gpu, err) ? base_seconds() - start : 0;
}

double engine_gpu_int8(struct engine_gpu *gpu, struct base_error *err)
{
    enum { BLOCKS = 4, MACS = 16 * 8 * 32, MOST_ROUNDS = 1 << 20 };
    static const double least_seconds = 0.01; /* a start takes some microseconds */
    const struct engine_place place = {.backend = &engine_backend_gpu, .device = gpu};
    const struct engine_gpu_grid grid = {(uint32_t)(BLOCKS * gpu->facts.units), 1,
                                         ENGINE_GPU_THREADS, 0};
    const uint64_t size = (uint64_t)grid.x * ENGINE_GPU_THREADS * sizeof(int32_t);
    const double macs = (double)grid.x * ENGINE_GPU_WARPS * ENGINE_GPU_MULTIPLY_CHAINS * MACS;
    struct engine_buffer out = {0};
    double seconds = 0;
    int rounds = 1;
    if (!engine_buffer_new(&place, ENGINE_BUFFER_GRAPH, size, &out, err)) return 0;
    for (bool more = true; more; rounds *= more ? 2 : 1) {
        const struct engine_gpu_roofline arguments = {(int32_t *)(void *)out.base, rounds};
        seconds = multiply(gpu, &grid, &arguments, err);
        more = seconds > 0 && seconds < least_seconds && rounds < MOST_ROUNDS;
    }
    engine_buffer_free(&out);
    return seconds > 0 ? rounds * macs / seconds : 0;
}
