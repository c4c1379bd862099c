/* engine/engine.c: the engine object: fills the kernel tables, starts the pool, loads OpenBLAS if
 * options.use_blas is set. Nothing in it changes while a graph runs. */
#include "engine/engine.h"
#include "engine/cpu/matmul/blas.h"
#include "engine/cpu/threads.h"
#include <stdlib.h>

struct engine_options engine_options_default(void)
{
    return (struct engine_options){.level = cpu_level_best()};
}

int engine_threads_default(void)
{
    struct engine_cpus allowed;
    engine_cpus_allowed(&allowed);
    return engine_threads_count("", &allowed);
}

struct engine *engine_new(const struct engine_options *options, struct base_error *err)
{
    struct engine *e = calloc(1, sizeof(*e));
    if (!e) {
        base_fail(err, BASE_NO_MEMORY, "no memory for the engine");
        return NULL;
    }
    e->options = *options;
    if (e->options.n_threads == 0) e->options.n_threads = engine_threads_default();
    quant_kernels_init(&e->quant, options->level);
    e->options.level = e->quant.level;
    engine_vec_init(&e->vec, e->options.level);
    if (options->use_blas && !(e->blas = engine_blas_open(err))) goto fail;
    e->pool = engine_pool_new(e->options.n_threads, options->pin_threads, err);
    if (!e->pool) goto fail;
    e->options.n_threads = engine_pool_threads(e->pool);
    return e;

fail:
    engine_free(e);
    return NULL;
}

void engine_set_observer(struct engine *e, const struct engine_observer *observer)
{
    e->observer = observer;
}

void engine_free(struct engine *e)
{
    if (!e) return;
    engine_pool_free(e->pool);
    engine_blas_close(e->blas);
    free(e);
}
