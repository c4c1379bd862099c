/* engine/gpu/plan_gpu.c: a GPU's place that only plans: see struct engine_gpu_plan. */
#include "engine/backend.h"
#include "engine/cpu/cpu_plan.h"
#include "engine/gpu/gpu.h"

#define MOST (UINT64_MAX / 4) /* sums of three cannot overflow */

enum {
    ALIGN = 64,
    /* The driver's pages: a buffer of half a page or more has pages of its own. */
    DRIVER_PAGE = 2 << 20
};

/* Returns the bytes that the driver takes for a buffer. */
static uint64_t taken(uint64_t size)
{
    const uint64_t unit = size < DRIVER_PAGE / 2 ? ALIGN : DRIVER_PAGE;
    return (size + unit - 1) / unit * unit;
}

static bool plan_buffer_new(const struct engine_place *place, uint64_t size,
                            struct engine_buffer *out, struct base_error *err)
{
    struct engine_gpu_plan *plan = place->device;
    if (size > MOST || plan->total > MOST || plan->address > MOST)
        return base_fail(err, BASE_NO_MEMORY, "no GPU has memory for %llu bytes",
                         (unsigned long long)size);
    plan->bytes[out->kind] += size;
    plan->total += taken(size);
    /* Addresses are numbers for the host; those of buffers differ. */
    out->base = (char *)(uintptr_t)(plan->address + DRIVER_PAGE);
    out->size = size;
    plan->address += DRIVER_PAGE + taken(size);
    return true;
}

static void plan_buffer_free(struct engine_buffer *buffer)
{
    struct engine_gpu_plan *plan = buffer->place->device;
    plan->bytes[buffer->kind] -= buffer->size;
    plan->total -= taken(buffer->size);
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

static struct engine_kv_form plan_kv_form(enum engine_kv_q16 what, const struct quant_type *type,
                                          uint32_t size)
{
    return engine_backend_gpu.kv_form(what, type, size);
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
    .kv_form = plan_kv_form,
    .kv_copy = engine_cpu_kv_copy,
};
