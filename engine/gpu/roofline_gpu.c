/* engine/gpu/roofline_gpu.c: the speed of a GPU's memory, which limits generation as that of this
 * machine's memory does (engine/cpu/roofline.h). */
#include "base/clock.h"
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
