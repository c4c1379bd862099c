/* engine/gpu/plan_gpu.c: a GPU's place that only plans: see struct engine_gpu_plan. */
#include "base/size.h"
#include "engine/backend.h"
#include "engine/cpu/cpu_plan.h"
#include "engine/gpu/gpu.h"

enum {
    ALIGN = 64,
    /* The driver's pages: a buffer of half a page or more has pages of its own. */
    DRIVER_PAGE = 2 << 20
};

static bool plan_buffer_new(const struct engine_place *place, uint64_t size,
                            struct engine_buffer *out, struct base_error *err)
{
    struct engine_gpu_plan *plan = place->device;
    uint64_t bytes, *of_kind = &plan->bytes[out->kind];
    if (!base_align_up(size ? size : 1, size < DRIVER_PAGE / 2 ? ALIGN : DRIVER_PAGE, &bytes) ||
        !base_add(*of_kind, bytes, of_kind) || !base_add(plan->total, bytes, &plan->total))
        return base_fail(err, BASE_NO_MEMORY, "the memory of a GPU does not fit 64-bit sizes");
    out->size = bytes;
    /* Addresses are numbers for the host; those of buffers differ. */
    out->base = (char *)(uintptr_t)(plan->address += DRIVER_PAGE);
    return base_add(plan->address, bytes, &plan->address) ||
           base_fail(err, BASE_NO_MEMORY, "no addresses for a buffer of a GPU");
}

static void plan_buffer_free(struct engine_buffer *buffer)
{
    struct engine_gpu_plan *plan = buffer->place->device;
    plan->bytes[buffer->kind] -= buffer->size;
    plan->total -= buffer->size;
}

static void plan_write(const struct engine_place *place, char *to, const void *from, uint64_t size)
{
    (void)place, (void)to, (void)from, (void)size;
}

static void plan_read(const struct engine_place *place, void *to, const char *from, uint64_t size)
{
    (void)place, (void)to, (void)from, (void)size;
}

static const void *plan_row(const struct engine_tensor *node)
{
    return engine_backend_gpu.row(node);
}

static bool plan_measure(struct engine_plan *plan, const struct engine_segment *segment,
                         const struct engine *engine, struct base_error *err)
{
    return engine_backend_gpu.measure(plan, segment, engine, err);
}

static void plan_prepare(struct engine_plan *plan, struct engine_segment *segment)
{
    (void)plan, (void)segment;
}

static bool plan_run(const struct engine_plan *plan, const struct engine_segment *segment,
                     const struct engine *engine, struct base_error *err)
{
    (void)plan, (void)segment, (void)engine;
    return base_fail(err, BASE_FAILED, "this GPU only plans: it has no memory to run in");
}

const struct engine_backend engine_backend_gpu_plan = {
    .name = "gpu",
    .buffer_new = plan_buffer_new,
    .buffer_free = plan_buffer_free,
    .write = plan_write,
    .read = plan_read,
    .row = plan_row,
    .measure = plan_measure,
    .prepare = plan_prepare,
    .run = plan_run,
    .kv_form = engine_cpu_kv_form,
    .kv_copy = engine_cpu_kv_copy,
};
