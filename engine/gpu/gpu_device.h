/* engine/gpu/gpu_device.h: an open GPU: its memory, copies and kernels. Private to engine/gpu/.
 *
 * All work is in one stream: the GPU does it in the order of the calls. After an error of the
 * driver, the GPU does nothing more, and each run fails. */
#pragma once

#include "engine/gpu/driver.h"
#include "engine/gpu/gpu.h"
#include "engine/place.h"
#include "quant/quant.h"

/* Kernels of ops (engine/gpu/device/gpu_ops.h). */
enum engine_gpu_kernel {
    ENGINE_GPU_KERNEL_MAP,
    ENGINE_GPU_KERNEL_SET_ROWS,
    ENGINE_GPU_KERNEL_NORM,
    ENGINE_GPU_KERNEL_NORM_LONG,
    ENGINE_GPU_KERNEL_SUM_ROWS,
    ENGINE_GPU_KERNEL_SOFT_MAX,
    ENGINE_GPU_KERNEL_CHOOSE_EXPERTS,
    ENGINE_GPU_KERNEL_GROUP_COLUMNS,
    ENGINE_GPU_KERNEL_EXPERT_WEIGHTS,
    ENGINE_GPU_KERNEL_EXPERT_SUM,
    ENGINE_GPU_KERNEL_ROPE,
    ENGINE_GPU_KERNEL_SET_KV,
    ENGINE_GPU_KERNEL_CHAINS,
    ENGINE_GPU_KERNEL_ATTENTION,
    ENGINE_GPU_KERNEL_ATTENTION_TILE,
    ENGINE_GPU_KERNEL_ATTENTION_MERGE,
    ENGINE_GPU_KERNEL_ATTENTION_FLOATS,
    ENGINE_GPU_KERNEL_ATTENTION_FLOATS_MERGE,
    ENGINE_GPU_KERNEL_CHOOSE_SCORES,
    ENGINE_GPU_KERNEL_CHOOSE_KEYS,
    ENGINE_GPU_KERNEL_COMPRESS_KEYS,
    ENGINE_GPU_KERNEL_SINKHORN,
    ENGINE_GPU_KERNEL_SSM_CONV,
    ENGINE_GPU_KERNEL_SSM_SCAN,
    ENGINE_GPU_KERNEL_WKV6,
    ENGINE_GPU_KERNEL_WKV7,
    ENGINE_GPU_KERNEL_GATED_DELTA,
    ENGINE_GPU_KERNEL_MUL_MAT_TRANSPOSED,
    ENGINE_GPU_KERNEL_ADD_LOW_RANK,
    ENGINE_GPU_KERNEL_ROOFLINE,
    ENGINE_GPU_KERNELS
};

struct engine_step;

struct engine_gpu {
    struct engine_gpu_driver driver;
    struct engine_gpu_facts facts;
    int device;
    void *context, *stream, *module;
    void *gemv[QUANT_ID_COUNT]; /* kernels (quant/gpu/gpu_quant.h) */
    void *tile[QUANT_ID_COUNT]; /* NULL: the type has none */
    void *float_tile;
    void *quantize[QUANT_ACT_FORMS];
    void *op[ENGINE_GPU_KERNELS];
    struct base_error failure;      /* the first */
    const struct engine_step *rest; /* the steps after the one that is started */
    int n_rest;
    const struct engine_tensor *converted; /* whose columns are in scratch, for the next step; or
                                              NULL */
    const struct engine_tensor *left_for;  /* the next node, a product, for which the one before it
                                              left columns in scratch; or NULL */
    const void *left_out; /* a kernel that is not started, to measure its time; NULL: none */
    int n_left_out;       /* such starts so far */
    /* A product, and how many bytes of its weights kernels before it load (gpu_product.h). */
    const struct engine_tensor *ahead_of;
    int64_t ahead;
};

extern const char *const engine_gpu_kernel_names[ENGINE_GPU_KERNELS];

struct engine_gpu_grid {
    uint32_t x, y;    /* blocks */
    uint32_t threads; /* of a block */
    uint32_t shared;  /* bytes of a block */
};

/* Starts a kernel. */
void engine_gpu_launch(struct engine_gpu *gpu, void *kernel, const struct engine_gpu_grid *grid,
                       const void *arguments);

/* Starts nothing of what follows, but collects it as a graph; engine_gpu_collected ends that and
 * returns the graph, or NULL after a failure. The caller frees it by engine_gpu_collected_free. */
void engine_gpu_collect(struct engine_gpu *gpu);
void *engine_gpu_collected(struct engine_gpu *gpu);
void engine_gpu_collected_free(struct engine_gpu *gpu, void *graph);
void engine_gpu_replay(struct engine_gpu *gpu, void *graph); /* all that it collected */

/* Waits until all work is done; false with the first failure since the GPU was opened. */
bool engine_gpu_wait(struct engine_gpu *gpu, struct base_error *err);

/* Functions of the backend (engine/backend.h), and a copy within the GPU's memory. */
bool engine_gpu_buffer_new(const struct engine_place *place, uint64_t size,
                           struct engine_buffer *out, struct base_error *err);
void engine_gpu_buffer_free(struct engine_buffer *buffer);
void engine_gpu_write(const struct engine_place *place, char *to, const void *from, uint64_t size);
void engine_gpu_copy(struct engine_gpu *gpu, char *to, const char *from, uint64_t size);
void engine_gpu_read(const struct engine_place *place, void *to, const char *from, uint64_t size);
bool engine_gpu_upload(struct engine *e, const struct engine_place *place,
                       const struct engine_upload *uploads, size_t n, struct base_error *err);
