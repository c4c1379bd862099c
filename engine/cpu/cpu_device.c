/* engine/cpu/cpu_device.c: opens and closes the processor as a device. */
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/matmul/blas.h"
#include "engine/cpu/threads.h"
#include <stdlib.h>

struct engine_cpu *engine_cpu_new(const struct engine_options *options, struct base_error *err)
{
    const int n_threads = options->n_threads ? options->n_threads : engine_threads_default();
    struct engine_cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for the engine"));
    quant_kernels_init(&cpu->quant, options->level);
    engine_vec_init(&cpu->vec, cpu->quant.level);
    if (options->use_blas && !(cpu->blas = engine_blas_open(err))) goto fail;
    cpu->pool = engine_pool_new(n_threads, options->pin_threads, err);
    if (!cpu->pool) goto fail;
    return cpu;

fail:
    engine_cpu_free(cpu);
    return NULL;
}

void engine_cpu_free(struct engine_cpu *cpu)
{
    if (!cpu) return;
    engine_pool_free(cpu->pool);
    engine_blas_close(cpu->blas);
    free(cpu);
}

bool engine_cpu_open(struct engine *e, struct base_error *err)
{
    e->cpu = engine_cpu_new(&e->options, err);
    if (!e->cpu) return false;
    e->options.level = e->cpu->quant.level;
    e->options.n_threads = engine_pool_threads(e->cpu->pool);
    return true;
}

void engine_cpu_close(struct engine *e)
{
    engine_cpu_free(e->cpu);
}
