/* engine/gpu/backend_gpu.c: a GPU's row of engine/backend.h. A segment's steps are started in
 * order; the GPU does them in that order, while this machine continues with what follows. */
#include "base/interrupt.h"
#include "engine/backend.h"
#include "engine/cpu/cpu_plan.h"
#include "engine/gpu/gpu_joins.h"
#include "engine/gpu/gpu_product.h"
#include "engine/plan.h"
#include <stdlib.h>

#define ADDRESS(name) &engine_gpu_op_##name,
static const struct engine_gpu_op *const rows[] = {ENGINE_GPU_OPS(ADDRESS)};

/* Device code has indices of 31 bits in each dimension. */
static bool fits(const struct engine_tensor *t)
{
    bool ok = true;
    for (int d = 0; t && d < ENGINE_DIMS; d++) ok = ok && t->ne[d] <= INT32_MAX;
    return ok;
}

static const void *row_of(const struct engine_tensor *node)
{
    bool ok = fits(node);
    for (int i = 0; i < ENGINE_MAX_SRC; i++) ok = ok && fits(node->src[i]);
    if (!ok) return NULL;
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

/* A segment that runs again, as each step of a generation does, is started as one graph of the
 * driver: starting its kernels one by one takes longer than they do. Arguments of kernels are
 * addresses and shapes, which a plan does not change. */
struct collected {
    int n_runs;  /* so far, up to 2 */
    void *graph; /* NULL before the second run */
};

/* Without memory, kernels are started one by one. */
static void prepare(struct engine_plan *plan, struct engine_segment *segment)
{
    (void)plan;
    segment->prepared = calloc(1, sizeof(struct collected));
}

static void forget(struct engine_segment *segment)
{
    struct collected *c = segment->prepared;
    if (c && c->graph) engine_gpu_collected_free(segment->place->device, c->graph);
    free(c);
}

static void start_all(const struct engine_plan *plan, const struct engine_segment *segment)
{
    struct engine_gpu *gpu = segment->place->device;
    const int end = segment->first_step + segment->n_steps;
    char *scratch = plan->memory[segment->place->index].scratch;
    gpu->ahead_of = NULL; /* nothing is loaded for this run */
    for (int s = segment->first_step; s < end;) {
        const struct engine_gpu_op *row = plan->steps[s].row;
        const int n = engine_gpu_join(gpu, plan->steps + s, end - s, scratch);
        if (n > 0) {
            s += n;
            continue;
        }
        engine_gpu_follow(gpu, plan->steps + s + 1, end - s - 1);
        row->launch(gpu, plan->steps[s++].node, scratch);
    }
}

static bool run(const struct engine_plan *plan, const struct engine_segment *segment,
                const struct engine *engine, struct base_error *err)
{
    struct engine_gpu *gpu = segment->place->device;
    struct collected *c = segment->prepared;
    (void)engine;
    if (c && c->n_runs < 2 && ++c->n_runs == 2) {
        engine_gpu_collect(gpu);
        start_all(plan, segment);
        c->graph = engine_gpu_collected(gpu);
    }
    if (c && c->graph)
        engine_gpu_replay(gpu, c->graph);
    else
        start_all(plan, segment);
    return base_goes_on(err);
}

static bool wait_for_device(const struct engine_place *place, struct base_error *err)
{
    return engine_gpu_wait(place->device, err);
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

/* Int16 groups, or floats. */
static struct engine_kv_form kv_form(enum engine_kv_q16 what, const struct quant_type *type,
                                     uint32_t size)
{
    struct engine_kv_form form = engine_cpu_kv_form(what, type, size);
    if (!form.is_coded && type->id != QUANT_F32) form.type = NULL;
    return form;
}

const struct engine_backend engine_backend_gpu = {
    .name = "gpu",
    .buffer_new = engine_gpu_buffer_new,
    .buffer_free = engine_gpu_buffer_free,
    .write = engine_gpu_write,
    .read = engine_gpu_read,
    .upload = engine_gpu_upload,
    .row = row_of,
    .measure = measure,
    .prepare = prepare,
    .forget = forget,
    .run = run,
    .wait = wait_for_device,
    .kv_form = kv_form,
    .kv_copy = kv_copy,
};
