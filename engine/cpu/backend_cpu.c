/* engine/cpu/backend_cpu.c: runs a planned graph on the engine's thread pool.
 *
 * One pool job runs the whole graph: each worker executes the list of steps and computes its share
 * of each; the plan has the barriers. No function allocates after buffer_new. */
#include "base/interrupt.h"
#include "base/os.h"
#include "base/size.h"
#include "engine/backend.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_op.h"
#include "engine/cpu/cpu_plan.h"
#include "engine/cpu/read_ahead.h"
#include "engine/plan.h"
#include "engine/profile.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BUFFER_ALIGN = 4096 };

/* Large buffers (those of prompts) have huge pages if the system supports them: prompts are 5 to 20
 * % faster. */
static bool new_pages(uint64_t size, struct engine_buffer *out)
{
    const bool huge = size >= ENGINE_HUGE_PAGE;
    const uint64_t align = huge ? ENGINE_HUGE_PAGE : BUFFER_ALIGN;
    uint64_t bytes;
    if (!base_align_up(size ? size : 1, align, &bytes)) return false;
    out->base = aligned_alloc(align, bytes);
    if (!out->base) return false;
    if (huge) base_os_huge_pages(out->base, bytes);
    memset(out->base, 0, size);
    return true;
}

/* Pages that read as zero and take physical memory when they are written. */
static bool map_pages(uint64_t size, struct engine_buffer *out)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base != MAP_FAILED) out->base = base;
    return base != MAP_FAILED;
}

static bool cpu_buffer_new(const struct engine_place *place, uint64_t size,
                           struct engine_buffer *out, struct base_error *err)
{
    const bool is_state = out->kind == ENGINE_BUFFER_STATE;
    (void)place;
    out->size = size;
    return (is_state ? map_pages(size, out) : new_pages(size, out)) ||
           base_fail(err, BASE_NO_MEMORY, "no memory for %s of %llu bytes",
                     is_state ? "a cache" : "a graph", (unsigned long long)size);
}

static void cpu_buffer_free(struct engine_buffer *buffer)
{
    if (buffer->kind == ENGINE_BUFFER_STATE)
        munmap(buffer->base, buffer->size);
    else
        free(buffer->base);
}

struct cpu_run {
    const struct engine_plan *plan;
    const struct engine_segment *segment;
    const struct engine *engine;
    /* The step at which all workers stop. Worker 0 sets it before the barrier of that step, so that
     * workers at an earlier step stop at the same one. */
    atomic_int stop_at;
};

static void cpu_job(const struct engine_worker *worker, void *data)
{
    struct cpu_run *run = data;
    const struct engine_worker lone = {.ith = 0, .nth = 1, .pool = worker->pool};
    const struct engine_segment *segment = run->segment;
    const struct engine_plan_memory *memory = &run->plan->memory[segment->place->index];
    struct engine_task task = {.cpu = run->engine->cpu,
                               .observer = run->engine->observer,
                               .scratch = memory->scratch,
                               .scratch_size = (int64_t)memory->scratch_bytes};
    struct engine_profile *profile = worker->ith == 0 ? run->engine->profile : NULL;
    if (profile) engine_profile_start(profile);
    for (int s = segment->first_step; s < segment->first_step + segment->n_steps; s++) {
        const struct engine_step *step = &run->plan->steps[s];
        if (step->barrier) {
            if (worker->ith == 0 && base_interrupted()) atomic_store(&run->stop_at, s);
            engine_pool_barrier(worker);
            if (atomic_load(&run->stop_at) <= s) return;
        }
        if (step->chosen && run->engine->reads_ahead)
            engine_read_ahead(run->plan, segment, s, step->chosen, worker);
        const struct engine_cpu_op *row = step->row;
        if (profile) {
            const char *route = row->route ? row->route(run->engine->cpu, step->node) : NULL;
            engine_profile_step(profile, step->node, route, step->barrier);
        }
        if (step->alone && worker->ith != 0) continue;
        task.worker = step->alone ? &lone : worker;
        row->run(&task, step->node);
    }
}

bool engine_cpu_run(const struct engine_plan *plan, const struct engine_segment *segment,
                    const struct engine *engine, struct base_error *err)
{
    struct cpu_run run = {.plan = plan, .segment = segment, .engine = engine, .stop_at = INT_MAX};
    if (!base_interrupted()) engine_pool_run(engine->cpu->pool, cpu_job, &run);
    if (engine->profile) engine_profile_end(engine->profile);
    return base_goes_on(err);
}

const struct engine_backend engine_backend_cpu = {
    .name = "cpu",
    .open = engine_cpu_open,
    .close = engine_cpu_close,
    .buffer_new = cpu_buffer_new,
    .buffer_free = cpu_buffer_free,
    .row = engine_cpu_row,
    .fuses_gate = engine_cpu_fuses_gate,
    .measure = engine_cpu_measure,
    .prepare = engine_cpu_prepare,
    .run = engine_cpu_run,
    .kv_form = engine_cpu_kv_form,
    .kv_copy = engine_cpu_kv_copy,
};
