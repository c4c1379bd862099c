/* test/support_gpu.h: an engine with a GPU of the fake driver (test/fake_cuda.h). */
#pragma once

#include "test/support.h"

#include "engine/gpu/gpu.h"
#include "engine/graph_internal.h"
#include "test/fake_cuda.h"
#include "test/support_random.h"
#include "test/support_row.h"
#include <stdlib.h>
#include <string.h>

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

/* A matrix of weights in both memories. */
struct weights {
    struct engine_tensor here, there;
    struct engine_buffer buffer;
    void *data;
};

static inline struct weights weights_new(const struct rig *rig, const struct quant_type *type,
                                         int64_t k, int64_t rows, uint64_t *rng)
{
    struct base_error err = BASE_ERROR_INIT;
    const size_t bytes = (size_t)(quant_row_size(type, k) * rows);
    struct weights w = {.data = malloc(bytes)};
    float *x = malloc((size_t)k * sizeof *x);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < k; i++) x[i] = support_random_gauss(rng);
        support_row_make(type, k, x, (char *)w.data + (size_t)(r * quant_row_size(type, k)));
    }
    free(x);
    bool ok = engine_tensor_init(&w.here, type, 2, (int64_t[]){k, rows}, w.data, "w", &err) &&
              engine_buffer_new(rig->place, ENGINE_BUFFER_WEIGHTS, bytes, &w.buffer, &err);
    if (!ok) fail_msg("%s", err.text);
    engine_place_write(rig->place, w.buffer.base, w.data, bytes);
    w.there = w.here;
    w.there.data = w.buffer.base;
    w.there.place = rig->place;
    return w;
}

static inline void weights_free(struct weights *w)
{
    engine_buffer_free(&w->buffer);
    free(w->data);
}

/* out = second(doubled(first(x) and second(x))), with the products on the GPU or here. */
static inline bool multiply(const struct rig *rig, struct weights *first, struct weights *second,
                            bool on_gpu, int64_t columns, uint64_t seed, float *out,
                            struct base_error *err)
{
    struct engine_graph *g = engine_graph_new(rig->engine, 16, err);
    const int64_t k = first->here.ne[0];
    struct engine_tensor *x = engine_input(g, QUANT_F32, 2, (int64_t[]){k, columns}, "x");
    struct engine_tensor *w[2] = {on_gpu ? &first->there : &first->here,
                                  on_gpu ? &second->there : &second->here};
    engine_graph_set_place(g, &rig->engine->place[on_gpu]);
    struct engine_tensor *products = engine_mul_mat_cat(g, w, 2, x);
    engine_graph_set_place(g, &rig->engine->place[0]);
    struct engine_tensor *doubled = engine_add(g, products, products);
    engine_output(g, doubled);
    bool ok = engine_graph_plan(g, true, err);
    if (ok) {
        float *to = engine_input_data(x);
        for (int64_t i = 0; i < k * columns; i++) to[i] = support_random_gauss(&seed);
        ok = engine_graph_run(g, err);
    }
    if (ok) memcpy(out, engine_output_data(doubled), (size_t)engine_tensor_bytes(doubled));
    engine_graph_free(g);
    return ok;
}
