/* engine/gpu/backend_gpu.c: a GPU's row of engine/backend.h. A segment's steps are started in
 * order; the GPU does them in that order, and a run returns when they are done. */
#include "base/interrupt.h"
#include "engine/backend.h"
#include "engine/cpu/cpu_plan.h"
#include "engine/gpu/gpu_op.h"
#include "engine/plan.h"
#include <stdlib.h>

#define ADDRESS(name) &engine_gpu_op_##name,
static const struct engine_gpu_op *const rows[] = {ENGINE_GPU_OPS(ADDRESS)};

static const void *row_of(const struct engine_tensor *node)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i]->op == node->op && rows[i]->supports(node)) return rows[i];
    return NULL;
}

static bool measure(struct engine_plan *plan, const struct engine_segment *segment,
                    const struct engine *engine, struct base_error *err)
{
    struct engine_plan_memory *m = &plan->memory[segment->place->index];
    (void)engine;
    (void)err;
    for (int s = segment->first_step; s < segment->first_step + segment->n_steps; s++) {
        const struct engine_gpu_op *row = plan->steps[s].row;
        const int64_t bytes = row->scratch ? row->scratch(plan->steps[s].node) : 0;
        if ((uint64_t)bytes > m->scratch_bytes) m->scratch_bytes = (uint64_t)bytes;
    }
    return true;
}

static void prepare(struct engine_plan *plan, const struct engine_segment *segment)
{
    (void)plan;
    (void)segment;
}

static bool run(const struct engine_plan *plan, const struct engine_segment *segment,
                const struct engine *engine, struct base_error *err)
{
    struct engine_gpu *gpu = segment->place->device;
    (void)engine;
    for (int s = segment->first_step; s < segment->first_step + segment->n_steps; s++) {
        const struct engine_gpu_op *row = plan->steps[s].row;
        row->launch(gpu, plan->steps[s].node, plan->memory[segment->place->index].scratch);
    }
    return engine_gpu_wait(gpu, err) && base_goes_on(err);
}

/* The rows of a unit are interleaved: copies both units to the host, the row there, and one back.
 */
static void kv_copy(const struct engine_place *place, const struct engine_kv_form *form, char *to,
                    uint32_t to_row, const char *from, uint32_t from_row)
{
    struct engine_gpu *gpu = place->device;
    char *units = malloc(2 * form->bytes);
    if (!units) {
        base_fail(&gpu->failure, BASE_NO_MEMORY, "no memory to copy a row of a cache");
        return;
    }
    engine_gpu_read(place, units, to, form->bytes);
    engine_gpu_read(place, units + form->bytes, from, form->bytes);
    engine_cpu_kv_copy(place, form, units, to_row, units + form->bytes, from_row);
    engine_gpu_write(place, to, units, form->bytes);
    free(units);
}

const struct engine_backend engine_backend_gpu = {
    .name = "gpu",
    .buffer_new = engine_gpu_buffer_new,
    .buffer_free = engine_gpu_buffer_free,
    .write = engine_gpu_write,
    .read = engine_gpu_read,
    .row = row_of,
    .measure = measure,
    .prepare = prepare,
    .run = run,
    .kv_form = engine_cpu_kv_form,
    .kv_copy = kv_copy,
};
