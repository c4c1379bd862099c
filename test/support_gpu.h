/* test/support_gpu.h: an engine with a GPU of the fake driver (test/fake_cuda.h). */
#pragma once

#include "test/support.h"

#include "engine/gpu/gpu.h"
#include "engine/graph_internal.h"
#include "test/fake_cuda.h"

static inline struct engine_gpu *open_gpu(const char *cache)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_gpu *gpu = engine_gpu_open(&(struct engine_gpu_options){.cache = cache}, &err);
    if (!gpu) fail_msg("%s", err.text);
    return gpu;
}

/* An engine with a GPU as place 1. */
struct rig {
    struct engine_gpu *gpu;
    struct engine *engine;
    const struct engine_place *place;
};

static inline struct rig rig_with_threads(int n_threads)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct rig rig = {.gpu = open_gpu(NULL)};
    options.n_threads = n_threads;
    rig.engine = engine_new(&options, &err);
    rig.place =
        rig.engine ? engine_add_place(rig.engine, &engine_backend_gpu, rig.gpu, &err) : NULL;
    if (!rig.place) fail_msg("%s", err.text);
    return rig;
}

static inline struct rig rig_new(void)
{
    return rig_with_threads(1);
}

static inline void rig_free(struct rig *rig)
{
    engine_free(rig->engine);
    engine_gpu_close(rig->gpu);
    assert_int_equal(fake_cuda.live, 0);
}
