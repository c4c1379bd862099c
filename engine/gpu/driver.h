/* engine/gpu/driver.h: the functions of NVIDIA's driver (the CUDA driver API) that are used, loaded
 * by dlopen. Types are those of its ABI: results and devices are int, device addresses 64-bit
 * integers, handles pointers; result 0 is success. Source: CUDA Driver API reference. */
#pragma once

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#define ENGINE_GPU_FUNCTIONS(F)                                                                    \
    F(init, cuInit, (unsigned flags))                                                              \
    F(version, cuDriverGetVersion, (int *version))                                                 \
    F(error_name, cuGetErrorName, (int result, const char **name))                                 \
    F(device_get, cuDeviceGet, (int *device, int index))                                           \
    F(device_name, cuDeviceGetName, (char *name, int size, int device))                            \
    F(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))             \
    F(device_memory, cuDeviceTotalMem_v2, (size_t *bytes, int device))                             \
    F(memory_info, cuMemGetInfo_v2, (size_t *free, size_t *all))                                   \
    F(context_take, cuDevicePrimaryCtxRetain, (void **context, int device))                        \
    F(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                                 \
    F(context_set, cuCtxSetCurrent, (void *context))                                               \
    F(stream_new, cuStreamCreate, (void **stream, unsigned flags))                                 \
    F(stream_free, cuStreamDestroy_v2, (void *stream))                                             \
    F(stream_wait, cuStreamSynchronize, (void *stream))                                            \
    F(memory_new, cuMemAlloc_v2, (uint64_t *address, size_t size))                                 \
    F(memory_free, cuMemFree_v2, (uint64_t address))                                               \
    F(locked_new, cuMemHostAlloc, (void **data, size_t size, unsigned flags))                      \
    F(locked_free, cuMemFreeHost, (void *data))                                                    \
    F(memory_set, cuMemsetD8Async, (uint64_t to, unsigned char byte, size_t size, void *stream))   \
    F(write, cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t size, void *stream))     \
    F(read, cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t size, void *stream))            \
    F(copy, cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t size, void *stream))         \
    F(capture_begin, cuStreamBeginCapture_v2, (void *stream, int mode))                            \
    F(capture_end, cuStreamEndCapture, (void *stream, void **graph))                               \
    F(graph_prepare, cuGraphInstantiate_v2, (void **prepared, void *graph, void **node,            \
                                             char *log, size_t log_size))                          \
    F(graph_start, cuGraphLaunch, (void *prepared, void *stream))                                  \
    F(graph_free, cuGraphDestroy, (void *graph))                                                   \
    F(prepared_free, cuGraphExecDestroy, (void *prepared))                                         \
    F(link_new, cuLinkCreate_v2, (unsigned n, int *options, void **values, void **link))           \
    F(link_add, cuLinkAddData_v2, (void *link, int kind, void *data, size_t size,                  \
                                   const char *name, unsigned n, int *options, void **values))     \
    F(link_end, cuLinkComplete, (void *link, void **code, size_t *size))                           \
    F(link_free, cuLinkDestroy, (void *link))                                                      \
    F(module_load, cuModuleLoadData, (void **module, const void *code))                            \
    F(module_free, cuModuleUnload, (void *module))                                                 \
    F(module_kernel, cuModuleGetFunction, (void **kernel, void *module, const char *name))         \
    F(kernel_set, cuFuncSetAttribute, (void *kernel, int attribute, int value))                    \
    F(launch, cuLaunchKernel, (void *kernel, unsigned x, unsigned y, unsigned z,                   \
                               unsigned threads_x, unsigned threads_y, unsigned threads_z,         \
                               unsigned shared, void *stream, void **arguments, void **extra))
/* clang-format on */

enum {
    ENGINE_GPU_ATTRIBUTE_UNITS = 16,
    ENGINE_GPU_ATTRIBUTE_CACHE = 38,
    ENGINE_GPU_ATTRIBUTE_MAJOR = 75,
    ENGINE_GPU_ATTRIBUTE_MINOR = 76,
    ENGINE_GPU_KERNEL_SHARED = 8, /* bytes of shared memory of a block, at most */
    ENGINE_GPU_LINK_PTX = 1,
    ENGINE_GPU_CAPTURE_THREAD = 1 /* other threads may call anything */
};

struct engine_gpu_driver {
    void *library;
#define ENGINE_GPU_MEMBER(name, symbol, parameters) int(*name) parameters;
    ENGINE_GPU_FUNCTIONS(ENGINE_GPU_MEMBER)
#undef ENGINE_GPU_MEMBER
};

/* Loads the library (NULL: this program) and initializes the driver; engine_gpu_driver_close frees
 * it, also after a failure: BASE_USAGE without library, GPU, or one of the functions. */
bool engine_gpu_driver_open(const char *library, struct engine_gpu_driver *out,
                            struct base_error *err);
void engine_gpu_driver_close(struct engine_gpu_driver *driver);

/* Returns true for result 0; otherwise records BASE_FAILED with the function and the driver's name
 * of the error. */
bool engine_gpu_check(const struct engine_gpu_driver *driver, int result, const char *function,
                      struct base_error *err);
