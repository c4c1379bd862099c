/* test/bench/bench_gpu.c: speeds of a GPU, for docs/gpu.md: copying memory, starting kernels, and
 * products of each type of weights with one column and with many; or a step of a model, and what it
 * takes less without each of its kernels. */
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/gpu/gpu.h"
#include "engine/gpu/gpu_device.h"
#include "models/model.h"
#include "quant/gpu/gpu_quant.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    K = 4096,
    ROWS = 14336,
    MATRICES = 8 /* together larger than the cache */,
    TURNS = 5,
    COLUMNS = 512
};

static void check(bool ok, const struct base_error *err)
{
    if (ok) return;
    fprintf(stderr, "bench_gpu: %s\n", err->text);
    exit(1);
}

/* Seconds of a product of `type` with `columns` columns, at best; the matrices take turns. */
static double product_time(struct engine_gpu *gpu, const struct engine_place *place,
                           const struct quant_type *type, int columns)
{
    struct base_error err = BASE_ERROR_INIT;
    const uint64_t bytes = (uint64_t)(quant_row_size(type, K) * ROWS);
    const struct quant_act_parts parts = quant_act_parts(type->act, K);
    struct engine_buffer w, a, out;
    double best = 1e9;
    check(engine_buffer_new(place, ENGINE_BUFFER_WEIGHTS, bytes * MATRICES, &w, &err) &&
              engine_buffer_new(place, ENGINE_BUFFER_GRAPH, (uint64_t)(parts.bytes * (columns + 1)),
                                &a, &err) &&
              engine_buffer_new(place, ENGINE_BUFFER_GRAPH,
                                (uint64_t)columns * ROWS * sizeof(float), &out, &err),
          &err);
    const struct quant_gpu_gemv_shape shape = quant_gpu_gemv_shape(type, K, ROWS);
    const struct engine_gpu_grid grid = {quant_gpu_gemv_blocks(&shape, ROWS), (uint32_t)columns,
                                         32 * (uint32_t)shape.warps, shape.shared};
    const struct engine_gpu_grid tiles = {
        quant_gpu_tiles(&(struct quant_gpu_matrices){0}, ROWS, columns), 1, QUANT_GPU_TILE_THREADS,
        quant_gpu_tile_bytes(type)};
    for (int i = 0; i < TURNS; i++) {
        const double start = base_seconds();
        for (int m = 0; m < MATRICES; m++) {
            const struct quant_gpu_gemv gemv = {
                .shape = shape,
                .k = K,
                .n_rows = ROWS,
                .row_bytes = quant_row_size(type, K),
                .out_stride = ROWS,
                .w = (const uint8_t *)w.base + bytes * (uint64_t)m,
                .a = {quant_act_at(&parts, a.base), parts.bytes},
                .out = (float *)(void *)out.base,
            };
            const struct quant_gpu_tile tile = {.gemv = gemv, .n_columns = columns};
            if (columns > 1 && gpu->tile[type->id])
                engine_gpu_launch(gpu, gpu->tile[type->id], &tiles, &tile);
            else
                engine_gpu_launch(gpu, gpu->gemv[type->id], &grid, &gemv);
        }
        check(engine_gpu_wait(gpu, &err), &err);
        const double seconds = (base_seconds() - start) / MATRICES;
        if (seconds < best) best = seconds;
    }
    engine_buffer_free(&w);
    engine_buffer_free(&a);
    engine_buffer_free(&out);
    return best;
}

static void bench_type(struct engine_gpu *gpu, const struct engine_place *place,
                       const struct quant_type *type, bool many)
{
    const double one = product_time(gpu, place, type, 1);
    printf("%-8s 1 column %7.1f us %7.0f GB/s", type->name, one * 1e6,
           (double)(quant_row_size(type, K) * ROWS) / one * 1e-9);
    if (many) {
        const double all = product_time(gpu, place, type, COLUMNS);
        printf("   %d columns %8.1f us %6.1f T/s", COLUMNS, all * 1e6,
               2.0 * K * ROWS * COLUMNS / all * 1e-12);
    }
    printf("\n");
}

/* Milliseconds of a step of one token, at best of two runs. */
static double step_time(struct model *model, int steps)
{
    struct base_error err = BASE_ERROR_INIT;
    struct model_session_options options = model_session_options_default();
    options.n_ctx = 512;
    struct model_session *session = model_session_new(model, &options, &err);
    check(session != NULL, &err);
    double best = 1e9;
    for (int run = 0; run < 3; run++) { /* the first one collects the kernels */
        const double start = base_seconds();
        for (int i = 0; i < steps; i++) {
            struct model_token token = {.id = i, .wants_logits = true};
            check(model_eval_batch(session, &token, 1, NULL, NULL, &err), &err);
        }
        const double ms = (base_seconds() - start) * 1e3 / steps;
        if (run && ms < best) best = ms;
    }
    model_session_free(session);
    return best;
}

/* What a step takes less without a kernel, whose results are then old ones. */
static void bench_kernel(struct engine_gpu *gpu, struct model *model, double all, const char *name,
                         const void *kernel)
{
    enum { STEPS = 8 };
    gpu->left_out = kernel;
    gpu->n_left_out = 0;
    (void)step_time(model, 2);
    const int starts = gpu->n_left_out / 2; /* plainly, and collected */
    if (starts) {
        const double ms = all - step_time(model, STEPS);
        printf("  %-36s %4d starts %8.3f ms %7.2f us each\n", name, starts, ms, ms * 1e3 / starts);
    }
    gpu->left_out = NULL;
}

/* A step of one token of a model whose layers are all on the GPU, and the kernels' parts of it. */
static void bench_model(struct engine_gpu *gpu, struct engine *engine,
                        const struct engine_place *place, const char *path)
{
    enum { STEPS = 32 };
    struct base_error err = BASE_ERROR_INIT;
    const struct model_placement placement = {
        .place = place, .n_layers = UINT32_MAX, .output = true};
    struct gguf_file *file = gguf_open(path, &err);
    check(file != NULL, &err);
    struct model *model = model_open(file, engine, &placement, &err);
    check(model != NULL, &err);
    const double all = step_time(model, STEPS);
    printf("%.3f ms a step; less without a kernel:\n", all);
    for (int i = 0; i < ENGINE_GPU_KERNELS; i++)
        bench_kernel(gpu, model, all, engine_gpu_kernel_names[i], gpu->op[i]);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        if (gpu->gemv[id]) {
            char name[QUANT_GPU_NAME_SIZE];
            quant_gpu_name("gemv", quant_type_by_id(id)->name, name);
            bench_kernel(gpu, model, all, name, gpu->gemv[id]);
        }
    for (int i = 0; i < QUANT_ACT_FORMS; i++)
        if (gpu->quantize[i]) bench_kernel(gpu, model, all, "quantize", gpu->quantize[i]);
    model_close(model);
    gguf_close(file);
}

int main(int argc, char **argv)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    options.n_threads = 1;
    double start = base_seconds();
    struct engine_gpu *gpu = engine_gpu_open(
        &(struct engine_gpu_options){.library = "libcuda.so.1", .cache = "/tmp"}, &err);
    check(gpu != NULL, &err);
    printf("opened in %.0f ms\n", (base_seconds() - start) * 1e3);
    struct engine *engine = engine_new(&options, &err);
    check(engine != NULL, &err);
    const struct engine_place *place = engine_add_place(engine, &engine_backend_gpu, gpu, &err);
    check(place != NULL, &err);
    if (argc > 1 && strchr(argv[1], '.')) {
        bench_model(gpu, engine, place, argv[1]);
        return 0;
    }
    printf("copies within memory: %.0f GB/s read and written\n",
           engine_gpu_bandwidth(gpu, &err) * 1e-9);
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act || K % type->block_len) continue;
        bool chosen = argc < 2;
        for (int i = 1; i < argc; i++) chosen = chosen || strcmp(argv[i], type->name) == 0;
        if (chosen) bench_type(gpu, place, type, argc > 1);
    }
    engine_free(engine);
    engine_gpu_close(gpu);
    return 0;
}
