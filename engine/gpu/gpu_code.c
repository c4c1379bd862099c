/* engine/gpu/gpu_code.c: see engine/gpu/gpu_code.h. The Makefile defines ENGINE_GPU_PTX, the path
 * of the PTX, unless the build has no compiler for it. */
#include "engine/gpu/gpu_code.h"

#ifdef ENGINE_GPU_PTX
const bool engine_gpu_has_code = true;
__asm__(".section .rodata.engine_gpu_ptx, \"a\"\n"
        "engine_gpu_ptx: .incbin \"" ENGINE_GPU_PTX "\"\n"
        "engine_gpu_ptx_end:\n"
        ".previous\n");
extern const char engine_gpu_ptx[], engine_gpu_ptx_end[];

const char *engine_gpu_code(size_t *size)
{
    *size = (size_t)(engine_gpu_ptx_end - engine_gpu_ptx);
    return engine_gpu_ptx;
}
#else
const bool engine_gpu_has_code = false;
const char *engine_gpu_code(size_t *size)
{
    *size = 0;
    return NULL;
}
#endif
