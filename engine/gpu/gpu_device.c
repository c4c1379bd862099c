/* engine/gpu/gpu_device.c: see engine/gpu/gpu_device.h. */
#include "engine/gpu/gpu_device.h"
#include "engine/gpu/device/gpu_ops.h"
#include "engine/gpu/gpu_code.h"
#include "engine/gpu/machine_code.h"
#include "quant/gpu/gpu_quant.h"
#include <stdlib.h>
#include <string.h>

enum { LEAST_MAJOR = 8 }; /* compute capability that the PTX is for (Makefile) */

/* ---- Opening ---- */

static bool read_facts(const struct engine_gpu_driver *driver, int index, int *device,
                       struct engine_gpu_facts *facts, struct base_error *err)
{
    size_t memory = 0;
    *facts = (struct engine_gpu_facts){0};
    if (driver->device_get(device, index) != 0)
        return base_fail(err, BASE_USAGE, "there is no GPU %d", index);
    const bool ok =
        driver->version(&facts->driver) == 0 &&
        driver->device_name(facts->name, sizeof facts->name, *device) == 0 &&
        driver->device_attribute(&facts->major, ENGINE_GPU_ATTRIBUTE_MAJOR, *device) == 0 &&
        driver->device_attribute(&facts->minor, ENGINE_GPU_ATTRIBUTE_MINOR, *device) == 0 &&
        driver->device_attribute(&facts->units, ENGINE_GPU_ATTRIBUTE_UNITS, *device) == 0 &&
        driver->device_attribute(&facts->cache, ENGINE_GPU_ATTRIBUTE_CACHE, *device) == 0 &&
        driver->device_memory(&memory, *device) == 0;
    facts->memory = memory;
    return ok || base_fail(err, BASE_FAILED, "the driver does not describe GPU %d", index);
}

/* Reads the memory that is free, in the context of the calling thread. */
static bool read_free(const struct engine_gpu_driver *driver, uint64_t *out, struct base_error *err)
{
    size_t bytes = 0, all;
    const int result = driver->memory_info(&bytes, &all);
    *out = bytes;
    return engine_gpu_check(driver, result, "cuMemGetInfo", err);
}

bool engine_gpu_find(const struct engine_gpu_options *options, struct engine_gpu_facts *out,
                     struct base_error *err)
{
    struct engine_gpu_driver driver;
    int device;
    void *context = NULL;
    const bool ok =
        engine_gpu_driver_open(options->library, &driver, err) &&
        read_facts(&driver, options->index, &device, out, err) &&
        engine_gpu_check(&driver, driver.context_take(&context, device), "cuDevicePrimaryCtxRetain",
                         err) &&
        engine_gpu_check(&driver, driver.context_set(context), "cuCtxSetCurrent", err) &&
        read_free(&driver, &out->free, err);
    if (context) (void)driver.context_release(device);
    engine_gpu_driver_close(&driver);
    return ok;
}

static bool take_kernel(struct engine_gpu *gpu, const char *name, void **out,
                        struct base_error *err)
{
    const int result = gpu->driver.module_kernel(out, gpu->module, name);
    return engine_gpu_check(&gpu->driver, result, name, err);
}

static bool take_quant_kernel(struct engine_gpu *gpu, const char *kernel, const char *of,
                              void **out, struct base_error *err)
{
    char name[QUANT_GPU_NAME_SIZE];
    quant_gpu_name(kernel, of, name);
    return take_kernel(gpu, name, out, err);
}

/* States that blocks of a kernel have more shared memory than others. */
static bool set_shared(struct engine_gpu *gpu, void *kernel, uint32_t bytes, struct base_error *err)
{
    return engine_gpu_check(&gpu->driver,
                            gpu->driver.kernel_set(kernel, ENGINE_GPU_KERNEL_SHARED, (int)bytes),
                            "cuFuncSetAttribute", err);
}

/* The kernels of types whose rows are copied to shared memory. */
static bool take_staged(struct engine_gpu *gpu, const struct quant_type *type,
                        struct base_error *err)
{
    void **tile = &gpu->tile[type->id];
    return take_quant_kernel(gpu, "tile", quant_gpu_type_name(type), tile, err) &&
           set_shared(gpu, *tile, QUANT_GPU_TILE_MOST, err) && /* some types share a kernel */
           set_shared(gpu, gpu->gemv[type->id], QUANT_GPU_STAGED_BYTES, err);
}

const char *const engine_gpu_kernel_names[ENGINE_GPU_KERNELS] = {
    [ENGINE_GPU_KERNEL_MAP] = "engine_gpu_map",
    [ENGINE_GPU_KERNEL_SET_ROWS] = "engine_gpu_set_rows",
    [ENGINE_GPU_KERNEL_NORM] = "engine_gpu_norm",
    [ENGINE_GPU_KERNEL_NORM_LONG] = "engine_gpu_norm_long",
    [ENGINE_GPU_KERNEL_SUM_ROWS] = "engine_gpu_sum_rows",
    [ENGINE_GPU_KERNEL_SOFT_MAX] = "engine_gpu_soft_max",
    [ENGINE_GPU_KERNEL_CHOOSE_EXPERTS] = "engine_gpu_choose_experts",
    [ENGINE_GPU_KERNEL_GROUP_COLUMNS] = "engine_gpu_group_columns",
    [ENGINE_GPU_KERNEL_EXPERT_WEIGHTS] = "engine_gpu_expert_weights",
    [ENGINE_GPU_KERNEL_EXPERT_SUM] = "engine_gpu_expert_sum",
    [ENGINE_GPU_KERNEL_ROPE] = "engine_gpu_rope",
    [ENGINE_GPU_KERNEL_SET_KV] = "engine_gpu_set_kv",
    [ENGINE_GPU_KERNEL_CHAINS] = "engine_gpu_chains",
    [ENGINE_GPU_KERNEL_ATTENTION] = "engine_gpu_attention",
    [ENGINE_GPU_KERNEL_ATTENTION_TILE] = "engine_gpu_attention_tile",
    [ENGINE_GPU_KERNEL_ATTENTION_MERGE] = "engine_gpu_attention_merge",
    [ENGINE_GPU_KERNEL_ATTENTION_FLOATS] = "engine_gpu_attention_floats",
    [ENGINE_GPU_KERNEL_ATTENTION_FLOATS_MERGE] = "engine_gpu_attention_floats_merge",
    [ENGINE_GPU_KERNEL_CHOOSE_SCORES] = "engine_gpu_choose_scores",
    [ENGINE_GPU_KERNEL_CHOOSE_KEYS] = "engine_gpu_choose_keys",
    [ENGINE_GPU_KERNEL_COMPRESS_KEYS] = "engine_gpu_compress_keys",
    [ENGINE_GPU_KERNEL_SINKHORN] = "engine_gpu_sinkhorn",
    [ENGINE_GPU_KERNEL_MUL_MAT_TRANSPOSED] = "engine_gpu_mul_mat_transposed",
    [ENGINE_GPU_KERNEL_ADD_LOW_RANK] = "engine_gpu_add_low_rank",
    [ENGINE_GPU_KERNEL_ROOFLINE] = "engine_gpu_roofline",
    [ENGINE_GPU_KERNEL_SSM_CONV] = "engine_gpu_ssm_conv",
    [ENGINE_GPU_KERNEL_SSM_SCAN] = "engine_gpu_ssm_scan",
    [ENGINE_GPU_KERNEL_WKV6] = "engine_gpu_wkv6",
    [ENGINE_GPU_KERNEL_WKV7] = "engine_gpu_wkv7",
    [ENGINE_GPU_KERNEL_GATED_DELTA] = "engine_gpu_gated_delta",
};

static bool take_kernels(struct engine_gpu *gpu, struct base_error *err)
{
    bool ok = true;
    for (int i = 0; ok && i < ENGINE_GPU_KERNELS; i++)
        ok = take_kernel(gpu, engine_gpu_kernel_names[i], &gpu->op[i], err);
    ok = ok &&
         set_shared(gpu, gpu->op[ENGINE_GPU_KERNEL_ATTENTION_TILE],
                    engine_gpu_attention_tile_bytes(ENGINE_GPU_ATTENTION_TILE_SIZE, false), err);
    for (uint32_t id = 0; ok && id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (type && type->act)
            ok = take_quant_kernel(gpu, "gemv", quant_gpu_type_name(type), &gpu->gemv[id], err);
        if (ok && type && quant_gpu_lanes(type->id)) ok = take_staged(gpu, type, err);
    }
    for (int i = 0; ok && i < QUANT_ACT_FORMS; i++) {
        const struct quant_act_form *form = quant_act_forms[i];
        if (quant_gpu_converts(form))
            ok = take_quant_kernel(gpu, "quantize", form->name, &gpu->quantize[i], err);
    }
    return ok && take_kernel(gpu, "quant_gpu_float_tile", &gpu->float_tile, err);
}

static bool open_gpu(struct engine_gpu *gpu, const struct engine_gpu_options *options,
                     struct base_error *err)
{
    struct engine_gpu_driver *d = &gpu->driver;
    size_t size;
    gpu->failure = BASE_ERROR_INIT;
    if (!engine_gpu_code(&size))
        return base_fail(err, BASE_USAGE, "this program was built without code for GPUs");
    if (!engine_gpu_driver_open(options->library, d, err) ||
        !read_facts(d, options->index, &gpu->device, &gpu->facts, err))
        return false;
    if (gpu->facts.major < LEAST_MAJOR)
        return base_fail(err, BASE_USAGE, "%s has compute capability %d.%d, less than %d.0",
                         gpu->facts.name, gpu->facts.major, gpu->facts.minor, LEAST_MAJOR);
    return engine_gpu_check(d, d->context_take(&gpu->context, gpu->device),
                            "cuDevicePrimaryCtxRetain", err) &&
           engine_gpu_check(d, d->context_set(gpu->context), "cuCtxSetCurrent", err) &&
           engine_gpu_check(d, d->stream_new(&gpu->stream, 0), "cuStreamCreate", err) &&
           engine_gpu_machine_code(d, &gpu->facts, options->cache, &gpu->module, err) &&
           take_kernels(gpu, err);
}

struct engine_gpu *engine_gpu_open(const struct engine_gpu_options *options, struct base_error *err)
{
    struct engine_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for a GPU"));
    if (open_gpu(gpu, options, err)) return gpu;
    engine_gpu_close(gpu);
    return NULL;
}

/* The context of another GPU may be current. */
void engine_gpu_close(struct engine_gpu *gpu)
{
    if (!gpu) return;
    if (gpu->context) (void)gpu->driver.context_set(gpu->context);
    if (gpu->module) (void)gpu->driver.module_free(gpu->module);
    if (gpu->stream) (void)gpu->driver.stream_free(gpu->stream);
    if (gpu->context) (void)gpu->driver.context_release(gpu->device);
    engine_gpu_driver_close(&gpu->driver);
    free(gpu);
}

/* ---- Work ---- */

/* Makes the GPU that of the calling thread; false after a failure. */
static bool enter(struct engine_gpu *gpu)
{
    return !gpu->failure.code &&
           engine_gpu_check(&gpu->driver, gpu->driver.context_set(gpu->context), "cuCtxSetCurrent",
                            &gpu->failure);
}

void engine_gpu_launch(struct engine_gpu *gpu, void *kernel, const struct engine_gpu_grid *grid,
                       const void *arguments)
{
    void *list[] = {(void *)arguments};
    if (kernel == gpu->left_out) {
        gpu->n_left_out++;
        return;
    }
    if (!enter(gpu)) return;
    const int result = gpu->driver.launch(kernel, grid->x, grid->y, 1, grid->threads, 1, 1,
                                          grid->shared, gpu->stream, list, NULL);
    (void)engine_gpu_check(&gpu->driver, result, "cuLaunchKernel", &gpu->failure);
}

void engine_gpu_collect(struct engine_gpu *gpu)
{
    if (enter(gpu))
        (void)engine_gpu_check(&gpu->driver,
                               gpu->driver.capture_begin(gpu->stream, ENGINE_GPU_CAPTURE_THREAD),
                               "cuStreamBeginCapture", &gpu->failure);
}

void *engine_gpu_collected(struct engine_gpu *gpu)
{
    void *graph = NULL, *prepared = NULL;
    const int result = gpu->driver.capture_end(gpu->stream, &graph);
    if (engine_gpu_check(&gpu->driver, result, "cuStreamEndCapture", &gpu->failure))
        (void)engine_gpu_check(&gpu->driver,
                               gpu->driver.graph_prepare(&prepared, graph, NULL, NULL, 0),
                               "cuGraphInstantiate", &gpu->failure);
    if (graph) (void)gpu->driver.graph_free(graph);
    return prepared;
}

void engine_gpu_collected_free(struct engine_gpu *gpu, void *graph)
{
    if (gpu->driver.context_set(gpu->context) == 0) (void)gpu->driver.prepared_free(graph);
}

void engine_gpu_replay(struct engine_gpu *gpu, void *graph)
{
    if (enter(gpu))
        (void)engine_gpu_check(&gpu->driver, gpu->driver.graph_start(graph, gpu->stream),
                               "cuGraphLaunch", &gpu->failure);
}

bool engine_gpu_wait(struct engine_gpu *gpu, struct base_error *err)
{
    if (enter(gpu))
        (void)engine_gpu_check(&gpu->driver, gpu->driver.stream_wait(gpu->stream),
                               "cuStreamSynchronize", &gpu->failure);
    return !gpu->failure.code || base_fail(err, gpu->failure.code, "%s", gpu->failure.text);
}

/* ---- Memory ---- */

/* Addresses are numbers for the host, which never reads through them. */
static uint64_t address_of(const char *data)
{
    return (uint64_t)(uintptr_t)data;
}

bool engine_gpu_buffer_new(const struct engine_place *place, uint64_t size,
                           struct engine_buffer *out, struct base_error *err)
{
    struct engine_gpu *gpu = place->device;
    uint64_t address;
    if (!enter(gpu)) return engine_gpu_wait(gpu, err);
    if (gpu->driver.memory_new(&address, size ? size : 1) != 0)
        return base_fail(err, BASE_NO_MEMORY, "%s has no memory for %llu bytes", gpu->facts.name,
                         (unsigned long long)size);
    out->base = (char *)(uintptr_t)address;
    out->size = size;
    return engine_gpu_check(&gpu->driver, gpu->driver.memory_set(address, 0, size, gpu->stream),
                            "cuMemsetD8Async", err);
}

void engine_gpu_buffer_free(struct engine_buffer *buffer)
{
    struct engine_gpu *gpu = buffer->place->device;
    if (gpu->driver.context_set(gpu->context) == 0)
        (void)gpu->driver.memory_free(address_of(buffer->base));
}

bool engine_gpu_read_facts(struct engine_gpu *gpu, struct engine_gpu_facts *out,
                           struct base_error *err)
{
    *out = gpu->facts;
    return enter(gpu) ? read_free(&gpu->driver, &out->free, err) : engine_gpu_wait(gpu, err);
}

/* The driver copies from pageable memory before it returns. */
void engine_gpu_write(const struct engine_place *place, char *to, const void *from, uint64_t size)
{
    struct engine_gpu *gpu = place->device;
    if (!enter(gpu)) return;
    (void)engine_gpu_check(&gpu->driver, gpu->driver.write(address_of(to), from, size, gpu->stream),
                           "cuMemcpyHtoDAsync", &gpu->failure);
}

void engine_gpu_copy(struct engine_gpu *gpu, char *to, const char *from, uint64_t size)
{
    if (!enter(gpu)) return;
    const int result = gpu->driver.copy(address_of(to), address_of(from), size, gpu->stream);
    (void)engine_gpu_check(&gpu->driver, result, "cuMemcpyDtoDAsync", &gpu->failure);
}

/* Gives zeros after a failure, which the next run reports. */
void engine_gpu_read(const struct engine_place *place, void *to, const char *from, uint64_t size)
{
    struct engine_gpu *gpu = place->device;
    struct base_error known = BASE_ERROR_INIT; /* is in gpu->failure */
    if (enter(gpu))
        (void)engine_gpu_check(&gpu->driver,
                               gpu->driver.read(to, address_of(from), size, gpu->stream),
                               "cuMemcpyDtoHAsync", &gpu->failure);
    if (!engine_gpu_wait(gpu, &known)) memset(to, 0, size);
}
