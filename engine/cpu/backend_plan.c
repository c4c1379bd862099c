/* engine/cpu/backend_plan.c: the backend of an engine that only plans (engine_options.plan_only):
 * its buffers are address ranges without memory, so that the memory of any model's graph can be
 * computed on any machine. */
#include "base/size.h"
#include "engine/backend.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_plan.h"
#include "engine/tensor.h"
#include <sys/mman.h>

enum { PAGE = 4096 };

static bool plan_buffer_new(const struct engine_place *place, uint64_t size,
                            struct engine_buffer *out, struct base_error *err)
{
    uint64_t bytes;
    void *base = MAP_FAILED;
    (void)place;
    if (base_align_up(size ? size : 1, PAGE, &bytes))
        base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return base_fail(err, BASE_NO_MEMORY, "no addresses for a buffer of %llu bytes",
                         (unsigned long long)size);
    out->base = base;
    out->size = bytes;
    return true;
}

static void plan_buffer_free(struct engine_buffer *buffer)
{
    munmap(buffer->base, buffer->size);
}

static bool plan_run(const struct engine_plan *plan, const struct engine_segment *segment,
                     const struct engine *engine, struct base_error *err)
{
    (void)plan;
    (void)segment;
    (void)engine;
    return base_fail(err, BASE_FAILED, "this engine only plans: it has no memory to run in");
}

const struct engine_backend engine_backend_plan = {
    .name = "plan",
    .open = engine_cpu_open,
    .close = engine_cpu_close,
    .buffer_new = plan_buffer_new,
    .buffer_free = plan_buffer_free,
    .row = engine_cpu_row,
    .fuses_gate = engine_cpu_fuses_gate,
    .measure = engine_cpu_measure,
    .prepare = engine_cpu_prepare,
    .run = plan_run,
    .kv_form = engine_cpu_kv_form,
    .kv_copy = engine_cpu_kv_copy,
};
