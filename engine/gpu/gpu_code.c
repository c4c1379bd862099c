/* engine/gpu/gpu_code.c: see engine/gpu/gpu_code.h. The Makefile defines ENGINE_GPU_PTX, the path
 * of the compressed PTX, unless the build has no compiler for it. */
#include "engine/gpu/gpu_code.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef ENGINE_GPU_PTX
const bool engine_gpu_has_code = true;
__asm__(".section .rodata.engine_gpu_ptx, \"a\"\n"
        "engine_gpu_ptx: .incbin \"" ENGINE_GPU_PTX "\"\n"
        "engine_gpu_ptx_end:\n"
        ".previous\n");
extern const char engine_gpu_ptx[], engine_gpu_ptx_end[];

const void *engine_gpu_code(size_t *size)
{
    *size = (size_t)(engine_gpu_ptx_end - engine_gpu_ptx);
    return engine_gpu_ptx;
}
#else
const bool engine_gpu_has_code = false;
const void *engine_gpu_code(size_t *size)
{
    *size = 0;
    return NULL;
}
#endif

enum { MAX_PTX = 64 << 20, MAX_DECODER = 64 << 20 };

/* lzma_stream_buffer_decode of liblzma; it returns 0 when all is decoded. */
typedef int (*decoder)(uint64_t *memory, uint32_t flags, const void *allocator, const void *in,
                       size_t *in_at, size_t in_size, void *out, size_t *out_at, size_t out_size);

static bool unpack(char *ptx, size_t *size, struct base_error *err)
{
    uint64_t memory = MAX_DECODER;
    size_t packed_size, at = 0;
    const void *packed = engine_gpu_code(&packed_size);
    void *library = dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "lzma_stream_buffer_decode") : NULL;
    decoder decode;
    if (!symbol) return base_fail(err, BASE_FAILED, "the code of a GPU needs liblzma.so.5 once");
    memcpy(&decode, &symbol, sizeof decode);
    *size = 0;
    const int result = decode(&memory, 0, NULL, packed, &at, packed_size, ptx, size, MAX_PTX);
    dlclose(library);
    return result == 0 || base_fail(err, BASE_FAILED, "the code of a GPU is damaged");
}

char *engine_gpu_code_unpack(size_t *size, struct base_error *err)
{
    char *ptx = malloc(MAX_PTX); /* pages take memory when they are written */
    if (!ptx) base_fail(err, BASE_NO_MEMORY, "no memory for the code of a GPU");
    if (ptx && unpack(ptx, size, err)) return ptx;
    free(ptx);
    return NULL;
}
