/* engine/gpu/gpu.h: NVIDIA's GPUs as devices of places (engine/place.h).
 *
 * A GPU is opened through its driver's library, which is loaded when it is needed: the program
 * links nothing of it. Kernels are those of the build (engine/gpu/gpu_code.h). The files here:
 *
 *     driver.c           the functions of the driver that are used, by dlopen
 *     machine_code.c     PTX to the GPU's machine code, once for each GPU, driver and build
 *     gpu_device.c       opening; memory; copies; kernels
 *     gpu_upload.c       copies of weights, by several threads
 *     backend_gpu.c      the row of engine/backend.h: runs the steps of a segment
 *     plan_gpu.c         another row: counts bytes
 *     roofline_gpu.c     measures the speed of the memory and of the matrix units
 *     gpu_op.h, gpu_*.c  how the GPU runs each op
 *
 * docs/gpu.md describes how that is tested without a GPU. */
#pragma once

#include "base/error.h"
#include "engine/place.h"
#include <stdint.h>

#define ENGINE_GPU_LIBRARY "libcuda.so.1"

struct engine_gpu;
struct engine_backend;

struct engine_gpu_options {
    const char *library; /* ENGINE_GPU_LIBRARY; NULL: the functions of this program, for tests */
    int index;           /* of the GPU, from 0 on */
    const char *cache;   /* folder of machine code, which exists; NULL: none */
};

struct engine_gpu_facts {
    char name[128];
    int major, minor; /* compute capability */
    int units;        /* multiprocessors, which run blocks at the same time */
    int cache;        /* bytes of the cache that they share */
    int driver;       /* version of CUDA that the driver supports: 1000 * major + 10 * minor */
    uint64_t memory;  /* bytes */
    uint64_t free;    /* bytes that no process has */
};

/* Reads the facts of a GPU, without its kernels. BASE_USAGE if there is no driver or no such GPU.
 */
bool engine_gpu_find(const struct engine_gpu_options *options, struct engine_gpu_facts *out,
                     struct base_error *err);

/* Opens a GPU and loads all kernels; reads and writes options->cache, so that a sandbox may forbid
 * files afterwards. The caller closes it after the engines that use it. NULL: BASE_USAGE as above,
 * or if this program or the GPU lacks what the other needs; BASE_FAILED, BASE_NO_MEMORY. */
struct engine_gpu *engine_gpu_open(const struct engine_gpu_options *options,
                                   struct base_error *err);
void engine_gpu_close(struct engine_gpu *gpu); /* may be NULL */

/* Reads the facts of an open GPU; `free` is that of now. BASE_FAILED. */
bool engine_gpu_read_facts(struct engine_gpu *gpu, struct engine_gpu_facts *out,
                           struct base_error *err);

/* Bytes per second that the GPU reads and writes when it copies a buffer within its memory: the
 * best of several passes. 0 and the error of an allocation or copy. */
double engine_gpu_bandwidth(struct engine_gpu *gpu, struct base_error *err);

/* Multiply-adds of signed bytes per second of the GPU's matrix units, from registers, by the
 * instruction that products use (mma m16n8k32). 0 and the error as above. */
double engine_gpu_int8(struct engine_gpu *gpu, struct base_error *err);

/* For engine_add_place; the device is a struct engine_gpu. */
extern const struct engine_backend engine_backend_gpu;

/* For engine_add_place of an engine that only plans: the device is a struct engine_gpu_plan, which
 * begins as zeros. It has the ops of a GPU and no memory, so no driver is needed. */
struct engine_gpu_plan {
    uint64_t bytes[ENGINE_BUFFER_KINDS]; /* of the buffers, by kind */
    uint64_t total;                      /* of all, as the driver rounds them up */
    uint64_t address;                    /* past the last buffer */
};
extern const struct engine_backend engine_backend_gpu_plan;
